/* SPDX-License-Identifier: Apache-2.0
 * Steps that the AVX2 kernels on packed codes share: scales, zeros and codes of eight rows.
 * Included by files built with -mavx2 only. Layout: codes.h. */
#ifndef CPU_CODES_AVX2_H
#define CPU_CODES_AVX2_H

#include "codes.h"
#include "linear_tile.h"

TILE_INLINE __m256i load_bytes8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

/* Eight e4m3 numbers in the low bytes of @v; e5m2 with shift 21 and its unit. */
TILE_INLINE __m256 small_floats(__m256i v, int shift, float unit)
{
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0x80)), 24);
    const __m256i rest =
        _mm256_slli_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0x7f)), shift);

    return _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(sign, rest)),
                         _mm256_set1_ps(unit));
}

TILE_INLINE __m256 scales_from(const cpu_codes *c, const uint8_t *block, const uint8_t *at)
{
    float factor;

    switch (c->what.scale_type) {
    case DAVIT_SCALE_F16:
        return load_halves(at);
    case DAVIT_SCALE_BF16:
        return _mm256_castsi256_ps(_mm256_slli_epi32(
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at)), 16));
    case DAVIT_SCALE_E8M0: {
        const __m256i v = load_bytes8(at);
        const __m256i least = _mm256_and_si256(_mm256_cmpeq_epi32(v, _mm256_setzero_si256()),
                                               _mm256_set1_epi32(0x00400000));
        return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(v, 23), least));
    }
    case DAVIT_SCALE_E4M3: {
        const __m256 s = small_floats(load_bytes8(at), 20, 0x1p120f);
        memcpy(&factor, block, sizeof factor);
        return block[4] ? _mm256_div_ps(s, _mm256_set1_ps(factor))
                        : _mm256_mul_ps(s, _mm256_set1_ps(factor));
    }
    default:
        return _mm256_loadu_ps((const float *)(const void *)at);
    }
}

/* Scales of the eight rows in group @g. */
TILE_INLINE __m256 codes_scales(const cpu_codes *c, const uint8_t *block, uint64_t g)
{
    if (c->n_shared == 1)
        return _mm256_set1_ps(cpu_codes_scale(c, block, 0, g));
    return scales_from(c, block, block + c->scale_off + g * c->scale_bytes);
}

/* Zeros, or minima. */
TILE_INLINE __m256 codes_zeros(const cpu_codes *c, const uint8_t *block, uint64_t g)
{
    const uint8_t *at = block + c->zero_off + g * c->zero_bytes;
    __m256i v;

    if (c->what.zero_type == DAVIT_ZERO_CONST)
        return _mm256_set1_ps(c->what.zero);
    if (c->n_shared == 1)
        return _mm256_set1_ps(cpu_codes_zero(c, block, 0, g));
    switch (c->what.zero_type) {
    case DAVIT_ZERO_U4:
    case DAVIT_ZERO_U4_1: /* nibble r of a word to lane r */
        v = _mm256_srlv_epi32(bcast_word(at), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
        v = _mm256_and_si256(v, _mm256_set1_epi32(15));
        break;
    case DAVIT_ZERO_U8:
    case DAVIT_ZERO_U8_1:
        v = load_bytes8(at);
        break;
    case DAVIT_MIN_F16:
        return load_halves(at);
    default:
        return _mm256_loadu_ps((const float *)(const void *)at);
    }
    if (c->what.zero_type == DAVIT_ZERO_U4_1 || c->what.zero_type == DAVIT_ZERO_U8_1)
        v = _mm256_add_epi32(v, _mm256_set1_epi32(1));
    return _mm256_cvtepi32_ps(v);
}

/* Bits of the plane of @width at @plane for word @w, from bit 0 of each byte. */
TILE_INLINE __m256i plane_word(const uint8_t *plane, int width, int w)
{
    const __m256i v = load_words(plane + 32 * (w % width));
    const int shift = w / width * width;

    return _mm256_and_si256(shift ? _mm256_srli_epi16(v, shift) : v,
                            _mm256_set1_epi8((char)((1 << width) - 1)));
}

/* Codes of word @w (columns 4w .. 4w+3) of 32 columns; @bits is a constant. */
TILE_INLINE __m256i codes_word(const uint8_t *at, int bits, int w)
{
    __m256i u;
    int done = 0;

    if (bits == 8)
        return load_words(at + 32 * w);
    if (bits & 4) {
        u = plane_word(at, 4, w);
        at += 128;
        done = 4;
    }
    if (bits & 2) {
        const __m256i p = plane_word(at, 2, w);
        u = done ? _mm256_or_si256(u, _mm256_slli_epi16(p, done)) : p;
        at += 64;
        done += 2;
    }
    if (bits & 1) {
        const __m256i p = plane_word(at, 1, w);
        u = done ? _mm256_or_si256(u, _mm256_slli_epi16(p, done)) : p;
    }
    return u;
}

#endif
