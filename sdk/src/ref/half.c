/* SPDX-License-Identifier: Apache-2.0
 * float16 (IEEE 754 binary16) to and from float32, in integers only; float32 to OCP E4M3. */
#include "ref.h"

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float davit_ref_f16_to_f32(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t exponent = bits >> 10 & 31u;
    const uint32_t mantissa = bits & 0x3ffu;

    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) /* subnormal: mantissa * 2^-24 is exact in float32 */
        return from_bits(sign) + (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t davit_ref_f32_to_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u) /* NaN: quiet, upper payload bits kept */
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: subnormal or zero */
        /* adding 0.5 puts the bits of 2^-24 at the end of the mantissa, rounded to even */
        const float shifted = from_bits(magnitude) + 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

uint8_t davit_ref_f32_to_e4m3(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80u;
    const uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint8_t)(sign | 0x7fu);
    if (magnitude >= 0x43e00000u) /* 448 and more */
        return (uint8_t)(sign | 0x7eu);
    if (magnitude < 0x3c800000u) { /* below 2^-6: a multiple of 2^-9 */
        /* adding 2^14 leaves the bits of 2^-9 at the end of the mantissa, rounded to even */
        const float shifted = from_bits(magnitude) + 0x1p14f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint8_t)(sign | (bits - 0x46800000u));
    }
    const uint32_t odd = magnitude >> 20 & 1u;
    return (uint8_t)(sign | ((magnitude - 0x3c000000u + 0x7ffffu + odd) >> 20));
}
