/* SPDX-License-Identifier: Apache-2.0
 * Large integers from and to floats and text. */
#include "template/bigint_num.h"

#include <math.h>
#include <string.h>

/* ---- floats ---- */

/* @f >= 2^63, whole, in @limbs (34: a double has 1,024 bits at most); their number. */
static uint32_t limbs_of_float(double f, uint32_t *limbs)
{
    int exponent;
    const uint64_t mantissa = (uint64_t)ldexp(frexp(f, &exponent), 53);
    const uint32_t shift = (uint32_t)(exponent - 53), at = shift / 32, bits = shift % 32;

    memset(limbs, 0, 34 * sizeof *limbs);
    limbs[at] = (uint32_t)(mantissa << bits);
    limbs[at + 1] = (uint32_t)((mantissa >> 1) >> (31 - bits));
    limbs[at + 2] = (uint32_t)(((mantissa >> 32) >> 1) >> (31 - bits));
    return limbs[at + 2] ? at + 3 : limbs[at + 1] ? at + 2 : at + 1;
}

Value tmpl_big_of_float(Vm *vm, double f)
{
    Big *big;

    if (f >= -9223372036854775808.0 && f < 9223372036854775808.0)
        return tmpl_int((int64_t)f);
    big = tmpl_big_result(vm, 34, f < 0);
    big->n = limbs_of_float(fabs(f), big->limbs);
    return tmpl_big_value(big);
}

int tmpl_big_compare_float(Value x, double f)
{
    uint32_t limbs[34];
    Num a;

    if (isnan(f))
        return 2;
    tmpl_num_load(x, &a);
    if (isinf(f))
        return f > 0 ? -1 : 1;
    if (fabs(f) < 9223372036854775808.0) {
        const double whole = floor(f);

        if (x.type == V_BIG)
            return a.negative ? -1 : 1;
        const int64_t i = tmpl_integer(x), n = (int64_t)whole;
        return i != n ? (i < n ? -1 : 1) : whole < f ? -1 : 0;
    }
    if (a.negative != (f < 0))
        return a.negative ? -1 : 1;
    const Num b = {.d = limbs, .n = limbs_of_float(fabs(f), limbs)};
    return a.negative ? -tmpl_num_compare(&a, &b) : tmpl_num_compare(&a, &b);
}

/* The top 64 bits of @a, the lowest standing for all that are cut off; *out_shift the power
 * of two that they are worth. */
static uint64_t top_bits(const Num *a, int *out_shift)
{
    uint64_t top = 0;
    bool more = false;

    *out_shift = a->n > 2 ? (int)(tmpl_num_bits(a) - 64) : 0;
    for (uint32_t i = a->n > 3 ? a->n - 3 : 0; i < a->n; i++) {
        const int at = (int)i * 32 - *out_shift;

        if (at <= -32)
            more |= a->d[i] != 0;
        else if (at < 0) {
            more |= (uint32_t)(a->d[i] << (32 + at)) != 0;
            top |= a->d[i] >> -at;
        } else
            top |= (uint64_t)a->d[i] << at;
    }
    for (uint32_t i = 0; i + 3 < a->n && !more; i++)
        more |= a->d[i] != 0;
    return top | more;
}

double tmpl_big_to_float(Value x)
{
    int shift;
    Num a;

    tmpl_num_load(x, &a);
    const uint64_t top = top_bits(&a, &shift);
    const double f = ldexp((double)top, shift);
    return a.negative ? -f : f;
}

/* The quotient gets at least 64 bits, of which the first 53 count: the dividend is moved by
 * what it lacks. */
