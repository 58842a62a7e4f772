/* SPDX-License-Identifier: Apache-2.0
 * Stored rows of the layouts of iq_blocks.h to float32, AVX2; bit-equal to the SDK's decoder, since
 * no product is rounded. */
#include "iq_blocks.h"

TILE_INLINE void dequant(const reader *r, float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += r->block_bytes) {
        head h;

        r->head(&h, row);
        for (int g = 0; g < r->elems / 32; g++, out += 32) {
            const group v = r->codes(&h, row, g);
            const float low = r->is_scaled ? h.d * (float)h.scale[2 * g] : h.d;
            const float high = r->is_scaled ? h.d * (float)h.scale[2 * g + 1] : h.d;

            put_signed_halves(out, _mm256_sign_epi8(v.size, v.sign), low, high);
        }
    }
}

#define DEQUANT(id, elems_, bytes, scaled)                                                \
    void cpu_dequant_##id(float *out, const uint8_t *row, size_t n_blocks)                \
    {                                                                                     \
        const reader r = {elems_, bytes, scaled, head_##id, codes_##id};                  \
                                                                                          \
        dequant(&r, out, row, n_blocks);                                                  \
    }

IQ_BLOCKS(DEQUANT)
