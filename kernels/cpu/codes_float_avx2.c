/* SPDX-License-Identifier: Apache-2.0
 * Packed float codes (E2M1, E4M3, E5M2, NF4, FP4, IQ4) times float32 tokens, AVX2 + FMA + F16C.
 *
 * 32 codes (four columns of eight rows) become 16-bit or 32-bit numbers together and two columns
 * lie side by side in a vector of floats, so that a code costs about half an instruction:
 *   4 bits  byte shuffles look up two bytes of the value (bfloat16 holds it exactly), or four
 *   E5M2    is the high byte of a half float
 *   E4M3    one bit further down is a half float of 1/256 of the value, subnormal numbers too
 * Order of sums: codes.h. Values are rounded as quant.h says before they are multiplied. */
#include "codes.h"

#include "codes_float_scales.h"

#define TOKENS 3
#define PARTS  4  /* vectors of values of a word, and of sums of one token: see word_values */
#define HALF   CPU_CODES_HALF

/* How codes become values; a constant where it is used. */
enum { BY_BF16, BY_F32, BY_E4M3, BY_E5M2 };

/* byte[i]: byte i of the float32 value of each code, for byte shuffles. */
typedef struct tables {
    __m256i byte[4];
} tables;

static tables tables_of(const float *values)
{
    tables t;

    for (int i = 0; i < 4; i++) {
        uint8_t bytes[16];

        for (int code = 0; code < 16; code++)
            memcpy(&bytes[code], (const uint8_t *)(values + code) + i, 1);
        t.byte[i] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)bytes));
    }
    return t;
}

TILE_INLINE __m256 high_floats(__m256i v)
{
    return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000u)));
}

TILE_INLINE __m256 low_floats(__m256i v)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}

/* Columns 0 and 1 of a word from the low 16-bit numbers of each pair, 2 and 3 from the high ones. */
TILE_INLINE void from_bf16(__m256i u, const tables *of, __m256 v[PARTS])
{
    const __m256i high = _mm256_shuffle_epi8(of->byte[3], u);
    const __m256i low = _mm256_shuffle_epi8(of->byte[2], u);
    const __m256i a = _mm256_unpacklo_epi8(low, high), b = _mm256_unpackhi_epi8(low, high);

    v[0] = low_floats(a);
    v[1] = low_floats(b);
    v[2] = high_floats(a);
    v[3] = high_floats(b);
}

/* The same with all four bytes: @low holds the lower halves. */
TILE_INLINE __m256 wide_low(__m256i high, __m256i low)
{
    return _mm256_castsi256_ps(_mm256_blend_epi16(_mm256_slli_epi32(high, 16), low, 0x55));
}

TILE_INLINE __m256 wide_high(__m256i high, __m256i low)
{
    return _mm256_castsi256_ps(_mm256_blend_epi16(_mm256_srli_epi32(low, 16), high, 0xaa));
}

TILE_INLINE void from_f32(__m256i u, const tables *of, __m256 v[PARTS])
{
    __m256i byte[4];

    for (int i = 0; i < 4; i++)
        byte[i] = _mm256_shuffle_epi8(of->byte[i], u);
    const __m256i a = _mm256_unpacklo_epi8(byte[2], byte[3]);
    const __m256i b = _mm256_unpackhi_epi8(byte[2], byte[3]);
    const __m256i a_low = _mm256_unpacklo_epi8(byte[0], byte[1]);
    const __m256i b_low = _mm256_unpackhi_epi8(byte[0], byte[1]);
    v[0] = wide_low(a, a_low);
    v[1] = wide_low(b, b_low);
    v[2] = wide_high(a, a_low);
    v[3] = wide_high(b, b_low);
}

