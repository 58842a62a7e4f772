/* SPDX-License-Identifier: Apache-2.0
 * Where a piece of a byte-level table may be cut without changing an id: between two wide
 * characters that begin as one symbol each (bpe_chars.c) and that no merge can reach over.
 *
 * A merge over the edge between c and d makes a token that has them beside each other. It is "cd"
 * itself, or it reaches further, and as symbols are whole characters there, it then has the
 * character in front or the one behind too. So the edge is safe if no token has c and d beside each
 * other; or if "cd" is no token, none has the three with the one behind, and none has the three
 * with the one in front, which does not count when the edge in front is safe itself. A neighbour
 * that is not such a character counts as if there were a token.
 *
 * The sets are hashed to bits: one too many only keeps an edge whole. Two thirds of the edges in
 * Chinese text fall away, and most parts are then one character, whose id is known, or two, which
 * are one look into the table.
 */
#include "tokenizer/bpe.h"

#include <davit/help/ucd.h>

#include "tokenizer/bpe_letters.h"
#include "tokenizer/bpe_table.h"

#define JOIN_BITS   19
#define TRIPLE_BITS 20
#define FIRST_CP    0x2e80u /* CJK and what follows it: long pieces of large alphabets */

/* In place of a wide character that begins as one symbol. */
#define OTHER 0u /* something else */
#define END   1u /* there is none */

/* ---- sets ---- */

static inline uint32_t join_bit(uint32_t left, uint32_t right)
{
    return (left << 16 | right) * 0x9e3779b1u >> (32 - JOIN_BITS);
}

/* Of three beside each other, or with @first = 0 of the token that is the other two. */
static inline uint32_t triple_bit(uint32_t first, uint32_t left, uint32_t right)
{
    const uint64_t all = (uint64_t)first << 32 | left << 16 | right;

    return (uint32_t)(all * 0x9e3779b97f4a7c15ull >> (64 - TRIPLE_BITS));
}

static inline void set_bit(uint64_t *bits, uint32_t bit)
{
    bits[bit / 64] |= 1ull << bit % 64;
}

static inline bool get_bit(const uint64_t *bits, uint32_t bit)
{
    return bits[bit / 64] >> bit % 64 & 1;
}

