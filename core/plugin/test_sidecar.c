/* SPDX-License-Identifier: Apache-2.0
 * Files beside plugins: settings, sums, whole manifests. */
#include "plugin/sidecar.h"

#include "plugins/fixture.h"

static const char bare_manifest[] =
    "{\"schema\": \"davit-plugin/1\", \"id\": \"org.example.bundle.bare\", \"name\": \"Bare\","
    " \"vendor\": \"\", \"version\": \"1.0.0\", \"license\": \"MIT\", \"abi_major\": 1,"
    " \"abi_minor\": 0, \"min_host_minor\": 0, \"build\": \"\", \"components\": ["
    "{\"id\": \"org.example.bare\", \"kind\": \"format\", \"kind_abi\": \"1.0\","
    " \"priority\": 50, \"capability\": \"%s\", \"purposes\": \"DAVIT_INSPECT\"}]}";

/* (owned) a registry over copy a.so of @fixture with @text beside it. */
static DavitRegistry *registry_beside(const char *dir, const char *fixture, const char *text,
                                      DavitReport *report)
{
    scratch_add(dir, fixture, "a.so");
    g_free(scratch_write(dir, "a.so.davit.json", (const uint8_t *)text, strlen(text)));
    return registry_over(dir, report);
}

static void a_file_beside_sets_what_it_may(void)
{
    static const struct {
        const char *text, *state, *code;
    } cases[] = {
        {"{\"priority\": 7, \"comment\": \"slow\"}", "ok", NULL},
        {"{\"disabled\": true}", "disabled", "disabled"},
        {"{\"disabled\": 1}", "refused", "bad-manifest"},
        {"{\"id\": \"org.example.other\"}", "refused", "bad-manifest"},
        {"{\"priority\": 101}", "refused", "bad-manifest"},
        {"{\"sha256\": \"12\"}", "refused", "bad-manifest"},
        {"nonsense", "refused", "bad-manifest"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *dir = scratch_new();
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry =
            registry_beside(dir, "good", cases[i].text, report);
        const DavitPluginFile *file = g_ptr_array_index(davit_registry_files(registry), 0);
        const DavitComponent *c = any_component(registry, "org.example.good");

        g_test_message("%s", cases[i].text);
        show_records(file->records);
        g_assert_cmpstr(davit_state_name(c ? c->state : file->state), ==, cases[i].state);
        if (cases[i].code)
            g_assert_true(record_of(file->records, cases[i].code) ||
                          (c && record_of(c->records, cases[i].code)));
        else
            g_assert_cmpint(c->priority, ==, 7);
        scratch_free(dir);
    }
}

static void a_sum_beside_holds_the_file(void)
{
    char *dir = scratch_new();
    g_autofree char *text =
        g_strdup_printf("{\"sha256\": \"%064d\"}", 7);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_beside(dir, "good", text, report);
    DavitComponent *c = davit_registry_find(registry, "org.example.good");
    const void *iface;
    void *self;

    g_assert_nonnull(c);
    g_assert_cmpint(davit_component_use(c, &iface, &self, report), <, 0);
    g_assert_nonnull(record_of(report, "hash-mismatch"));
    scratch_free(dir);
}

static void a_manifest_beside_serves_a_file_without(void)
{
    static const char *const claims[] = {"ext=bare", "ext=other"};

    for (size_t i = 0; i < G_N_ELEMENTS(claims); i++) {
        char *dir = scratch_new();
        g_autofree char *text = g_strdup_printf(bare_manifest, claims[i]);
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry = registry_beside(dir, "bare", text, report);
        DavitComponent *c = davit_registry_find(registry, "org.example.bare");
        const void *iface;
        void *self;

        show_records(report);
        g_assert_nonnull(c);
        g_assert_cmpint(davit_component_use(c, &iface, &self, report) == DAVIT_OK, ==, i == 0);
        g_assert_cmpint(record_of(report, "manifest-mismatch") != NULL, ==, i == 1);
        scratch_free(dir);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_unsetenv("DAVIT_PLUGIN_PATH");
    g_test_add_func("/sidecar/settings", a_file_beside_sets_what_it_may);
    g_test_add_func("/sidecar/sum", a_sum_beside_holds_the_file);
    g_test_add_func("/sidecar/manifest", a_manifest_beside_serves_a_file_without);
    return g_test_run();
}
