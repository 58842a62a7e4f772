/* SPDX-License-Identifier: Apache-2.0
 * Which files belong to the model: what the entry names, by an index, by split keys, or
 * by the numbers in the shard names; and opening each of them. */
#include <string.h>

#include "checkpoint/checkpoint_private.h"

void davit_many_add(DavitMany *many, const DavitFinding *finding)
{
    if (many->n++ < DAVIT_MAX_LIKE)
        davit_report_add(many->report, finding);
    many->last = *finding;
}

void davit_many_end(DavitMany *many)
{
    if (many->n <= DAVIT_MAX_LIKE)
        return;
    davit_report_add(many->report,
                     &(DavitFinding){.code = many->last.code,
                                     .severity = many->last.severity,
                                     .status = many->last.status,
                                     .stage = many->last.stage,
                                     .subject = "others",
                                     .expected = many->last.expected,
                                     .found = davit_report_text(many->report, "%zu more",
                                                                many->n - DAVIT_MAX_LIKE),
                                     .message = "and so on"});
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each file of @refs once, sorted. Elements borrowed from the checkpoint's text. */
static GPtrArray *files_of_refs(const GArray *refs)
{
    g_autoptr(GPtrArray) all = g_ptr_array_sized_new(refs->len);
    GPtrArray *files = g_ptr_array_new();

    for (guint i = 0; i < refs->len; i++)
        g_ptr_array_add(all, (gpointer)(uintptr_t)g_array_index(refs, DavitRef, i).file);
    g_ptr_array_sort(all, compare_texts);
    for (guint i = 0; i < all->len; i++)
        if (i == 0 || strcmp(all->pdata[i], all->pdata[i - 1]) != 0)
            g_ptr_array_add(files, all->pdata[i]);
    return files;
}

/* PREFIX-00001-of-0000N.EXT and its fellows, when a directory has no index. */
static GPtrArray *files_of_name(DavitCheckpoint *ckpt, const DavitShardName *shard,
                                const char *name)
{
    GPtrArray *files = g_ptr_array_new();

    for (uint32_t i = 1; i <= shard->count; i++) {
        g_autofree char *file =
            g_strdup_printf("%.*s-%05u-of-%05u%s", (int)shard->n_prefix, name, i,
                            shard->count, shard->ext);

        g_ptr_array_add(files, g_string_chunk_insert(ckpt->text, file));
    }
    return files;
}

static bool names_tensors(const DavitPart *part)
{
    for (guint i = 0; i < part->refs->len; i++)
        if (g_array_index(part->refs, DavitRef, i).tensor)
            return true;
    return false;
}

/* Files of the set that starts with @entry, sorted; never empty. */
static GPtrArray *list_files(DavitCheckpoint *ckpt, const DavitPart *entry,
                             DavitReport *report)
{
    DavitShardName shard;
    GPtrArray *files;

    if (entry->refs->len)
        return files_of_refs(entry->refs);
    if (davit_shard_name_parse(entry->name, &shard) && shard.count > 1) {
        if (!ckpt->path.entry)
            return files_of_name(ckpt, &shard, entry->name);
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                         .severity = DAVIT_NOTE,
                                         .stage = "open",
                                         .subject = entry->name,
                                         .message = "one file of a set was named and "
                                                    "only it is opened",
                                         .hint = "name the directory for the whole"});
    }
    files = g_ptr_array_new();
    g_ptr_array_add(files, entry->name);
    return files;
}

static bool check_shard(const DavitPart *entry, const DavitPart *part,
                        DavitReport *report)
{
    const bool nested = names_tensors(part);

    if (!nested && strcmp(part->format->id, entry->format->id) == 0)
        return true;
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_SHARD_MISMATCH,
                        .status = DAVIT_E_MISMATCH,
                        .stage = "open",
                        .subject = part->name,
                        .expected = nested ? "a file with tensors" : entry->format->id,
                        .found = nested ? "an index" : part->format->id,
                        .message = "a file of the set is of another kind"});
    return false;
}

/* Opens one more file of the set. */
static bool open_shard(DavitCheckpoint *ckpt, const DavitPart *entry, const char *file,
                       DavitReport *report)
{
    DavitPart *part = davit_part_open(ckpt, file, report);

    if (!part)
        return false;
    g_ptr_array_add(ckpt->parts, part);
    return check_shard(entry, part, report);
}

static void report_missing(DavitMany *missing, const DavitPart *entry, const char *file)
{
    davit_many_add(
        missing,
        &(DavitFinding){.code = DAVIT_R_SHARD_MISSING,
                        .status = DAVIT_E_MISMATCH,
                        .stage = "open",
                        .subject = file,
                        .expected = davit_report_text(
                            missing->report, "the file that %s asks for", entry->name),
                        .found = "absent",
                        .message = "a file of the model is not there",
                        .hint = "download the model again, all of its files"});
}

bool davit_set_open(DavitCheckpoint *ckpt, const char *entry_name, DavitReport *report)
{
    DavitPart *entry = davit_part_open(ckpt, entry_name, report);
    g_autoptr(GPtrArray) files = NULL;
    DavitMany missing = {.report = report};
    bool placed = false;
    bool ok = true;

    if (!entry)
        return false;
    files = list_files(ckpt, entry, report);
    if (names_tensors(entry)) {
        ckpt->index = entry;
        ckpt->n_tensors = 0; /* an index holds no tensors */
        entry->n_tensors = 0;
        placed = true;
    }
    for (guint i = 0; i < files->len; i++) {
        const char *file = g_ptr_array_index(files, i);

        if (!placed && strcmp(file, entry->name) == 0) {
            g_ptr_array_add(ckpt->parts, entry);
            placed = true;
        } else if (!strchr(file, '/') && !davit_model_path_has(&ckpt->path, file)) {
            report_missing(&missing, entry, file);
        } else if (!open_shard(ckpt, entry, file, report)) {
            ok = false;
        }
    }
    if (!placed)
        g_ptr_array_insert(ckpt->parts, 0, entry);
    davit_many_end(&missing);
    return ok && missing.n == 0;
}
