/* SPDX-License-Identifier: Apache-2.0
 * One model on several devices: wherever its layers are, the logits are those of one device, to
 * the bit, for the host and the devices compute the same operations (refcpu, memdev); each device
 * takes what the plan says and nothing else; and one that is lost in the middle is named. */
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "exec/exec.h"
#include "memdev.h"
#include "opened.h"
#include "plan/cross.h"
#include "plan/memory.h"
#include "plan/plan.h"

#define CTX     48u
#define BLOCK   8u /* a prompt has two */
#define CHUNK   24u
#define THREADS 2u
#define N_SEQS  2u
#define N_STEPS 2u

static const char *const plugins[] = {MEMDEV_DIR, REFCPU_DIR, NULL};

static DavitPlan *plan_with(Opened *o, const char *map, const DavitDeviceBudget *budgets,
                            size_t n_budgets, uint64_t host_bytes)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .activations = DAVIT_ACTIVATIONS_F32,
                                      .block_tokens = BLOCK,
                                      .device_map = map,
                                      .budgets = budgets,
                                      .n_budgets = n_budgets,
                                      .memory_bytes = host_bytes,
                                      .ctx = CTX,
                                      .chunk = CHUNK,
                                      .n_threads = THREADS};
    DavitPlan *plan =
        davit_plan_make(o->registry, o->checkpoint, o->settings, &options, o->report);

    if (!plan)
        fail_with(o->report);
    return plan;
}

/* The plan by the device map @text. */
static DavitPlan *plan_by(Opened *o, const char *text)
{
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("davit-map-XXXXXX", &path, NULL);
    DavitPlan *plan;

    g_assert_cmpint(write(fd, text, strlen(text)), ==, (gssize)strlen(text));
    close(fd);
    plan = plan_with(o, path, NULL, 0, 0);
    g_unlink(path);
    return plan;
}

/* (borrowed, registry) */
static memdev *devices_of(const DavitPlan *plan, DavitReport *report)
{
    const void *iface;
    void *self = NULL;

    for (uint32_t d = 1; d < plan->n_devices; d++)
        g_assert_cmpint(davit_component_use(plan->devices[d].kernels, &iface, &self, report), ==,
                        DAVIT_OK);
    g_assert_nonnull(self);
    return self;
}

/* ---- running ---- */

typedef struct Loaded {
    DavitWeights *weights;
    DavitPool *pool;
    DavitKv *kv;
    DavitStep *step;
} Loaded;

static void loaded_clear(Loaded *l)
{
    davit_step_free(l->step);
    davit_kv_free(l->kv);
    davit_pool_free(l->pool);
    davit_weights_free(l->weights);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Loaded, loaded_clear)

static Loaded load(const DavitPlan *plan, unsigned n_threads, DavitReport *report)
{
    const DavitStepLimits limits = {
        .n_tokens = CHUNK, .n_rows = CHUNK, .n_seqs = N_SEQS, .n_ctx = CTX};
    Loaded l = {.weights = davit_weights_load(plan, NULL, report),
                .pool = davit_pool_new(n_threads)};

    if (!l.weights)
        fail_with(report);
    l.kv = davit_kv_new(plan, N_SEQS * CTX / BLOCK, report);
    g_assert_nonnull(l.kv);
    l.step = davit_step_new(plan, l.weights, l.kv, l.pool, NULL, &limits, report);
    if (!l.step)
        fail_with(report);
    return l;
}

