/* SPDX-License-Identifier: Apache-2.0
 * Validation of descriptors. Pointers inside them cannot be checked: a plugin is trusted
 * native code; these checks catch mistakes. */
#include "plugin/validate.h"

#include <string.h>

#include <davit/tokenizer.h>

#include "plugin/kinds.h"

#define MAX_STRUCT     (64 * 1024) /* a size above this is garbage */
#define MAX_COMPONENTS 256
#define MAX_REFUSALS   64
#define MAX_SHAPES     4096
#define ALL_PURPOSES   (DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN)

/* Who is checked, and where the findings go. */
typedef struct Check {
    const char *what; /* "bundle", component id */
    DavitReport *records;
    int32_t status; /* negative after the first finding */
} Check;

static void refuse(Check *check, uint32_t code, const char *field, const char *expected,
                   const char *found, const char *message)
{
    check->status = davit_report_add(
        check->records,
        &(DavitFinding){
            .code = code,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "validate",
            .subject = davit_report_text(check->records, "%s: %s", check->what, field),
            .expected = expected,
            .found = found,
            .message = message,
            .hint = "the plugin's author must fix and rebuild it"});
}

static void require(Check *check, const char *field, bool is_there)
{
    if (!is_there)
        refuse(check, DAVIT_R_MISSING_FIELD, field, "a value", "NULL or 0",
               "a required field is absent");
}

static void agree_text(Check *check, const char *field, const char *manifest,
                       const char *desc)
{
    if (desc && g_strcmp0(manifest, desc) != 0)
        refuse(check, DAVIT_R_MANIFEST_MISMATCH, field,
               davit_report_text(check->records, "%s (manifest)", manifest),
               davit_report_text(check->records, "%s (descriptor)", desc),
               "the descriptor says something else than the manifest");
}

static void agree_number(Check *check, const char *field, uint64_t manifest,
                         uint64_t desc)
{
    if (manifest != desc)
        refuse(check, DAVIT_R_MANIFEST_MISMATCH, field,
               davit_report_text(check->records, "%" G_GUINT64_FORMAT " (manifest)",
                                 (guint64)manifest),
               davit_report_text(check->records, "%" G_GUINT64_FORMAT " (descriptor)",
                                 (guint64)desc),
               "the descriptor says something else than the manifest");
}

/* Copy min(size) bytes of @theirs, whose first field is its struct_size, into @ours.
 * @oldest: the end of that struct in the oldest version that is accepted. */
static bool copy_struct(Check *check, const char *field, const void *theirs, void *ours,
                        size_t n_ours, size_t oldest)
{
    uint64_t n;

    memcpy(&n, theirs, sizeof n);
    if (n < oldest || n > MAX_STRUCT) {
        refuse(check, DAVIT_R_BAD_SIZE, field,
               davit_report_text(check->records, "%zu to %d bytes", oldest, MAX_STRUCT),
               davit_report_text(check->records, "%" G_GUINT64_FORMAT, (guint64)n),
               "struct_size is not the end of the last field that the plugin knows");
        return false;
    }
    memset(ours, 0, n_ours);
    memcpy(ours, theirs, MIN(n_ours, (size_t)n));
    return true;
}

/* ---- component ---- */

static size_t count_refuses(const davit_component *desc)
{
    size_t n = 0;

    while (desc->refuses && n < MAX_REFUSALS && desc->refuses[n])
        n++;
    return n;
}

static void check_agreement(Check *check, const davit_component *desc,
                            const DavitManifestComponent *m)
{
    agree_text(check, "kind", m->kind, desc->kind);
    agree_number(check, "kind_major", m->kind_major, desc->kind_major);
    agree_number(check, "kind_minor", m->kind_minor, desc->kind_minor);
    agree_text(check, "capability", m->capability, desc->capability);
    agree_number(check, "purposes", m->purposes & ALL_PURPOSES,
                 desc->purposes & ALL_PURPOSES);
    agree_number(check, "priority", (uint64_t)m->priority, (uint64_t)desc->priority);
    agree_number(check, "refuses", m->refusals->len, count_refuses(desc));
}

