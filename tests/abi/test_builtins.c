/* SPDX-License-Identifier: Apache-2.0
 * Every plugin that davit ships goes through the door of strangers: listed without
 * findings, loaded and created without side effects, and gone again. */
#include "plugin/registry.h"

static DavitRegistry *open_builtins(DavitReport *report)
{
    return davit_registry_open(
        &(DavitRegistryOptions){.builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true},
        report);
}

static void show(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        g_autofree char *s = davit_record_sentence(davit_report_get(report, i));

        g_test_message("%s", s);
    }
}

static bool is_empty(const DavitRegistry *registry)
{
    if (davit_registry_files(registry)->len > 0)
        return false;
    g_test_skip("no plugin is built in " DAVIT_PLUGIN_DIR);
    return true;
}

static void files_are_listed_without_findings(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = open_builtins(report);
    const GPtrArray *files = davit_registry_files(registry);

    if (is_empty(registry))
        return;
    for (size_t i = 0; i < files->len; i++) {
        const DavitPluginFile *file = g_ptr_array_index(files, i);

        g_test_message("%s: %s", file->path, davit_state_name(file->state));
        show(file->records);
        g_assert_true(file->is_plugin);
        g_assert_cmpint(file->state, ==, DAVIT_STATE_OK);
        g_assert_cmpuint(davit_report_count(file->records), ==, 0);
        g_assert_cmpuint(file->exports->len, ==, 1);
        g_assert_cmpstr(file->tier, ==, "builtin");
    }
    show(report);
    g_assert_cmpuint(davit_report_count(report), ==, 0);
}

static void components_load_without_side_effects(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = open_builtins(report);
    const GPtrArray *components = davit_registry_components(registry);

    if (is_empty(registry))
        return;
    for (size_t i = 0; i < components->len; i++) {
        DavitComponent *c = g_ptr_array_index(components, i);
        const void *iface = NULL;
        void *self = NULL;

        g_test_message("%s: %s", c->id, davit_state_name(c->state));
        if (davit_component_use(c, &iface, &self, report)) {
            show(report);
            g_test_fail();
            continue;
        }
        show(c->file->records);
        g_assert_nonnull(iface);
        g_assert_cmpuint(davit_report_count(c->file->records), ==, 0);
    }
}

/* Ids are davit's own, and none shadows another. */
static void ids_are_davits_own(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = open_builtins(report);
    const GPtrArray *components = davit_registry_components(registry);

    if (is_empty(registry))
        return;
    for (size_t i = 0; i < components->len; i++) {
        const DavitComponent *c = g_ptr_array_index(components, i);

        g_test_message("%s", c->id);
        g_assert_true(g_str_has_prefix(c->id, "org.davit."));
        g_assert_nonnull(davit_registry_find(registry, c->id));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/builtins/listed", files_are_listed_without_findings);
    g_test_add_func("/builtins/loaded", components_load_without_side_effects);
    g_test_add_func("/builtins/ids", ids_are_davits_own);
    return g_test_run();
}
