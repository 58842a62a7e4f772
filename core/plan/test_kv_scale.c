/* SPDX-License-Identifier: Apache-2.0
 * Scales of keys and values in FP8: under any name, of a layer or of each head. */
#include "plan/test_kv_scale.h"

#include <stdio.h>
#include <string.h>

#include "plan/test_model.h"

#define LAYER "model.layers."

typedef struct KvScale {
    const char *name;  /* after "model.layers." */
    const char *dtype; /* NULL = F32 */
    uint64_t n;        /* elements, 0 = one */
    float value;       /* of the first, if F32; element i is i + 1 times it */
} KvScale;

static void write_values(const TestModel *m, const davit_tensor_info *t, float value)
{
    g_autofree char *path = g_build_filename(m->dir, "model.safetensors", NULL);
    FILE *file = fopen(path, "r+b");

    g_assert_nonnull(file);
    g_assert_cmpint(fseek(file, (long)t->off, SEEK_SET), ==, 0);
    for (uint64_t i = 0; i < t->n_bytes / sizeof value; i++) {
        const float x = value * (float)(i + 1);
        g_assert_cmpuint(fwrite(&x, sizeof x, 1, file), ==, 1);
    }
    g_assert_cmpint(fclose(file), ==, 0);
}

/* (owned) the tiny model with these scales, asked for keys and values in FP8. */
static TestModel *with_scales(const KvScale *scales, const char *quantization)
{
    g_autofree TestTensor *all = g_new0(TestTensor, test_tiny_count + 8);
    g_autofree char *config = g_strdup_printf("%.*s%s%s}", (int)strlen(test_tiny_config) - 1,
                                              test_tiny_config, quantization ? "," : "",
                                              quantization ? quantization : "");
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    size_t n = test_tiny_count;
    TestModel *m;

    memcpy(all, test_tiny, test_tiny_count * sizeof *all);
    for (const KvScale *s = scales; s->name; s++) {
        g_ptr_array_add(names, g_strconcat(LAYER, s->name, NULL));
        all[n++] = (TestTensor){names->pdata[names->len - 1], s->dtype ? s->dtype : "F32", 1,
                                {s->n ? s->n : 1}};
    }
    m = test_model_new(config, all, n);
    for (const KvScale *s = scales; s->name; s++) {
        for (size_t i = 0; !s->dtype && i < davit_checkpoint_n_tensors(m->checkpoint); i++) {
            const davit_tensor_info *t = davit_checkpoint_tensor(m->checkpoint, i);

            if (strcmp(t->name + strlen(LAYER), s->name) == 0)
                write_values(m, t, s->value);
        }
    }
    davit_settings_free(m->settings); /* the file has changed */
    davit_checkpoint_free(m->checkpoint);
    m->checkpoint = davit_checkpoint_open(m->registry, m->dir, DAVIT_MAP, m->report);
    m->settings = davit_settings_open(m->checkpoint, m->report);
    m->options.kv_dtype = "f8_e4m3/1";
    return m;
}

static void scales_of_keys_and_values_reach_their_layer(void)
{
    static const KvScale scales[] = {{"0.self_attn.k_scale", NULL, 0, 0.5f},
                                     {"0.self_attn.v_scale", NULL, 0, 0.25f},
                                     {"0.self_attn.attn.v_scale", NULL, 0, 0.25f},
                                     {"1.self_attn.kv_scale", NULL, 0, 3},
                                     {"2.self_attn.kv_scale", NULL, 0, 7}, /* no such layer */
                                     {.name = NULL}};
    g_autoptr(TestModel) m = with_scales(scales, NULL);
    g_autoptr(DavitPlan) plan = test_model_plan(m);
    const davit_state_spec *state;

    g_assert_nonnull(plan);
    state = plan->program->states;
    g_assert_cmpuint(plan->program->n_states, ==, 2);
    g_assert_cmpstr(state[0].dtype, ==, "f8_e4m3/1");
    g_assert_cmpfloat(state[0].k_scale, ==, 0.5f);
    g_assert_cmpfloat(state[0].v_scale, ==, 0.25f);
    g_assert_cmpfloat(state[1].k_scale, ==, 3);
    g_assert_cmpfloat(state[1].v_scale, ==, 3);
    g_assert_cmpint(test_find(m, "source-chosen", "kv-dtype")->severity, ==, DAVIT_NOTE);
}

static const char heads[] = "\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
                            "\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\","
                            "\"strategy\":\"attn_head\"}}";
static const char tensor[] = "\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
                             "\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\","
                             "\"strategy\":\"tensor\"}}";

