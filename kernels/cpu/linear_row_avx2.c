/* SPDX-License-Identifier: Apache-2.0
 * Stored rows of IQ1, IQ2, IQ3, IQ4_XS, TQ1_0 and Q1_0 times 8-bit tokens, AVX2. Their codes are
 * looked up, which takes as long as the product, so a row is not interleaved with seven others. One
 * or two tokens (planes) are multiplied as the codes come; for more, some blocks become signed
 * 8-bit codes in the first-level cache, then all tokens pass. Both ways add the same terms in the
 * same order.
 *
 * value = d * scale * code: |code| <= 127 and, in pairs against |q| <= 127 (maddubs),
 * 2 * 127 * 127 = 32258 fits int16; |scale| <= 32 with two of those fits int32. */
#include "iq_tables.h"
#include "linear_dequant.h"

#define SOME   16 /* blocks whose products are summed before the eight lanes are */
#define FEW    2  /* tokens that are multiplied as the codes come */

/* What a block has once. */
typedef struct head {
    _Alignas(32) int16_t scale[16]; /* of 16 codes each */
    _Alignas(32) uint8_t signs[32]; /* a bit for a code, set = minus; where points have no signs */
    float d;
} head;

/* A block, expanded. */
typedef struct codes {
    _Alignas(32) int8_t q[256];
    head head;
} codes;

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

/* ---- products ---- */

/* sum[c] += scale * code * q * d_x over 32 codes, in eight lanes of four codes. */
TILE_INLINE void dot_group(const reader *r, int n, group v, const head *h, int g,
                           const cpu_xblock *x, size_t x_stride, __m256 sum[TILE_MAX])
{
    /* a pair of scales: the first in the lower half, the second in the upper */
    const __m256i spread = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2,
                                            3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3);
    const __m256i scale = r->is_scaled
                              ? _mm256_shuffle_epi8(bcast_word(h->scale + 2 * g), spread)
                              : _mm256_set1_epi16(1);

    for (int c = 0; c < n; c++) {
        const cpu_xblock *xb = x + c * x_stride + g;
        const __m256i q = _mm256_sign_epi8(load_words((const uint8_t *)xb->q), v.sign);
        const __m256i p = _mm256_madd_epi16(_mm256_maddubs_epi16(v.size, q), scale);

        sum[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(p), _mm256_broadcast_ss(&xb->d), sum[c]);
    }
}

/* acc[c] += d * the sums of a block. @some: expanded, or NULL. */
TILE_INLINE void dot_one(const reader *r, int n, const codes *some, const uint8_t *block,
                           const cpu_xblock *x, size_t x_stride, __m256 acc[TILE_MAX])
{
    __m256 sum[TILE_MAX];
    head own;
    const head *h = some ? &some->head : &own;

    if (!some)
        r->head(&own, block);
    for (int c = 0; c < n; c++)
        sum[c] = _mm256_setzero_ps();
    TILE_UNROLL
    for (int g = 0; g < r->elems / 32; g++) {
        group v;

        if (some) {
            v.sign = load_words((const uint8_t *)some->q + 32 * g);
            v.size = _mm256_abs_epi8(v.sign);
        } else {
            v = r->codes(h, block, g);
        }
        dot_group(r, n, v, h, g, x, x_stride, sum);
    }
    for (int c = 0; c < n; c++)
        acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(h->d), sum[c], acc[c]);
}

TILE_INLINE float sum_lanes(__m256 v)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* out[c * 8] (+)= @n_blocks of a row times @n tokens. */
TILE_INLINE void dot_some(const reader *r, int n, float *out, const codes *some, const uint8_t *row,
                          size_t n_blocks, const cpu_xblock *x, size_t x_stride, int resume)
{
    __m256 acc[TILE_MAX];

    for (int c = 0; c < n; c++)
        acc[c] = _mm256_setzero_ps();
    for (size_t b = 0; b < n_blocks; b++, row += r->block_bytes, x += r->elems / 32) {
        if (!some)
            for (size_t i = 0; i < r->block_bytes; i += 64)
                _mm_prefetch((const char *)row + PREFETCH_BYTES + i, _MM_HINT_T0);
        dot_one(r, n, some ? some + b : NULL, row, x, x_stride, acc);
    }
    for (int c = 0; c < n; c++)
        out[c * CPU_GROUP] = sum_lanes(acc[c]) + (resume ? out[c * CPU_GROUP] : 0.0f);
}

