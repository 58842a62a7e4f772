/* SPDX-License-Identifier: Apache-2.0
 * Reads the stored blocks of IQ1, IQ2, IQ3, IQ4_XS, TQ1_0 and Q1_0 32 codes at a time: what the
 * scalar definition (sdk/src/ref/dequant_iq.c) says, value = d * scale * code, |code| <= 127,
 * |scale| <= 32. Both products are exact in float32: d has 11 bits, scale 6, code 7. Included by
 * files built with -mavx2 only.
 */
#ifndef CPU_IQ_BLOCKS_H
#define CPU_IQ_BLOCKS_H

#include "iq_tables.h"
#include "linear_dequant.h"

/* What a block has once. */
typedef struct head {
    _Alignas(32) int16_t scale[16]; /* of 16 codes each */
    _Alignas(32) uint8_t signs[32]; /* a bit for a code, set = minus; where points have no signs */
    float d;
} head;

/* 32 codes: size * sign(sign), sign not 0 where size is not. */
typedef struct group {
    __m256i size, sign;
} group;

/* How a layout is read; always inlined, so that calls through it are direct. */
typedef struct reader {
    int elems;
    size_t block_bytes;
    int is_scaled; /* 0 = every scale is 1 and head leaves it out */
    void (*head)(head *out, const uint8_t *block);
    group (*codes)(const head *h, const uint8_t *block, int g);
} reader;

/* ---- pieces of a block ---- */

TILE_INLINE __m256i four_words(const uint64_t *table, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm256_setr_epi64x((long long)table[a], (long long)table[b], (long long)table[c],
                              (long long)table[d]);
}

TILE_INLINE group with_signs(const head *h, int g, __m256i size)
{
    /* byte k of the word to codes 8k .. 8k+7, then a bit each */
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                              0x0303030303030303);
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i word = _mm256_shuffle_epi8(bcast_word(h->signs + 4 * g), spread);
    const __m256i minus = _mm256_cmpeq_epi8(_mm256_and_si256(word, bits), bits);

    return (group){size, _mm256_or_si256(minus, _mm256_set1_epi8(1))};
}

TILE_INLINE group signed_codes(__m256i v)
{
    return (group){_mm256_abs_epi8(v), v};
}

/* Bytes of seven bits, and an eighth that makes the number of set bits even. */
TILE_INLINE void put_even_signs(head *out, __m256i v)
{
    const __m256i odd = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i parity =
        _mm256_xor_si256(_mm256_shuffle_epi8(odd, _mm256_and_si256(v, low)),
                         _mm256_shuffle_epi8(odd, _mm256_and_si256(_mm256_srli_epi16(v, 4), low)));

    _mm256_store_si256((void *)out->signs, _mm256_or_si256(v, parity));
}

/* Four fields of seven bits in each word, a byte for each. */
TILE_INLINE __m256i fields(__m256i words)
{
    const __m256i field = _mm256_set1_epi32(127);
    const __m256i a = _mm256_and_si256(words, field);
    const __m256i b = _mm256_and_si256(_mm256_slli_epi32(words, 1), _mm256_slli_epi32(field, 8));
    const __m256i c = _mm256_and_si256(_mm256_slli_epi32(words, 2), _mm256_slli_epi32(field, 16));
    const __m256i d = _mm256_and_si256(_mm256_slli_epi32(words, 3), _mm256_slli_epi32(field, 24));

    return _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
}

TILE_INLINE void put_signs(head *out, const uint8_t *bits)
{
    _mm256_store_si256((void *)out->signs, load_words(bits));
}

/* 2 * k + 1 for the nibbles of 8 bytes, the low half first. */
TILE_INLINE __m256i odd_scales(const uint8_t *p)
{
    const __m128i v = _mm_loadl_epi64((const void *)p), low = _mm_set1_epi8(15);
    const __m128i nibbles = _mm_unpacklo_epi8(_mm_and_si128(v, low),
                                              _mm_and_si128(_mm_srli_epi16(v, 4), low));
    const __m256i wide = _mm256_cvtepu8_epi16(nibbles);

    return _mm256_add_epi16(_mm256_add_epi16(wide, wide), _mm256_set1_epi16(1));
}

