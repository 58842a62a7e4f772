/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plan/test_model.h"

/* A component of up to four entries and two packs that tests fill in. */
typedef struct TestKernels {
    davit_kernel_entry entry[4];
    const davit_kernel_entry *entries[5];
    const davit_pack *packs[3];
    davit_kernels_iface iface;
} TestKernels;

static void kernels_init(TestKernels *k)
{
    size_t n = 0;

    while (n < 4 && k->entry[n].op) {
        k->entries[n] = &k->entry[n];
        n++;
    }
    k->iface =
        (davit_kernels_iface){.struct_size = DAVIT_END(davit_kernels_iface, state_size),
                              .device = "cpu",
                              .entries = k->entries,
                              .packs = k->packs};
}

static const DavitInstr *first_op(const DavitPlan *plan, const char *op)
{
    for (size_t i = 0; i < plan->program->n_instrs; i++) {
        if (strcmp(plan->program->instrs[i].op, op) == 0)
            return &plan->program->instrs[i];
    }
    g_assert_not_reached();
}

/* Name of the entry that computes the first @op when @k's entries are there too. */
static char *chosen(TestModel *m, TestKernels *k, const char *op)
{
    g_autoptr(DavitPlan) plan = NULL;

    kernels_init(k);
    test_model_kernels(m, "test.more", &k->iface, true);
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    return g_strdup(first_op(plan, op)->entry->name);
}

static TestModel *tiny(void)
{
    return test_model_new(test_tiny_config, test_tiny, test_tiny_count);
}

static void higher_score_wins_and_order_breaks_ties(void)
{
    TestKernels k = {.entry = {TEST_ENTRY(DAVIT_OP_RMSNORM, "same", NULL, 100),
                               TEST_ENTRY(DAVIT_OP_LINEAR, "low", "f32/1|bf16/1", 99),
                               TEST_ENTRY(DAVIT_OP_GATHER_ROWS, "high", NULL, 101)}};
    g_autoptr(TestModel) m = tiny();
    g_autofree char *norm = chosen(m, &k, DAVIT_OP_RMSNORM);
    g_autoptr(DavitPlan) plan = test_model_plan(m);

    g_assert_cmpstr(norm, ==, "rmsnorm");
    g_assert_cmpstr(first_op(plan, DAVIT_OP_LINEAR)->entry->name, ==, "linear");
    g_assert_cmpstr(first_op(plan, DAVIT_OP_GATHER_ROWS)->entry->name, ==, "high");
    g_assert_cmpstr(first_op(plan, DAVIT_OP_GATHER_ROWS)->kernels->id, ==, "test.more");
}

static void entries_that_may_not_be_are_passed_over(void)
{
    TestKernels k = {.entry = {TEST_ENTRY(DAVIT_OP_RMSNORM, "other cpu", NULL, 900),
                               TEST_ENTRY(DAVIT_OP_RMSNORM, "int8", NULL, 800),
                               TEST_ENTRY(DAVIT_OP_RMSNORM, "varying", NULL, 700)}};
    g_autoptr(TestModel) m = tiny();
    g_autofree char *name = NULL;

    k.entry[0].cpu = 1ull << 63;
    k.entry[1].flags = DAVIT_ENTRY_INT8;
    k.entry[2].flags = DAVIT_ENTRY_NOT_INVARIANT;
    name = chosen(m, &k, DAVIT_OP_RMSNORM);
    g_assert_cmpstr(name, ==, "rmsnorm");

    m->options.allow_not_invariant = true;
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(first_op(plan, DAVIT_OP_RMSNORM)->entry->name, ==, "varying");
    }
    m->options.activations = DAVIT_ACTIVATIONS_AUTO;
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(first_op(plan, DAVIT_OP_RMSNORM)->entry->name, ==, "int8");
    }
    k.entry[1].score = 1;
    m->options.activations = DAVIT_ACTIVATIONS_INT8;
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(first_op(plan, DAVIT_OP_RMSNORM)->entry->name, ==, "int8");
    }
}

