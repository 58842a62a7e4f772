/* SPDX-License-Identifier: Apache-2.0
 * Arithmetic as Python does it. Integers beyond 64 bits are bigint.c's. */
#include "template/bigint.h"
#include "template/text.h"

#include <math.h>
#include <string.h>

static const char *op_name(NodeOp op)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

    return names[op];
}

double tmpl_as_float(Vm *vm, Value v)
{
    if (v.type == V_FLOAT)
        return v.f;
    if (tmpl_is_integer(v))
        return (double)tmpl_integer(v);
    if (v.type != V_BIG)
        tmpl_raise(vm, "TypeError: must be real number, not %s", tmpl_type_name(v));
    const double f = tmpl_big_to_float(v);
    if (isinf(f))
        tmpl_raise(vm, "OverflowError: int too large to convert to float");
    return f;
}

/* ---- integers ---- */

static Value power_float(Vm *vm, double a, double b);

static Value divide_int(Vm *vm, NodeOp op, Value a, Value b)
{
    const int64_t exact = (int64_t)1 << 53;

    if (!tmpl_truth(vm, b))
        tmpl_raise(vm, op == OP_DIV ? "ZeroDivisionError: division by zero"
                                    : "ZeroDivisionError: integer division or modulo by zero");
    if (a.type == V_BIG || b.type == V_BIG || (a.type == V_INT && a.i == INT64_MIN))
        return op == OP_DIV ? tmpl_float(tmpl_big_ratio(vm, a, b)) : tmpl_big_binary(vm, op, a, b);
    const int64_t x = tmpl_integer(a), y = tmpl_integer(b);
    if (op == OP_DIV)
        return tmpl_float(x > exact || x < -exact || y > exact || y < -exact
                              ? tmpl_big_ratio(vm, a, b)
                              : (double)x / (double)y);
    const int64_t rest = x % y;
    const bool down = rest != 0 && (rest < 0) != (y < 0);
    return tmpl_int(op == OP_MOD ? rest + (down ? y : 0) : x / y - down);
}

static Value integers(Vm *vm, NodeOp op, Value a, Value b)
{
    const bool small = tmpl_is_integer(a) && tmpl_is_integer(b);
    const int64_t x = small ? tmpl_integer(a) : 0, y = small ? tmpl_integer(b) : 0;
    int64_t r;

    switch (op) {
    case OP_ADD:
        return small && !__builtin_add_overflow(x, y, &r) ? tmpl_int(r)
                                                          : tmpl_big_binary(vm, op, a, b);
    case OP_SUB:
        return small && !__builtin_sub_overflow(x, y, &r) ? tmpl_int(r)
                                                          : tmpl_big_binary(vm, op, a, b);
    case OP_MUL:
        return small && !__builtin_mul_overflow(x, y, &r) ? tmpl_int(r)
                                                          : tmpl_big_binary(vm, op, a, b);
    case OP_POW:
        if (!tmpl_is_negative(b))
            return tmpl_big_binary(vm, op, a, b);
        return power_float(vm, tmpl_as_float(vm, a), tmpl_as_float(vm, b));
    default:
        return divide_int(vm, op, a, b);
    }
}

/* ---- floats ---- */

static double mod_float(double a, double b)
{
    double rest = fmod(a, b);

    if (rest != 0)
        return (b < 0) != (rest < 0) ? rest + b : rest;
    return copysign(0.0, b);
}

/* As CPython's float_floor_div. */
static double floor_float(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;

    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1.0;
    if (quotient == 0)
        return copysign(0.0, a / b);
    double whole = floor(quotient);
    if (quotient - whole > 0.5)
        whole += 1.0;
    return whole;
}

