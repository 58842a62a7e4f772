/* SPDX-License-Identifier: Apache-2.0
 * Integers of any size by the methods one learns at school, in base 2^32. Division: Knuth,
 * The Art of Computer Programming 2, 4.3.1, algorithm D. */
#include "template/bigint_num.h"

#include <string.h>

#define MAX_LIMBS (BIG_MAX_BITS / 32)

void tmpl_num_load(Value v, Num *out)
{
    if (v.type == V_BIG) {
        out->d = v.big->limbs;
        out->n = v.big->n;
        out->negative = v.big->negative;
        return;
    }
    const int64_t i = tmpl_integer(v);
    const uint64_t size = i < 0 ? (uint64_t)0 - (uint64_t)i : (uint64_t)i;

    out->own[0] = (uint32_t)size;
    out->own[1] = (uint32_t)(size >> 32);
    out->d = out->own;
    out->n = size >> 32 ? 2 : size ? 1 : 0;
    out->negative = i < 0;
}

Big *tmpl_big_room(Arena *arena, uint32_t n)
{
    return tmpl_alloc(arena, sizeof(Big) + (size_t)n * sizeof(uint32_t));
}

Value tmpl_big_value(Big *big)
{
    while (big->n && big->limbs[big->n - 1] == 0)
        big->n--;
    if (big->n <= 2) {
        const uint64_t size = (uint64_t)(big->n > 1 ? big->limbs[1] : 0) << 32 |
                              (big->n ? big->limbs[0] : 0);

        if (size <= (uint64_t)INT64_MAX + big->negative)
            return tmpl_int(big->negative ? (int64_t)((uint64_t)0 - size) : (int64_t)size);
    }
    return (Value){.type = V_BIG, .big = big};
}

Big *tmpl_big_result(Vm *vm, uint32_t n, bool negative)
{
    Big *big;

    if (n > MAX_LIMBS + 2)
        tmpl_unsupported(vm, "an integer of more than %u bits", BIG_MAX_BITS);
    tmpl_step(vm, n / 8);
    big = tmpl_big_room(&vm->arena, n);
    big->n = n;
    big->negative = negative;
    return big;
}

/* As tmpl_big_value, refusing what is too large. */
static Value checked(Vm *vm, Big *big)
{
    const Value v = tmpl_big_value(big);

    if (v.type == V_BIG && v.big->n > MAX_LIMBS)
        tmpl_unsupported(vm, "an integer of more than %u bits", BIG_MAX_BITS);
    return v;
}

int tmpl_num_compare(const Num *a, const Num *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;)
        if (a->d[i] != b->d[i])
            return a->d[i] < b->d[i] ? -1 : 1;
    return 0;
}

/* ---- sums, products ---- */

static Value add_sizes(Vm *vm, const Num *a, const Num *b, bool negative)
{
    const uint32_t n = MAX(a->n, b->n);
    Big *sum = tmpl_big_result(vm, n + 1, negative);
    uint64_t carry = 0;

    for (uint32_t i = 0; i < n; i++) {
        carry += (uint64_t)(i < a->n ? a->d[i] : 0) + (i < b->n ? b->d[i] : 0);
        sum->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->limbs[n] = (uint32_t)carry;
    return checked(vm, sum);
}

/* |a| - |b|, where |a| is not below. */
static Value subtract_sizes(Vm *vm, const Num *a, const Num *b, bool negative)
{
    Big *rest = tmpl_big_result(vm, a->n, negative);
    uint64_t borrow = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        const uint64_t take = (i < b->n ? b->d[i] : 0) + borrow;

        borrow = a->d[i] < take;
        rest->limbs[i] = (uint32_t)(a->d[i] - take);
    }
    return checked(vm, rest);
}

static Value add(Vm *vm, const Num *a, const Num *b, bool minus)
{
    const bool b_negative = b->negative != minus;

    if (a->negative == b_negative)
        return add_sizes(vm, a, b, a->negative);
    return tmpl_num_compare(a, b) >= 0 ? subtract_sizes(vm, a, b, a->negative)
                                   : subtract_sizes(vm, b, a, b_negative);
}

