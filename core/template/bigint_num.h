/* SPDX-License-Identifier: Apache-2.0
 * What arithmetic and conversion of large integers share. Private to bigint*.c. */
#ifndef DAVIT_TEMPLATE_BIGINT_NUM_H
#define DAVIT_TEMPLATE_BIGINT_NUM_H

#include "template/bigint.h"

/* An operand: limbs of somewhere else, or of its own two. */
typedef struct Num {
    const uint32_t *d;
    uint32_t n; /* 0 is the number 0 */
    bool negative;
    uint32_t own[2];
} Num;

/* Any integer; @out is not to be copied. */
void tmpl_num_load(Value v, Num *out);
int tmpl_num_compare(const Num *a, const Num *b); /* of sizes: -1, 0, 1 */
uint64_t tmpl_num_bits(const Num *a);
/* |a| to @quotient, a->n limbs, which may be where a's are; returns the rest. */
uint32_t tmpl_num_divide_limb(const Num *a, uint32_t b, uint32_t *quotient);
/* |a| and |b| to *out_quotient and *out_rest, both >= 0. */
void tmpl_num_divide(Vm *vm, const Num *a, const Num *b, Big **out_quotient, Big **out_rest);

/* @n limbs that are 0; tmpl_big_result refuses too many and sets n and the sign. */
Big *tmpl_big_room(Arena *arena, uint32_t n);
Big *tmpl_big_result(Vm *vm, uint32_t n, bool negative);
/* @big, whose top limbs may be 0, as a value. */
Value tmpl_big_value(Big *big);

#endif
