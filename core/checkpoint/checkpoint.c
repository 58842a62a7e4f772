/* SPDX-License-Identifier: Apache-2.0
 * Opening a checkpoint from start to end, and the getters on what came out. */
#include "checkpoint/checkpoint.h"

#include <string.h>

#include "base/big.h"
#include "base/json.h"
#include "checkpoint/checkpoint_private.h"
#include "source/hub_cache.h"

/* ---- making and freeing ---- */

static DavitCheckpoint *checkpoint_new(const GArray *formats, uint64_t purposes)
{
    DavitCheckpoint *ckpt = g_new0(DavitCheckpoint, 1);

    ckpt->purposes = purposes;
    ckpt->formats = g_array_new(FALSE, FALSE, sizeof(DavitFormat));
    g_array_append_vals(ckpt->formats, formats->data, formats->len);
    ckpt->asked = g_ptr_array_new_with_free_func(davit_asked_free);
    ckpt->parts = g_ptr_array_new_with_free_func(davit_part_free);
    ckpt->text = g_string_chunk_new(16 * 1024);
    ckpt->path.names = g_ptr_array_new_with_free_func(g_free);
    return ckpt;
}

void davit_checkpoint_free(DavitCheckpoint *ckpt)
{
    if (!ckpt)
        return;
    g_ptr_array_unref(ckpt->parts);
    davit_part_free(ckpt->index);
    g_ptr_array_unref(ckpt->asked);
    g_array_unref(ckpt->formats);
    g_string_chunk_free(ckpt->text);
    davit_big_free(ckpt->tensors);
    g_clear_pointer(&ckpt->copies, g_array_unref);
    g_clear_pointer(&ckpt->renames, g_ptr_array_unref);
    davit_model_path_clear(&ckpt->path);
    g_free(ckpt);
}

/* ---- opening ---- */

/* All format components, loaded. One that does not load is a warning: another may do. */
static GArray *load_formats(DavitRegistry *registry, DavitReport *report)
{
    const GPtrArray *components = davit_registry_kind(registry, DAVIT_KIND_ID_FORMAT);
    GArray *formats = g_array_new(FALSE, FALSE, sizeof(DavitFormat));

    /* Names the suites that formats ask the host for, so that a static link has them. */
    g_assert(davit_json_suite_get() && davit_io_suite_get());
    for (guint i = 0; i < components->len; i++) {
        DavitComponent *component = g_ptr_array_index(components, i);
        DavitFormat format = {.id = component->id,
                              .capability = component->capability,
                              .user_rank = component->user_rank};
        const void *iface = NULL;
        g_autoptr(DavitReport) said = davit_report_new();

        if (davit_component_use(component, &iface, &format.self, said)) {
            const DavitRecord *why = davit_report_first_error(said, 0);

            davit_report_add(
                report, &(DavitFinding){.code = why ? why->code : DAVIT_R_NO_REASON,
                                        .severity = DAVIT_WARNING,
                                        .stage = "open",
                                        .who = component->id,
                                        .subject = why ? why->subject : component->id,
                                        .found = why ? why->found : NULL,
                                        .message = "a format plugin could not be used"});
            continue;
        }
        format.iface = iface;
        format.probe = davit_component_probe(component);
        g_array_append_val(formats, format);
    }
    return formats;
}

/* Errors that @report got since @before. */
static bool has_new_error(const DavitReport *report, size_t before)
{
    for (size_t i = before; i < davit_report_count(report); i++)
        if (davit_report_get(report, i)->severity == DAVIT_ERROR)
            return true;
    return false;
}

/* Everything after the entry file is known. Returns: true if every file could be opened;
 * ckpt->settled tells whether they agree. */
static bool open_set(DavitCheckpoint *ckpt, const char *entry, size_t before,
                     DavitReport *report)
{
    const bool opened =
        davit_set_open(ckpt, entry, report) && !has_new_error(report, before);

    davit_settle_tensors(ckpt, report);
    if (!opened)
        return false;
    davit_settle_set(ckpt, report);
    davit_settle_strays(ckpt, report);
    ckpt->settled = !has_new_error(report, before);
    return true;
}

