/* SPDX-License-Identifier: Apache-2.0
 * Scalar formats of quantised weights. OCP 8-bit floats and MX; tables of bitsandbytes and
 * GGUF. */
#include <math.h>
#include <string.h>

#include <davit/help/bytes.h>
#include <davit/help/quant.h>
#include <davit/help/ref.h>

static float from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

float davit_q_e4m3(uint8_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x80) << 24;

    if ((code & 0x7f) == 0x7f)
        return from_bits(0x7fc00000u);
    /* exponent bias 7 against 127: exact, subnormals too */
    return from_bits(sign | (uint32_t)(code & 0x7f) << 20) * 0x1p120f;
}

float davit_q_e5m2(uint8_t code)
{
    return davit_ref_f16_to_f32((uint16_t)(code << 8)); /* the upper half of a float16 */
}

float davit_q_e8m0(uint8_t code)
{
    if (code == 255)
        return from_bits(0x7fc00000u);
    return from_bits(code == 0 ? 0x00400000u : (uint32_t)code << 23);
}

float davit_q_e2m1(uint8_t code)
{
    static const float values[] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

    return values[code & 15];
}

/* Quantiles of the normal distribution (QLoRA, appendix E), as bitsandbytes writes them. */
static const float nf4[] = {
    -1.0f,                -0.6961928009986877f, -0.5250730514526367f,  -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
    0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,  0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f,  0.7229568362236023f,   1.0f};
static const float fp4[] = {0.0f,  0.005208333333f,  0.6666666667f,  1.0f,
                            0.3333333333f,  0.5f,  0.1666666667f,  0.25f,
                            -0.0f, -0.005208333333f, -0.6666666667f, -1.0f,
                            -0.3333333333f, -0.5f, -0.1666666667f, -0.25f};
static const float iq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};

float davit_q_value(uint32_t kind, uint8_t code)
{
    switch (kind) {
    case DAVIT_CODE_E2M1:
        return davit_q_e2m1(code);
    case DAVIT_CODE_E4M3:
        return davit_q_e4m3(code);
    case DAVIT_CODE_E5M2:
        return davit_q_e5m2(code);
    case DAVIT_CODE_NF4:
        return nf4[code & 15];
    case DAVIT_CODE_FP4:
        return fp4[code & 15];
    case DAVIT_CODE_IQ4:
        return iq4[code & 15];
    default:
        return (float)code;
    }
}

uint64_t davit_q_scale_bytes(uint32_t type)
{
    return type == DAVIT_SCALE_F32 ? 4 : type == DAVIT_SCALE_F16 || type == DAVIT_SCALE_BF16 ? 2 : 1;
}

float davit_q_scale(const uint8_t *p, uint32_t type, uint64_t index)
{
    switch (type) {
    case DAVIT_SCALE_F16:
        return davit_ref_f16_to_f32(davit_bytes_u16le(p + 2 * index));
    case DAVIT_SCALE_BF16:
        return from_bits((uint32_t)davit_bytes_u16le(p + 2 * index) << 16);
    case DAVIT_SCALE_E8M0:
        return davit_q_e8m0(p[index]);
    case DAVIT_SCALE_E4M3:
        return davit_q_e4m3(p[index]);
    default:
        return from_bits(davit_bytes_u32le(p + 4 * index));
    }
}

int32_t davit_q_scale_type(const char *dtype)
{
    static const struct {
        const char *dtype;
        int32_t type;
    } types[] = {{"f32/1", DAVIT_SCALE_F32},     {"f16/1", DAVIT_SCALE_F16},
                 {"bf16/1", DAVIT_SCALE_BF16},   {"f8_e8m0/1", DAVIT_SCALE_E8M0},
                 {"u8/1", DAVIT_SCALE_E8M0},     {"f8_e4m3/1", DAVIT_SCALE_E4M3}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].dtype, dtype) == 0)
            return types[i].type;
    return -1;
}

uint8_t davit_q_bits(const uint8_t *words, uint64_t stride, uint64_t bit, uint32_t n_bits)
{
    const uint64_t word = bit / 32;
    const uint32_t shift = (uint32_t)(bit % 32);
    uint64_t two = davit_bytes_u32le(words + word * stride);

    if (shift + n_bits > 32) /* the next word exists: the code reaches into it */
        two |= (uint64_t)davit_bytes_u32le(words + (word + 1) * stride) << 32;
    return (uint8_t)(two >> shift & ((1u << n_bits) - 1));
}

/* Whole bytes in a loop without branches: compilers make vectors of it. */
void davit_q_u4(const uint8_t *row, uint64_t col, uint64_t n, uint8_t *out)
{
    const uint8_t *p = row + (col + 1) / 2;
    uint64_t pairs;

    if (n && col % 2) {
        *out++ = row[col / 2] >> 4;
        n--;
    }
    pairs = n / 2;
    for (uint64_t i = 0; i < pairs; i++) {
        out[2 * i] = p[i] & 15;
        out[2 * i + 1] = p[i] >> 4;
    }
    if (n % 2)
        out[n - 1] = p[pairs] & 15;
}

/* Words side by side, of codes of 4 or 8 bits. */
static void split_words(const uint8_t *words, uint32_t n_bits, uint64_t first, uint64_t n,
                        uint8_t *out)
{
    if (n_bits == 4)
        davit_q_u4(words, first, n, out);
    else
        memcpy(out, words + first, n);
}

#define GATHER 64 /* words */

void davit_q_words(const uint8_t *words, uint64_t stride, uint32_t n_bits, uint64_t first,
                   uint64_t n, uint8_t *out)
{
    const uint64_t each = 32 / n_bits;
    uint8_t some[4 * GATHER];

    if (n_bits != 4 && n_bits != 8) {
        for (uint64_t i = 0; i < n; i++)
            out[i] = davit_q_bits(words, stride, (first + i) * n_bits, n_bits);
        return;
    }
    if (stride == 4) {
        split_words(words, n_bits, first, n, out);
        return;
    }
    for (uint64_t i = 0, m; i < n; i += m) {
        const uint64_t at = (first + i) % each, left = n - i;
        const uint64_t n_words = (at + left + each - 1) / each;
        const uint8_t *from = words + (first + i) / each * stride;

        m = n_words > GATHER ? GATHER * each - at : left;
        for (uint64_t w = 0; w < n_words && w < GATHER; w++)
            memcpy(some + 4 * w, from + w * stride, 4);
        split_words(some, n_bits, at, m, out + i);
    }
}
