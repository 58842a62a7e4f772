/* SPDX-License-Identifier: Apache-2.0
 * Merging one piece: split it into symbols, then join the pair of lowest rank, leftmost
 * first, until no pair is in the table. Short pieces look for the minimum each time; long
 * ones keep a heap, so the work is n log n whatever the text.
 */
#include "tokenizer/bpe.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/bpe_table.h"

/* Pieces up to this many symbols look for the minimum; measured, any value 32..128 will
 * do. */
#define SHORT_PIECE 64

#define NONE UINT32_MAX

/* A merge that may be done: lowest rank first, then leftmost. */
typedef struct DavitBpeStep {
    uint64_t order; /* rank << 32 | position of the left symbol */
    uint32_t merge; /* its place when it was queued */
} DavitBpeStep;

void davit_bpe_scratch_clear(DavitBpeScratch *scratch)
{
    g_free(scratch->ids);
    g_free(scratch->prev);
    g_free(scratch->next);
    g_free(scratch->heap);
    *scratch = (DavitBpeScratch){0};
}

static bool grow_symbols(DavitBpeScratch *s, size_t need)
{
    size_t cap = s->cap ? s->cap : 256;
    uint32_t *ids, *prev, *next;

    if (need <= s->cap)
        return true;
    while (cap < need)
        cap *= 2;
    ids = g_try_renew(uint32_t, s->ids, cap);
    s->ids = ids ? ids : s->ids;
    prev = g_try_renew(uint32_t, s->prev, cap);
    s->prev = prev ? prev : s->prev;
    next = g_try_renew(uint32_t, s->next, cap);
    s->next = next ? next : s->next;
    if (!ids || !prev || !next)
        return false;
    s->cap = cap;
    return true;
}

/* ---- symbols ---- */

/* State of splitting a piece: what Hugging Face's merge_word keeps. */
typedef struct Split {
    uint32_t *ids;
    size_t n;
    bool unk_open; /* an unknown that is not written yet */
} Split;

static void flush_unk(const DavitBpe *bpe, Split *split)
{
    if (split->unk_open)
        split->ids[split->n++] = (uint32_t)bpe->unk;
    split->unk_open = false;
}

/* A character without a token. Byte tokens do not close an open unknown: it is written
 * after them, as the reference does. */
static int32_t split_unknown(const DavitBpe *bpe, Split *split, const char *text,
                             size_t len)
{
    bool all = bpe->byte_fallback;

    for (size_t i = 0; all && i < len; i++)
        all = bpe->bytes[(uint8_t)text[i]] >= 0;
    if (all) {
        for (size_t i = 0; i < len; i++)
            split->ids[split->n++] = (uint32_t)bpe->bytes[(uint8_t)text[i]];
        return DAVIT_OK;
    }
    if (!bpe->has_unk_name)
        return DAVIT_OK; /* it disappears */
    if (bpe->unk < 0)
        return DAVIT_E_CORRUPT;
    if (!bpe->fuse_unk)
        flush_unk(bpe, split);
    split->unk_open = true;
    return DAVIT_OK;
}

/* @id, or -1 where it must not be given. */
static int32_t unless_hidden(const uint8_t *id_flags, int32_t id)
{
    return id >= 0 && id_flags && (id_flags[id] & DAVIT_ID_SPECIAL) ? -1 : id;
}

static int32_t find_char(const DavitBpe *bpe, const uint8_t *id_flags, const char *text, size_t n,
                         size_t off, uint32_t *out_len)
{
    const uint32_t cp = davit_ucd_decode(text, n, off, out_len);

    return cp < bpe->n_bmp
               ? bpe->bmp[cp]
               : unless_hidden(id_flags, davit_vocab_find(bpe->vocab, text + off, *out_len));
}

static int32_t split_chars(const DavitBpe *bpe, const char *piece, size_t len,
                           const uint8_t *id_flags, Split *split)
{
    uint32_t n;

    for (size_t off = 0; off < len; off += n) {
        const int32_t id = find_char(bpe, id_flags, piece, len, off, &n);
        int32_t status;

        if (id >= 0) {
            flush_unk(bpe, split);
            split->ids[split->n++] = (uint32_t)id;
            continue;
        }
        status = split_unknown(bpe, split, piece + off, n);
        if (status != DAVIT_OK)
            return status;
    }
    flush_unk(bpe, split);
    return DAVIT_OK;
}

/* A vocabulary without one of the letters: <0xNN> tokens are not looked for, because no
 * byte-level file has both (refused at load). @chars as in the scratch. */
