/* SPDX-License-Identifier: Apache-2.0
 * Integers beyond 64 bits, exact as Python's, up to BIG_MAX_BITS. A V_BIG never fits an
 * int64_t: results that do are V_INT. Private to core/template. */
#ifndef DAVIT_TEMPLATE_BIGINT_H
#define DAVIT_TEMPLATE_BIGINT_H

#include "template/run.h"

#define BIG_MAX_BITS   65536u /* of a result; what needs more is refused */
#define BIG_MAX_DIGITS 4300u  /* of Python's int() and str() (sys.int_info) */

struct Big {
    bool negative;
    uint32_t n;       /* limbs, the highest is not 0 */
    uint32_t limbs[]; /* base 2^32, the lowest first */
};

/* @n digits of @base (2 to 36) at @text, all valid, without a sign. Too large: V_MISSING. */
Value tmpl_big_parse(Arena *arena, const char *text, size_t n, uint32_t base, bool negative);
/* @f, a whole number, as an integer. */
Value tmpl_big_of_float(Vm *vm, double f);
/* a op b of two integers, OP_ADD to OP_MOD and OP_POW with b >= 0; b is not 0 where it divides. */
Value tmpl_big_binary(Vm *vm, NodeOp op, Value a, Value b);
/* a / b, rounded once; b is not 0. */
double tmpl_big_ratio(Vm *vm, Value a, Value b);
Value tmpl_big_negate(Vm *vm, Value a);
bool tmpl_is_negative(Value a); /* of an integer */
/* -1, 0, 1 */
int tmpl_big_compare(Value a, Value b);
/* The same for a float; 2 when it is not a number. */
int tmpl_big_compare_float(Value a, double f);
/* To the nearest double; infinity beyond the range of one. */
double tmpl_big_to_float(Value a);
/* Digits of |a| in @base 2, 8, 10 or 16. Raises ValueError as str() does. */
void tmpl_big_digits(Vm *vm, Sb *out, Value a, uint32_t base, bool upper);

#endif
