/* SPDX-License-Identifier: Apache-2.0
 * Tensors that lie in a set more than once: which copy counts, and what is said of them.
 * Alike ones (of the same two files) are one finding. */
#include <string.h>

#include "checkpoint/checkpoint_private.h"

#define SHOWN 3u /* names in one finding */

/* Tensors that lie in the same two files. */
typedef struct Pair {
    uint32_t kept, other; /* parts */
    size_t n;
    const char *names[SHOWN]; /* (borrowed) the first ones */
} Pair;

static const char *part_name(const DavitCheckpoint *ckpt, uint32_t file)
{
    return ((const DavitPart *)g_ptr_array_index(ckpt->parts, file))->name;
}

/* Files by the name of a tensor, as the index promises it. (owned) NULL = no index. */
static GHashTable *promises(const DavitCheckpoint *ckpt)
{
    GHashTable *files;

    if (!ckpt->index)
        return NULL;
    files = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < ckpt->index->refs->len; i++) {
        const DavitRef *ref = &g_array_index(ckpt->index->refs, DavitRef, i);

        if (ref->tensor)
            g_hash_table_insert(files, (void *)(uintptr_t)ref->tensor,
                                (void *)(uintptr_t)ref->file);
    }
    return files;
}

/* The copy of [first, end) that counts: where the index says, else the first. */
static size_t choose(const DavitCheckpoint *ckpt, GHashTable *files, size_t first, size_t end)
{
    const char *file =
        files ? g_hash_table_lookup(files, ckpt->tensors[first].name) : NULL;

    for (size_t i = first; file && i < end; i++)
        if (strcmp(part_name(ckpt, ckpt->tensors[i].file), file) == 0)
            return i;
    return first;
}

static void report_pair(const DavitCheckpoint *ckpt, const Pair *p, DavitMany *twice)
{
    const bool one_file = p->kept == p->other;
    const char *kept = part_name(ckpt, p->kept), *other = part_name(ckpt, p->other);
    const char *both = davit_report_text(twice->report, "%s and %s",
                                         part_name(ckpt, MIN(p->kept, p->other)),
                                         part_name(ckpt, MAX(p->kept, p->other)));
    g_autoptr(GString) list = g_string_new(both);

    for (size_t i = 0; p->n > 1 && i < MIN(p->n, (size_t)SHOWN); i++)
        g_string_append_printf(list, "%s%s", i ? ", " : ": ", p->names[i]);
    if (p->n > SHOWN)
        g_string_append_printf(list, " and %zu more", p->n - SHOWN);
    davit_many_add(
        twice,
        &(DavitFinding){
            .code = one_file ? DAVIT_R_DUPLICATE_KEY : DAVIT_R_TENSOR_DUPLICATE,
            .status = one_file ? DAVIT_E_CORRUPT : DAVIT_E_MISMATCH,
            .stage = "open",
            .subject = p->names[0],
            .expected = ckpt->index && !one_file
                            ? davit_report_text(twice->report, "once, in %s as the index says",
                                                kept)
                            : "once",
            .found = list->str,
            .message = one_file ? "a tensor is stored twice in one file"
                       : p->n > 1
                           ? davit_report_text(twice->report,
                                               "%zu tensors are stored in two files; programs "
                                               "differ in which copy they take", p->n)
                           : "a tensor is stored in two files; programs differ in which copy "
                             "they take",
            .hint = one_file ? NULL
                             : davit_report_text(
                                   twice->report,
                                   "take both files from one revision%s%s; davit doctor --deep "
                                   "compares the copies",
                                   ckpt->index ? ", or take the copies out of " : "",
                                   ckpt->index ? other : "")});
}

static void add_pair(GArray *pairs, GHashTable *at, const davit_tensor_info *kept,
                     const davit_tensor_info *other)
{
    const bool one_file = kept->file == other->file;
    const gint64 key = (gint64)((uint64_t)kept->file << 32 | other->file);
    const void *known = one_file ? NULL : g_hash_table_lookup(at, &key);
    Pair *pair;

    if (known) {
        pair = &g_array_index(pairs, Pair, GPOINTER_TO_UINT(known) - 1);
        if (pair->n < SHOWN)
            pair->names[pair->n] = other->name;
        pair->n++;
        return;
    }
    g_array_append_vals(pairs, &(Pair){kept->file, other->file, 1, {other->name}}, 1);
    if (!one_file)
        g_hash_table_insert(at, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(pairs->len));
}

static bool has_copies(const DavitCheckpoint *ckpt)
{
    for (size_t i = 1; i < ckpt->n_tensors; i++)
        if (strcmp(ckpt->tensors[i - 1].name, ckpt->tensors[i].name) == 0)
            return true;
    return false;
}

void davit_settle_copies(DavitCheckpoint *ckpt, DavitReport *report)
{
    g_autoptr(GHashTable) files = NULL;
    g_autoptr(GHashTable) at = NULL;
    g_autoptr(GArray) pairs = NULL;
    DavitMany twice = {.report = report};
    size_t n = 0;

    if (!has_copies(ckpt))
        return;
    files = promises(ckpt);
    at = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    ckpt->copies = g_array_new(FALSE, FALSE, sizeof(davit_tensor_info));
    for (size_t first = 0, end; first < ckpt->n_tensors; first = end) {
        size_t kept;

        for (end = first + 1; end < ckpt->n_tensors &&
                              strcmp(ckpt->tensors[first].name, ckpt->tensors[end].name) == 0;)
            end++;
        kept = choose(ckpt, files, first, end);
        for (size_t i = first; i < end; i++) {
            if (i == kept)
                continue;
            add_pair(pairs, at, &ckpt->tensors[kept], &ckpt->tensors[i]);
            g_array_append_val(ckpt->copies, ckpt->tensors[i]);
            ckpt->n_bytes -= ckpt->tensors[i].n_bytes;
        }
        ckpt->tensors[n++] = ckpt->tensors[kept];
    }
    ckpt->n_tensors = n;
    for (guint i = 0; i < pairs->len; i++)
        report_pair(ckpt, &g_array_index(pairs, Pair, i), &twice);
    davit_many_end(&twice);
}
