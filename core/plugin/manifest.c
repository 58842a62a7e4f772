/* SPDX-License-Identifier: Apache-2.0
 * Manifest notes to DavitManifest. Notes come in any order: sanitizers and linkers move
 * them. The small languages inside strings (purposes, codes) are in manifest_words.c. */
#include "plugin/manifest.h"

#include <string.h>

#include <jansson.h>

#define SCHEMA         "davit-plugin/1"
#define MAX_COMPONENTS 256
#define MAX_REFUSALS   64 /* of one component */

/* What one note is read with. */
typedef struct Reader {
    const char *subject; /* file */
    const char *where;   /* "bundle", "component 2": for messages */
    json_t *object;      /* (borrowed) */
    DavitReport *report;
    bool failed; /* a record was added */
} Reader;

static void bad(Reader *reader, const char *field, const char *expected,
                const char *found, const char *message)
{
    davit_report_add(
        reader->report,
        &(DavitFinding){
            .code = DAVIT_R_BAD_MANIFEST,
            .status = DAVIT_E_CORRUPT,
            .stage = "manifest",
            .subject = field ? davit_report_text(reader->report, "%s: %s.%s",
                                                 reader->subject, reader->where, field)
                             : reader->subject,
            .expected = expected,
            .found = found,
            .message = message,
            .hint =
                "write the notes with DAVIT_COMPONENT, DAVIT_REFUSES and DAVIT_PLUGIN; "
                "use their latest version and rebuild"});
    reader->failed = true;
}

/* ---- members ---- */

/* (borrowed, lives as long as the object) */
static const char *text_member(Reader *reader, const char *key, bool may_be_empty)
{
    const json_t *value = json_object_get(reader->object, key);

    if (!json_is_string(value))
        bad(reader, key, "a string", value ? "another type" : "no such member",
            "a required member is absent or has a wrong type");
    else if (!may_be_empty && json_string_length(value) == 0)
        bad(reader, key, "a text that is not empty", "\"\"",
            "a required member is empty");
    return json_string_value(value);
}

static char *text_copy(Reader *reader, const char *key)
{
    return g_strdup(text_member(reader, key, false));
}

