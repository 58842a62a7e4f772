/* SPDX-License-Identifier: Apache-2.0
 * ggml's tensor types by id: ggml.h enum ggml_type and ggml.c type_traits, state of
 * 2026-05 (GGML_TYPE_COUNT 43). */
#include "gguf.h"

#include <stddef.h>

#define REQUANTISE "re-quantise the model to Q4_0; the layout is made at load time now"

static const gguf_type types[] = {
    [0] = {"F32", "f32/1", 1, 4, NULL},
    [1] = {"F16", "f16/1", 1, 2, NULL},
    [2] = {"Q4_0", "q4_0/1", 32, 18, NULL},
    [3] = {"Q4_1", "q4_1/1", 32, 20, NULL},
    [4] = {"Q4_2", NULL, 0, 0, "re-quantise the model; the type was removed in 2023"},
    [5] = {"Q4_3", NULL, 0, 0, "re-quantise the model; the type was removed in 2023"},
    [6] = {"Q5_0", "q5_0/1", 32, 22, NULL},
    [7] = {"Q5_1", "q5_1/1", 32, 24, NULL},
    [8] = {"Q8_0", "q8_0/1", 32, 34, NULL},
    [9] = {"Q8_1", "q8_1/1", 32, 36, NULL},
    [10] = {"Q2_K", "q2_k/1", 256, 84, NULL},
    [11] = {"Q3_K", "q3_k/1", 256, 110, NULL},
    [12] = {"Q4_K", "q4_k/1", 256, 144, NULL},
    [13] = {"Q5_K", "q5_k/1", 256, 176, NULL},
    [14] = {"Q6_K", "q6_k/1", 256, 210, NULL},
    [15] = {"Q8_K", "q8_k/1", 256, 292, NULL},
    [16] = {"IQ2_XXS", "iq2_xxs/1", 256, 66, NULL},
    [17] = {"IQ2_XS", "iq2_xs/1", 256, 74, NULL},
    [18] = {"IQ3_XXS", "iq3_xxs/1", 256, 98, NULL},
    [19] = {"IQ1_S", "iq1_s/1", 256, 50, NULL},
    [20] = {"IQ4_NL", "iq4_nl/1", 32, 18, NULL},
    [21] = {"IQ3_S", "iq3_s/1", 256, 110, NULL},
    [22] = {"IQ2_S", "iq2_s/1", 256, 82, NULL},
    [23] = {"IQ4_XS", "iq4_xs/1", 256, 136, NULL},
    [24] = {"I8", "i8/1", 1, 1, NULL},
    [25] = {"I16", "i16/1", 1, 2, NULL},
    [26] = {"I32", "i32/1", 1, 4, NULL},
    [27] = {"I64", "i64/1", 1, 8, NULL},
    [28] = {"F64", "f64/1", 1, 8, NULL},
    [29] = {"IQ1_M", "iq1_m/1", 256, 56, NULL},
    [30] = {"BF16", "bf16/1", 1, 2, NULL},
    [31] = {"Q4_0_4_4", NULL, 0, 0, REQUANTISE},
    [32] = {"Q4_0_4_8", NULL, 0, 0, REQUANTISE},
    [33] = {"Q4_0_8_8", NULL, 0, 0, REQUANTISE},
    [34] = {"TQ1_0", "tq1_0/1", 256, 54, NULL},
    [35] = {"TQ2_0", "tq2_0/1", 256, 66, NULL},
    [36] = {"IQ4_NL_4_4", NULL, 0, 0, "re-quantise the model to IQ4_NL"},
    [37] = {"IQ4_NL_4_8", NULL, 0, 0, "re-quantise the model to IQ4_NL"},
    [38] = {"IQ4_NL_8_8", NULL, 0, 0, "re-quantise the model to IQ4_NL"},
    [39] = {"MXFP4", "gguf.mxfp4/1", 32, 17, NULL},
    [40] = {"NVFP4", "gguf.nvfp4/1", 64, 36, NULL},
    [41] = {"Q1_0", "q1_0/1", 128, 18, NULL},
    [42] = {"Q2_0", "q2_0/1", 64, 18, NULL},
};

const gguf_type *gguf_type_find(uint32_t id)
{
    return id < sizeof types / sizeof types[0] ? &types[id] : NULL;
}