TILE_INLINE void put_scales(head *out, __m256i scales)
{
    _mm256_store_si256((void *)out->scale, scales);
}

/* Eight scales of 32 codes each; int32. */
TILE_INLINE void put_wide_scales(head *out, __m256i scales)
{
    put_scales(out, _mm256_or_si256(_mm256_slli_epi32(scales, 16),
                                    _mm256_and_si256(scales, _mm256_set1_epi32(0xffff))));
}

/* The top nibble of eight words, times 2, plus 1. */
TILE_INLINE void put_top_scales(head *out, __m256i words)
{
    const __m256i k = _mm256_srli_epi32(words, 28);

    put_wide_scales(out, _mm256_add_epi32(_mm256_add_epi32(k, k), _mm256_set1_epi32(1)));
}

/* ---- IQ2: scales in eighths ---- */

TILE_INLINE void head_iq2_xxs(head *out, const uint8_t *block)
{
    /* the second word of each of eight pairs */
    const __m256 a = _mm256_castsi256_ps(load_words(block + 2));
    const __m256 b = _mm256_castsi256_ps(load_words(block + 34));
    const __m256i odd = _mm256_permute4x64_epi64(
        _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8);

    out->d = half_at(block) * 0.125f;
    put_even_signs(out, fields(odd));
    put_top_scales(out, odd);
}

TILE_INLINE group codes_iq2_xxs(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 2 + 8 * g;

    return with_signs(h, g, four_words(cpu_iq.iq2_xxs, p[0], p[1], p[2], p[3]));
}

TILE_INLINE void head_iq2_xs(head *out, const uint8_t *block)
{
    /* the upper seven bits of 32 words */
    const __m256i bits = _mm256_packus_epi16(_mm256_srli_epi16(load_words(block + 2), 9),
                                             _mm256_srli_epi16(load_words(block + 34), 9));

    out->d = half_at(block) * 0.125f;
    put_even_signs(out, _mm256_permute4x64_epi64(bits, 0xd8));
    put_scales(out, odd_scales(block + 66));
}

TILE_INLINE group codes_iq2_xs(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 2 + 8 * g;

    return with_signs(h, g, four_words(cpu_iq.iq2_xs, u16_at(p) & 511, u16_at(p + 2) & 511,
                                       u16_at(p + 4) & 511, u16_at(p + 6) & 511));
}

TILE_INLINE void head_iq2_s(head *out, const uint8_t *block)
{
    out->d = half_at(block) * 0.125f;
    put_signs(out, block + 34);
    put_scales(out, odd_scales(block + 74));
}

TILE_INLINE group codes_iq2_s(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 2 + 4 * g;
    const uint32_t high = block[66 + g];

    return with_signs(h, g, four_words(cpu_iq.iq2_s, p[0] | (high << 8 & 0x300),
                                       p[1] | (high << 6 & 0x300), p[2] | (high << 4 & 0x300),
                                       p[3] | (high << 2 & 0x300)));
}

/* ---- IQ3: two points of four ---- */

TILE_INLINE __m256i eight_words(const uint32_t *t, const uint32_t at[8])
{
    return _mm256_setr_epi32((int)t[at[0]], (int)t[at[1]], (int)t[at[2]], (int)t[at[3]],
                             (int)t[at[4]], (int)t[at[5]], (int)t[at[6]], (int)t[at[7]]);
}

TILE_INLINE void head_iq3_xxs(head *out, const uint8_t *block)
{
    const __m256i words = load_words(block + 66);

    out->d = half_at(block) * 0.25f;
    put_even_signs(out, fields(words));
    put_top_scales(out, words);
}

TILE_INLINE group codes_iq3_xxs(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 2 + 8 * g;
    const uint32_t at[8] = {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};

    return with_signs(h, g, eight_words(cpu_iq.iq3_xxs, at));
}

