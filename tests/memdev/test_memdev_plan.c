/* SPDX-License-Identifier: Apache-2.0
 * What a load takes on the device and sends to it is what the plan says, to the byte. */
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "exec/exec.h"
#include "memdev.h"
#include "plan/plan.h"

/* (borrowed, registry) The device that @plan goes to. */
static const memdev *device_of(const DavitPlan *plan, DavitReport *report)
{
    const void *iface;
    void *self = NULL;

    g_assert_nonnull(plan->device_kernels);
    g_assert_cmpint(davit_component_use(plan->device_kernels, &iface, &self, report), ==, DAVIT_OK);
    return self;
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
    const memdev *dev = device_of(plan, report);
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

int main(int argc, char **argv)
{
    static const char *const models[] = {"llama_mini", "qwen3_moe", "gemma3",
                                         "gguf_q4_k_m", "gguf_llama_llama3"};

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *path = g_strdup_printf("/memdev/plan/%s", models[i]);
        g_test_add_data_func(path, models[i], load_takes_what_the_plan_says);
    }
    return g_test_run();
}