TILE_INLINE void expand(const reader *r, codes *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += r->block_bytes) {
        r->head(&out[b].head, row);
        for (int g = 0; g < r->elems / 32; g++) {
            const group v = r->codes(&out[b].head, row, g);

            _mm256_store_si256((void *)(out[b].q + 32 * g), _mm256_sign_epi8(v.size, v.sign));
        }
    }
}

TILE_INLINE void dot_row(const reader *r, float *out, const uint8_t *row, size_t n_blocks,
                         const cpu_xblock *x, size_t x_stride, size_t n_tokens)
{
    codes some[SOME];

    for (size_t b = 0, n; b < n_blocks; b += n, row += n * r->block_bytes) {
        const cpu_xblock *xb = x + b * (size_t)(r->elems / 32);
        size_t t = 0;

        n = n_blocks - b < SOME ? n_blocks - b : SOME;
        if (n_tokens == 1) {
            dot_some(r, 1, out, NULL, row, n, xb, x_stride, b > 0);
            continue;
        }
        if (n_tokens == FEW) {
            dot_some(r, FEW, out, NULL, row, n, xb, x_stride, b > 0);
            continue;
        }
        expand(r, some, row, n);
        for (; t + 4 <= n_tokens; t += 4)
            dot_some(r, 4, out + t * CPU_GROUP, some, row, n, xb + t * x_stride, x_stride, b > 0);
        for (; t < n_tokens; t++)
            dot_some(r, 1, out + t * CPU_GROUP, some, row, n, xb + t * x_stride, x_stride, b > 0);
    }
}

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

/* Five digits of 32 bytes, five of 16, four of 4. */
TILE_INLINE group codes_tq1_0(const head *h, const uint8_t *block, int g)
{
    __m256i v;
    (void)h;

    if (g < 5) {
        v = load_words(block);
        for (int i = 0; i < g; i++)
            v = times3(v);
        return signed_codes(top_trits(v));
    }
    __m128i x = _mm_loadu_si128((const void *)(block + 32));
    for (int i = 0; i < 2 * (g - 5); i++)
        x = times3_half(x);
    if (g < 7)
        return signed_codes(top_trits(_mm256_set_m128i(times3_half(x), x)));
    const __m128i h0 = _mm_cvtsi32_si128((int)u32_at(block + 48)), h1 = times3_half(h0);
    const __m128i h2 = times3_half(h1), h3 = times3_half(h2);
    v = _mm256_set_m128i(
        _mm_unpacklo_epi64(_mm_unpacklo_epi32(h0, h1), _mm_unpacklo_epi32(h2, h3)), x);
    return signed_codes(top_trits(v));
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

#define ROW(id, elems_, bytes, scaled)                                                          \
    void cpu_row_##id(float *out, const uint8_t *row, size_t n_blocks, const cpu_xblock *x, \
                      size_t x_stride, size_t n_tokens)                                   \
    {                                                                                     \
        const reader r = {elems_, bytes, scaled, head_##id, codes_##id};                  \
                                                                                          \
        dot_row(&r, out, row, n_blocks, x, x_stride, n_tokens);                           \
    }

ROW(iq1_s, 256, 50, 1)
ROW(iq1_m, 256, 56, 1)
ROW(iq2_xxs, 256, 66, 1)
ROW(iq2_xs, 256, 74, 1)
ROW(iq2_s, 256, 82, 1)
ROW(iq3_xxs, 256, 98, 1)
ROW(iq3_s, 256, 110, 1)
ROW(iq4_xs, 256, 136, 1)
ROW(tq1_0, 256, 54, 0)
ROW(q1_0, 128, 18, 0)
