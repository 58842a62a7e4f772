/* SPDX-License-Identifier: Apache-2.0
 * Stored rows of the 32-input layouts to float32, AVX2; bit-equal to the SDK's decoder:
 * scale * (code - zero), or scale * code + min, each step rounded (no contraction).
 */
#include "linear_dequant.h"

/* 32 nibbles of 16 bytes: inputs 0..15 low halves, 16..31 high halves. */
TILE_INLINE __m256i nibbles(const uint8_t *qs)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)qs);
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(v, 4), v);

    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/* Bit i of the word at @qh, as bit 4 of byte i. */
TILE_INLINE __m256i fifth_bits(const uint8_t *qh)
{
    const __m256i spread =
        _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
                         2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    const __m256i bytes = _mm256_shuffle_epi8(bcast_word(qh), spread);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);

    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

void cpu_dequant_q4_0(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 18, out += 32)
        put_signed(out, _mm256_sub_epi8(nibbles(row + 2), _mm256_set1_epi8(8)),
                   half_at(row));
}

void cpu_dequant_q4_1(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 20, out += 32)
        put_min(out, nibbles(row + 4), half_at(row), half_at(row + 2));
}

void cpu_dequant_q5_0(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 22, out += 32) {
        const __m256i q = _mm256_or_si256(nibbles(row + 6), fifth_bits(row + 2));

        put_signed(out, _mm256_sub_epi8(q, _mm256_set1_epi8(16)), half_at(row));
    }
}

void cpu_dequant_q5_1(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 24, out += 32)
        put_min(out, _mm256_or_si256(nibbles(row + 8), fifth_bits(row + 4)), half_at(row),
                half_at(row + 2));
}

void cpu_dequant_q8_0(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 34, out += 32)
        put_signed(out, load_words(row + 2), half_at(row));
}
