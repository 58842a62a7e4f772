/* SPDX-License-Identifier: Apache-2.0
 * Characters that byte-level merging always completes before it joins one of their bytes
 * with a neighbour. Such a character may begin as one symbol: a third of the symbols for
 * Chinese.
 *
 * A merge over an edge of a character has a half that ends or begins with some of its bytes: its
 * right half is the HEAD that merging the character alone has come to, or its left half the TAIL.
 * Where, at every step, the next merge inside has a lower rank than all merges over its edges that
 * are possible at that moment, those inside come first whatever stands beside it. Merges in
 * different characters do not touch each other, so doing them early changes nothing.
 *
 * For most characters this holds under conditions only, which bytes may not stand in front and
 * which not behind. A merge of a TAIL with the HEAD of the next character counts for both; if the
 * next one begins as one symbol, its own merges come before this one, so that only those with
 * whole characters behind are left (behind_whole). Of the merges over the edges of such characters, the
 * first ever done would have one half that is not whole yet, and a merge inside it that comes before.
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

/* A merge over the edge of a part of a character, of the list of that part. */
typedef struct Edge {
    uint32_t next;     /* in Edges.list, 0 = none */
    uint32_t priority; /* UINT32_MAX - rank */
    uint8_t byte;      /* beside the edge: the last one before a HEAD, the first one behind a TAIL */
    bool head;         /* behind a TAIL: the other half is a HEAD */
} Edge;

/* HEAD or TAIL of a character. */
typedef struct Part {
    uint32_t highest; /* of the priorities in the list */
    uint32_t first;   /* in Edges.list, 0 = none */
} Part;

/* By id, what it is: 0 = no part, else its place in Edges.parts + 1 twice, and 1 more for a HEAD. */
#define MOST_PARTS 0x7000u

typedef struct Edges {
    DavitBpe *bpe;
    uint16_t *kinds; /* (owned) [n_ids + 1] */
    GArray *parts;   /* (owned) Part */
    GArray *list;    /* (owned) Edge; the first is none */
    GArray *chars;   /* (owned) uint32_t, ids of tokens that may be a character */
    GArray *mixed;   /* (owned) uint32_t, ids of tokens that begin or end inside a character */
    uint16_t *by_hash;       /* (owned) place + 1 in conditions, 0 = free */
    uint32_t n_conditions;
    const DavitVocabEntry *entries; /* (borrowed) [n_ids] */
    const char *block;              /* (borrowed) where they lie */
    int16_t letters[DAVIT_N_LETTERS];
} Edges;

static bool is_head(uint16_t kind)
{
    return kind & 1;
}

static bool is_tail(uint16_t kind)
{
    return kind && !(kind & 1);
}

static Part *part_of(const Edges *e, uint16_t kind)
{
    return &g_array_index(e->parts, Part, kind / 2 - 1);
}

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

/* What stands in the way of a merge of @rank inside a character, at the edge of its part @kind. */
static void forbid(const Edges *e, uint32_t rank, uint16_t kind, DavitCharCondition *out)
{
    const Part *part = kind ? part_of(e, kind) : NULL;

    if (!part || part->highest < priority(rank))
        return;
    for (uint32_t i = part->first; i; i = g_array_index(e->list, Edge, i).next) {
        const Edge *edge = &g_array_index(e->list, Edge, i);
        const uint64_t bit = 1ull << (edge->byte & 63);

        if (edge->priority < priority(rank))
            continue;
        if (is_head(kind)) {
            out->ascii_before |= edge->byte < 0x80;
            out->before |= edge->byte < 0x80 ? 0 : bit;
        } else {
            out->behind |= edge->byte < 0x80 ? 1 : bit;
            if (!edge->head)
                out->behind_whole |= edge->byte < 0x80 ? 1 : bit;
        }
    }
}

/* Place of @condition among those of the table, -1 = there are too many. */
static int32_t condition_at(Edges *e, const DavitCharCondition *condition)
{
    uint64_t h = condition->before * 0x9e3779b97f4a7c15ull ^ condition->behind;

    h = (h ^ condition->behind_whole * 3 ^ condition->ascii_before) * 0xd6e8feb86659fd93ull;
    for (uint32_t at = (uint32_t)(h >> 32);; at++) {
        uint16_t *slot = &e->by_hash[at % (2 * DAVIT_CHAR_CONDITIONS)];

        if (*slot && memcmp(&e->bpe->conditions[*slot - 1], condition, sizeof *condition) == 0)
            return *slot - 1;
        if (*slot)
            continue;
        if (e->n_conditions == DAVIT_CHAR_CONDITIONS)
            return -1;
        e->bpe->conditions[e->n_conditions++] = *condition;
        *slot = (uint16_t)e->n_conditions;
        return *slot - 1;
    }
}

