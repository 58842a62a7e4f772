/* SPDX-License-Identifier: Apache-2.0
 * Gate 5: plugins that end, keep or disturb the process that runs them cost the helper, and
 * are remembered. */
#include "plugin/registry.h"

#include <fcntl.h>
#include <stdio.h>

#include "plugins/fixture.h"

/* Try the component org.example.@name of fixture @name. */
static int32_t use_fixture(DavitRegistry *registry, const char *name, DavitReport *report)
{
    g_autofree char *id = g_strdup_printf("org.example.%s", name);
    DavitComponent *c = any_component(registry, id);
    const void *iface;
    void *self;

    g_assert_nonnull(c);
    return davit_component_use(c, &iface, &self, report);
}

/* ---- one deed each ---- */

static const struct {
    const char *fixture, *code, *found;
    unsigned step_s; /* 0 = the usual */
} deeds[] = {
    {"ctor_segv", "crashed", "SIGSEGV during dlopen (constructor)", 0},
    {"ctor_trap", "crashed", "SIGILL during dlopen (constructor)", 0},
    {"ctor_bus", "crashed", "SIGBUS during dlopen (constructor)", 0},
    {"ctor_fpe", "crashed", "SIGFPE during dlopen (constructor)", 0},
    {"ctor_abort", "crashed", "SIGABRT during dlopen (constructor)", 0},
    {"ctor_killed", "out-of-memory", "SIGKILL during dlopen (constructor)", 0},
    {"ctor_hang", "timeout", "no end of dlopen after 1 s", 1},
    {"ctor_exit0", "exited-early", "exit status 0 during dlopen", 0},
    {"ctor_exit7", "exited-early", "exit status 7 during dlopen", 0},
    {"ctor_bad_report", "bad-report", "after dlopen", 0},
    {"ctor_false_report", "bad-report", "after dlopen", 0},
    {"entry_segv", "crashed", "SIGSEGV during entry", 0},
    {"entry_burn", "timeout", "no end of entry after 1 s", 1},
    {"entry_exit", "exited-early", "exit status 1 during entry", 0},
    {"start_segv", "crashed", "SIGSEGV during start", 0},
    {"create_segv", "crashed", "SIGSEGV during create", 0},
    {"probe_segv", "crashed", "SIGSEGV during probe", 0},
    {"destroy_segv", "crashed", "SIGSEGV during destroy", 0},
    {"quiesce_segv", "crashed", "SIGSEGV during quiesce", 0},
    {"quiesce_hang", "timeout", "no end of quiesce after 1 s", 1},
};

static void deeds_cost_the_helper_only(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(deeds); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *path = fixture_path(deeds[i].fixture);
        const char *paths[] = {path, NULL};
        g_autoptr(DavitRegistry) registry =
            davit_registry_open(&(DavitRegistryOptions){.plugin_paths = paths,
                                                        .only_paths = true,
                                                        .helper = DAVIT_HELPER,
                                                        .helper_step_s = deeds[i].step_s},
                                report);
        const DavitRecord *r;

        g_test_message("%s", deeds[i].fixture);
        g_assert_cmpint(use_fixture(registry, deeds[i].fixture, report), <, 0);
        show_records(report);
        r = record_of(report, deeds[i].code);
        g_assert_nonnull(r);
        g_assert_true(g_str_has_prefix(r->found, deeds[i].found));
        g_assert_cmpstr(r->stage, ==, "probe-helper");
        g_assert_cmpstr(r->subject, ==, path);
        g_assert_nonnull(r->hint);
    }
}

/* ---- what does not end it ---- */

static void noise_is_kept_and_is_no_result(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("ctor_prints");
    g_autoptr(DavitRegistry) registry = registry_probing(path, "", report);
    const DavitPluginFile *file = g_ptr_array_index(davit_registry_files(registry), 0);
    const char *output;

    g_assert_cmpint(davit_registry_retry(
                        registry,
                        g_ptr_array_index(davit_registry_files(registry), 0), report),
                    ==, DAVIT_OK);
    g_assert_cmpstr(json_string_value(json_object_get(file->probe, "outcome")), ==, "ok");
    output = json_string_value(json_object_get(file->probe, "output"));
    g_assert_nonnull(strstr(output, "noise"));
    g_assert_null(strchr(output, '\033')); /* fit for a terminal */
    g_assert_cmpuint(strlen(output), <=, 1100);
}

