/* SPDX-License-Identifier: Apache-2.0
 * What a plan costs, counted: the folders core/plan and core/checkpoint are compiled once more
 * for this program with a call at every basic block, and allocations are counted where they are
 * made. Nothing here depends on the machine, so a loop over all tensors inside a loop over all
 * tensors shows as what it is.
 *
 * The bounds: 20,000 tensors in 10 ms are 500 ns for one, and a core does 3000 to 3500
 * instructions in them (two a cycle at 3 to 3.5 GHz). By callgrind on the same checkpoint, with
 * strings and hashes of the libraries, a block counted here stands for 8.7 instructions of the
 * optimised plan, 8.3 of the hash and 7.5 of the document. So the plan may take 400 blocks for a
 * tensor at most; it takes 209, and 225 keep it so. For the goals of tests/bench/SPEED.md, 30 M
 * instructions for the hash of 20,439 and 75 M for their document, the hash may take 177 and the
 * document 490. A tensor that is a slot of its own costs more: expressions, kernels, twenty
 * fields; its bounds are a sixth above what is counted today, for nothing else is known of them.
 *
 * Opening: `inspect` of so many is to take less than 50 ms, of which starting and the text are 30.
 * 20 ms are 1000 ns and 6000 instructions for a tensor. The format plugin, which is not compiled
 * for counting, takes 2100 of them by callgrind, and a block stands for 4 in the rest: 975 blocks at
 * most. It takes 303, and 333 keep it so. */
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "plan/hash.h"
#include "plan/slot_document.h"
#include "plan/test_model.h"

/* ---- counters ---- */

static uint64_t n_steps, n_allocations;

/* Called by the compiler at every block of what is counted. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    n_steps++;
}

/* The C library's own, and in their place ours, for all libraries of the program. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);

__attribute__((visibility("default"))) void *malloc(size_t n)
{
    n_allocations++;
    return __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t each)
{
    n_allocations++;
    return __libc_calloc(n, each);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
    n_allocations++;
    return __libc_realloc(p, n);
}

/* Work from one call of begin() on. */
typedef struct Work {
    uint64_t steps, allocations;
} Work;

static Work begin(void)
{
    return (Work){n_steps, n_allocations};
}

static Work since(Work start)
{
    return (Work){n_steps - start.steps, n_allocations - start.allocations};
}

/* ---- models ---- */

#define EXPERTS 128u /* as in the configuration below */

static void add(GArray *tensors, GStringChunk *names, uint64_t rows, uint64_t cols,
                const char *format, ...) G_GNUC_PRINTF(5, 6);
static void add(GArray *tensors, GStringChunk *names, uint64_t rows, uint64_t cols,
                const char *format, ...)
{
    g_autofree char *name = NULL;
    TestTensor t = {.dtype = "BF16", .rank = cols ? 2 : 1, .shape = {rows, cols}};
    va_list args;

    va_start(args, format);
    name = g_strdup_vprintf(format, args);
    va_end(args);
    t.name = g_string_chunk_insert(names, name);
    g_array_append_val(tensors, t);
}

static void add_layer(GArray *tensors, GStringChunk *names, unsigned layer, bool experts)
{
    static const char *const vectors[] = {"input_layernorm", "post_attention_layernorm"};

    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++)
        add(tensors, names, 8, 0, "model.layers.%u.%s.weight", layer, vectors[i]);
    add(tensors, names, 8, 8, "model.layers.%u.self_attn.q_proj.weight", layer);
    add(tensors, names, 4, 8, "model.layers.%u.self_attn.k_proj.weight", layer);
    add(tensors, names, 4, 8, "model.layers.%u.self_attn.v_proj.weight", layer);
    add(tensors, names, 8, 8, "model.layers.%u.self_attn.o_proj.weight", layer);
    if (experts) {
        add(tensors, names, 4, 0, "model.layers.%u.self_attn.q_norm.weight", layer);
        add(tensors, names, 4, 0, "model.layers.%u.self_attn.k_norm.weight", layer);
        add(tensors, names, EXPERTS, 8, "model.layers.%u.mlp.gate.weight", layer);
    }
    for (unsigned e = 0; e < (experts ? EXPERTS : 1); e++) {
        g_autofree char *of =
            experts ? g_strdup_printf("mlp.experts.%u", e) : g_strdup("mlp");

        add(tensors, names, 4, 8, "model.layers.%u.%s.gate_proj.weight", layer, of);
        add(tensors, names, 4, 8, "model.layers.%u.%s.up_proj.weight", layer, of);
        add(tensors, names, 8, 4, "model.layers.%u.%s.down_proj.weight", layer, of);
    }
}

