/* SPDX-License-Identifier: Apache-2.0
 * Rendering: the machine's state, and what the files of core/template offer each other.
 * Private to core/template.
 *
 * An error leaves by longjmp to davit_template_render; between there and here nothing is
 * held but the arena. Functions that can fail never return then. Names of exceptions in
 * messages are Python's.
 */
#ifndef DAVIT_TEMPLATE_RUN_H
#define DAVIT_TEMPLATE_RUN_H

#include "template/ast.h"
#include "template/template.h"

/* Variables of a frame at work. */
typedef struct Scope {
    struct Scope *parent;
    const Frame *frame;
    Value *slots;
    Dict *context; /* where names come from that no frame defines */
} Scope;

typedef struct Macro {
    const Node *def;  /* N_MACRO, N_CALL_BLOCK or N_GENERATION */
    Scope *closure;
} Macro;

typedef enum FailKind {
    FAIL_RAISED,      /* Python would raise */
    FAIL_UNSUPPORTED, /* not had here */
    FAIL_LIMIT,
} FailKind;

typedef struct Vm {
    Arena arena;
    const DavitTemplate *t;
    Dict *context; /* variables and globals; with blocks also what is set outside all of them */
    Scope *root;   /* of the template's top level */
    Sb *out;       /* where output goes now */
    Sb *top;       /* the rendering itself */
    uint64_t steps, max_steps, max_output;
    uint32_t depth; /* nested evaluations */
    uint32_t calls; /* nested macros, callers, recursive loops */
    const Node *at; /* what is evaluated, for the record */
    DavitOutputSpan *spans;
    size_t n_spans, cap_spans;
    bool fixed_clock;
    int64_t now;
    struct davit_json_reader *reader; /* open while a variable is read */
    bool folding;   /* names and calls fail: only constants are looked for (fold.c) */
    uint64_t limit; /* of the arena while folding */
    jmp_buf full;   /* the arena is, while folding */
    jmp_buf fail;
    FailKind kind;
    char message[1024];
} Vm;

#define MAX_EVALS 2000u /* nested eval and exec: about 1 MiB of C stack */

G_NORETURN void tmpl_raise(Vm *vm, const char *format, ...) G_GNUC_PRINTF(2, 3);
G_NORETURN void tmpl_unsupported(Vm *vm, const char *format, ...) G_GNUC_PRINTF(2, 3);
G_NORETURN void tmpl_limit(Vm *vm, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Count @n units of work. */
void tmpl_step(Vm *vm, uint64_t n);
/* Nested values and calls: refuses the one past DAVIT_TEMPLATE_MAX_DEPTH. */
void tmpl_check_depth(Vm *vm, uint32_t depth);
/* Up to 60 bytes of @s for a message: ("%.*s", TMPL_SHOW(s)). */
#define TMPL_SHOW(s) (int)MIN((s)->n, 60), (s)->p

/* ---- arguments ---- */

typedef struct Args {
    Value *pos;
    size_t n;
    Str **names; /* of keywords */
    Value *values;
    size_t n_named;
} Args;

/* Positional and keyword arguments to @out, in the order of @names ("old new count?": a
 * question mark for what may be missing, V_MISSING then). @what names the callee. */
void tmpl_bind(Vm *vm, const Args *args, const char *what, const char *names, Value *out);
/* The keyword argument @name or V_MISSING. */
Value tmpl_keyword(const Args *args, const char *name);
void tmpl_no_keywords(Vm *vm, const Args *args, const char *what);
int64_t tmpl_need_int(Vm *vm, Value v, const char *what);
/* As Python takes an index: an integer beyond 64 bits counts as the largest one. */
int64_t tmpl_need_index(Vm *vm, Value v, const char *what);
Str *tmpl_need_str(Vm *vm, Value v, const char *what);

/* ---- evaluation (eval.c, exec.c, call.c) ---- */

Value tmpl_eval(Vm *vm, Scope *scope, const Node *node);
void tmpl_assign(Vm *vm, Scope *scope, const Node *target, Value value);
typedef enum Flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } Flow;
Flow tmpl_exec(Vm *vm, Scope *scope, const NodeList *list);
/* Output of @list alone. */
Str *tmpl_exec_caught(Vm *vm, Scope *scope, const NodeList *list);
Scope *tmpl_scope_new(Vm *vm, Scope *parent, const Frame *frame);
/* Start the frame's names anew: RESOLVE, ALIAS, MISSING. */
void tmpl_scope_enter(Vm *vm, Scope *scope);
void tmpl_args_of(Vm *vm, Scope *scope, const NodeList *list, Args *out);
Value tmpl_call(Vm *vm, Value callee, const Args *args);
Value tmpl_call_macro(Vm *vm, const Macro *macro, const Args *args);
/* A run of the recursive loop @node over @iterable; its output. */
Value tmpl_recurse(Vm *vm, Scope *scope, const Node *node, Value iterable, uint32_t depth0);
/* One run of a for loop over @iterable; @depth0 of recursion. */
Flow tmpl_exec_for(Vm *vm, Scope *scope, const Node *node, Value iterable, uint32_t depth0);

