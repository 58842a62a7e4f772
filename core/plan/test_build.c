/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <davit/help/decoder.h>

#include "plan/test_model.h"

/* A forward with one fault: what fault_build does is chosen by `fault`. */
static int fault;
enum {
    FAULT_NONE,
    FAULT_UNKNOWN_VALUE,
    FAULT_READ_BEFORE_WRITE,
    FAULT_NO_OUTPUT,
    FAULT_OUTPUT_ROWS,
    FAULT_OUTPUT_WIDTH,
    FAULT_NO_WEIGHT,
    FAULT_NO_STATE,
    FAULT_DTYPE,
    FAULT_ABSENT_DIM,
    FAULT_ATTR_SIZE,
    FAULT_PLUGIN_SAYS,
    FAULT_STATUS_ONLY,
    N_FAULTS,
};

static void op(const davit_build_suite *s, davit_builder *b, const char *name,
               const void *attr, int32_t in, int32_t out, int32_t weight, int32_t state)
{
    davit_op_rec rec = {.struct_size = DAVIT_END(davit_op_rec, weight),
                        .op = name,
                        .attr = attr,
                        .state = state,
                        .n_in = in != -1,
                        .n_out = out != -1,
                        .n_weights = 1,
                        .in = {in},
                        .out = {out},
                        .weight = {weight}};

    s->op(b, &rec);
}

static void break_something(const davit_build_suite *s, davit_builder *b, int32_t x)
{
    static const uint64_t tiny_attr = 4;
    const davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, url),
                              .code = DAVIT_R_CONFIG_UNSUPPORTED,
                              .subject = "mystery",
                              .found = "the forward mystery",
                              .message = "no such forward"};
    const int32_t y = s->value(b, "f32/1", DAVIT_ROWS_T, 4);

    if (fault == FAULT_UNKNOWN_VALUE)
        op(s, b, DAVIT_OP_RMSNORM, NULL, 77, x, -1, -1);
    if (fault == FAULT_READ_BEFORE_WRITE)
        op(s, b, DAVIT_OP_RMSNORM, NULL, y, x, -1, -1);
    if (fault == FAULT_NO_WEIGHT)
        op(s, b, DAVIT_OP_LINEAR, NULL, x, x, s->slot(b, "attn.q.bias", 0), -1);
    if (fault == FAULT_NO_STATE)
        op(s, b, DAVIT_OP_ATTN, NULL, x, x, -1, -1);
    if (fault == FAULT_DTYPE)
        s->value(b, "f64/1", DAVIT_ROWS_T, 4);
    if (fault == FAULT_ABSENT_DIM)
        s->slot_dim(b, s->slot(b, "attn.q.bias", 0), 0);
    if (fault == FAULT_ATTR_SIZE)
        op(s, b, DAVIT_OP_RMSNORM, &tiny_attr, x, x, -1, -1);
    if (fault == FAULT_PLUGIN_SAYS)
        s->fail(b, &no);
}

static int32_t fault_build(void *self, const davit_build_suite *s, davit_builder *b,
                           const char *entry, const davit_sink *sink)
{
    const uint32_t rows = fault == FAULT_OUTPUT_ROWS ? DAVIT_ROWS_T : DAVIT_ROWS_R;
    const int32_t x = s->value(b, "f32/1", DAVIT_ROWS_T, 4);
    const int32_t last = s->value(b, "f32/1", DAVIT_ROWS_R, 4);
    const int32_t logits =
        s->value(b, "f32/1", rows, fault == FAULT_OUTPUT_WIDTH ? 9 : 8);

    (void)self;
    (void)entry;
    (void)sink;
    op(s, b, DAVIT_OP_EMBED, NULL, -1, x, s->slot(b, "embed", -1), -1);
    break_something(s, b, x);
    op(s, b, DAVIT_OP_GATHER_ROWS, NULL, x, last, -1, -1);
    op(s, b, DAVIT_OP_LINEAR, NULL, last, logits, s->slot(b, "head", -1), -1);
    if (fault != FAULT_NO_OUTPUT)
        s->output(b, logits);
    return fault == FAULT_STATUS_ONLY ? DAVIT_E_UNSUPPORTED : DAVIT_OK;
}

