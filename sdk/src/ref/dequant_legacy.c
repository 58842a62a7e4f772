/* SPDX-License-Identifier: Apache-2.0
 * Plain numbers and GGUF's 32-element blocks. Byte j of a nibble array holds element j in its
 * low and element j + 16 in its high half. */
#include "ref.h"

#define BLOCK 32

void ref_f32_decode(const uint8_t *src, uint64_t n_blocks, float *out)
{
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint32_t bits = ref_u32le(src + 4 * i);
        memcpy(out + i, &bits, sizeof bits);
    }
}

void ref_f16_decode(const uint8_t *src, uint64_t n_blocks, float *out)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        out[i] = ref_half_at(src + 2 * i);
}

void ref_bf16_decode(const uint8_t *src, uint64_t n_blocks, float *out)
{
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint32_t bits = (uint32_t)ref_u16le(src + 2 * i) << 16;
        memcpy(out + i, &bits, sizeof bits);
    }
}

static void nibbles(const uint8_t *qs, uint8_t *codes)
{
    for (int j = 0; j < BLOCK / 2; j++) {
        codes[j] = qs[j] & 15;
        codes[j + BLOCK / 2] = qs[j] >> 4;
    }
}

/* Bit i of @high is the fifth bit of element i. */
static void add_fifth_bits(uint32_t high, uint8_t *codes)
{
    for (int i = 0; i < BLOCK; i++)
        codes[i] = (uint8_t)(codes[i] | (high >> i & 1u) << 4);
}

/* d f16, qs[16] */
void ref_q4_0_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 18) {
        scales[b] = ref_half_at(src);
        zeros[b] = 8.0f;
        nibbles(src + 2, codes + b * BLOCK);
    }
}

/* d f16, m f16, qs[16] */
void ref_q4_1_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 20) {
        scales[b] = ref_half_at(src);
        zeros[b] = ref_half_at(src + 2);
        nibbles(src + 4, codes + b * BLOCK);
    }
}

/* d f16, qh u32, qs[16] */
void ref_q5_0_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 22) {
        scales[b] = ref_half_at(src);
        zeros[b] = 16.0f;
        nibbles(src + 6, codes + b * BLOCK);
        add_fifth_bits(ref_u32le(src + 2), codes + b * BLOCK);
    }
}

/* d f16, m f16, qh u32, qs[16] */
void ref_q5_1_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 24) {
        scales[b] = ref_half_at(src);
        zeros[b] = ref_half_at(src + 2);
        nibbles(src + 8, codes + b * BLOCK);
        add_fifth_bits(ref_u32le(src + 4), codes + b * BLOCK);
    }
}

/* d f16, qs i8[32] */
void ref_q8_0_codes(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                    float *zeros)
{
    for (uint64_t b = 0; b < n_blocks; b++, src += 34) {
        scales[b] = ref_half_at(src);
        zeros[b] = 128.0f;
        for (int i = 0; i < BLOCK; i++)
            codes[b * BLOCK + i] = src[2 + i] ^ 0x80; /* two's complement to offset 128 */
    }
}
