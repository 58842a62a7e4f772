/* SPDX-License-Identifier: Apache-2.0
 * Blocks whose packed codes would be larger than they are: IQ1, IQ2, IQ3, IQ4_XS, TQ1_0 and Q1_0,
 * as ggml-quants reads them. IQ per block of 256: a float16 d (in IQ1_M spread over the upper
 * nibbles of the scales), indices of points, signs, scales of groups. A point's elements are
 * whole numbers (eighths in IQ1), so that codes are those numbers plus a constant. */
#include <davit/help/iq.h>

#include "ref.h"

#define half_at ref_half_at

/* Four bits of a byte, the low half first. */
static uint32_t nibble(const uint8_t *p, uint64_t i)
{
    return p[i / 2] >> 4 * (i % 2) & 15;
}

/* Eight signs from seven bits: the last one makes their number even. */
static uint32_t even_signs(uint32_t seven)
{
    uint32_t parity = seven;

    parity ^= parity >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

/* ---- points into codes ---- */

/* Eight elements of IQ2. */
static void put_iq2(uint16_t point, uint32_t signs, uint8_t *out)
{
    static const uint8_t size[] = {8, 25, 43, 0};

    for (uint32_t i = 0; i < 8; i++) {
        const uint8_t v = size[point >> 2 * i & 3];

        out[i] = (uint8_t)(signs >> i & 1 ? 64 - v : 64 + v);
    }
}

/* Four elements of IQ3. */
static void put_iq3(const uint8_t *size, uint8_t zero, uint16_t point, uint32_t signs,
                    uint8_t *out)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint8_t v = size[point >> 4 * i & 7];

        out[i] = (uint8_t)(signs >> i & 1 ? zero - v : zero + v);
    }
}

/* Eight elements of IQ1, in eighths: -1, 0 or 1, and an eighth to or fro. */
static void put_iq1(uint16_t point, int minus, uint8_t *out)
{
    for (uint32_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(16 + 8 * ((point >> 2 * i & 3) - 1) + (minus ? -1 : 1));
}

/* ---- IQ2 ---- */

static void iq2_xxs_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t g = 0; g < 8; g++) {
        const uint8_t *p = block + 2 + 8 * g;
        const uint32_t signs = ref_u32le(p + 4);

        for (uint32_t j = 0; j < 4; j++)
            put_iq2(davit_iq2_xxs_grid[p[j]], even_signs(signs >> 7 * j & 127),
                    out + 32 * g + 8 * j);
    }
}

static float iq2_xxs_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)(ref_u32le(block + 6 + 8 * k) >> 28)) * 0.25f;
}

static void iq2_xs_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t q = ref_u16le(block + 2 + 2 * j);

        put_iq2(davit_iq2_xs_grid[q & 511], even_signs(q >> 9), out + 8 * j);
    }
}

static float iq2_xs_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)nibble(block + 66, k)) * 0.25f;
}

static void iq2_s_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t high = block[66 + j / 4] >> 2 * (j % 4) & 3;

        put_iq2(davit_iq2_s_grid[block[2 + j] | high << 8], block[34 + j], out + 8 * j);
    }
}

static float iq2_s_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)nibble(block + 74, k)) * 0.25f;
}

/* ---- IQ3 ---- */

static void iq3_xxs_codes(const uint8_t *block, uint8_t *out)
{
    static const uint8_t size[] = {4, 12, 20, 28, 36, 44, 52, 62};

    for (uint32_t g = 0; g < 8; g++) {
        const uint8_t *q = block + 2 + 8 * g;
        const uint32_t word = ref_u32le(block + 66 + 4 * g);

        for (uint32_t j = 0; j < 8; j++) {
            const uint32_t signs = even_signs(word >> 7 * (j / 2) & 127) >> 4 * (j % 2);

            put_iq3(size, 64, davit_iq3_xxs_grid[q[j]], signs, out + 32 * g + 4 * j);
        }
    }
}

static float iq3_xxs_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)(ref_u32le(block + 66 + 4 * k) >> 28)) * 0.5f;
}

static void iq3_s_codes(const uint8_t *block, uint8_t *out)
{
    static const uint8_t size[] = {1, 3, 5, 7, 9, 11, 13, 15};

    for (uint32_t j = 0; j < 64; j++) {
        const uint32_t high = block[66 + j / 8] >> j % 8 & 1;

        put_iq3(size, 16, davit_iq3_s_grid[block[2 + j] | high << 8],
                nibble(block + 74, j), out + 4 * j);
    }
}

static float iq3_s_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (float)(1 + 2 * nibble(block + 106, k));
}

/* ---- IQ1 ---- */

static void iq1_s_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t h = ref_u16le(block + 34 + j / 4 * 2);

        put_iq1(davit_iq1_grid[block[2 + j] | (h >> 3 * (j % 4) & 7) << 8], h >> 15,
                out + 8 * j);
    }
}

