/* SPDX-License-Identifier: Apache-2.0
 * Scores, softmax and weighted values of a tile of query rows over one span of keys, AVX2.
 * Contract: attn_tile.h. */
#include <math.h>

#include <davit/help/quant.h>
#include <davit/help/ref.h>

#include "attn_tile.h"
#include "vec_avx2.h"

/* ---- c[R][16 C] = (c +) a[R][K] . b, b as C blocks of [K][16] in float32 or float16 ---- */

typedef struct product {
    const float *a;                     /* rows lda apart */
    const uint8_t *b[ATTN_KEY_TILES];   /* rows ldb elements apart */
    float *c;                           /* rows ldc apart; block j at c + 16 j */
    uint64_t lda, ldb, ldc, K;
} product;

static inline __attribute__((always_inline)) __m256 load_b(const uint8_t *b, uint64_t i, int half)
{
    if (half)
        return _mm256_cvtph_ps(_mm_loadu_si128((const void *)(b + 2 * i)));
    return _mm256_loadu_ps((const float *)(const void *)b + i);
}

/* Every c is one chain over k, ascending, whatever R and C. */
static inline __attribute__((always_inline)) void multiply(const product *p, uint64_t row, int R,
                                                           int C, int add, int half)
{
    __m256 acc[6][ATTN_KEY_TILES][2];
    const float *a = p->a + row * p->lda;
    float *c = p->c + row * p->ldc;

    for (int r = 0; r < R; r++)
        for (int j = 0; j < C; j++)
            for (int v = 0; v < 2; v++)
                acc[r][j][v] = add ? _mm256_loadu_ps(c + r * p->ldc + 16 * j + 8 * v)
                                   : _mm256_setzero_ps();
    for (uint64_t k = 0; k < p->K; k++)
        for (int j = 0; j < C; j++) {
            const __m256 b0 = load_b(p->b[j], k * p->ldb, half);
            const __m256 b1 = load_b(p->b[j], k * p->ldb + 8, half);
            for (int r = 0; r < R; r++) {
                const __m256 x = _mm256_broadcast_ss(a + r * p->lda + k);
                acc[r][j][0] = _mm256_fmadd_ps(x, b0, acc[r][j][0]);
                acc[r][j][1] = _mm256_fmadd_ps(x, b1, acc[r][j][1]);
            }
        }
    for (int r = 0; r < R; r++)
        for (int j = 0; j < C; j++)
            for (int v = 0; v < 2; v++)
                _mm256_storeu_ps(c + r * p->ldc + 16 * j + 8 * v, acc[r][j][v]);
}

/* Blocks that a product of @n_rows rows takes at a time: eight chains or more fill the adders,
 * twelve are what the registers hold. */
static uint64_t blocks_for(uint64_t n_rows)
{
    return n_rows == 1 ? 4 : n_rows <= 3 ? 2 : 1;
}

/* @n_rows rows over @C <= blocks_for(n_rows) blocks. */
static inline __attribute__((always_inline)) void run_blocks(const product *p, uint64_t n_rows,
                                                             uint64_t C, int add, int half)
{
    uint64_t row = 0;

    if (C > 1) {
        if (n_rows == 3)
            multiply(p, 0, 3, 2, add, half);
        else if (n_rows == 2)
            multiply(p, 0, 2, 2, add, half);
        else if (C == 4)
            multiply(p, 0, 1, 4, add, half);
        else if (C == 3)
            multiply(p, 0, 1, 3, add, half);
        else
            multiply(p, 0, 1, 2, add, half);
        return;
    }
    for (; row + 6 <= n_rows; row += 6)
        multiply(p, row, 6, 1, add, half);
    if (n_rows - row == 5)
        multiply(p, row, 5, 1, add, half);
    else if (n_rows - row == 4)
        multiply(p, row, 4, 1, add, half);
    else if (n_rows - row == 3)
        multiply(p, row, 3, 1, add, half);
    else if (n_rows - row == 2)
        multiply(p, row, 2, 1, add, half);
    else if (n_rows - row == 1)
        multiply(p, row, 1, 1, add, half);
}