/* @loose: files that only contradict each other are no reason to return NULL. */
static DavitCheckpoint *open_model(const GArray *formats, const char *model,
                                   uint64_t purposes, bool loose, DavitReport *report)
{
    g_autoptr(DavitCheckpoint) ckpt = checkpoint_new(formats, purposes);
    const size_t before = davit_report_count(report);
    g_autofree char *entry = NULL;

    g_clear_pointer(&ckpt->path.names, g_ptr_array_unref);
    if (davit_model_path_init(&ckpt->path, model, report))
        return NULL;
    if (ckpt->path.entry)
        entry = g_strdup(ckpt->path.entry);
    else if (!davit_ask_directory(ckpt, &entry, report)) {
        davit_hub_note_partial(ckpt->path.dir, report);
        return NULL;
    }
    if (!open_set(ckpt, entry, before, report) || (!ckpt->settled && !loose)) {
        davit_hub_note_partial(ckpt->path.dir, report);
        return NULL;
    }
    return g_steal_pointer(&ckpt);
}

DavitCheckpoint *davit_checkpoint_open_with(const GArray *formats, const char *model,
                                            uint64_t purposes, DavitReport *report)
{
    return open_model(formats, model, purposes, false, report);
}

DavitCheckpoint *davit_checkpoint_open_source(const GArray *formats, DavitSource *source,
                                              uint64_t purposes, DavitReport *report)
{
    g_autoptr(DavitCheckpoint) ckpt = checkpoint_new(formats, purposes);
    const size_t before = davit_report_count(report);
    DavitPart *part = davit_part_open_source(ckpt, source, report);

    if (!part)
        return NULL;
    g_ptr_array_add(ckpt->parts, part);
    davit_settle_tensors(ckpt, report);
    davit_settle_set(ckpt, report);
    ckpt->settled = !has_new_error(report, before);
    return !ckpt->settled ? NULL : g_steal_pointer(&ckpt);
}

DavitCheckpoint *davit_checkpoint_open(DavitRegistry *registry, const char *model,
                                       uint64_t purposes, DavitReport *report)
{
    g_autoptr(GArray) formats = load_formats(registry, report);

    return davit_checkpoint_open_with(formats, model, purposes, report);
}

DavitCheckpoint *davit_checkpoint_open_loose(DavitRegistry *registry, const char *model,
                                             uint64_t purposes, DavitReport *report)
{
    g_autoptr(GArray) formats = load_formats(registry, report);

    return open_model(formats, model, purposes, true, report);
}

bool davit_checkpoint_settled(const DavitCheckpoint *ckpt)
{
    return ckpt->settled;
}

size_t davit_checkpoint_n_copies(const DavitCheckpoint *ckpt)
{
    return ckpt->copies ? ckpt->copies->len : 0;
}

const davit_tensor_info *davit_checkpoint_copy(const DavitCheckpoint *ckpt, size_t index)
{
    g_assert(index < davit_checkpoint_n_copies(ckpt));
    return &g_array_index(ckpt->copies, davit_tensor_info, index);
}

/* ---- who was asked ---- */

/* The file that asking alone leads to: the entry, shown by its first bytes. */
static void ask_entry(DavitCheckpoint *ckpt, const char *entry, DavitReport *report)
{
    g_autofree char *full = NULL;
    g_autoptr(DavitSource) source = NULL;

    if (davit_model_path_join(&ckpt->path, entry, &full, report))
        return;
    source = davit_source_open(full, report);
    if (source)
        davit_ask_file(ckpt, source, report);
}