static TestModel *model_of(unsigned layers, bool experts)
{
    g_autoptr(GArray) tensors = g_array_new(FALSE, TRUE, sizeof(TestTensor));
    GStringChunk *names = g_string_chunk_new(4096);
    g_autofree char *config = g_strdup_printf(
        "{\"architectures\":[\"%s\"],\"model_type\":\"%s\",\"hidden_size\":8,"
        "\"intermediate_size\":4,%s\"num_hidden_layers\":%u,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":1,\"head_dim\":4,\"vocab_size\":16,\"rms_norm_eps\":1e-6,"
        "\"tie_word_embeddings\":false,\"max_position_embeddings\":64,\"rope_theta\":10000.0,"
        "\"hidden_act\":\"silu\",\"attention_bias\":false,\"use_sliding_window\":false}",
        experts ? "Qwen3MoeForCausalLM" : "LlamaForCausalLM", experts ? "qwen3_moe" : "llama",
        experts ? "\"moe_intermediate_size\":4,\"num_experts\":128,\"num_experts_per_tok\":2,"
                : "",
        layers);
    TestModel *m;

    add(tensors, names, 16, 8, "model.embed_tokens.weight");
    add(tensors, names, 8, 0, "model.norm.weight");
    add(tensors, names, 16, 8, "lm_head.weight");
    for (unsigned i = 0; i < layers; i++)
        add_layer(tensors, names, i, experts);
    m = test_model_new(config, (const TestTensor *)(const void *)tensors->data, tensors->len);
    g_string_chunk_free(names);
    return m;
}

/* ---- counting ---- */

typedef struct Cost {
    uint64_t n; /* tensors */
    Work open, plan, hash, document;
} Cost;

/* Once more, for the first time loads plugins. */
static Work open_again(const TestModel *m)
{
    const Work start = begin();
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(m->registry, m->dir, DAVIT_MAP, m->report);

    g_assert_nonnull(c);
    return since(start);
}

static Work write_document(const DavitPlan *plan)
{
    g_autoptr(GString) text = g_string_new(NULL);
    DavitJsonWriter *w = davit_json_writer_text(text, 1, 1);
    const Work start = begin();

    davit_plan_write_slots(plan, true, w, NULL);
    davit_json_writer_finish(w);
    return since(start);
}

static Work hash_plan(const DavitPlan *plan)
{
    const Work start = begin();
    g_autofree char *hash G_GNUC_UNUSED = davit_plan_hash(plan);

    return since(start);
}