static Value multiply(Vm *vm, const Num *a, const Num *b)
{
    Big *product = tmpl_big_result(vm, a->n + b->n, a->negative != b->negative);

    tmpl_step(vm, (uint64_t)a->n * b->n / 8);
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;

        for (uint32_t k = 0; k < b->n; k++) {
            carry += (uint64_t)a->d[i] * b->d[k] + product->limbs[i + k];
            product->limbs[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        product->limbs[i + b->n] = (uint32_t)carry;
    }
    return checked(vm, product);
}

/* ---- division ---- */

uint32_t tmpl_num_divide_limb(const Num *a, uint32_t b, uint32_t *quotient)
{
    uint64_t rest = 0;

    for (uint32_t i = a->n; i-- > 0;) {
        rest = rest << 32 | a->d[i];
        quotient[i] = (uint32_t)(rest / b);
        rest %= b;
    }
    return (uint32_t)rest;
}

/* One digit of the quotient at @u, n + 1 limbs, by @v, n >= 2 limbs with its top bit set; @u
 * becomes the rest. */
static uint32_t divide_step(uint32_t *u, const uint32_t *v, uint32_t n)
{
    const uint64_t top = (uint64_t)u[n] << 32 | u[n - 1];
    uint64_t digit = top / v[n - 1], rest = top % v[n - 1], carry = 0;

    while (digit >> 32 || digit * v[n - 2] > (rest << 32 | u[n - 2])) {
        digit--;
        rest += v[n - 1];
        if (rest >> 32)
            break;
    }
    for (uint32_t i = 0; i < n; i++) {
        carry += digit * v[i];
        const uint32_t take = (uint32_t)carry;
        carry = (carry >> 32) + (u[i] < take);
        u[i] -= take;
    }
    const bool below = u[n] < carry;
    u[n] -= (uint32_t)carry;
    if (!below)
        return (uint32_t)digit;
    carry = 0;
    for (uint32_t i = 0; i < n; i++) {
        carry += (uint64_t)u[i] + v[i];
        u[i] = (uint32_t)carry;
        carry >>= 32;
    }
    u[n] += (uint32_t)carry;
    return (uint32_t)(digit - 1);
}

/* @to = |a| << bits, n + 1 limbs, bits < 32. */
static void shift_left(const Num *a, uint32_t bits, uint32_t *to)
{
    uint64_t carry = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        carry |= (uint64_t)a->d[i] << bits;
        to[i] = (uint32_t)carry;
        carry >>= 32;
    }
    to[a->n] = (uint32_t)carry;
}

void tmpl_num_divide(Vm *vm, const Num *a, const Num *b, Big **out_quotient, Big **out_rest)
{
    Big *quotient = *out_quotient = tmpl_big_result(vm, MAX(a->n, 1), false);
    Big *rest = *out_rest = tmpl_big_result(vm, b->n, false);

    if (tmpl_num_compare(a, b) < 0) {
        memcpy(rest->limbs, a->d, a->n * sizeof *a->d);
        return;
    }
    if (b->n == 1) {
        rest->limbs[0] = tmpl_num_divide_limb(a, b->d[0], quotient->limbs);
        return;
    }
    const uint32_t bits = (uint32_t)__builtin_clz(b->d[b->n - 1]);
    uint32_t *u = tmpl_new_n(&vm->arena, uint32_t, a->n + 1);
    uint32_t *v = tmpl_new_n(&vm->arena, uint32_t, b->n + 1);
    tmpl_step(vm, (uint64_t)(a->n - b->n + 1) * b->n / 8);
    shift_left(a, bits, u);
    shift_left(b, bits, v);
    for (uint32_t at = a->n - b->n + 1; at-- > 0;)
        quotient->limbs[at] = divide_step(u + at, v, b->n);
    for (uint32_t i = 0; i < b->n; i++)
        rest->limbs[i] = (uint32_t)(((uint64_t)u[i + 1] << 32 | u[i]) >> bits);
}

