/* SPDX-License-Identifier: Apache-2.0
 * Writing the packed layout of codes.h with AVX2: eight rows of 32 columns at a time, the same bytes as
 * pack_codes.c writes. Runs once at load, over every weight. */
#include "pack_codes.h"

#include "linear_tile.h"

/* 32 codes of a row; bytes 1 and 2 of each four change places where @order says so. */
TILE_INLINE __m256i row_codes(const uint8_t *at, __m256i order)
{
    return _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(const void *)at), order);
}

TILE_INLINE void store_words(uint8_t *dst, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, v);
}

/* v[i]: words of rows i and i + 4, each a half. out[w] lane r = word w of row r. */
TILE_INLINE void turn_words(__m256i out[4], const __m256i v[4])
{
    const __m256i ab_lo = _mm256_unpacklo_epi32(v[0], v[1]);
    const __m256i ab_hi = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i cd_lo = _mm256_unpacklo_epi32(v[2], v[3]);
    const __m256i cd_hi = _mm256_unpackhi_epi32(v[2], v[3]);

    out[0] = _mm256_unpacklo_epi64(ab_lo, cd_lo);
    out[1] = _mm256_unpackhi_epi64(ab_lo, cd_lo);
    out[2] = _mm256_unpacklo_epi64(ab_hi, cd_hi);
    out[3] = _mm256_unpackhi_epi64(ab_hi, cd_hi);
}

/* Bits [done, done + width) of each code from bit 0 of its byte. */
TILE_INLINE __m256i bits_from(__m256i codes, uint32_t width, uint32_t done)
{
    return _mm256_and_si256(_mm256_srli_epi16(codes, (int)done),
                            _mm256_set1_epi8((char)((1u << width) - 1)));
}

/* Bytes of the plane of rows i and i + 4, each in the low bytes of a half; columns 0 to 15 of both are in
 * @low, 16 to 31 in @high. */
TILE_INLINE __m256i plane_bytes(uint32_t width, __m256i low, __m256i high)
{
    const __m256i v = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
    __m256i a, b;

    if (width == 4)
        return v; /* columns i and i + 16 */
    if (width == 2) { /* columns i, i + 8, i + 16, i + 24 */
        return _mm256_or_si256(v, _mm256_slli_epi16(_mm256_srli_si256(v, 8), 2));
    }
    a = _mm256_or_si256(v, _mm256_slli_epi16(_mm256_srli_si256(v, 4), 1)); /* i, i + 4 */
    b = _mm256_srli_si256(a, 8);
    return _mm256_or_si256(a, _mm256_slli_epi16(b, 2));
}

/* The plane of @width < 8 bits from bit @done on of eight rows' codes. Returns: the next plane. */
TILE_INLINE uint8_t *put_plane(uint8_t *dst, uint32_t width, uint32_t done, const __m256i codes[CPU_GROUP])
{
    __m256i v[4], words[4];

    for (int i = 0; i < 4; i++) {
        const __m256i a = bits_from(codes[i], width, done), b = bits_from(codes[i + 4], width, done);

        v[i] = plane_bytes(width, _mm256_permute2x128_si256(a, b, 0x20),
                           _mm256_permute2x128_si256(a, b, 0x31));
    }
    turn_words(words, v);
    for (uint32_t w = 0; w < width; w++)
        store_words(dst + 32 * w, words[w]);
    return dst + 32 * width;
}

TILE_INLINE uint8_t *put_bytes(uint8_t *dst, const __m256i codes[CPU_GROUP])
{
    for (int half = 0; half < 2; half++) {
        __m256i v[4], words[4];

        for (int i = 0; i < 4; i++)
            v[i] = half ? _mm256_permute2x128_si256(codes[i], codes[i + 4], 0x31)
                        : _mm256_permute2x128_si256(codes[i], codes[i + 4], 0x20);
        turn_words(words, v);
        for (int w = 0; w < 4; w++)
            store_words(dst + 32 * (4 * half + w), words[w]);
    }
    return dst + 256;
}

uint64_t cpu_put_codes_avx2(const cpu_codes *c, uint8_t *dst, const uint8_t *const row[CPU_GROUP])
{
    const uint32_t bits = c->what.bits;
    const __m256i same = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2,
                                          3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i middle = _mm256_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15, 0, 2,
                                            1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    const __m256i order = c->what.kind == DAVIT_CODE_UINT ? same : middle;
    uint64_t k = 0;

    for (; c->n_cols - k >= CPU_XBLOCK; k += CPU_XBLOCK) {
        __m256i codes[CPU_GROUP];

        for (int r = 0; r < CPU_GROUP; r++)
            codes[r] = row_codes(row[r] + k, order);
        if (bits & 8)
            dst = put_bytes(dst, codes);
        if (bits & 4)
            dst = put_plane(dst, 4, 0, codes);
        if (bits & 2)
            dst = put_plane(dst, 2, bits & 4, codes);
        if (bits & 1)
            dst = put_plane(dst, 1, bits & 6, codes);
    }
    return k;
}

