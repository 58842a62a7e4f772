/* SPDX-License-Identifier: Apache-2.0
 * Do the files fit together? One sorted table of all tensors, then the index's promises,
 * the split keys of GGUF (ggml docs, gguf-split), and weight files that nobody asked for.
 */
#include <string.h>

#include "checkpoint/checkpoint_private.h"

#include <davit/help/bytes.h>

static const DavitPart *get_part(const DavitCheckpoint *ckpt, uint32_t file)
{
    return g_ptr_array_index(ckpt->parts, file);
}

/* ---- the table ---- */

static void report_twice(const DavitCheckpoint *ckpt, const davit_tensor_info *a,
                         const davit_tensor_info *b, DavitMany *twice)
{
    const bool one_file = a->file == b->file;

    davit_many_add(
        twice, &(DavitFinding){
                   .code = one_file ? DAVIT_R_DUPLICATE_KEY : DAVIT_R_TENSOR_DUPLICATE,
                   .status = one_file ? DAVIT_E_CORRUPT : DAVIT_E_MISMATCH,
                   .stage = "open",
                   .subject = a->name,
                   .expected = "once",
                   .found = davit_report_text(twice->report, "%s and %s",
                                              get_part(ckpt, a->file)->name,
                                              get_part(ckpt, b->file)->name),
                   .message = one_file ? "a tensor is stored twice in one file"
                                       : "a tensor is stored in two files"});
}

void davit_settle_tensors(DavitCheckpoint *ckpt, DavitReport *report)
{
    DavitMany twice = {.report = report};

    ckpt->n_tensors = ckpt->gathered->len;
    ckpt->tensors = g_array_steal(ckpt->gathered, NULL);
    g_clear_pointer(&ckpt->gathered, g_array_unref);
    for (guint i = 0; i < ckpt->parts->len; i++) {
        const DavitPart *part = get_part(ckpt, i);

        for (size_t k = 0; k < part->n_tensors; k++) {
            davit_tensor_info *t = &ckpt->tensors[part->first_tensor + k];

            t->file = i;
            ckpt->n_bytes += t->n_bytes; /* each lies inside a real file: no overflow */
        }
    }
    davit_tensors_sort(ckpt->tensors, ckpt->n_tensors);
    for (size_t i = 1; i < ckpt->n_tensors; i++)
        if (strcmp(ckpt->tensors[i - 1].name, ckpt->tensors[i].name) == 0)
            report_twice(ckpt, &ckpt->tensors[i - 1], &ckpt->tensors[i], &twice);
    davit_many_end(&twice);
}

/* ---- the index's promises ---- */

static int compare_refs(const void *a, const void *b)
{
    const DavitRef *x = a;
    const DavitRef *y = b;

    return strcmp(x->tensor ? x->tensor : "", y->tensor ? y->tensor : "");
}

static void report_stray(const DavitCheckpoint *ckpt, const davit_tensor_info *t,
                         DavitMany *strays)
{
    davit_many_add(
        strays, &(DavitFinding){.code = DAVIT_R_STRAY_TENSOR,
                                .severity = DAVIT_WARNING,
                                .stage = "open",
                                .subject = t->name,
                                .found = get_part(ckpt, t->file)->name,
                                .expected = davit_report_text(
                                    strays->report, "an entry in %s", ckpt->index->name),
                                .message = "the tensor lies in a file but not in "
                                           "the index"});
}

/* A promised tensor is absent, or lies in another file than promised. */
static void report_broken(const DavitCheckpoint *ckpt, const DavitRef *ref,
                          const davit_tensor_info *t, DavitMany *broken)
{
    davit_many_add(
        broken,
        &(DavitFinding){.code = t ? DAVIT_R_SHARD_MISMATCH : DAVIT_R_TENSOR_MISSING,
                        .status = DAVIT_E_MISMATCH,
                        .stage = "open",
                        .subject = ref->tensor,
                        .expected = ref->file,
                        .found = t ? get_part(ckpt, t->file)->name : "absent",
                        .message = t ? "the tensor lies in another file than the "
                                       "index says"
                                     : "the index names a tensor that its file "
                                       "does not hold"});
}

static bool lies_in(const DavitCheckpoint *ckpt, const davit_tensor_info *t,
                    const char *file)
{
    return strcmp(get_part(ckpt, t->file)->name, file) == 0;
}

/* Both lists are sorted by name: one walk. Doubles in @ckpt->tensors are reported
 * already. */
static void match_index(const DavitCheckpoint *ckpt, GArray *refs, DavitReport *report)
{
    DavitMany broken = {.report = report};
    DavitMany strays = {.report = report};
    size_t at = 0;

    qsort(refs->data, refs->len, sizeof(DavitRef), compare_refs);
    for (guint i = 0; i < refs->len; i++) {
        const DavitRef *ref = &g_array_index(refs, DavitRef, i);
        const davit_tensor_info *t = NULL;

        if (!ref->tensor)
            continue;
        while (at < ckpt->n_tensors && strcmp(ckpt->tensors[at].name, ref->tensor) < 0)
            report_stray(ckpt, &ckpt->tensors[at++], &strays);
        for (; at < ckpt->n_tensors && strcmp(ckpt->tensors[at].name, ref->tensor) == 0;
             at++)
            if (!t || lies_in(ckpt, &ckpt->tensors[at], ref->file))
                t = &ckpt->tensors[at];
        if (!t || !lies_in(ckpt, t, ref->file))
            report_broken(ckpt, ref, t, &broken);
    }
    while (at < ckpt->n_tensors)
        report_stray(ckpt, &ckpt->tensors[at++], &strays);
    davit_many_end(&broken);
    davit_many_end(&strays);
}