static void unknown_attributes_are_not_offered(void)
{
    TestKernels k = {.entry = {TEST_ENTRY(DAVIT_OP_ATTN, "old attn", NULL, 900),
                               TEST_ENTRY(DAVIT_OP_KV_APPEND, "old append", NULL, 900)}};
    g_autoptr(TestModel) m = tiny();

    k.entry[0].attr_size = DAVIT_END(davit_attn_attr, window); /* scale lies beyond */
    kernels_init(&k);
    k.iface.state_size = test_state_size;
    test_model_kernels(m, "test.more", &k.iface, true);
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(first_op(plan, DAVIT_OP_ATTN)->entry->name, ==, "attn");
        g_assert_cmpstr(first_op(plan, DAVIT_OP_KV_APPEND)->entry->name, ==, "kv_append");
    }
    k.entry[0].attr_size = sizeof(davit_attn_attr);
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(first_op(plan, DAVIT_OP_ATTN)->entry->name, ==, "old attn");
    }
}

/* ---- states ---- */

static void ops_on_a_state_come_from_one_component(void)
{
    TestKernels k = {.entry = {TEST_ENTRY(DAVIT_OP_ATTN, "fast attn", NULL, 900)}};
    g_autoptr(TestModel) m = tiny();
    g_autofree char *name = NULL;

    kernels_init(&k);
    k.iface.state_size = test_state_size;
    name = chosen(m, &k, DAVIT_OP_ATTN);
    g_assert_cmpstr(name, ==, "attn"); /* test.more has no kv_append */
}

static uint64_t f32_only(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                         const davit_sink *sink)
{
    return strcmp(spec->dtype, "f32/1") == 0
               ? test_state_size(self, spec, block_tokens, sink)
               : 0;
}

static void state_dtype_follows_activations(void)
{
    davit_kernels_iface narrow = test_kernels;
    g_autoptr(TestModel) m = tiny();

    narrow.state_size = f32_only;
    m->options.activations = DAVIT_ACTIVATIONS_AUTO;
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(plan->program->states[0].dtype, ==, "f16/1");
        g_assert_cmpuint(plan->program->state_block_bytes[0], ==, 2 * 4 * 64 * 2);
    }
    test_model_kernels(m, "test.narrow", &narrow, false);
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpstr(plan->program->states[0].dtype, ==, "f32/1");
    }
    m->options.kv_dtype = "f16/1";
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "op-missing", "state"));
}

/* ---- packs ---- */

static uint64_t block_bytes(void *self, uint64_t n_cols, const uint64_t params[8])
{
    (void)self;
    (void)params;
    return n_cols == 6 ? 0 : n_cols * 4 * 4; /* no block of 6 columns */
}

static void pack_nothing(void *self, const davit_weight *weight, const davit_segment *src,
                         const davit_quant_out *decoded, uint64_t n_rows, uint8_t *dst)
{
    (void)self;
    (void)weight;
    (void)src;
    (void)decoded;
    (void)n_rows;
    (void)dst;
}

static const davit_pack pack4 = {.struct_size = DAVIT_END(davit_pack, pack),
                                 .layout = "test.x4/1",
                                 .from = "f32/1",
                                 .forms = DAVIT_FORM_F32,
                                 .row_block = 4,
                                 .block_bytes = block_bytes,
                                 .pack = pack_nothing};

static const DavitSlot *slot_of(const DavitPlan *plan, const char *id)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (strcmp(plan->slots[i].id, id) == 0)
            return &plan->slots[i];
    }
    g_assert_not_reached();
}

