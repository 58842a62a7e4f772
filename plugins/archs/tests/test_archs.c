/* SPDX-License-Identifier: Apache-2.0
 * Tables of every architecture plugin: symbols, shapes, names (README.md). */
#include <string.h>

#include <davit/help/graph.h>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "config/expr.h"
#include "plan/plan.h"
#include "plugin/registry.h"

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models"

static DavitRegistry *registry;

/* Every arch component with its table. */
static const davit_arch_iface *use_arch(DavitComponent *component)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const davit_arch_iface *iface = NULL;
    void *self = NULL;

    if (davit_component_use(component, (const void **)&iface, &self, report))
        g_error("%s: %s", component->id,
                davit_record_sentence(davit_report_first_error(report, 0)));
    return iface;
}

static const davit_slot_row *slot_row(const davit_arch_iface *arch, size_t n)
{
    return (const davit_slot_row *)((const char *)arch->slots + n * arch->slot_stride);
}

static const davit_config_row *config_row(const davit_arch_iface *arch, size_t n)
{
    return (const davit_config_row *)((const char *)arch->config +
                                      n * arch->config_stride);
}

/* ---- symbols ---- */

/* 1 for every symbol of the table that an expression may use. */
static bool any_symbol(void *ctx, const char *sym, int64_t *out)
{
    const davit_arch_iface *arch = ctx;

    *out = 1;
    if (strcmp(sym, "i") == 0)
        return true;
    for (size_t n = 0; config_row(arch, n)->sym; n++) {
        const davit_config_row *row = config_row(arch, n);

        if (strcmp(row->sym, sym) == 0)
            return strncmp(row->type, "float", 5) != 0 &&
                   (strncmp(row->type, "str", 3) != 0 || row->bound);
    }
    return false;
}

static void check_expressions(const davit_arch_iface *arch, const char *id,
                              const char *text)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitScope scope = {any_symbol, (void *)(uintptr_t)arch};
    int64_t out[8];

    if (davit_expr_list(text, &scope, id, out, G_N_ELEMENTS(out), report) < 0)
        g_error("%s: %s", id, davit_record_sentence(davit_report_get(report, 0)));
}

/* Arguments of every transform: "a#rows(0,nh*hd)|b#T#perm(nh)". */
static void check_transforms(const davit_arch_iface *arch, const char *id,
                             const char *text)
{
    const char *at = text ? text : "";

    while ((at = strchr(at, '(')) != NULL) {
        const char *end = strchr(at, ')');
        g_autofree char *args = NULL;

        g_assert_nonnull(end);
        args = g_strndup(at + 1, (size_t)(end - at - 1));
        check_expressions(arch, id, args);
        at = end;
    }
}

static void symbols_of_slots_are_defined(void)
{
    const GPtrArray *archs = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);

    g_assert_cmpuint(archs->len, >=, 7);
    for (guint a = 0; a < archs->len; a++) {
        const davit_arch_iface *arch = use_arch(g_ptr_array_index(archs, a));

        for (size_t n = 0; slot_row(arch, n)->id; n++) {
            const davit_slot_row *row = slot_row(arch, n);

            check_expressions(arch, row->id, row->shape);
            if (row->when)
                check_expressions(arch, row->id, row->when);
            check_transforms(arch, row->id, row->hf);
            check_transforms(arch, row->id, row->gguf);
            g_assert_true(row->tp && row->cls && row->scope);
        }
    }
}

static void symbols_are_unique_and_core_finds_its_own(void)
{
    const GPtrArray *archs = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);

    for (guint a = 0; a < archs->len; a++) {
        DavitComponent *component = g_ptr_array_index(archs, a);
        const davit_arch_iface *arch = use_arch(component);
        g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
        static const char *const own[] = {"V",   "H",  "L",       "nh",
                                          "nkv", "hd", "max_pos", "tie"};

        for (size_t n = 0; config_row(arch, n)->sym; n++)
            if (!g_hash_table_add(seen, (char *)(uintptr_t)config_row(arch, n)->sym))
                g_error("%s: symbol %s twice", component->id, config_row(arch, n)->sym);
        for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
            if (!g_hash_table_contains(seen, own[i]))
                g_error("%s: no symbol %s", component->id, own[i]);
    }
}

/* Names that two plugins claim would make the choice depend on their order. */
static void no_name_is_claimed_twice(void)
{
    const GPtrArray *archs = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint a = 0; a < archs->len; a++) {
        const davit_arch_iface *arch = use_arch(g_ptr_array_index(archs, a));
        const char *const lists[] = {arch->hf, arch->model_types, arch->gguf};

        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
            g_auto(GStrv) names = g_strsplit(lists[i] ? lists[i] : "", "|", -1);

            for (size_t n = 0; names[n]; n++)
                g_assert_true(
                    g_hash_table_add(seen, g_strdup_printf("%zu %s", i, names[n])));
        }
    }
}

