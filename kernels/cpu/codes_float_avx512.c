/* SPDX-License-Identifier: Apache-2.0
 * Packed float codes of 4 bits (E2M1, IQ4, NF4, FP4) times one float32 token in 512-bit vectors: a code
 * is looked up by one permutation of sixteen floats, two columns of eight rows at a time. Order of sums
 * and rounding are those of codes_float_avx2.c, which takes several tokens, so that bits are equal.
 * Built for AVX512F, BW, DQ, VL; with CPU_VNNI_SIMDE in portable C for tests. */
#include "codes.h"

#include "codes_float_scales.h"

#define HALF  CPU_CODES_HALF
#define WORDS 4  /* of eight rows, four columns in the low and four in the high halves of bytes */
#define LANES 16 /* column 0 and 1 of each row, side by side */

#if defined(CPU_VNNI_SIMDE)

TILE_INLINE __m512 from_lanes(const float v[LANES])
{
    __m512 out;

    memcpy(&out, v, sizeof out);
    return out;
}

/* For each row a word and, in the 32 bits behind, its columns 1 and 3 (bytes 2 and 3: codes.h). */
TILE_INLINE __m512i widen_words(const uint8_t *p)
{
    uint64_t v[LANES / 2];
    uint32_t word;
    __m512i out;

    for (int r = 0; r < LANES / 2; r++) {
        memcpy(&word, p + 4 * r, sizeof word);
        v[r] = word | (uint64_t)word << 16;
    }
    memcpy(&out, v, sizeof out);
    return out;
}

TILE_INLINE __m512 look_up(__m512i v, int shift, __m512 table)
{
    uint32_t at[LANES];
    float values[LANES], out[LANES];

    memcpy(at, &v, sizeof at);
    memcpy(values, &table, sizeof values);
    for (int i = 0; i < LANES; i++)
        out[i] = values[at[i] >> shift & 15];
    return from_lanes(out);
}

TILE_INLINE __m512 twice(__m256 scale)
{
    float v[LANES / 2], out[LANES];

    _mm256_storeu_ps(v, scale);
    for (int i = 0; i < LANES; i++)
        out[i] = v[i / 2];
    return from_lanes(out);
}

TILE_INLINE __m512 pairs(const float *x)
{
    float out[LANES];

    for (int i = 0; i < LANES; i++)
        out[i] = x[i % 2];
    return from_lanes(out);
}

/* acc + x * (scale * v), the sum fused. */
TILE_INLINE __m512 add_scaled(__m512 acc, __m512 x, __m512 scale, __m512 v)
{
    float a[LANES], b[LANES], c[LANES], d[LANES];

    memcpy(a, &acc, sizeof a);
    memcpy(b, &x, sizeof b);
    memcpy(c, &scale, sizeof c);
    memcpy(d, &v, sizeof d);
    for (int i = 0; i < LANES; i += 8)
        _mm256_storeu_ps(a + i,
                         _mm256_fmadd_ps(_mm256_loadu_ps(b + i),
                                         _mm256_mul_ps(_mm256_loadu_ps(c + i), _mm256_loadu_ps(d + i)),
                                         _mm256_loadu_ps(a + i)));
    return from_lanes(a);
}

/* (0 + 2) + (1 + 3) of the columns mod 4, for each row. */
TILE_INLINE __m256 joined(__m512 even, __m512 odd)
{
    float a[LANES], b[LANES], out[LANES / 2];

    memcpy(a, &even, sizeof a);
    memcpy(b, &odd, sizeof b);
    for (int r = 0; r < LANES / 2; r++)
        out[r] = (a[2 * r] + b[2 * r]) + (a[2 * r + 1] + b[2 * r + 1]);
    return _mm256_loadu_ps(out);
}

#else

TILE_INLINE __m512i widen_words(const uint8_t *p)
{
    const __m512i v = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)p));

    return _mm512_or_si512(v, _mm512_slli_epi64(v, 16));
}

/* Permutations see the low four bits of each 32. */
TILE_INLINE __m512 look_up(__m512i v, int shift, __m512 table)
{
    return _mm512_permutexvar_ps(shift ? _mm512_srli_epi32(v, (unsigned)shift) : v, table);
}

