/* SPDX-License-Identifier: Apache-2.0
 * Random weights in CODES form: canonical float32 values, and the same packed by the plugin's
 * pack of CODES into a rig's weight. */
#ifndef DAVIT_TESTS_KERNELS_CODES_CASE_H
#define DAVIT_TESTS_KERNELS_CODES_CASE_H

#include "kernels/rig.h"

/* Codes of any kind in groups of a multiple of @unit columns; @n_cols bounds the group. Of 32: UINT
 * only, what entries with 8-bit activations take. Never with a map or factors. */
davit_quant_codes codes_case_random(Rig *rig, uint64_t n_cols, uint64_t unit);

/* Give @what, of a matrix of @n_cols columns, a column map; where it has groups, now and then one with
 * code columns that have no input. */
void codes_case_map(Rig *rig, davit_quant_codes *what, uint64_t n_cols);

/* Plain values beside codes (DAVIT_CODE_PLAIN), of any type. */
davit_quant_codes codes_case_plain(Rig *rig);

/* Give each input of @what a factor. */
void codes_case_factors(davit_quant_codes *what);

/* Weight @slot [E, N, K] of codes @what, packed by @pack in segments of random length.
 * Returns: (borrowed, rig) canonical values [E, N, K] in input order. */
const float *codes_case_weight(Rig *rig, uint32_t slot, const davit_pack *pack,
                               const davit_quant_codes *what, uint64_t E, uint64_t N, uint64_t K);

/* What two planes of 8 bits may miss of each input, by code columns of 32 with the largest input
 * m: steps of the first plane are m / 127, half of one is left over; its steps are m / 127 / 2 / 127,
 * half of one is missed: m / 64516. The product that is taken away rounds to 2^-24 m, and so does
 * the difference; the place of x on the first grid moves by 127 * 2^-24 steps or so, less. With
 * factors f the planes hold f x and the weights are without f: what is missed counts f times less. */
void codes_case_missed(const float *x, const uint32_t *map, const float *factors, uint64_t n_codes,
                       double *out);

/* The pack that takes CODES. (static) */
const davit_pack *codes_case_pack(const davit_kernels_iface *iface);

#endif
