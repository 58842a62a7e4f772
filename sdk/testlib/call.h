/* SPDX-License-Identifier: Apache-2.0
 * Random calls of an op, with guard bytes round every array; not installed. */
#ifndef DAVIT_TESTLIB_CALL_H
#define DAVIT_TESTLIB_CALL_H

#include <davit/help/ref.h>

#include "test.h"

#define CALL_MAX_MEMORY 1024

typedef struct test_memory {
    uint8_t *base; /* (owned) guard bytes, the data, guard bytes */
    uint64_t front, n_bytes;
} test_memory;

typedef struct test_call {
    davit_test *t;
    davit_call call;
    davit_batch batch;
    davit_weight weights[DAVIT_MAX_WEIGHTS];
    union { /* the op's attributes, zeros behind */
        uint8_t bytes[256];
        davit_embed_attr embed;
        davit_linear_attr linear;
        davit_norm_attr norm;
        davit_scale_attr scale;
        davit_act_attr act;
        davit_rope_attr rope;
        davit_none_attr none;
    } attr;
    test_memory memory[CALL_MAX_MEMORY];
    uint64_t n_memory;
} test_call;

/* Fill @c (zeroed but for t) with a random call of @op whose matrices are in @layout.
 * Returns 0 if this library cannot make calls of @op. */
int test_call_fill(test_call *c, const char *op, const davit_ref_layout *layout);
/* 64-aligned plus @shift, filled with the guard byte. (borrowed) until free */
void *test_call_memory(test_call *c, uint64_t n_bytes, uint64_t shift);
/* Guard bytes as they were? */
int test_call_guards_hold(const test_call *c);
void test_call_free(test_call *c);

/* What davit_test_kernels does with one entry. */
void test_entry_values(davit_test *t, const davit_kernel_entry *entry, uint64_t rounds,
                       double tol, double floor);
/* 1 if this library can make calls of @op. */
int test_has_cases(const char *op);

#endif
