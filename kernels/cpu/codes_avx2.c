/* SPDX-License-Identifier: Apache-2.0
 * Packed integer codes times float32 tokens, AVX2 + FMA + F16C; float codes are handed on. One
 * token: values are used as they are made. More: a chunk of columns is expanded to float32 [column][8 rows] and stays in the
 * first-level cache while the tokens pass, three at a time. Sums: codes.h. */
#include "codes.h"

#include "codes_avx2.h"

#define TOKENS 3
#define PARTS  4 /* partial sums, column mod 4 */

/* How codes become values; a constant where it is used. */
enum { BY_ZERO, BY_MIN };

/* Byte @j of each lane of @u as canonical values. */
TILE_INLINE __m256 values_of(int how, __m256i u, int j, __m256 scale, __m256 zero)
{
    const __m256i down = j ? _mm256_srli_epi32(u, 8 * j) : u;
    const __m256i code = j == 3 ? down : _mm256_and_si256(down, _mm256_set1_epi32(255));

    if (how == BY_MIN)
        return _mm256_add_ps(_mm256_mul_ps(scale, _mm256_cvtepi32_ps(code)), zero);
    return _mm256_mul_ps(scale, _mm256_sub_ps(_mm256_cvtepi32_ps(code), zero));
}

/* What happens with the four columns from @k on: w[j] = values of column k + j. */
typedef struct sink {
    int expand;      /* a constant: 1 = write to expanded, 0 = multiply one token */
    float *expanded; /* [column][8] */
    const float *x;
    __m256 *acc;     /* [PARTS] */
    uint64_t k0;     /* column of expanded[0] */
    uint64_t end;    /* n_cols */
} sink;

TILE_INLINE void take(const sink *to, uint64_t k, int j, __m256 w)
{
    if (to->expand)
        _mm256_storeu_ps(to->expanded + (k + (uint64_t)j - to->k0) * CPU_GROUP, w);
    else if (k + (uint64_t)j < to->end)
        to->acc[j] = _mm256_fmadd_ps(_mm256_broadcast_ss(to->x + k + j), w, to->acc[j]);
}

/* Columns [k, k + 16), all of one group; @w0 = 0 or 4. */
TILE_INLINE void half_block(int how, int bits, const uint8_t *codes, int w0, uint64_t k,
                            __m256 scale, __m256 zero, const sink *to)
{
    TILE_UNROLL
    for (int w = w0; w < w0 + 4; w++) {
        const __m256i u = codes_word(codes, bits, w);
        for (int j = 0; j < 4; j++)
            take(to, k + 4 * (uint64_t)(w - w0), j, values_of(how, u, j, scale, zero));
    }
}

/* Columns [k, end), k a multiple of 32, end one or the last column. */
TILE_INLINE void columns(int how, int bits, const cpu_codes *c, const uint8_t *block, uint64_t k,
                         uint64_t end, const sink *to)
{
    const uint8_t *codes = block + c->code_off + k / CPU_XBLOCK * 32 * (size_t)bits;
    uint64_t g = k / c->group, left = c->group - k % c->group;
    __m256 scale = codes_scales(c, block, g);
    __m256 zero = codes_zeros(c, block, g);

    for (; k < end; k += CPU_XBLOCK, codes += 32 * (size_t)bits) {
        if (!to->expand)
            for (int i = 0; i < 32 * bits; i += 64)
                _mm_prefetch((const char *)codes + PREFETCH_BYTES + i, _MM_HINT_T0);
        for (int half = 0; half < 2 && k + 16 * (uint64_t)half < end; half++) {
            if (left == 0) {
                g++;
                left = c->group;
                scale = codes_scales(c, block, g);
                zero = codes_zeros(c, block, g);
            }
            if (half == 0)
                half_block(how, bits, codes, 0, k, scale, zero, to);
            else
                half_block(how, bits, codes, 4, k + 16, scale, zero, to);
            left -= left < 16 ? left : 16;
        }
    }
}

typedef void columns_fn(const cpu_codes *c, const uint8_t *block, uint64_t k, uint64_t end,
                        const sink *to);

/* Two copies of each: sink.expand is known, so that take has no branch. */
#define COLUMNS(name, how, bits)                                                          \
    static void name##_expand(const cpu_codes *c, const uint8_t *block, uint64_t k,       \
                              uint64_t end, const sink *to)                               \
    {                                                                                     \
        columns(how, bits, c, block, k, end,                                              \
                &(sink){.expand = 1, .expanded = to->expanded, .k0 = to->k0, .end = to->end});         \
    }                                                                                     \
    static void name##_dot(const cpu_codes *c, const uint8_t *block, uint64_t k,          \
                           uint64_t end, const sink *to)                                  \
    {                                                                                     \
        __m256 acc[PARTS] = {to->acc[0], to->acc[1], to->acc[2], to->acc[3]};             \
        columns(how, bits, c, block, k, end,                                              \
                &(sink){.x = to->x, .acc = acc, .end = to->end});                         \
        for (int p = 0; p < PARTS; p++)                                                   \
            to->acc[p] = acc[p];                                                          \
    }
#define BOTH(name) {name##_expand, name##_dot}

COLUMNS(zero_1, BY_ZERO, 1)
COLUMNS(zero_2, BY_ZERO, 2)
COLUMNS(zero_3, BY_ZERO, 3)
COLUMNS(zero_4, BY_ZERO, 4)
COLUMNS(zero_5, BY_ZERO, 5)
COLUMNS(zero_6, BY_ZERO, 6)
COLUMNS(zero_7, BY_ZERO, 7)
COLUMNS(zero_8, BY_ZERO, 8)
COLUMNS(min_1, BY_MIN, 1)
COLUMNS(min_2, BY_MIN, 2)
COLUMNS(min_3, BY_MIN, 3)
COLUMNS(min_4, BY_MIN, 4)
COLUMNS(min_5, BY_MIN, 5)
COLUMNS(min_6, BY_MIN, 6)
COLUMNS(min_7, BY_MIN, 7)
COLUMNS(min_8, BY_MIN, 8)