/* Half floats in the bytes of @u: even bytes are columns 0 and 1, odd ones 2 and 3. */
TILE_INLINE void from_halves(int how, __m256i u, __m256 v[PARTS])
{
    __m256i even = _mm256_slli_epi16(u, 8), odd = u;

    if (how == BY_E4M3) { /* shifted with the sign, whose copy goes */
        const __m256i keep = _mm256_set1_epi16((short)0xbf80u);
        even = _mm256_and_si256(_mm256_srai_epi16(even, 1), keep);
        odd = _mm256_and_si256(_mm256_srai_epi16(odd, 1), keep);
    } else {
        odd = _mm256_and_si256(odd, _mm256_set1_epi16((short)0xff00u));
    }
    v[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(even));
    v[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(even, 1));
    v[2] = _mm256_cvtph_ps(_mm256_castsi256_si128(odd));
    v[3] = _mm256_cvtph_ps(_mm256_extracti128_si256(odd, 1));
}

/* Codes of four columns of eight rows as values without scale. v[0], v[1]: columns 0 and 1 side
 * by side for each of four rows; v[2], v[3]: columns 2 and 3. Which rows: spread. */
TILE_STEP void word_values(int how, __m256i u, const tables *of, __m256 v[PARTS])
{
    if (how == BY_BF16)
        from_bf16(u, of, v);
    else if (how == BY_F32)
        from_f32(u, of, v);
    else
        from_halves(how, u, v);
}

