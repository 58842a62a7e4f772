/* SPDX-License-Identifier: Apache-2.0
 * Interleave eight stored rows into a group (linear_rows.h), AVX2: 4x4 and 8x8 transposes
 * of 4-byte words. Used once at load time by the packed layouts and on every call by the
 * stored ones, so it must run well above the speed of memory. Order of a group's parts:
 * the heads of linear_q32_avx2.c, linear_k32_avx2.c and linear_k16_avx2.c.
 */
#include "linear_layouts.h"

#include "linear_tile.h"

/* The two-byte fields at @off of eight rows. */
TILE_INLINE void put_halves(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t off)
{
    TILE_UNROLL
    for (int r = 0; r < CPU_GROUP; r++)
        memcpy(dst + 2 * r, row[r] + off, 2);
}

TILE_INLINE __m256i two_rows(const uint8_t *a, const uint8_t *b)
{
    const __m128i lo = _mm_loadu_si128((const __m128i *)(const void *)a);
    const __m128i hi = _mm_loadu_si128((const __m128i *)(const void *)b);

    return _mm256_inserti128_si256(_mm256_castsi128_si256(lo), hi, 1);
}

TILE_INLINE void store_words(uint8_t *dst, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, v);
}

/* Words 0..3 of the 16 bytes at @off: out[w] lane r = word w of row r. */
TILE_INLINE void transpose_4(__m256i out[4], const uint8_t *const row[CPU_GROUP],
                             size_t off)
{
    const __m256i a = two_rows(row[0] + off, row[4] + off);
    const __m256i b = two_rows(row[1] + off, row[5] + off);
    const __m256i c = two_rows(row[2] + off, row[6] + off);
    const __m256i d = two_rows(row[3] + off, row[7] + off);
    const __m256i ab_lo = _mm256_unpacklo_epi32(a, b);
    const __m256i ab_hi = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_lo = _mm256_unpacklo_epi32(c, d);
    const __m256i cd_hi = _mm256_unpackhi_epi32(c, d);

    out[0] = _mm256_unpacklo_epi64(ab_lo, cd_lo);
    out[1] = _mm256_unpackhi_epi64(ab_lo, cd_lo);
    out[2] = _mm256_unpacklo_epi64(ab_hi, cd_hi);
    out[3] = _mm256_unpackhi_epi64(ab_hi, cd_hi);
}

/* @n_words (multiple of 4) words from @off on. */
TILE_INLINE void put_words(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t off,
                           int n_words)
{
    for (int w = 0; w < n_words; w += 4) {
        __m256i v[4];

        transpose_4(v, row, off + 4 * (size_t)w);
        for (int j = 0; j < 4; j++)
            store_words(dst + 32 * (w + j), v[j]);
    }
}

/* Exchange bits i and i + shift where @mask has bit i: one step of a bit permutation. */
TILE_INLINE __m256i swap_bits(__m256i v, int shift, uint32_t mask)
{
    const __m256i t = _mm256_and_si256(_mm256_xor_si256(v, _mm256_srli_epi32(v, shift)),
                                       _mm256_set1_epi32((int)mask));

    return _mm256_xor_si256(v, _mm256_xor_si256(t, _mm256_slli_epi32(t, shift)));
}

/* Fifth bits of Q5_0 and Q5_1: bit 4w + b of the word goes to bit 8b + w. The five bits
 * of a bit's index are turned by two places with four exchanges of index bits. */
TILE_INLINE void put_fifth_bits(uint8_t *dst, const uint8_t *const row[CPU_GROUP],
                                size_t off)
{
    uint32_t word[CPU_GROUP];
    __m256i v;

    TILE_UNROLL
    for (int r = 0; r < CPU_GROUP; r++)
        memcpy(&word[r], row[r] + off, sizeof word[r]);
    v = _mm256_loadu_si256((const __m256i *)(const void *)word);
    v = swap_bits(v, 3, 0x0a0a0a0au);  /* index bits 0 and 2 */
    v = swap_bits(v, 6, 0x00cc00ccu);  /* 1 and 3 */
    v = swap_bits(v, 12, 0x0000f0f0u); /* 2 and 4 */
    v = swap_bits(v, 8, 0x0000ff00u);  /* 3 and 4 */
    store_words(dst, v);
}