/* The tiny model has two heads. A layer's keys may have one and its values two. */
static void each_head_gets_its_scale(void)
{
    static const KvScale scales[] = {{"0.self_attn.k_scale", NULL, 2, 0.5f},
                                     {"0.self_attn.v_scale", NULL, 2, 0.25f},
                                     {"0.self_attn.attn.v_scale", NULL, 2, 0.25f},
                                     {"1.self_attn.k_scale", NULL, 0, 3},
                                     {"1.self_attn.v_scale", NULL, 2, 7},
                                     {.name = NULL}};
    static const char *const said[] = {NULL, heads};

    for (size_t i = 0; i < G_N_ELEMENTS(said); i++) {
        g_autoptr(TestModel) m = with_scales(scales, said[i]);
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        const davit_state_spec *state;

        g_assert_nonnull(plan);
        state = plan->program->states;
        g_assert_cmpuint(state[0].n_heads, ==, 2);
        for (int h = 0; h < 2; h++) {
            g_assert_cmpfloat(state[0].k_scales[h], ==, 0.5f * (float)(h + 1));
            g_assert_cmpfloat(state[0].v_scales[h], ==, 0.25f * (float)(h + 1));
            g_assert_cmpfloat(state[1].v_scales[h], ==, 7 * (float)(h + 1));
        }
        g_assert_null(state[1].k_scales);
        g_assert_cmpfloat(state[1].k_scale, ==, 3);
        g_assert_nonnull(strstr(test_find(m, "source-chosen", "kv-dtype")->found, "each head"));
    }
}

static void layers_without_scales_take_one_and_say_so(void)
{
    static const KvScale none[] = {{.name = NULL}};
    g_autoptr(TestModel) m = with_scales(none, NULL);
    g_autoptr(DavitPlan) plan = test_model_plan(m);

    g_assert_nonnull(plan);
    g_assert_cmpfloat(plan->program->states[0].k_scale, ==, 0);
    g_assert_cmpint(test_find(m, "source-chosen", "kv-dtype")->severity, ==, DAVIT_WARNING);
}

static void kv_scales_that_cannot_be_are_refused(void)
{
    static const struct {
        KvScale scales[3];
        const char *config, *code, *subject;
    } cases[] = {
        {{{"0.self_attn.k_scale", NULL, 0, 1}}, NULL, "tensor-missing", "0.self_attn.k_scale"},
        {{{"0.self_attn.v_scale", NULL, 0, 1}}, NULL, "tensor-missing", "0.self_attn.v_scale"},
        {{{"0.self_attn.kv_scale", NULL, 0, 0}}, NULL, "quant-scale-value", "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", NULL, 0, -1}}, NULL, "quant-scale-value",
         "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", NULL, 3, 1}}, NULL, "quant-scale-arity",
         "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", NULL, 2, 1}}, tensor, "quant-scale-arity",
         "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", NULL, 2, -1}}, heads, "quant-scale-value",
         "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", "I16", 2, 0}}, heads, "quant-dtype", "0.self_attn.kv_scale"},
        {{{"0.self_attn.attn.k_scale", NULL, 0, 1}, {"0.self_attn.kv_scale", NULL, 2, 1}},
         heads, "quant-config-conflict", "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", "BF16", 0, 0}}, NULL, "quant-dtype", "0.self_attn.kv_scale"},
        {{{"0.self_attn.attn.k_scale", NULL, 0, 1}, {"0.self_attn.kv_scale", NULL, 0, 2}},
         NULL, "quant-config-conflict", "0.self_attn.kv_scale"},
        {{{"0.self_attn.kv_scale", NULL, 0, 1}},
         "\"quantization_config\":{\"quant_method\":\"modelopt\",\"kv_cache_quant_algo\":\"NVFP4\"}",
         "config-unsupported", "0.self_attn.kv_scale"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        KvScale scales[4] = {{.name = NULL}};
        g_autofree char *subject = g_strconcat(LAYER, cases[i].subject, NULL);

        memcpy(scales, cases[i].scales, sizeof cases[i].scales);
        g_autoptr(TestModel) m = with_scales(scales, cases[i].config);
        g_autoptr(DavitPlan) plan = test_model_plan(m);

        g_assert_null(plan);
        g_assert_nonnull(test_find(m, cases[i].code, subject));
    }
}

void test_kv_scale_add(void)
{
    g_test_add_func("/quant/scales_of_keys_and_values_reach_their_layer",
                    scales_of_keys_and_values_reach_their_layer);
    g_test_add_func("/quant/each_head_gets_its_scale", each_head_gets_its_scale);
    g_test_add_func("/quant/layers_without_scales_take_one_and_say_so",
                    layers_without_scales_take_one_and_say_so);
    g_test_add_func("/quant/kv_scales_that_cannot_be_are_refused",
                    kv_scales_that_cannot_be_are_refused);
}