static Cost cost_of(unsigned layers, bool experts)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .activations = DAVIT_ACTIVATIONS_F32};
    g_autoptr(TestModel) m = model_of(layers, experts);
    g_autoptr(DavitPlan) first G_GNUC_UNUSED = /* plugins are loaded once */
        davit_plan_make(m->registry, m->checkpoint, m->settings, &options, m->report);
    const Work start = begin();
    g_autoptr(DavitPlan) plan =
        davit_plan_make(m->registry, m->checkpoint, m->settings, &options, m->report);
    const Work planned = since(start);
    const Cost cost = {.n = davit_checkpoint_n_tensors(m->checkpoint),
                       .open = open_again(m),
                       .plan = planned,
                       .hash = plan ? hash_plan(plan) : begin(),
                       .document = plan ? write_document(plan) : begin()};

    for (size_t i = 0; !plan && i < davit_report_count(m->report); i++) {
        g_autofree char *text = davit_record_sentence(davit_report_get(m->report, i));

        g_test_message("%s", text);
    }
    g_assert_nonnull(plan);
    g_test_message("%" PRIu64 " tensors: open %" PRIu64 " steps, %" PRIu64
                   " allocations; plan %" PRIu64 ", %" PRIu64 "; hash %" PRIu64 ", %" PRIu64
                   "; document %" PRIu64 ", %" PRIu64,
                   cost.n, cost.open.steps, cost.open.allocations, cost.plan.steps,
                   cost.plan.allocations, cost.hash.steps, cost.hash.allocations,
                   cost.document.steps, cost.document.allocations);
    return cost;
}

/* Steps of each tensor more, between two sizes. */
static double slope(uint64_t few, uint64_t many, const Cost *a, const Cost *b)
{
    return ((double)many - (double)few) / ((double)b->n - (double)a->n);
}

/* Twice as many tensors: each more costs what each before it did. A sort of all tensors would
 * add log2(2) to some 13 to each, 8 % of its own share; a search through all of them doubles. */
static void is_linear(uint64_t x, uint64_t y, uint64_t z, const Cost *cost)
{
    const double before = slope(x, y, &cost[0], &cost[1]);
    const double after = slope(y, z, &cost[1], &cost[2]);

    g_test_message("%.1f a tensor, then %.1f", before, after);
    g_assert_cmpfloat(after, <, 1.03 * before + 1);
}

#define MOST_OPEN 333 /* as derived above */

static void check(const Cost *cost, double most_plan, double most_hash, double most_document)
{
    is_linear(cost[0].open.steps, cost[1].open.steps, cost[2].open.steps, cost);
    is_linear(cost[0].plan.steps, cost[1].plan.steps, cost[2].plan.steps, cost);
    is_linear(cost[0].hash.steps, cost[1].hash.steps, cost[2].hash.steps, cost);
    is_linear(cost[0].document.steps, cost[1].document.steps, cost[2].document.steps, cost);
    is_linear(cost[0].plan.allocations, cost[1].plan.allocations, cost[2].plan.allocations,
              cost);
    is_linear(cost[0].open.allocations, cost[1].open.allocations, cost[2].open.allocations,
              cost);
    g_assert_cmpfloat((double)cost[2].open.steps, <, MOST_OPEN * (double)cost[2].n);
    /* names lie in chunks of 16 KiB, some hundred in each; the table grows by steps */
    g_assert_cmpfloat((double)cost[2].open.allocations, <, 0.02 * (double)cost[2].n + 100);
    g_assert_cmpfloat((double)cost[2].plan.steps, <, most_plan * (double)cost[2].n);
    g_assert_cmpfloat((double)cost[2].hash.steps, <, most_hash * (double)cost[2].n);
    g_assert_cmpfloat((double)cost[2].document.steps, <, most_document * (double)cost[2].n);
}

static void experts_cost_the_same_each(void)
{
    const Cost cost[] = {cost_of(13, true), cost_of(26, true), cost_of(52, true)};

    g_assert_cmpuint(cost[2].n, >, 20000);
    check(cost, 225, 177, 490);
    /* a layer's experts share one array of sources and the modules one block */
    g_assert_cmpfloat((double)cost[2].plan.allocations, <, 0.5 * (double)cost[2].n);
}

static void layers_cost_the_same_each(void)
{
    const Cost cost[] = {cost_of(125, false), cost_of(250, false), cost_of(500, false)};

    check(cost, 2000, 400, 1900);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/steps/experts_cost_the_same_each", experts_cost_the_same_each);
    g_test_add_func("/steps/layers_cost_the_same_each", layers_cost_the_same_each);
    return g_test_run();
}