TILE_INLINE void head_iq3_s(head *out, const uint8_t *block)
{
    const __m256i nibbles = _mm256_srlv_epi32(bcast_word(block + 106),
                                              _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i k = _mm256_and_si256(nibbles, _mm256_set1_epi32(15));

    out->d = half_at(block);
    put_signs(out, block + 74);
    put_wide_scales(out, _mm256_add_epi32(_mm256_add_epi32(k, k), _mm256_set1_epi32(1)));
}

TILE_INLINE group codes_iq3_s(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 2 + 8 * g;
    const uint32_t high = block[66 + g];
    const uint32_t at[8] = {
        p[0] | (high << 8 & 256), p[1] | (high << 7 & 256), p[2] | (high << 6 & 256),
        p[3] | (high << 5 & 256), p[4] | (high << 4 & 256), p[5] | (high << 3 & 256),
        p[6] | (high << 2 & 256), p[7] | (high << 1 & 256),
    };

    return with_signs(h, g, eight_words(cpu_iq.iq3_s, at));
}

/* ---- IQ1: eighths, one of them to or fro ---- */

TILE_INLINE void head_iq1_s(head *out, const uint8_t *block)
{
    const __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(block + 34)));
    const __m256i k = _mm256_and_si256(_mm256_srli_epi32(h, 12), _mm256_set1_epi32(7));

    out->d = half_at(block) * 0.125f;
    put_wide_scales(out, _mm256_add_epi32(_mm256_add_epi32(k, k), _mm256_set1_epi32(1)));
}

TILE_INLINE group codes_iq1_s(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 2 + 4 * g;
    const uint32_t at = u16_at(block + 34 + 2 * g);
    const __m256i v = four_words(cpu_iq.iq1, p[0] | (at << 8 & 0x700), p[1] | (at << 5 & 0x700),
                                 p[2] | (at << 2 & 0x700), p[3] | (at >> 1 & 0x700));
    (void)h;

    return signed_codes(_mm256_add_epi8(v, _mm256_set1_epi8((char)(1 - (int)(at >> 15) * 2))));
}

TILE_INLINE void head_iq1_m(head *out, const uint8_t *block)
{
    const uint8_t *s = block + 48;
    /* the upper nibble of each of four words */
    const uint8_t bits[2] = {(uint8_t)(s[1] >> 4 | (s[3] & 0xf0)),
                             (uint8_t)(s[5] >> 4 | (s[7] & 0xf0))};
    /* three bits of word k / 4, as the upper half of a product by a power of two */
    const __m256i words = _mm256_shuffle_epi8(
        _mm256_broadcastq_epi64(_mm_loadl_epi64((const void *)s)),
        _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 6,
                         7, 6, 7, 6, 7, 6, 7));
    const __m256i down = _mm256_mulhi_epu16(
        _mm256_slli_epi16(words, 1),
        _mm256_setr_epi16((short)32768, 4096, 512, 64, (short)32768, 4096, 512, 64, (short)32768,
                          4096, 512, 64, (short)32768, 4096, 512, 64));
    const __m256i k = _mm256_and_si256(down, _mm256_set1_epi16(7));

    out->d = half_at(bits) * 0.125f;
    put_scales(out, _mm256_add_epi16(_mm256_add_epi16(k, k), _mm256_set1_epi16(1)));
}

TILE_INLINE group codes_iq1_m(const head *h, const uint8_t *block, int g)
{
    const uint8_t *p = block + 4 * g;
    const uint32_t at = u16_at(block + 32 + 2 * g);
    const __m256i v = four_words(cpu_iq.iq1, p[0] | (at << 8 & 0x700), p[1] | (at << 4 & 0x700),
                                 p[2] | (at & 0x700), p[3] | (at >> 4 & 0x700));
    /* the top bit of each nibble, for eight codes */
    const __m256i bit = _mm256_setr_epi64x(8, 128, 2048, 32768);
    const __m256i minus = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((long long)at), bit),
                                             bit);
    (void)h;

    return signed_codes(_mm256_add_epi8(v, _mm256_or_si256(minus, _mm256_set1_epi8(1))));
}

/* ---- IQ4_XS, TQ1_0, Q1_0 ---- */

TILE_INLINE void head_iq4_xs(head *out, const uint8_t *block)
{
    const __m256i low = _mm256_srlv_epi32(bcast_word(block + 4),
                                          _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32((int)u16_at(block + 2)),
                                           _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i k = _mm256_or_si256(
        _mm256_and_si256(low, _mm256_set1_epi32(15)),
        _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));

    out->d = half_at(block);
    put_wide_scales(out, _mm256_sub_epi32(k, _mm256_set1_epi32(32)));
}