GPtrArray *davit_checkpoint_ask(DavitRegistry *registry, const char *model,
                                uint64_t purposes, DavitReport *report)
{
    g_autoptr(GArray) formats = load_formats(registry, report);
    g_autoptr(DavitCheckpoint) ckpt = checkpoint_new(formats, purposes);
    g_autofree char *entry = NULL;

    g_clear_pointer(&ckpt->path.names, g_ptr_array_unref);
    if (!davit_model_path_init(&ckpt->path, model, report)) {
        if (ckpt->path.entry)
            entry = g_strdup(ckpt->path.entry);
        else
            davit_ask_directory(ckpt, &entry, report);
        if (entry)
            ask_entry(ckpt, entry, report);
    }
    return g_ptr_array_ref(ckpt->asked);
}

const GPtrArray *davit_checkpoint_asked(const DavitCheckpoint *ckpt)
{
    return ckpt->asked;
}

const char *davit_checkpoint_format(const DavitCheckpoint *ckpt)
{
    const DavitPart *part = ckpt->index ? ckpt->index : g_ptr_array_index(ckpt->parts, 0);

    return part->format->id;
}

/* ---- files ---- */

const char *davit_checkpoint_dir(const DavitCheckpoint *ckpt)
{
    return ckpt->path.dir ? ckpt->path.dir : "";
}

const char *davit_checkpoint_index(const DavitCheckpoint *ckpt)
{
    return ckpt->index ? ckpt->index->name : NULL;
}

size_t davit_checkpoint_n_files(const DavitCheckpoint *ckpt)
{
    return ckpt->parts->len;
}

static DavitPart *get_part(const DavitCheckpoint *ckpt, size_t index)
{
    g_assert(index < ckpt->parts->len);
    return g_ptr_array_index(ckpt->parts, index);
}

DavitCheckpointFile davit_checkpoint_file(const DavitCheckpoint *ckpt, size_t index)
{
    const DavitPart *part = get_part(ckpt, index);

    return (DavitCheckpointFile){.source = part->source,
                                 .name = part->name,
                                 .format = part->format->id,
                                 .n_bytes = davit_source_size(part->source),
                                 .n_tensors = part->n_tensors};
}

/* ---- tensors ---- */

size_t davit_checkpoint_n_tensors(const DavitCheckpoint *ckpt)
{
    return ckpt->n_tensors;
}

const davit_tensor_info *davit_checkpoint_tensor(const DavitCheckpoint *ckpt,
                                                 size_t index)
{
    g_assert(index < ckpt->n_tensors);
    return &ckpt->tensors[index];
}

const davit_tensor_info *davit_checkpoint_find(const DavitCheckpoint *ckpt,
                                               const char *name)
{
    size_t low = 0;
    size_t high = ckpt->n_tensors;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(name, ckpt->tensors[mid].name);

        if (order == 0)
            return &ckpt->tensors[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

uint64_t davit_checkpoint_n_bytes(const DavitCheckpoint *ckpt)
{
    return ckpt->n_bytes;
}

int32_t davit_checkpoint_read(const DavitCheckpoint *ckpt, uint32_t file, uint64_t off,
                              void *buf, uint64_t n_bytes, DavitReport *report)
{
    return davit_source_read(get_part(ckpt, file)->source, off, buf, n_bytes, report);
}

void davit_checkpoint_want(const DavitCheckpoint *ckpt, uint32_t file, uint64_t off,
                           uint64_t n_bytes)
{
    davit_source_want(get_part(ckpt, file)->source, off, n_bytes);
}

int32_t davit_checkpoint_view(const DavitCheckpoint *ckpt, uint32_t file, uint64_t off,
                              uint64_t n_bytes, const uint8_t **out_bytes,
                              DavitReport *report)
{
    return davit_source_view(get_part(ckpt, file)->source, off, n_bytes, out_bytes,
                             report);
}

int32_t davit_checkpoint_check(const DavitCheckpoint *ckpt, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    for (guint i = 0; i < ckpt->parts->len; i++) {
        const int32_t one = davit_source_check(get_part(ckpt, i)->source, report);

        status = status ? status : one;
    }
    return status;
}

/* ---- files beside the weights ---- */

static int32_t sibling_fails(DavitReport *report, uint32_t code, int32_t status,
                             const char *name, const char *expected, const char *found,
                             const char *message, const char *hint)
{
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = status,
                                                    .stage = "open",
                                                    .subject = name,
                                                    .expected = expected,
                                                    .found = found,
                                                    .message = message,
                                                    .hint = hint});
}