static void product_run(const product *p, uint64_t n_rows, uint64_t C, int add, int half)
{
    if (add && half)
        run_blocks(p, n_rows, C, 1, 1);
    else if (add)
        run_blocks(p, n_rows, C, 1, 0);
    else if (half)
        run_blocks(p, n_rows, C, 0, 1);
    else
        run_blocks(p, n_rows, C, 0, 0);
}

/* ---- keys and values as float32 ---- */

/* Does a tile of @n keys from @index on lie in one transposed tile of the state? */
static int is_whole_tile(const kv_view *kv, uint64_t index, uint64_t n)
{
    const uint64_t in_block = index % kv->block_tokens;

    return kv->tile == KV_TILE && in_block % KV_TILE == 0 && n <= kv->block_tokens - in_block;
}

/* A key's element; @scale of f8_e4m3. */
static inline float load_one(const kv_view *kv, const uint8_t *p, float scale)
{
    float f;

    if (kv->elem_bytes == 1)
        return davit_q_e4m3(*p) * scale;
    if (kv->elem_bytes == 2) {
        uint16_t half;
        memcpy(&half, p, sizeof half);
        return _cvtsh_ss(half);
    }
    memcpy(&f, p, sizeof f);
    return f;
}

static void from_half(const uint8_t *src, float *dst, uint64_t n)
{
    uint64_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const void *)(src + 2 * i))));
    for (; i < n; i++) {
        uint16_t half;
        memcpy(&half, src + 2 * i, sizeof half);
        dst[i] = _cvtsh_ss(half);
    }
}

/* davit_q_e4m3(code) * scale: as float16 a code is its value / 256, subnormals too, and the
 * product with 256 scale is rounded once. */
static void from_e4m3(const uint8_t *src, float *dst, uint64_t n, float scale)
{
    const __m256 by = vec_set(256.0f * scale);
    const __m128i size = _mm_set1_epi16(0x7f), sign = _mm_set1_epi16(0x80);
    uint64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m128i c = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(src + i)));
        const __m128i m = _mm_and_si128(c, size);
        const __m128i nan = _mm_and_si128(_mm_cmpeq_epi16(m, size), _mm_set1_epi16(0x7c00));
        const __m128i half = _mm_or_si128(_mm_slli_epi16(m, 7),
                                          _mm_slli_epi16(_mm_and_si128(c, sign), 8));
        _mm256_storeu_ps(dst + i,
                         _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(half, nan)), by));
    }
    for (; i < n; i++)
        dst[i] = davit_q_e4m3(src[i]) * scale;
}

/* Tiles are used as they lie where all of a span's are whole; few rows read float16 on the
 * way, many rows get float32 once. */
static int reads_half(const kv_view *kv, uint64_t n_rows)
{
    return kv->elem_bytes == 2 && kv->block_tokens % KV_TILE == 0 && n_rows <= 6;
}

/* @n keys from @index on as [k_dim][16]; @buffer is used where the state has another form. */
static const uint8_t *key_tile(const kv_view *kv, uint64_t h, uint64_t index, uint64_t n,
                               int half, float *buffer)
{
    if (half)
        return kv_key(kv, index, h);
    if (is_whole_tile(kv, index, n)) {
        const uint8_t *src = kv_key(kv, index, h);
        if (kv->elem_bytes == 4)
            return src;
        if (kv->elem_bytes == 1)
            from_e4m3(src, buffer, kv->k_dim * KV_TILE, kv_key_scale(kv, h));
        else
            from_half(src, buffer, kv->k_dim * KV_TILE);
        return (const uint8_t *)buffer;
    }
    memset(buffer, 0, kv->k_dim * KV_TILE * sizeof *buffer);
    for (uint64_t k = 0; k < n; k++) {
        const uint8_t *src = kv_key(kv, index + k, h);
        for (uint64_t d = 0; d < kv->k_dim; d++)
            buffer[d * KV_TILE + k] = load_one(kv, src + d * kv->tile * kv->elem_bytes, kv_key_scale(kv, h));
    }
    return (const uint8_t *)buffer;
}

