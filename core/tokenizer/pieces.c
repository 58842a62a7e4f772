/* SPDX-License-Identifier: Apache-2.0
 * Building the double array: nodes in the order of sorted keys, each with the first base
 * that fits. Only the youngest blocks are searched, so the work stays linear.
 */
#include "tokenizer/pieces.h"

#include <stdlib.h>
#include <string.h>

#include <glib.h>

#define BLOCK       256u
#define OPEN_BLOCKS 16u /* blocks whose free units are still looked at */
#define MAX_UNITS   (1u << 24)
#define NIL         UINT32_MAX

/* Keys [low, high) share their first @depth bytes and hang below @unit (NIL = root). */
typedef struct Range {
    size_t low, high;
    uint32_t depth, unit;
} Range;

/* Neighbours in the ring of free units. */
typedef struct Free {
    uint32_t prev, next;
} Free;

typedef struct Builder {
    DavitPieces *out;
    const DavitPieceKey *keys;
    Free *free;        /* by unit */
    uint8_t *is_base;  /* by unit */
    uint32_t cap;      /* units there is room for */
    uint32_t first;    /* a free unit of the ring, NIL = none */
    GArray *stack;     /* Range */
    uint8_t labels[BLOCK];
    uint32_t n_labels;
} Builder;

DavitPieceKey davit_piece_key(const char *text, size_t len, int32_t id)
{
    DavitPieceKey key = {0, text, (uint32_t)len, id};

    for (size_t i = 0; i < 8; i++)
        key.head = key.head << 8 | (i < len ? (uint8_t)text[i] : 0);
    return key;
}

