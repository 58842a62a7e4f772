/* SPDX-License-Identifier: Apache-2.0
 * The layout against an independent reading of its bytes, faults, what the program decodes, and a
 * model stored in it against the same model in float32. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What the program decodes. */
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

/* ---- a whole model ---- */

#define WIDTH 64 /* every matrix is [WIDTH, WIDTH] */
#define VOCAB 40
#define CONFIG                                                                            \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"            \
    " \"vocab_size\": 40, \"hidden_size\": 64, \"intermediate_size\": 64,\n"              \
    " \"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 4,\n" \
    " \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, \"max_position_embeddings\": 256,\n" \
    " \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}\n"

/* Matrix @name in both models: codes in @mine, their values in @plain. */
static void add_matrix(davit_test *t, davit_test_model *mine, davit_test_model *plain,
                       const char *name)
{
    static const uint64_t codes_shape[] = {WIDTH, WIDTH / 2}, shape[] = {WIDTH, WIDTH / 32};
    uint8_t codes[WIDTH * WIDTH / 2];
    float part[2][WIDTH * WIDTH / 32], *values; /* scale, min */
    char full[96];

    for (int i = 0; i < WIDTH * WIDTH / 2; i++)
        codes[i] = (uint8_t)davit_test_random(t);
    for (int i = 0; i < WIDTH * WIDTH / 32; i++) {
        part[0][i] = 0.04f * davit_test_normal(t);
        part[1][i] = 0.1f * davit_test_normal(t);
    }
    snprintf(full, sizeof full, "model.layers.0.%s.weight_q4", name);
    davit_test_model_bytes(mine, full, "U8", 2, codes_shape, codes, sizeof codes);
    snprintf(full, sizeof full, "model.layers.0.%s.weight_q4_scale", name);
    davit_test_model_bytes(mine, full, "F32", 2, shape, part[0], sizeof part[0]);
    snprintf(full, sizeof full, "model.layers.0.%s.weight_q4_min", name);
    davit_test_model_bytes(mine, full, "F32", 2, shape, part[1], sizeof part[1]);
    snprintf(full, sizeof full, "model.layers.0.%s.weight", name);
    values = davit_test_model_random(plain, full, WIDTH, WIDTH, 0, 0);
    for (int i = 0; i < WIDTH * WIDTH; i++) {
        const int code = i % 2 ? codes[i / 2] / 16 : codes[i / 2] % 16;

        values[i] = part[0][i / 32] * (float)code + part[1][i / 32];
    }
}

static void add_plain(davit_test_model *mine, davit_test_model *plain, const char *name,
                      uint64_t rows, uint64_t cols)
{
    const float *x = davit_test_model_random(mine, name, rows, cols, 0.3f, cols ? 0 : 1);
    float *y = davit_test_model_random(plain, name, rows, cols, 0, 0);

    memcpy(y, x, rows * (cols ? cols : 1) * sizeof *y);
}

/* davit's kernels pack the codes of a layout that they have never heard of: the same logits as
 * those of the decoded matrices. */
static void test_run(davit_test *t)
{
    static const char *const matrices[] = {
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    davit_test_model *mine = davit_test_model_new(t), *plain = davit_test_model_new(t);
    uint64_t rows, cols, rows2, cols2;
    float *a, *b;

    add_plain(mine, plain, "model.embed_tokens.weight", VOCAB, WIDTH);
    add_plain(mine, plain, "lm_head.weight", VOCAB, WIDTH);
    add_plain(mine, plain, "model.norm.weight", WIDTH, 0);
    add_plain(mine, plain, "model.layers.0.input_layernorm.weight", WIDTH, 0);
    add_plain(mine, plain, "model.layers.0.post_attention_layernorm.weight", WIDTH, 0);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        add_matrix(t, mine, plain, matrices[i]);
    davit_test_model_write(mine, "mine", CONFIG);
    davit_test_model_write(plain, "plain", CONFIG);
    a = davit_test_logits(t, "mine", "3 9 30 1 17", &rows, &cols);
    b = davit_test_logits(t, "plain", "3 9 30 1 17", &rows2, &cols2);
    if (a && b && DAVIT_CHECK(t, rows == 5 && rows2 == 5 && cols == cols2))
        davit_test_compare(t, "logits", a, b, rows * cols, 1e-5);
    free(a);
    free(b);
    davit_test_model_free(mine);
    davit_test_model_free(plain);
}

int main(int argc, char **argv)
{
    davit_test *t = davit_test_open(argc > 1 ? argv[1] : "./quant4.so", NULL);
    weights w;

    fill(t, &w);
    test_module(t, &w);
    test_program(t, &w);
    test_run(t);
    davit_test_quant_broken(t, 3000);
    return davit_test_end(t);
}
