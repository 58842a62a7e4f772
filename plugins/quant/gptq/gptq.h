/* SPDX-License-Identifier: Apache-2.0
 * What the check of GPTQ and its readers share. */
#ifndef DAVIT_QUANT_GPTQ_H
#define DAVIT_QUANT_GPTQ_H

#include <davit/help/quant.h>

enum { BITS, GROUP, SCALE_TYPE, ZEROS, ORDERED, PLANAR, N_OUT, SYMMETRIC }; /* params */
enum { ZEROS_MIDDLE, ZEROS_V1, ZEROS_V2 };

/* Readers of a tile. Their functions live as long as the plugin. */
davit_q_view gptq_view(const davit_quant_tile *tile);
/* The zero of a row in a group as it is stored, in version 1 less one. */
uint8_t gptq_stored_zero(const davit_quant_tile *tile, uint64_t row, uint64_t group);

#endif
