/* SPDX-License-Identifier: Apache-2.0
 * Writing the packed layout of codes.h from decoded CODES. Baseline code and the definition, runs once at
 * load; faster parts: pack_codes_avx2.c. */
#include <davit/help/ref.h>

#include "pack_codes.h"

static uint64_t codes_bytes(void *self, uint64_t n_cols, const uint64_t params[8])
{
    cpu_codes c;
    (void)self;

    return cpu_codes_init(&c, n_cols, params) ? c.block_bytes : 0;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Exact by the contract of DAVIT_SCALE_E4M3; a value that e4m3 lacks is cut. */
static uint8_t e4m3_of(float f)
{
    const uint32_t bits = bits_of(f), exponent = bits >> 23 & 255;
    const uint8_t sign = (uint8_t)(bits >> 24 & 0x80);

    if (exponent < 127 - 6) /* multiples of 2^-9 below the least normal number */
        return (uint8_t)(sign | (uint8_t)((f < 0 ? -f : f) * 512.0f));
    return (uint8_t)(sign | (uint8_t)(((exponent - 127 + 7) << 3 | (bits >> 20 & 7)) & 0x7f));
}

static void put_scale(const cpu_codes *c, uint8_t *at, uint64_t i, float scale)
{
    const uint32_t bits = bits_of(scale);
    const uint16_t half = c->what.scale_type == DAVIT_SCALE_F16 ? davit_ref_f32_to_f16(scale)
                                                                : (uint16_t)(bits >> 16);

    switch (c->what.scale_type) {
    case DAVIT_SCALE_F16:
    case DAVIT_SCALE_BF16:
        memcpy(at + 2 * i, &half, sizeof half);
        break;
    case DAVIT_SCALE_E8M0:
        at[i] = (uint8_t)(bits >> 23);
        break;
    case DAVIT_SCALE_E4M3:
        at[i] = e4m3_of(scale);
        break;
    default:
        memcpy(at + 4 * i, &scale, sizeof scale);
    }
}

static void put_zero(const cpu_codes *c, uint8_t *at, uint64_t i, float zero)
{
    const uint16_t half = davit_ref_f32_to_f16(zero);

    switch (c->what.zero_type) {
    case DAVIT_ZERO_CONST:
        break;
    case DAVIT_ZERO_U4:
        at[i / 2] |= (uint8_t)(((uint32_t)zero & 15) << (i & 1) * 4);
        break;
    case DAVIT_ZERO_U4_1:
        at[i / 2] |= (uint8_t)(((uint32_t)(zero - 1) & 15) << (i & 1) * 4);
        break;
    case DAVIT_ZERO_U8:
        at[i] = (uint8_t)zero;
        break;
    case DAVIT_ZERO_U8_1:
        at[i] = (uint8_t)(zero - 1);
        break;
    case DAVIT_MIN_F16:
        memcpy(at + 2 * i, &half, sizeof half);
        break;
    default:
        memcpy(at + 4 * i, &zero, sizeof zero);
    }
}

/* The plane of @width bits, a constant where it is called, from bit @done of the codes, of 32
 * columns of one row: byte i of its 4 * width takes the bits of columns i, i + 4 * width ... .
 * Loops without branches over bytes: compilers make vectors of them. Returns: the next plane. */
static inline uint8_t *put_plane(uint8_t *plane, uint32_t width, uint32_t done, uint64_t lane,
                                 const uint8_t codes[CPU_XBLOCK])
{
    const uint32_t mask = (1u << width) - 1, n = 4 * width;
    uint8_t bytes[CPU_XBLOCK] = {0};

    for (uint32_t s = 0; s < 8 / width; s++)
        for (uint32_t i = 0; i < n; i++)
            bytes[i] |= (uint8_t)((codes[s * n + i] >> done & mask) << s * width);
    for (uint32_t w = 0; w < width; w++)
        memcpy(plane + (w * CPU_GROUP + lane) * 4, bytes + 4 * w, 4);
    return plane + 32 * width;
}

/* Float codes: bytes 1 and 2 of each four change places (cpu_codes_byte). */
static void swap_middle(uint8_t codes[CPU_XBLOCK])
{
    uint32_t words[CPU_XBLOCK / 4];

    memcpy(words, codes, sizeof words);
    for (uint32_t i = 0; i < CPU_XBLOCK / 4; i++)
        words[i] = (words[i] & 0xff0000ffu) | (words[i] >> 8 & 0x0000ff00u) |
                   (words[i] << 8 & 0x00ff0000u);
    memcpy(codes, words, sizeof words);
}

/* Columns from @k, a multiple of 32, on of one row. @dst: of column 0. */
static void put_codes(const cpu_codes *c, uint8_t *dst, uint64_t lane, const uint8_t *codes, uint64_t k)
{
    const uint32_t bits = c->what.bits;

    dst += k * bits;
    for (; k < c->n_cols; k += CPU_XBLOCK) {
        uint8_t part[CPU_XBLOCK] = {0};

        if (c->n_cols - k >= CPU_XBLOCK) /* of a known size: two registers */
            memcpy(part, codes + k, CPU_XBLOCK);
        else
            memcpy(part, codes + k, c->n_cols - k);
        if (c->what.kind != DAVIT_CODE_UINT)
            swap_middle(part);
        if (bits & 8)
            dst = put_plane(dst, 8, 0, lane, part);
        if (bits & 4)
            dst = put_plane(dst, 4, 0, lane, part);
        if (bits & 2)
            dst = put_plane(dst, 2, bits & 4, lane, part);
        if (bits & 1)
            dst = put_plane(dst, 1, bits & 6, lane, part);
    }
}

/* Values that their type holds exactly, column after column. */
static void pack_plain(const cpu_codes *c, const davit_quant_out *decoded, uint64_t n_rows,
                       uint8_t *dst)
{
    for (uint64_t r = 0; r < CPU_GROUP; r++) {
        const float *row = decoded->values + cpu_min(r, n_rows - 1) * decoded->stride;

        for (uint64_t k = 0; k < c->n_cols; k++)
            put_scale(c, dst + k * CPU_GROUP * c->what.bits / 8, r, row[k]);
    }
}

static void pack_rows(const cpu_codes *c, const davit_quant_out *decoded, uint64_t n_rows, uint8_t *dst)
{
    for (uint64_t r = 0; r < CPU_GROUP; r++) {
        const uint64_t row = cpu_min(r, n_rows - 1); /* rows past the end repeat the last */

        for (uint64_t g = 0; g < c->n_groups && r < c->n_shared; g++) {
            const uint64_t i = row * c->n_groups + g;
            put_scale(c, dst + c->scale_off + g * c->scale_bytes, r, decoded->scales[i]);
            if (c->what.kind == DAVIT_CODE_UINT)
                put_zero(c, dst + c->zero_off + g * c->zero_bytes, r, decoded->zeros[i]);
        }
        put_codes(c, dst + c->code_off, r, decoded->codes + row * decoded->stride, 0);
    }
}

/* The same of eight rows. */
static void pack_rows_avx2(const cpu_codes *c, const davit_quant_out *decoded, uint8_t *dst)
{
    const uint8_t *row[CPU_GROUP];
    uint64_t done;

    for (uint64_t r = 0; r < CPU_GROUP; r++)
        row[r] = decoded->codes + r * decoded->stride;
    done = cpu_put_codes_avx2(c, dst + c->code_off, row);
    for (uint64_t r = 0; r < CPU_GROUP; r++)
        put_codes(c, dst + c->code_off, r, row[r], done);
    if (c->n_shared == CPU_GROUP) {
        cpu_put_scales_avx2(c, dst, decoded->scales);
        if (c->what.kind == DAVIT_CODE_UINT && c->zero_bytes)
            cpu_put_zeros_avx2(c, dst, decoded->zeros);
        return;
    }
    for (uint64_t g = 0; g < c->n_groups; g++) {
        put_scale(c, dst + c->scale_off + g * c->scale_bytes, 0, decoded->scales[g]);
        if (c->what.kind == DAVIT_CODE_UINT)
            put_zero(c, dst + c->zero_off + g * c->zero_bytes, 0, decoded->zeros[g]);
    }
}

static void codes_pack(void *self, const davit_weight *weight, const davit_segment *src,
                       const davit_quant_out *decoded, uint64_t n_rows, uint8_t *dst)
{
    const cpu_self *me = self;
    const int fast = me && (me->features & CPU_AVX2) == CPU_AVX2;
    cpu_codes c;
    (void)src;

    if (!cpu_codes_init(&c, weight->n_cols, weight->params))
        return; /* block_bytes was 0: not asked */
    if (c.what.kind == DAVIT_CODE_PLAIN) {
        pack_plain(&c, decoded, n_rows, dst);
        return;
    }
    if (c.what.scale_type == DAVIT_SCALE_E4M3) {
        memcpy(dst, &decoded->factor, sizeof decoded->factor);
        memcpy(dst + 4, &decoded->divide, sizeof decoded->divide);
    }
    if (fast && n_rows == CPU_GROUP)
        pack_rows_avx2(&c, decoded, dst);
    else
        pack_rows(&c, decoded, n_rows, dst);
}

const davit_pack cpu_pack_codes = {
    .struct_size = DAVIT_END(davit_pack, flags),
    .layout = CPU_CODES_LAYOUT,
    .forms = DAVIT_FORM_CODES,
    .row_block = CPU_GROUP,
    .block_bytes = codes_bytes,
    .pack = codes_pack,
    .flags = DAVIT_PACK_MIXED | DAVIT_PACK_PLAIN,
};
