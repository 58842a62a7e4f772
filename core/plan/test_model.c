/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/test_model.h"

#include <string.h>

#include <glib/gstdio.h>

#include "plan/tools.h"

/* ---- files ---- */

static uint64_t dtype_bytes(const char *dtype)
{
    if (strcmp(dtype, "F32") == 0)
        return 4;
    return strcmp(dtype, "U8") == 0 || strcmp(dtype, "I8") == 0 ? 1 : 2;
}

static uint64_t append_tensor(GString *header, const TestTensor *t, uint64_t off)
{
    uint64_t n = dtype_bytes(t->dtype);

    g_string_append_printf(header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                           header->len > 1 ? "," : "", t->name, t->dtype);
    for (uint32_t i = 0; i < t->rank; i++) {
        g_string_append_printf(header, "%s%" PRIu64, i ? "," : "", t->shape[i]);
        n *= t->shape[i];
    }
    g_string_append_printf(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", off,
                           off + n);
    return off + n;
}

static void write_safetensors(const char *path, const TestTensor *tensors,
                              size_t n_tensors)
{
    g_autoptr(GString) header = g_string_new("{");
    g_autoptr(GByteArray) file = g_byte_array_new();
    uint8_t n[8];
    uint64_t off = 0, len;
    guint at;

    for (size_t i = 0; i < n_tensors; i++) {
        if (tensors[i].name)
            off = append_tensor(header, &tensors[i], off);
    }
    g_string_append_c(header, '}');
    len = GUINT64_TO_LE(header->len);
    memcpy(n, &len, sizeof n);
    g_byte_array_append(file, n, sizeof n);
    g_byte_array_append(file, (const uint8_t *)header->str, (guint)header->len);
    at = file->len;
    g_byte_array_set_size(file, at + (guint)off);
    memset(file->data + at, 0, off);
    g_assert_true(g_file_set_contents(path, (const char *)file->data, file->len, NULL));
}

static void remove_dir(const char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);

    for (const char *name; d && (name = g_dir_read_name(d));) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_remove(path);
    }
    if (d)
        g_dir_close(d);
    g_rmdir(dir);
}

/* ---- the model ---- */

static DavitComponent fake_arch = {
    .id = (char *)(uintptr_t) "test.arch",
    .purposes = DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN,
};

static void print_report(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        g_autofree char *text = davit_record_sentence(davit_report_get(report, i));

        g_test_message("%s: %s", davit_code_name(davit_report_get(report, i)->code),
                       text);
    }
}

TestModel *test_model_new(const char *config, const TestTensor *tensors, size_t n_tensors)
{
    TestModel *m = g_new0(TestModel, 1);
    const DavitRegistryOptions options = {.builtin_dir = DAVIT_PLUGIN_DIR,
                                          .only_paths = true};
    g_autofree char *weights = NULL;
    g_autofree char *settings = NULL;

    m->dir = g_dir_make_tmp("davit-plan-XXXXXX", NULL);
    weights = g_build_filename(m->dir, "model.safetensors", NULL);
    settings = g_build_filename(m->dir, "config.json", NULL);
    write_safetensors(weights, tensors, n_tensors);
    g_assert_true(g_file_set_contents(settings, config, -1, NULL));

    m->report = davit_report_new();
    m->registry = davit_registry_open(&options, m->report);
    m->checkpoint = davit_checkpoint_open(m->registry, m->dir, DAVIT_MAP, m->report);
    if (!m->checkpoint)
        print_report(m->report);
    g_assert_nonnull(m->checkpoint);
    m->settings = davit_settings_open(m->checkpoint, m->report);
    g_assert_nonnull(m->settings);
    m->tools.arch = (DavitTool){.component = &fake_arch, .iface = &test_arch};
    m->tools.quants = davit_tools_quants(m->registry);
    m->tools.kernels = g_array_new(FALSE, TRUE, sizeof(DavitTool));
    test_model_kernels(m, "test.kernels", &test_kernels, false);
    m->options = (DavitPlanOptions){.purposes = DAVIT_MAP | DAVIT_RUN,
                                    .activations = DAVIT_ACTIVATIONS_F32};
    return m;
}

