/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plan/test_model.h"

/* (owned) copy of the tiny decoder's tensors with room for @extra more. */
static TestTensor *copy_tiny(size_t extra)
{
    TestTensor *t = g_new0(TestTensor, test_tiny_count + extra);

    memcpy(t, test_tiny, test_tiny_count * sizeof *t);
    return t;
}

static TestTensor *find_tensor(TestTensor *tensors, const char *name)
{
    for (size_t i = 0; i < test_tiny_count; i++) {
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    }
    g_assert_not_reached();
}

/* (owned, g_free) the tiny decoder's configuration with @more before its end. */
static char *test_config_with(const char *more)
{
    const size_t len = strlen(test_tiny_config) - 1; /* without the brace */

    g_assert_cmpint(test_tiny_config[len], ==, '}');
    return g_strdup_printf("%.*s%s}", (int)len, test_tiny_config, more);
}

static const DavitSlot *find_slot(const DavitPlan *plan, const char *id, int64_t layer)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (strcmp(plan->slots[i].id, id) == 0 && plan->slots[i].layer == layer)
            return &plan->slots[i];
    }
    return NULL;
}

static void whole_plan(void)
{
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);
    g_autoptr(DavitPlan) plan = test_model_plan(m);
    const DavitSlot *q, *norm;

    g_assert_nonnull(plan);
    g_assert_false(davit_report_failed(m->report));
    g_assert_cmpuint(plan->vocab, ==, 8);
    g_assert_cmpuint(plan->n_slots, ==, 3 + 2 * 7);
    g_assert_nonnull(plan->program);
    g_assert_cmpuint(plan->program->n_instrs, ==, 1 + 2 * 8 + 3);
    q = find_slot(plan, "attn.q", 1);
    g_assert_cmpint(q->access, ==, DAVIT_ACCESS_BORROW);
    g_assert_cmpstr(q->layout, ==, "f32/1");
    g_assert_cmpuint(q->borrowed_bytes, ==, 64);
    g_assert_cmpuint(q->private_bytes, ==, 0);
    norm = find_slot(plan, "norm", -1);
    g_assert_cmpint(norm->access, ==, DAVIT_ACCESS_DECODE);
    g_assert_cmpuint(norm->private_bytes, ==, 64);
    g_assert_cmpuint(norm->read_bytes, ==, 16);
    g_assert_false(find_slot(plan, "attn.q.bias", 0)->present);
    /* 8 * 4 * 4 twice, per layer three f32 [4,4] and two bf16 of 24 */
    g_assert_cmpuint(plan->borrowed_bytes, ==, 2 * 128 + 2 * (3 * 64 + 2 * 48));
    g_assert_cmpuint(plan->private_bytes, ==, 3 * 64);
}

static void values_live_from_first_to_last_op(void)
{
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);
    g_autoptr(DavitPlan) plan = test_model_plan(m);
    const DavitProgram *p = plan->program;

    g_assert_cmpint(p->values[0].first, ==, 0);
    g_assert_cmpint(p->values[0].last, ==, (int32_t)p->n_instrs - 3);
    g_assert_cmpstr(p->values[p->output].name, ==, "logits");
    g_assert_cmpint(p->values[p->output].first, ==, (int32_t)p->n_instrs - 1);
    g_assert_cmpint(p->values[p->output].last, ==, (int32_t)p->n_instrs);
    for (size_t i = 0; i < p->n_instrs; i++)
        g_assert_nonnull(p->instrs[i].entry);
    g_assert_cmpuint(p->n_states, ==, 2);
    g_assert_cmpuint(p->state_block_bytes[1], ==, 2 * 4 * 4 * 64);
    g_assert_cmpstr(p->states[0].dtype, ==, "f32/1");
}

static void two_plans_agree(void)
{
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);
    g_autoptr(DavitPlan) a = test_model_plan(m);
    g_autoptr(DavitPlan) b = test_model_plan(m);

    g_assert_cmpuint(a->n_slots, ==, b->n_slots);
    for (size_t i = 0; i < a->n_slots; i++) {
        g_assert_cmpstr(a->slots[i].id, ==, b->slots[i].id);
        g_assert_true(a->slots[i].layout == b->slots[i].layout);
        g_assert_cmpint(a->slots[i].access, ==, b->slots[i].access);
    }
    for (size_t i = 0; i < a->program->n_instrs; i++)
        g_assert_true(a->program->instrs[i].entry == b->program->instrs[i].entry);
}

