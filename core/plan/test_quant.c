/* SPDX-License-Identifier: Apache-2.0
 * Slots over a quantised layout of the tests' own: blocks of four rows, one byte a value.
 */
#include <stdio.h>
#include <string.h>

#include "plan/test_kv_scale.h"
#include "plan/test_model.h"

/* What the fake plugin answers; each test sets it. */
static struct {
    uint64_t row_unit, row_bytes, n_rows;
    uint32_t verdict;
    uint64_t flags, purposes;
    davit_quant_codes codes; /* bits > 0: offers CODES */
    int32_t status;
    unsigned n_claims, n_checks;
} fake;

static int32_t fake_claim(void *self, const davit_quant_module *signature,
                          davit_verdict *out, const davit_sink *sink)
{
    const davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, url),
                              .code = DAVIT_R_QUANT_UNKNOWN,
                              .subject = "fake",
                              .found = "fake layout",
                              .message = "known, not read"};

    (void)self;
    fake.n_claims++;
    g_assert_null(signature->name);
    if (strcmp(signature->parts[0]->dtype, "u8/1") != 0)
        return DAVIT_OK;
    g_assert_null(signature->parts[0]->info);
    out->verdict = fake.verdict;
    out->score = 900;
    out->purposes = fake.purposes;
    out->flags = fake.flags;
    if (fake.verdict == DAVIT_REFUSE)
        sink->refuse(sink->ctx, &no);
    return DAVIT_OK;
}

static int32_t fake_check(void *self, const davit_quant_module *module,
                          davit_quant_desc *out, const davit_sink *sink)
{
    const davit_tensor_info *info = module->parts[0]->info;

    (void)self;
    (void)sink;
    fake.n_checks++;
    out->scheme = "test/1";
    out->layout = "test.u8/1";
    out->n_experts = 1;
    out->n_rows = fake.n_rows ? fake.n_rows : info->shape[0];
    out->n_cols = info->shape[1];
    out->row_unit = fake.row_unit;
    out->col_unit = 1;
    out->parts[0] = (davit_quant_part){.role = "weight", .row_bytes = fake.row_bytes};
    out->n_parts = 1;
    out->forms = DAVIT_FORM_F32 | (fake.codes.bits ? DAVIT_FORM_CODES : 0);
    out->codes = fake.codes;
    return fake.status;
}

static void fake_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    (void)self;
    (void)tile;
    (void)out;
}

static const davit_quant_iface fake_iface = {.struct_size =
                                                 DAVIT_END(davit_quant_iface, decode),
                                             .claim = fake_claim,
                                             .check = fake_check,
                                             .decode = fake_decode};

static DavitComponent fake_component = {.id = (char *)(uintptr_t) "test.quant",
                                        .capability = (char *)(uintptr_t) "layout=test"};

/* The same plugin, known by parts: by suffix, which no module here has, and by dtype. */
static DavitComponent not_asked = {.id = (char *)(uintptr_t) "test.quant",
                                   .capability = (char *)(uintptr_t) "part=qweight|f8/1"};
static DavitComponent by_dtype = {.id = (char *)(uintptr_t) "test.quant",
                                  .capability =
                                      (char *)(uintptr_t) "layout=test;part=qweight|u8/1"};

/* The tiny decoder with a fused u8 qkv of @n_rows in layer 0. */
static TestModel *fused(uint64_t n_rows)
{
    g_autofree TestTensor *t = g_new0(TestTensor, test_tiny_count + 1);
    const DavitTool tool = {.component = &fake_component, .iface = &fake_iface};
    TestModel *m;

    memcpy(t, test_tiny, test_tiny_count * sizeof *t);
    for (size_t i = 0; i < test_tiny_count; i++) {
        if (strstr(t[i].name, "layers.0.self_attn."))
            t[i].name = NULL;
    }
    t[test_tiny_count] =
        (TestTensor){"model.layers.0.self_attn.qkv_proj.weight", "U8", 2, {n_rows, 4}};
    memset(&fake, 0, sizeof fake);
    fake.row_unit = 4;
    fake.row_bytes = 4;
    fake.verdict = DAVIT_ACCEPT;
    fake.purposes = DAVIT_INSPECT | DAVIT_MAP | DAVIT_RUN;
    m = test_model_new(test_tiny_config, t, test_tiny_count + 1);
    g_array_append_val(m->tools.quants, tool);
    return m;
}

/* Kernels that take the fake layout too. */
static void add_linear(TestModel *m)
{
    static const davit_kernel_entry linear =
        TEST_ENTRY(DAVIT_OP_LINEAR, "u8 linear", "test.u8/1|test.p2/1", 200);
    static const davit_kernel_entry *const entries[] = {&linear, NULL};
    static const davit_kernels_iface iface = {
        .struct_size = DAVIT_END(davit_kernels_iface, state_size),
        .device = "cpu",
        .entries = entries};

    test_model_kernels(m, "test.u8", &iface, true);
}

