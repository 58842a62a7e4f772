/* SPDX-License-Identifier: Apache-2.0
 * A merge list for a vocabulary that has scores only. SentencePiece joins the neighbours
 * whose joined piece scores best; Hugging Face's converter writes that as a list of all
 * ways to split every piece (transformers: generate_merges), and the ids of the model's
 * own tokenizer.json are those of that list.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/normalize_text.h"
#include "tokenizer/tokenizer_private.h"

#define TWO_TOKENS 16384u /* fewer are not worth a thread */

/* A token and where it stands in the order of merges. */
typedef struct Ranked {
    float score;
    uint32_t id;
} Ranked;

/* One split, kept apart while several tokens have the same score. */
typedef struct Way {
    uint32_t left, right, joined;
    uint32_t left_chars, right_chars;
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

    if (x->left_chars != y->left_chars)
        return x->left_chars > y->left_chars ? -1 : 1;
    if (x->right_chars != y->right_chars)
        return x->right_chars > y->right_chars ? -1 : 1;
    return (x->joined > y->joined) - (x->joined < y->joined);
}

/* Right halves first: of those that are no token the left half is not looked for. Ways go
 * to
 * @out, the longest left half first; @like has the token, its characters as left_chars,
 * and those of the first right half. Returns: how many there are. */
static size_t find_ways(const DavitVocab *vocab, const DavitVocabText *right, size_t n,
                        const Way *like, Way *out)
{
    DavitVocabText left[DAVIT_VOCAB_MANY];
    int32_t right_ids[DAVIT_VOCAB_MANY], ids[DAVIT_VOCAB_MANY];
    size_t n_left = 0, n_ways = 0;
    const char *text = davit_vocab_text(vocab, like->joined, &(size_t){0});

    davit_vocab_find_many(vocab, right, n, right_ids);
    for (size_t i = 0; i < n; i++) {
        const uint32_t chars = like->right_chars + (uint32_t)i;

        if (right_ids[i] < 0)
            continue;
        out[n_left] = (Way){0, (uint32_t)right_ids[i], like->joined,
                            like->left_chars - chars, chars};
        left[n_left++] = (DavitVocabText){text, (size_t)(right[i].text - text)};
    }
    davit_vocab_find_many(vocab, left, n_left, ids);
    for (size_t i = 0; i < n_left; i++) {
        out[n_ways] = out[i];
        out[n_ways].left = (uint32_t)ids[i];
        n_ways += ids[i] >= 0;
    }
    return n_ways;
}

/* All splits of token @id into two tokens, the longest left half first. */
static void add_ways(const DavitVocab *vocab, uint32_t id, GArray *ways)
{
    DavitVocabText right[DAVIT_VOCAB_MANY];
    Way found[DAVIT_VOCAB_MANY];
    size_t len, n = 0;
    const char *text = davit_vocab_text(vocab, id, &len);
    Way like = {.joined = id, .right_chars = 1};

    if (!text || len < 2)
        return;
    like.left_chars = (uint32_t)davit_count_chars(text, len);
    for (size_t off = len; like.right_chars + n < like.left_chars;) {
        off = (size_t)davit_ucd_back(text, off);
        right[n++] = (DavitVocabText){text + off, len - off};
        if (n == DAVIT_VOCAB_MANY || like.right_chars + n == like.left_chars) {
            const size_t n_ways = find_ways(vocab, right, n, &like, found);

            g_array_append_vals(ways, found, (guint)n_ways);
            like.right_chars += (uint32_t)n;
            n = 0;
        }
    }
}

static void flush_ways(GArray *ways, bool sort, GArray *merges)
{
    if (sort && ways->len > 1)
        qsort(ways->data, ways->len, sizeof(Way), by_length);
    for (guint i = 0; i < ways->len; i++) {
        const Way *way = &g_array_index(ways, Way, i);
        const DavitMerge merge = {way->left, way->right, merges->len, way->joined};

        g_array_append_val(merges, merge);
    }
    g_array_set_size(ways, 0);
}

/* Tokens in their order, whose merges one thread lists. */
typedef struct Part {
    const DavitVocab *vocab; /* (borrowed) sealed */
    const Ranked *order;     /* (borrowed) [n]; its neighbours have other scores */
    size_t n;
    GArray *merges; /* DavitMerge, ranks from 0; (owned by who made it) */
} Part;

static void *list_part(void *data)
{
    const Part *part = data;
    const Ranked *order = part->order;
    g_autoptr(GArray) ways = g_array_new(FALSE, FALSE, sizeof(Way));

    for (size_t i = 0; i < part->n;) {
        const size_t first = i;

        do
            add_ways(part->vocab, order[i++].id, ways);
        while (i < part->n && order[i].score == order[first].score);
        flush_ways(ways, i - first > 1, part->merges);
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

bool davit_tok_merges_from_scores(DavitTokParts *parts, const float *scores)
{
    const size_t n = davit_vocab_n_ids(parts->vocab);
    g_autofree Ranked *order = g_try_new(Ranked, n);
    g_autoptr(GArray) second = g_array_new(FALSE, FALSE, sizeof(DavitMerge));
    GThread *thread = NULL;
    Part one = {parts->vocab, order, n, parts->merges};
    Part two = {parts->vocab, order, n, second};

    if (!order)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = (Ranked){scores[i], (uint32_t)i};
    if (!is_ordered(order, n))
        qsort(order, n, sizeof *order, by_score);
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
        davit_merges_append(parts->merges, second);
    }
    return true;
}
