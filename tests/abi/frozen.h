/* SPDX-License-Identifier: Apache-2.0
 * Fields and numbers of frozen headers, as one compilation of frozen_1_0_tables.c sees them. */
#ifndef TESTS_ABI_FROZEN_H
#define TESTS_ABI_FROZEN_H

#include <stddef.h>

typedef struct FrozenRow {
    const char *name;  /* struct, macro or code */
    const char *field; /* of the struct; a code's word; "" */
    size_t off;        /* bytes from the start of the struct */
    long long value;   /* bytes of the field, or the number */
} FrozenRow;

/* Every row in order. The name is given by CMake: frozen_1_0 with the headers of sdk/abi/1.0,
 * frozen_now with today's. */
#ifdef FROZEN_LIST
void FROZEN_LIST(void (*take)(void *ctx, const FrozenRow *row), void *ctx);
#else
void frozen_1_0(void (*take)(void *ctx, const FrozenRow *row), void *ctx);
void frozen_now(void (*take)(void *ctx, const FrozenRow *row), void *ctx);
#endif

#endif