static const DavitSlot *slot_of(const DavitPlan *plan, const char *id)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (strcmp(plan->slots[i].id, id) == 0 && plan->slots[i].layer == 0)
            return &plan->slots[i];
    }
    g_assert_not_reached();
}

/* The fused model with the plugin as @component, planned: how often was it asked? */
static unsigned claims_of(DavitComponent *component, bool *out_planned)
{
    g_autoptr(TestModel) m = fused(12);
    g_autoptr(DavitPlan) plan = NULL;
    g_array_index(m->tools.quants, DavitTool, m->tools.quants->len - 1).component = component;
    add_linear(m);
    plan = test_model_plan(m);
    *out_planned = plan != NULL;
    return fake.n_claims;
}

/* A capability that names parts: modules without any of them are nobody's question. */
static void only_named_parts_are_asked_about(void)
{
    bool planned;

    g_assert_cmpuint(claims_of(&fake_component, &planned), >, 1); /* of every signature */
    g_assert_true(planned);
    g_assert_cmpuint(claims_of(&by_dtype, &planned), ==, 1); /* of the one with U8 */
    g_assert_true(planned);
    g_assert_cmpuint(claims_of(&not_asked, &planned), ==, 0);
    g_assert_false(planned);
}

static void cuts_at_units_are_borrowed(void)
{
    g_autoptr(TestModel) m = fused(12);
    g_autoptr(DavitPlan) plan = NULL;

    add_linear(m);
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    g_assert_cmpint(slot_of(plan, "attn.v")->access, ==, DAVIT_ACCESS_BORROW);
    g_assert_cmpstr(slot_of(plan, "attn.v")->layout, ==, "test.u8/1");
    g_assert_cmpuint(slot_of(plan, "attn.v")->borrowed_bytes, ==, 16);
    g_assert_cmpuint(fake.n_checks, ==, 1); /* three slots, one module */
}

static void cuts_inside_units_are_refused(void)
{
    g_autoptr(TestModel) m = fused(12);
    const DavitRecord *r;

    fake.row_unit = 8;
    g_assert_null(test_model_plan(m));
    r = test_find(m, "quant-params", "model.layers.0.self_attn.qkv_proj");
    g_assert_cmpstr(r->expected, ==, "cuts at multiples of 8 in test.u8/1");
    g_assert_cmpstr(r->found, ==, "0 to 4");
    g_assert_null(test_find(m, "tensor-unexpected", NULL));
}

static void rows_that_cannot_be_pointed_at_are_refused(void)
{
    g_autoptr(TestModel) m = fused(12);

    fake.row_bytes = 0;
    add_linear(m);
    g_assert_null(test_model_plan(m));
    g_assert_nonnull(
        strstr(test_find(m, "op-missing", "attn.q")->message, "cannot be cut"));
}