/* ---- scales and zeros ---- */

/* Eight numbers that lie @step apart. */
TILE_INLINE __m256 numbers(const float *p, uint64_t step)
{
    return _mm256_setr_ps(p[0], p[step], p[2 * step], p[3 * step], p[4 * step], p[5 * step], p[6 * step],
                          p[7 * step]);
}

/* The low bytes, and the low halves, of eight words. */
TILE_INLINE void store_low_bytes(uint8_t *at, __m256i v)
{
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    _mm_storel_epi64((__m128i *)(void *)at, _mm_packus_epi16(halves, halves));
}

TILE_INLINE void store_low_halves(uint8_t *at, __m256i v)
{
    _mm_storeu_si128((__m128i *)(void *)at,
                     _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
}

TILE_INLINE void store_f16(uint8_t *at, __m256 v)
{
    _mm_storeu_si128((__m128i *)(void *)at, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* Exponents' bias from 127 to 7 by an exact product: sign, exponent and mantissa then lie side by side. */
TILE_INLINE void store_e4m3(uint8_t *at, __m256 v)
{
    const __m256i bits = _mm256_castps_si256(_mm256_mul_ps(v, _mm256_set1_ps(0x1p-120f)));
    const __m256i low = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(0x7f));
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));

    store_low_bytes(at, _mm256_or_si256(low, sign));
}

/* The lowest four bits of eight words side by side. */
TILE_INLINE void store_nibbles(uint8_t *at, __m256i v)
{
    const __m256i apart = _mm256_sllv_epi32(_mm256_and_si256(v, _mm256_set1_epi32(15)),
                                            _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    __m128i all = _mm_or_si128(_mm256_castsi256_si128(apart), _mm256_extracti128_si256(apart, 1));
    uint32_t word;

    all = _mm_or_si128(all, _mm_srli_si128(all, 8));
    all = _mm_or_si128(all, _mm_srli_si128(all, 4));
    word = (uint32_t)_mm_cvtsi128_si32(all);
    memcpy(at, &word, sizeof word);
}

void cpu_put_scales_avx2(const cpu_codes *c, uint8_t *dst, const float *scales)
{
    uint8_t *at = dst + c->scale_off;

    for (uint64_t g = 0; g < c->n_groups; g++, at += c->scale_bytes) {
        const __m256 v = numbers(scales + g, c->n_groups);

        switch (c->what.scale_type) {
        case DAVIT_SCALE_F16:
            store_f16(at, v);
            break;
        case DAVIT_SCALE_BF16:
            store_low_halves(at, _mm256_srli_epi32(_mm256_castps_si256(v), 16));
            break;
        case DAVIT_SCALE_E8M0:
            store_low_bytes(at, _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(v), 23),
                                                 _mm256_set1_epi32(255)));
            break;
        case DAVIT_SCALE_E4M3:
            store_e4m3(at, v);
            break;
        default:
            _mm256_storeu_ps((float *)(void *)at, v);
        }
    }
}

void cpu_put_zeros_avx2(const cpu_codes *c, uint8_t *dst, const float *zeros)
{
    const uint32_t type = c->what.zero_type;
    const int less = type == DAVIT_ZERO_U4_1 || type == DAVIT_ZERO_U8_1;
    uint8_t *at = dst + c->zero_off;

    for (uint64_t g = 0; g < c->n_groups; g++, at += c->zero_bytes) {
        const __m256 v = numbers(zeros + g, c->n_groups);
        const __m256i whole = _mm256_sub_epi32(_mm256_cvttps_epi32(v), _mm256_set1_epi32(less));

        switch (type) {
        case DAVIT_ZERO_U4:
        case DAVIT_ZERO_U4_1:
            store_nibbles(at, whole);
            break;
        case DAVIT_ZERO_U8:
        case DAVIT_ZERO_U8_1:
            store_low_bytes(at, whole);
            break;
        case DAVIT_MIN_F16:
            store_f16(at, v);
            break;
        default:
            _mm256_storeu_ps((float *)(void *)at, v);
        }
    }
}
