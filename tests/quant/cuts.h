/* SPDX-License-Identifier: Apache-2.0
 * What a quant plugin says of codes and of cuts, held against its float32 values. */
#ifndef DAVIT_TESTS_QUANT_CUTS_H
#define DAVIT_TESTS_QUANT_CUTS_H

#include <stdbool.h>

#include "plan/plan.h"

/* CODES of row @row against its float32 values @want [d->n_cols]. */
bool codes_agree(const davit_quant_iface *iface, void *self, const davit_quant_desc *d,
                 const davit_quant_bytes *parts, uint64_t row, const float *want);

/* Boxes of @module (one expert), at random and at the edges: each that the plugin takes decodes,
 * from the bytes that it names and no other, to that part of @values [N, K] in every bit; each that
 * it does not take has a record with both sides. */
void check_cuts(const DavitModule *module, const DavitCheckpoint *checkpoint, const float *values,
                GRand *rand);

#endif