static void check_fields(Check *check, const davit_component *desc,
                         const DavitKindInfo *info)
{
    require(check, "kind", desc->kind != NULL);
    require(check, "capability", desc->capability != NULL);
    require(check, "purposes", desc->purposes != 0 || count_refuses(desc) > 0);
    require(check, "probe", desc->probe != NULL || !info->needs_probe);
    require(check, "destroy", desc->destroy != NULL || desc->create == NULL);
    require(check, "iface", desc->iface != NULL);
}

/* The kind's table: size, copy, required slots. */
static void take_iface(Check *check, DavitComponentLoad *load, const DavitKindInfo *info)
{
    g_autofree uint8_t *copy = g_malloc0(info->size);

    if (!copy_struct(check, "iface.struct_size", load->desc.iface, copy, info->size,
                     info->oldest_end))
        return;
    for (size_t i = 0; info->required[i].name; i++) {
        const void *slot;

        memcpy(&slot, copy + info->required[i].off, sizeof slot);
        if (!slot)
            require(check,
                    davit_report_text(check->records, "iface.%s", info->required[i].name),
                    false);
    }
    load->iface = g_steal_pointer(&copy);
}

/* ---- shapes of a tokenizer ---- */

/* JSON text that is an object or null, as the member of a tokenizer.json is. */
static void check_json(Check *check, const char *field, const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &error);

    if (!value || !(json_is_object(value) || json_is_null(value)))
        refuse(check, DAVIT_R_JSON_INVALID, field, "a JSON object or null",
               value ? "another JSON value" : error.text,
               "a shape that is not readable can never be found");
    json_decref(value);
}

static void check_shape(Check *check, const davit_tok_shape *theirs, size_t index)
{
    davit_tok_shape shape;
#define FIELD(name) davit_report_text(check->records, "shapes[%zu]." name, index)

    if (!copy_struct(check, FIELD("struct_size"), theirs, &shape, sizeof shape,
                     DAVIT_END(davit_tok_shape, pre_tokenizer)))
        return;
    require(check, FIELD("name"), shape.name != NULL);
    require(check, FIELD("gguf_facts"), !shape.gguf_pre || shape.gguf_facts);
    require(check, FIELD("rank_facts"), !shape.rank_hashes || shape.rank_facts);
    if (shape.pre_tokenizer)
        check_json(check, FIELD("pre_tokenizer"), shape.pre_tokenizer);
    if (shape.gguf_facts)
        check_json(check, FIELD("gguf_facts"), shape.gguf_facts);
    if (shape.rank_facts)
        check_json(check, FIELD("rank_facts"), shape.rank_facts);
#undef FIELD
}

static void check_shapes(Check *check, const davit_tokenizer_iface *iface)
{
    for (size_t i = 0; iface->shapes && i < MAX_SHAPES && iface->shapes[i]; i++)
        check_shape(check, iface->shapes[i], i);
}

static void validate_component(DavitComponent *c, const davit_component *theirs)
{
    const DavitKindInfo *info = davit_kind_info(c->kind);
    DavitComponentLoad *load = c->load;
    Check check = {.what = c->id, .records = c->records};

    if (copy_struct(&check, "struct_size", theirs, &load->desc, sizeof load->desc,
                    DAVIT_END(davit_component, iface))) {
        check_fields(&check, &load->desc, info);
        check_agreement(&check, &load->desc, load->manifest);
        if (davit_kind_check(c->kind, load->desc.kind_major, load->desc.kind_minor,
                             load->desc.kind_min_minor, c->id, "validate", c->records))
            check.status = DAVIT_E_UNSUPPORTED;
        if (load->desc.iface)
            take_iface(&check, load, info);
        if (load->iface && c->kind == DAVIT_KIND_ID_TOKENIZER)
            check_shapes(&check, load->iface);
    }
    load->has_desc = check.status == DAVIT_OK;
    if (!load->has_desc)
        c->state = DAVIT_STATE_REFUSED;
}

/* ---- bundle ---- */

static DavitComponent *find_component(const DavitPluginFile *file, const char *id)
{
    const GPtrArray *all = file->load->components;

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (strcmp(c->id, id) == 0)
            return c;
    }
    return NULL;
}

