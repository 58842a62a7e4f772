/* SPDX-License-Identifier: Apache-2.0
 * A merge list for a vocabulary that has scores only. SentencePiece joins the neighbours
 * whose joined piece scores best; Hugging Face's converter writes that as a list of all
 * ways to split every piece (transformers: generate_merges), and the ids of the model's
 * own tokenizer.json are those of that list.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/tokenizer_private.h"

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

/* All splits of token @id into two tokens, the longest left half first. */
static void add_ways(const DavitVocab *vocab, uint32_t id, GArray *ways)
{
    size_t len;
    const char *text = davit_vocab_text(vocab, id, &len);
    uint32_t right_chars = 0, n_chars;

    if (!text || len < 2)
        return;
    n_chars = (uint32_t)g_utf8_strlen(text, (gssize)len);
    for (size_t off = len; off > 1;) {
        off = (size_t)davit_ucd_back(text, off);
        davit_vocab_prefetch(vocab, text + off, len - off);
        davit_vocab_prefetch(vocab, text, off);
    }
    for (size_t off = len; right_chars + 1 < n_chars;) {
        int32_t left, right;

        off = (size_t)davit_ucd_back(text, off);
        right_chars++;
        right = davit_vocab_find(vocab, text + off, len - off);
        left = right < 0 ? -1 : davit_vocab_find(vocab, text, off);
        if (left >= 0) {
            const Way way = {(uint32_t)left, (uint32_t)right, id, n_chars - right_chars,
                             right_chars};
            g_array_append_val(ways, way);
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

bool davit_tok_merges_from_scores(DavitTokParts *parts, const float *scores)
{
    const size_t n = davit_vocab_n_ids(parts->vocab);
    g_autofree Ranked *order = g_try_new(Ranked, n);
    g_autoptr(GArray) ways = g_array_new(FALSE, FALSE, sizeof(Way));

    if (!order)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = (Ranked){scores[i], (uint32_t)i};
    qsort(order, n, sizeof *order, by_score);
    for (size_t i = 0; i < n;) {
        const size_t first = i;

        do
            add_ways(parts->vocab, order[i++].id, ways);
        while (i < n && order[i].score == order[first].score);
        flush_ways(ways, i - first > 1, parts->merges);
    }
    return true;
}