/* An eighth of the block's own scale, without rounding. */
static float iq1_s_scale(const uint8_t *block, uint64_t k)
{
    const uint32_t h = ref_u16le(block + 34 + 2 * k);

    return half_at(block) * (float)(2 * (h >> 12 & 7) + 1) * 0.125f;
}

static void iq1_m_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t h = nibble(block + 32, j);

        put_iq1(davit_iq1_grid[block[j] | (h & 7) << 8], h >> 3 & 1, out + 8 * j);
    }
}

static float iq1_m_scale(const uint8_t *block, uint64_t k)
{
    const uint8_t *s = block + 48;
    const uint32_t three = (uint32_t)ref_u16le(s + k / 4 * 2) >> 3 * (k % 4) & 7;
    uint32_t d = 0;

    for (uint32_t i = 0; i < 4; i++)
        d |= (uint32_t)(ref_u16le(s + 2 * i) >> 12) << 4 * i;
    return davit_ref_f16_to_f32((uint16_t)d) * (float)(2 * three + 1) * 0.125f;
}

/* ---- IQ4_XS, TQ1_0, Q1_0 ---- */

/* As signed numbers of IQ4's table plus 128. */
static void iq4_xs_codes(const uint8_t *block, uint8_t *out)
{
    static const uint8_t table[] = {1,   24,  45,  63,  79,  93,  106, 118,
                                    129, 141, 153, 166, 181, 197, 217, 241};

    for (uint32_t k = 0; k < 8; k++)
        for (uint32_t j = 0; j < 16; j++) {
            const uint8_t two = block[8 + 16 * k + j];

            out[32 * k + j] = table[two & 15];
            out[32 * k + j + 16] = table[two >> 4];
        }
}

static float iq4_xs_scale(const uint8_t *block, uint64_t k)
{
    const uint32_t high = ref_u16le(block + 2) >> 2 * k & 3;

    return half_at(block) * (float)((int)(nibble(block + 4, k) | high << 4) - 32);
}

/* Trit @n of a byte: the byte is a fraction in base 3. */
static uint8_t trit(uint8_t byte, int n)
{
    static const uint8_t pow3[] = {1, 3, 9, 27, 81};
    const uint8_t q = (uint8_t)(byte * pow3[n]);

    return (uint8_t)((uint16_t)(q * 3) >> 8);
}

/* Five trits of bytes 0..31, then of bytes 32..47, four of the last four bytes. */
static void tq1_0_codes(const uint8_t *block, uint8_t *out)
{
    for (int n = 0; n < 5; n++)
        for (int m = 0; m < 32; m++)
            *out++ = trit(block[m], n);
    for (int n = 0; n < 5; n++)
        for (int m = 32; m < 48; m++)
            *out++ = trit(block[m], n);
    for (int n = 0; n < 4; n++)
        for (int m = 48; m < 52; m++)
            *out++ = trit(block[m], n);
}

static float tq1_0_scale(const uint8_t *block, uint64_t k)
{
    (void)k;
    return half_at(block + 52);
}

/* Bit b is d * (2b - 1): codes 0 and 2. */
static void q1_0_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t i = 0; i < 128; i++)
        out[i] = (uint8_t)((block[2 + i / 8] >> i % 8 & 1) << 1);
}

static float q1_0_scale(const uint8_t *block, uint64_t k)
{
    (void)k;
    return half_at(block);
}

/* ---- blocks in a row ---- */

#define CODES(name, elems, bytes, group, zero)                                            \
    void ref_##name##_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes,        \
                            float *scales, float *zeros)                                  \
    {                                                                                     \
        for (uint64_t b = 0; b < n_blocks; b++, src += (bytes)) {                         \
            name##_codes(src, codes + b * (elems));                                       \
            for (uint64_t k = 0; k < (elems) / (group); k++) {                            \
                scales[b * ((elems) / (group)) + k] = name##_scale(src, k);               \
                zeros[b * ((elems) / (group)) + k] = (zero);                              \
            }                                                                             \
        }                                                                                 \
    }
CODES(iq1_s, 256, 50, 32, 16.0f)
CODES(iq1_m, 256, 56, 16, 16.0f)
CODES(iq2_xxs, 256, 66, 32, 64.0f)
CODES(iq2_xs, 256, 74, 16, 64.0f)
CODES(iq2_s, 256, 82, 16, 64.0f)
CODES(iq3_xxs, 256, 98, 32, 64.0f)
CODES(iq3_s, 256, 110, 32, 16.0f)
CODES(iq4_xs, 256, 136, 32, 128.0f)
CODES(tq1_0, 256, 54, 256, 1.0f)
CODES(q1_0, 128, 18, 128, 1.0f)