static void packs_are_taken_where_they_gain(void)
{
    TestKernels k = {
        .entry = {TEST_ENTRY(DAVIT_OP_LINEAR, "packed linear", "test.x4/1", 500)},
        .packs = {&pack4}};
    g_autoptr(TestModel) m = tiny();
    g_autofree char *name = chosen(m, &k, DAVIT_OP_LINEAR);
    g_autoptr(DavitPlan) plan = test_model_plan(m);

    g_assert_cmpstr(name, ==, "packed linear");
    g_assert_cmpint(slot_of(plan, "attn.q")->access, ==, DAVIT_ACCESS_PACK);
    g_assert_cmpstr(slot_of(plan, "attn.q")->layout, ==, "test.x4/1");
    g_assert_cmpuint(slot_of(plan, "attn.q")->private_bytes, ==, 64);
    g_assert_cmpuint(slot_of(plan, "attn.q")->read_bytes, ==, 64);
    g_assert_cmpuint(slot_of(plan, "ffn.up")->private_bytes, ==,
                     128); /* 6 rows: two blocks */
    g_assert_cmpint(slot_of(plan, "ffn.down")->access, ==, DAVIT_ACCESS_BORROW);
    g_assert_cmpint(slot_of(plan, "embed")->access, ==, DAVIT_ACCESS_BORROW);

    m->options.layout = DAVIT_LAYOUT_STORED;
    {
        g_autoptr(DavitPlan) stored = test_model_plan(m);
        g_assert_cmpuint(stored->borrowed_bytes, ==, 2 * 128 + 2 * (3 * 64 + 2 * 48));
    }
    k.entry[0].score = 50; /* no gain */
    m->options.layout = DAVIT_LAYOUT_AUTO;
    {
        g_autoptr(DavitPlan) no_gain = test_model_plan(m);
        g_assert_cmpint(slot_of(no_gain, "attn.q")->access, ==, DAVIT_ACCESS_BORROW);
    }
    m->options.layout = DAVIT_LAYOUT_PACKED;
    {
        g_autoptr(DavitPlan) packed = test_model_plan(m);
        g_assert_cmpint(slot_of(packed, "attn.q")->access, ==, DAVIT_ACCESS_PACK);
    }
}

static void lossy_packs_are_never_chosen(void)
{
    davit_pack lossy = pack4;
    TestKernels k = {
        .entry = {TEST_ENTRY(DAVIT_OP_LINEAR, "packed linear", "test.x4/1", 500)},
        .packs = {&lossy}};
    g_autoptr(TestModel) m = tiny();
    g_autofree char *name = NULL;

    lossy.lossy = 1;
    m->options.layout = DAVIT_LAYOUT_PACKED;
    name = chosen(m, &k, DAVIT_OP_LINEAR);
    g_assert_cmpstr(name, ==, "linear");
}

/* A tied head and its embedding are one weight with two users. */
static void tied_weight_has_a_layout_for_both_users(void)
{
    static const char *const config =
        "{\"architectures\":[\"TestForCausalLM\"],\"model_type\":\"test\",\"vocab_size\":8,"
        "\"hidden_size\":4,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
        "\"intermediate_size\":6,\"tie_word_embeddings\":true}";
    TestKernels k = {
        .entry = {TEST_ENTRY(DAVIT_OP_LINEAR, "packed linear", "test.x4/1", 500)},
        .packs = {&pack4}};
    g_autoptr(TestModel) m = test_model_new(config, test_tiny, test_tiny_count - 1);

    kernels_init(&k);
    test_model_kernels(m, "test.more", &k.iface, true);
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpint(slot_of(plan, "embed")->access, ==, DAVIT_ACCESS_BORROW);
        g_assert_cmpstr(slot_of(plan, "head")->layout, ==, "f32/1");
    }
    k.entry[1] =
        (davit_kernel_entry)TEST_ENTRY(DAVIT_OP_EMBED, "packed embed", "test.x4/1", 100);
    kernels_init(&k);
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_cmpint(slot_of(plan, "embed")->access, ==, DAVIT_ACCESS_PACK);
        g_assert_true(slot_of(plan, "head")->layout == slot_of(plan, "embed")->layout);
        g_assert_cmpuint(slot_of(plan, "head")->private_bytes, ==, 0);
    }
}

/* ---- devices ---- */

static int32_t device_info(void *self, uint64_t index, davit_device_info *out,
                           const davit_sink *sink)
{
    (void)self;
    (void)index;
    (void)sink;
    out->align = 256;
    return DAVIT_OK;
}

static uint64_t device_count(void *self)
{
    (void)self;
    return 2;
}

