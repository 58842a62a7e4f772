/* SPDX-License-Identifier: Apache-2.0
 * A merge list for a vocabulary that has scores only. SentencePiece joins the neighbours
 * whose joined piece scores best; Hugging Face's converter writes that as a list of all
 * ways to split every piece (transformers: generate_merges), and the ids of the model's
 * own tokenizer.json are those of that list.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/tokenizer_private.h"

typedef struct Way {
    DavitMerge merge;
    float score;
    uint32_t left_chars, right_chars;
} Way;

/* Splits of one token: by the ids of the halves. */
static int by_ids(const void *a, const void *b)
{
    const Way *x = a, *y = b;

    if (x->merge.left != y->merge.left)
        return x->merge.left < y->merge.left ? -1 : 1;
    return (x->merge.right > y->merge.right) - (x->merge.right < y->merge.right);
}

/* All: best score, longest left, longest right, and then as found (rank holds the place).
 */
static int by_score(const void *a, const void *b)
{
    const Way *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_chars != y->left_chars)
        return x->left_chars > y->left_chars ? -1 : 1;
    if (x->right_chars != y->right_chars)
        return x->right_chars > y->right_chars ? -1 : 1;
    return (x->merge.rank > y->merge.rank) - (x->merge.rank < y->merge.rank);
}

static void add_ways(const DavitVocab *vocab, int32_t id, float score, GArray *ways)
{
    const guint first = ways->len;
    size_t len, n_chars;
    const char *text = davit_vocab_text(vocab, id, &len);
    uint32_t left_chars = 0, n;

    if (!text)
        return;
    n_chars = (size_t)g_utf8_strlen(text, (gssize)len);
    for (size_t off = 0; off < len; off += n, left_chars++) {
        int32_t left, right;

        davit_ucd_decode(text, len, off, &n);
        if (off == 0)
            continue;
        left = davit_vocab_find(vocab, text, off);
        right = left < 0 ? -1 : davit_vocab_find(vocab, text + off, len - off);
        if (right >= 0) {
            const Way way = {{(uint32_t)left, (uint32_t)right, 0, (uint32_t)id},
                             score,
                             left_chars,
                             (uint32_t)n_chars - left_chars};
            g_array_append_val(ways, way);
        }
    }
    if (ways->len - first > 1)
        qsort(&g_array_index(ways, Way, first), ways->len - first, sizeof(Way), by_ids);
}

int32_t davit_tok_merges_from_scores(DavitTokParts *parts, const float *scores,
                                     DavitReport *report)
{
    g_autoptr(GArray) ways = g_array_new(FALSE, FALSE, sizeof(Way));

    (void)report;
    for (size_t id = 0; id < davit_vocab_n_ids(parts->vocab); id++)
        add_ways(parts->vocab, (int32_t)id, scores[id], ways);
    for (guint i = 0; i < ways->len; i++)
        g_array_index(ways, Way, i).merge.rank = i;
    if (ways->len > 1)
        qsort(ways->data, ways->len, sizeof(Way), by_score);
    for (guint i = 0; i < ways->len; i++) {
        DavitMerge merge = g_array_index(ways, Way, i).merge;

        merge.rank = i;
        g_array_append_val(parts->merges, merge);
    }
    return DAVIT_OK;
}