/* The wide character at @at < @n, 0 = another or none. */
static uint32_t wide_at(const uint8_t *bytes, size_t n, size_t at)
{
    uint32_t cp;

    if (n - at < 3 || bytes[at] < 0xe2 || bytes[at] >= 0xf0 || !davit_is_inner(bytes[at + 1]) ||
        !davit_is_inner(bytes[at + 2]))
        return 0;
    cp = (bytes[at] & 0xfu) << 12 | (bytes[at + 1] & 0x3fu) << 6 | (bytes[at + 2] & 0x3fu);
    return cp >= FIRST_CP ? cp : 0;
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

/* Note the neighbours of a token spelled in letters. @bytes: room for as many as @len. */
static void note_token(DavitBpe *bpe, const int16_t *letters, const char *text, size_t len,
                       uint8_t *bytes)
{
    uint32_t size, before = 0, last = 0;
    size_t n = 0;

    for (size_t off = 0; off < len; off += size) {
        const int32_t byte = davit_letter_at(letters, text, off, &size);

        if (byte < 0)
            return;
        bytes[n++] = (uint8_t)byte;
    }
    for (size_t off = 0; off < n;) {
        const uint32_t cp = wide_at(bytes, n, off);

        if (cp && last)
            set_bit(bpe->joins, join_bit(last, cp));
        if (cp && last && (before || n == 6))
            set_bit(bpe->triples, triple_bit(before, last, cp));
        before = cp ? last : 0;
        last = cp;
        off += cp ? 3 : 1;
    }
}

/* Of all tokens, not only those that merges make: then a piece with an edge that no token has is
 * no token. */
bool davit_bpe_fill_cuts(DavitBpe *bpe, const int16_t *letters)
{
    const size_t n_ids = davit_vocab_n_ids(bpe->vocab);
    const char *block;
    const DavitVocabEntry *entries = davit_vocab_entries(bpe->vocab, &block);
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    bpe->joins = g_try_new0(uint64_t, 1u << JOIN_BITS >> 6);
    bpe->triples = g_try_new0(uint64_t, 1u << TRIPLE_BITS >> 6);
    if (!bpe->joins || !bpe->triples)
        return false;
    for (size_t id = 0; id < n_ids; id++) {
        const uint32_t len = entries[id].len;
        const char *text = block + entries[id].off;

        if (len == DAVIT_VOCAB_HOLE || !may_have_pair(text, len))
            continue;
        if (len > bytes->len)
            g_byte_array_set_size(bytes, len);
        note_token(bpe, letters, text, len, bytes->data);
    }
    return true;
}

/* ---- a piece ---- */

#define WINDOW 62u /* characters looked at together; their edges and one more are 64 bits */

/* Some characters of a piece, one after the other. */
typedef struct Window {
    uint32_t n;
    uint16_t at[WINDOW + 1];  /* bytes from the window's start to each, at[n] its end */
    int32_t ids[WINDOW];      /* of one that begins as one symbol, else -1 */
    uint32_t cps[WINDOW + 3]; /* two in front, the n, one behind; OTHER and END */
    uint64_t safe;            /* bit i: the edge in front of character i */
    uint64_t bare;            /* the safe ones that no token has */
    bool was_safe;            /* the edge in front of cps[1] */
} Window;

/* Has a token the three from @cps on beside each other, or is one no wide character? */
static inline bool is_triple(const DavitBpe *bpe, const uint32_t *cps)
{
    return cps[0] == OTHER || cps[2] == OTHER ||
           get_bit(bpe->triples, triple_bit(cps[0], cps[1], cps[2]));
}

/* Bit i: a token has character i and the two in front of it beside each other. Only those of @want
 * are looked for. */
static uint64_t find_triples(const DavitBpe *bpe, const Window *w, uint64_t want)
{
    uint64_t triples = 0;

    for (; want; want &= want - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(want);

        triples |= (uint64_t)is_triple(bpe, &w->cps[i]) << i;
    }
    if (w->cps[w->n + 2] == END) /* nothing stands behind the last one */
        triples &= ~(1ull << w->n);
    return triples;
}

static void find_safe(const DavitBpe *bpe, Window *w)
{
    const uint32_t *cps = w->cps;
    uint64_t wide = 0, joins = 0, loose, triples;
    bool safe = w->was_safe;

    /* no branch in here: the loads wait for nothing */
    for (uint32_t i = 0; i < w->n; i++) {
        const uint32_t left = cps[i + 1], right = cps[i + 2];

        wide |= (uint64_t)(MIN(left, right) >= FIRST_CP) << i;
        joins |= (uint64_t)get_bit(bpe->joins, join_bit(left, right)) << i;
    }
    w->bare = wide & ~joins;
    loose = wide & joins; /* those whose two characters are no token */
    for (uint64_t left = loose; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);

        loose ^= (uint64_t)get_bit(bpe->triples, triple_bit(0, cps[i + 1], cps[i + 2])) << i;
    }
    triples = find_triples(bpe, w, loose | loose << 1);
    loose &= ~(triples >> 1);
    w->safe = w->bare;
    if (cps[1] == END) /* the piece begins */
        w->safe |= 1;
    for (; loose; loose &= loose - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(loose);

        if (i > 0)
            safe = w->safe >> (i - 1) & 1;
        w->safe |= (uint64_t)(safe || !(triples >> i & 1)) << i;
    }
}

static inline uint32_t wide_or_other(const DavitBpeChar *c)
{
    return c->id >= 0 && c->cp >= FIRST_CP ? c->cp : OTHER;
}

/* Those characters of @w that do not begin as one symbol become OTHER. Bit i of @alone and @in_line:
 * as in DavitBpeChar; @next: the one behind the window begins so. */
static void drop_others(Window *w, uint64_t alone, uint64_t in_line, bool next)
{
    uint64_t begins = alone | (uint64_t)next << w->n;

    for (uint64_t left = in_line & ~alone; left;) { /* the last one first: each asks the next */
        const uint32_t i = 63 - (uint32_t)__builtin_clzll(left);

        begins |= (begins >> (i + 1) & 1) << i;
        left ^= 1ull << i;
    }
    for (uint64_t others = ~begins & ~(~0ull << w->n); others; others &= others - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(others);

        w->ids[i] = -1;
        w->cps[i + 2] = OTHER;
    }
}

