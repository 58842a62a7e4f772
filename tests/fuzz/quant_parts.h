/* SPDX-License-Identifier: Apache-2.0
 * Bytes as the tensors of a quantised module: what fuzz_quant and fuzz_quant_door share. A module is
 * healthy where the input says nothing else: names, dtypes and shapes of a real layout for sizes that
 * the input chose, so that one changed byte is one fault, and what is behind each check is reached. */
#ifndef DAVIT_TESTS_FUZZ_QUANT_PARTS_H
#define DAVIT_TESTS_FUZZ_QUANT_PARTS_H

#include <stdbool.h>

#include <davit/quant.h>

#define FUZZ_PARTS 7 /* of one module, at most: one less than the host groups */

/* What is left of a target's bytes. */
typedef struct FuzzInput {
    const uint8_t *at, *end;
} FuzzInput;

/* The next byte; 0 when there are no more. */
uint8_t fuzz_byte(FuzzInput *in);

/* A size that layouts care about: 1, 2, 3, 4, 7, 8, 16, 24, 32, 33, 48, 64, ... */
uint64_t fuzz_size(FuzzInput *in);

/* Sizes of a module, and its tensors: their names are the suffixes, static. */
typedef struct FuzzModule {
    uint64_t n_experts, n_rows, n_cols;
    uint64_t group, block; /* columns that share a scale; rows and columns of a block of scales */
    uint64_t bits;
    bool wild;       /* stored numbers are any bits, not such as writers put there */
    char state[160]; /* what bitsandbytes would say of it */
    davit_tensor_info tensor[FUZZ_PARTS]; /* each suffix once, sorted, as the host gives them */
    uint32_t n;
} FuzzModule;

/* Reads @out from @in. A tensor whose bytes do not fit 64 bits or are not whole blocks is left out:
 * a format refuses it before any quant plugin sees it. */
void fuzz_module(FuzzInput *in, FuzzModule *out);

/* Payload of @t, a tensor of @m, into @out [t->n_bytes]: what is left of the input, which stays
 * where it is, over and over; unless @m is wild made such as @t's writers have it. */
void fuzz_payload(const FuzzInput *in, const FuzzModule *m, const davit_tensor_info *t,
                  uint8_t *out);

#endif
