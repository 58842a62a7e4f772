/* SPDX-License-Identifier: Apache-2.0
 * Packed integer codes times 8-bit activations, AVX2: per block of 32 columns an exact integer
 * sum, then acc += scale * d_x * sum, then acc -= scale * zero * d_x * sum_x (or + min). */
#include "codes.h"

#include "codes_avx2.h"

/* Codes of n bits as dot_block reads them: one copy per width that files have. */
#define CODES_WORD(bits)                                                                  \
    TILE_INLINE __m256i word_##bits(const uint8_t *at, int b, int w)                      \
    {                                                                                     \
        (void)b;                                                                          \
        return codes_word(at, bits, w);                                                   \
    }
CODES_WORD(2)
CODES_WORD(3)
CODES_WORD(4)

/* @bits is a constant; bounds of int16 sums: linear_tile.h. */
TILE_STEP void dot_codes(int n, int bits, const uint8_t *codes, const cpu_xblock *x,
                           size_t x_stride, __m256i isum[TILE_MAX])
{
    if (bits == 2)
        dot_block(n, word_2, codes, 0, 8, x, x_stride, isum);
    else if (bits == 3)
        dot_block(n, word_3, codes, 0, 8, x, x_stride, isum);
    else if (bits == 4)
        dot_block(n, word_4, codes, 0, 8, x, x_stride, isum);
    else /* less 128: signed */
        dot_signed(n, codes, 0x80, x, x_stride, isum);
}

/* Minimum to add per scaled unit of the activation's sum. */
TILE_STEP __m256 minima(const cpu_codes *c, const uint8_t *block, uint64_t g, __m256 scale,
                          int bits)
{
    const __m256 zero = codes_zeros(c, block, g);
    const __m256 offset = _mm256_set1_ps(bits == 8 ? 128.0f : 0.0f);

    if (c->what.zero_type >= DAVIT_MIN_F32)
        return _mm256_add_ps(zero, _mm256_mul_ps(scale, offset));
    return _mm256_mul_ps(scale, _mm256_sub_ps(offset, zero));
}

TILE_STEP void tile_codes(int n, int bits, float *out, const cpu_codes *c,
                            const uint8_t *block, const cpu_xblock *x, size_t x_stride)
{
    const uint8_t *codes = block + c->code_off;
    const uint64_t per_group = c->group / CPU_XBLOCK;
    __m256 acc[TILE_MAX], scale = _mm256_setzero_ps(), min = scale;

    start(n, out, 0, acc);
    for (uint64_t i = 0; i < c->n_cols / CPU_XBLOCK; i++, codes += 32 * bits, x++) {
        __m256i isum[TILE_MAX];

        if (i % per_group == 0) {
            scale = codes_scales(c, block, i / per_group);
            min = minima(c, block, i / per_group, scale, bits);
        }
        prefetch_ahead(n, codes, 32 * (size_t)bits);
        dot_codes(n, bits, codes, x, x_stride, isum);
        add_block_min(n, acc, isum, scale, min, x, x_stride);
    }
    store(n, out, acc);
}

TILE_STEP void all_tokens(int bits, float *out, const cpu_codes *c, const uint8_t *block,
                            const cpu_xblock *x, size_t x_stride, size_t n_tokens)
{
    for (; n_tokens >= 4; n_tokens -= 4, x += 4 * x_stride, out += 4 * CPU_GROUP)
        tile_codes(4, bits, out, c, block, x, x_stride);
    if (n_tokens == 3)
        tile_codes(3, bits, out, c, block, x, x_stride);
    else if (n_tokens == 2)
        tile_codes(2, bits, out, c, block, x, x_stride);
    else if (n_tokens == 1)
        tile_codes(1, bits, out, c, block, x, x_stride);
}

void cpu_codes_dot_int8_avx2(float *out, const cpu_codes *c, const uint8_t *block,
                             const cpu_xblock *x, size_t x_stride, size_t n_tokens)
{
    switch (c->what.bits) {
    case 2:
        all_tokens(2, out, c, block, x, x_stride, n_tokens);
        break;
    case 3:
        all_tokens(3, out, c, block, x, x_stride, n_tokens);
        break;
    case 4:
        all_tokens(4, out, c, block, x, x_stride, n_tokens);
        break;
    default:
        all_tokens(8, out, c, block, x, x_stride, n_tokens);
    }
}
