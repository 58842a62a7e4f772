/* SPDX-License-Identifier: Apache-2.0
 * AVX2 steps that the group kernels share. Included by files built with -mavx2 only.
 *
 * Lane r of a vector belongs to row r of the group. `maddubs` multiplies unsigned weight
 * codes by signed activations (|q| <= 127; 128 counted for safety) and adds neighbours
 * into int16 with saturation. It never saturates because of these bounds, 128 * code *
 * products: 4 bits: 15 * 128 * 16 = 30720   eight vectors may be added before widening 5
 * bits: 31 * 128 *  8 = 31744   four 6 bits: 63 * 128 *  4 = 32256   two 8 bits: 128 *
 * 127 * 2 = 32512   one (signs moved to the activation)
 */
#ifndef CPU_LINEAR_TILE_H
#define CPU_LINEAR_TILE_H

#include <immintrin.h>
#include <string.h>

#include "linear_rows.h"
#include "vnni.h"

#define TILE_INLINE static inline __attribute__((always_inline))
/* Unroll the next loop. Not under sanitizers: their checks times 64 are too much to
 * compile. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TILE_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TILE_SANITIZED
#endif
#if defined(TILE_SANITIZED)
#define TILE_UNROLL
#elif defined(__clang__)
#define TILE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILE_UNROLL _Pragma("GCC unroll 8")
#endif
/* Steps that are compiled for each of several constants; once for all where sanitizers' checks
 * would make that take minutes. */
#if defined(TILE_SANITIZED)
#define TILE_STEP static __attribute__((noinline))
#else
#define TILE_STEP TILE_INLINE
#endif
#define TILE_MAX       4    /* tokens that share a loaded weight vector */
#define PREFETCH_BYTES 4096 /* a page: where the processor's own prefetch stops */

TILE_INLINE __m256i load_words(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Eight half floats, one per row. */
TILE_INLINE __m256 load_halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Four activations to every row. */
TILE_INLINE __m256i bcast_word(const void *p)
{
    int32_t word;

    memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
}

/* int16 pairs -> int32 */
TILE_INLINE __m256i widen(__m256i v)
{
    return _mm256_madd_epi16(v, _mm256_set1_epi16(1));
}

/* Keep a running sum as written: compilers make a tree of it, with more terms alive than
 * there are registers, and spill them. For one token the tree is right. */
TILE_INLINE __m256i in_order(int n, __m256i sum)
{
    if (n > 1)
        __asm__("" : "+x"(sum));
    return sum;
}

/* Codes of word @w of block @b of an interleaved superblock. */
typedef __m256i tile_code_fn(const uint8_t *sb, int b, int w);

#if defined(CPU_VNNI)
/* isum[c] = sum over the 32 inputs of code * q; the same integers as below. */
TILE_INLINE void dot_block(int n, tile_code_fn *code, const uint8_t *sb, int b, int flush,
                           const cpu_xblock *x, size_t x_stride, __m256i isum[TILE_MAX])
{
    (void)flush;
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w = 0; w < 8; w++) {
        const __m256i u = code(sb, b, w);

        for (int c = 0; c < n; c++)
            isum[c] = add_products(isum[c], u, bcast_word(x[c * x_stride].q + 4 * w));
    }
}
#else
/* isum[c] = sum over the 32 inputs of code * q, with @flush vectors added in int16. */
TILE_INLINE void dot_block(int n, tile_code_fn *code, const uint8_t *sb, int b, int flush,
                           const cpu_xblock *x, size_t x_stride, __m256i isum[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w0 = 0; w0 < 8; w0 += flush) {
        __m256i part[TILE_MAX];

        for (int c = 0; c < n; c++)
            part[c] = _mm256_setzero_si256();
        TILE_UNROLL
        for (int w = w0; w < w0 + flush; w++) {
            const __m256i u = code(sb, b, w);

            for (int c = 0; c < n; c++) {
                const __m256i q = bcast_word(x[c * x_stride].q + 4 * w);

                part[c] =
                    in_order(n, _mm256_add_epi16(part[c], _mm256_maddubs_epi16(u, q)));
            }
        }
        for (int c = 0; c < n; c++)
            isum[c] = _mm256_add_epi32(isum[c], widen(part[c]));
    }
}

#endif