/* Many writers count tied tensors twice, so a wrong total is only a warning. */
static void check_total(const DavitCheckpoint *ckpt, DavitReport *report)
{
    const davit_kv *kv = davit_part_key(ckpt->index, "__index__.total_size");
    uint64_t total = 0;

    if (!kv || !davit_kv_u64(kv, 0, &total) || total == ckpt->n_bytes)
        return;
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_SHARD_MISMATCH,
            .severity = DAVIT_WARNING,
            .stage = "open",
            .subject = ckpt->index->name,
            .expected = davit_report_text(report, "total_size %" G_GUINT64_FORMAT, total),
            .found =
                davit_report_text(report, "%" G_GUINT64_FORMAT " bytes", ckpt->n_bytes),
            .message = "the index states another total than its files "
                       "hold"});
}

/* ---- split GGUF ---- */

static void report_split(const DavitPart *part, const char *key, uint64_t expected,
                         uint64_t found, DavitReport *report)
{
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_SHARD_MISMATCH,
            .status = DAVIT_E_MISMATCH,
            .stage = "open",
            .subject = part->name,
            .expected = davit_report_text(report, "%s %" G_GUINT64_FORMAT, key, expected),
            .found = davit_report_text(report, "%" G_GUINT64_FORMAT, found),
            .message = "the files of a split model contradict each other"});
}

/* Each file was checked against its own name by the format; here against the others. */
static void check_split(const DavitCheckpoint *ckpt, DavitReport *report)
{
    uint64_t count = 0;
    uint64_t total = 0;

    for (guint i = 0; i < ckpt->parts->len; i++) {
        const DavitPart *part = get_part(ckpt, i);
        const davit_kv *kv = davit_part_key(part, "split.count");

        if (!kv || !davit_kv_u64(kv, 0, &count) || count <= 1)
            continue;
        if (count != ckpt->parts->len)
            report_split(part, "split.count", ckpt->parts->len, count, report);
        kv = davit_part_key(part, "split.tensors.count");
        if (kv && davit_kv_u64(kv, 0, &total) && total != ckpt->n_tensors)
            report_split(part, "split.tensors.count", total, ckpt->n_tensors, report);
    }
}

void davit_settle_set(DavitCheckpoint *ckpt, DavitReport *report)
{
    if (ckpt->index) {
        match_index(ckpt, ckpt->index->refs, report);
        check_total(ckpt, report);
    } else {
        check_split(ckpt, report);
    }
}

/* ---- weight files that were not used ---- */

static bool is_used(const DavitCheckpoint *ckpt, const char *name)
{
    if (ckpt->index && strcmp(ckpt->index->name, name) == 0)
        return true;
    for (guint i = 0; i < ckpt->parts->len; i++)
        if (strcmp(get_part(ckpt, i)->name, name) == 0)
            return true;
    return false;
}

/* The format whose capability lists the extension of @name, or NULL. */
static const DavitFormat *format_of_name(const DavitCheckpoint *ckpt, const char *name)
{
    const char *dot = strrchr(name, '.');

    for (guint i = 0; dot && i < ckpt->formats->len; i++) {
        const DavitFormat *format = &g_array_index(ckpt->formats, DavitFormat, i);

        if (format->capability &&
            davit_capability_has(format->capability, "ext", dot + 1))
            return format;
    }
    return NULL;
}

/* Files that are known to lie beside a model on purpose: the original one-file layout,
 * the projector of a multimodal GGUF, an adapter. A second set of weights is not. */
static bool is_companion(const char *name)
{
    return g_str_has_prefix(name, "consolidated") || g_str_has_prefix(name, "mmproj") ||
           g_str_has_prefix(name, "adapter_");
}

void davit_settle_strays(const DavitCheckpoint *ckpt, DavitReport *report)
{
    DavitMany strays = {.report = report};
    const char *chosen = ckpt->index             ? ckpt->index->name
                         : ckpt->parts->len == 0 ? ""
                                                 : get_part(ckpt, 0)->name;

    /* A file that was named by the user stands for itself. */
    if (ckpt->path.entry || ckpt->parts->len == 0)
        return;
    for (guint i = 0; i < ckpt->path.names->len; i++) {
        const char *name = g_ptr_array_index(ckpt->path.names, i);
        const DavitFormat *format = format_of_name(ckpt, name);
        const bool same =
            format && format == get_part(ckpt, 0)->format && !is_companion(name);

        if (!format || is_used(ckpt, name))
            continue;
        davit_many_add(&strays,
                       &(DavitFinding){.code = DAVIT_R_STRAY_SHARD,
                                       .severity = same ? DAVIT_WARNING : DAVIT_NOTE,
                                       .stage = "open",
                                       .who = format->id,
                                       .subject = name,
                                       .found = "not read",
                                       .message = davit_report_text(
                                           report,
                                           "a weight file lies beside the ones that are "
                                           "used: those of %s",
                                           chosen)});
    }
    davit_many_end(&strays);
}