/* Merge the @n bytes of a character alone. Returns: its item of bmp, -1 if it has no token. */
static int32_t merge_char(Edges *e, const uint8_t *bytes, uint32_t n)
{
    DavitCharCondition condition = {0};
    uint32_t ids[MAX_BYTES];
    int32_t at_condition;

    for (uint32_t i = 0; i < n; i++)
        ids[i] = (uint32_t)e->bpe->bytes[bytes[i]]; /* has_all_bytes */
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
        if (best == DAVIT_BPE_NONE)
            return -1;
        forbid(e, rank, e->kinds[ids[0]], &condition);
        forbid(e, rank, e->kinds[ids[n - 1]], &condition);
        ids[at] = e->bpe->joined[best];
        n--;
        for (uint32_t i = at + 1; i < n; i++)
            ids[i] = ids[i + 1];
    }
    at_condition = ids[0] >> DAVIT_CHAR_ID_BITS ? -1 : condition_at(e, &condition);
    return at_condition < 0 ? -1 : at_condition << DAVIT_CHAR_ID_BITS | (int32_t)ids[0];
}

/* If token @text is one character of two or three bytes, put what merging gives into bmp. False
 * when memory is gone. */
static bool fill_char(Edges *e, const char *text, size_t len)
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

static void add_edge(Edges *e, uint16_t kind, uint32_t rank, uint8_t byte, bool head)
{
    Part *part = part_of(e, kind);
    const Edge edge = {part->first, priority(rank), byte, head};

    part->first = e->list->len;
    part->highest = MAX(part->highest, edge.priority);
    g_array_append_val(e->list, edge);
}

/* The merge that makes a token of its @cut letters in front and the others, if there is one and its
 * halves are neighbours over an edge: a TAIL with what BEGINS, or what ENDS with a HEAD. */
static void note_cut(Edges *e, const char *text, size_t len, size_t cut)
{
    const DavitBpe *bpe = e->bpe;
    const int32_t left = davit_vocab_find(bpe->vocab, text, cut);
    const int32_t right = davit_vocab_find(bpe->vocab, text + cut, len - cut);
    const uint32_t at = left < 0 || right < 0
                            ? DAVIT_BPE_NONE
                            : davit_bpe_find(bpe, (uint32_t)left, (uint32_t)right);
    const uint32_t rank = davit_bpe_rank(bpe, at);
    uint32_t size;

    if (at == DAVIT_BPE_NONE)
        return;
    if (is_tail(e->kinds[left]) && (kind_of(e->letters, text + cut, len - cut) & BEGINS))
        add_edge(e, e->kinds[left], rank, (uint8_t)davit_letter_at(e->letters, text, cut, &size),
                 is_head(e->kinds[right]));
    if (is_head(e->kinds[right]) && (kind_of(e->letters, text, cut) & ENDS))
        add_edge(e, e->kinds[right], rank,
                 (uint8_t)davit_letter_before(e->letters, text, cut, &size), false);
}

/* Merges over edges make tokens that begin behind the start of a character, or end before the end
 * of one: some hundreds, of which the first or the last @MAX_BYTES letters may be the part. */
static void note_edges(Edges *e)
{
    for (guint i = 0; i < e->mixed->len; i++) {
        const DavitVocabEntry *entry = &e->entries[g_array_index(e->mixed, uint32_t, i)];
        const char *text = e->block + entry->off;
        uint32_t size;
        size_t front = 0, back = entry->len;

        for (int n = 0; n < MAX_BYTES && front < entry->len; n++) {
            (void)davit_letter_at(e->letters, text, front, &size);
            front += size;
            if (front < entry->len)
                note_cut(e, text, entry->len, front);
        }
        for (int n = 0; n < MAX_BYTES && back > 0; n++) {
            (void)davit_letter_before(e->letters, text, back, &size);
            back -= size;
            if (back > front) /* else it is noted */
                note_cut(e, text, entry->len, back);
        }
    }
}

/* Does the token begin or end inside a character? */
static bool is_mixed(const int16_t *letters, const char *text, size_t len)
{
    uint32_t size;

    /* a byte of a character has a letter of two bytes */
    if (len < 3)
        return false;
    if ((uint8_t)text[0] & 0x80 &&
        davit_is_inner((uint8_t)MAX(davit_letter_at(letters, text, 0, &size), 0)))
        return true;
    return (uint8_t)text[len - 1] & 0x80 && !(kind_of(letters, text, len) & ENDS);
}