static void device_gets_copies_at_its_alignment(void)
{
    static const davit_device_iface device = {
        .struct_size = DAVIT_END(davit_device_iface, wait),
        .count = device_count,
        .info = device_info};
    davit_kernels_iface iface = test_kernels;
    g_autoptr(TestModel) m = tiny();
    g_autoptr(DavitPlan) plan = NULL;

    iface.device = "mem";
    iface.device_iface = &device;
    m->options.device = "mem:2";
    test_model_kernels(m, "test.mem", &iface, false);
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "device-missing", "mem:2"));
    m->options.device = "mem:1";
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    g_assert_cmpstr(plan->device, ==, "mem:1");
    g_assert_cmpuint(plan->devices[1].index, ==, 1);
    g_assert_cmpstr(plan->devices[1].kernels->id, ==, "test.mem");
    g_assert_cmpuint(plan->devices[1].align, ==, 256);
    g_assert_cmpuint(plan->borrowed_bytes, ==, 0);
    g_assert_cmpint(slot_of(plan, "attn.q")->access, ==, DAVIT_ACCESS_COPY);
    g_assert_cmpuint(slot_of(plan, "attn.q")->private_bytes, ==, 256);
    g_assert_cmpuint(slot_of(plan, "attn.q")->read_bytes, ==, 64);
    g_assert_cmpint(slot_of(plan, "norm")->access, ==, DAVIT_ACCESS_DECODE);
}

static void absent_device_is_refused(void)
{
    g_autoptr(TestModel) m = tiny();

    m->options.device = "mem";
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "device-missing", "mem"));
    m->options.device = NULL;
    test_model_kernels(m, NULL, NULL, false);
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "no-plugins", "kernels"));
}

/* ---- refusals ---- */

static int32_t check_no(void *self, const davit_call *call, const davit_sink *sink)
{
    const davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, url),
                              .code = DAVIT_R_OP_MISSING,
                              .subject = "width",
                              .found = "4",
                              .message = "this kernel takes even wider rows"};

    (void)self;
    g_assert_cmpuint(call->in[0].width, ==, 4);
    sink->refuse(sink->ctx, &no);
    return DAVIT_E_UNSUPPORTED;
}

static void missing_op_names_candidates_and_reasons(void)
{
    TestKernels k = {.entry = {TEST_ENTRY(DAVIT_OP_LINEAR, "f16 linear", "f16/1", 100),
                               TEST_ENTRY(DAVIT_OP_RMSNORM, "wide norm", NULL, 100),
                               TEST_ENTRY(DAVIT_OP_EMBED, "embed", "f32/1", 100)}};
    g_autoptr(TestModel) m = tiny();
    const DavitRecord *r;

    k.entry[1].check = check_no;
    kernels_init(&k);
    test_model_kernels(m, "test.poor", &k.iface, false);
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "op-missing", "state"));

    k.iface.state_size = test_state_size;
    k.entry[3] = (davit_kernel_entry)TEST_ENTRY(DAVIT_OP_KV_APPEND, "append", NULL, 100);
    kernels_init(&k);
    k.iface.state_size = test_state_size;
    test_model_kernels(m, "test.kv", &test_kernels, false);
    {
        static const davit_kernel_entry only_kv[] = {
            TEST_ENTRY(DAVIT_OP_KV_APPEND, "append", NULL, 100),
            TEST_ENTRY(DAVIT_OP_ATTN, "attn", NULL, 100),
        };
        static const davit_kernel_entry *const list[] = {&only_kv[0], &only_kv[1], NULL};
        davit_kernels_iface kv = {.struct_size =
                                      DAVIT_END(davit_kernels_iface, state_size),
                                  .device = "cpu",
                                  .entries = list,
                                  .state_size = test_state_size};

        test_model_kernels(m, "test.kv", &kv, false);
        test_model_kernels(m, "test.poor", &k.iface, true);
        g_assert_null(test_model_plan(m));
    }
    r = test_find(m, "op-missing", DAVIT_OP_LINEAR);
    g_assert_nonnull(r);
    g_assert_cmpstr(r->found, ==, "f32/1");
    r = test_find(m, "op-missing", "f16 linear");
    g_assert_cmpstr(r->message, ==, "takes f16/1, not f32/1");
    g_assert_cmpstr(r->who, ==, "test.poor");
    g_assert_cmpint(r->severity, ==, DAVIT_NOTE);
    r = test_find(m, "op-missing", "wide norm");
    g_assert_cmpstr(r->message, ==, "this kernel takes even wider rows: found 4");
    r = test_find(m, "op-missing", DAVIT_OP_GATHER_ROWS);
    g_assert_cmpstr(r->message, ==, "no kernels component has this op");
    g_assert_null(test_find(m, "op-missing", DAVIT_OP_EMBED));
}

