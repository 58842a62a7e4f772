/* SPDX-License-Identifier: Apache-2.0
 * Operators: truth, equality, order, sorting, membership. Arithmetic is arith.c. */
#include "template/bigint.h"

#include <math.h>
#include <string.h>

const char *tmpl_type_name(Value v)
{
    static const char *const names[] = {
        [V_MISSING] = "nothing",      [V_UNDEFINED] = "Undefined", [V_NONE] = "NoneType",
        [V_BOOL] = "bool",            [V_INT] = "int",             [V_FLOAT] = "float",
        [V_BIG] = "int",
        [V_STR] = "str",              [V_LIST] = "list",           [V_TUPLE] = "tuple",
        [V_DICT] = "dict",            [V_RANGE] = "range",         [V_VIEW] = "dict view",
        [V_ITER] = "generator",       [V_NAMESPACE] = "Namespace", [V_MACRO] = "Macro",
        [V_METHOD] = "method",        [V_BUILTIN] = "function",    [V_LOOP] = "LoopContext",
        [V_CYCLER] = "Cycler",        [V_JOINER] = "Joiner"};

    return names[v.type];
}

bool tmpl_truth(Vm *vm, Value v)
{
    switch (v.type) {
    case V_MISSING:
    case V_UNDEFINED:
    case V_NONE:
        return false;
    case V_BOOL:
        return v.b;
    case V_INT:
        return v.i != 0;
    case V_BIG:
        return true;
    case V_FLOAT:
        return v.f != 0;
    default:
        return !tmpl_has_length(v) || tmpl_length(vm, v) != 0;
    }
}

bool tmpl_has_length(Value v)
{
    switch (v.type) {
    case V_UNDEFINED:
    case V_STR:
    case V_LIST:
    case V_TUPLE:
    case V_DICT:
    case V_RANGE:
    case V_VIEW:
    case V_LOOP:
        return true;
    default:
        return false;
    }
}

uint64_t tmpl_length(Vm *vm, Value v)
{
    switch (v.type) {
    case V_UNDEFINED:
        return 0;
    case V_STR:
        return tmpl_str_chars(v.s);
    case V_LIST:
    case V_TUPLE:
        return v.list->n;
    case V_DICT:
        return v.dict->n;
    case V_RANGE:
        return v.range->n;
    case V_VIEW:
        return v.view->dict->n;
    case V_LOOP:
        return tmpl_loop_length(vm, v.loop);
    default:
        tmpl_raise(vm, "TypeError: object of type '%s' has no len()", tmpl_type_name(v));
    }
}

/* ---- equality ---- */

/* -1, 0, 1; 2 when one is not a number. Exact, whatever the sizes. */
static int compare_numbers(Value a, Value b)
{
    if (tmpl_is_integer(a) && tmpl_is_integer(b)) {
        const int64_t x = tmpl_integer(a), y = tmpl_integer(b);

        return x < y ? -1 : x > y;
    }
    if (a.type != V_FLOAT && b.type != V_FLOAT)
        return tmpl_big_compare(a, b);
    if (a.type != V_FLOAT)
        return tmpl_big_compare_float(a, b.f);
    if (b.type != V_FLOAT) {
        const int c = tmpl_big_compare_float(b, a.f);

        return c == 2 ? 2 : -c;
    }
    if (isnan(a.f) || isnan(b.f))
        return 2;
    return a.f < b.f ? -1 : a.f > b.f;
}

static bool equal(Vm *vm, Value a, Value b, uint32_t depth);

static bool equal_lists(Vm *vm, const List *a, const List *b, uint32_t depth)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!equal(vm, a->items[i], b->items[i], depth + 1))
            return false;
    return true;
}

static bool equal_dicts(Vm *vm, const Dict *a, const Dict *b, uint32_t depth)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const Value *other = tmpl_dict_get(vm, b, a->entries[i].key);

        if (!other || !equal(vm, a->entries[i].value, *other, depth + 1))
            return false;
    }
    return true;
}

static bool equal_ranges(const Range *a, const Range *b)
{
    if (a->n != b->n || a->n == 0)
        return a->n == b->n;
    return a->start == b->start && (a->n == 1 || a->step == b->step);
}

static bool equal(Vm *vm, Value a, Value b, uint32_t depth)
{
    tmpl_check_depth(vm, depth);
    tmpl_step(vm, 1);
    if (tmpl_is_number(a) && tmpl_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case V_UNDEFINED:
    case V_NONE:
        return true;
    case V_STR:
        return tmpl_str_equal(a.s, b.s);
    case V_LIST:
    case V_TUPLE:
        return equal_lists(vm, a.list, b.list, depth);
    case V_DICT:
        return equal_dicts(vm, a.dict, b.dict, depth);
    case V_RANGE:
        return equal_ranges(a.range, b.range);
    case V_VIEW:
    case V_METHOD:
        tmpl_unsupported(vm, "comparing two of type %s", tmpl_type_name(a));
    default:
        return a.list == b.list; /* the same object */
    }
}