static int32_t split_bytes(const DavitBpe *bpe, const char *piece, size_t len, bool chars,
                           Split *split)
{
    uint32_t n;

    for (size_t i = 0; i < len; i += n) {
        int32_t id = -1;

        n = 1;
        if (chars)
            id = davit_bpe_char(bpe, piece, len, i, &n);
        if (id < 0)
            id = bpe->bytes[(uint8_t)piece[i]];
        if (id >= 0) {
            flush_unk(bpe, split);
            split->ids[split->n++] = (uint32_t)id;
        } else if (bpe->has_unk_name) {
            if (bpe->unk < 0)
                return DAVIT_E_CORRUPT;
            if (!bpe->fuse_unk)
                flush_unk(bpe, split);
            split->unk_open = true;
        }
    }
    flush_unk(bpe, split);
    return DAVIT_OK;
}

/* ---- short pieces ---- */

/* Of the symbol at each place and the next. */
typedef struct Pairs {
    uint32_t rank[SHORT_PIECE]; /* NONE = no merge */
    uint32_t at[SHORT_PIECE];   /* place of the merge */
} Pairs;

static void look_up(const DavitBpe *bpe, const uint32_t *ids, size_t i, Pairs *pairs)
{
    pairs->at[i] = davit_bpe_find(bpe, ids[i], ids[i + 1]);
    pairs->rank[i] = davit_bpe_rank(bpe, pairs->at[i]);
}

/* All pairs at once: slots are far apart in memory, so all are asked for before the first
 * is read. */
static void look_up_all(const DavitBpe *bpe, const uint32_t *ids, size_t n, Pairs *pairs)
{
    DavitPairKey keys[SHORT_PIECE];
    uint8_t at[SHORT_PIECE];
    size_t n_keys = 0;

    for (size_t i = 0; i + 1 < n; i++) {
        const DavitPairKey key = davit_pair_key(bpe, ids[i], ids[i + 1]);

        pairs->rank[i] = NONE;
        if (!davit_pair_maybe(bpe, key))
            continue;
        keys[n_keys] = key;
        at[n_keys++] = (uint8_t)i;
        davit_pair_fetch(bpe, key);
    }
    for (size_t k = 0; k < n_keys; k++) {
        pairs->at[at[k]] = davit_pair_find(bpe, keys[k], &(uint32_t){0});
        pairs->rank[at[k]] = davit_bpe_rank(bpe, pairs->at[at[k]]);
    }
}

/* Merge @n <= SHORT_PIECE symbols in place. Returns: how many are left. */
static size_t merge_short(const DavitBpe *bpe, DavitBpeScratch *s, uint32_t *ids,
                          size_t n)
{
    Pairs pairs;
    uint32_t *const rank = pairs.rank, *const at = pairs.at;

    look_up_all(bpe, ids, n, &pairs);
    s->steps += n;
    while (n > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < n; i++) {
            if (rank[i] < rank[best])
                best = i;
        }
        s->steps += n;
        if (rank[best] == NONE)
            break;
        ids[best] = bpe->joined[at[best]];
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        if (best + 1 < n) {
            memmove(rank + best + 1, rank + best + 2, (n - best - 2) * sizeof *rank);
            memmove(at + best + 1, at + best + 2, (n - best - 2) * sizeof *at);
            look_up(bpe, ids, best, &pairs);
        }
        if (best > 0)
            look_up(bpe, ids, best - 1, &pairs);
    }
    return n;
}

/* ---- long pieces ---- */

static bool push_step(DavitBpeScratch *s, size_t *n_heap, DavitBpeStep step)
{
    size_t at = (*n_heap)++;

    if (*n_heap > s->heap_cap) {
        const size_t cap = s->heap_cap ? 2 * s->heap_cap : 1024;
        DavitBpeStep *heap = g_try_renew(DavitBpeStep, s->heap, cap);

        if (!heap)
            return false;
        s->heap = heap;
        s->heap_cap = cap;
    }
    for (; at > 0 && s->heap[(at - 1) / 2].order > step.order; at = (at - 1) / 2) {
        s->heap[at] = s->heap[(at - 1) / 2];
        s->steps++;
    }
    s->heap[at] = step;
    return true;
}

static DavitBpeStep pop_step(DavitBpeScratch *s, size_t *n_heap)
{
    const DavitBpeStep top = s->heap[0], last = s->heap[--*n_heap];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= *n_heap)
            break;
        if (child + 1 < *n_heap && s->heap[child + 1].order < s->heap[child].order)
            child++;
        if (s->heap[child].order >= last.order)
            break;
        s->heap[at] = s->heap[child];
        at = child;
        s->steps++;
    }
    s->heap[at] = last;
    return top;
}

