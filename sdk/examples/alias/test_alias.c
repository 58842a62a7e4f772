/* SPDX-License-Identifier: Apache-2.0 */
/* The architecture through the program, on a tiny random checkpoint: the same numbers as
 * davit's own Llama gives, and settings that it does not know refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/test.h>

#define N_LAYERS 2
#define WIDTH    48
#define MLP      40
#define VOCAB    64

#define CONFIG(class_name, type, act)                                                     \
    "{\"architectures\": [\"" class_name "\"], \"model_type\": \"" type "\",\n"           \
    " \"vocab_size\": 64, \"hidden_size\": 48, \"intermediate_size\": 40,\n"              \
    " \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,\n" \
    " \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, \"max_position_embeddings\": 256,\n" \
    " \"hidden_act\": \"" act "\", \"tie_word_embeddings\": false}\n"

static void add_layer(davit_test_model *m, int i)
{
    static const struct {
        const char *name;
        uint64_t rows, cols;
    } parts[] = {
        {"self_attn.q_proj", WIDTH, WIDTH},     {"self_attn.k_proj", WIDTH / 2, WIDTH},
        {"self_attn.v_proj", WIDTH / 2, WIDTH}, {"self_attn.o_proj", WIDTH, WIDTH},
        {"mlp.gate_proj", MLP, WIDTH},          {"mlp.up_proj", MLP, WIDTH},
        {"mlp.down_proj", WIDTH, MLP},          {"input_layernorm", WIDTH, 0},
        {"post_attention_layernorm", WIDTH, 0},
    };
    char name[96];

    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        snprintf(name, sizeof name, "model.layers.%d.%s.weight", i, parts[k].name);
        davit_test_model_random(m, name, parts[k].rows, parts[k].cols, 0.15f,
                                parts[k].cols ? 0.0f : 1.0f);
    }
}

static davit_test_model *make_model(davit_test *t)
{
    davit_test_model *m = davit_test_model_new(t);

    davit_test_model_random(m, "model.embed_tokens.weight", VOCAB, WIDTH, 0.5f, 0);
    davit_test_model_random(m, "model.norm.weight", WIDTH, 0, 0.2f, 1);
    davit_test_model_random(m, "lm_head.weight", VOCAB, WIDTH, 0.3f, 0);
    for (int i = 0; i < N_LAYERS; i++)
        add_layer(m, i);
    return m;
}

static void test_numbers(davit_test *t, davit_test_model *m)
{
    uint64_t rows, cols, rows2, cols2;
    float *mine, *llama;

    davit_test_model_write(m, "mine", CONFIG("AcmeForCausalLM", "acme", "silu"));
    davit_test_model_write(m, "llama", CONFIG("LlamaForCausalLM", "llama", "silu"));
    mine = davit_test_logits(t, "mine", "5 9 60 3 3 17 1", &rows, &cols);
    llama = davit_test_logits(t, "llama", "5 9 60 3 3 17 1", &rows2, &cols2);
    if (mine && llama && DAVIT_CHECK(t, rows == 7 && cols == VOCAB && rows2 == 7))
        davit_test_compare(t, "logits", mine, llama, rows * cols, 1e-5);
    free(mine);
    free(llama);
}

static void test_refusals(davit_test *t, davit_test_model *m)
{
    char *said;
    int code;

    davit_test_model_write(m, "odd", CONFIG("AcmeForCausalLM", "acme", "odd_act"));
    said = davit_test_run(t, &code, "eval", "odd", "--ids", "1 2", NULL);
    if (!DAVIT_CHECK(t, code == 3 && strstr(said, "odd_act"))) /* refused, and named */
        fprintf(stderr, "davit eval: exit %d\n%s", code, said);
    free(said);
}

int main(int argc, char **argv)
{
    davit_test *t = davit_test_plugin_file(argc > 1 ? argv[1] : "./acme.so");
    davit_test_model *m = make_model(t);

    test_numbers(t, m);
    test_refusals(t, m);
    davit_test_model_free(m);
    return davit_test_end(t);
}