static uint64_t two_rows(void *self, uint64_t n_cols, const uint64_t params[8])
{
    (void)self;
    (void)params;
    return n_cols * 8;
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

static void strangers_layout_is_packed_from_float(void)
{
    static const davit_pack pack = {.struct_size = DAVIT_END(davit_pack, pack),
                                    .layout = "test.p2/1",
                                    .forms = DAVIT_FORM_F32,
                                    .row_block = 2,
                                    .block_bytes = two_rows,
                                    .pack = pack_nothing};
    static const davit_pack *const packs[] = {&pack, NULL};
    static const davit_kernel_entry *const none[] = {NULL};
    static const davit_kernels_iface iface = {
        .struct_size = DAVIT_END(davit_kernels_iface, state_size),
        .device = "cpu",
        .entries = none,
        .packs = packs};
    g_autoptr(TestModel) m = fused(12);
    g_autoptr(DavitPlan) plan = NULL;

    fake.row_bytes = 0;
    add_linear(m);
    test_model_kernels(m, "test.packs", &iface, true);
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    g_assert_cmpint(slot_of(plan, "attn.k")->access, ==, DAVIT_ACCESS_PACK);
    g_assert_cmpstr(slot_of(plan, "attn.k")->stored_layout, ==, "test.u8/1");
}

static uint64_t two_code_rows(void *self, uint64_t n_cols, const uint64_t params[8])
{
    (void)self;
    g_assert_cmpmem(params, sizeof fake.codes, &fake.codes, sizeof fake.codes);
    return 2 * n_cols + 2;
}

static void strangers_codes_are_packed(void)
{
    static const davit_pack pack = {.struct_size = DAVIT_END(davit_pack, pack),
                                    .layout = "test.p2/1",
                                    .forms = DAVIT_FORM_CODES,
                                    .row_block = 2,
                                    .block_bytes = two_code_rows,
                                    .pack = pack_nothing};
    static const davit_pack *const packs[] = {&pack, NULL};
    static const davit_kernel_entry *const none[] = {NULL};
    static const davit_kernels_iface iface = {
        .struct_size = DAVIT_END(davit_kernels_iface, state_size),
        .device = "cpu",
        .entries = none,
        .packs = packs};
    g_autoptr(TestModel) m = fused(12);
    g_autoptr(DavitPlan) plan = NULL;

    fake.row_bytes = 0;
    fake.codes = (davit_quant_codes){.bits = 8, .scale_rows = 1, .flags = DAVIT_CODES_MAP};
    add_linear(m);
    test_model_kernels(m, "test.packs", &iface, true);
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    g_assert_cmpint(slot_of(plan, "attn.k")->access, ==, DAVIT_ACCESS_PACK);
    g_assert_cmpstr(slot_of(plan, "attn.k")->layout, ==, "test.p2/1");
    /* two blocks of two rows, then the map of four columns, each aligned */
    g_assert_cmpuint(slot_of(plan, "attn.k")->private_bytes, ==, 2 * plan->devices[DAVIT_ON_HOST].align);
}

static void codes_that_do_not_exist_are_refused(void)
{
    g_autoptr(TestModel) m = fused(12);

    fake.codes = (davit_quant_codes){.bits = 3, .kind = DAVIT_CODE_E4M3};
    g_assert_null(test_model_plan(m));
    g_assert_cmpstr(test_find(m, "quant-params", NULL)->found, ==, "codes that do not exist");
}

static void plugin_that_describes_too_much_is_refused(void)
{
    g_autoptr(TestModel) m = fused(12);
    const DavitRecord *r;

    fake.n_rows = 13;
    g_assert_null(test_model_plan(m));
    r = test_find(m, "quant-params", "model.layers.0.self_attn.qkv_proj");
    g_assert_cmpstr(r->who, ==, "test.quant");
    g_assert_cmpstr(r->found, ==, "rows pass the end of a tensor");
}

static void plugin_that_fails_without_reason_is_named(void)
{
    g_autoptr(TestModel) m = fused(12);

    fake.status = DAVIT_E_CORRUPT;
    g_assert_null(test_model_plan(m));
    g_assert_cmpstr(test_find(m, "no-reason", NULL)->who, ==, "test.quant");
}

static void refusal_counts_where_nobody_accepts(void)
{
    g_autoptr(TestModel) m = fused(12);
    const DavitRecord *r;

    fake.verdict = DAVIT_REFUSE;
    g_assert_null(test_model_plan(m));
    r = test_find(m, "quant-unknown", "model.layers.0.self_attn.qkv_proj");
    g_assert_nonnull(r);
    g_assert_null(test_find(m, "tensor-missing", NULL));
    g_assert_null(test_find(m, "tensor-unexpected", NULL));
}

static void purposes_of_a_plugin_are_kept(void)
{
    g_autoptr(TestModel) m = fused(12);
    const DavitRecord *r;

    fake.purposes = DAVIT_INSPECT | DAVIT_MAP;
    add_linear(m);
    g_assert_null(test_model_plan(m));
    r = test_find(m, "quant-unknown", "model.layers.0.self_attn.qkv_proj");
    g_assert_cmpstr(r->who, ==, "test.quant");
    m->options.purposes = DAVIT_MAP;
    {
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        g_assert_nonnull(plan);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_kv_scale_add();
    g_test_add_func("/quant/only_named_parts_are_asked_about",
                    only_named_parts_are_asked_about);
    g_test_add_func("/quant/cuts_at_units_are_borrowed", cuts_at_units_are_borrowed);
    g_test_add_func("/quant/cuts_inside_units_are_refused",
                    cuts_inside_units_are_refused);
    g_test_add_func("/quant/rows_that_cannot_be_pointed_at_are_refused",
                    rows_that_cannot_be_pointed_at_are_refused);
    g_test_add_func("/quant/strangers_layout_is_packed_from_float",
                    strangers_layout_is_packed_from_float);
    g_test_add_func("/quant/strangers_codes_are_packed", strangers_codes_are_packed);
    g_test_add_func("/quant/codes_that_do_not_exist_are_refused",
                    codes_that_do_not_exist_are_refused);
    g_test_add_func("/quant/plugin_that_describes_too_much_is_refused",
                    plugin_that_describes_too_much_is_refused);
    g_test_add_func("/quant/plugin_that_fails_without_reason_is_named",
                    plugin_that_fails_without_reason_is_named);
    g_test_add_func("/quant/refusal_counts_where_nobody_accepts",
                    refusal_counts_where_nobody_accepts);
    g_test_add_func("/quant/purposes_of_a_plugin_are_kept",
                    purposes_of_a_plugin_are_kept);
    return g_test_run();
}
