/* SPDX-License-Identifier: Apache-2.0
 * Bytes as the tensors of a quantised module: what fuzz_quant and fuzz_quant_door share. */
#ifndef DAVIT_TESTS_FUZZ_QUANT_PARTS_H
#define DAVIT_TESTS_FUZZ_QUANT_PARTS_H

#include <stdbool.h>

#include <davit/quant.h>

#define FUZZ_PARTS 5 /* of one module, at most */

/* What is left of a target's bytes. */
typedef struct FuzzInput {
    const uint8_t *at, *end;
} FuzzInput;

/* The next byte; 0 when there are no more. */
uint8_t fuzz_byte(FuzzInput *in);

/* A size that layouts care about: 1, 2, 3, 4, 7, 8, 16, 24, 32, 33, 48, 64, ... */
uint64_t fuzz_size(FuzzInput *in);
/* One of the first twelve of them. */
uint64_t fuzz_small_size(FuzzInput *in);

/* @n bytes of payload: what is left of the input, over and over, which stays where it is. */
void fuzz_fill(const FuzzInput *in, uint8_t *out, uint64_t n);

/* Part @part (below FUZZ_PARTS) of a module in the layout @layout (any number): mostly the
 * suffix and dtype that this layout has there, sometimes others; rank and shape as they come.
 * @out->name is the suffix, static. False: its bytes do not fit 64 bits or are not whole blocks,
 * which a format refuses before any quant plugin sees the tensor. */
bool fuzz_part(FuzzInput *in, uint8_t layout, uint32_t part, davit_tensor_info *out);

#endif
