/* SPDX-License-Identifier: Apache-2.0
 * The file beside a plugin. A whole manifest is turned into the notes that a plugin would carry,
 * so that there is one reader for both. */
#include "plugin/sidecar.h"

#include <string.h>
#include <sys/stat.h>

#include <davit/plugin.h>

#include "plugin/trust.h"

#define SUFFIX    ".davit.json"
#define MAX_BYTES (64 * 1024)

static int32_t bad(DavitReport *report, const char *subject, const char *expected,
                   const char *found, const char *message)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_BAD_MANIFEST,
                                            .status = DAVIT_E_CORRUPT,
                                            .stage = "manifest",
                                            .subject = subject,
                                            .expected = expected,
                                            .found = found,
                                            .message = message,
                                            .hint = "mend the file beside the plugin, or "
                                                    "remove it"});
}

void davit_sidecar_free(DavitSidecar *sidecar)
{
    if (!sidecar)
        return;
    json_decref(sidecar->object);
    g_ptr_array_unref(sidecar->texts);
    g_array_unref(sidecar->notes);
    g_free(sidecar->path);
    g_free(sidecar);
}

/* ---- notes ---- */

/* @object less @without, as a note of @type. */
static void add_note(DavitSidecar *s, json_t *object, uint32_t type, const char *without)
{
    json_t *copy = json_copy(object);
    DavitElfNote note = {.type = type};
    char *text;

    json_object_del(copy, without);
    text = json_dumps(copy, JSON_COMPACT);
    json_decref(copy);
    if (!text)
        return;
    note.text = g_strdup(text);
    note.n_text = (uint32_t)strlen(text);
    free(text);
    g_ptr_array_add(s->texts, (gpointer)(uintptr_t)note.text);
    g_array_append_val(s->notes, note);
}

/* A refusal stands inside its component, so it need not repeat the id. */
static void add_refusals(DavitSidecar *s, const json_t *component)
{
    size_t i;
    json_t *refusal;

    json_array_foreach(json_object_get(component, "refuses"), i, refusal)
    {
        json_t *whole = json_copy(refusal);

        json_object_set(whole, "id", json_object_get(component, "id"));
        add_note(s, whole, DAVIT_NOTE_REFUSAL, "");
        json_decref(whole);
    }
}

static void make_notes(DavitSidecar *s)
{
    json_t *components = json_object_get(s->object, "components");
    json_t *component;
    size_t i;

    if (!json_is_array(components))
        return;
    add_note(s, s->object, DAVIT_NOTE_BUNDLE, "components");
    json_array_foreach(components, i, component)
    {
        add_note(s, component, DAVIT_NOTE_COMPONENT, "refuses");
        add_refusals(s, component);
    }
}

/* ---- reading ---- */

DavitSidecar *davit_sidecar_read(const char *real, DavitTrust *trust,
                                 int32_t *out_status, DavitReport *report)
{
    g_autofree char *path = g_strconcat(real, SUFFIX, NULL);
    g_autofree char *target = NULL;
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    json_error_t where = {0};
    struct stat st;
    DavitSidecar *s;
    json_t *object;
    size_t len = 0;

    *out_status = DAVIT_OK;
    if (lstat(path, &st) != 0) /* the usual case */
        return NULL;
    *out_status = davit_trust_check(trust, path, &target, &st, report);
    if (*out_status)
        return NULL;
    if (st.st_size > MAX_BYTES || !g_file_get_contents(path, &text, &len, &error)) {
        *out_status = bad(report, path, "a file of at most 64 KiB", error ? error->message : NULL,
                          "the file beside the plugin cannot be read");
        return NULL;
    }
    object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(object)) {
        *out_status = bad(report, path, "one JSON object",
                          object ? "an array"
                                 : davit_report_text(report, "line %d: %s", where.line,
                                                     where.text),
                          "the file beside the plugin does not parse");
        json_decref(object);
        return NULL;
    }
    s = g_new0(DavitSidecar, 1);
    s->path = g_steal_pointer(&path);
    s->object = object;
    s->texts = g_ptr_array_new_with_free_func(g_free);
    s->notes = g_array_new(FALSE, FALSE, sizeof(DavitElfNote));
    make_notes(s);
    return s;
}

/* ---- settings ---- */

static bool is_sha256(const char *text)
{
    return text && strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

static bool is_setting(const char *key, const json_t *value)
{
    if (strcmp(key, "disabled") == 0)
        return json_is_boolean(value);
    if (strcmp(key, "priority") == 0)
        return json_is_integer(value) && json_integer_value(value) >= 0 &&
               json_integer_value(value) <= 100;
    if (strcmp(key, "sha256") == 0)
        return is_sha256(json_string_value(value));
    return strcmp(key, "comment") == 0 && json_is_string(value);
}

int32_t davit_sidecar_check_settings(const DavitSidecar *sidecar, DavitReport *report)
{
    int32_t status = DAVIT_OK;
    const char *key;
    json_t *value;

    if (!sidecar)
        return DAVIT_OK;
    json_object_foreach(sidecar->object, key, value)
    {
        if (!is_setting(key, value))
            status = bad(report, davit_report_text(report, "%s: %s", sidecar->path, key),
                         "disabled (true or false), priority (0 to 100), sha256 or comment", NULL,
                         "a file beside a plugin with a manifest of its own sets nothing else");
    }
    return status;
}

bool davit_sidecar_disables(const DavitSidecar *sidecar)
{
    return sidecar && json_is_true(json_object_get(sidecar->object, "disabled"));
}

bool davit_sidecar_priority(const DavitSidecar *sidecar, int32_t *out)
{
    const json_t *value = sidecar ? json_object_get(sidecar->object, "priority") : NULL;

    if (!json_is_integer(value))
        return false;
    *out = (int32_t)json_integer_value(value);
    return true;
}

const char *davit_sidecar_sha256(const DavitSidecar *sidecar)
{
    return sidecar ? json_string_value(json_object_get(sidecar->object, "sha256")) : NULL;
}