#if defined(CPU_VNNI)
/* The same for signed codes: 128 is added to the code and taken away with the sum of q. */
TILE_INLINE void dot_signed(int n, const uint8_t *codes, uint8_t flip, const cpu_xblock *x,
                            size_t x_stride, __m256i isum[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_set1_epi32(-128 * (x[c * x_stride].sum[0] + x[c * x_stride].sum[1]));
    TILE_UNROLL
    for (int w = 0; w < 8; w++) {
        const __m256i u = _mm256_xor_si256(load_words(codes + 32 * w),
                                           _mm256_set1_epi8((char)(flip ^ 0x80)));

        for (int c = 0; c < n; c++)
            isum[c] = add_products(isum[c], u, bcast_word(x[c * x_stride].q + 4 * w));
    }
}
#else
/* isum[c] = sum over 32 inputs of signed code * q; codes are stored with the bits of @flip
 * turned. |code| is the unsigned factor, the activation takes its sign. */
TILE_INLINE void dot_signed(int n, const uint8_t *codes, uint8_t flip, const cpu_xblock *x,
                            size_t x_stride, __m256i isum[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w = 0; w < 8; w++) {
        const __m256i v = _mm256_xor_si256(load_words(codes + 32 * w), _mm256_set1_epi8((char)flip));
        const __m256i u = _mm256_abs_epi8(v);

        for (int c = 0; c < n; c++) {
            const __m256i q = bcast_word(x[c * x_stride].q + 4 * w);
            const __m256i p = _mm256_maddubs_epi16(u, _mm256_sign_epi8(q, v));

            isum[c] = in_order(n, _mm256_add_epi32(isum[c], widen(p)));
        }
    }
}
#endif

/* One token alone waits for memory: ask for bytes some blocks ahead. */
TILE_INLINE void prefetch_ahead(int n, const uint8_t *group, size_t n_bytes)
{
    if (n == 1)
        for (size_t i = 0; i < n_bytes; i += 64)
            _mm_prefetch((const char *)group + PREFETCH_BYTES + i, _MM_HINT_T0);
}

/* Zero, or what @out holds. */
TILE_INLINE void start(int n, const float *out, int resume, __m256 acc[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        acc[c] = resume ? _mm256_loadu_ps(out + c * CPU_GROUP) : _mm256_setzero_ps();
}

TILE_INLINE void store(int n, float *out, const __m256 acc[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        _mm256_storeu_ps(out + c * CPU_GROUP, acc[c]);
}

/* acc + isum * scale * d_x */
TILE_INLINE __m256 add_block(__m256 acc, __m256i isum, __m256 scale, const cpu_xblock *x)
{
    const __m256 s = _mm256_mul_ps(scale, _mm256_broadcast_ss(&x->d));

    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), s, acc);
}

/* acc += isum * scale * d_x, then acc += min * dsum_x. */
TILE_INLINE void add_block_min(int n, __m256 acc[TILE_MAX], const __m256i isum[TILE_MAX],
                               __m256 scale, __m256 min, const cpu_xblock *x,
                               size_t x_stride)
{
    for (int c = 0; c < n; c++) {
        const cpu_xblock *xb = x + c * x_stride;

        acc[c] = add_block(acc[c], isum[c], scale, xb);
        acc[c] = _mm256_fmadd_ps(min, _mm256_broadcast_ss(&xb->dsum), acc[c]);
    }
}

/* Split @n_tokens into tiles of 4 and a rest. @tile gets the tile's token count as a
 * constant, so that it is compiled once for each. */
typedef void tile_fn(int n, float *out, const uint8_t *group, size_t n_blocks,
                     const cpu_xblock *x, size_t x_stride, int resume);

TILE_INLINE void for_tiles(tile_fn *tile, float *out, const uint8_t *group,
                           size_t n_blocks, const cpu_xblock *x, size_t x_stride,
                           size_t n_tokens, int resume)
{
    while (n_tokens >= 4) {
        tile(4, out, group, n_blocks, x, x_stride, resume);
        out += 4 * CPU_GROUP;
        x += 4 * x_stride;
        n_tokens -= 4;
    }
    if (n_tokens == 3)
        tile(3, out, group, n_blocks, x, x_stride, resume);
    else if (n_tokens == 2)
        tile(2, out, group, n_blocks, x, x_stride, resume);
    else if (n_tokens == 1)
        tile(1, out, group, n_blocks, x, x_stride, resume);
}

#endif
