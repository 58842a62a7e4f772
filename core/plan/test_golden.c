/* SPDX-License-Identifier: Apache-2.0
 * The committed tiny checkpoints through every shipped plugin: the plan of each, not its
 * numbers (tests/golden has those). */
#include <string.h>

#include "plan/test_model.h"

typedef struct Golden {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitReport *report;
    DavitPlan *plan;
} Golden;

static void golden_clear(Golden *g)
{
    davit_plan_free(g->plan);
    davit_settings_free(g->settings);
    davit_checkpoint_free(g->checkpoint);
    davit_registry_free(g->registry);
    davit_report_free(g->report);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Golden, golden_clear)

static Golden plan_golden(const char *name, const DavitPlanOptions *options)
{
    const DavitRegistryOptions where = {.builtin_dir = DAVIT_PLUGIN_DIR,
                                        .only_paths = true};
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests", "golden", "models", name, NULL);
    Golden g = {.report = davit_report_new()};

    g.registry = davit_registry_open(&where, g.report);
    g.checkpoint = davit_checkpoint_open(g.registry, path, DAVIT_MAP, g.report);
    g_assert_nonnull(g.checkpoint);
    g.settings = davit_settings_open(g.checkpoint, g.report);
    g_assert_nonnull(g.settings);
    g.plan = davit_plan_make(g.registry, g.checkpoint, g.settings, options, g.report);
    for (size_t i = 0; i < davit_report_count(g.report); i++) {
        g_autofree char *text = davit_record_sentence(davit_report_get(g.report, i));

        g_test_message("%s: %s", name, text);
    }
    return g;
}

static const DavitPlanOptions run_f32 = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                         .activations = DAVIT_ACTIVATIONS_F32};

static const DavitSlot *slot_of(const DavitPlan *plan, const char *id, int64_t layer)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (strcmp(plan->slots[i].id, id) == 0 && plan->slots[i].layer == layer)
            return &plan->slots[i];
    }
    return NULL;
}

static void dense_checkpoint_is_borrowed(void)
{
    g_auto(Golden) g = plan_golden("llama", &run_f32);

    g_assert_nonnull(g.plan);
    g_assert_cmpint(slot_of(g.plan, "attn.q", 0)->access, ==, DAVIT_ACCESS_BORROW);
    g_assert_false(slot_of(g.plan, "attn.q", 0)->interleaved);
    g_assert_cmpuint(g.plan->borrowed_bytes, >, 100 * g.plan->private_bytes);
}

static void rotary_order_of_gguf_stays(void)
{
    g_auto(Golden) g = plan_golden("gguf_llama/model.gguf", &run_f32);

    g_assert_nonnull(g.plan);
    g_assert_true(slot_of(g.plan, "attn.q", 0)->interleaved);
    g_assert_true(slot_of(g.plan, "attn.k", 1)->interleaved);
    g_assert_false(slot_of(g.plan, "attn.v", 0)->interleaved);
    g_assert_cmpint(slot_of(g.plan, "attn.q", 0)->access, ==, DAVIT_ACCESS_BORROW);
    g_assert_cmpuint(slot_of(g.plan, "attn.q", 0)->perm_heads, ==, 0);
}

static void blocks_are_used_in_place(void)
{
    const DavitPlanOptions stored = {.purposes = DAVIT_RUN,
                                     .layout = DAVIT_LAYOUT_STORED};
    g_auto(Golden) g = plan_golden("gguf_q4_k_m/model.gguf", &stored);

    g_assert_nonnull(g.plan);
    g_assert_cmpstr(slot_of(g.plan, "attn.q", 0)->layout, ==, "q4_k/1");
    g_assert_cmpstr(slot_of(g.plan, "ffn.down", 0)->layout, ==, "q6_k/1");
    g_assert_cmpint(slot_of(g.plan, "ffn.down", 0)->access, ==, DAVIT_ACCESS_BORROW);
}

/* Experts one by one or stacked: the same slots, the same bytes. */
static void stacked_experts_equal_single_ones(void)
{
    g_auto(Golden) one = plan_golden("qwen3_moe", &run_f32);
    g_auto(Golden) all = plan_golden("qwen3_moe_stacked", &run_f32);
    const DavitSlot *a, *b;

    g_assert_nonnull(one.plan);
    g_assert_nonnull(all.plan);
    a = slot_of(one.plan, "moe.up", 0);
    b = slot_of(all.plan, "moe.up", 0);
    g_assert_cmpuint(a->n_sources, ==, a->n_experts);
    g_assert_cmpuint(b->n_sources, ==, 1);
    g_assert_cmpuint(b->sources[0].row, ==, b->n_rows); /* the second half */
    g_assert_cmpuint(a->borrowed_bytes, ==, b->borrowed_bytes);
    g_assert_cmpuint(one.plan->borrowed_bytes, ==, all.plan->borrowed_bytes);
}

static void wrapper_is_read_through(void)
{
    g_auto(Golden) plain = plan_golden("gemma3", &run_f32);
    g_auto(Golden) wrapped = plan_golden("gemma3_wrapped", &run_f32);
    bool told = false;

    g_assert_nonnull(plain.plan);
    g_assert_nonnull(wrapped.plan);
    g_assert_cmpuint(plain.plan->borrowed_bytes, ==, wrapped.plan->borrowed_bytes);
    g_assert_cmpuint(slot_of(wrapped.plan, "norm", -1)->value_ops, ==, DAVIT_VALUE_ADD1);
    for (size_t i = 0; i < davit_report_count(wrapped.report); i++)
        told |= davit_report_get(wrapped.report, i)->code == DAVIT_R_IGNORED_BY_RULE;
    g_assert_true(told);
}

static void unknown_architecture_says_what_was_asked(void)
{
    g_auto(Golden) g = plan_golden("stablelm", &run_f32);
    const DavitRecord *r = davit_report_first_error(g.report, DAVIT_RUN);

    g_assert_null(g.plan);
    g_assert_cmpuint(r->code, ==, DAVIT_R_ALL_DECLINED);
    g_assert_nonnull(strstr(r->found, "StableLmForCausalLM"));
}

static void why_has_one_note_per_architecture(void)
{
    g_auto(Golden) g = plan_golden("llama", &run_f32);
    g_autoptr(DavitReport) why = davit_report_new();
    size_t n_chosen = 0;

    davit_plan_explain_archs(g.registry, g.settings, why);
    g_assert_cmpuint(davit_report_count(why), ==,
                     davit_registry_kind(g.registry, DAVIT_KIND_ID_ARCH)->len);
    for (size_t i = 0; i < davit_report_count(why); i++)
        n_chosen += strstr(davit_report_get(why, i)->message, "is chosen") != NULL;
    g_assert_cmpuint(n_chosen, ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/golden/dense_checkpoint_is_borrowed", dense_checkpoint_is_borrowed);
    g_test_add_func("/golden/rotary_order_of_gguf_stays", rotary_order_of_gguf_stays);
    g_test_add_func("/golden/blocks_are_used_in_place", blocks_are_used_in_place);
    g_test_add_func("/golden/stacked_experts_equal_single_ones",
                    stacked_experts_equal_single_ones);
    g_test_add_func("/golden/wrapper_is_read_through", wrapper_is_read_through);
    g_test_add_func("/golden/unknown_architecture_says_what_was_asked",
                    unknown_architecture_says_what_was_asked);
    g_test_add_func("/golden/why_has_one_note_per_architecture",
                    why_has_one_note_per_architecture);
    return g_test_run();
}
