/* SPDX-License-Identifier: Apache-2.0
 * Table of dtype names. Scalars: safetensors 0.6 header names in lower case. Blocks:
 * ggml's type table of May 2026 (type_size and blck_size); ids live in the gguf plugin.
 */
#include "base/dtype.h"

#include <string.h>

#include <glib.h>

static const DavitDtype dtypes[] = {
    {"f64/1", 1, 8, DAVIT_DTYPE_FLOAT},
    {"f32/1", 1, 4, DAVIT_DTYPE_FLOAT},
    {"f16/1", 1, 2, DAVIT_DTYPE_FLOAT},
    {"bf16/1", 1, 2, DAVIT_DTYPE_FLOAT},
    {"f8_e4m3/1", 1, 1, DAVIT_DTYPE_FLOAT},
    {"f8_e5m2/1", 1, 1, DAVIT_DTYPE_FLOAT},
    {"f8_e8m0/1", 1, 1, DAVIT_DTYPE_FLOAT},
    {"f8_e4m3fnuz/1", 1, 1, DAVIT_DTYPE_FLOAT},
    {"f8_e5m2fnuz/1", 1, 1, DAVIT_DTYPE_FLOAT},
    {"i64/1", 1, 8, DAVIT_DTYPE_INTEGER},
    {"i32/1", 1, 4, DAVIT_DTYPE_INTEGER},
    {"i16/1", 1, 2, DAVIT_DTYPE_INTEGER},
    {"i8/1", 1, 1, DAVIT_DTYPE_INTEGER},
    {"u64/1", 1, 8, DAVIT_DTYPE_INTEGER},
    {"u32/1", 1, 4, DAVIT_DTYPE_INTEGER},
    {"u16/1", 1, 2, DAVIT_DTYPE_INTEGER},
    {"u8/1", 1, 1, DAVIT_DTYPE_INTEGER},
    {"bool/1", 1, 1, DAVIT_DTYPE_BOOL},
    {"c64/1", 1, 8, DAVIT_DTYPE_COMPLEX},
    {"f4/1", 2, 1, DAVIT_DTYPE_PACKED},
    {"f6_e2m3/1", 4, 3, DAVIT_DTYPE_PACKED},
    {"f6_e3m2/1", 4, 3, DAVIT_DTYPE_PACKED},
    {"q4_0/1", 32, 18, DAVIT_DTYPE_BLOCK},
    {"q4_1/1", 32, 20, DAVIT_DTYPE_BLOCK},
    {"q5_0/1", 32, 22, DAVIT_DTYPE_BLOCK},
    {"q5_1/1", 32, 24, DAVIT_DTYPE_BLOCK},
    {"q8_0/1", 32, 34, DAVIT_DTYPE_BLOCK},
    {"q8_1/1", 32, 36, DAVIT_DTYPE_BLOCK},
    {"q2_k/1", 256, 84, DAVIT_DTYPE_BLOCK},
    {"q3_k/1", 256, 110, DAVIT_DTYPE_BLOCK},
    {"q4_k/1", 256, 144, DAVIT_DTYPE_BLOCK},
    {"q5_k/1", 256, 176, DAVIT_DTYPE_BLOCK},
    {"q6_k/1", 256, 210, DAVIT_DTYPE_BLOCK},
    {"q8_k/1", 256, 292, DAVIT_DTYPE_BLOCK},
    {"iq2_xxs/1", 256, 66, DAVIT_DTYPE_BLOCK},
    {"iq2_xs/1", 256, 74, DAVIT_DTYPE_BLOCK},
    {"iq3_xxs/1", 256, 98, DAVIT_DTYPE_BLOCK},
    {"iq1_s/1", 256, 50, DAVIT_DTYPE_BLOCK},
    {"iq4_nl/1", 32, 18, DAVIT_DTYPE_BLOCK},
    {"iq3_s/1", 256, 110, DAVIT_DTYPE_BLOCK},
    {"iq2_s/1", 256, 82, DAVIT_DTYPE_BLOCK},
    {"iq4_xs/1", 256, 136, DAVIT_DTYPE_BLOCK},
    {"iq1_m/1", 256, 56, DAVIT_DTYPE_BLOCK},
    {"tq1_0/1", 256, 54, DAVIT_DTYPE_BLOCK},
    {"tq2_0/1", 256, 66, DAVIT_DTYPE_BLOCK},
    /* "gguf." where a safetensors layout of the same name stores other bytes. */
    {"gguf.mxfp4/1", 32, 17, DAVIT_DTYPE_BLOCK},
    {"gguf.nvfp4/1", 64, 36, DAVIT_DTYPE_BLOCK},
    {"q1_0/1", 128, 18, DAVIT_DTYPE_BLOCK},
    {"q2_0/1", 64, 18, DAVIT_DTYPE_BLOCK},
};

const DavitDtype *davit_dtype_find(const char *name)
{
    for (size_t i = 0; name && i < G_N_ELEMENTS(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

const DavitDtype *davit_dtype_all(size_t *out_n)
{
    *out_n = G_N_ELEMENTS(dtypes);
    return dtypes;
}