/* ---- findings ---- */

static void all_findings_come_together(void)
{
    g_autofree TestTensor *t = copy_tiny(1);
    g_autoptr(TestModel) m = NULL;
    const DavitRecord *r;

    find_tensor(t, "model.layers.1.self_attn.k_proj.weight")->name =
        "model.layers.1.self_attn.k_projx.weight";
    find_tensor(t, "model.layers.0.mlp.up_proj.weight")->shape[0] = 5;
    t[test_tiny_count] = (TestTensor){"model.layers.0.self_attn.o_bias", "F32", 1, {4}};
    m = test_model_new(test_tiny_config, t, test_tiny_count + 1);
    g_assert_null(test_model_plan(m));

    r = test_find(m, "tensor-missing", "model.layers.1.self_attn.k_proj.weight");
    g_assert_nonnull(r);
    g_assert_nonnull(strstr(r->hint, "model.layers.1.self_attn.qkv_proj"));
    r = test_find(m, "tensor-unexpected", "model.layers.1.self_attn.k_projx.weight");
    g_assert_nonnull(r);
    g_assert_nonnull(strstr(r->hint, "model.layers.1.self_attn.k_proj.weight"));
    r = test_find(m, "shape-mismatch", "model.layers.0.mlp.up_proj.weight");
    g_assert_nonnull(r);
    g_assert_cmpstr(r->expected, ==, "[6, 4] (I,H)");
    g_assert_cmpstr(r->found, ==, "[5, 4]");
    g_assert_nonnull(
        test_find(m, "tensor-unexpected", "model.layers.0.self_attn.o_bias"));
}

