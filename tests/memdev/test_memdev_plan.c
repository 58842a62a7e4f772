/* SPDX-License-Identifier: Apache-2.0
 * What a load takes on the device and sends to it is what the plan says, to the byte; what a step
 * takes is what a placement reckons with; and models are spread over the device, the host and the
 * disk. */
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "exec/exec.h"
#include "memdev.h"
#include "opened.h"
#include "plan/memory.h"
#include "plan/plan.h"

/* (borrowed, registry) The device that @plan goes to. */
static const memdev_device *device_of(const DavitPlan *plan, DavitReport *report)
{
    const void *iface;
    void *self = NULL;

    g_assert_cmpuint(plan->n_devices, ==, 2);
    g_assert_cmpint(davit_component_use(plan->devices[1].kernels, &iface, &self, report), ==,
                    DAVIT_OK);
    return &((const memdev *)self)->device[0];
}

static void check(const char *model, DavitLayoutChoice layout, DavitDtypeChoice dtype)
{
    static const char *const paths[] = {MEMDEV_DIR, NULL};
    const DavitRegistryOptions where = {
        .builtin_dir = DAVIT_PLUGIN_DIR, .plugin_paths = paths, .only_paths = true};
    const DavitPlanOptions options = {.purposes = DAVIT_RUN,
                                      .device = "memdev",
                                      .activations = DAVIT_ACTIVATIONS_F32,
                                      .layout = layout,
                                      .dtype = dtype};
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models", model, NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = davit_registry_open(&where, report);
    g_autoptr(DavitCheckpoint) c = davit_checkpoint_open(registry, path, DAVIT_RUN, report);
    g_assert_nonnull(c);
    g_autoptr(DavitSettings) settings = davit_settings_open(c, report);
    g_assert_nonnull(settings);
    g_autoptr(DavitPlan) plan = davit_plan_make(registry, c, settings, &options, report);
    g_assert_nonnull(plan);
    const memdev_device *dev = device_of(plan, report);
    g_assert_cmpuint(dev->peak, ==, 0);
    g_assert_cmpuint(plan->device_bytes, >, 0);
    {
        g_autoptr(DavitWeights) weights = davit_weights_load(plan, NULL, report);
        DavitLoadStats stats;

        g_assert_nonnull(weights);
        davit_weights_stats(weights, &stats);
        g_assert_cmpuint(dev->used, ==, plan->device_bytes);
        g_assert_cmpuint(dev->peak, ==, plan->device_bytes);
        g_assert_cmpuint(dev->n_up, ==, plan->upload_bytes);
        g_assert_cmpuint(stats.uploaded_bytes, ==, plan->upload_bytes);
    }
    g_assert_cmpuint(dev->used, ==, 0);
}

static void load_takes_what_the_plan_says(const void *model)
{
    check(model, DAVIT_LAYOUT_AUTO, DAVIT_DTYPE_STORED);
    check(model, DAVIT_LAYOUT_STORED, DAVIT_DTYPE_F32);
}

/* ---- steps ---- */

static const char *const plugins[] = {MEMDEV_DIR, NULL};

static uint64_t round_up(uint64_t n)
{
    return (n + MEMDEV_ALIGN - 1) / MEMDEV_ALIGN * MEMDEV_ALIGN;
}

#define CTX     200u /* more than one block of keys and values */
#define CHUNK   48u
#define THREADS 3u

static void step_takes(const Opened *o, const char *device)
{
    const DavitPlanOptions options = {.purposes = DAVIT_RUN,
                                      .device = device,
                                      .activations = DAVIT_ACTIVATIONS_AUTO,
                                      .kv_dtype = "f32/1"};
    const DavitStepLimits limits = {.n_tokens = CHUNK, .n_rows = 1, .n_seqs = 1, .n_ctx = CTX};
    g_autoptr(DavitPlan) plan =
        davit_plan_make(o->registry, o->checkpoint, o->settings, &options, o->report);
    g_assert_nonnull(plan);
    const memdev_device *dev = plan->n_devices > 1 ? device_of(plan, o->report) : NULL;
    const uint32_t d = plan->n_devices - 1;
    const uint64_t n_blocks = (CTX + plan->block_tokens - 1) / plan->block_tokens;
    g_autoptr(DavitWeights) weights = davit_weights_load(plan, NULL, o->report);
    g_autoptr(DavitPool) pool = davit_pool_new(THREADS);
    const uint64_t before = dev ? dev->used : 0;
    g_autoptr(DavitKv) kv = davit_kv_new(plan, n_blocks, o->report);
    const uint64_t with_kv = dev ? dev->used : 0;
    g_autoptr(DavitStep) step = davit_step_new(plan, weights, kv, pool, NULL, &limits, o->report);
    DavitStepMemory m[2];

    g_assert_nonnull(step);
    g_assert_true(davit_step_memory(plan, CHUNK, CTX, davit_pool_threads(pool), m));
    g_assert_cmpuint(m[d].state_bytes, ==, n_blocks * davit_kv_bytes_per_block(kv));
    if (dev) {
        g_assert_cmpuint(with_kv - before, ==, m[d].state_bytes); /* blocks are whole units */
        g_assert_cmpuint(dev->used - with_kv, ==,
                         round_up(m[d].value_bytes) + round_up(m[d].scratch_bytes) +
                             round_up(m[d].array_bytes));
    }
    g_assert_cmpuint(davit_step_bytes(step), ==, davit_step_memory_sum(&m[DAVIT_ON_HOST]));
}