static columns_fn *columns_of(const cpu_codes *c, int expand)
{
    static columns_fn *const by_zero[8][2] = {BOTH(zero_1), BOTH(zero_2), BOTH(zero_3),
                                              BOTH(zero_4), BOTH(zero_5), BOTH(zero_6),
                                              BOTH(zero_7), BOTH(zero_8)};
    static columns_fn *const by_min[8][2] = {BOTH(min_1), BOTH(min_2), BOTH(min_3),
                                             BOTH(min_4), BOTH(min_5), BOTH(min_6),
                                             BOTH(min_7), BOTH(min_8)};
    const uint32_t i = c->what.bits - 1;

    return c->what.zero_type >= DAVIT_MIN_F32 ? by_min[i][!expand] : by_zero[i][!expand];
}

/* ---- many tokens ---- */

/* @n tokens times @n_cols expanded columns; acc[n][PARTS][8] goes on. */
TILE_INLINE void expanded_tile(int n, const float *w, uint64_t n_cols, const float *x,
                               size_t x_stride, float *sums)
{
    __m256 acc[TOKENS][PARTS];
    uint64_t k = 0;

    for (int t = 0; t < n; t++)
        for (int p = 0; p < PARTS; p++)
            acc[t][p] = _mm256_loadu_ps(sums + (t * PARTS + p) * CPU_GROUP);
    for (; k + PARTS <= n_cols; k += PARTS)
        for (int p = 0; p < PARTS; p++) {
            const __m256 v = _mm256_loadu_ps(w + (k + (uint64_t)p) * CPU_GROUP);
            for (int t = 0; t < n; t++)
                acc[t][p] =
                    _mm256_fmadd_ps(_mm256_broadcast_ss(x + t * x_stride + k + p), v, acc[t][p]);
        }
    for (int p = 0; k + (uint64_t)p < n_cols; p++) {
        const __m256 v = _mm256_loadu_ps(w + (k + (uint64_t)p) * CPU_GROUP);
        for (int t = 0; t < n; t++)
            acc[t][p] =
                _mm256_fmadd_ps(_mm256_broadcast_ss(x + t * x_stride + k + p), v, acc[t][p]);
    }
    for (int t = 0; t < n; t++)
        for (int p = 0; p < PARTS; p++)
            _mm256_storeu_ps(sums + (t * PARTS + p) * CPU_GROUP, acc[t][p]);
}

static void expanded_dot(const float *w, uint64_t n_cols, const float *x, size_t x_stride,
                         size_t n_tokens, float *sums)
{
    for (; n_tokens >= TOKENS; n_tokens -= TOKENS) {
        expanded_tile(3, w, n_cols, x, x_stride, sums);
        x += TOKENS * x_stride;
        sums += TOKENS * PARTS * CPU_GROUP;
    }
    if (n_tokens == 2)
        expanded_tile(2, w, n_cols, x, x_stride, sums);
    else if (n_tokens == 1)
        expanded_tile(1, w, n_cols, x, x_stride, sums);
}

static __m256 joined(__m256 a, __m256 b, __m256 c, __m256 d)
{
    return _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
}

size_t cpu_codes_scratch(uint64_t n_tokens)
{
    return (CPU_CODES_CHUNK + n_tokens * PARTS) * CPU_GROUP * sizeof(float);
}

void cpu_codes_dot_avx2(float *out, const cpu_codes *c, const uint8_t *block, const float *x,
                        size_t x_stride, size_t n_tokens, float *scratch)
{
    float *sums = scratch + CPU_CODES_CHUNK * CPU_GROUP;

    if (c->what.kind == DAVIT_CODE_PLAIN) {
        cpu_codes_dot_plain_avx2(out, c, block, x, x_stride, n_tokens);
        return;
    }
    if (c->what.kind != DAVIT_CODE_UINT) {
        cpu_codes_dot_float_avx2(out, c, block, x, x_stride, n_tokens, scratch);
        return;
    }
    if (n_tokens == 1) {
        __m256 acc[PARTS] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                             _mm256_setzero_ps()};
        columns_of(c, 0)(c, block, 0, c->n_cols,
                         &(sink){.x = x, .acc = acc, .end = c->n_cols});
        _mm256_storeu_ps(out, joined(acc[0], acc[1], acc[2], acc[3]));
        return;
    }
    memset(sums, 0, n_tokens * PARTS * CPU_GROUP * sizeof *sums);
    for (uint64_t k = 0; k < c->n_cols; k += CPU_CODES_CHUNK) {
        const uint64_t n = cpu_min(CPU_CODES_CHUNK, c->n_cols - k);
        columns_of(c, 1)(c, block, k, k + n,
                         &(sink){.expanded = scratch, .k0 = k, .end = c->n_cols});
        expanded_dot(scratch, n, x + k, x_stride, n_tokens, sums);
    }
    for (size_t t = 0; t < n_tokens; t++, sums += PARTS * CPU_GROUP)
        _mm256_storeu_ps(out + t * CPU_GROUP,
                         joined(_mm256_loadu_ps(sums), _mm256_loadu_ps(sums + 8),
                                _mm256_loadu_ps(sums + 16), _mm256_loadu_ps(sums + 24)));
}