TILE_INLINE group codes_iq4_xs(const head *h, const uint8_t *block, int g)
{
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));
    const __m128i v = _mm_loadu_si128((const void *)(block + 8 + 16 * g));
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(v, 4), v);
    (void)h;

    return signed_codes(_mm256_shuffle_epi8(table, _mm256_and_si256(both, _mm256_set1_epi8(15))));
}

TILE_INLINE void head_tq1_0(head *out, const uint8_t *block)
{
    out->d = half_at(block + 52);
}

/* Bytes v + 128 hold base-3 digits; the topmost one of v less 1: 3 v / 256 passes 1 at 86, 2 at 171. */
TILE_INLINE __m256i top_trits(__m256i v)
{
    const __m256i none = _mm256_cmpgt_epi8(_mm256_set1_epi8(86 - 128), v);
    const __m256i two = _mm256_cmpgt_epi8(v, _mm256_set1_epi8(170 - 128));

    return _mm256_sub_epi8(none, two);
}

/* The next digit on top: 3 (v + 128) = 3 v + 128 modulo 256. */
TILE_INLINE __m256i times3(__m256i v)
{
    return _mm256_add_epi8(v, _mm256_add_epi8(v, v));
}

TILE_INLINE __m128i times3_half(__m128i v)
{
    return _mm_add_epi8(v, _mm_add_epi8(v, v));
}

/* Five digits of 32 bytes, five of 16, four of 4. */
TILE_INLINE group codes_tq1_0(const head *h, const uint8_t *block, int g)
{
    const __m128i flip = _mm_set1_epi8(-128);
    (void)h;

    if (g < 5) {
        __m256i v = _mm256_xor_si256(load_words(block), _mm256_broadcastsi128_si256(flip));

        for (int i = 0; i < g; i++)
            v = times3(v);
        return signed_codes(top_trits(v));
    }
    __m128i x = _mm_xor_si128(_mm_loadu_si128((const void *)(block + 32)), flip);
    for (int i = 0; i < 2 * (g - 5); i++)
        x = times3_half(x);
    if (g < 7)
        return signed_codes(top_trits(_mm256_set_m128i(times3_half(x), x)));
    const __m128i h0 = _mm_xor_si128(_mm_cvtsi32_si128((int)u32_at(block + 48)), flip);
    const __m128i h1 = times3_half(h0), h2 = times3_half(h1), h3 = times3_half(h2);
    const __m128i four = _mm_unpacklo_epi64(_mm_unpacklo_epi32(h0, h1), _mm_unpacklo_epi32(h2, h3));
    return signed_codes(top_trits(_mm256_set_m128i(four, x)));
}

TILE_INLINE void head_q1_0(head *out, const uint8_t *block)
{
    const __m128i bits = _mm_loadu_si128((const void *)(block + 2));

    out->d = half_at(block);
    /* a set bit is 1 */
    _mm_store_si128((void *)out->signs, _mm_xor_si128(bits, _mm_set1_epi8(-1)));
}

TILE_INLINE group codes_q1_0(const head *h, const uint8_t *block, int g)
{
    (void)block;
    return with_signs(h, g, _mm256_set1_epi8(1));
}

/* F(name, elements, bytes, is_scaled) for every layout. */
#define IQ_BLOCKS(F)                                                                      \
    F(iq1_s, 256, 50, 1)                                                                  \
    F(iq1_m, 256, 56, 1)                                                                  \
    F(iq2_xxs, 256, 66, 1)                                                                \
    F(iq2_xs, 256, 74, 1)                                                                 \
    F(iq2_s, 256, 82, 1)                                                                  \
    F(iq3_xxs, 256, 98, 1)                                                                \
    F(iq3_s, 256, 110, 1)                                                                 \
    F(iq4_xs, 256, 136, 1)                                                                \
    F(tq1_0, 256, 54, 0)                                                                  \
    F(q1_0, 128, 18, 0)

#endif
