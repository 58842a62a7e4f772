/* SPDX-License-Identifier: Apache-2.0
 * A merge list for a vocabulary that has scores only. SentencePiece joins the neighbours
 * whose joined piece scores best; Hugging Face's converter writes that as a list of all
 * ways to split every piece (transformers: generate_merges), and the ids of the model's
 * own tokenizer.json are those of that list.
 */
#include <string.h>

#include "tokenizer/normalize_text.h"
#include "tokenizer/splits.h"
#include "tokenizer/tokenizer_private.h"

#define TWO_TOKENS 16384u /* fewer are not worth a thread */
#define AHEAD      8u     /* links lie far apart: fetched before they are needed */

/* A token and where it stands in the order of merges. */
typedef struct Ranked {
    float score;
    uint32_t id;
} Ranked;

/* One split, kept apart while several tokens have the same score. */
typedef struct Way {
    DavitSplit split; /* lengths in characters once they are compared */
    uint32_t joined;
} Way;

/* Best score first, then by id. */
static int by_score(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Longest left half, longest right half, then by the token's id. Splits of one token
 * never tie, their left halves differ. */
static int by_length(const void *a, const void *b)
{
    const Way *x = a, *y = b;

    if (x->split.left_len != y->split.left_len)
        return x->split.left_len > y->split.left_len ? -1 : 1;
    if (x->split.right_len != y->split.right_len)
        return x->split.right_len > y->split.right_len ? -1 : 1;
    return (x->joined > y->joined) - (x->joined < y->joined);
}

static void add_merges(GArray *merges, const DavitSplit *splits, size_t n, uint32_t joined)
{
    const guint before = merges->len;

    g_array_set_size(merges, before + (guint)n);
    for (guint i = 0; i < n; i++)
        g_array_index(merges, DavitMerge, before + i) =
            (DavitMerge){splits[i].left, splits[i].right, before + i, joined};
}

/* Splits of @n > 1 tokens that have one score. */
static void add_tied(const DavitSplits *splits, const Ranked *order, size_t n, GArray *merges)
{
    g_autoptr(GArray) ways = g_array_new(FALSE, FALSE, sizeof(Way));
    DavitSplit found[DAVIT_TOK_MAX_SPLIT];

    for (size_t i = 0; i < n; i++) {
        const size_t n_found = davit_splits_of(splits, order[i].id, found);
        size_t len = 0;
        const char *text = davit_vocab_text(splits->vocab, order[i].id, &len);

        for (size_t k = 0; k < n_found; k++) {
            Way way = {found[k], order[i].id};

            way.split.right_len =
                (uint32_t)davit_count_chars(text + way.split.left_len, way.split.right_len);
            way.split.left_len = (uint32_t)davit_count_chars(text, way.split.left_len);
            g_array_append_val(ways, way);
        }
    }
    if (ways->len > 1)
        qsort(ways->data, ways->len, sizeof(Way), by_length);
    for (guint i = 0; i < ways->len; i++) {
        const Way *way = &g_array_index(ways, Way, i);

        add_merges(merges, &way->split, 1, way->joined);
    }
}

/* Tokens in their order, whose merges one thread lists. */
typedef struct Part {
    const DavitSplits *splits; /* (borrowed) */
    const Ranked *order;     /* (borrowed) [n]; its neighbours have other scores */
    size_t n;
    GArray *merges; /* DavitMerge, ranks from 0; (owned by who made it) */
} Part;

static void *list_part(void *data)
{
    const Part *part = data;
    const Ranked *order = part->order;
    DavitSplit found[DAVIT_TOK_MAX_SPLIT];

    for (size_t i = 0, end; i < part->n; i = end) {
        if (part->n - i > AHEAD)
            davit_splits_fetch(part->splits, order[i + AHEAD].id);
        for (end = i + 1; end < part->n && order[end].score == order[i].score;)
            end++;
        if (end - i > 1) {
            add_tied(part->splits, &order[i], end - i, part->merges);
            continue;
        }
        add_merges(part->merges, found, davit_splits_of(part->splits, order[i].id, found),
                   order[i].id);
    }
    return NULL;
}

static bool is_ordered(const Ranked *order, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (order[i].score > order[i - 1].score)
            return false;
    }
    return true;
}

/* The second half of the tokens is listed by a thread of its own. */
static void list_all(const DavitSplits *splits, const Ranked *order, size_t n, GArray *merges)
{
    g_autoptr(GArray) second = g_array_new(FALSE, FALSE, sizeof(DavitMerge));
    GThread *thread = NULL;
    Part one = {splits, order, n, merges};
    Part two = {splits, order, n, second};

    if (n >= TWO_TOKENS && g_get_num_processors() > 1) {
        one.n = n / 2;
        while (one.n < n && order[one.n].score == order[one.n - 1].score)
            one.n++;
        two.order += one.n;
        two.n -= one.n;
        thread = g_thread_try_new("davit-merges", list_part, &two, NULL);
    }
    one.n = thread ? one.n : n;
    list_part(&one);
    if (thread) {
        g_thread_join(thread);
        davit_merges_append(merges, second);
    }
}

bool davit_tok_merges_from_scores(DavitTokParts *parts, const float *scores)
{
    const size_t n = davit_vocab_n_ids(parts->vocab);
    g_autofree Ranked *order = g_try_new(Ranked, n);
    DavitSplits splits;
    bool made;

    if (!order)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = (Ranked){scores[i], (uint32_t)i};
    if (!is_ordered(order, n))
        qsort(order, n, sizeof *order, by_score);
    made = davit_splits_init(&splits, parts->vocab);
    if (made)
        list_all(&splits, order, n, parts->merges);
    davit_splits_clear(&splits);
    return made;
}
