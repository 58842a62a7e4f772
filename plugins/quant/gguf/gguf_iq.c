/* SPDX-License-Identifier: Apache-2.0
 * IQ1, IQ2 and IQ3 as ggml-quants reads them. Per block of 256: a float16 d (in IQ1_M spread
 * over the upper nibbles of the scales), indices of points, signs, scales of groups. */
#include "gguf_iq.h"

#include <davit/help/bytes.h>
#include <davit/help/ref.h>

static float half_at(const uint8_t *p)
{
    return davit_ref_f16_to_f32(davit_bytes_u16le(p));
}

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

void gguf_iq2_xxs_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t g = 0; g < 8; g++) {
        const uint8_t *p = block + 2 + 8 * g;
        const uint32_t signs = davit_bytes_u32le(p + 4);

        for (uint32_t j = 0; j < 4; j++)
            put_iq2(gguf_iq2_xxs_grid[p[j]], even_signs(signs >> 7 * j & 127),
                    out + 32 * g + 8 * j);
    }
}

float gguf_iq2_xxs_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)(davit_bytes_u32le(block + 6 + 8 * k) >> 28)) * 0.25f;
}

void gguf_iq2_xs_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t q = davit_bytes_u16le(block + 2 + 2 * j);

        put_iq2(gguf_iq2_xs_grid[q & 511], even_signs(q >> 9), out + 8 * j);
    }
}

float gguf_iq2_xs_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)nibble(block + 66, k)) * 0.25f;
}

void gguf_iq2_s_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t high = block[66 + j / 4] >> 2 * (j % 4) & 3;

        put_iq2(gguf_iq2_s_grid[block[2 + j] | high << 8], block[34 + j], out + 8 * j);
    }
}

float gguf_iq2_s_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)nibble(block + 74, k)) * 0.25f;
}

/* ---- IQ3 ---- */

void gguf_iq3_xxs_codes(const uint8_t *block, uint8_t *out)
{
    static const uint8_t size[] = {4, 12, 20, 28, 36, 44, 52, 62};

    for (uint32_t g = 0; g < 8; g++) {
        const uint8_t *q = block + 2 + 8 * g;
        const uint32_t word = davit_bytes_u32le(block + 66 + 4 * g);

        for (uint32_t j = 0; j < 8; j++) {
            const uint32_t signs = even_signs(word >> 7 * (j / 2) & 127) >> 4 * (j % 2);

            put_iq3(size, 64, gguf_iq3_xxs_grid[q[j]], signs, out + 32 * g + 4 * j);
        }
    }
}

float gguf_iq3_xxs_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (0.5f + (float)(davit_bytes_u32le(block + 66 + 4 * k) >> 28)) * 0.5f;
}

void gguf_iq3_s_codes(const uint8_t *block, uint8_t *out)
{
    static const uint8_t size[] = {1, 3, 5, 7, 9, 11, 13, 15};

    for (uint32_t j = 0; j < 64; j++) {
        const uint32_t high = block[66 + j / 8] >> j % 8 & 1;

        put_iq3(size, 16, gguf_iq3_s_grid[block[2 + j] | high << 8],
                nibble(block + 74, j), out + 4 * j);
    }
}

float gguf_iq3_s_scale(const uint8_t *block, uint64_t k)
{
    return half_at(block) * (float)(1 + 2 * nibble(block + 106, k));
}

/* ---- IQ1 ---- */

void gguf_iq1_s_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t h = davit_bytes_u16le(block + 34 + j / 4 * 2);

        put_iq1(gguf_iq1_grid[block[2 + j] | (h >> 3 * (j % 4) & 7) << 8], h >> 15,
                out + 8 * j);
    }
}

/* An eighth of the block's own scale, without rounding. */
float gguf_iq1_s_scale(const uint8_t *block, uint64_t k)
{
    const uint32_t h = davit_bytes_u16le(block + 34 + 2 * k);

    return half_at(block) * (float)(2 * (h >> 12 & 7) + 1) * 0.125f;
}

void gguf_iq1_m_codes(const uint8_t *block, uint8_t *out)
{
    for (uint32_t j = 0; j < 32; j++) {
        const uint32_t h = nibble(block + 32, j);

        put_iq1(gguf_iq1_grid[block[j] | (h & 7) << 8], h >> 3 & 1, out + 8 * j);
    }
}

float gguf_iq1_m_scale(const uint8_t *block, uint64_t k)
{
    const uint8_t *s = block + 48;
    const uint32_t three = (uint32_t)davit_bytes_u16le(s + k / 4 * 2) >> 3 * (k % 4) & 7;
    uint32_t d = 0;

    for (uint32_t i = 0; i < 4; i++)
        d |= (uint32_t)(davit_bytes_u16le(s + 2 * i) >> 12) << 4 * i;
    return davit_ref_f16_to_f32((uint16_t)d) * (float)(2 * three + 1) * 0.125f;
}
