/* SPDX-License-Identifier: Apache-2.0
 * plugins.json and plugins.lock, alone and through the registry. */
#include "plugin/prefs.h"

#include <sys/stat.h>
#include <unistd.h>

#include "plugins/fixture.h"

static DavitRegistry *registry_with(const char *path, const char *config,
                                    DavitReport *report)
{
    const char *paths[] = {path, NULL};

    return davit_registry_open(&(DavitRegistryOptions){.plugin_paths = paths,
                                                       .only_paths = true,
                                                       .config_dir = config},
                               report);
}

static void write_prefs(const char *dir, const char *text)
{
    g_free(scratch_write(dir, "plugins.json", text, strlen(text)));
}

static void bad_files_are_errors_that_name_the_key(void)
{
    static const struct {
        const char *text, *subject;
    } cases[] = {
        {"{\"disable\": []}", "disable"},      {"{\"disabled\": \"x\"}", "disabled"},
        {"{\"ranks\": {\"a\": 1.5}}", "ranks"}, {"{\"ranks\": {\"a\": 9999999999}}", "ranks"},
        {"{\"trust\": [1]}", "trust"},          {"{\"kernel_ranks\": {\"a\": 1}}", "kernel_ranks"},
        {"[]", NULL},                           {"{", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *dir = scratch_new();
        g_autoptr(DavitReport) report = davit_report_new();
        const DavitRecord *r;

        write_prefs(dir, cases[i].text);
        davit_prefs_free(davit_prefs_open(dir, report));
        r = davit_report_first_error(report, 0);
        g_assert_nonnull(r);
        g_assert_cmpstr(davit_code_name(r->code), ==, "config-invalid");
        if (cases[i].subject)
            g_assert_cmpstr(r->subject, ==, cases[i].subject);
        scratch_free(dir);
    }
}

static void disable_and_enable_round_trip(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("good");

    for (int on = 0; on < 2; on++) {
        g_autoptr(DavitRegistry) registry = registry_with(path, dir, report);
        g_autoptr(DavitRegistry) after = NULL;

        g_assert_cmpint(davit_registry_disable(registry, "org.example.good", !on, report),
                        ==, DAVIT_OK);
        after = registry_with(path, dir, report);
        g_assert_cmpint(any_component(after, "org.example.good")->state, ==,
                        on ? DAVIT_STATE_OK : DAVIT_STATE_DISABLED);
    }
    scratch_free(dir);
}

static void bundle_id_disables_all_of_it(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("multi");
    g_autoptr(DavitRegistry) registry = NULL;
    const GPtrArray *all;

    write_prefs(dir, "{\"disabled\": [\"org.example.bundle.multi\"]}");
    registry = registry_with(path, dir, report);
    all = davit_registry_components(registry);
    g_assert_cmpuint(all->len, >, 1);
    for (size_t i = 0; i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);

        g_assert_cmpint(c->state, ==, DAVIT_STATE_DISABLED);
        g_assert_nonnull(strstr(record_of(c->records, "disabled")->found, "plugins.json"));
    }
    scratch_free(dir);
}

/* Each run has read the file before the other wrote. */
static void runs_at_the_same_time_lose_no_entry(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    DavitPrefs *one = davit_prefs_open(dir, report);
    DavitPrefs *two = davit_prefs_open(dir, report);
    DavitPrefs *after;
    const char *path;

    g_assert_cmpint(davit_prefs_set_disabled(one, "a.b", true, report), ==, DAVIT_OK);
    g_assert_cmpint(davit_prefs_set_kernel_ranks(two, "linear", json_pack("{s:i}", "a.b:c", 3),
                                                 report),
                    ==, DAVIT_OK);
    g_assert_cmpint(davit_prefs_set_disabled(one, "c.d", true, report), ==, DAVIT_OK);
    g_assert_cmpint(davit_prefs_set_disabled(two, "e.f", true, report), ==, DAVIT_OK);
    after = davit_prefs_open(dir, report);
    g_assert_nonnull(davit_prefs_disabled(after, "a.b", &path));
    g_assert_nonnull(davit_prefs_disabled(after, "c.d", &path));
    g_assert_nonnull(davit_prefs_disabled(after, "e.f", &path));
    g_assert_cmpint(davit_prefs_kernel_rank(after, "linear", "a.b", "c"), ==, 3);
    g_assert_false(davit_report_failed(report));
    davit_prefs_free(one);
    davit_prefs_free(two);
    davit_prefs_free(after);
    scratch_free(dir);
}

