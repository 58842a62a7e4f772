/* SPDX-License-Identifier: Apache-2.0
 * A field of a format and what stands in it, for str.format and str %. Private to
 * core/template. */
#ifndef DAVIT_TEMPLATE_FORMAT_H
#define DAVIT_TEMPLATE_FORMAT_H

#include "template/text.h"

/* One field: [[fill]align][sign][#][0][width][,][.precision][type]. */
typedef struct FieldSpec {
    Str *fill;  /* NULL = a space, or '0' with zero */
    char align; /* '<' '>' '^' '=' or 0 */
    char sign;  /* '+' '-' ' ' or 0 */
    bool alternate, zero;
    char comma; /* ',' '_' or 0 */
    int64_t width, precision; /* -1 = none */
    char type;                /* 0 = none */
} FieldSpec;

#define MAX_WIDTH 1000000

/* Digits of @f for a type of 'e' 'f' 'g' (or upper case) without its sign. */
void tmpl_float_digits(Vm *vm, Sb *out, double f, char type, int64_t precision,
                         bool alternate);
/* Digits of |i| for a type of 'd' 'x' 'X' 'o' 'b'. */
void tmpl_int_digits(Vm *vm, Sb *out, Value i, char type, bool alternate);
/* ascii(v) of Python. */
void tmpl_ascii(Vm *vm, Sb *out, Value v);
/* chr(i): raises where there is no such character. */
void tmpl_add_char(Vm *vm, Sb *out, Value i);
/* @body in the field; @sign goes before zeros. */
void tmpl_place(Vm *vm, Sb *out, const FieldSpec *spec, const char *sign, Str *body, char align);
const char *tmpl_sign_of(bool negative, char sign);
void tmpl_place_number(Vm *vm, Sb *out, const FieldSpec *spec, bool negative, Str *digits);
/* The number at *at of @s, which moves on; -1 = there is none. */
int64_t tmpl_spec_number(Vm *vm, const Str *s, size_t *at);

#endif
