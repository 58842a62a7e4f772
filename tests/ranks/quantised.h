/* SPDX-License-Identifier: Apache-2.0
 * A tiny llama in GGUF blocks whose matrices can be cut by columns, written by the test: the
 * committed ones are too narrow for it. */
#ifndef DAVIT_TESTS_RANKS_QUANTISED_H
#define DAVIT_TESTS_RANKS_QUANTISED_H

#include <stdint.h>

typedef struct Blocks {
    const char *name;
    uint32_t type; /* of GGUF */
    uint32_t elems, bytes;
    uint32_t n_scales; /* float16 at the start of a block */
    uint16_t scale;    /* bits of each: weights of a few hundredths */
} Blocks;

/* Random weights; every run of the test the same. */
void quantised_write(const char *path, const Blocks *blocks);

#endif