/* ---- values (ops.c, access.c, dict.c) ---- */

const char *tmpl_type_name(Value v); /* "str", "list", ... */
Value tmpl_undefined(Vm *vm, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* UndefinedError or SecurityError of an undefined value that is used. */
G_NORETURN void tmpl_raise_undefined(Vm *vm, Value v);
bool tmpl_truth(Vm *vm, Value v);
bool tmpl_equal(Vm *vm, Value a, Value b);
/* a op b for OP_LT, OP_LE, OP_GT, OP_GE. */
bool tmpl_ordered(Vm *vm, NodeOp op, Value a, Value b);
/* Stable, as Python sorts; raises TypeError where keys have no order. */
typedef struct Sorted {
    Value key, item;
} Sorted;
void tmpl_sort(Vm *vm, Sorted *items, size_t n, bool reverse);
bool tmpl_contains(Vm *vm, Value needle, Value in);
Value tmpl_binary(Vm *vm, NodeOp op, Value a, Value b);
Value tmpl_negate(Vm *vm, Value a, bool minus);
/* len(): raises TypeError. */
uint64_t tmpl_length(Vm *vm, Value v);
bool tmpl_has_length(Value v);
double tmpl_as_float(Vm *vm, Value v); /* of a number */
/* Any integer; tmpl_is_integer only one that tmpl_integer can give. */
static inline bool tmpl_is_integral(Value v)
{
    return v.type == V_BOOL || v.type == V_INT || v.type == V_BIG;
}
static inline bool tmpl_is_number(Value v)
{
    return tmpl_is_integral(v) || v.type == V_FLOAT;
}
static inline bool tmpl_is_integer(Value v)
{
    return v.type == V_BOOL || v.type == V_INT;
}
static inline int64_t tmpl_integer(Value v)
{
    return v.type == V_BOOL ? v.b : v.i;
}

/* environment.getitem and getattr of the sandbox. */
Value tmpl_item(Vm *vm, Value of, Value key);
Value tmpl_attr(Vm *vm, Value of, Str *name);
Value tmpl_slice(Vm *vm, Value of, Value start, Value stop, Value step);
/* tmpl_slice would raise no TypeError. */
bool tmpl_can_slice(Value of, Value start, Value stop, Value step);
Value tmpl_range_at(const Range *range, uint64_t index);

Dict *tmpl_dict_new(Vm *vm);
void tmpl_dict_set(Vm *vm, Dict *dict, Value key, Value value);
void tmpl_dict_set_text(Vm *vm, Dict *dict, const char *key, Value value);
/* NULL when absent. Raises TypeError for unhashable keys. */
Value *tmpl_dict_get(Vm *vm, const Dict *dict, Value key);
Value *tmpl_dict_get_str(Vm *vm, const Dict *dict, Str *key);
Dict *tmpl_dict_copy(Vm *vm, const Dict *dict);

/* ---- iteration (iter.c) ---- */

/* A position in something iterable. @next fills *out, or returns false at the end. */
typedef struct Iter {
    bool (*next)(Vm *vm, struct Iter *iter, Value *out);
    Value source;
    size_t at;
    struct Iter *inner; /* of a generator: what it draws from */
    void *state;        /* of a generator */
    bool ended;
} Iter;

/* False when @v cannot be iterated over. */
bool tmpl_try_iter(Vm *vm, Value v, Iter *out);
void tmpl_iter(Vm *vm, Value v, Iter *out); /* raises TypeError */
bool tmpl_next_value(Vm *vm, Iter *iter, Value *out);
List *tmpl_to_list(Vm *vm, Value v);        /* always a new list */
Value tmpl_generator(Vm *vm, bool (*next)(Vm *, Iter *, Value *), Value source, void *state);
Value tmpl_reversed(Vm *vm, Value v); /* V_MISSING when it has no order */

typedef struct Loop {
    const Node *node; /* N_FOR */
    Scope *scope;     /* in which the loop stands; for recursion */
    Iter iter;
    Value iterable;
    int64_t index0;
    int64_t length; /* -1 = not known yet */
    uint32_t depth0;
    bool has_after;
    Value after, current, before, changed;
    bool recursive;
} Loop;
bool tmpl_loop_next(Vm *vm, Loop *loop, Value *out);
Value tmpl_loop_attr(Vm *vm, Loop *loop, Str *name); /* V_MISSING = none */
uint64_t tmpl_loop_length(Vm *vm, Loop *loop);

/* ---- filters, tests, methods, globals ---- */

typedef Value FilterFn(Vm *vm, Value value, const Args *args);
FilterFn *tmpl_filter_find(const Str *name);
typedef bool TestFn(Vm *vm, Value value, const Args *args);
TestFn *tmpl_test_find(const Str *name);

typedef struct FilterRow {
    const char *name;
    FilterFn *fn;
} FilterRow;
extern const FilterRow tmpl_filters_text[], tmpl_filters_list[], tmpl_filters_number[],
    tmpl_filters_order[], tmpl_filters_html[], tmpl_filters_python[], tmpl_filters_wrap[],
    tmpl_filters_urlize[];

/* Is @name an attribute of @v's type in Python, and one that the sandbox allows? */
typedef enum AttrState { ATTR_NONE, ATTR_SAFE, ATTR_UNSAFE } AttrState;
AttrState tmpl_attr_state(Value v, const Str *name);
Value tmpl_call_method(Vm *vm, const Method *method, const Args *args);
Value tmpl_str_method(Vm *vm, Str *self, const Str *name, const Args *args); /* V_MISSING */

typedef struct Builtin {
    const char *name;
    Value (*fn)(Vm *vm, const Args *args);
} Builtin;
extern const Builtin tmpl_builtins[];

/* ---- formats (format.c, strftime.c) ---- */

Value tmpl_percent(Vm *vm, Str *format, Value arg);          /* str % arg */
Value tmpl_percent_args(Vm *vm, Str *format, const Args *args);
Value tmpl_brace_format(Vm *vm, Str *format, const Args *args); /* str.format */
/* datetime.strftime of @seconds since 1970, as UTC or local time. */
void tmpl_strftime(Vm *vm, Sb *out, const Str *format, int64_t seconds, bool utc,
                   uint32_t micros);

/* ---- input (input.c) ---- */

/* @var's JSON as a value. False with a record; vm->reader may be left open by a jump. */
bool tmpl_from_json(Vm *vm, const DavitTemplateVar *var, DavitReport *report, Value *out);

#endif
