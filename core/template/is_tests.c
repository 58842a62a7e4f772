/* SPDX-License-Identifier: Apache-2.0
 * Jinja tests: "x is name". Source: jinja2 3.1.6 tests.py. */
#include "template/text.h"

#include <string.h>

static void none(Vm *vm, const Args *args)
{
    tmpl_bind(vm, args, "the test", "", NULL);
}

static Value one(Vm *vm, const Args *args)
{
    Value v;

    tmpl_no_keywords(vm, args, "the test");
    tmpl_bind(vm, args, "the test", "value", &v);
    return v;
}

static bool is_defined(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type != V_UNDEFINED;
}

static bool is_undefined(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_UNDEFINED;
}

static bool is_none(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_NONE;
}

static bool is_boolean(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_BOOL;
}

static bool is_true(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_BOOL && v.b;
}

static bool is_false(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_BOOL && !v.b;
}

static bool is_integer(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_INT || v.type == V_BIG;
}

static bool is_float(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_FLOAT;
}

static bool is_number(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return tmpl_is_number(v);
}

static bool is_string(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_STR;
}

static bool is_mapping(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_DICT;
}

/* Has a length and __getitem__: an undefined value has both. */
static bool is_sequence(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_STR || v.type == V_LIST || v.type == V_TUPLE || v.type == V_DICT ||
           v.type == V_RANGE || v.type == V_UNDEFINED;
}

static bool is_iterable(Vm *vm, Value v, const Args *args)
{
    Iter iter;

    none(vm, args);
    return tmpl_try_iter(vm, v, &iter);
}

static bool is_callable(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_MACRO || v.type == V_METHOD || v.type == V_BUILTIN || v.type == V_LOOP ||
           v.type == V_JOINER || v.type == V_UNDEFINED;
}

static bool is_escaped(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return v.type == V_STR && v.s->markup;
}

static bool is_lower(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return tmpl_str_method(vm, tmpl_to_str(vm, v), tmpl_str(&vm->arena, "islower", 7),
                           &(Args){0})
        .b;
}

static bool is_upper(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return tmpl_str_method(vm, tmpl_to_str(vm, v), tmpl_str(&vm->arena, "isupper", 7),
                           &(Args){0})
        .b;
}

static bool rest_is(Vm *vm, Value v, Value by, int64_t rest)
{
    return tmpl_equal(vm, tmpl_binary(vm, OP_MOD, v, by), tmpl_int(rest));
}

static bool is_odd(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return rest_is(vm, v, tmpl_int(2), 1);
}

static bool is_even(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    return rest_is(vm, v, tmpl_int(2), 0);
}

static bool is_divisible(Vm *vm, Value v, const Args *args)
{
    Value by;

    tmpl_bind(vm, args, "divisibleby", "num", &by);
    return rest_is(vm, v, by, 0);
}

static bool is_equal(Vm *vm, Value v, const Args *args)
{
    return tmpl_equal(vm, v, one(vm, args));
}

static bool is_not_equal(Vm *vm, Value v, const Args *args)
{
    return !tmpl_equal(vm, v, one(vm, args));
}

static bool is_less(Vm *vm, Value v, const Args *args)
{
    return tmpl_ordered(vm, OP_LT, v, one(vm, args));
}

static bool is_at_most(Vm *vm, Value v, const Args *args)
{
    return tmpl_ordered(vm, OP_LE, v, one(vm, args));
}

static bool is_greater(Vm *vm, Value v, const Args *args)
{
    return tmpl_ordered(vm, OP_GT, v, one(vm, args));
}

static bool is_at_least(Vm *vm, Value v, const Args *args)
{
    return tmpl_ordered(vm, OP_GE, v, one(vm, args));
}

static bool is_in(Vm *vm, Value v, const Args *args)
{
    Value seq;

    tmpl_bind(vm, args, "in", "seq", &seq);
    return tmpl_contains(vm, v, seq);
}

/* Identity: certain for the singletons and for objects; whether two equal numbers or texts
 * are one object is CPython's business. */
static bool is_same(Vm *vm, Value v, const Args *args)
{
    Value other;

    tmpl_bind(vm, args, "sameas", "other", &other);
    if (v.type != other.type)
        return false;
    switch (v.type) {
    case V_NONE:
        return true;
    case V_BOOL:
        return v.b == other.b;
    case V_LIST:
    case V_DICT:
    case V_NAMESPACE:
    case V_MACRO:
    case V_LOOP:
        return v.list == other.list;
    default:
        tmpl_unsupported(vm, "sameas of two of type %s", tmpl_type_name(v));
    }
}

/* A name to look up in a table: what cannot be hashed raises there. */
static void check_hashable(Vm *vm, Value v, uint32_t depth)
{
    tmpl_check_depth(vm, depth);
    if (v.type == V_LIST || v.type == V_DICT)
        tmpl_raise(vm, "TypeError: unhashable type: '%s'", tmpl_type_name(v));
    for (size_t i = 0; v.type == V_TUPLE && i < v.list->n; i++)
        check_hashable(vm, v.list->items[i], depth + 1);
}

static bool is_filter(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    check_hashable(vm, v, 0);
    return v.type == V_STR && tmpl_filter_find(v.s) != NULL;
}

static bool is_test(Vm *vm, Value v, const Args *args)
{
    none(vm, args);
    check_hashable(vm, v, 0);
    return v.type == V_STR && tmpl_test_find(v.s) != NULL;
}

static const struct {
    const char *name;
    TestFn *fn;
} tests[] = {
    {"defined", is_defined},
    {"string", is_string},
    {"none", is_none},
    {"mapping", is_mapping},
    {"iterable", is_iterable},
    {"sequence", is_sequence},
    {"boolean", is_boolean},
    {"false", is_false},
    {"true", is_true},
    {"undefined", is_undefined},
    {"number", is_number},
    {"integer", is_integer},
    {"float", is_float},
    {"in", is_in},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"==", is_equal},
    {"ne", is_not_equal},
    {"!=", is_not_equal},
    {"lt", is_less},
    {"lessthan", is_less},
    {"<", is_less},
    {"le", is_at_most},
    {"<=", is_at_most},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {">", is_greater},
    {"ge", is_at_least},
    {">=", is_at_least},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible},
    {"callable", is_callable},
    {"escaped", is_escaped},
    {"lower", is_lower},
    {"upper", is_upper},
    {"sameas", is_same},
    {"filter", is_filter},
    {"test", is_test},
};

TestFn *tmpl_test_find(const Str *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        if (tmpl_str_is(name, tests[i].name))
            return tests[i].fn;
    return NULL;
}