/* @n values from @index on as rows *out_stride apart. */
static const uint8_t *value_tile(const kv_view *kv, uint64_t h, uint64_t index, uint64_t n,
                                 int half, float *buffer, uint64_t *out_stride)
{
    const uint64_t D = attn_width(kv->v_dim);

    if (half || (kv->elem_bytes == 4 && D == kv->v_dim && is_whole_tile(kv, index, n))) {
        *out_stride = kv->v_dim;
        return kv_value(kv, index, h);
    }
    *out_stride = D;
    for (uint64_t k = 0; k < n; k++) {
        const uint8_t *src = kv_value(kv, index + k, h);
        float *dst = buffer + k * D;
        if (kv->elem_bytes == 4)
            memcpy(dst, src, kv->v_dim * sizeof *dst);
        else if (kv->elem_bytes == 1)
            from_e4m3(src, dst, kv->v_dim, kv_value_scale(kv, h));
        else
            from_half(src, dst, kv->v_dim);
        memset(dst + kv->v_dim, 0, (D - kv->v_dim) * sizeof *dst);
    }
    return (const uint8_t *)buffer;
}

/* ---- a span in three steps ---- */

typedef struct range {
    uint64_t first, end; /* indices of keys; first is a multiple of KV_TILE */
} range;

static void score_keys(const kv_view *kv, uint64_t h, uint64_t base, range keys, uint64_t n_rows,
                       attn_memory *m)
{
    const uint64_t group = blocks_for(n_rows);
    const int half = reads_half(kv, n_rows);
    product p = {.a = m->q, .lda = kv->k_dim, .ldb = KV_TILE, .ldc = ATTN_SPAN, .K = kv->k_dim};

    for (uint64_t key = keys.first; key < keys.end;) {
        uint64_t C = 0;
        p.c = m->score + (key - base);
        for (; C < group && key < keys.end; C++, key += KV_TILE)
            p.b[C] = key_tile(kv, h, key, cpu_min(KV_TILE, keys.end - key), half,
                              m->keys + C * KV_TILE * kv->k_dim);
        product_run(&p, n_rows, C, 0, half);
    }
}

static void hide_by_tree(const davit_call *call, uint64_t t, uint64_t base, range keys,
                         float *score)
{
    for (uint64_t key = keys.first; key < keys.end; key++)
        if (!davit_ref_visible(call->batch, t, key, 0))
            score[key - base] = -INFINITY;
}

/* Scale, cap and hide the scores of one row. Returns the largest. */
static float finish_scores(const davit_attn_attr *a, uint64_t base, range keys, uint64_t lo,
                           uint64_t hi, float *score)
{
    const __m256 scale = vec_set(a->scale), cap = vec_set(a->softcap);
    const __m256 hidden = vec_set(-INFINITY);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256 max = hidden;

    for (uint64_t key = keys.first; key < keys.end; key += 8) {
        __m256 s = _mm256_mul_ps(_mm256_loadu_ps(score + (key - base)), scale);
        if (a->softcap > 0.0f)
            s = _mm256_mul_ps(cap, vec_tanh(_mm256_div_ps(s, cap)));
        if (key < lo || key + 8 > hi) {
            const __m256i at = _mm256_add_epi32(_mm256_set1_epi32((int)(key - base)), lanes);
            const int from = lo > base ? (int)(lo - base) : 0;
            const int to = hi > base ? (int)cpu_min(hi - base, ATTN_SPAN) : 0;
            const __m256i seen = _mm256_andnot_si256(
                _mm256_cmpgt_epi32(_mm256_set1_epi32(from), at),
                _mm256_cmpgt_epi32(_mm256_set1_epi32(to), at));
            s = _mm256_blendv_ps(hidden, s, _mm256_castsi256_ps(seen));
        }
        _mm256_storeu_ps(score + (key - base), s);
        max = _mm256_max_ps(max, s);
    }
    return vec_max(max);
}