/* Tokens of one sequence in a step; their blocks are its own. */
static void add_tokens(DavitStepInput *in, uint64_t seq, const int32_t *ids, uint64_t n,
                       uint64_t at)
{
    in->query_start[seq] = (int32_t)in->n_tokens;
    for (uint64_t t = 0; t < n; t++) {
        in->token[in->n_tokens + t] = ids[t];
        in->position[in->n_tokens + t] = (int32_t)(at + t);
        in->seq[in->n_tokens + t] = (int32_t)seq;
    }
    in->n_tokens += n;
    in->query_start[seq + 1] = (int32_t)in->n_tokens;
    in->ctx_len[seq] = (int32_t)(at + n);
    in->rope_n[seq] = CTX;
    in->adapter[seq] = -1;
    for (uint64_t b = 0; b < in->max_blocks; b++)
        in->block_table[seq * in->max_blocks + b] = (int32_t)(seq * in->max_blocks + b);
    in->n_seqs = seq + 1;
}

static int32_t greedy(const float *row, uint64_t n)
{
    uint64_t best = 0;

    for (uint64_t i = 1; i < n; i++)
        best = row[i] > row[best] ? i : best;
    return (int32_t)best;
}

/* Two sequences: prompts of 13 and 11 tokens (longer than the windows of the models), then two
 * steps of both. All logits of all rows. (owned) */
static GByteArray *run(const DavitPlan *plan, const Loaded *l, DavitReport *report)
{
    static const int32_t prompt[] = {1, 20, 30, 45, 6, 17, 28, 39, 50, 3, 100, 7, 9};
    static const uint64_t n_prompt[N_SEQS] = {13, 11};
    const uint64_t vocab = plan->program->values[plan->program->output].width;
    GByteArray *out = g_byte_array_new();
    DavitStepInput *in = davit_step_input(l->step);
    int32_t next[N_SEQS];

    for (uint64_t k = 0; k <= N_STEPS; k++) {
        const float *logits = NULL;

        in->n_tokens = 0;
        for (uint64_t s = 0; s < N_SEQS; s++)
            add_tokens(in, s, k ? &next[s] : prompt, k ? 1 : n_prompt[s],
                       k ? n_prompt[s] + k - 1 : 0);
        in->n_rows = in->n_tokens;
        for (uint64_t r = 0; r < in->n_rows; r++)
            in->logit_row[r] = (int32_t)r;
        if (davit_step_run(l->step, &logits, report))
            fail_with(report);
        g_byte_array_append(out, (const uint8_t *)logits,
                            (guint)(in->n_rows * vocab * sizeof(float)));
        for (uint64_t s = 0; s < N_SEQS; s++)
            next[s] = greedy(logits + (uint64_t)(in->query_start[s + 1] - 1) * vocab, vocab);
    }
    return out;
}

/* What the legs of @plan say for the steps of run(): 24 tokens, then twice two; a row each. */
static uint64_t crossing_bytes(const DavitPlan *plan)
{
    g_autoptr(GArray) legs = davit_legs(plan->program);
    uint64_t sum = 0;

    for (guint i = 0; i < legs->len; i++)
        sum += davit_leg_bytes(plan->program, &g_array_index(legs, DavitLeg, i), 24 + N_STEPS * N_SEQS,
                               24 + N_STEPS * N_SEQS);
    return sum;
}

static uint64_t fill_of(const memdev *m)
{
    uint64_t sum = 0;

    for (uint64_t d = 0; m && d < m->n_devices; d++)
        sum += m->device[d].used;
    return sum;
}

/* (owned) the logits of @plan; what crossed was what it says, and nothing is left behind. */
static GByteArray *logits_of(Opened *o, const DavitPlan *plan, unsigned n_threads)
{
    const memdev *m = plan->n_devices > 1 ? devices_of(plan, o->report) : NULL;
    GByteArray *out;
    {
        g_auto(Loaded) l = load(plan, n_threads, o->report);
        DavitStepStats stats;

        if (m) {
            for (uint32_t d = 1; d < plan->n_devices; d++) {
                uint64_t states = 0;

                for (size_t s = 0; s < plan->program->n_states; s++)
                    states += plan->program->state_device[s] == d
                                  ? plan->program->state_block_bytes[s]
                                  : 0;
                g_assert_cmpuint(m->device[plan->devices[d].index].used, >=,
                                 plan->devices[d].private_bytes +
                                     plan->devices[d].constant_bytes +
                                     states * N_SEQS * CTX / BLOCK);
            }
        }
        out = run(plan, &l, o->report);
        davit_step_stats(l.step, &stats);
        g_assert_cmpuint(stats.crossed_bytes, ==, crossing_bytes(plan));
    }
    g_assert_cmpuint(fill_of(m), ==, 0);
    return out;
}