static int by_text(const void *a, const void *b)
{
    const DavitPieceKey *x = a, *y = b;
    int order;

    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    order = memcmp(x->text, y->text, MIN(x->len, y->len));
    if (order != 0)
        return order;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* ---- free units ---- */

static void unlink_unit(Builder *b, uint32_t at)
{
    Free *f = &b->free[at];

    if (f->next == at) {
        b->first = NIL;
        return;
    }
    b->free[f->prev].next = f->next;
    b->free[f->next].prev = f->prev;
    if (b->first == at)
        b->first = f->next;
}

static void link_unit(Builder *b, uint32_t at)
{
    if (b->first == NIL) {
        b->free[at] = (Free){at, at};
        b->first = at;
        return;
    }
    b->free[at] = (Free){b->free[b->first].prev, b->first};
    b->free[b->free[at].prev].next = at;
    b->free[b->first].prev = at;
}

static bool grow(Builder *b, uint32_t need)
{
    uint32_t cap = b->cap ? b->cap : 2 * BLOCK;
    DavitPieceUnit *units;
    Free *free_units;
    uint8_t *is_base;

    if (need > MAX_UNITS)
        return false;
    if (need <= b->cap)
        return true;
    while (cap < need)
        cap *= 2;
    units = g_try_renew(DavitPieceUnit, b->out->units, cap);
    if (units)
        b->out->units = units;
    free_units = g_try_renew(Free, b->free, cap);
    if (free_units)
        b->free = free_units;
    is_base = g_try_renew(uint8_t, b->is_base, cap);
    if (is_base)
        b->is_base = is_base;
    if (!units || !free_units || !is_base)
        return false;
    b->cap = cap;
    return true;
}

/* A fresh block; the one that is too old by now is closed. @owned: block 0 is nobody's. */
static bool add_block(Builder *b, bool owned)
{
    const uint32_t from = b->out->n_units;

    if (!grow(b, from + BLOCK))
        return false;
    for (uint32_t at = from; at < from + BLOCK; at++) {
        /* Any label will do: who asks for it here gets the id that says "no child". */
        b->out->units[at] = (DavitPieceUnit){1, DAVIT_PIECE_UNUSED};
        b->is_base[at] = 0;
        if (owned)
            link_unit(b, at);
    }
    b->out->n_units = from + BLOCK;
    if (from >= (OPEN_BLOCKS + 1) * BLOCK) {
        const uint32_t old = from - OPEN_BLOCKS * BLOCK;

        for (uint32_t at = old; at < old + BLOCK; at++) {
            if (b->out->units[at].id == DAVIT_PIECE_UNUSED)
                unlink_unit(b, at);
        }
    }
    return true;
}

static bool fits(const Builder *b, uint32_t base)
{
    if (base < BLOCK || b->is_base[base])
        return false;
    for (uint32_t i = 0; i < b->n_labels; i++) {
        if (b->out->units[base ^ b->labels[i]].id != DAVIT_PIECE_UNUSED)
            return false;
    }
    return true;
}

/* A base for the labels; 0 when memory is gone. */
static uint32_t find_base(Builder *b)
{
    uint32_t at = b->first;

    if (at != NIL) {
        do {
            const uint32_t base = at ^ b->labels[0];

            if (fits(b, base))
                return base;
            at = b->free[at].next;
        } while (at != b->first);
    }
    at = b->out->n_units;
    return add_block(b, true) ? at : 0;
}

/* ---- nodes ---- */

/* Split the range by the byte at its depth, giving its node children. */
static bool split(Builder *b, Range range)
{
    const DavitPieceKey *keys = b->keys;
    size_t starts[BLOCK];
    uint32_t base;

    b->n_labels = 0;
    for (size_t i = range.low; i < range.high; i++) {
        if (keys[i].len == range.depth) {
            if (range.unit != NIL)
                b->out->units[range.unit].id = keys[i].id;
            continue;
        }
        const uint8_t label = (uint8_t)keys[i].text[range.depth];

        if (b->n_labels == 0 || b->labels[b->n_labels - 1] != label) {
            starts[b->n_labels] = i;
            b->labels[b->n_labels++] = label;
        }
    }
    if (b->n_labels == 0)
        return true;
    base = find_base(b);
    if (base == 0)
        return false;
    b->is_base[base] = 1;
    if (range.unit == NIL)
        b->out->root = base;
    else
        b->out->units[range.unit].link |= base << 8;
    for (uint32_t i = 0; i < b->n_labels; i++) {
        const uint32_t at = base ^ b->labels[i];
        const Range child = {starts[i], i + 1 < b->n_labels ? starts[i + 1] : range.high,
                             range.depth + 1, at};

        unlink_unit(b, at);
        b->out->units[at] = (DavitPieceUnit){b->labels[i], DAVIT_PIECE_NONE};
        g_array_append_val(b->stack, child);
    }
    return true;
}

DavitPiecesMade davit_pieces_build(DavitPieces *out, DavitPieceKey *keys, size_t n)
{
    Builder b = {.out = out, .keys = keys, .first = NIL};
    Range range = {0, n, 0, NIL};
    bool good;

    for (size_t i = 0; i < n; i++) {
        if (keys[i].len > DAVIT_PIECE_MAX_LEN)
            return DAVIT_PIECES_LONG;
        out->max_len = MAX(out->max_len, keys[i].len);
    }
    qsort(keys, n, sizeof *keys, by_text);
    b.stack = g_array_new(FALSE, FALSE, sizeof(Range));
    good = add_block(&b, false) && add_block(&b, true);
    g_array_append_val(b.stack, range);
    while (good && b.stack->len > 0) {
        range = g_array_index(b.stack, Range, b.stack->len - 1);
        g_array_set_size(b.stack, b.stack->len - 1);
        good = split(&b, range);
    }
    g_array_free(b.stack, TRUE);
    g_free(b.free);
    g_free(b.is_base);
    return good ? DAVIT_PIECES_MADE : DAVIT_PIECES_MEMORY;
}

DavitPiecesMade davit_pieces_of_vocab(DavitPieces *out, const DavitVocab *vocab,
                                      const uint8_t *skip)
{
    const size_t n_ids = davit_vocab_n_ids(vocab);
    g_autofree DavitPieceKey *keys = g_try_new(DavitPieceKey, n_ids + 1);
    size_t n = 0;

    if (!keys)
        return DAVIT_PIECES_MEMORY;
    for (size_t id = 0; id < n_ids; id++) {
        size_t len = 0;
        const char *text = davit_vocab_text(vocab, (int64_t)id, &len);

        if (text && len > 0 && !(skip && skip[id]))
            keys[n++] = davit_piece_key(text, len, (int32_t)id);
    }
    return davit_pieces_build(out, keys, n);
}

void davit_pieces_clear(DavitPieces *pieces)
{
    g_free(pieces->units);
    *pieces = (DavitPieces){0};
}

int32_t davit_pieces_longest(const DavitPieces *pieces, const char *text, size_t len,
                             size_t *out_len)
{
    uint32_t base = pieces->root;
    int32_t best = DAVIT_PIECE_NONE;

    *out_len = 0;
    for (size_t i = 0; i < len; i++) {
        const int32_t id = davit_pieces_step(pieces, &base, text[i]);

        if (id == DAVIT_PIECE_UNUSED)
            break;
        if (id >= 0) {
            best = id;
            *out_len = i + 1;
        }
    }
    return best;
}