bool tmpl_equal(Vm *vm, Value a, Value b)
{
    return equal(vm, a, b, 0);
}

/* ---- order ---- */

static const char *op_text(NodeOp op)
{
    return op == OP_LT ? "<" : op == OP_LE ? "<=" : op == OP_GT ? ">" : ">=";
}

static bool holds(NodeOp op, int c)
{
    return op == OP_LT ? c < 0 : op == OP_LE ? c <= 0 : op == OP_GT ? c > 0 : c >= 0;
}

static bool ordered(Vm *vm, NodeOp op, Value a, Value b, uint32_t depth)
{
    tmpl_check_depth(vm, depth);
    tmpl_step(vm, 1);
    if (tmpl_is_number(a) && tmpl_is_number(b)) {
        const int c = compare_numbers(a, b);

        return c != 2 && holds(op, c);
    }
    if (a.type == V_UNDEFINED || b.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, a.type == V_UNDEFINED ? a : b);
    if (a.type == b.type && a.type == V_STR)
        return holds(op, tmpl_str_compare(a.s, b.s));
    if (a.type == b.type && (a.type == V_LIST || a.type == V_TUPLE)) {
        for (size_t i = 0; i < MIN(a.list->n, b.list->n); i++)
            if (!equal(vm, a.list->items[i], b.list->items[i], depth + 1))
                return ordered(vm, op, a.list->items[i], b.list->items[i], depth + 1);
        return holds(op, a.list->n < b.list->n ? -1 : a.list->n > b.list->n);
    }
    if (a.type == V_VIEW && b.type == V_VIEW)
        tmpl_unsupported(vm, "comparing two of type %s", tmpl_type_name(a));
    tmpl_raise(vm, "TypeError: '%s' not supported between instances of '%s' and '%s'",
               op_text(op), tmpl_type_name(a), tmpl_type_name(b));
}

bool tmpl_ordered(Vm *vm, NodeOp op, Value a, Value b)
{
    return ordered(vm, op, a, b, 0);
}

/* Merge the sorted halves of @items through @spare. */
static void merge(Vm *vm, Sorted *items, Sorted *spare, size_t half, size_t n, bool reverse)
{
    size_t left = 0, right = half;

    memcpy(spare, items, n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        bool take_right = left >= half;

        if (left < half && right < n)
            take_right = reverse ? tmpl_ordered(vm, OP_LT, spare[left].key, spare[right].key)
                                 : tmpl_ordered(vm, OP_LT, spare[right].key, spare[left].key);
        items[i] = take_right ? spare[right++] : spare[left++];
    }
}

void tmpl_sort(Vm *vm, Sorted *items, size_t n, bool reverse)
{
    Sorted *spare = tmpl_new_n(&vm->arena, Sorted, MAX(n, 1));

    for (size_t width = 1; width < n; width *= 2)
        for (size_t at = 0; at + width < n; at += 2 * width)
            merge(vm, items + at, spare, width, MIN(2 * width, n - at), reverse);
}

/* ---- membership ---- */

static bool is_same(Vm *vm, Value a, Value b)
{
    if (a.type == V_FLOAT && b.type == V_FLOAT && isnan(a.f) && isnan(b.f))
        return memcmp(&a.f, &b.f, sizeof a.f) == 0; /* identity comes before equality */
    return tmpl_equal(vm, a, b);
}

static bool in_view(Vm *vm, Value needle, const View *view)
{
    if (view->kind == VIEW_KEYS)
        return tmpl_dict_get(vm, view->dict, needle) != NULL;
    for (size_t i = 0; i < view->dict->n; i++) {
        const DictEntry *entry = &view->dict->entries[i];
        const Value item = view->kind == VIEW_VALUES
                               ? entry->value
                               : tmpl_pair(&vm->arena, entry->key, entry->value);

        if (is_same(vm, needle, item))
            return true;
    }
    return false;
}

bool tmpl_contains(Vm *vm, Value needle, Value in)
{
    Iter iter;
    Value item;

    switch (in.type) {
    case V_STR:
        if (needle.type != V_STR)
            tmpl_raise(vm, "TypeError: 'in <string>' requires string as left operand, not %s",
                       tmpl_type_name(needle));
        tmpl_step(vm, in.s->n / 64);
        return tmpl_str_find(in.s, needle.s, 0) >= 0;
    case V_DICT:
        return tmpl_dict_get(vm, in.dict, needle) != NULL;
    case V_VIEW:
        return in_view(vm, needle, in.view);
    default:
        break;
    }
    if (!tmpl_try_iter(vm, in, &iter))
        tmpl_raise(vm, "TypeError: argument of type '%s' is not iterable",
                   tmpl_type_name(in));
    while (tmpl_next_value(vm, &iter, &item))
        if (is_same(vm, needle, item))
            return true;
    return false;
}
