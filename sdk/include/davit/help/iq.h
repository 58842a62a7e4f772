/* SPDX-License-Identifier: Apache-2.0
 * Codebooks of GGUF's IQ1, IQ2 and IQ3: points of eight elements with 2 bits for each, in IQ3 of
 * four with 4. Part of libdavit-sdk.a; what the bits mean: sdk/src/ref/dequant_iq.c.
 */
#ifndef DAVIT_HELP_IQ_H
#define DAVIT_HELP_IQ_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* (static) */
extern const uint16_t davit_iq2_xxs_grid[256], davit_iq2_xs_grid[512], davit_iq2_s_grid[1024];
extern const uint16_t davit_iq3_xxs_grid[256], davit_iq3_s_grid[512], davit_iq1_grid[2048];

#ifdef __cplusplus
}
#endif
#endif
