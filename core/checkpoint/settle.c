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

void davit_settle_tensors(DavitCheckpoint *ckpt, DavitReport *report)
{
    for (guint i = 0; i < ckpt->parts->len; i++) {
        const DavitPart *part = get_part(ckpt, i);

        for (size_t k = 0; k < part->n_tensors; k++) {
            davit_tensor_info *t = &ckpt->tensors[part->first_tensor + k];

            t->file = i;
            ckpt->n_bytes += t->n_bytes; /* each lies inside a real file: no overflow */
        }
    }
    davit_tensors_sort(ckpt->tensors, ckpt->n_tensors);
    davit_settle_copies(ckpt, report);
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

/* A promised tensor is in no file at all. */
static void report_absent(const DavitRef *ref, DavitMany *absent)
{
    davit_many_add(absent, &(DavitFinding){.code = DAVIT_R_TENSOR_MISSING,
                                           .status = DAVIT_E_MISMATCH,
                                           .stage = "open",
                                           .subject = ref->tensor,
                                           .expected = ref->file,
                                           .found = "absent",
                                           .message = "the index names a tensor that its "
                                                      "file does not hold"});
}

static bool lies_in(const DavitCheckpoint *ckpt, const davit_tensor_info *t,
                    const char *file)
{
    return strcmp(get_part(ckpt, t->file)->name, file) == 0;
}

/* Both lists are sorted by name: one walk. */
static void match_index(const DavitCheckpoint *ckpt, GArray *refs, DavitReport *report)
{
    g_autoptr(DavitMisplaced) misplaced = davit_misplaced_new();
    DavitMany absent = {.report = report};
    DavitMany strays = {.report = report};
    size_t at = 0;

    qsort(refs->data, refs->len, sizeof(DavitRef), compare_refs);
    for (guint i = 0; i < refs->len; i++) {
        const DavitRef *ref = &g_array_index(refs, DavitRef, i);
        const davit_tensor_info *t = NULL;

        if (!ref->tensor)
            continue;
        davit_misplaced_promise(misplaced, ref->file);
        while (at < ckpt->n_tensors && strcmp(ckpt->tensors[at].name, ref->tensor) < 0)
            report_stray(ckpt, &ckpt->tensors[at++], &strays);
        if (at < ckpt->n_tensors && strcmp(ckpt->tensors[at].name, ref->tensor) == 0)
            t = &ckpt->tensors[at++];
        if (!t)
            report_absent(ref, &absent);
        else if (!lies_in(ckpt, t, ref->file))
            davit_misplaced_add(misplaced, ref->tensor, ref->file,
                                get_part(ckpt, t->file)->name);
    }
    while (at < ckpt->n_tensors)
        report_stray(ckpt, &ckpt->tensors[at++], &strays);
    davit_misplaced_report(misplaced, report);
    davit_many_end(&absent);
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
            .found = davit_report_text(
                report, "%" G_GUINT64_FORMAT " bytes, %" G_GUINT64_FORMAT " %s",
                ckpt->n_bytes,
                total > ckpt->n_bytes ? total - ckpt->n_bytes : ckpt->n_bytes - total,
                total > ckpt->n_bytes ? "fewer" : "more"),
            .message = "the index states another total than its files hold: a file is of "
                       "another revision, or the writer counted otherwise",
            .hint = "compare the sizes of the files with the origin's"});
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
    const uint64_t stored = ckpt->n_tensors + (ckpt->copies ? ckpt->copies->len : 0);
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
        if (kv && davit_kv_u64(kv, 0, &total) && total != stored)
            report_split(part, "split.tensors.count", total, stored, report);
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