/* Read all of @source as sibling @name. */
static int32_t read_sibling(const DavitSource *source, const char *name,
                            uint64_t max_bytes, GBytes **out_bytes, DavitReport *report)
{
    static const char lfs[] = "version https://git-lfs";
    const uint64_t n = davit_source_size(source);
    g_autofree char *buf = NULL;
    int32_t status;

    if (n == 0)
        return sibling_fails(report, DAVIT_R_EMPTY_FILE, DAVIT_E_CORRUPT, name,
                             "some bytes", "0 bytes", "the file is empty",
                             "download the file again");
    if (n > max_bytes)
        return sibling_fails(
            report, DAVIT_R_CONFIG_INVALID, DAVIT_E_LIMIT, name,
            davit_report_text(report, "at most %" G_GUINT64_FORMAT " bytes", max_bytes),
            davit_report_text(report, "%" G_GUINT64_FORMAT " bytes", n),
            "the file is too large for what it should be", NULL);
    buf = g_try_malloc((gsize)n + 1);
    if (!buf)
        return sibling_fails(report, DAVIT_R_OUT_OF_MEMORY, DAVIT_E_LIMIT, name, NULL,
                             NULL, "no memory for the file", NULL);
    status = davit_source_read(source, 0, buf, n, report);
    if (status)
        return status;
    buf[n] = '\0';
    if (n > sizeof lfs && memcmp(buf, lfs, sizeof lfs - 1) == 0)
        return sibling_fails(
            report, DAVIT_R_LFS_POINTER, DAVIT_E_CORRUPT, name, NULL, "a Git LFS pointer",
            "the real file was not fetched",
            "run git lfs pull in the folder, or download the file itself");
    *out_bytes = g_bytes_new_take(g_steal_pointer(&buf), (gsize)n);
    return DAVIT_OK;
}

int32_t davit_checkpoint_sibling(const DavitCheckpoint *ckpt, const char *name,
                                 uint64_t max_bytes, GBytes **out_bytes,
                                 DavitReport *report)
{
    g_autofree char *full = NULL;
    g_autoptr(DavitSource) source = NULL;
    int32_t status;

    *out_bytes = NULL;
    if (!ckpt->path.dir || !davit_model_path_has(&ckpt->path, name))
        return DAVIT_OK;
    status = davit_model_path_join(&ckpt->path, name, &full, report);
    if (status)
        return status;
    source = davit_source_open(full, report);
    if (!source)
        return DAVIT_E_IO;
    return read_sibling(source, name, max_bytes, out_bytes, report);
}

/* ---- the "tensor" suite ---- */

static uint64_t suite_count(const davit_catalog *catalog)
{
    return catalog->n_tensors;
}

static void suite_get(const davit_catalog *catalog, uint64_t index,
                      davit_tensor_info *out)
{
    const uint64_t n = MIN(out->struct_size, sizeof *out);

    if (index < catalog->n_tensors)
        memcpy((char *)out + 8, (const char *)&catalog->tensors[index] + 8,
               (size_t)n - 8);
}

static int32_t suite_find(const davit_catalog *catalog, const char *name,
                          davit_tensor_info *out)
{
    const davit_tensor_info *found = davit_checkpoint_find(catalog, name);

    if (!found)
        return 0;
    suite_get(catalog, (uint64_t)(found - catalog->tensors), out);
    return 1;
}

const davit_tensor_suite *davit_tensor_suite_get(void)
{
    static const davit_tensor_suite suite = {
        .struct_size = DAVIT_END(davit_tensor_suite, find),
        .count = suite_count,
        .get = suite_get,
        .find = suite_find,
    };

    return &suite;
}
