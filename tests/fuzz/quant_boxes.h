/* SPDX-License-Identifier: Apache-2.0
 * What a quant plugin promises of a module that it has checked: sdk/include/davit/quant.h. */
#ifndef DAVIT_TESTS_FUZZ_QUANT_BOXES_H
#define DAVIT_TESTS_FUZZ_QUANT_BOXES_H

#include <davit/quant.h>

/* Verifies and decodes the last rows of the module @d, from @parts of exactly their sizes; where all
 * of it is small, also its codes, and a box that @where chooses, which decodes to that part of the
 * whole. Aborts where a promise is broken. */
void fuzz_boxes(const davit_quant_iface *iface, void *self, const davit_quant_desc *d,
                const davit_quant_bytes *parts, const uint8_t where[4], const davit_sink *sink);

#endif
