/* SPDX-License-Identifier: Apache-2.0
 * Golden models for the tests of devices. */
#include "opened.h"

Opened open_model(const char *model, const char *const *plugins)
{
    const DavitRegistryOptions where = {
        .builtin_dir = DAVIT_PLUGIN_DIR, .plugin_paths = plugins, .only_paths = true};
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models", model, NULL);
    Opened o = {.report = davit_report_new()};

    o.registry = davit_registry_open(&where, o.report);
    o.checkpoint = davit_checkpoint_open(o.registry, path, DAVIT_RUN, o.report);
    if (!o.checkpoint)
        fail_with(o.report);
    o.settings = davit_settings_open(o.checkpoint, o.report);
    if (!o.settings)
        fail_with(o.report);
    return o;
}

void opened_clear(Opened *o)
{
    davit_settings_free(o->settings);
    davit_checkpoint_free(o->checkpoint);
    davit_registry_free(o->registry);
    davit_report_free(o->report);
}

void fail_with(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        g_autofree char *text = davit_record_sentence(davit_report_get(report, i));

        g_test_message("%s", text);
    }
    g_assert_not_reached();
}