static void rules_skip_and_say_so(void)
{
    static const TestTensor extra[] = {
        {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", 1, {1}},
        {"model.layers.1.self_attn.rotary_emb.inv_freq", "F32", 1, {1}},
        {"vision_tower.blocks.0.weight", "F32", 2, {2, 2}},
        {"model.layers.2.mlp.up_proj.weight", "F32", 2, {2, 2}},
        {"adapter.extra", "F32", 1, {1}},
    };
    static const char *const ignore[] = {"adapter.*", NULL};
    g_autofree TestTensor *t = copy_tiny(G_N_ELEMENTS(extra));
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan = NULL;
    const DavitRecord *r;

    memcpy(t + test_tiny_count, extra, sizeof extra);
    m = test_model_new(test_tiny_config, t, test_tiny_count + G_N_ELEMENTS(extra));
    m->options.ignore = ignore;
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    r = test_find(m, "ignored-by-rule", "*.rotary_emb.inv_freq");
    g_assert_nonnull(r);
    g_assert_true(g_str_has_prefix(r->found, "2 tensors, 8 bytes"));
    g_assert_nonnull(test_find(m, "ignored-by-rule", "vision_tower.*"));
    g_assert_nonnull(
        test_find(m, "ignored-by-rule", "model.layers.2.mlp.up_proj.weight"));
    g_assert_nonnull(test_find(m, "ignored-by-rule", "adapter.*"));
}

/* Plan of the tiny model, tensors of layers 2 and 3 added, with @more in its config. */
static const DavitRecord *plan_past_last(TestModel **m, const char *more)
{
    g_autofree TestTensor *t = copy_tiny(2);
    g_autofree char *config = test_config_with(more);
    g_autoptr(DavitPlan) plan = NULL;

    t[test_tiny_count] =
        (TestTensor){"model.layers.2.mlp.up_proj.weight", "F32", 2, {2, 2}};
    t[test_tiny_count + 1] =
        (TestTensor){"model.layers.3.mlp.up_proj.weight", "F32", 2, {2, 2}};
    *m = test_model_new(config, t, test_tiny_count + 2);
    plan = test_model_plan(*m);
    g_assert_nonnull(plan);
    return test_find(*m, "ignored-by-rule", "model.layers.2.mlp.up_proj.weight");
}

static void layers_past_the_last_warn(void)
{
    static const struct {
        const char *more;
        DavitSeverity severity;
    } cases[] = {
        {"", DAVIT_WARNING},
        {",\"num_nextn_predict_layers\":2", DAVIT_NOTE},
        {",\"num_nextn_predict_layers\":1", DAVIT_WARNING}, /* and one more is there */
        {",\"num_nextn_predict_layers\":null", DAVIT_WARNING},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(TestModel) m = NULL;
        const DavitRecord *r = plan_past_last(&m, cases[i].more);

        g_assert_nonnull(r);
        g_assert_cmpint(r->severity, ==, cases[i].severity);
        if (cases[i].severity == DAVIT_NOTE)
            continue;
        g_assert_cmpstr(r->expected, ==, "2 layers, as configured");
        g_assert_true(g_str_has_prefix(r->found, "4 layers; past the last: 2 tensors, "));
    }
}

static void stale_quantization_block_warns(void)
{
    g_autofree char *config =
        test_config_with(",\"quantization_config\":{\"quant_method\":\"awq\"}");
    g_autoptr(TestModel) m = test_model_new(config, test_tiny, test_tiny_count);
    g_autoptr(DavitPlan) plan = test_model_plan(m);
    const DavitRecord *r =
        test_find(m, "config-unsupported", "config.json: quantization_config");

    g_assert_nonnull(plan);
    g_assert_nonnull(r);
    g_assert_cmpint(r->severity, ==, DAVIT_WARNING);
    g_assert_cmpstr(r->found, ==, "quant_method awq");
}

static void quantization_block_is_no_news_beside_its_tensors(void)
{
    g_autofree TestTensor *t = copy_tiny(1);
    g_autofree char *config =
        test_config_with(",\"quantization_config\":{\"quant_method\":\"gptq\"}");
    g_autoptr(TestModel) m = NULL;

    find_tensor(t, "model.layers.0.self_attn.q_proj.weight")->name =
        "model.layers.0.self_attn.q_proj.qweight";
    t[test_tiny_count] =
        (TestTensor){"model.layers.0.self_attn.q_proj.scales", "F32", 2, {4, 4}};
    m = test_model_new(config, t, test_tiny_count + 1);
    g_assert_null(test_model_plan(m));
    g_assert_null(test_find(m, "config-unsupported", "config.json: quantization_config"));
}

static void companions_of_an_unknown_layout_are_named(void)
{
    g_autofree TestTensor *t = copy_tiny(3);
    g_autoptr(TestModel) m = NULL;
    const DavitRecord *r;

    find_tensor(t, "model.layers.0.self_attn.q_proj.weight")->name =
        "model.layers.0.self_attn.q_proj.qweight";
    t[test_tiny_count] =
        (TestTensor){"model.layers.0.self_attn.q_proj.scales", "F32", 2, {4, 4}};
    m = test_model_new(test_tiny_config, t, test_tiny_count + 1);
    g_assert_null(test_model_plan(m));
    r = test_find(m, "quant-unknown", "model.layers.0.self_attn.q_proj");
    g_assert_nonnull(r);
    g_assert_null(test_find(m, "tensor-unexpected", NULL));
    g_assert_null(test_find(m, "tensor-missing", NULL));
}

static void bias_is_a_module_of_its_own(void)
{
    g_autofree TestTensor *t = copy_tiny(1);
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan = NULL;
    const DavitSlot *bias;

    t[test_tiny_count] =
        (TestTensor){"model.layers.0.self_attn.q_proj.bias", "F32", 1, {4}};
    m = test_model_new(test_tiny_config, t, test_tiny_count + 1);
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    bias = find_slot(plan, "attn.q.bias", 0);
    g_assert_true(bias->present);
    g_assert_cmpint(bias->access, ==, DAVIT_ACCESS_DECODE);
    g_assert_cmpuint(bias->n_rows, ==, 4);
}

/* ---- prefixes and fused tensors ---- */

/* @prefix instead of "model." on every tensor but the head. */
static void check_prefix(const char *prefix, const char *head)
{
    g_autofree TestTensor *t = copy_tiny(0);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan = NULL;

    for (size_t i = 0; i < test_tiny_count; i++) {
        char *name = strcmp(t[i].name, "lm_head.weight") == 0
                         ? g_strdup(head)
                         : g_strconcat(prefix, t[i].name + strlen("model."), NULL);

        g_ptr_array_add(names, name);
        t[i].name = name;
    }
    m = test_model_new(test_tiny_config, t, test_tiny_count);
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    g_assert_cmpint(find_slot(plan, "head", -1)->tied_to, ==, -1);
}

static void prefixes_are_found(void)
{
    check_prefix("model.language_model.", "lm_head.weight");
    check_prefix("language_model.model.", "language_model.lm_head.weight");
    check_prefix("base_model.model.model.", "base_model.model.lm_head.weight");
    check_prefix("transformer.", "lm_head.weight");
    check_prefix("", "lm_head.weight");
}

static void two_models_in_one_place_are_ambiguous(void)
{
    g_autofree TestTensor *t = copy_tiny(test_tiny_count);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(TestModel) m = NULL;

    for (size_t i = 0; i < test_tiny_count; i++) {
        char *name = g_strconcat("transformer.", t[i].name + strlen("model."), NULL);

        g_ptr_array_add(names, name);
        t[test_tiny_count + i] = t[i];
        t[test_tiny_count + i].name = name;
    }
    m = test_model_new(test_tiny_config, t, 2 * test_tiny_count - 1);
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "ambiguous", "transformer."));
}

