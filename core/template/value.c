/* SPDX-License-Identifier: Apache-2.0
 * Memory, strings and lists of template values. Dicts need equality: dict.c. */
#include "template/value.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

/* Blocks grow from the first size to the second: small templates are many. */
#define FIRST_BYTES (4u << 10)
#define BLOCK_BYTES (64u << 10)

typedef struct ArenaBlock {
    struct ArenaBlock *before;
    size_t unused; /* keeps what follows aligned to 16 */
} ArenaBlock;

G_STATIC_ASSERT(sizeof(ArenaBlock) % 16 == 0);

static void add_block(Arena *arena, size_t n)
{
    const size_t usual = CLAMP(arena->total, FIRST_BYTES, BLOCK_BYTES);
    const size_t size = MAX(n, usual) + sizeof(ArenaBlock);
    ArenaBlock *block;

    if (arena->total > arena->limit || size > arena->limit - arena->total)
        longjmp(*arena->full, 1);
    block = g_try_malloc(size);
    if (!block)
        longjmp(*arena->full, 1);
    block->before = arena->block;
    arena->block = block;
    arena->used = sizeof(ArenaBlock);
    arena->size = size;
    arena->total += size;
}

void *tmpl_alloc(Arena *arena, size_t n)
{
    void *p;

    if (n > (SIZE_MAX >> 2))
        longjmp(*arena->full, 1);
    n = (n + 15) & ~(size_t)15;
    if (!arena->block || n > arena->size - arena->used)
        add_block(arena, n);
    p = (char *)arena->block + arena->used;
    arena->used += n;
    return memset(p, 0, n);
}

void *tmpl_alloc_n(Arena *arena, size_t size, size_t n)
{
    gsize bytes;

    if (!g_size_checked_mul(&bytes, size, n))
        longjmp(*arena->full, 1);
    return tmpl_alloc(arena, bytes);
}

void tmpl_arena_clear(Arena *arena)
{
    while (arena->block) {
        ArenaBlock *before = arena->block->before;

        g_free(arena->block);
        arena->block = before;
    }
    arena->total = arena->used = arena->size = 0;
}

/* ---- growing strings ---- */

static void sb_room(Sb *sb, size_t n)
{
    size_t cap;
    char *p;

    if (n <= sb->cap - sb->n)
        return;
    if (n > UINT32_MAX / 4 || sb->n + n > UINT32_MAX / 2)
        longjmp(*sb->arena->full, 1);
    cap = MAX(MAX(sb->cap * 2, sb->n + n), 32);
    p = tmpl_alloc(sb->arena, cap);
    if (sb->n)
        memcpy(p, sb->p, sb->n);
    if (sb->taint) {
        uint8_t *taint = tmpl_alloc(sb->arena, cap);

        memcpy(taint, sb->taint, sb->n);
        sb->taint = taint;
    }
    sb->p = p;
    sb->cap = cap;
}

void tmpl_sb_add(Sb *sb, const char *p, const uint8_t *taint, size_t n)
{
    if (n == 0)
        return;
    sb_room(sb, n);
    memcpy(sb->p + sb->n, p, n);
    if (taint && !sb->taint)
        sb->taint = tmpl_alloc(sb->arena, sb->cap);
    if (taint)
        memcpy(sb->taint + sb->n, taint, n);
    sb->n += n;
}

void tmpl_sb_add_str(Sb *sb, const Str *s)
{
    tmpl_sb_add(sb, s->p, s->taint, s->n);
}

void tmpl_sb_add_c(Sb *sb, char c)
{
    tmpl_sb_add(sb, &c, NULL, 1);
}

void tmpl_sb_add_text(Sb *sb, const char *text)
{
    tmpl_sb_add(sb, text, NULL, strlen(text));
}

void tmpl_sb_add_cp(Sb *sb, uint32_t cp, uint8_t taint)
{
    const uint8_t mask[6] = {taint, taint, taint, taint, taint, taint};
    char utf8[6];
    const int n = g_unichar_to_utf8(cp, utf8);

    tmpl_sb_add(sb, utf8, taint ? mask : NULL, (size_t)n);
}

