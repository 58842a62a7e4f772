/* SPDX-License-Identifier: Apache-2.0
 * Values of a template: Python's, as far as templates can hold them, in an arena.
 *
 * Values are immutable once another value can see them, but namespaces, loops, iterators,
 * cyclers and joiners. Nothing here frees: a whole arena goes at once. Strings carry, per
 * byte, whether they came from an input that is not trusted. Private to core/template.
 */
#ifndef DAVIT_TEMPLATE_VALUE_H
#define DAVIT_TEMPLATE_VALUE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* ---- memory ---- */

/* Blocks that are freed together. Going past @limit, or out of memory, jumps to *@full. */
typedef struct Arena {
    struct ArenaBlock *block;
    size_t used, size; /* of the newest block */
    uint64_t total, limit;
    jmp_buf *full;
} Arena;

/* (owned by the arena) @n bytes, zeroed, aligned to 16. */
void *tmpl_alloc(Arena *arena, size_t n);
void tmpl_arena_clear(Arena *arena);
#define tmpl_new(arena, type)         ((type *)tmpl_alloc((arena), sizeof(type)))
#define tmpl_new_n(arena, type, n)    ((type *)tmpl_alloc_n((arena), sizeof(type), (n)))
void *tmpl_alloc_n(Arena *arena, size_t size, size_t n);

/* ---- strings ---- */

typedef struct Str {
    const char *p;          /* UTF-8, not NUL-terminated */
    const uint8_t *taint;   /* n bytes, 1 = not trusted; NULL = all trusted */
    uint32_t n;             /* bytes */
    uint32_t n_chars;       /* code points + 1; 0 = not counted yet */
    bool markup;            /* jinja's Markup: | safe and | escape give it */
} Str;

/* A string that grows. Zeroed with an arena set = empty. */
typedef struct Sb {
    Arena *arena;
    char *p;
    uint8_t *taint; /* cap bytes, or NULL while all is trusted */
    size_t n, cap;
} Sb;

void tmpl_sb_add(Sb *sb, const char *p, const uint8_t *taint, size_t n);
void tmpl_sb_add_str(Sb *sb, const Str *s);
void tmpl_sb_add_c(Sb *sb, char c);
void tmpl_sb_add_text(Sb *sb, const char *text);  /* trusted */
/* @cp in UTF-8; @taint as one byte's. */
void tmpl_sb_add_cp(Sb *sb, uint32_t cp, uint8_t taint);
Str *tmpl_sb_take(Sb *sb);

Str *tmpl_str(Arena *arena, const char *p, size_t n); /* copied, trusted */
Str *tmpl_str_borrow(Arena *arena, const char *p, const uint8_t *taint, size_t n);
Str *tmpl_str_part(Arena *arena, const Str *s, size_t start, size_t end); /* bytes */
bool tmpl_str_is(const Str *s, const char *text);
bool tmpl_str_equal(const Str *a, const Str *b);
int tmpl_str_compare(const Str *a, const Str *b);
size_t tmpl_str_chars(Str *s);                  /* code points */
size_t tmpl_str_offset(Str *s, size_t index);   /* byte of code point @index <= chars */
/* Code point at byte @at, *out_len its bytes. Strings are valid UTF-8. */
uint32_t tmpl_str_cp(const Str *s, size_t at, uint32_t *out_len);
/* First place of @needle at or after byte @from, or -1. Empty needles match at once. */
int64_t tmpl_str_find(const Str *s, const Str *needle, size_t from);
int64_t tmpl_str_find_last(const Str *s, const Str *needle);

/* ---- values ---- */

typedef enum ValueType {
    V_MISSING, /* no value at all: an absent argument, an unset name */
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_BIG, /* an integer that V_INT cannot hold */
    V_FLOAT,
    V_STR,
    V_LIST,
    V_TUPLE,
    V_DICT,
    V_RANGE,
    V_VIEW,  /* keys(), values() or items() of a dict */
    V_ITER,  /* Python's generators and reversed() */
    V_NAMESPACE,
    V_MACRO,
    V_METHOD,  /* bound: value.name */
    V_BUILTIN, /* a global function */
    V_LOOP,
    V_CYCLER,
    V_JOINER,
} ValueType;

typedef struct Value Value;
typedef struct List List;
typedef struct Dict Dict;
typedef struct Big Big;

typedef struct Undefined {
    const char *message; /* "'x' is undefined" */
    bool unsafe;         /* the sandbox forbids what was asked for */
} Undefined;

typedef struct Range {
    int64_t start, stop, step;
    uint64_t n;
} Range;

struct Value {
    uint8_t type; /* ValueType */
    union {
        bool b;
        int64_t i;
        double f;
        Big *big;
        Str *s;
        List *list;
        Dict *dict;
        Range *range;
        Undefined *undefined; /* may be NULL */
        struct View *view;
        struct Iter *iter;
        struct Namespace *ns;
        struct Macro *macro;
        struct Method *method;
        const struct Builtin *builtin;
        struct Loop *loop;
        struct Cycler *cycler;
        struct Joiner *joiner;
    };
};

struct List {
    Value *items;
    size_t n, cap;
    bool group; /* tuple of groupby: .grouper and .list */
};

typedef struct DictEntry {
    Value key, value;
    uint32_t hash;
} DictEntry;

/* In insertion order. */
struct Dict {
    DictEntry *entries;
    size_t n, cap;
    uint32_t *index; /* n_index slots of entry + 1; NULL below 9 entries */
    size_t n_index;
};

typedef enum ViewKind { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS } ViewKind;
typedef struct View {
    ViewKind kind;
    Dict *dict;
} View;

typedef struct Namespace {
    Dict *dict;
} Namespace;

typedef struct Method {
    Value self;
    Str *name;
} Method;

typedef struct Cycler {
    List *items;
    size_t at;
} Cycler;

typedef struct Joiner {
    Value separator;
    bool used;
} Joiner;

static inline Value tmpl_none(void)
{
    return (Value){.type = V_NONE};
}
static inline Value tmpl_missing(void)
{
    return (Value){.type = V_MISSING};
}
static inline Value tmpl_bool(bool b)
{
    return (Value){.type = V_BOOL, .b = b};
}
static inline Value tmpl_int(int64_t i)
{
    return (Value){.type = V_INT, .i = i};
}
static inline Value tmpl_float(double f)
{
    return (Value){.type = V_FLOAT, .f = f};
}
static inline Value tmpl_string(Str *s)
{
    return (Value){.type = V_STR, .s = s};
}
static inline Value tmpl_list_value(List *list)
{
    return (Value){.type = V_LIST, .list = list};
}
static inline Value tmpl_tuple_value(List *list)
{
    return (Value){.type = V_TUPLE, .list = list};
}
static inline Value tmpl_dict_value(Dict *dict)
{
    return (Value){.type = V_DICT, .dict = dict};
}
Value tmpl_text(Arena *arena, const char *text); /* a string value, copied */

List *tmpl_list_new(Arena *arena, size_t cap);
void tmpl_list_add(Arena *arena, List *list, Value value);
Value tmpl_pair(Arena *arena, Value a, Value b); /* a tuple of two */

#endif