static void faults_of_a_forward_are_refused_once(void)
{
    davit_arch_iface arch = test_arch;
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);

    arch.build = fault_build;
    m->tools.arch.iface = &arch;
    for (fault = FAULT_NONE; fault < N_FAULTS; fault++) {
        const size_t before = davit_report_count(m->report);
        g_autoptr(DavitPlan) plan = test_model_plan(m);
        size_t n_errors = 0;

        for (size_t i = before; i < davit_report_count(m->report); i++)
            n_errors += davit_report_get(m->report, i)->severity == DAVIT_ERROR;
        g_test_message("fault %d", fault);
        g_assert_cmpuint(n_errors, ==, fault == FAULT_NONE ? 0 : 1);
        g_assert_true((plan != NULL) == (fault == FAULT_NONE));
    }
    g_assert_nonnull(test_find(m, "config-unsupported", "mystery"));
    g_assert_nonnull(test_find(m, "no-reason", NULL));
    g_assert_nonnull(test_find(m, "shape-mismatch", "output"));
}

static void slots_that_no_op_reads_are_told(void)
{
    davit_arch_iface arch = test_arch;
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);
    g_autoptr(DavitPlan) plan = NULL;
    const DavitRecord *r;

    arch.build = fault_build;
    m->tools.arch.iface = &arch;
    fault = FAULT_NONE;
    plan = test_model_plan(m);
    g_assert_nonnull(plan);
    r = test_find(m, "ignored-by-rule", "norm");
    g_assert_nonnull(r);
    g_assert_cmpint(r->severity, ==, DAVIT_WARNING);
    g_assert_cmpuint(plan->borrowed_bytes, ==, 2 * 128);
    g_assert_cmpuint(plan->private_bytes, ==, 0);
}

/* ---- one rotary row order ---- */

static int32_t odd_slot; /* the only slot whose rows are said to be interleaved */

static uint32_t flags_of_odd(davit_builder *b, int32_t slot)
{
    (void)b;
    return slot == odd_slot ? DAVIT_SLOT_INTERLEAVED : 0;
}

static int32_t odd_build(void *self, const davit_build_suite *s, davit_builder *b,
                         const char *entry, const davit_sink *sink)
{
    davit_build_suite odd = *s;
    const davit_graph g = {.build = &odd, .b = b};
    const davit_decoder decoder = {.n_layers = 2, .head_dim = 2};
    const int32_t x = s->value(b, "f32/1", DAVIT_ROWS_T, 4);
    const davit_decoder_ropes ropes = {.type = {""}, .angles = {x}};

    (void)self;
    (void)entry;
    (void)sink;
    odd.slot_flags = flags_of_odd;
    odd_slot = s->slot(b, "attn.k", 0);
    op(s, b, DAVIT_OP_EMBED, NULL, -1, x, s->slot(b, "embed", -1), -1);
    s->output(b, davit_decoder_attn(&g, &decoder, 0, &ropes, x));
    return DAVIT_OK;
}

static void two_rotary_row_orders_are_refused(void)
{
    davit_arch_iface arch = test_arch;
    g_autoptr(TestModel) m = test_model_new(test_tiny_config, test_tiny, test_tiny_count);
    g_autoptr(DavitPlan) plan = NULL;
    const DavitRecord *r;

    arch.build = odd_build;
    m->tools.arch.iface = &arch;
    plan = test_model_plan(m);
    g_assert_null(plan);
    r = test_find(m, "map-incomplete", "attn.q");
    g_assert_nonnull(r);
    g_assert_cmpstr(r->found, ==, "two");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/build/two_rotary_row_orders_are_refused",
                    two_rotary_row_orders_are_refused);
    g_test_add_func("/build/faults_of_a_forward_are_refused_once",
                    faults_of_a_forward_are_refused_once);
    g_test_add_func("/build/slots_that_no_op_reads_are_told",
                    slots_that_no_op_reads_are_told);
    return g_test_run();
}
