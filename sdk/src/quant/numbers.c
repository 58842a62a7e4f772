/* SPDX-License-Identifier: Apache-2.0
 * Many scales at once: loops without branches that compilers make vectors of, each equal to davit_q_scale
 * in every bit. */
#include <string.h>

#include <davit/help/bytes.h>
#include <davit/help/quant.h>

static float from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Exponent and mantissa moved under float32's and the bias put right; all ones are infinity or no
 * number, and those below the least normal one are whole multiples of it. No subnormal float32 is
 * multiplied: processors take a hundred cycles for each. */
static float half(uint16_t h)
{
    const uint32_t low = (uint32_t)(h & 0x7fff) << 13;
    const uint32_t normal = low + (112u << 23) + (low >= 0x0f800000u ? 112u << 23 : 0);
    const uint32_t small = bits_of((float)(int32_t)(h & 0x3ff) * 0x1p-24f);

    return from_bits((low < 0x00800000u ? small : normal) | (uint32_t)(h & 0x8000) << 16);
}

static float e8m0(uint8_t code)
{
    const uint32_t bits = (uint32_t)code << 23;

    return from_bits(code == 255 ? 0x7fc00000u : bits | (code == 0 ? 0x00400000u : 0));
}

static float e4m3(uint8_t code)
{
    const uint32_t normal = ((uint32_t)(code & 0x7f) << 20) + (120u << 23);
    const uint32_t small = bits_of((float)(int32_t)(code & 7) * 0x1p-9f);
    const uint32_t bits = (code & 0x78) == 0 ? small : normal;

    return from_bits((code & 0x7f) == 0x7f ? 0x7fc00000u : bits | (uint32_t)(code & 0x80) << 24);
}

void davit_q_numbers(const uint8_t *p, uint32_t type, uint64_t n, float *out)
{
    switch (type) {
    case DAVIT_SCALE_F16:
        for (uint64_t i = 0; i < n; i++)
            out[i] = half(davit_bytes_u16le(p + 2 * i));
        break;
    case DAVIT_SCALE_BF16:
        for (uint64_t i = 0; i < n; i++)
            out[i] = from_bits((uint32_t)davit_bytes_u16le(p + 2 * i) << 16);
        break;
    case DAVIT_SCALE_E8M0:
        for (uint64_t i = 0; i < n; i++)
            out[i] = e8m0(p[i]);
        break;
    case DAVIT_SCALE_E4M3:
        for (uint64_t i = 0; i < n; i++)
            out[i] = e4m3(p[i]);
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            out[i] = from_bits(davit_bytes_u32le(p + 4 * i));
    }
}

#define SIDE 64 /* numbers of a group whose rows lie side by side */

void davit_q_scales(const davit_q_grid *grid, uint64_t n_rows, uint64_t n, float *out)
{
    const uint64_t size = davit_q_scale_bytes(grid->type);
    float some[SIDE];

    if (grid->group_step == 1 || n == 1) { /* groups of a row side by side */
        for (uint64_t r = 0; r < n_rows; r++)
            davit_q_numbers(grid->p + (grid->first + r * grid->row_step) * size, grid->type, n,
                            out + r * n);
        return;
    }
    for (uint64_t g = 0; g < n; g++)
        for (uint64_t r = 0, m; r < n_rows; r += m) {
            const uint64_t at = grid->first + g * grid->group_step + r * grid->row_step;

            m = grid->row_step != 1 ? 1 : n_rows - r < SIDE ? n_rows - r : SIDE;
            davit_q_numbers(grid->p + at * size, grid->type, m, some);
            for (uint64_t i = 0; i < m; i++)
                out[(r + i) * n + g] = some[i];
        }
}
