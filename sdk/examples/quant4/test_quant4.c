/* SPDX-License-Identifier: Apache-2.0
 * The layout against an independent reading of its bytes, faults, and what the program decodes. */
#include <math.h>
#include <stdlib.h>

#include <davit/help/test.h>

#define N 7
#define K 160
#define G (K / 32)

typedef struct weights {
    uint8_t codes[N * K / 2];
    float scale[N * G], min[N * G], expected[N * K];
} weights;

static void fill(davit_test *t, weights *w)
{
    for (int i = 0; i < N * K / 2; i++)
        w->codes[i] = (uint8_t)davit_test_random(t);
    for (int i = 0; i < N * G; i++) {
        w->scale[i] = 0.02f * davit_test_normal(t);
        w->min[i] = 0.1f * davit_test_normal(t);
    }
    for (int i = 0; i < N * K; i++) {
        const int code = i % 2 ? w->codes[i / 2] / 16 : w->codes[i / 2] % 16;

        w->expected[i] = w->scale[i / 32] * (float)code + w->min[i / 32];
    }
}

static void test_module(davit_test *t, weights *w)
{
    davit_test_part parts[] = {
        {"weight_q4", "u8/1", {N, K / 2}, 2, w->codes, sizeof w->codes},
        {"weight_q4_scale", "f32/1", {N, G}, 2, w->scale, sizeof w->scale},
        {"weight_q4_min", "f32/1", {N, G}, 2, w->min, sizeof w->min},
    };
    uint32_t verdict;

    davit_test_quant(t, parts, 3, w->expected, 0);

    parts[1].shape[1] = G + 1;
    DAVIT_CHECK(t, davit_test_quant_check(t, parts, 3, NULL, NULL) == DAVIT_E_MISMATCH);
    DAVIT_CHECK(t, davit_test_said(t, DAVIT_R_SHAPE_MISMATCH));
    parts[1].shape[1] = G;
    parts[0].shape[1] = K / 2 - 1;
    DAVIT_CHECK(t, davit_test_quant_check(t, parts, 3, NULL, NULL) == DAVIT_E_MISMATCH);
    parts[0].dtype = "i8/1";
    davit_test_quant_check(t, parts, 3, NULL, &verdict);
    DAVIT_CHECK(t, verdict == DAVIT_DECLINE);
    davit_test_quant_check(t, parts, 2, NULL, &verdict);
    DAVIT_CHECK(t, verdict == DAVIT_DECLINE);
}

static void write_model(davit_test *t, const weights *w)
{
    static const uint64_t codes[] = {N, K / 2}, groups[] = {N, G};
    davit_test_model *m = davit_test_model_new(t);

    davit_test_model_bytes(m, "up.weight_q4", "U8", 2, codes, w->codes, sizeof w->codes);
    davit_test_model_bytes(m, "up.weight_q4_scale", "F32", 2, groups, w->scale, sizeof w->scale);
    davit_test_model_bytes(m, "up.weight_q4_min", "F32", 2, groups, w->min, sizeof w->min);
    davit_test_model_write(m, "model", "{}\n");
    davit_test_model_free(m);
}

/* What the program decodes, and that it sees a scale that is not a number. */
static void test_program(davit_test *t, weights *w)
{
    uint64_t rows, cols;
    float *got;

    write_model(t, w);
    got = davit_test_dump(t, "model", "up", &rows, &cols);
    if (got && DAVIT_CHECK(t, rows == N && cols == K))
        davit_test_compare(t, "dump", got, w->expected, N * K, 0);
    free(got);
}

int main(int argc, char **argv)
{
    davit_test *t = davit_test_open(argc > 1 ? argv[1] : "./quant4.so", NULL);
    weights w;

    fill(t, &w);
    test_module(t, &w);
    test_program(t, &w);
    return davit_test_end(t);
}
