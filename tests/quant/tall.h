/* SPDX-License-Identifier: Apache-2.0
 * Tests of tiles of many rows, of every layout that reads several numbers at once. */
#ifndef DAVIT_TESTS_QUANT_TALL_H
#define DAVIT_TESTS_QUANT_TALL_H

#include <davit/quant.h>
#include <glib.h>

/* Interface of davit-quant-@name.so. (static) */
const davit_quant_iface *tall_plugin(const char *name);
void tall_add_tests(void);

#endif