static void assert_same(const GByteArray *a, const GByteArray *b)
{
    g_assert_cmpuint(a->len, ==, b->len);
    g_assert_true(memcmp(a->data, b->data, a->len) == 0);
}

/* ---- maps ---- */

/* (owned) Layer i on the i-th letter of @layers ('c' cpu, '0' to '2' memdev, 'd' disk), over and
 * over; the rest on @rest. */
static char *map_text(const char *layers, uint64_t n_layers, char rest)
{
    GString *text = g_string_new("{");
    const struct {
        char letter;
        const char *device;
    } names[] = {{'c', "cpu"},
                 {'0', "memdev:0"},
                 {'1', "memdev:1"},
                 {'2', "memdev:2"},
                 {'d', "disk"}};

    for (uint64_t i = 0; i <= n_layers; i++) {
        const char letter = i < n_layers ? layers[i % strlen(layers)] : rest;

        for (size_t k = 0; k < G_N_ELEMENTS(names); k++) {
            if (names[k].letter != letter)
                continue;
            if (i < n_layers)
                g_string_append_printf(text, "\"model.layers.%" G_GUINT64_FORMAT "\": \"%s\", ", i,
                                       names[k].device);
            else
                g_string_append_printf(text, "\"\": \"%s\"}", names[k].device);
        }
    }
    return g_string_free(text, FALSE);
}

static const struct {
    const char *layers;
    char rest;
    uint32_t least_legs; /* with at least two layers */
} splits[] = {
    {"c0", 'c', 3},  {"01", '0', 3},  {"0", 'c', 3},     {"c", '1', 3},  {"c01", 'c', 2},
    {"c01", '1', 2}, {"110", '0', 2}, {"0c", '0', 3},    {"d0", 'c', 3}, {"d1", '0', 3},
    {"10c0", '1', 2}, {"000012", '0', 4}, /* other angles through the same staging memory */
};

static void same_bits_wherever_layers_are(const void *model)
{
    g_auto(Opened) o = open_model(model, plugins);
    g_autoptr(DavitPlan) alone = plan_by(&o, "{\"\": \"cpu\"}");
    g_autoptr(DavitPlan) device = plan_by(&o, "{\"\": \"memdev:1\"}");
    g_autoptr(GByteArray) want = logits_of(&o, alone, THREADS);
    g_autoptr(GByteArray) there = logits_of(&o, device, 1);

    g_assert_cmpuint(alone->n_devices, ==, 1);
    g_assert_cmpuint(crossing_bytes(alone) + crossing_bytes(device), ==, 0);
    assert_same(there, want);
    /* all ways through six layers; of the others some, each with all places in it */
    for (size_t i = alone->n_layers == 6 ? 0 : 1; i < G_N_ELEMENTS(splits);
         i += alone->n_layers == 6 ? 1 : 4) {
        if (strcmp(model, "gpt_oss") == 0 && strchr(splits[i].layers, 'd'))
            continue; /* its experts are turned while loading: they cannot stay on disk */
        g_autofree char *text = map_text(splits[i].layers, alone->n_layers, splits[i].rest);
        g_autoptr(DavitPlan) plan = plan_by(&o, text);
        g_autoptr(GArray) legs = davit_legs(plan->program);
        g_autoptr(GByteArray) got = NULL;

        g_test_message("%s", text);
        g_assert_true(alone->n_layers < 2 || legs->len >= splits[i].least_legs);
        got = logits_of(&o, plan, 1);
        assert_same(got, want);
    }
}