/* Rows 0 1 4 5 2 3 6 7, or back. */
TILE_INLINE __m256 swap_middle(__m256 v)
{
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

/* Scales of eight rows, each twice, as word_values orders rows: half floats come in rows 0-3 and
 * 4-7, unpacked bytes in rows 0 1 4 5 and 2 3 6 7. */
TILE_INLINE void spread(int how, __m256 scale, __m256 out[2])
{
    if (how >= BY_E4M3)
        scale = swap_middle(scale);
    out[0] = _mm256_unpacklo_ps(scale, scale);
    out[1] = _mm256_unpackhi_ps(scale, scale);
}

/* Scales of group @g as spread orders them. */
TILE_STEP void group_scales(int how, int type, const cpu_codes *c, const uint8_t *block,
                              const scales *s, uint64_t g, __m256 out[2])
{
    spread(how, row_scales(type, c, block, s, g), out);
}

/* Sums of the eight rows: (0 + 2) + (1 + 3) of the columns mod 4. */
TILE_INLINE __m256 joined(int how, const __m256 acc[PARTS])
{
    const __m256 sum = _mm256_hadd_ps(_mm256_add_ps(acc[0], acc[2]), _mm256_add_ps(acc[1], acc[3]));

    if (how == BY_E4M3) /* the values' 1/256 */
        return _mm256_mul_ps(swap_middle(sum), _mm256_set1_ps(256.0f));
    return how == BY_E5M2 ? swap_middle(sum) : sum;
}

/* Two inputs to every row. */
TILE_INLINE __m256 bcast_pair(const float *x)
{
    int64_t pair;

    memcpy(&pair, x, sizeof pair);
    return _mm256_castsi256_ps(_mm256_set1_epi64x(pair));
}

/* ---- columns of a block ---- */

/* A walk over the columns of one block, HALF at a time. */
typedef struct walk {
    int how, type; /* constants */
    int expand;    /* constant: 1 = values to expanded, 0 = times one token */
    const cpu_codes *c;
    const uint8_t *block;
    const uint8_t *codes; /* of 32 columns */
    uint64_t g, left;     /* group, halves left of it */
    const float *x;       /* next input */
    float *expanded;      /* [column / 4][PARTS][8] */
    scales from;
    tables of;
} walk;

/* HALF columns from word @w0 (0 or 4) on. */
TILE_STEP void half_block(walk *at, int w0, __m256 scale[2], __m256 acc[PARTS])
{
    const uint8_t *codes = at->codes;

    if (at->left == 0) {
        at->left = cpu_ceil_div(at->c->group, HALF);
        group_scales(at->how, at->type, at->c, at->block, &at->from, ++at->g, scale);
    }
    at->left--;
    __asm__("" : "+r"(codes)); /* or words stay loaded for the second half, and sums are spilled */
    TILE_UNROLL
    for (int i = 0; i < HALF / 4; i++) {
        const __m256i u = codes_word(codes, at->how <= BY_F32 ? 4 : 8, w0 + i);
        __m256 v[PARTS];

        word_values(at->how, u, &at->of, v);
        for (int p = 0; p < PARTS; p++)
            v[p] = _mm256_mul_ps(scale[p & 1], v[p]);
        for (int p = 0; p < PARTS && at->expand; p++)
            _mm256_storeu_ps(at->expanded + (4 * i + p) * CPU_GROUP, v[p]);
        for (int p = 0; p < PARTS && !at->expand; p++)
            acc[p] = _mm256_fmadd_ps(bcast_pair(at->x + 4 * i + p / 2 * 2), v[p], acc[p]);
    }
    if (at->expand)
        at->expanded += HALF * CPU_GROUP;
    else
        at->x += HALF;
}

/* The last @n columns, fewer than 32; inputs with zeros behind. */
TILE_STEP void rest(walk *at, uint64_t n, __m256 scale[2], __m256 acc[PARTS])
{
    float x[CPU_XBLOCK] = {0};

    if (!at->expand) {
        memcpy(x, at->x, n * sizeof *x);
        at->x = x;
    }
    half_block(at, 0, scale, acc);
    if (n > HALF)
        half_block(at, 4, scale, acc);
}

/* Columns [k, end), k a multiple of 32, end one or the last column. @x, of column k on, and @acc
 * belong to one token, @expanded to @expand. */
TILE_STEP void columns(int how, int type, int expand, const cpu_codes *c, const uint8_t *block,
                         uint64_t k, uint64_t end, const float *x, __m256 acc[PARTS],
                         float *expanded)
{
    const size_t bytes = how <= BY_F32 ? 128 : 256; /* of 32 columns */
    const float *values = cpu_codes_table(c->what.kind);
    walk at = {.how = how, .type = type, .expand = expand, .c = c, .block = block, .x = x,
               .codes = block + c->code_off + k / CPU_XBLOCK * bytes, .expanded = expanded,
               .g = k / c->group, .left = cpu_ceil_div(c->group - k % c->group, HALF),
               .from = scales_of(type, c, block),
               .of = tables_of(how <= BY_F32 ? values : (const float[16]){0})};
    __m256 scale[2];

    group_scales(how, type, c, block, &at.from, at.g, scale);
    for (; end - k >= CPU_XBLOCK; k += CPU_XBLOCK, at.codes += bytes) {
        for (size_t i = 0; i < bytes && !expand; i += 64)
            _mm_prefetch((const char *)at.codes + PREFETCH_BYTES + i, _MM_HINT_T0);
        half_block(&at, 0, scale, acc);
        half_block(&at, 4, scale, acc);
    }
    if (k < end)
        rest(&at, end - k, scale, acc);
}

/* ---- many tokens ---- */

/* One word of @n tokens. */
TILE_INLINE void tile_word(int n, const float *w, const float *x, size_t x_stride,
                           __m256 acc[TOKENS][PARTS])
{
    for (int pair = 0; pair < 2; pair++) {
        const __m256 a = _mm256_loadu_ps(w + 16 * pair), b = _mm256_loadu_ps(w + 16 * pair + 8);

        for (int t = 0; t < n; t++) {
            const __m256 xs = bcast_pair(x + (size_t)t * x_stride + 2 * pair);
            acc[t][2 * pair] = _mm256_fmadd_ps(xs, a, acc[t][2 * pair]);
            acc[t][2 * pair + 1] = _mm256_fmadd_ps(xs, b, acc[t][2 * pair + 1]);
        }
    }
}

/* @n tokens times @n_cols expanded columns; sums[n][PARTS][8] go on. */
TILE_STEP void expanded_tile(int n, const float *w, uint64_t n_cols, const float *x,
                               size_t x_stride, float *sums)
{
    float tail[TOKENS * 4] = {0};
    __m256 acc[TOKENS][PARTS];

    for (int i = 0; i < n * PARTS; i++)
        acc[i / PARTS][i % PARTS] = _mm256_loadu_ps(sums + i * CPU_GROUP);
    for (; n_cols >= 4; n_cols -= 4, x += 4, w += 4 * CPU_GROUP)
        tile_word(n, w, x, x_stride, acc);
    for (int t = 0; t < n && n_cols; t++)
        memcpy(tail + 4 * t, x + (size_t)t * x_stride, n_cols * sizeof *x);
    if (n_cols)
        tile_word(n, w, tail, 4, acc);
    for (int i = 0; i < n * PARTS; i++)
        _mm256_storeu_ps(sums + i * CPU_GROUP, acc[i / PARTS][i % PARTS]);
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

/* ---- a block ---- */

TILE_STEP void one_token(int how, int type, float *out, const cpu_codes *c, const uint8_t *block,
                           const float *x)
{
    __m256 acc[PARTS];

    for (int p = 0; p < PARTS; p++)
        acc[p] = _mm256_setzero_ps();
    columns(how, type, 0, c, block, 0, c->n_cols, x, acc, NULL);
    _mm256_storeu_ps(out, joined(how, acc));
}

TILE_STEP void block_dot(int how, int type, float *out, const cpu_codes *c, const uint8_t *block,
                           const float *x, size_t x_stride, size_t n_tokens, float *scratch)
{
    float *sums = scratch + CPU_CODES_CHUNK * CPU_GROUP;

    if (n_tokens == 1) {
        one_token(how, type, out, c, block, x);
        return;
    }
    memset(sums, 0, n_tokens * PARTS * CPU_GROUP * sizeof *sums);
    for (uint64_t k = 0; k < c->n_cols; k += CPU_CODES_CHUNK) {
        const uint64_t n = cpu_min(CPU_CODES_CHUNK, c->n_cols - k);
        columns(how, type, 1, c, block, k, k + n, NULL, NULL, scratch);
        expanded_dot(scratch, n, x + k, x_stride, n_tokens, sums);
    }
    for (size_t t = 0; t < n_tokens; t++, sums += PARTS * CPU_GROUP) {
        __m256 acc[PARTS];

        for (int p = 0; p < PARTS; p++)
            acc[p] = _mm256_loadu_ps(sums + p * CPU_GROUP);
        _mm256_storeu_ps(out + t * CPU_GROUP, joined(how, acc));
    }
}

void cpu_codes_dot_float_avx2(float *out, const cpu_codes *c, const uint8_t *block,
                              const float *x, size_t x_stride, size_t n_tokens, float *scratch)
{
    const uint32_t kind = c->what.kind;
    const int type = kind == DAVIT_CODE_E5M2 ? SCALE_ANY : scale_type_of(c, block);

    if (kind == DAVIT_CODE_E4M3 && type == SCALE_E8M0)
        block_dot(BY_E4M3, SCALE_E8M0, out, c, block, x, x_stride, n_tokens, scratch);
    else if (kind == DAVIT_CODE_E4M3)
        block_dot(BY_E4M3, SCALE_ANY, out, c, block, x, x_stride, n_tokens, scratch);
    else if (kind == DAVIT_CODE_E5M2)
        block_dot(BY_E5M2, SCALE_ANY, out, c, block, x, x_stride, n_tokens, scratch);
    else if (kind == DAVIT_CODE_NF4 || kind == DAVIT_CODE_FP4)
        block_dot(BY_F32, SCALE_ANY, out, c, block, x, x_stride, n_tokens, scratch);
    else if (type == SCALE_E8M0) /* E2M1, IQ4: at most eight significant bits */
        block_dot(BY_BF16, SCALE_E8M0, out, c, block, x, x_stride, n_tokens, scratch);
    else if (type == SCALE_E4M3_BY)
        block_dot(BY_BF16, SCALE_E4M3_BY, out, c, block, x, x_stride, n_tokens, scratch);
    else if (type == SCALE_E4M3)
        block_dot(BY_BF16, SCALE_E4M3, out, c, block, x, x_stride, n_tokens, scratch);
    else
        block_dot(BY_BF16, SCALE_ANY, out, c, block, x, x_stride, n_tokens, scratch);
}