/* An integer in [min, max]; 0 after a record. */
static int64_t int_member(Reader *reader, const char *key, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(reader->object, key);
    const int64_t n = json_integer_value(value);

    if (json_is_integer(value) && n >= min && n <= max)
        return n;
    bad(reader, key,
        davit_report_text(reader->report,
                          "an integer from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                          min, max),
        !value ? "no such member"
        : json_is_integer(value)
            ? davit_report_text(reader->report, "%" G_GINT64_FORMAT, n)
            : "another type",
        "a required member is absent or has a wrong type");
    return 0;
}

static uint64_t purposes_member(Reader *reader)
{
    const char *text = text_member(reader, "purposes", false);
    uint64_t purposes = 0;

    if (text && !davit_purposes_parse(text, &purposes))
        bad(reader, "purposes", "names like DAVIT_INSPECT joined by |", text,
            "write purposes with their DAVIT_ names: the manifest holds them as text");
    return purposes;
}

/* Digits up to 9999. Returns: what follows them, NULL if there are none or too many. */
static const char *small_number(const char *text, uint32_t *out)
{
    const size_t n = strspn(text, "0123456789");

    *out = 0;
    if (n < 1 || n > 4)
        return NULL;
    for (size_t i = 0; i < n; i++)
        *out = *out * 10 + (uint32_t)(text[i] - '0');
    return text + n;
}

/* "1.0" */
static void kind_version(Reader *reader, DavitManifestComponent *c)
{
    const char *text = text_member(reader, "kind_abi", false);
    const char *end;

    if (!text)
        return;
    end = small_number(text, &c->kind_major);
    end = end && *end == '.' ? small_number(end + 1, &c->kind_minor) : NULL;
    if (!end || *end != '\0')
        bad(reader, "kind_abi", "MAJOR.MINOR", text, "the kind's version does not parse");
}

/* ---- notes ---- */

static void refusal_free(void *p)
{
    DavitManifestRefusal *r = p;

    g_free(r->subject);
    g_free(r->message);
    g_free(r->hint);
    g_free(r);
}

static void component_free(void *p)
{
    DavitManifestComponent *c = p;

    g_free(c->id);
    g_free(c->kind);
    g_free(c->capability);
    g_ptr_array_unref(c->refusals);
    g_free(c);
}

void davit_manifest_free(DavitManifest *manifest)
{
    if (!manifest)
        return;
    g_free(manifest->id);
    g_free(manifest->name);
    g_free(manifest->vendor);
    g_free(manifest->version);
    g_free(manifest->license);
    g_free(manifest->build);
    g_ptr_array_unref(manifest->components);
    g_free(manifest);
}

static void read_bundle(Reader *reader, DavitManifest *m)
{
    const char *schema = text_member(reader, "schema", false);
    const json_t *ceiling = json_object_get(reader->object, "max_host_minor");

    if (schema && strcmp(schema, SCHEMA) != 0)
        bad(reader, "schema", SCHEMA, schema, "the manifest has another schema");
    m->id = text_copy(reader, "id");
    m->name = text_copy(reader, "name");
    m->vendor = g_strdup(text_member(reader, "vendor", true));
    m->version = text_copy(reader, "version");
    m->license = text_copy(reader, "license");
    m->build = g_strdup(text_member(reader, "build", true));
    m->abi_major = (uint32_t)int_member(reader, "abi_major", 1, 9999);
    m->abi_minor = (uint32_t)int_member(reader, "abi_minor", 0, 9999);
    m->min_host_minor = (uint32_t)int_member(reader, "min_host_minor", 0, 9999);
    m->max_host_minor = UINT32_MAX;
    if (ceiling && !json_is_null(ceiling))
        m->max_host_minor = (uint32_t)int_member(reader, "max_host_minor", 0, 9999);
}

static void read_component(Reader *reader, DavitManifest *m)
{
    DavitManifestComponent *c = g_new0(DavitManifestComponent, 1);

    c->refusals = g_ptr_array_new_with_free_func(refusal_free);
    g_ptr_array_add(m->components, c);
    c->id = text_copy(reader, "id");
    c->kind = text_copy(reader, "kind");
    c->capability = g_strdup(text_member(reader, "capability", true));
    c->priority = (int32_t)int_member(reader, "priority", 0, 100);
    c->purposes = purposes_member(reader);
    kind_version(reader, c);
}

static DavitManifestComponent *find_component(const DavitManifest *m, const char *id)
{
    for (size_t i = 0; i < m->components->len; i++) {
        DavitManifestComponent *c = g_ptr_array_index(m->components, i);

        if (g_strcmp0(c->id, id) == 0)
            return c;
    }
    return NULL;
}

static void read_refusal(Reader *reader, DavitManifest *m)
{
    const char *id = text_member(reader, "id", false);
    const char *code = text_member(reader, "code", false);
    DavitManifestComponent *c = id ? find_component(m, id) : NULL;
    DavitManifestRefusal *r;

    if (id && !c)
        bad(reader, "id", "the id of a component of this file", id,
            "a refusal belongs to no component");
    if (!c || !code)
        return;
    if (c->refusals->len >= MAX_REFUSALS) {
        bad(reader, "id", davit_report_text(reader->report, "at most %d", MAX_REFUSALS),
            NULL, "too many refusals of one component");
        return;
    }
    r = g_new0(DavitManifestRefusal, 1);
    g_ptr_array_add(c->refusals, r);
    r->code = davit_code_parse(code);
    r->purposes = purposes_member(reader);
    r->subject = g_strdup(text_member(reader, "subject", true));
    r->message = text_copy(reader, "message");
    r->hint = g_strdup(text_member(reader, "hint", true));
}

/* ---- the whole ---- */

/* Parse one note and hand it to its reader. Notes of other types are a newer SDK's. */
static void read_note(Reader *reader, const DavitElfNote *note, DavitManifest *m)
{
    json_error_t error;
    json_t *object = json_loadb(note->text, note->n_text, JSON_REJECT_DUPLICATES, &error);

    if (!json_is_object(object)) {
        bad(reader, "json", "one JSON object",
            object ? "another value"
                   : davit_report_text(reader->report, "%s at byte %d", error.text,
                                       error.position),
            "a manifest note does not parse");
        json_decref(object);
        return;
    }
    reader->object = object;
    if (note->type == DAVIT_NOTE_BUNDLE)
        read_bundle(reader, m);
    else if (note->type == DAVIT_NOTE_COMPONENT)
        read_component(reader, m);
    else
        read_refusal(reader, m);
    json_decref(object);
}

/* All notes of @type. Refusals come after components, whatever their place in the file.
 */
static void read_notes(Reader *reader, const GArray *notes, uint32_t type,
                       const char *name, DavitManifest *m)
{
    size_t n = 0;

    for (size_t i = 0; i < notes->len; i++) {
        const DavitElfNote *note = &g_array_index(notes, DavitElfNote, i);

        if (note->type != type)
            continue;
        if (type == DAVIT_NOTE_COMPONENT && n >= MAX_COMPONENTS) {
            bad(reader, NULL,
                davit_report_text(reader->report, "at most %d", MAX_COMPONENTS), NULL,
                "too many components in one file");
            return;
        }
        if (type == DAVIT_NOTE_BUNDLE && n > 0) {
            bad(reader, NULL, "one bundle note", "several", "a file holds one bundle");
            return;
        }
        reader->where = davit_report_text(reader->report, "%s %zu", name, n);
        read_note(reader, note, m);
        n++;
    }
    if (n == 0 && type != DAVIT_NOTE_REFUSAL)
        bad(reader, NULL, davit_report_text(reader->report, "a %s note", name), "none",
            "the manifest is not complete");
}

static bool check_size(Reader *reader, const GArray *notes)
{
    size_t n = 0;

    for (size_t i = 0; i < notes->len; i++)
        n += g_array_index(notes, DavitElfNote, i).n_text;
    if (n <= DAVIT_MAX_MANIFEST)
        return true;
    bad(reader, NULL,
        davit_report_text(reader->report, "at most %d bytes", DAVIT_MAX_MANIFEST),
        davit_report_text(reader->report, "%zu bytes", n), "the manifest is too large");
    return false;
}

static int by_id(const void *a, const void *b)
{
    return strcmp((*(const DavitManifestComponent *const *)a)->id,
                  (*(const DavitManifestComponent *const *)b)->id);
}

DavitManifest *davit_manifest_read(const GArray *notes, const char *subject,
                                   DavitReport *report)
{
    g_autoptr(DavitManifest) m = g_new0(DavitManifest, 1);
    Reader reader = {.subject = subject, .where = "manifest", .report = report};

    m->components = g_ptr_array_new_with_free_func(component_free);
    if (!check_size(&reader, notes))
        return NULL;
    read_notes(&reader, notes, DAVIT_NOTE_BUNDLE, "bundle", m);
    read_notes(&reader, notes, DAVIT_NOTE_COMPONENT, "component", m);
    read_notes(&reader, notes, DAVIT_NOTE_REFUSAL, "refusal", m);
    if (reader.failed)
        return NULL;
    g_ptr_array_sort(m->components, by_id); /* the compiler chose the order of notes */
    return g_steal_pointer(&m);
}