/* Layer 0 as one fused tensor @name of shape [a, b]. */
static DavitPlan *plan_fused(TestModel **m, const char *name, uint64_t a, uint64_t b)
{
    g_autofree TestTensor *t = copy_tiny(1);

    find_tensor(t, "model.layers.0.self_attn.q_proj.weight")->name = NULL;
    for (size_t i = 0; i < test_tiny_count; i++) {
        if (t[i].name &&
            (g_str_has_prefix(t[i].name, "model.layers.0.self_attn.k_proj") ||
             g_str_has_prefix(t[i].name, "model.layers.0.self_attn.v_proj")))
            t[i].name = NULL;
    }
    t[test_tiny_count] = (TestTensor){name, "F32", 2, {a, b}};
    *m = test_model_new(test_tiny_config, t, test_tiny_count + 1);
    return test_model_plan(*m);
}

static void fused_rows_are_cut(void)
{
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan =
        plan_fused(&m, "model.layers.0.self_attn.qkv_proj.weight", 12, 4);
    const DavitSlot *v;

    g_assert_nonnull(plan);
    v = find_slot(plan, "attn.v", 0);
    g_assert_cmpuint(v->sources[0].row, ==, 8);
    g_assert_cmpuint(v->sources[0].n_rows, ==, 4);
    g_assert_cmpint(v->access, ==, DAVIT_ACCESS_BORROW);
    g_assert_cmpuint(v->borrowed_bytes, ==, 64);
}

static void fused_rows_left_over_are_refused(void)
{
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan =
        plan_fused(&m, "model.layers.0.self_attn.qkv_proj.weight", 14, 4);
    const DavitRecord *r;

    g_assert_null(plan);
    r = test_find(m, "tensor-unexpected", "model.layers.0.self_attn.qkv_proj");
    g_assert_nonnull(r);
    g_assert_cmpstr(r->found, ==, "rows 12 to 13");
}

static void transposed_rows_are_decoded(void)
{
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan =
        plan_fused(&m, "model.layers.0.attn.c_attn.weight", 4, 12);
    const DavitSlot *k;

    g_assert_nonnull(plan);
    k = find_slot(plan, "attn.k", 0);
    g_assert_cmpuint(k->sources[0].row, ==, 4);
    g_assert_cmpint(k->access, ==, DAVIT_ACCESS_DECODE);
    g_assert_cmpuint(k->value_ops, ==, DAVIT_VALUE_TRANSPOSE);
    g_assert_cmpuint(k->private_bytes, ==, 64);
}

/* ---- tied heads ---- */

typedef struct TieCase {
    const char *flag; /* text of the config's flag, NULL = not given */
    const char *model_type;
    bool head, force_tie, force_untie;
    const char *want; /* "own" "tied" or "refused" */
} TieCase;

