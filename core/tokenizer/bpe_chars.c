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
 * Two such characters that stand beside each other in no token are never joined, since
 * only whole ones could be: there a piece may be cut.
 */
#include "tokenizer/bpe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/bpe_table.h"

/* What the bytes of a token are; of a text that is valid UTF-8. */
#define BEGINS 1u /* at the start of a character */
#define ENDS   2u /* at the end of one, or maybe: only continuation bytes */
#define HEAD   4u /* the first bytes of a character, and no more */
#define TAIL   8u /* continuation bytes only */

#define N_LETTERS 0x800 /* code points of at most two bytes of UTF-8 */

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
    int16_t letters[N_LETTERS];
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

static bool is_inner(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* ---- letters ---- */

/* Byte of each letter, -1 = no letter. Tokens are read by it, half a million letters at load. */
static void fill_letters(int16_t letters[N_LETTERS])
{
    for (uint32_t cp = 0; cp < N_LETTERS; cp++)
        letters[cp] = (int16_t)davit_letter_byte(cp);
}

/* Byte of the letter at @at of a text that is valid UTF-8; *out_size its own bytes. */
static inline int32_t letter_at(const int16_t *letters, const char *text, size_t at,
                                uint32_t *out_size)
{
    const uint8_t *p = (const uint8_t *)text + at;

    *out_size = *p < 0x80 ? 1 : 2;
    if (*p < 0x80)
        return letters[*p];
    return *p < 0xe0 ? letters[(p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)] : -1;
}

/* The same of the letter before @at > 0. */
static inline int32_t letter_before(const int16_t *letters, const char *text, size_t at,
                                    uint32_t *out_size)
{
    const uint8_t *p = (const uint8_t *)text + at;

    *out_size = p[-1] < 0x80 ? 1 : 2;
    if (p[-1] < 0x80)
        return letters[p[-1]];
    return at > 1 && p[-2] >= 0xc0 ? letters[(p[-2] & 0x1fu) << 6 | (p[-1] & 0x3fu)] : -1;
}

/* @len > 0. */
static uint32_t kind_of(const int16_t *letters, const char *text, size_t len)
{
    uint8_t tail[4];
    uint32_t n = 0, n_bytes = 0, size;
    const int32_t first = letter_at(letters, text, 0, &size);

    if (first < 0)
        return 0;
    for (size_t off = len; off > 0 && n < 4;) {
        const int32_t byte = letter_before(letters, text, off, &size);

        if (byte < 0)
            return 0;
        off -= size;
        tail[n++] = (uint8_t)byte;
        n_bytes = off == 0 ? n : 0; /* of a token that is one character or less */
        if (!is_inner((uint8_t)byte))
            break;
    }
    if (is_inner(tail[n - 1]))
        return n_bytes > 0 && n < 4 ? TAIL | ENDS : 0;
    if (bytes_needed(tail[n - 1]) > n)
        return (is_inner((uint8_t)first) ? 0 : BEGINS) | (n_bytes > 0 ? HEAD : 0);
    return ENDS | (is_inner((uint8_t)first) ? 0 : BEGINS);
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
        const int32_t byte = letter_at(e->letters, text, off, &size);

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

    return (uint8_t)(last ? letter_before(e->letters, text, len, &size)
                          : letter_at(e->letters, text, 0, &size));
}

static uint32_t kind_by_id(const Edges *e, uint32_t id)
{
    size_t len = 0;
    const char *text = davit_vocab_text(e->bpe->vocab, id, &len);

    return text && len > 0 ? kind_of(e->letters, text, len) : 0;
}

static void note_edges(const Edges *e)
{
    for (uint32_t i = 0; i < e->bpe->n_slots; i++) {
        uint64_t pair;
        const uint32_t at = davit_pair_read(e->bpe, i, &pair);
        const uint32_t left = (uint32_t)(pair >> e->bpe->id_bits);
        const uint32_t right = davit_pair_right(e->bpe, pair);

        /* first what seldom holds: where the empty slots are follows no pattern */
        if (!((e->parts[left] & TAIL) | (e->parts[right] & HEAD)) || at == DAVIT_BPE_NONE)
            continue;
        if ((e->parts[left] & TAIL) && (kind_by_id(e, right) & BEGINS)) {
            note_merge(&e->any[left], davit_bpe_rank(e->bpe, at));
            if (davit_bpe_usual_behind(byte_of(e, right, false)))
                note_merge(&e->usual[left], davit_bpe_rank(e->bpe, at));
        }
        if ((e->parts[right] & HEAD) && (kind_by_id(e, left) & ENDS)) {
            note_merge(&e->any[right], davit_bpe_rank(e->bpe, at));
            if (davit_bpe_usual_before(byte_of(e, left, true)))
                note_merge(&e->usual[right], davit_bpe_rank(e->bpe, at));
        }
    }
}

/* ---- neighbours ---- */

#define FIRST_CP 0x2e80u /* CJK and what follows it: long pieces of large alphabets */

static uint32_t join_bit(uint32_t left, uint32_t right)
{
    return (left << 16 | right) * 0x9e3779b1u >> (32 - DAVIT_JOIN_BITS);
}

/* The character of three bytes at @at < @n, 0 = another or none. */
static uint32_t wide_at(const uint8_t *bytes, size_t n, size_t at)
{
    if (n - at < 3 || bytes[at] < 0xe0 || bytes[at] >= 0xf0 || !is_inner(bytes[at + 1]) ||
        !is_inner(bytes[at + 2]))
        return 0;
    return (bytes[at] & 0xfu) << 12 | (bytes[at + 1] & 0x3fu) << 6 | (bytes[at + 2] & 0x3fu);
}

/* A wide character is three letters of two bytes each, so two of them beside each other are
 * twelve bytes beyond ASCII: one of them at each twelfth place. The first letter of each, of a byte
 * from E2 on, is C3 A2 or higher. */
#define WIDE_PAIR 12u

static bool may_have_pair(const char *text, size_t len)
{
    bool beyond = false;

    for (size_t at = WIDE_PAIR - 1; at < len; at += WIDE_PAIR)
        beyond |= (uint8_t)text[at] >= 0x80;
    for (size_t at = 0; beyond && at + WIDE_PAIR <= len; at++) {
        if ((uint8_t)text[at] == 0xc3 && (uint8_t)text[at + 1] >= 0xa2)
            return true;
    }
    return false;
}

/* Note neighbours of a token spelled in letters. @bytes: room for as many as @len. */
static void note_joins(const Edges *e, const char *text, size_t len, uint8_t *bytes)
{
    uint32_t size, last = 0;
    size_t n = 0;

    for (size_t off = 0; off < len; off += size) {
        const int32_t byte = letter_at(e->letters, text, off, &size);

        if (byte < 0)
            return;
        bytes[n++] = (uint8_t)byte;
    }
    for (size_t off = 0; off < n;) {
        const uint32_t cp = wide_at(bytes, n, off);

        if (cp >= FIRST_CP && last > 0) {
            const uint32_t bit = join_bit(last, cp);

            e->bpe->joins[bit / 64] |= 1ull << bit % 64;
        }
        last = cp >= FIRST_CP ? cp : 0;
        off += cp > 0 ? 3 : 1;
    }
}

/* Of all tokens, not only those that merges make: then a piece with a cut in it is no
 * token. */
static bool fill_joins(const Edges *e)
{
    DavitBpe *bpe = e->bpe;
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    bpe->joins = g_try_new0(uint64_t, 1u << DAVIT_JOIN_BITS >> 6);
    if (!bpe->joins)
        return false;
    for (size_t id = 0; id < e->n_ids; id++) {
        const uint32_t len = e->entries[id].len;
        const char *text = e->block + e->entries[id].off;

        if (len == DAVIT_VOCAB_HOLE || !may_have_pair(text, len))
            continue;
        if (len > bytes->len)
            g_byte_array_set_size(bytes, len);
        note_joins(e, text, len, bytes->data);
    }
    return true;
}

size_t davit_bpe_part(const DavitBpe *bpe, const char *piece, size_t n, size_t from,
                      int32_t *out_id)
{
    uint32_t cp = 0, size, last = 0;
    const int32_t id = davit_bpe_char(bpe, piece, n, from, &cp, &size);
    size_t at = from + size;

    *out_id = id;
    last = id >= 0 && cp >= FIRST_CP ? cp : 0;
    for (; at < n; at += size) {
        if (davit_bpe_char(bpe, piece, n, at, &cp, &size) < 0 || cp < FIRST_CP) {
            last = 0;
            *out_id = -1;
            continue;
        }
        if (last > 0) {
            const uint32_t bit = join_bit(last, cp);

            if (!(bpe->joins[bit / 64] >> bit % 64 & 1))
                return at;
        }
        last = cp;
        *out_id = -1;
    }
    return n;
}

/* May the token be a character beyond ASCII or some of its bytes, at most three? A letter of such a
 * byte has two. */
static bool is_short(const DavitVocabEntry *entry, const char *text)
{
    return entry->len <= 2 * MAX_BYTES && entry->len > 0 && (uint8_t)*text >= 0x80;
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
    edges.entries = davit_vocab_entries(bpe->vocab, &edges.block);
    fill_letters(edges.letters);
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
    return !bpe->bmp || fill_joins(&edges);
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
    }
    atomic_store_explicit(&own->has_chars, true, memory_order_release);
    pthread_mutex_unlock(&chars_lock);
}