/* The characters from @from on, behind those that @w has. */
static void look(const DavitBpe *bpe, const char *piece, size_t n, size_t from, Window *w)
{
    uint64_t alone = 0, in_line = 0;
    size_t at = from;
    DavitBpeChar c = {.id = -1};

    w->was_safe = w->n > 0 ? w->safe >> (w->n - 1) & 1 : true;
    w->cps[0] = w->n > 0 ? w->cps[w->n] : END;
    w->cps[1] = w->n > 0 ? w->cps[w->n + 1] : END;
    for (w->n = 0; w->n < WINDOW && at < n; at += c.len, w->n++) {
        c = davit_bpe_look(bpe, piece, n, at);
        w->at[w->n] = (uint16_t)(at - from);
        w->ids[w->n] = c.id;
        w->cps[w->n + 2] = wide_or_other(&c);
        alone |= (uint64_t)c.alone << w->n;
        in_line |= (uint64_t)c.in_line << w->n;
    }
    w->at[w->n] = (uint16_t)(at - from);
    w->cps[w->n + 2] = END;
    if (at < n) {
        c = davit_bpe_look(bpe, piece, n, at);
        w->cps[w->n + 2] = c.alone ? wide_or_other(&c) : OTHER;
    }
    drop_others(w, alone, in_line, at < n && c.alone);
    find_safe(bpe, w);
}

/* Ids of @n = 1 or 2 characters that are a part. False if not all begin as one symbol, or the two
 * are no merge and, @whole, may be a token nevertheless. (If they are one, it is that token: no two
 * have one text.) */
static bool put_few(const DavitBpe *bpe, const int32_t *ids, uint32_t n, bool whole,
                    DavitIds *out)
{
    uint32_t merge;

    if (n > 2 || ids[0] < 0 || ids[n - 1] < 0)
        return false;
    merge = n == 1 ? DAVIT_BPE_NONE
                   : davit_bpe_find(bpe, (uint32_t)ids[0], (uint32_t)ids[1]);
    if (n == 2 && merge == DAVIT_BPE_NONE && whole)
        return false;
    out->ids[out->n++] = merge == DAVIT_BPE_NONE ? ids[0] : (int32_t)bpe->joined[merge];
    if (n == 2 && merge == DAVIT_BPE_NONE)
        out->ids[out->n++] = ids[1];
    return true;
}

int32_t davit_bpe_parts(const DavitBpe *bpe, const char *piece, size_t n, DavitBpePartFn fn,
                        void *ctx, DavitIds *out)
{
    Window w;
    size_t start = 0;  /* of the part */
    uint32_t n_before = 0; /* characters of it in earlier windows */
    int32_t status = DAVIT_OK;

    w.n = 0;
    if (!davit_ids_reserve(out, n)) /* no more ids than bytes */
        return DAVIT_E_LIMIT;
    for (size_t from = 0; from < n; from += w.at[w.n]) {
        uint32_t first = 0;

        look(bpe, piece, n, from, &w);
        if (from == 0 && bpe->ignore_merges && !w.bare)
            return w.at[w.n] == n && put_few(bpe, w.ids, w.n, true, out)
                       ? DAVIT_OK
                       : fn(ctx, piece, n, true);
        for (uint64_t ends = from ? w.safe : w.safe & ~1ull; status == DAVIT_OK;
             ends &= ends - 1) {
            const bool last = ends == 0;
            const uint32_t i = last ? w.n : (uint32_t)__builtin_ctzll(ends);
            const uint32_t count = n_before + i - first;
            const size_t end = from + w.at[i];

            if (last && end < n) { /* the part goes on */
                n_before = count;
                break;
            }
            if (n_before > 0 || !put_few(bpe, &w.ids[first], count, false, out))
                status = fn(ctx, piece + start, end - start, end - start == n);
            start = end;
            first = i;
            n_before = 0;
            if (last)
                break;
        }
        if (status != DAVIT_OK)
            return status;
    }
    return status;
}