static void steps_take_what_is_reckoned(const void *model)
{
    g_auto(Opened) o = open_model(model, plugins);

    step_takes(&o, "cpu");
    step_takes(&o, "memdev");
}

/* ---- several places ---- */

static const DavitPlaced *placed_at(const DavitPlan *plan, const char *device)
{
    for (guint i = 0; i < plan->placed->len; i++) {
        if (strcmp(g_array_index(plan->placed, DavitPlaced, i).device, device) == 0)
            return &g_array_index(plan->placed, DavitPlaced, i);
    }
    return NULL;
}

static uint64_t bytes_of(const DavitPlaced *p)
{
    return p ? p->weight_bytes + p->state_bytes + p->step_bytes : 0;
}

static const char *device_of_slot(const DavitPlan *plan, const DavitSlot *slot)
{
    return slot->home ? slot->home : plan->device;
}

/* Layers of the device come first and end where the host's begin; nothing is split. Returns how
 * many there are. */
static uint64_t count_layers(const DavitPlan *plan)
{
    g_autofree const char **of = g_new0(const char *, plan->n_layers + 1);
    uint64_t n = 0;

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];
        const char *device = device_of_slot(plan, slot);

        if (slot->tied_to >= 0)
            g_assert_cmpstr(device, ==, device_of_slot(plan, &plan->slots[slot->tied_to]));
        if (slot->layer < 0)
            continue;
        if (of[slot->layer])
            g_assert_cmpstr(device, ==, of[slot->layer]);
        of[slot->layer] = device;
    }
    while (n < plan->n_layers && strcmp(of[n], "memdev") == 0)
        n++;
    for (uint64_t i = n; i < plan->n_layers; i++)
        g_assert_cmpstr(of[i], ==, "cpu");
    return n;
}

static DavitPlan *plan_with(Opened *o, const char *map, uint64_t device_bytes,
                            uint64_t host_bytes, DavitReport *report)
{
    const DavitDeviceBudget budget = {"memdev:0", device_bytes};
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .device_map = map,
                                      .budgets = &budget,
                                      .n_budgets = device_bytes > 0,
                                      .memory_bytes = host_bytes,
                                      .ctx = CTX,
                                      .chunk = CHUNK,
                                      .n_threads = THREADS,
                                      .keep_refused = true};

    return davit_plan_make(o->registry, o->checkpoint, o->settings, &options, report);
}

/* Budgets from everything down to nothing: the device never takes more than it has, the more it
 * has the more layers it gets, and what is on two devices runs too. */
static void devices_are_filled_in_order(const void *model)
{
    g_auto(Opened) o = open_model(model, plugins);
    g_autoptr(DavitPlan) all = plan_with(&o, "auto", 1u << 30, 1ull << 40, o.report);
    g_assert_nonnull(all);
    g_assert_cmpstr(all->device, ==, "memdev");
    g_assert_false(all->refused);
    const uint64_t most = bytes_of(placed_at(all, "memdev"));
    uint64_t last = all->n_layers, n_parts = 0;

    for (uint64_t k = 0; k <= 64; k++) {
        const uint64_t budget = most - most * k / 64 + (k == 64);
        g_autoptr(DavitReport) said = davit_report_new();
        g_autoptr(DavitPlan) plan = plan_with(&o, "auto", budget, 1ull << 40, said);
        const uint64_t n = count_layers(plan);

        g_assert_cmpuint(bytes_of(placed_at(plan, "memdev")), <=, budget);
        g_assert_cmpuint(n, <=, last);
        g_assert_false(plan->refused);
        n_parts += n > 0 && n < plan->n_layers;
        last = n;
        if (k == 0)
            g_assert_cmpstr(plan->device, ==, "memdev");
    }
    g_assert_cmpuint(last, ==, 0);
    g_assert_cmpuint(n_parts, >, 0);
}

/* (owned) a file with @text. */
static char *write_map(const char *text)
{
    char *path = NULL;
    const int fd = g_file_open_tmp("davit-map-XXXXXX", &path, NULL);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, text, strlen(text)), ==, (gssize)strlen(text));
    close(fd);
    return path;
}