/* May the token be a character beyond ASCII or some of its bytes, at most three? A letter of such a
 * byte has two. */
static bool is_short(const int16_t *letters, const DavitVocabEntry *entry, const char *text)
{
    uint32_t size;

    return entry->len <= 2 * MAX_BYTES && entry->len > 1 && (uint8_t)*text >= 0x80 &&
           davit_letter_at(letters, text, 0, &size) >= 0x80;
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

/* Note which tokens are parts of characters, and which are parts and more. False: there are too
 * many. */
static bool note_parts(Edges *e)
{
    const size_t n_ids = davit_vocab_n_ids(e->bpe->vocab);

    for (uint32_t id = 0; id < n_ids; id++) {
        const char *text = e->block + e->entries[id].off;
        const uint32_t len = e->entries[id].len;
        const uint32_t kind =
            is_short(e->letters, &e->entries[id], text) ? kind_of(e->letters, text, len) : 0;

        if (!(kind & (HEAD | TAIL))) {
            if (kind & BEGINS && kind & ENDS && *text == '\xc3') /* the letter of a first byte */
                g_array_append_val(e->chars, id);
            else if (len != DAVIT_VOCAB_HOLE && is_mixed(e->letters, text, len))
                g_array_append_val(e->mixed, id);
            continue;
        }
        if (e->parts->len == MOST_PARTS)
            return false;
        g_array_set_size(e->parts, e->parts->len + 1);
        e->kinds[id] = (uint16_t)(2 * e->parts->len + (kind & HEAD ? 1 : 0));
    }
    return true;
}

static bool fill_bmp(Edges *e)
{
    e->entries = davit_vocab_entries(e->bpe->vocab, &e->block);
    davit_letters_fill(e->letters);
    if (!note_parts(e))
        return true;
    note_edges(e);
    for (guint i = 0; i < e->chars->len; i++) {
        const DavitVocabEntry *entry = &e->entries[g_array_index(e->chars, uint32_t, i)];

        if (!fill_char(e, e->block + entry->off, entry->len))
            return false;
    }
    return true;
}

static bool fill_chars(DavitBpe *bpe)
{
    g_autofree uint16_t *kinds = g_try_new0(uint16_t, davit_vocab_n_ids(bpe->vocab) + 1);
    g_autofree uint16_t *by_hash = g_try_new0(uint16_t, 2 * DAVIT_CHAR_CONDITIONS);
    g_autoptr(GArray) parts = g_array_new(FALSE, TRUE, sizeof(Part));
    g_autoptr(GArray) list = g_array_new(FALSE, TRUE, sizeof(Edge));
    g_autoptr(GArray) mixed = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) chars = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Edges edges = {bpe, kinds, parts, list, chars, mixed, by_hash, 0, NULL, NULL, {0}};

    if (!kinds || !by_hash)
        return false;
    if (!has_all_bytes(bpe))
        return true;
    bpe->conditions = g_try_new0(DavitCharCondition, DAVIT_CHAR_CONDITIONS);
    g_array_set_size(list, 1);
    return bpe->conditions && fill_bmp(&edges) &&
           (!bpe->bmp || davit_bpe_fill_cuts(bpe, edges.letters));
}

static pthread_mutex_t chars_lock = PTHREAD_MUTEX_INITIALIZER;

/* Have there been enough bytes beyond ASCII, @n more counted? */
static bool are_many(DavitBpe *bpe, size_t n)
{
    const uint32_t more = (uint32_t)MIN(n, DAVIT_BPE_CHARS_AFTER);
    uint32_t before = atomic_load_explicit(&bpe->n_beyond, memory_order_relaxed);

    if (before < DAVIT_BPE_CHARS_AFTER) /* else it would wrap one day */
        before = atomic_fetch_add_explicit(&bpe->n_beyond, more, memory_order_relaxed);
    return before + more > DAVIT_BPE_CHARS_AFTER;
}

bool davit_bpe_need_chars(const DavitBpe *bpe, size_t n)
{
    DavitBpe *own = (DavitBpe *)(uintptr_t)bpe; /* const for callers, not for us */

    if (atomic_load_explicit(&own->has_chars, memory_order_acquire))
        return true;
    if (!are_many(own, n))
        return false;
    pthread_mutex_lock(&chars_lock);
    if (!own->has_chars && !fill_chars(own)) {
        g_clear_pointer(&own->bmp, g_free);
        g_clear_pointer(&own->conditions, g_free);
        g_clear_pointer(&own->joins, g_free);
        g_clear_pointer(&own->triples, g_free);
    }
    atomic_store_explicit(&own->has_chars, true, memory_order_release);
    pthread_mutex_unlock(&chars_lock);
    return true;
}