static void child_left_behind_does_not_hold_us(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("ctor_child");
    g_autoptr(DavitRegistry) registry = registry_probing(path, "", report);

    g_assert_cmpint(davit_registry_retry(
                        registry,
                        g_ptr_array_index(davit_registry_files(registry), 0), report),
                    ==, DAVIT_OK);
}

static void refusals_of_the_helper_are_the_plugins_own(void)
{
    static const struct {
        const char *fixture, *code, *stage;
    } cases[] = {{"undef", "undefined-symbol", "dlopen"},
                 {"bad_magic", "bad-magic", "validate"},
                 {"no_license", "missing-field", "validate"},
                 {"entry_refuse", "driver-missing", "entry"},
                 {"start_fail", "driver-missing", "start"},
                 {"no_reason", "no-reason", "start"}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *path = fixture_path(cases[i].fixture);
        g_autoptr(DavitRegistry) registry = registry_probing(path, "", report);
        const DavitRecord *r;

        g_test_message("%s", cases[i].fixture);
        g_assert_cmpint(use_fixture(registry, cases[i].fixture, report), <, 0);
        r = record_of(report, cases[i].code);
        g_assert_nonnull(r);
        g_assert_cmpstr(r->stage, ==, cases[i].stage);
        g_assert_cmpint(r->severity, ==, DAVIT_ERROR);
    }
}

static void good_plugin_passes_and_is_remembered(void)
{
    char *cache = scratch_new();
    g_autofree char *path = fixture_path("good");

    for (int round = 0; round < 2; round++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);
        const DavitPluginFile *file =
            g_ptr_array_index(davit_registry_files(registry), 0);

        g_assert_true((file->probe != NULL) == (round == 1));
        g_assert_cmpint(use_fixture(registry, "good", report), ==, DAVIT_OK);
        g_assert_cmpint(json_integer_value(json_object_get(file->probe, "count")), ==, 1);
    }
    scratch_free(cache);
}

/* ---- quarantine ---- */

static DavitState state_of(const char *path, const char *name, const char *cache,
                           DavitReport *report)
{
    g_autofree char *id = g_strdup_printf("org.example.%s", name);
    g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);

    return any_component(registry, id)->state;
}

static void crash_once(const char *path, const char *name, const char *cache)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);

    g_assert_cmpint(use_fixture(registry, name, report), <, 0);
}

static void crash_is_quarantined_with_its_cause(void)
{
    char *cache = scratch_new();
    g_autofree char *path = fixture_path("entry_segv");
    g_autoptr(DavitReport) report = davit_report_new();

    crash_once(path, "entry_segv", cache);
    g_assert_cmpint(state_of(path, "entry_segv", cache, report), ==,
                    DAVIT_STATE_QUARANTINED);
    g_assert_nonnull(strstr(record_of(report, "crashed")->found, "SIGSEGV during entry"));
    g_assert_nonnull(strstr(record_of(report, "quarantined")->hint, "plugin retry"));
    scratch_free(cache);
}

static void refusals_of_the_machine_are_never_quarantined(void)
{
    char *cache = scratch_new();
    g_autofree char *path = fixture_path("start_fail");
    g_autoptr(DavitReport) report = davit_report_new();

    for (int i = 0; i < 2; i++) {
        crash_once(path, "start_fail", cache);
        g_assert_cmpint(state_of(path, "start_fail", cache, report), ==, DAVIT_STATE_OK);
    }
    scratch_free(cache);
}

static void refusals_of_the_file_are_settled(void)
{
    char *cache = scratch_new();
    g_autofree char *path = fixture_path("bad_magic");
    g_autoptr(DavitReport) report = davit_report_new();

    crash_once(path, "bad_magic", cache);
    g_assert_cmpint(state_of(path, "bad_magic", cache, report), ==, DAVIT_STATE_REFUSED);
    g_assert_nonnull(record_of(report, "bad-magic"));
    scratch_free(cache);
}