static void map_of_a_file(const void *model)
{
    g_auto(Opened) o = open_model(model, plugins);
    g_autofree char *one = write_map("{\"\": 0}");
    g_autofree char *two = write_map("{\"model.layers.1\": \"memdev\", \"\": \"cpu\"}");
    g_autofree char *three = write_map("{\"model.layers.1\": \"memdev:0\", \"\": \"disk\"}");
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitPlan) all = plan_with(&o, one, 0, 0, o.report);
    g_autoptr(DavitPlan) split = plan_with(&o, two, 0, 0, said);
    g_autoptr(DavitPlan) disk = plan_with(&o, three, 0, 0, said);
    const uint64_t need = bytes_of(placed_at(all, "memdev"));

    g_assert_cmpstr(all->device, ==, "memdev");
    g_assert_false(all->refused);
    g_assert_false(split->refused || disk->refused);
    g_assert_cmpuint(placed_at(split, "memdev")->weight_bytes, >, 0);
    g_assert_cmpuint(placed_at(split, "memdev")->n_slots + placed_at(split, "cpu")->n_slots, ==,
                     placed_at(all, "memdev")->n_slots);
    g_assert_cmpuint(placed_at(disk, "disk")->n_slots, >, 0);
    /* a budget only checks what a file says: it fits exactly, and not with a byte less */
    g_autoptr(DavitReport) fits_said = davit_report_new(), short_said = davit_report_new();
    g_autoptr(DavitPlan) fits = plan_with(&o, one, need, 0, fits_said);
    g_autoptr(DavitPlan) less = plan_with(&o, one, need - 1, 0, short_said);
    g_assert_false(fits->refused);
    g_assert_true(less->refused);
    g_assert_cmpuint(davit_report_first_error(short_said, DAVIT_RUN)->code, ==,
                     DAVIT_R_MEMORY_SHORT);
    g_assert_nonnull(
        strstr(davit_report_first_error(short_said, DAVIT_RUN)->message, " 1 bytes short"));
    g_unlink(one);
    g_unlink(two);
    g_unlink(three);
}

/* One fault of a map over two devices is one record; two names of a device are one too many. */
static void faults_are_told_once(const void *model)
{
    const DavitDeviceBudget twice[] = {{"memdev", 1u << 20}, {"memdev:0", 1u << 20}};
    const DavitPlanOptions options = {
        .purposes = DAVIT_RUN, .device_map = "auto", .budgets = twice, .n_budgets = 2};
    g_auto(Opened) o = open_model(model, plugins);
    g_autofree char *map = write_map("{\"model.layers.1.mlp\": 0, \"\": \"cpu\"}");
    g_autoptr(DavitReport) split_said = davit_report_new(), twice_said = davit_report_new();
    g_autoptr(DavitPlan) split = plan_with(&o, map, 0, 0, split_said);
    size_t n_errors = 0;

    g_assert_true(split->refused);
    for (size_t i = 0; i < davit_report_count(split_said); i++)
        n_errors += davit_report_get(split_said, i)->severity == DAVIT_ERROR;
    g_assert_cmpuint(n_errors, ==, 1);
    g_assert_cmpuint(davit_report_first_error(split_said, 0)->code, ==, DAVIT_R_AMBIGUOUS);
    g_assert_null(davit_plan_make(o.registry, o.checkpoint, o.settings, &options, twice_said));
    g_assert_cmpuint(davit_report_first_error(twice_said, 0)->code, ==, DAVIT_R_USAGE);
    g_unlink(map);
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"llama_mini", "qwen3_moe", "gemma3",
                                         "gguf_q4_k_m", "gguf_llama_llama3"};

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *path = g_strdup_printf("/memdev/plan/%s", models[i]);
        g_test_add_data_func(path, models[i], load_takes_what_the_plan_says);
    }
    g_test_add_data_func("/memdev/step/llama_mini", "llama_mini", steps_take_what_is_reckoned);
    g_test_add_data_func("/memdev/step/qwen3_moe", "qwen3_moe", steps_take_what_is_reckoned);
    g_test_add_data_func("/memdev/step/gguf_q4_k_m", "gguf_q4_k_m", steps_take_what_is_reckoned);
    g_test_add_data_func("/memdev/auto/gemma3", "gemma3", devices_are_filled_in_order);
    g_test_add_data_func("/memdev/auto/llama_mini", "llama_mini", devices_are_filled_in_order);
    g_test_add_data_func("/memdev/map/llama_mini", "llama_mini", map_of_a_file);
    g_test_add_data_func("/memdev/map/faults", "llama_mini", faults_are_told_once);
    g_test_add_data_func("/memdev/map/gguf", "gguf_llama_llama3", map_of_a_file);
    return g_test_run();
}