/* ---- the tiny models ---- */

static bool has_link(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_SYMLINK))
            return true;
    }
    return false;
}

/* Does some plugin claim the model by name? */
static bool is_claimed(const DavitSettings *settings)
{
    const GPtrArray *archs = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);
    const char *const *hf = davit_settings_hf_names(settings);

    for (guint a = 0; a < archs->len; a++) {
        const davit_arch_iface *arch = use_arch(g_ptr_array_index(archs, a));

        if (davit_settings_is_gguf(settings) ||
            (hf[0] && arch->hf && strstr(arch->hf, hf[0]) != NULL))
            return true;
    }
    return false;
}

static bool check_model(const char *path)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitCheckpoint *checkpoint =
        davit_checkpoint_open(registry, path, DAVIT_MAP, report);
    g_autoptr(DavitSettings) settings =
        checkpoint ? davit_settings_open(checkpoint, report) : NULL;
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    bool claimed = settings && is_claimed(settings);
    DavitPlan *plan = NULL;

    if (!settings)
        g_error("%s: %s", path,
                davit_record_sentence(davit_report_first_error(report, 0)));
    if (claimed) {
        plan = davit_plan_make(registry, checkpoint, settings, &options, report);
        if (!plan)
            g_error("%s: %s", path,
                    davit_record_sentence(davit_report_first_error(report, 0)));
        g_assert_cmpuint(plan->n_slots, >, 0);
    }
    davit_plan_free(plan);
    g_clear_pointer(&settings, davit_settings_free);
    davit_checkpoint_free(checkpoint);
    return claimed;
}

static void every_tensor_of_the_tiny_models_has_its_slot(void)
{
    g_autoptr(GDir) dir = g_dir_open(MODELS, 0, NULL);
    size_t n_models = 0;
    const char *name;

    if (!dir) {
        g_test_skip("tests/golden/models is not there");
        return;
    }
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *folder = g_build_filename(MODELS, name, NULL);
        g_autofree char *gguf = g_build_filename(folder, "model.gguf", NULL);
        g_autofree char *weights = g_build_filename(folder, "model.safetensors", NULL);

        /* weights of a linked folder are those of the folder it links to */
        if (has_link(folder))
            continue;
        if (g_file_test(gguf, G_FILE_TEST_EXISTS))
            n_models += check_model(gguf);
        else if (g_file_test(weights, G_FILE_TEST_EXISTS))
            n_models += check_model(folder);
    }
    g_test_message("%zu models", n_models);
    g_assert_cmpuint(n_models, >, 20);
}

/* ---- a host that lacks a suite ---- */

static const void *no_suite(void *ctx, const char *name, uint32_t major, uint32_t minor)
{
    (void)ctx;
    (void)name;
    (void)major;
    (void)minor;
    return NULL;
}

static void host_without_config_suite(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const davit_host host = {.struct_size = sizeof host, .suite = no_suite};
    const davit_create_in in = {
        .struct_size = sizeof in, .host = &host, .component = "org.example.arch"};
    DavitSink sink;
    void *self = NULL;

    davit_sink_init(&sink, report, "org.example.arch", "create");
    g_assert_cmpint(
        davit_sink_done(&sink, davit_arch_create(NULL, &in, &self, &sink.abi)), ==,
        DAVIT_E_UNSUPPORTED);
    g_assert_null(self);
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    g_assert_cmpuint(davit_report_get(report, 0)->code, ==, DAVIT_R_NEEDS_UNMET);
    g_assert_cmpstr(davit_report_get(report, 0)->expected, ==, "suite config 1.0");
}

int main(int argc, char **argv)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRegistryOptions options = {.builtin_dir = DAVIT_PLUGIN_DIR};
    int rc;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/archs/host_without_config_suite", host_without_config_suite);
    registry = davit_registry_open(&options, report);
    g_test_add_func("/archs/symbols_of_slots_are_defined", symbols_of_slots_are_defined);
    g_test_add_func("/archs/symbols_are_unique_and_core_finds_its_own",
                    symbols_are_unique_and_core_finds_its_own);
    g_test_add_func("/archs/no_name_is_claimed_twice", no_name_is_claimed_twice);
    g_test_add_func("/archs/every_tensor_of_the_tiny_models_has_its_slot",
                    every_tensor_of_the_tiny_models_has_its_slot);
    rc = g_test_run();
    davit_registry_free(registry);
    return rc;
}