/* Opening a FIFO would wait for ever, reading a device would fill the memory. */
static void only_a_small_regular_file_is_read(void)
{
    for (int kind = 0; kind < 4; kind++) {
        char *dir = scratch_new();
        g_autofree char *path = g_build_filename(dir, "plugins.json", NULL);
        g_autoptr(DavitReport) report = davit_report_new();
        const int made = kind == 0   ? mkfifo(path, 0600)
                         : kind == 1 ? symlink("/dev/zero", path)
                         : kind == 2 ? mkdir(path, 0700)
                                     : symlink("plugins.json", path);
        DavitPrefs *prefs;

        g_assert_cmpint(made, ==, 0);
        prefs = davit_prefs_open(dir, report);
        g_assert_nonnull(record_of(report, "io-failed"));
        g_assert_true(davit_report_failed(report));
        davit_prefs_free(prefs);
        scratch_free(dir);
    }
}

static void glob_of_the_list_is_not_enabled_away(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitReport) none = davit_report_new();
    DavitPrefs *prefs;

    write_prefs(dir, "{\"disabled\": [\"org.example.*\"], \"ranks\": {\"a.b\": 3}}");
    prefs = davit_prefs_open(dir, none);
    g_assert_cmpint(davit_prefs_set_disabled(prefs, "org.example.good", false, report), ==,
                    DAVIT_E_USAGE);
    g_assert_nonnull(strstr(record_of(report, "disabled")->found, "org.example.*"));
    g_assert_cmpint(davit_prefs_rank(prefs, "a.b"), ==, 3); /* the rest is kept */
    davit_prefs_free(prefs);
    scratch_free(dir);
}

static void rank_of_the_user_comes_before_priority(void)
{
    char *config = scratch_new();
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const GPtrArray *formats;

    scratch_add(dir, "good", "a.so"); /* priority 60 */
    scratch_add(dir, "padded", "b.so");
    write_prefs(config, "{\"ranks\": {\"org.example.padded\": 1}}");
    registry = registry_with(dir, config, report);
    formats = davit_registry_kind(registry, DAVIT_KIND_ID_FORMAT);
    g_assert_cmpstr(((const DavitComponent *)g_ptr_array_index(formats, 0))->id, ==,
                    "org.example.padded");
    g_assert_nonnull(((const DavitComponent *)g_ptr_array_index(formats, 0))->conflict);
    scratch_free(dir);
    scratch_free(config);
}

/* ---- the lock file ---- */

static void expect_lock(const char *lock, const char *code)
{
    char *config = scratch_new();
    g_autofree char *path = fixture_path("good");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const void *iface;
    void *self;
    int32_t status;

    g_free(scratch_write(config, "plugins.lock", lock, strlen(lock)));
    registry = registry_with(path, config, report);
    status =
        davit_component_use(any_component(registry, "org.example.good"), &iface, &self,
                            report);
    if (code)
        g_assert_nonnull(record_of(report, code));
    else
        g_assert_cmpint(status, ==, DAVIT_OK);
    scratch_free(config);
}

static void lock_file_decides_by_id_and_hash(void)
{
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, bytes, n);
    g_autofree char *right =
        g_strdup_printf("{\"org.example.bundle.good\": \"%s\"}", sum);

    expect_lock("{}", "not-in-lock");
    expect_lock("{\"org.example.bundle.good\": \"0000\"}", "hash-mismatch");
    expect_lock(right, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prefs/bad", bad_files_are_errors_that_name_the_key);
    g_test_add_func("/prefs/disable", disable_and_enable_round_trip);
    g_test_add_func("/prefs/bundle", bundle_id_disables_all_of_it);
    g_test_add_func("/prefs/glob", glob_of_the_list_is_not_enabled_away);
    g_test_add_func("/prefs/same-time", runs_at_the_same_time_lose_no_entry);
    g_test_add_func("/prefs/regular", only_a_small_regular_file_is_read);
    g_test_add_func("/prefs/rank", rank_of_the_user_comes_before_priority);
    g_test_add_func("/prefs/lock", lock_file_decides_by_id_and_hash);
    return g_test_run();
}
