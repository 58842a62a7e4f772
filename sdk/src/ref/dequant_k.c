/* SPDX-License-Identifier: Apache-2.0
 * GGUF's K blocks of 256 elements: codes, scale and minimum per group of 16 or 32. */
#include "ref.h"

#define BLOCK 256

/* Two low bits of element i = 128h + 32s + l: byte 32h + l, bits 2s. */
static uint8_t two_bits(const uint8_t *qs, int i)
{
    const int h = i / 128, s = i / 32 % 4, l = i % 32;
    return qs[32 * h + l] >> 2 * s & 3;
}

/* Four low bits of element i = 64c + r: byte 32c + r % 32, low half if r < 32. */
static uint8_t four_bits(const uint8_t *qs, int i)
{
    const int c = i / 64, r = i % 64;
    const uint8_t byte = qs[32 * c + r % 32];
    return r < 32 ? byte & 15 : byte >> 4;
}

/* sc[16] (low half scale, high half minimum), qs[64], d, dmin */
void ref_q2_k_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 84) {
        const float d = ref_half_at(src + 80), dmin = ref_half_at(src + 82);

        for (int g = 0; g < 16; g++) {
            scales[16 * b + g] = d * (float)(src[g] & 15);
            zeros[16 * b + g] = -(dmin * (float)(src[g] >> 4));
        }
        for (int i = 0; i < BLOCK; i++)
            codes[BLOCK * b + i] = two_bits(src + 16, i);
    }
}

/* Six-bit scale of group @g, less 32: low four bits in halves of p[0..7], high two in p[8..11]. */
static int q3_scale(const uint8_t *p, int g)
{
    const int low = g < 8 ? p[g] & 15 : p[g - 8] >> 4;
    const int high = p[8 + g % 4] >> 2 * (g / 4) & 3;
    return (low | high << 4) - 32;
}

/* hm[32], qs[64], s[12], d */
void ref_q3_k_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 110) {
        const float d = ref_half_at(src + 108);

        for (int g = 0; g < 16; g++) {
            scales[16 * b + g] = d * (float)q3_scale(src + 96, g);
            zeros[16 * b + g] = 4.0f;
        }
        for (int i = 0; i < BLOCK; i++) {
            const int bit = src[i % 32] >> i / 32 & 1;
            codes[BLOCK * b + i] = (uint8_t)(two_bits(src + 32, i) | bit << 2);
        }
    }
}

/* Six-bit scale and minimum of group @j from the twelve packed bytes of Q4_K and Q5_K. */
static void k_scale(const uint8_t *p, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = p[j] & 63;
        *min = p[j + 4] & 63;
        return;
    }
    *scale = (p[j + 4] & 15) | p[j - 4] >> 6 << 4;
    *min = p[j + 4] >> 4 | p[j] >> 6 << 4;
}

static void k_scales(const uint8_t *src, float *scales, float *zeros)
{
    const float d = ref_half_at(src), dmin = ref_half_at(src + 2);

    for (int j = 0; j < 8; j++) {
        int scale, min;
        k_scale(src + 4, j, &scale, &min);
        scales[j] = d * (float)scale;
        zeros[j] = -(dmin * (float)min);
    }
}

/* d, dmin, p[12], qs[128] */
void ref_q4_k_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 144) {
        k_scales(src, scales + 8 * b, zeros + 8 * b);
        for (int i = 0; i < BLOCK; i++)
            codes[BLOCK * b + i] = four_bits(src + 16, i);
    }
}

/* d, dmin, p[12], qh[32], qs[128] */
void ref_q5_k_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 176) {
        k_scales(src, scales + 8 * b, zeros + 8 * b);
        for (int i = 0; i < BLOCK; i++) {
            const int bit = src[16 + i % 32] >> i / 32 & 1;
            codes[BLOCK * b + i] = (uint8_t)(four_bits(src + 48, i) | bit << 4);
        }
    }
}

/* ql[128], qh[64], sc i8[16], d; element i = 128h + 32g + l */
void ref_q6_k_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 210) {
        const float d = ref_half_at(src + 208);

        for (int g = 0; g < 16; g++) {
            scales[16 * b + g] = d * (float)(int8_t)src[192 + g];
            zeros[16 * b + g] = 32.0f;
        }
        for (int i = 0; i < BLOCK; i++) {
            const int h = i / 128, g = i / 32 % 4, l = i % 32;
            const uint8_t byte = src[64 * h + l + 32 * (g & 1)];
            const int low = g < 2 ? byte & 15 : byte >> 4;
            const int high = src[128 + 32 * h + l] >> 2 * g & 3;
            codes[BLOCK * b + i] = (uint8_t)(low | high << 4);
        }
    }
}