static void mended_file_leaves_quarantine(void)
{
    char *cache = scratch_new();
    char *dir = scratch_new();
    g_autofree char *path = scratch_copy(dir, "ctor_segv", "p.so");
    g_autoptr(DavitReport) report = davit_report_new();
    struct stat before;
    struct timespec times[2];
    size_t n, n_good;
    g_autofree uint8_t *good = fixture_bytes("ctor_mark", &n_good);
    g_autofree uint8_t *bytes = NULL;

    crash_once(path, "ctor_segv", cache);
    g_assert_cmpint(state_of(path, "ctor_segv", cache, report), ==,
                    DAVIT_STATE_QUARANTINED);
    /* in place, same size, same mtime: the time of the change itself tells */
    g_assert_cmpint(stat(path, &before), ==, 0);
    n = (size_t)before.st_size;
    bytes = g_malloc0(MAX(n, n_good));
    memcpy(bytes, good, n_good);
    {
        FILE *f = fopen(path, "r+");

        g_assert_nonnull(f);
        g_assert_cmpuint(fwrite(bytes, 1, n, f), ==, n);
        g_assert_cmpint(fclose(f), ==, 0);
    }
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
    {
        g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);
        const DavitPluginFile *file =
            g_ptr_array_index(davit_registry_files(registry), 0);

        g_assert_null(file->probe);
        g_assert_cmpint(file->state, !=, DAVIT_STATE_QUARANTINED);
    }
    scratch_free(cache);
    scratch_free(dir);
}

static void retry_and_forget_look_again(void)
{
    char *cache = scratch_new();
    g_autofree char *path = fixture_path("ctor_abort");
    g_autoptr(DavitReport) report = davit_report_new();

    crash_once(path, "ctor_abort", cache);
    {
        g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);
        DavitPluginFile *file = g_ptr_array_index(davit_registry_files(registry), 0);

        g_assert_cmpint(davit_registry_retry(registry, file, report), <, 0);
        g_assert_cmpint(json_integer_value(json_object_get(file->probe, "count")), ==, 2);
    }
    {
        g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);

        davit_registry_forget(registry,
                              g_ptr_array_index(davit_registry_files(registry), 0));
    }
    g_assert_cmpint(state_of(path, "ctor_abort", cache, report), ==, DAVIT_STATE_OK);
    scratch_free(cache);
}

/* ---- listing runs nothing ---- */

static void listing_runs_no_code(void)
{
    char *dir = scratch_new();
    char *cache = scratch_new();
    g_autofree char *mark = g_build_filename(cache, "mark", NULL);
    g_autofree char *path = scratch_copy(dir, "ctor_mark", "p.so");
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_true(g_setenv("DAVIT_TEST_MARK", mark, TRUE));
    for (int i = 0; i < 3; i++) /* cold and warm cache */
        g_assert_cmpint(state_of(path, "ctor_mark", cache, report), ==, DAVIT_STATE_OK);
    g_assert_false(g_file_test(mark, G_FILE_TEST_EXISTS));
    {
        g_autoptr(DavitRegistry) registry = registry_probing(path, cache, report);

        g_assert_cmpint(use_fixture(registry, "ctor_mark", report), ==, DAVIT_OK);
    }
    g_assert_true(g_file_test(mark, G_FILE_TEST_EXISTS)); /* the mark works */
    g_unsetenv("DAVIT_TEST_MARK");
    scratch_free(cache);
    scratch_free(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/helper/deeds", deeds_cost_the_helper_only);
    g_test_add_func("/helper/noise", noise_is_kept_and_is_no_result);
    g_test_add_func("/helper/child", child_left_behind_does_not_hold_us);
    g_test_add_func("/helper/refusals", refusals_of_the_helper_are_the_plugins_own);
    g_test_add_func("/helper/good", good_plugin_passes_and_is_remembered);
    g_test_add_func("/helper/quarantine", crash_is_quarantined_with_its_cause);
    g_test_add_func("/helper/environment", refusals_of_the_machine_are_never_quarantined);
    g_test_add_func("/helper/settled", refusals_of_the_file_are_settled);
    g_test_add_func("/helper/mended", mended_file_leaves_quarantine);
    g_test_add_func("/helper/retry", retry_and_forget_look_again);
    g_test_add_func("/helper/listing", listing_runs_no_code);
    return g_test_run();
}