/* Its id, or NULL after a record if the struct is too short to hold one. */
static const char *component_id(Check *check, const davit_component *theirs, size_t index)
{
    const char *where = davit_report_text(check->records, "component %zu", index);

    if (theirs->struct_size < DAVIT_END(davit_component, id) ||
        theirs->struct_size > MAX_STRUCT) {
        refuse(check, DAVIT_R_BAD_SIZE, where,
               davit_report_text(check->records, "%zu to %d bytes",
                                 DAVIT_END(davit_component, iface), MAX_STRUCT),
               davit_report_text(check->records, "%" G_GUINT64_FORMAT,
                                 (guint64)theirs->struct_size),
               "struct_size is not the end of the last field that the plugin knows");
        return NULL;
    }
    if (!theirs->id)
        require(check, davit_report_text(check->records, "%s.id", where), false);
    return theirs->id;
}

static void validate_components(Check *check, DavitPluginFile *file)
{
    const davit_component *const *list = file->load->bundle.components;

    for (size_t i = 0; list[i]; i++) {
        const char *id;
        DavitComponent *c;

        if (i >= MAX_COMPONENTS) {
            refuse(check, DAVIT_R_BAD_SIZE, "components",
                   davit_report_text(check->records, "at most %d", MAX_COMPONENTS), NULL,
                   "the list of components has no end");
            return;
        }
        id = component_id(check, list[i], i);
        if (!id)
            continue;
        c = find_component(file, id);
        if (!c)
            refuse(check, DAVIT_R_MANIFEST_MISMATCH, "components",
                   "only components that the manifest names", id,
                   "the descriptor holds a component that the manifest does not");
        else if (davit_component_usable(c))
            validate_component(c, list[i]);
    }
}

/* A component of the manifest that the entry did not return. */
static void refuse_absent(DavitPluginFile *file)
{
    const GPtrArray *all = file->load->components;

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);
        Check check = {.what = c->id, .records = c->records};

        if (!davit_component_usable(c) || c->load->has_desc)
            continue;
        refuse(&check, DAVIT_R_MANIFEST_MISMATCH, "components",
               "this component (manifest)", "no such component (descriptor)",
               "the descriptor lacks a component");
        c->state = DAVIT_STATE_REFUSED;
    }
}

/* magic stands before struct_size, so the bundle has a copy of its own. */
static bool copy_bundle(Check *check, const davit_bundle *theirs, davit_bundle *ours)
{
    const size_t oldest = DAVIT_END(davit_bundle, quiesce);

    if (theirs->magic != DAVIT_MAGIC) {
        refuse(check, DAVIT_R_BAD_MAGIC, "magic", "0x314c505449564144 (DAVITPL1)",
               davit_report_text(check->records, "0x%016" G_GINT64_MODIFIER "x",
                                 (guint64)theirs->magic),
               "what the entry returned is no bundle");
        return false;
    }
    if (theirs->struct_size < oldest || theirs->struct_size > MAX_STRUCT) {
        refuse(check, DAVIT_R_BAD_SIZE, "struct_size",
               davit_report_text(check->records, "%zu to %d bytes", oldest, MAX_STRUCT),
               davit_report_text(check->records, "%" G_GUINT64_FORMAT,
                                 (guint64)theirs->struct_size),
               "struct_size is not the end of the last field that the plugin knows");
        return false;
    }
    memset(ours, 0, sizeof *ours);
    memcpy(ours, theirs, MIN(sizeof *ours, (size_t)theirs->struct_size));
    return true;
}

int32_t davit_validate_bundle(DavitPluginFile *file, const davit_bundle *theirs)
{
    Check check = {.what = "bundle", .records = file->records};
    const DavitManifest *m = file->load->manifest;
    davit_bundle *bundle = &file->load->bundle;

    if (!copy_bundle(&check, theirs, bundle))
        return check.status;
    require(&check, "id", bundle->id != NULL);
    require(&check, "version", bundle->version != NULL);
    require(&check, "license", bundle->license != NULL);
    require(&check, "components", bundle->components != NULL);
    require(&check, "abi_major", bundle->abi_major != 0);
    agree_text(&check, "id", m->id, bundle->id);
    agree_text(&check, "version", m->version, bundle->version);
    agree_text(&check, "license", m->license, bundle->license);
    if (bundle->abi_major != 0) {
        agree_number(&check, "abi_major", m->abi_major, bundle->abi_major);
        agree_number(&check, "min_host_minor", m->min_host_minor, bundle->min_host_minor);
    }
    if (check.status)
        return check.status;
    validate_components(&check, file);
    if (check.status == DAVIT_OK)
        refuse_absent(file);
    return check.status;
}
