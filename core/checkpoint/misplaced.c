/* SPDX-License-Identifier: Apache-2.0
 * Tensors that lie in another file than the index says. Alike ones are one finding: two
 * files whose names were exchanged, or all that moved from one file to another. */
#include <string.h>

#include "checkpoint/checkpoint_private.h"

/* Tensors that the index places in one file and that lie in another. */
typedef struct Move {
    const char *promised, *found; /* (borrowed) file names */
    const char *first;            /* (borrowed) name of a tensor */
    size_t n;
    size_t n_promised; /* all that the index places in @promised */
    bool told;
} Move;

struct DavitMisplaced {
    GArray *moves;        /* Move */
    GHashTable *at;       /* "promised\nfound" -> index + 1 */
    GHashTable *promised; /* file -> tensors that the index places in it */
};

DavitMisplaced *davit_misplaced_new(void)
{
    DavitMisplaced *m = g_new0(DavitMisplaced, 1);

    m->moves = g_array_new(FALSE, FALSE, sizeof(Move));
    m->at = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->promised = g_hash_table_new(g_str_hash, g_str_equal);
    return m;
}

void davit_misplaced_free(DavitMisplaced *m)
{
    g_array_unref(m->moves);
    g_hash_table_unref(m->at);
    g_hash_table_unref(m->promised);
    g_free(m);
}

void davit_misplaced_promise(DavitMisplaced *m, const char *file)
{
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(m->promised, file));

    g_hash_table_insert(m->promised, (void *)(uintptr_t)file, GUINT_TO_POINTER(n + 1));
}

void davit_misplaced_add(DavitMisplaced *m, const char *tensor, const char *promised,
                         const char *found)
{
    char *key = g_strconcat(promised, "\n", found, NULL);
    const void *known = g_hash_table_lookup(m->at, key);

    if (known) {
        g_array_index(m->moves, Move, GPOINTER_TO_UINT(known) - 1).n++;
        g_free(key);
        return;
    }
    g_array_append_vals(
        m->moves, &(Move){.promised = promised, .found = found, .first = tensor, .n = 1}, 1);
    g_hash_table_insert(m->at, key, GUINT_TO_POINTER(m->moves->len));
}

/* The move in the other direction, if the two are all that the index says of both files. */
static Move *exchanged(DavitMisplaced *m, const Move *a)
{
    g_autofree char *key = g_strconcat(a->found, "\n", a->promised, NULL);
    const void *known = g_hash_table_lookup(m->at, key);
    Move *b = known ? &g_array_index(m->moves, Move, GPOINTER_TO_UINT(known) - 1) : NULL;

    return b && a->n == a->n_promised && b->n == b->n_promised ? b : NULL;
}

static void report_exchange(const Move *a, const Move *b, DavitMany *many)
{
    DavitReport *report = many->report;

    davit_many_add(
        many,
        &(DavitFinding){
            .code = DAVIT_R_SHARD_MISMATCH,
            .status = DAVIT_E_MISMATCH,
            .stage = "open",
            .subject = davit_report_text(report, "%s and %s", a->promised, b->promised),
            .expected = davit_report_text(report, "%s in %s, as the index says", a->first,
                                          a->promised),
            .found = davit_report_text(report,
                                       "all tensors of the first (%zu) in the second, and of "
                                       "the second (%zu) in the first",
                                       a->n, b->n),
            .message = "two files have exchanged their names; no tensor is missing",
            .hint = davit_report_text(report, "exchange the names of %s and %s; nothing need "
                                              "be downloaded again",
                                      a->promised, b->promised)});
}

static void report_move(const Move *a, DavitMany *many)
{
    DavitReport *report = many->report;

    davit_many_add(
        many,
        &(DavitFinding){
            .code = DAVIT_R_SHARD_MISMATCH,
            .status = DAVIT_E_MISMATCH,
            .stage = "open",
            .subject = a->first,
            .expected = a->promised,
            .found = a->n > 1 ? davit_report_text(report, "%s, and so %zu more of its tensors",
                                                  a->found, a->n - 1)
                              : a->found,
            .message = a->n > 1
                           ? "tensors lie in another file than the index says"
                           : "the tensor lies in another file than the index says",
            .hint = "the tensors are there and the index is of other files: take the index "
                    "from where the files came from"});
}

void davit_misplaced_report(DavitMisplaced *m, DavitReport *report)
{
    DavitMany many = {.report = report};

    for (guint i = 0; i < m->moves->len; i++) {
        Move *a = &g_array_index(m->moves, Move, i);

        a->n_promised = GPOINTER_TO_UINT(g_hash_table_lookup(m->promised, a->promised));
    }
    for (guint i = 0; i < m->moves->len; i++) {
        Move *a = &g_array_index(m->moves, Move, i);
        Move *b = a->told ? NULL : exchanged(m, a);

        if (a->told)
            continue;
        if (b) {
            b->told = true;
            report_exchange(a, b, &many);
        } else {
            report_move(a, &many);
        }
    }
    davit_many_end(&many);
}