static Value power_float(Vm *vm, double a, double b)
{
    if (a == 0 && b < 0)
        tmpl_raise(vm, "ZeroDivisionError: 0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && floor(b) != b)
        tmpl_unsupported(vm, "a complex number");
    const double r = pow(a, b);
    if (isinf(r) && isfinite(a) && isfinite(b))
        tmpl_raise(vm, "OverflowError: (34, 'Numerical result out of range')");
    return tmpl_float(r);
}

static Value floats(Vm *vm, NodeOp op, double a, double b)
{
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        tmpl_raise(vm, op == OP_DIV        ? "ZeroDivisionError: float division by zero"
                       : op == OP_FLOORDIV ? "ZeroDivisionError: float floor division by zero"
                                           : "ZeroDivisionError: float modulo");
    switch (op) {
    case OP_ADD:
        return tmpl_float(a + b);
    case OP_SUB:
        return tmpl_float(a - b);
    case OP_MUL:
        return tmpl_float(a * b);
    case OP_DIV:
        return tmpl_float(a / b);
    case OP_FLOORDIV:
        return tmpl_float(floor_float(a, b));
    case OP_MOD:
        return tmpl_float(mod_float(a, b));
    default:
        return power_float(vm, a, b);
    }
}

/* ---- sequences ---- */

static Value add_str(Vm *vm, Str *a, Str *b)
{
    Sb out = {.arena = &vm->arena};
    const bool markup = a->markup || b->markup;
    Str *both;

    if (markup && !a->markup)
        a = tmpl_escape(vm, a);
    if (markup && !b->markup)
        b = tmpl_escape(vm, b);
    tmpl_step(vm, ((uint64_t)a->n + b->n) / 64);
    tmpl_sb_add_str(&out, a);
    tmpl_sb_add_str(&out, b);
    both = tmpl_sb_take(&out);
    both->markup = markup;
    return tmpl_string(both);
}

static Value add_lists(Vm *vm, Value a, Value b)
{
    List *list = tmpl_list_new(&vm->arena, a.list->n + b.list->n);

    tmpl_step(vm, a.list->n + b.list->n);
    for (size_t i = 0; i < a.list->n; i++)
        tmpl_list_add(&vm->arena, list, a.list->items[i]);
    for (size_t i = 0; i < b.list->n; i++)
        tmpl_list_add(&vm->arena, list, b.list->items[i]);
    return (Value){.type = a.type, .list = list};
}

static Value repeat(Vm *vm, Value v, int64_t times)
{
    const uint64_t n = times > 0 ? (uint64_t)times : 0;
    const uint64_t size = v.type == V_STR ? v.s->n : v.list->n;

    if (size && n > vm->max_output * 2 / size)
        tmpl_limit(vm, "a value repeated %" G_GUINT64_FORMAT " times is too large", n);
    tmpl_step(vm, n * size / 16);
    if (v.type == V_STR) {
        Sb out = {.arena = &vm->arena};
        Str *s;

        for (uint64_t i = 0; size && i < n; i++)
            tmpl_sb_add_str(&out, v.s);
        s = tmpl_sb_take(&out);
        s->markup = v.s->markup;
        return tmpl_string(s);
    }
    List *list = tmpl_list_new(&vm->arena, n * size);
    for (uint64_t i = 0; size && i < n; i++)
        for (size_t k = 0; k < size; k++)
            tmpl_list_add(&vm->arena, list, v.list->items[k]);
    return (Value){.type = v.type, .list = list};
}

static bool is_sequence(Value v)
{
    return v.type == V_STR || v.type == V_LIST || v.type == V_TUPLE;
}

Value tmpl_binary(Vm *vm, NodeOp op, Value a, Value b)
{
    if (tmpl_is_integral(a) && tmpl_is_integral(b))
        return integers(vm, op, a, b);
    if (tmpl_is_number(a) && tmpl_is_number(b))
        return floats(vm, op, tmpl_as_float(vm, a), tmpl_as_float(vm, b));
    if (op == OP_MOD && a.type == V_STR)
        return tmpl_percent(vm, a.s, b); /* text first: an undefined value prints there */
    if (a.type == V_UNDEFINED || b.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, a.type == V_UNDEFINED ? a : b);
    if (op == OP_ADD && a.type == V_STR && b.type == V_STR)
        return add_str(vm, a.s, b.s);
    if (op == OP_ADD && a.type == b.type && is_sequence(a))
        return add_lists(vm, a, b);
    if (op == OP_MUL && is_sequence(a) && tmpl_is_integer(b))
        return repeat(vm, a, tmpl_integer(b));
    if (op == OP_MUL && tmpl_is_integer(a) && is_sequence(b))
        return repeat(vm, b, tmpl_integer(a));
    if (a.type == V_VIEW && b.type == V_VIEW)
        tmpl_unsupported(vm, "set arithmetic of dict views");
    tmpl_raise(vm, "TypeError: unsupported operand type(s) for %s: '%s' and '%s'", op_name(op),
               tmpl_type_name(a), tmpl_type_name(b));
}

Value tmpl_negate(Vm *vm, Value a, bool minus)
{
    if (a.type == V_FLOAT)
        return tmpl_float(minus ? -a.f : a.f);
    if (a.type == V_BIG || (a.type == V_INT && a.i == INT64_MIN))
        return minus ? tmpl_big_negate(vm, a) : a;
    if (tmpl_is_integer(a))
        return tmpl_int(minus ? -tmpl_integer(a) : tmpl_integer(a));
    if (a.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, a);
    tmpl_raise(vm, "TypeError: bad operand type for unary %c: '%s'", minus ? '-' : '+',
               tmpl_type_name(a));
}