/* Queue the merge of the symbol at @pos and the next one, if there is such a merge. */
static bool queue_pair(const DavitBpe *bpe, DavitBpeScratch *s, uint32_t pos,
                       size_t *n_heap)
{
    uint32_t at;

    s->steps++;
    if (pos == NONE || s->next[pos] == NONE)
        return true;
    at = davit_bpe_find(bpe, s->ids[pos], s->ids[s->next[pos]]);
    if (at == DAVIT_BPE_NONE)
        return true;
    return push_step(
        s, n_heap, (DavitBpeStep){(uint64_t)davit_bpe_rank(bpe, at) << 32 | pos, at});
}

/* Merge the @n symbols of s->ids; the first keeps place 0. Returns: count, 0 = no memory.
 */
static size_t merge_long(const DavitBpe *bpe, DavitBpeScratch *s, size_t n)
{
    size_t n_heap = 0, left = 0;

    for (size_t i = 0; i < n; i++) {
        s->prev[i] = i > 0 ? (uint32_t)i - 1 : NONE;
        s->next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
    }
    for (size_t i = 0; i + 1 < n; i++) {
        if (!queue_pair(bpe, s, (uint32_t)i, &n_heap))
            return 0;
    }
    while (n_heap > 0) {
        const DavitBpeStep step = pop_step(s, &n_heap);
        const uint32_t pos = (uint32_t)step.order;
        const uint32_t gone = s->next[pos];
        uint32_t at;

        /* A symbol that was merged away has itself as next. */
        if (gone == NONE || gone == pos)
            continue;
        at = davit_bpe_find(bpe, s->ids[pos], s->ids[gone]);
        if (at == DAVIT_BPE_NONE || bpe->joined[at] != bpe->joined[step.merge])
            continue;
        s->ids[pos] = bpe->joined[at];
        s->next[pos] = s->next[gone];
        if (s->next[pos] != NONE)
            s->prev[s->next[pos]] = pos;
        s->next[gone] = gone;
        if (!queue_pair(bpe, s, s->prev[pos], &n_heap) ||
            !queue_pair(bpe, s, pos, &n_heap))
            return 0;
    }
    for (uint32_t i = 0; i != NONE; i = s->next[i])
        s->ids[left++] = s->ids[i];
    return left;
}

/* ---- one piece ---- */

/* Id of the whole piece as a token, -1 = none. @s->ids serves as room for the spelling.
 */
static int32_t find_whole(const DavitBpe *bpe, DavitBpeScratch *s, const char *piece,
                          size_t len)
{
    char *spelled = (char *)s->prev;
    size_t n = 0;

    if (!bpe->byte_level)
        return davit_vocab_find(bpe->vocab, piece, len);
    for (size_t i = 0; i < len; i++) {
        const uint32_t cp = davit_byte_letter((uint8_t)piece[i]);

        if (cp < 0x80) {
            spelled[n++] = (char)cp;
        } else {
            spelled[n++] = (char)(0xc0 | cp >> 6);
            spelled[n++] = (char)(0x80 | (cp & 0x3f));
        }
    }
    return davit_vocab_find(bpe->vocab, spelled, n);
}

/* Would the whole piece be another token than the @n ids that merging gives? */
static bool is_other_whole(const DavitBpe *bpe, DavitBpeScratch *s, const char *piece, size_t len,
                           const int32_t *ids, size_t n)
{
    const int32_t id = find_whole(bpe, s, piece, len);

    return id >= 0 && (n != 1 || ids[0] != id);
}

int32_t davit_bpe_encode(const DavitBpe *bpe, DavitBpeScratch *scratch, const char *piece,
                         size_t len, bool whole, const uint8_t *id_flags, DavitIds *out)
{
    Split split = {0};
    int32_t status;

    /* A symbol is at least one byte; one more for an unknown that is closed at the end.
     */
    if (!grow_symbols(scratch, len + 1) || !davit_ids_reserve(out, len + 1))
        return DAVIT_E_LIMIT;
    if (whole && bpe->ignore_merges) {
        const int32_t id = unless_hidden(id_flags, find_whole(bpe, scratch, piece, len));

        if (id >= 0) {
            out->ids[out->n++] = id;
            return DAVIT_OK;
        }
    }
    split.ids = scratch->ids;
    status = bpe->byte_level ? split_bytes(bpe, piece, len, scratch->chars, &split)
                             : split_chars(bpe, piece, len, id_flags, &split);
    if (status != DAVIT_OK)
        return status;
    if (split.n > SHORT_PIECE) {
        split.n = merge_long(bpe, scratch, split.n);
        if (split.n == 0)
            return DAVIT_E_LIMIT;
    } else {
        split.n = merge_short(bpe, scratch, scratch->ids, split.n);
    }
    memcpy(out->ids + out->n, scratch->ids, split.n * sizeof *scratch->ids);
    if (bpe->open && whole &&
        is_other_whole(bpe, scratch, piece, len, out->ids + out->n, split.n))
        return DAVIT_E_UNSUPPORTED;
    out->n += split.n;
    return DAVIT_OK;
}