/* Scores to exp(score - max). Returns their sum: two accumulators, by the key's tile half. */
static float exponentials(uint64_t base, range keys, float max, float *score)
{
    const __m256 m = vec_set(max);
    __m256 even = _mm256_setzero_ps(), odd = _mm256_setzero_ps();

    for (uint64_t key = keys.first; key < keys.end; key += KV_TILE) {
        float *s = score + (key - base);
        const __m256 e0 = vec_exp(_mm256_sub_ps(_mm256_loadu_ps(s), m));
        const __m256 e1 = vec_exp(_mm256_sub_ps(_mm256_loadu_ps(s + 8), m));
        _mm256_storeu_ps(s, e0);
        _mm256_storeu_ps(s + 8, e1);
        even = _mm256_add_ps(even, e0);
        odd = _mm256_add_ps(odd, e1);
    }
    return vec_sum(_mm256_add_ps(even, odd));
}

static void softmax_rows(const davit_call *call, uint64_t base, range keys,
                         const attn_rows *rows, attn_memory *m)
{
    const range whole = {keys.first, keys.first + cpu_round_up(keys.end - keys.first, KV_TILE)};

    for (uint64_t r = 0; r < rows->n; r++) {
        float *score = m->score + r * ATTN_SPAN;
        float max = finish_scores(call->attr, base, whole, rows->lo[r],
                                  cpu_min(rows->hi[r], keys.end), score);
        if (call->batch->tree_mask) {
            hide_by_tree(call, rows->token[r], base, keys, score);
            max = finish_scores(&(davit_attn_attr){.scale = 1.0f}, base, whole, rows->lo[r],
                                keys.end, score);
        }
        m->part_max[r] = max;
        if (max == -INFINITY) /* sees nothing here; a zero adds nothing */
            memset(score + (whole.first - base), 0, (whole.end - whole.first) * sizeof *score);
        else
            m->part_sum[r] = exponentials(base, whole, max, score);
    }
}

static void add_values(const kv_view *kv, uint64_t h, uint64_t base, range keys, uint64_t n_rows,
                       attn_memory *m)
{
    const uint64_t D = attn_width(kv->v_dim);
    const uint64_t group = blocks_for(n_rows);
    const int half = reads_half(kv, n_rows) && D == kv->v_dim;

    memset(m->part, 0, n_rows * D * sizeof *m->part);
    for (uint64_t key = keys.first; key < keys.end; key += KV_TILE) {
        product p = {.a = m->score + (key - base), .lda = ATTN_SPAN, .ldc = D};
        const uint8_t *v;
        p.K = cpu_min(KV_TILE, keys.end - key); /* rows past the end may be unwritten */
        v = value_tile(kv, h, key, p.K, half, m->values, &p.ldb);
        for (uint64_t d = 0; d < D;) {
            uint64_t C = 0;
            p.c = m->part + d;
            for (; C < group && d < D; C++, d += 16)
                p.b[C] = v + d * (half ? 2 : 4);
            product_run(&p, n_rows, C, 1, half);
        }
    }
}

void cpu_attn_span_avx2(const davit_call *call, const kv_view *kv, uint64_t h, uint64_t span,
                        const attn_rows *rows, attn_memory *m)
{
    const uint64_t base = span * ATTN_SPAN;
    uint64_t lo = base + ATTN_SPAN, hi = base;
    range keys;

    for (uint64_t r = 0; r < rows->n; r++) {
        lo = cpu_min(lo, rows->lo[r]);
        hi = hi > rows->hi[r] ? hi : rows->hi[r];
    }
    keys.first = lo > base ? lo / KV_TILE * KV_TILE : base;
    keys.end = cpu_min(hi, base + ATTN_SPAN);
    score_keys(kv, h, base, keys, rows->n, m);
    softmax_rows(call, base, keys, rows, m);
    add_values(kv, h, base, keys, rows->n, m);
}