double tmpl_big_ratio(Vm *vm, Value x, Value y)
{
    Big *quotient, *rest, *moved;
    Num a, b, part;
    int shift;

    tmpl_num_load(x, &a);
    tmpl_num_load(y, &b);
    if (a.n == 0)
        return b.negative ? -0.0 : 0.0;
    const int64_t lack = 66 + (int64_t)tmpl_num_bits(&b) - (int64_t)tmpl_num_bits(&a);
    const uint32_t limbs = lack > 0 ? (uint32_t)(lack + 31) / 32 : 0;
    moved = tmpl_big_room(&vm->arena, a.n + limbs);
    memcpy(moved->limbs + limbs, a.d, a.n * sizeof *a.d);
    const Num up = {.d = moved->limbs, .n = a.n + limbs};
    tmpl_num_divide(vm, &up, &b, &quotient, &rest);
    tmpl_num_load((Value){.type = V_BIG, .big = quotient}, &part);
    while (part.n && part.d[part.n - 1] == 0)
        part.n--;
    uint64_t top = top_bits(&part, &shift);
    for (uint32_t i = 0; i < rest->n; i++)
        top |= rest->limbs[i] != 0;
    const double f = ldexp((double)top, shift - (int)limbs * 32);
    if (isinf(f))
        tmpl_raise(vm, "OverflowError: integer division result too large for a float");
    if (f < 2.2250738585072014e-308)
        tmpl_unsupported(vm, "a quotient of integers below 2.3e-308");
    return a.negative != b.negative ? -f : f;
}

/* ---- text ---- */

static uint64_t digit_value(char c)
{
    return (uint64_t)(g_ascii_isdigit(c) ? c - '0' : g_ascii_tolower(c) - 'a' + 10);
}

Value tmpl_big_parse(Arena *arena, const char *text, size_t n, uint32_t base, bool negative)
{
    const bool power_of_two = (base & (base - 1)) == 0;
    Big *big;

    if (n > (power_of_two ? BIG_MAX_BITS / 5 : BIG_MAX_DIGITS))
        return tmpl_missing();
    big = tmpl_big_room(arena, (uint32_t)(n * 6 / 32 + 2)); /* 36 is below 2^6 */
    big->negative = negative;
    for (size_t i = 0; i < n;) { /* as many digits at a time as a limb holds */
        uint64_t scale = 1, carry = 0;

        for (; i < n && scale * base <= UINT32_MAX; i++, scale *= base)
            carry = carry * base + digit_value(text[i]);
        for (uint32_t k = 0; k < big->n; k++) {
            carry += big->limbs[k] * scale;
            big->limbs[k] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry)
            big->limbs[big->n++] = (uint32_t)carry;
    }
    return tmpl_big_value(big);
}

G_NORETURN static void too_many_digits(Vm *vm)
{
    tmpl_raise(vm, "ValueError: Exceeds the limit (%u digits) for integer string conversion",
               BIG_MAX_DIGITS);
}

/* Digits of 10^9 at a time, the lowest first; returns the start in @text. */
static size_t decimal(Num *a, uint32_t *work, char *text, size_t at)
{
    while (a->n) {
        uint32_t rest = tmpl_num_divide_limb(a, 1000000000, work);

        a->d = work;
        while (a->n && work[a->n - 1] == 0)
            a->n--;
        for (int i = 0; i < 9 && (a->n || rest); i++, rest /= 10)
            text[--at] = (char)('0' + rest % 10);
    }
    return at;
}

void tmpl_big_digits(Vm *vm, Sb *out, Value x, uint32_t base, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    const uint32_t bits = base == 16 ? 4 : base == 8 ? 3 : 1;
    Num a;

    tmpl_num_load(x, &a);
    const uint64_t all = tmpl_num_bits(&a);
    if (base == 10 && all / 4 > BIG_MAX_DIGITS) /* before the work: a digit is below 4 bits */
        too_many_digits(vm);
    const size_t cap = (size_t)(base == 10 ? all / 3 : all / bits) + 2;
    char *text = tmpl_alloc(&vm->arena, cap);
    size_t at = cap;
    if (base == 10) {
        tmpl_step(vm, (uint64_t)a.n * a.n / 2);
        at = decimal(&a, tmpl_new_n(&vm->arena, uint32_t, a.n + 1), text, at);
        if (cap - at > BIG_MAX_DIGITS)
            too_many_digits(vm);
    } else {
        for (uint64_t bit = 0; bit < all; bit += bits) {
            const uint64_t limb = bit / 32;
            const uint64_t two = (uint64_t)(limb + 1 < a.n ? a.d[limb + 1] : 0) << 32 | a.d[limb];

            text[--at] = digits[two >> (bit % 32) & (base - 1)];
        }
    }
    if (at == cap)
        text[--at] = '0';
    tmpl_sb_add(out, text + at, NULL, cap - at);
}