/* One stored block of eight rows, at @pos in each, into @dst. */
typedef void block_fn(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos);

TILE_INLINE void for_blocks(block_fn *block, size_t block_bytes, uint8_t *dst,
                            const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    /* copies, so that stores into @dst cannot change them and they stay in registers */
    const uint8_t *const row[CPU_GROUP] = {rows[0], rows[1], rows[2], rows[3],
                                           rows[4], rows[5], rows[6], rows[7]};

    for (size_t pos = 0; pos < n_blocks * block_bytes; pos += block_bytes)
        block(dst + CPU_GROUP * pos, row, pos);
}

TILE_INLINE void block_q4_0(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_words(dst + 16, row, pos + 2, 4);
}

void cpu_pack_q4_0(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q4_0, 18, dst, rows, n_blocks);
}

TILE_INLINE void block_q4_1(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_halves(dst + 16, row, pos + 2);
    put_words(dst + 32, row, pos + 4, 4);
}

void cpu_pack_q4_1(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q4_1, 20, dst, rows, n_blocks);
}

TILE_INLINE void block_q5_0(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_fifth_bits(dst + 16, row, pos + 2);
    put_words(dst + 48, row, pos + 6, 4);
}

void cpu_pack_q5_0(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q5_0, 22, dst, rows, n_blocks);
}

TILE_INLINE void block_q5_1(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_halves(dst + 16, row, pos + 2);
    put_fifth_bits(dst + 32, row, pos + 4);
    put_words(dst + 64, row, pos + 8, 4);
}

void cpu_pack_q5_1(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q5_1, 24, dst, rows, n_blocks);
}

TILE_INLINE void block_q8_0(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_words(dst + 16, row, pos + 2, 8);
}

void cpu_pack_q8_0(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q8_0, 34, dst, rows, n_blocks);
}

TILE_INLINE void block_q2_k(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos + 80);
    put_halves(dst + 16, row, pos + 82);
    put_words(dst + 32, row, pos, 20);
}

void cpu_pack_q2_k(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q2_k, 84, dst, rows, n_blocks);
}

/* Words 1..3 of the 16 bytes at @off: a 12-byte field without reading past a block. */
TILE_INLINE void put_last_three(uint8_t *dst, const uint8_t *const row[CPU_GROUP],
                                size_t off)
{
    __m256i v[4];

    transpose_4(v, row, off);
    for (int j = 0; j < 3; j++)
        store_words(dst + 32 * j, v[j + 1]);
}

TILE_INLINE void block_q3_k(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos + 108);
    put_last_three(dst + 16, row, pos + 92);
    put_words(dst + 112, row, pos, 24);
}

void cpu_pack_q3_k(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q3_k, 110, dst, rows, n_blocks);
}

TILE_INLINE void block_q4_k(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_halves(dst + 16, row, pos + 2);
    put_last_three(dst + 32, row, pos);
    put_words(dst + 128, row, pos + 16, 32);
}

void cpu_pack_q4_k(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q4_k, 144, dst, rows, n_blocks);
}

TILE_INLINE void block_q5_k(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos);
    put_halves(dst + 16, row, pos + 2);
    put_last_three(dst + 32, row, pos);
    put_words(dst + 128, row, pos + 16, 40);
}

void cpu_pack_q5_k(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q5_k, 176, dst, rows, n_blocks);
}

TILE_INLINE void block_q6_k(uint8_t *dst, const uint8_t *const row[CPU_GROUP], size_t pos)
{
    put_halves(dst, row, pos + 208);
    put_words(dst + 16, row, pos + 192, 4);
    put_words(dst + 144, row, pos, 48);
}

void cpu_pack_q6_k(uint8_t *dst, const uint8_t *const rows[CPU_GROUP], size_t n_blocks)
{
    for_blocks(block_q6_k, 210, dst, rows, n_blocks);
}