static void check_tie(const TieCase *c)
{
    g_autofree TestTensor *t = copy_tiny(0);
    g_autofree char *given =
        c->flag ? g_strdup_printf(",\"tie_word_embeddings\":%s", c->flag) : g_strdup("");
    g_autofree char *config = g_strdup_printf(
        "{\"architectures\":[\"TestForCausalLM\"],\"model_type\":\"%s\",\"vocab_size\":8,"
        "\"hidden_size\":4,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
        "\"intermediate_size\":6%s}",
        c->model_type, given);
    g_autoptr(TestModel) m = NULL;
    g_autoptr(DavitPlan) plan = NULL;

    m = test_model_new(config, t, test_tiny_count - (c->head ? 0 : 1));
    m->options.force_tie = c->force_tie;
    m->options.force_untie = c->force_untie;
    plan = test_model_plan(m);
    if (strcmp(c->want, "refused") == 0) {
        g_assert_null(plan);
        g_assert_nonnull(
            strstr(test_find(m, "tensor-missing", "lm_head.weight")->hint, "--tie"));
        return;
    }
    g_assert_nonnull(plan);
    g_assert_true(find_slot(plan, "head", -1)->present);
    g_assert_cmpint(find_slot(plan, "head", -1)->tied_to >= 0, ==,
                    strcmp(c->want, "tied") == 0);
    if (strcmp(c->want, "tied") == 0)
        g_assert_true(find_slot(plan, "head", -1)->layout ==
                      find_slot(plan, "embed", -1)->layout);
}

static void head_follows_file_flag_and_class(void)
{
    static const TieCase cases[] = {
        {"true", "test", true, false, false, "own"},
        {"false", "test", true, false, false, "own"},
        {NULL, "tied_by_class", true, false, false, "own"},
        {"false", "test", true, true, false, "own"},
        {"true", "test", false, false, false, "tied"},
        {NULL, "tied_by_class", false, false, false, "tied"},
        {"false", "test", false, true, false, "tied"},
        {"false", "tied_by_class", false, false, false, "refused"},
        {NULL, "test", false, false, false, "refused"},
        {"true", "test", false, false, true, "refused"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_tie(&cases[i]);
}

/* ---- modules without an architecture ---- */

static void modules_decode_to_float(void)
{
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);
    g_autoptr(DavitModules) modules =
        davit_modules_find(m->registry, m->checkpoint, m->settings, 0, m->report);
    float values[24] = {1};

    g_assert_cmpuint(modules->len, ==, test_tiny_count);
    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *module = &modules->at[i];

        if (strcmp(module->name, "model.layers.0.mlp.up_proj") != 0)
            continue;
        g_assert_cmpuint(module->desc->n_rows, ==, 6);
        g_assert_cmpint(
            davit_module_decode(module, m->checkpoint, 0, 0, 6, values, m->report), ==,
            DAVIT_OK);
        g_assert_cmpfloat(values[0], ==, 0);
        g_assert_cmpint(
            davit_module_decode(module, m->checkpoint, 0, 5, 2, values, m->report), ==,
            DAVIT_E_USAGE);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/whole_plan", whole_plan);
    g_test_add_func("/plan/values_live_from_first_to_last_op",
                    values_live_from_first_to_last_op);
    g_test_add_func("/plan/two_plans_agree", two_plans_agree);
    g_test_add_func("/plan/all_findings_come_together", all_findings_come_together);
    g_test_add_func("/plan/rules_skip_and_say_so", rules_skip_and_say_so);
    g_test_add_func("/plan/companions_of_an_unknown_layout_are_named",
                    companions_of_an_unknown_layout_are_named);
    g_test_add_func("/plan/bias_is_a_module_of_its_own", bias_is_a_module_of_its_own);
    g_test_add_func("/plan/prefixes_are_found", prefixes_are_found);
    g_test_add_func("/plan/two_models_in_one_place_are_ambiguous",
                    two_models_in_one_place_are_ambiguous);
    g_test_add_func("/plan/fused_rows_are_cut", fused_rows_are_cut);
    g_test_add_func("/plan/fused_rows_left_over_are_refused",
                    fused_rows_left_over_are_refused);
    g_test_add_func("/plan/transposed_rows_are_decoded", transposed_rows_are_decoded);
    g_test_add_func("/plan/head_follows_file_flag_and_class",
                    head_follows_file_flag_and_class);
    g_test_add_func("/plan/layers_past_the_last_warn", layers_past_the_last_warn);
    g_test_add_func("/plan/stale_quantization_block_warns",
                    stale_quantization_block_warns);
    g_test_add_func("/plan/quantization_block_is_no_news_beside_its_tensors",
                    quantization_block_is_no_news_beside_its_tensors);
    g_test_add_func("/plan/modules_decode_to_float", modules_decode_to_float);
    return g_test_run();
}