/* ---- memory ---- */

static const DavitPlaced *placed_at(const DavitPlan *plan, const char *device)
{
    for (guint i = 0; i < plan->placed->len; i++) {
        if (strcmp(g_array_index(plan->placed, DavitPlaced, i).device, device) == 0)
            return &g_array_index(plan->placed, DavitPlaced, i);
    }
    return NULL;
}

static uint64_t round_up(uint64_t n)
{
    return (n + MEMDEV_ALIGN - 1) / MEMDEV_ALIGN * MEMDEV_ALIGN;
}

/* One sequence and one row, as plans reckon. */
static void devices_take_what_the_plan_says(const void *model)
{
    const DavitStepLimits limits = {.n_tokens = CHUNK, .n_rows = 1, .n_seqs = 1, .n_ctx = CTX};
    g_auto(Opened) o = open_model(model, plugins);

    for (size_t i = 1; i < G_N_ELEMENTS(splits); i += 3) {
        g_autoptr(DavitPlan) whole = plan_by(&o, "{\"\": \"cpu\"}");
        g_autofree char *text = map_text(splits[i].layers, whole->n_layers, splits[i].rest);
        g_autoptr(DavitPlan) plan = plan_by(&o, text);
        g_autofree DavitStepMemory *m = g_new0(DavitStepMemory, plan->n_devices);
        g_autoptr(DavitPool) pool = davit_pool_new(THREADS);
        const memdev *devices = devices_of(plan, o.report);
        DavitLoadStats stats;
        g_autoptr(DavitWeights) weights = davit_weights_load(plan, NULL, o.report);
        g_autoptr(DavitKv) kv = davit_kv_new(plan, CTX / BLOCK, o.report);
        g_autoptr(DavitStep) step = davit_step_new(plan, weights, kv, pool, NULL, &limits, o.report);

        g_assert_true(davit_step_memory(plan, CHUNK, CTX, davit_pool_threads(pool), m));
        davit_weights_stats(weights, &stats);
        g_assert_cmpuint(stats.uploaded_bytes, ==, plan->upload_bytes);
        g_assert_cmpuint(stats.private_bytes, ==, plan->private_bytes);
        g_assert_cmpuint(davit_step_bytes(step), ==, davit_step_memory_sum(&m[DAVIT_ON_HOST]));
        g_assert_cmpuint(placed_at(plan, "cpu")->step_bytes, ==,
                         davit_step_memory_sum(&m[DAVIT_ON_HOST]));
        for (uint32_t d = 1; d < plan->n_devices; d++) {
            const memdev_device *dev = &devices->device[plan->devices[d].index];
            const DavitPlaced *placed = placed_at(plan, plan->devices[d].name);

            g_assert_cmpuint(dev->used, ==,
                             placed->weight_bytes + placed->state_bytes +
                                 round_up(m[d].value_bytes) + round_up(m[d].scratch_bytes) +
                                 round_up(m[d].array_bytes));
            g_assert_cmpuint(placed->step_bytes, ==, davit_step_memory_sum(&m[d]));
            g_assert_cmpuint(m[d].staging_bytes + m[d].logit_bytes, ==, 0);
        }
    }
}

/* ---- left to the program ---- */

static uint64_t need_of(const DavitPlan *plan, const char *device)
{
    const DavitPlaced *p = placed_at(plan, device);

    return p ? p->weight_bytes + p->state_bytes + p->step_bytes : 0;
}