static void declared_only_plans_but_does_not_run(void)
{
    davit_arch_iface declared = test_arch;
    g_autoptr(TestModel) m = tiny();

    declared.build = NULL;
    m->tools.arch.iface = &declared;
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(test_find(m, "forward-absent", "test.arch"));
    m->options.purposes = DAVIT_MAP;
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_nonnull(plan);
        g_assert_null(plan->program);
        g_assert_cmpstr(slot_of(plan, "attn.q")->layout, ==, "f32/1");
    }
}

/* Kernels of other layouts are one note, whatever each of them takes. */
static void reasons_of_many_are_one_note(void)
{
    static const davit_kernel_entry entries[] = {
        TEST_ENTRY(DAVIT_OP_LINEAR, "f16 linear", "f16/1", 100),
        TEST_ENTRY(DAVIT_OP_LINEAR, "q8 linear", "q8_0/1|q8_1/1", 100),
        TEST_ENTRY(DAVIT_OP_KV_APPEND, "append", NULL, 100),
        TEST_ENTRY(DAVIT_OP_ATTN, "attn", NULL, 100),
    };
    static const davit_kernel_entry *const list[] = {&entries[0], &entries[1], &entries[2],
                                                     &entries[3], NULL};
    davit_kernels_iface iface = {.struct_size = DAVIT_END(davit_kernels_iface, state_size),
                                 .device = "cpu",
                                 .entries = list,
                                 .state_size = test_state_size};
    g_autoptr(TestModel) m = tiny();
    const DavitRecord *r;

    test_model_kernels(m, "test.poor", &iface, false);
    g_assert_null(test_model_plan(m));
    r = test_find(m, "op-missing", "2 candidates");
    g_assert_nonnull(r);
    g_assert_cmpstr(r->message, ==, "take other layouts, not f32/1");
    g_assert_cmpstr(r->found, ==, "f16 linear, q8 linear");
    g_assert_null(test_find(m, "op-missing", "f16 linear"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/choose/higher_score_wins_and_order_breaks_ties",
                    higher_score_wins_and_order_breaks_ties);
    g_test_add_func("/choose/entries_that_may_not_be_are_passed_over",
                    entries_that_may_not_be_are_passed_over);
    g_test_add_func("/choose/unknown_attributes_are_not_offered",
                    unknown_attributes_are_not_offered);
    g_test_add_func("/choose/ops_on_a_state_come_from_one_component",
                    ops_on_a_state_come_from_one_component);
    g_test_add_func("/choose/state_dtype_follows_activations",
                    state_dtype_follows_activations);
    g_test_add_func("/choose/packs_are_taken_where_they_gain",
                    packs_are_taken_where_they_gain);
    g_test_add_func("/choose/lossy_packs_are_never_chosen", lossy_packs_are_never_chosen);
    g_test_add_func("/choose/tied_weight_has_a_layout_for_both_users",
                    tied_weight_has_a_layout_for_both_users);
    g_test_add_func("/choose/device_gets_copies_at_its_alignment",
                    device_gets_copies_at_its_alignment);
    g_test_add_func("/choose/absent_device_is_refused", absent_device_is_refused);
    g_test_add_func("/choose/missing_op_names_candidates_and_reasons",
                    missing_op_names_candidates_and_reasons);
    g_test_add_func("/choose/declared_only_plans_but_does_not_run",
                    declared_only_plans_but_does_not_run);
    g_test_add_func("/choose/reasons_of_many_are_one_note", reasons_of_many_are_one_note);
    return g_test_run();
}