static void forget_kernels(TestModel *m)
{
    for (guint i = 0; i < m->tools.kernels->len; i++) {
        DavitComponent *c = g_array_index(m->tools.kernels, DavitTool, i).component;

        g_free(c->id);
        g_free(c);
    }
    g_array_set_size(m->tools.kernels, 0);
}

void test_model_kernels(TestModel *m, const char *id, const davit_kernels_iface *iface,
                        bool append)
{
    DavitTool tool = {.iface = iface};

    if (!append)
        forget_kernels(m);
    if (!id)
        return;
    tool.component = g_new0(DavitComponent, 1);
    tool.component->id = g_strdup(id);
    g_array_append_val(m->tools.kernels, tool);
}

void test_model_free(TestModel *m)
{
    if (!m)
        return;
    forget_kernels(m);
    g_array_unref(m->tools.kernels);
    g_array_unref(m->tools.quants);
    davit_settings_free(m->settings);
    davit_checkpoint_free(m->checkpoint);
    davit_registry_free(m->registry);
    davit_report_free(m->report);
    remove_dir(m->dir);
    g_free(m->dir);
    g_free(m);
}

DavitPlan *test_model_plan(TestModel *m)
{
    DavitPlan *plan =
        davit_plan_draft(&m->tools, m->checkpoint, m->settings, &m->options, m->report);

    print_report(m->report);
    return plan;
}

const DavitRecord *test_find(const TestModel *m, const char *code, const char *subject)
{
    for (size_t i = 0; i < davit_report_count(m->report); i++) {
        const DavitRecord *r = davit_report_get(m->report, i);

        if (strcmp(davit_code_name(r->code), code) == 0 &&
            (!subject || g_strcmp0(r->subject, subject) == 0))
            return r;
    }
    return NULL;
}

/* ---- the tiny decoder ---- */