/* Two devices of a third of the model each, and the host: in order, within their budgets. */
static void auto_fills_two_devices(const void *model)
{
    g_auto(Opened) o = open_model(model, plugins);
    g_autoptr(DavitPlan) alone = plan_by(&o, "{\"\": \"cpu\"}");
    g_autoptr(DavitPlan) device = plan_by(&o, "{\"\": \"memdev:0\"}");
    g_autoptr(GByteArray) want = logits_of(&o, alone, 1);
    const uint64_t all = need_of(device, "memdev:0");
    uint64_t n_three = 0;

    for (uint64_t k = 2; k < 8; k += 2) {
        const DavitDeviceBudget budgets[] = {{"memdev:0", all * k / 8},
                                             {"memdev:1", all * (8 - k) / 10},
                                             {"memdev:2", 1}};
        g_autoptr(DavitPlan) plan = plan_with(&o, "auto", budgets, 3, 1ull << 40);
        g_autoptr(GArray) legs = davit_legs(plan->program);
        g_autoptr(GByteArray) got = logits_of(&o, plan, 1);

        assert_same(got, want);
        g_assert_cmpuint(need_of(plan, "memdev:0"), <=, budgets[0].n_bytes);
        g_assert_cmpuint(need_of(plan, "memdev:1"), <=, budgets[1].n_bytes);
        n_three += plan->n_devices == 3 && legs->len >= 3;
    }
    g_assert_cmpuint(n_three, >, 0);
}

/* ---- a device is lost ---- */

static void a_lost_device_is_named(const void *model)
{
    static const char *const maps[] = {"01", "c10", "1c"};

    for (size_t i = 0; i < G_N_ELEMENTS(maps); i++) {
        g_auto(Opened) o = open_model(model, plugins);
        g_autoptr(DavitPlan) whole = plan_by(&o, "{\"\": \"cpu\"}");
        g_autofree char *text = map_text(maps[i], whole->n_layers, '0');
        g_autoptr(DavitPlan) plan = plan_by(&o, text);
        memdev *m = devices_of(plan, o.report);
        g_auto(Loaded) l = load(plan, THREADS, o.report);
        g_autoptr(GByteArray) before = run(plan, &l, o.report);
        DavitStepInput *in = davit_step_input(l.step);
        const float *logits = NULL;
        const DavitRecord *r;

        g_assert_cmpuint(before->len, >, 0);
        m->device[1].fails_at = m->device[1].n_calls + 3;
        for (int again = 0; again < 2; again++) {
            g_autoptr(DavitReport) said = davit_report_new();

            g_assert_cmpint(davit_step_run(l.step, &logits, said), ==, DAVIT_E_IO);
            g_assert_cmpuint(davit_report_count(said), ==, 1);
            r = davit_report_get(said, 0);
            g_assert_cmpuint(r->code, ==, DAVIT_R_DEVICE_LOST);
            g_assert_cmpstr(r->subject, ==, "memdev:1");
            g_assert_cmpstr(r->who, ==, "test.davit.memdev");
            g_assert_true(g_str_has_prefix(r->found, "layer"));
        }
        g_assert_null(logits);
        g_assert_cmpuint(in->n_tokens, ==, N_SEQS);
    }
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"llama_mini",      "gemma3",      "qwen3_moe_dense_layers",
                                         "qwen2",           "gguf_q4_k_m", "llama_tied",
                                         "qwen3_moe_stacked", "gpt_oss"};

    g_setenv("MEMDEV_DEVICES", "3", TRUE);
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *path = g_strdup_printf("/split/bits/%s", models[i]);
        g_test_add_data_func(path, models[i], same_bits_wherever_layers_are);
    }
    g_test_add_data_func("/split/memory/gemma3", "gemma3", devices_take_what_the_plan_says);
    g_test_add_data_func("/split/memory/qwen3_moe", "qwen3_moe_dense_layers",
                         devices_take_what_the_plan_says);
    g_test_add_data_func("/split/auto/gemma3", "gemma3", auto_fills_two_devices);
    g_test_add_data_func("/split/auto/llama_mini", "llama_mini", auto_fills_two_devices);
    g_test_add_data_func("/split/lost/gemma3", "gemma3", a_lost_device_is_named);
    return g_test_run();
}