Str *tmpl_sb_take(Sb *sb)
{
    return tmpl_str_borrow(sb->arena, sb->p, sb->taint, sb->n);
}

/* ---- strings ---- */

Str *tmpl_str_borrow(Arena *arena, const char *p, const uint8_t *taint, size_t n)
{
    Str *s = tmpl_new(arena, Str);

    if (n > UINT32_MAX / 2)
        longjmp(*arena->full, 1);
    *s = (Str){.p = p ? p : "", .taint = taint, .n = (uint32_t)n};
    return s;
}

Str *tmpl_str(Arena *arena, const char *p, size_t n)
{
    char *copy = tmpl_alloc(arena, n + 1);

    if (n)
        memcpy(copy, p, n);
    return tmpl_str_borrow(arena, copy, NULL, n);
}

Str *tmpl_str_part(Arena *arena, const Str *s, size_t start, size_t end)
{
    Str *part;

    end = MIN(end, s->n);
    start = MIN(start, end);
    part = tmpl_str_borrow(arena, s->p + start, s->taint ? s->taint + start : NULL,
                           end - start);
    part->markup = s->markup;
    return part;
}

bool tmpl_str_is(const Str *s, const char *text)
{
    const size_t n = strlen(text);

    return s->n == n && memcmp(s->p, text, n) == 0;
}

bool tmpl_str_equal(const Str *a, const Str *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

int tmpl_str_compare(const Str *a, const Str *b)
{
    const int c = memcmp(a->p, b->p, MIN(a->n, b->n));

    return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

size_t tmpl_str_chars(Str *s)
{
    if (s->n_chars == 0) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n; i++)
            n += (s->p[i] & 0xc0) != 0x80;
        s->n_chars = n + 1;
    }
    return s->n_chars - 1;
}

size_t tmpl_str_offset(Str *s, size_t index)
{
    size_t at = 0;

    if (tmpl_str_chars(s) == s->n)
        return MIN(index, s->n);
    for (; at < s->n; at++)
        if ((s->p[at] & 0xc0) != 0x80 && index-- == 0)
            break;
    return at;
}

uint32_t tmpl_str_cp(const Str *s, size_t at, uint32_t *out_len)
{
    const uint8_t c = (uint8_t)s->p[at];
    const uint32_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    *out_len = (uint32_t)MIN(len, s->n - at);
    if (len == 1 || *out_len < len)
        return c;
    return g_utf8_get_char(s->p + at);
}

int64_t tmpl_str_find(const Str *s, const Str *needle, size_t from)
{
    const char *hit;

    if (from > s->n || needle->n > s->n - from)
        return -1;
    if (needle->n == 0)
        return (int64_t)from;
    hit = memmem(s->p + from, s->n - from, needle->p, needle->n);
    return hit ? hit - s->p : -1;
}

int64_t tmpl_str_find_last(const Str *s, const Str *needle)
{
    if (needle->n > s->n)
        return -1;
    for (int64_t at = s->n - needle->n; at >= 0; at--)
        if (memcmp(s->p + at, needle->p, needle->n) == 0)
            return at;
    return -1;
}

Value tmpl_text(Arena *arena, const char *text)
{
    return tmpl_string(tmpl_str(arena, text, strlen(text)));
}

/* ---- lists ---- */

List *tmpl_list_new(Arena *arena, size_t cap)
{
    List *list = tmpl_new(arena, List);

    list->cap = cap;
    list->items = cap ? tmpl_new_n(arena, Value, cap) : NULL;
    return list;
}

void tmpl_list_add(Arena *arena, List *list, Value value)
{
    if (list->n == list->cap) {
        const size_t cap = MAX(list->cap * 2, 8);
        Value *items = tmpl_new_n(arena, Value, cap);

        if (list->n)
            memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = value;
}

Value tmpl_pair(Arena *arena, Value a, Value b)
{
    List *list = tmpl_list_new(arena, 2);

    tmpl_list_add(arena, list, a);
    tmpl_list_add(arena, list, b);
    return tmpl_tuple_value(list);
}
