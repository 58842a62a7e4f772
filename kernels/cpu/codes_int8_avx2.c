/* SPDX-License-Identifier: Apache-2.0
 * Packed integer codes times 8-bit activations, AVX2: per block of 32 columns an exact integer
 * sum, then acc += scale * d_x * sum, then acc -= scale * zero * d_x * sum_x (or + min). */
#include "codes.h"

#include "codes_avx2.h"

/* @bits is a constant; int16 sums: linear_tile.h. */
TILE_INLINE void dot_codes(int n, int bits, const uint8_t *codes, const cpu_xblock *x,
                           size_t x_stride, __m256i isum[TILE_MAX])
{
    const int flush = bits <= 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 1;

    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w0 = 0; w0 < 8; w0 += flush) {
        __m256i part[TILE_MAX];

        for (int c = 0; c < n; c++)
            part[c] = _mm256_setzero_si256();
        TILE_UNROLL
        for (int w = w0; w < w0 + flush; w++) {
            const __m256i u = codes_word(codes, bits, w);
            for (int c = 0; c < n; c++)
                part[c] = in_order(
                    n, _mm256_add_epi16(part[c], _mm256_maddubs_epi16(
                                                     u, bcast_word(x[c * x_stride].q + 4 * w))));
        }
        for (int c = 0; c < n; c++)
            isum[c] = _mm256_add_epi32(isum[c], widen(part[c]));
    }
}

/* 8 bits: codes less 128, whose size is the unsigned factor; the sign goes to the activation. */
TILE_INLINE void dot_bytes(int n, const uint8_t *codes, const cpu_xblock *x, size_t x_stride,
                           __m256i isum[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w = 0; w < 8; w++) {
        const __m256i v =
            _mm256_xor_si256(load_words(codes + 32 * w), _mm256_set1_epi8((char)0x80));
        const __m256i u = _mm256_abs_epi8(v);

        for (int c = 0; c < n; c++) {
            const __m256i q = bcast_word(x[c * x_stride].q + 4 * w);
            const __m256i p = _mm256_maddubs_epi16(u, _mm256_sign_epi8(q, v));
            isum[c] = in_order(n, _mm256_add_epi32(isum[c], widen(p)));
        }
    }
}

/* Minimum to add per scaled unit of the activation's sum. */
TILE_INLINE __m256 minima(const cpu_codes *c, const uint8_t *block, uint64_t g, __m256 scale,
                          int bits)
{
    const __m256 zero = codes_zeros(c, block, g);
    const __m256 offset = _mm256_set1_ps(bits == 8 ? 128.0f : 0.0f);

    if (c->what.zero_type >= DAVIT_MIN_F32)
        return _mm256_add_ps(zero, _mm256_mul_ps(scale, offset));
    return _mm256_mul_ps(scale, _mm256_sub_ps(offset, zero));
}

TILE_INLINE void tile_codes(int n, int bits, float *out, const cpu_codes *c,
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
        if (bits == 8)
            dot_bytes(n, codes, x, x_stride, isum);
        else
            dot_codes(n, bits, codes, x, x_stride, isum);
        add_block_min(n, acc, isum, scale, min, x, x_stride);
    }
    store(n, out, acc);
}

TILE_INLINE void all_tokens(int bits, float *out, const cpu_codes *c, const uint8_t *block,
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
    case 1:
        all_tokens(1, out, c, block, x, x_stride, n_tokens);
        break;
    case 2:
        all_tokens(2, out, c, block, x, x_stride, n_tokens);
        break;
    case 3:
        all_tokens(3, out, c, block, x, x_stride, n_tokens);
        break;
    case 4:
        all_tokens(4, out, c, block, x, x_stride, n_tokens);
        break;
    case 5:
        all_tokens(5, out, c, block, x, x_stride, n_tokens);
        break;
    case 6:
        all_tokens(6, out, c, block, x, x_stride, n_tokens);
        break;
    case 7:
        all_tokens(7, out, c, block, x, x_stride, n_tokens);
        break;
    default:
        all_tokens(8, out, c, block, x, x_stride, n_tokens);
    }
}