/* Rounds down, as Python does: the rest has b's sign. */
static Value divide(Vm *vm, NodeOp op, const Num *a, const Num *b)
{
    Big *quotient, *rest;
    Num one, part;

    tmpl_num_divide(vm, a, b, &quotient, &rest);
    const Value rest_value = tmpl_big_value(rest);
    const bool whole_number = rest_value.type == V_INT && rest_value.i == 0;
    const bool down = a->negative != b->negative && !whole_number;
    if (op == OP_FLOORDIV) {
        Value whole = tmpl_big_value(quotient);

        tmpl_num_load(tmpl_int(1), &one);
        if (down) {
            tmpl_num_load(whole, &part);
            whole = add(vm, &part, &one, false);
        }
        return a->negative != b->negative ? tmpl_big_negate(vm, whole) : whole;
    }
    tmpl_num_load(rest_value, &part);
    part.negative = a->negative;
    return down          ? add(vm, &part, b, false)
           : a->negative ? tmpl_big_negate(vm, rest_value)
                         : rest_value;
}

/* ---- powers ---- */

uint64_t tmpl_num_bits(const Num *a)
{
    return a->n ? (uint64_t)a->n * 32 - (uint64_t)__builtin_clz(a->d[a->n - 1]) : 0;
}

static Value power(Vm *vm, Value base, Value exponent)
{
    Value out = tmpl_int(1);
    Num a, b;

    tmpl_num_load(base, &a);
    tmpl_num_load(exponent, &b);
    if (a.n == 0 || (a.n == 1 && a.d[0] == 1))
        return b.n == 0             ? tmpl_int(1)
               : a.n == 0           ? tmpl_int(0)
               : !a.negative        ? tmpl_int(1)
               : (b.d[0] & 1) != 0  ? tmpl_int(-1)
                                    : tmpl_int(1);
    if (b.n > 1 || (b.n && (tmpl_num_bits(&a) - 1) * b.d[0] > BIG_MAX_BITS))
        tmpl_unsupported(vm, "an integer of more than %u bits", BIG_MAX_BITS);
    for (uint32_t left = b.n ? b.d[0] : 0; left; left >>= 1) {
        if (left & 1)
            out = tmpl_big_binary(vm, OP_MUL, out, base);
        if (left > 1)
            base = tmpl_big_binary(vm, OP_MUL, base, base);
    }
    return out;
}

Value tmpl_big_binary(Vm *vm, NodeOp op, Value x, Value y)
{
    Num a, b;

    tmpl_num_load(x, &a);
    tmpl_num_load(y, &b);
    switch (op) {
    case OP_ADD:
    case OP_SUB:
        return add(vm, &a, &b, op == OP_SUB);
    case OP_MUL:
        return multiply(vm, &a, &b);
    case OP_POW:
        return power(vm, x, y);
    default:
        return divide(vm, op, &a, &b);
    }
}

Value tmpl_big_negate(Vm *vm, Value x)
{
    Big *big;
    Num a;

    tmpl_num_load(x, &a);
    big = tmpl_big_result(vm, a.n, !a.negative);
    if (a.n)
        memcpy(big->limbs, a.d, a.n * sizeof *a.d);
    return tmpl_big_value(big);
}

/* ---- order ---- */

bool tmpl_is_negative(Value v)
{
    return v.type == V_BIG ? v.big->negative : tmpl_integer(v) < 0;
}

int tmpl_big_compare(Value x, Value y)
{
    Num a, b;

    tmpl_num_load(x, &a);
    tmpl_num_load(y, &b);
    if (a.negative != b.negative)
        return a.negative ? -1 : 1;
    return a.negative ? -tmpl_num_compare(&a, &b) : tmpl_num_compare(&a, &b);
}