TILE_INLINE __m512 twice(__m256 scale)
{
    const __m512i at = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);

    return _mm512_permutexvar_ps(at, _mm512_castps256_ps512(scale));
}

TILE_INLINE __m512 pairs(const float *x)
{
    int64_t pair;

    memcpy(&pair, x, sizeof pair);
    return _mm512_castsi512_ps(_mm512_set1_epi64(pair));
}

TILE_INLINE __m512 add_scaled(__m512 acc, __m512 x, __m512 scale, __m512 v)
{
    return _mm512_fmadd_ps(x, _mm512_mul_ps(scale, v), acc);
}

TILE_INLINE __m256 joined(__m512 even, __m512 odd)
{
    const __m512i first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i second = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512 sum = _mm512_add_ps(even, odd);

    return _mm256_add_ps(_mm512_castps512_ps256(_mm512_permutexvar_ps(first, sum)),
                         _mm512_castps512_ps256(_mm512_permutexvar_ps(second, sum)));
}

#endif

/* A walk over the columns of one block. */
typedef struct walk {
    int type; /* constant */
    const cpu_codes *c;
    const uint8_t *block;
    const float *x;   /* next input */
    uint64_t g, left; /* group, halves left of it */
    scales from;
    __m512 table, scale;
    __m512 even, odd; /* sums of columns 0 and 1, and of 2 and 3, mod 4 */
} walk;

/* HALF columns, from bit @bit of each byte. */
TILE_STEP void half_block(walk *at, const __m512i words[WORDS], int bit)
{
    if (at->left == 0) {
        at->left = cpu_ceil_div(at->c->group, HALF);
        at->scale = twice(row_scales(at->type, at->c, at->block, &at->from, ++at->g));
    }
    at->left--;
    TILE_UNROLL
    for (int i = 0; i < WORDS; i++) {
        at->even = add_scaled(at->even, pairs(at->x + 4 * i), at->scale, look_up(words[i], bit, at->table));
        at->odd = add_scaled(at->odd, pairs(at->x + 4 * i + 2), at->scale, look_up(words[i], bit + 8, at->table));
    }
    at->x += HALF;
}

TILE_STEP void block_dot(int type, float *out, const cpu_codes *c, const uint8_t *block, const float *x)
{
    const uint8_t *codes = block + c->code_off;
    walk at = {.type = type, .c = c, .block = block, .x = x, .left = cpu_ceil_div(c->group, HALF),
               .from = scales_of(type, c, block)};
    float tail[CPU_XBLOCK] = {0};

    memcpy(&at.table, cpu_codes_table(c->what.kind), sizeof at.table);
    at.scale = twice(row_scales(type, c, block, &at.from, 0));
    memset(&at.even, 0, sizeof at.even);
    at.odd = at.even;
    for (uint64_t k = 0; k < c->n_cols; k += CPU_XBLOCK, codes += 32 * WORDS) {
        __m512i words[WORDS];

        for (int i = 0; i < 32 * WORDS; i += 64)
            _mm_prefetch((const char *)codes + PREFETCH_BYTES + i, _MM_HINT_T0);
        for (int i = 0; i < WORDS; i++)
            words[i] = widen_words(codes + 32 * i);
        if (c->n_cols - k < CPU_XBLOCK) { /* the last ones, with zeros behind */
            memcpy(tail, at.x, (c->n_cols - k) * sizeof *tail);
            at.x = tail;
        }
        half_block(&at, words, 0);
        if (c->n_cols - k > HALF)
            half_block(&at, words, 4);
    }
    _mm256_storeu_ps(out, joined(at.even, at.odd));
}

void cpu_codes_dot_float_avx512(float *out, const cpu_codes *c, const uint8_t *block, const float *x)
{
    switch (scale_type_of(c, block)) {
    case SCALE_E8M0:
        block_dot(SCALE_E8M0, out, c, block, x);
        break;
    case SCALE_E4M3:
        block_dot(SCALE_E4M3, out, c, block, x);
        break;
    case SCALE_E4M3_BY:
        block_dot(SCALE_E4M3_BY, out, c, block, x);
        break;
    default:
        block_dot(SCALE_ANY, out, c, block, x);
    }
}
