/* SPDX-License-Identifier: Apache-2.0
 * Blocks of 256 elements whose codes are points of a codebook: IQ1, IQ2 and IQ3.
 *
 * A point's elements are whole numbers (eighths in IQ1), so that codes are those numbers plus a
 * constant: value = scale * (code - zero), in the bits of GGUF's own decoder.
 */
#ifndef DAVIT_QUANT_GGUF_IQ_H
#define DAVIT_QUANT_GGUF_IQ_H

#include <stdint.h>

/* Points in sixteen bits: 2 bits for each of eight elements, 4 for each of four (iq3). */
extern const uint16_t gguf_iq2_xxs_grid[256], gguf_iq2_xs_grid[512], gguf_iq2_s_grid[1024];
extern const uint16_t gguf_iq3_xxs_grid[256], gguf_iq3_s_grid[512], gguf_iq1_grid[2048];

#define GGUF_IQ2_ZERO     64.0f /* of IQ3_XXS too */
#define GGUF_IQ3_S_ZERO   16.0f
#define GGUF_IQ1_ZERO     16.0f

/* Codes of @block's 256 elements. */
void gguf_iq1_s_codes(const uint8_t *block, uint8_t *out);
void gguf_iq1_m_codes(const uint8_t *block, uint8_t *out);
void gguf_iq2_xxs_codes(const uint8_t *block, uint8_t *out);
void gguf_iq2_xs_codes(const uint8_t *block, uint8_t *out);
void gguf_iq2_s_codes(const uint8_t *block, uint8_t *out);
void gguf_iq3_xxs_codes(const uint8_t *block, uint8_t *out);
void gguf_iq3_s_codes(const uint8_t *block, uint8_t *out);

/* Scale of group @k: of 16 elements in IQ1_M, IQ2_XS and IQ2_S, of 32 in the others. */
float gguf_iq1_s_scale(const uint8_t *block, uint64_t k);
float gguf_iq1_m_scale(const uint8_t *block, uint64_t k);
float gguf_iq2_xxs_scale(const uint8_t *block, uint64_t k);
float gguf_iq2_xs_scale(const uint8_t *block, uint64_t k);
float gguf_iq2_s_scale(const uint8_t *block, uint64_t k);
float gguf_iq3_xxs_scale(const uint8_t *block, uint64_t k);
float gguf_iq3_s_scale(const uint8_t *block, uint64_t k);

#endif
