/* SPDX-License-Identifier: Apache-2.0
 * Between the two files of the vendor example. */
#ifndef VENDOR_H
#define VENDOR_H

#include <stdint.h>

#define VENDOR_ROWS 16 /* output rows of one task */

/* sum over @n_blocks blocks of 32 of x . w, where a block is a float16 scale and 32 signed bytes.
 * Eight partial sums (k mod 8), added in ascending order: the same bits for any split of work. */
float vendor_dot_q8_0(const uint8_t *row, const float *x, uint64_t n_blocks);

#endif