#define LAYER(i)                                                                         \
    {"model.layers." #i ".input_layernorm.weight", "F32", 1, {4}},                       \
        {"model.layers." #i ".self_attn.q_proj.weight", "F32", 2, {4, 4}},               \
        {"model.layers." #i ".self_attn.k_proj.weight", "F32", 2, {4, 4}},               \
        {"model.layers." #i ".self_attn.v_proj.weight", "F32", 2, {4, 4}},               \
        {"model.layers." #i ".mlp.up_proj.weight", "BF16", 2, {6, 4}},                   \
    {                                                                                    \
        "model.layers." #i ".mlp.down_proj.weight", "BF16", 2,                           \
        {                                                                                \
            4, 6                                                                         \
        }                                                                                \
    }

const TestTensor test_tiny[] = {
    {"model.embed_tokens.weight", "F32", 2, {8, 4}},
    LAYER(0),
    LAYER(1),
    {"model.norm.weight", "F32", 1, {4}},
    {"lm_head.weight", "F32", 2, {8, 4}},
};
const size_t test_tiny_count = G_N_ELEMENTS(test_tiny);

const char *const test_tiny_config =
    "{\"architectures\":[\"TestForCausalLM\"],\"model_type\":\"test\",\"vocab_size\":8,"
    "\"hidden_size\":4,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"intermediate_size\":6,\"tie_word_embeddings\":false}";

static const davit_config_row config_rows[] = {
    {"V", "int", "vocab_size", NULL, "", NULL, "1..1000000"},
    {"H", "int", "hidden_size", NULL, "", NULL, "1..100000"},
    {"L", "int", "num_hidden_layers", NULL, "", NULL, "1..100000"},
    {"nh", "int", "num_attention_heads", NULL, "", NULL, "1..1000"},
    {"I", "int", "intermediate_size", NULL, "", NULL, "1..100000"},
    {"tie", "bool", "tie_word_embeddings", NULL, "tied_by_class:1, 0", NULL, NULL},
    {.sym = NULL},
};

static const davit_slot_row slot_rows[] = {
    {"embed", "G", NULL, "V,H", "embed_tokens", NULL, "vocab", "embed", DAVIT_SLOT_EMBED,
     0},
    {"norm", "G", NULL, "H", "norm", NULL, "rep", "norm", 0, 0},
    {"head", "G", NULL, "V,H", "lm_head", NULL, "vocab", "lin", DAVIT_SLOT_HEAD, 0},
    {"attn.norm", "L", NULL, "H", "input_layernorm", NULL, "rep", "norm", 0, 0},
    {"attn.q", "L", NULL, "H,H",
     "self_attn.q_proj | self_attn.qkv_proj#rows(0,H) | attn.c_attn#T#rows(0,H)", NULL,
     "col", "lin", 0, 0},
    {"attn.k", "L", NULL, "H,H",
     "self_attn.k_proj | self_attn.qkv_proj#rows(H,H) | attn.c_attn#T#rows(H,H)", NULL,
     "col", "lin", 0, 0},
    {"attn.v", "L", NULL, "H,H",
     "self_attn.v_proj | self_attn.qkv_proj#rows(2*H,H) | attn.c_attn#T#rows(2*H,H)",
     NULL, "col", "lin", 0, 0},
    {"attn.q.bias", "L", NULL, "H", "self_attn.q_proj.bias", NULL, "rep", "f32",
     DAVIT_SLOT_OPTIONAL, 0},
    {"ffn.up", "L", NULL, "I,H", "mlp.up_proj", NULL, "col", "lin", 0, 0},
    {"ffn.down", "L", "i >= 0", "H,I", "mlp.down_proj", NULL, "row", "lin", 0, 0},
    {.id = NULL},
};

static void add_op(const davit_build_suite *s, davit_builder *b, const char *op,
                   const void *attr, int32_t in, int32_t out, int32_t weight,
                   int32_t bias, int32_t state)
{
    davit_op_rec rec = {.struct_size = DAVIT_END(davit_op_rec, weight),
                        .op = op,
                        .attr = attr,
                        .state = state,
                        .n_in = in >= 0,
                        .n_out = out >= 0,
                        .n_weights = 2,
                        .in = {in},
                        .out = {out},
                        .weight = {weight, bias}};

    s->op(b, &rec);
}

static void add_layer(const davit_build_suite *s, davit_builder *b, int64_t i, int32_t x)
{
    static const davit_attn_attr attn = {
        .struct_size = DAVIT_END(davit_attn_attr, softcap), .n_heads = 2, .scale = 1.0f};
    const davit_state_spec kv = {.struct_size = DAVIT_END(davit_state_spec, window),
                                 .kind = DAVIT_STATE_KV,
                                 .n_heads = 2,
                                 .k_dim = 2,
                                 .v_dim = 2};
    const int32_t q = s->slot(b, "attn.q", i), up = s->slot(b, "ffn.up", i);
    const int32_t state = s->state(b, &kv);
    const int32_t y = s->value(b, "f32/1", DAVIT_ROWS_T, s->slot_dim(b, q, 0));
    const int32_t z = s->value(b, "f32/1", DAVIT_ROWS_T, s->slot_dim(b, up, 0));
    davit_op_rec append = {.struct_size = DAVIT_END(davit_op_rec, weight),
                           .op = DAVIT_OP_KV_APPEND,
                           .state = state,
                           .n_in = 2,
                           .in = {y, y}};

    s->layer(b, i);
    add_op(s, b, DAVIT_OP_RMSNORM, NULL, x, x, s->slot(b, "attn.norm", i), -1, -1);
    add_op(s, b, DAVIT_OP_LINEAR, NULL, x, y, s->slot(b, "attn.k", i), -1, -1);
    add_op(s, b, DAVIT_OP_LINEAR, NULL, x, y, s->slot(b, "attn.v", i), -1, -1);
    s->op(b, &append);
    add_op(s, b, DAVIT_OP_LINEAR, NULL, x, y, q, s->slot(b, "attn.q.bias", i), -1);
    add_op(s, b, DAVIT_OP_ATTN, &attn, y, y, -1, -1, state);
    add_op(s, b, DAVIT_OP_LINEAR, NULL, y, z, up, -1, -1);
    add_op(s, b, DAVIT_OP_LINEAR, NULL, z, x, s->slot(b, "ffn.down", i), -1, -1);
}

static int32_t arch_build(void *self, const davit_build_suite *s, davit_builder *b,
                          const char *entry, const davit_sink *sink)
{
    const int32_t embed = s->slot(b, "embed", -1), head = s->slot(b, "head", -1);
    const int32_t x = s->value(b, "f32/1", DAVIT_ROWS_T, s->slot_dim(b, embed, 1));
    const int32_t last = s->value(b, "f32/1", DAVIT_ROWS_R, s->value_width(b, x));
    const int32_t logits = s->value(b, "f32/1", DAVIT_ROWS_R, s->slot_dim(b, head, 0));

    (void)self;
    (void)entry;
    (void)sink;
    add_op(s, b, DAVIT_OP_EMBED, NULL, -1, x, embed, -1, -1);
    for (int64_t i = 0; i < 2; i++)
        add_layer(s, b, i, x);
    s->layer(b, -1);
    add_op(s, b, DAVIT_OP_GATHER_ROWS, NULL, x, last, -1, -1, -1);
    add_op(s, b, DAVIT_OP_RMSNORM, NULL, last, last, s->slot(b, "norm", -1), -1, -1);
    add_op(s, b, DAVIT_OP_LINEAR, NULL, last, logits, head, -1, -1);
    s->name(b, logits, "logits");
    s->output(b, logits);
    return DAVIT_OK;
}

const davit_arch_iface test_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "TestForCausalLM",
    .model_types = "test",
    .config = config_rows,
    .config_stride = sizeof(davit_config_row),
    .slots = slot_rows,
    .slot_stride = sizeof(davit_slot_row),
    .build = arch_build,
};

/* ---- kernels ---- */

void test_run_nothing(const davit_call *call, uint32_t phase, uint64_t first,
                      uint64_t count, uint32_t worker, void *queue)
{
    (void)call;
    (void)phase;
    (void)first;
    (void)count;
    (void)worker;
    (void)queue;
}

uint64_t test_state_size(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                         const davit_sink *sink)
{
    (void)self;
    (void)sink;
    return spec->n_heads * (spec->k_dim + spec->v_dim) * block_tokens *
           (strcmp(spec->dtype, "f16/1") == 0 ? 2 : 4);
}

static const davit_kernel_entry plain[] = {
    TEST_ENTRY(DAVIT_OP_EMBED, "embed", "f32/1|bf16/1|f16/1", 100),
    TEST_ENTRY(DAVIT_OP_LINEAR, "linear", "f32/1|bf16/1|f16/1", 100),
    TEST_ENTRY(DAVIT_OP_RMSNORM, "rmsnorm", NULL, 100),
    TEST_ENTRY(DAVIT_OP_KV_APPEND, "kv_append", NULL, 100),
    TEST_ENTRY(DAVIT_OP_ATTN, "attn", NULL, 100),
    TEST_ENTRY(DAVIT_OP_GATHER_ROWS, "gather_rows", NULL, 100),
};

static const davit_kernel_entry *const entries[] = {
    &plain[0], &plain[1], &plain[2], &plain[3], &plain[4], &plain[5], NULL,
};

const davit_kernels_iface test_kernels = {
    .struct_size = DAVIT_END(davit_kernels_iface, state_size),
    .device = "cpu",
    .entries = entries,
    .state_size = test_state_size,
};
