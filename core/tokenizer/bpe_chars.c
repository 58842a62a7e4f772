/* SPDX-License-Identifier: Apache-2.0
 * Characters that byte-level merging always completes before it joins one of their bytes
 * with a neighbour. Such a character may begin as one symbol: a third of the symbols for
 * Chinese.
 *
 * A merge over the edge of a character has a half that ends or begins with some of its
 * bytes. Where, at every step of merging the character alone, the next merge has a lower
 * rank than all merges over its edges that are possible at that moment, the merges inside
 * come first whatever stands beside it. Merges in different characters do not touch each
 * other, so doing them early changes nothing. For most characters this holds under
 * conditions only: that no ASCII stands in front (a space takes first bytes), or that
 * what follows has not one of some first bytes (other scripts than Chinese and Japanese).
 *
 * Between such characters a piece may often be cut: bpe_cuts.c.
 */
#include "tokenizer/bpe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/bpe_letters.h"
#include "tokenizer/bpe_table.h"

/* What the bytes of a token are; of a text that is valid UTF-8. */
#define BEGINS 1u /* at the start of a character */
#define ENDS   2u /* at the end of one, or maybe: only continuation bytes */
#define HEAD   4u /* the first bytes of a character, and no more */
#define TAIL   8u /* continuation bytes only */

/* Of the merges over an edge, by id of the half that is a HEAD or a TAIL: the highest
 * priority, UINT32_MAX - rank; 0 = none. All are zero at first, so that pages of ids that
 * are holes are never made. */
typedef struct Edges {
    DavitBpe *bpe;
    uint8_t *parts;  /* by id: HEAD or TAIL */
    uint32_t *any;   /* of all */
    uint32_t *usual; /* of those that the conditions leave */
    const DavitVocabEntry *entries; /* (borrowed) [n_ids] */
    const char *block;              /* (borrowed) where they lie */
    size_t n_ids;
    int16_t letters[DAVIT_N_LETTERS];
} Edges;

static uint32_t priority(uint32_t rank)
{
    return UINT32_MAX - rank;
}

#define MAX_BYTES 3 /* of a character below U+10000 */

static uint32_t bytes_needed(uint8_t lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* @len > 0. */
static uint32_t kind_of(const int16_t *letters, const char *text, size_t len)
{
    uint8_t tail[4];
    uint32_t n = 0, n_bytes = 0, size;
    const int32_t first = davit_letter_at(letters, text, 0, &size);

    if (first < 0)
        return 0;
    for (size_t off = len; off > 0 && n < 4;) {
        const int32_t byte = davit_letter_before(letters, text, off, &size);

        if (byte < 0)
            return 0;
        off -= size;
        tail[n++] = (uint8_t)byte;
        n_bytes = off == 0 ? n : 0; /* of a token that is one character or less */
        if (!davit_is_inner((uint8_t)byte))
            break;
    }
    if (davit_is_inner(tail[n - 1]))
        return n_bytes > 0 && n < 4 ? TAIL | ENDS : 0;
    if (bytes_needed(tail[n - 1]) > n)
        return (davit_is_inner((uint8_t)first) ? 0 : BEGINS) | (n_bytes > 0 ? HEAD : 0);
    return ENDS | (davit_is_inner((uint8_t)first) ? 0 : BEGINS);
}

/* May @rank be done before all merges over the edge of @id? *out_needs gets @need if only
 * under its condition. */
static bool comes_first(const Edges *e, uint32_t rank, uint32_t id, int32_t need,
                        int32_t *out_needs)
{
    if (priority(rank) <= e->any[id])
        *out_needs |= need;
    return priority(rank) > e->usual[id];
}

/* Merge the @n bytes of a character alone. Returns: its token and conditions, -1 if it
 * ends otherwise or something else might come first. */
static int32_t merge_char(const Edges *e, const uint8_t *bytes, uint32_t n)
{
    uint32_t ids[MAX_BYTES];
    int32_t needs = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (e->bpe->bytes[bytes[i]] < 0)
            return -1;
        ids[i] = (uint32_t)e->bpe->bytes[bytes[i]];
    }
    while (n > 1) {
        uint32_t best = DAVIT_BPE_NONE, rank = DAVIT_BPE_NONE, at = 0;

        for (uint32_t i = 0; i + 1 < n; i++) {
            const uint32_t merge = davit_bpe_find(e->bpe, ids[i], ids[i + 1]);

            if (davit_bpe_rank(e->bpe, merge) < rank) {
                best = merge;
                rank = davit_bpe_rank(e->bpe, merge);
                at = i;
            }
        }
        if (best == DAVIT_BPE_NONE ||
            !comes_first(e, rank, ids[0], DAVIT_CHAR_LEFT, &needs) ||
            !comes_first(e, rank, ids[n - 1], DAVIT_CHAR_RIGHT, &needs))
            return -1;
        ids[at] = e->bpe->joined[best];
        n--;
        for (uint32_t i = at + 1; i < n; i++)
            ids[i] = ids[i + 1];
    }
    return (int32_t)ids[0] | needs;
}

/* If token @text is one character of two or three bytes, put what merging gives into bmp. False
 * when memory is gone. */
static bool fill_char(const Edges *e, const char *text, size_t len)
{
    uint8_t bytes[MAX_BYTES];
    uint32_t n = 0, size, cp;
    int32_t id;

    for (size_t off = 0; off < len; off += size) {
        const int32_t byte = davit_letter_at(e->letters, text, off, &size);

        if (byte < 0xc2 && n == 0)
            return true; /* one byte */
        if (byte < 0 || n == MAX_BYTES)
            return true;
        bytes[n++] = (uint8_t)byte;
    }
    cp = davit_ucd_decode((const char *)bytes, n, 0, &size);
    id = n > 1 && size == n ? merge_char(e, bytes, n) : -1;
    if (id < 0)
        return true;
    if (!e->bpe->bmp) {
        e->bpe->bmp = g_try_new(int32_t, 65536);
        if (!e->bpe->bmp)
            return false;
        memset(e->bpe->bmp, 0xff, 65536 * sizeof *e->bpe->bmp);
        e->bpe->n_bmp = 65536;
    }
    e->bpe->bmp[cp] = id;
    return true;
}

static void note_merge(uint32_t *highest, uint32_t rank)
{
    *highest = MAX(*highest, priority(rank));
}

/* First byte of token @id, or with @last its last. */
static uint8_t byte_of(const Edges *e, uint32_t id, bool last)
{
    size_t len = 0;
    uint32_t size;
    const char *text = davit_vocab_text(e->bpe->vocab, id, &len);

    return (uint8_t)(last ? davit_letter_before(e->letters, text, len, &size)
                          : davit_letter_at(e->letters, text, 0, &size));
}

static uint32_t kind_by_id(const Edges *e, uint32_t id)
{
    size_t len = 0;
    const char *text = davit_vocab_text(e->bpe->vocab, id, &len);

    return text && len > 0 ? kind_of(e->letters, text, len) : 0;
}

/* A merge of which one half is some bytes of a character. */
static void note_edge(const Edges *e, uint32_t left, uint32_t right, uint32_t rank)
{
    if ((e->parts[left] & TAIL) && (kind_by_id(e, right) & BEGINS)) {
        note_merge(&e->any[left], rank);
        if (davit_bpe_usual_behind(byte_of(e, right, false)))
            note_merge(&e->usual[left], rank);
    }
    if ((e->parts[right] & HEAD) && (kind_by_id(e, left) & ENDS)) {
        note_merge(&e->any[right], rank);
        if (davit_bpe_usual_before(byte_of(e, left, true)))
            note_merge(&e->usual[right], rank);
    }
}

static void note_edges(const Edges *e)
{
    const DavitBpe *bpe = e->bpe;
    const uint8_t *parts = e->parts;
    const uint32_t n_slots = bpe->n_slots, id_bits = bpe->id_bits;

    for (uint32_t i = 0; i < n_slots; i++) {
        uint64_t pair;
        const uint32_t at = davit_pair_read(bpe, i, &pair);
        const uint32_t left = (uint32_t)(pair >> id_bits);
        const uint32_t right = (uint32_t)(pair & ((1ull << id_bits) - 1));

        /* first what seldom holds: where the empty slots are follows no pattern */
        if (((parts[left] & TAIL) | (parts[right] & HEAD)) && at != DAVIT_BPE_NONE)
            note_edge(e, left, right, davit_bpe_rank(bpe, at));
    }
}

/* May the token be a character beyond ASCII or some of its bytes, at most three? A letter of such a
 * byte has two. */
static bool is_short(const DavitVocabEntry *entry, const char *text)
{
    return entry->len <= 2 * MAX_BYTES && entry->len > 0 && (uint8_t)*text >= 0x80;
}

/* Has every byte of UTF-8 a symbol? Those that have none may leave the text, so that what stands
 * beside a character is not its neighbour. */
static bool has_all_bytes(const DavitBpe *bpe)
{
    for (int b = 0; b < 0xf5; b++) {
        if (bpe->bytes[b] < 0 && b != 0xc0 && b != 0xc1)
            return false;
    }
    return true;
}

static bool fill_chars(DavitBpe *bpe)
{
    const size_t n_ids = davit_vocab_n_ids(bpe->vocab);
    g_autofree uint8_t *parts = g_try_malloc0(n_ids + 1);
    g_autofree uint32_t *highest = g_try_new0(uint32_t, 2 * (n_ids + 1));
    Edges edges = {bpe, parts, highest, highest ? highest + n_ids + 1 : NULL,
                   .n_ids = n_ids};

    if (!parts || !highest)
        return false;
    if (!has_all_bytes(bpe))
        return true;
    edges.entries = davit_vocab_entries(bpe->vocab, &edges.block);
    davit_letters_fill(edges.letters);
    for (size_t id = 0; id < n_ids; id++) {
        const char *text = edges.block + edges.entries[id].off;

        if (is_short(&edges.entries[id], text))
            parts[id] = kind_of(edges.letters, text, edges.entries[id].len) & (HEAD | TAIL);
    }
    note_edges(&edges);
    for (size_t id = 0; id < n_ids; id++) {
        const char *text = edges.block + edges.entries[id].off;

        /* the letter of a first byte begins with C3 */
        if (is_short(&edges.entries[id], text) && *text == '\xc3' &&
            !fill_char(&edges, text, edges.entries[id].len))
            return false;
    }
    return !bpe->bmp || davit_bpe_fill_cuts(bpe, edges.letters);
}

static pthread_mutex_t chars_lock = PTHREAD_MUTEX_INITIALIZER;

void davit_bpe_need_chars(const DavitBpe *bpe)
{
    DavitBpe *own = (DavitBpe *)(uintptr_t)bpe; /* const for callers, not for us */

    if (atomic_load_explicit(&own->has_chars, memory_order_acquire))
        return;
    pthread_mutex_lock(&chars_lock);
    if (!own->has_chars && !fill_chars(own)) {
        g_clear_pointer(&own->bmp, g_free);
        g_clear_pointer(&own->joins, g_free);
        g_clear_pointer(&own->triples, g_free);
    }
    atomic_store_explicit(&own->has_chars, true, memory_order_release);
    pthread_mutex_unlock(&chars_lock);
}
