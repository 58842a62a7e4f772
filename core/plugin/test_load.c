/* SPDX-License-Identifier: Apache-2.0
 * Gates 5 to 8 with plugins that are wrong in one way each. */
#include "plugin/registry.h"

#include <locale.h>
#include <signal.h>

#include "plugins/fixture.h"

#define FORMAT_ID(name) "org.example." name

/* Use component @id of the file @path. Records go to @report. */
static int32_t use_from(const char *path, const char *id, DavitRegistry **out_registry,
                        const davit_format_iface **out_iface, DavitReport *report)
{
    const void *iface = NULL;
    void *self = NULL;
    DavitComponent *c;
    int32_t status;

    *out_registry = registry_over(path, report);
    c = davit_registry_find(*out_registry, id);
    g_assert_nonnull(c);
    status = davit_component_use(c, &iface, &self, report);
    *out_iface = iface;
    return status;
}

/* ---- one fault each ---- */

static void broken_plugins_are_refused_by_code(void)
{
    static const struct {
        const char *fixture, *code, *stage, *subject;
    } cases[] = {
        {"undef", "undefined-symbol", "dlopen", "nobody_has_this"},
        {"undef_core", "undefined-symbol", "dlopen", "davit_tensor_find"},
        {"entry_null", "no-reason", "entry", NULL},
        {"entry_refuse", "driver-missing", "entry", "libtoy-driver.so"},
        {"bad_magic", "bad-magic", "validate", "bundle: magic"},
        {"short_size", "bad-size", "validate", "bundle: struct_size"},
        {"huge_size", "bad-size", "validate", "bundle: struct_size"},
        {"zero_abi", "missing-field", "validate", "bundle: abi_major"},
        {"no_license", "missing-field", "validate", "bundle: license"},
        {"no_list", "missing-field", "validate", "bundle: components"},
        {"note_mismatch", "manifest-mismatch", "validate", "bundle: version"},
        {"absent_component", "manifest-mismatch", "validate",
         "org.example.absent_component: components"},
        {"stray_component", "manifest-mismatch", "validate", "bundle: components"},
        {"null_id", "missing-field", "validate", "bundle: component 0.id"},
        {"tiny_component", "bad-size", "validate", "bundle: component 0"},
        {"short_component", "bad-size", "validate",
         "org.example.short_component: struct_size"},
        {"capability_mismatch", "manifest-mismatch", "validate",
         "org.example.capability_mismatch: capability"},
        {"purposes_mismatch", "manifest-mismatch", "validate",
         "org.example.purposes_mismatch: purposes"},
        {"kind_floor", "kind-version", "validate", "org.example.kind_floor"},
        {"no_probe", "missing-field", "validate", "org.example.no_probe: probe"},
        {"shape_cut_json", "json-invalid", "validate",
         "org.example.shape_cut_json: shapes[1].pre_tokenizer"},
        {"shape_no_object", "json-invalid", "validate",
         "org.example.shape_no_object: shapes[1].pre_tokenizer"},
        {"shape_no_name", "missing-field", "validate",
         "org.example.shape_no_name: shapes[1].name"},
        {"shape_no_facts", "missing-field", "validate",
         "org.example.shape_no_facts: shapes[1].gguf_facts"},
        {"no_iface", "missing-field", "validate", "org.example.no_iface: iface"},
        {"no_destroy", "missing-field", "validate", "org.example.no_destroy: destroy"},
        {"null_slot", "missing-field", "validate", "org.example.null_slot: iface.open"},
        {"short_iface", "bad-size", "validate",
         "org.example.short_iface: iface.struct_size"},
        {"start_fail", "driver-missing", "start", "libtoy-driver.so"},
        {"start_fail", "start-failed", "start", "org.example.bundle.start_fail"},
        {"no_reason", "no-reason", "start", NULL},
        {"create_fail", "driver-missing", "create", "libtoy-driver.so"},
        {"create_fail", "start-failed", "create", "org.example.create_fail"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry = NULL;
        g_autofree char *path = fixture_path(cases[i].fixture);
        g_autofree char *id = g_strdup_printf("org.example.%s", cases[i].fixture);
        const davit_format_iface *iface = NULL;
        const DavitRecord *r;

        g_test_message("%s", cases[i].fixture);
        g_assert_cmpint(use_from(path, id, &registry, &iface, report), <, 0);
        show_records(report);
        r = record_of(report, cases[i].code);
        g_assert_nonnull(r);
        g_assert_cmpstr(r->stage, ==, cases[i].stage);
        if (cases[i].subject)
            g_assert_cmpstr(r->subject, ==, cases[i].subject);
        g_assert_cmpstr(davit_state_name(any_component(registry, id)->state), ==,
                        "refused");
        g_assert_null(davit_registry_find(registry, id));
    }
}

static void what_the_machine_lacks_is_said_by_create(void)
{
    static const struct {
        const char *id, *code, *found;
    } cases[] = {{"org.example.environment.cpu", "cpu-unsupported", "none"},
                 {"org.example.environment.driver", "driver-too-old", "12.2"},
                 {"org.example.environment.device", "device-arch", "sm_75"},
                 {"org.example.environment.lost", "device-lost", "none"}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry = NULL;
        g_autofree char *path = fixture_path("environment");
        const davit_format_iface *iface;

        g_assert_cmpint(use_from(path, cases[i].id, &registry, &iface, report), <, 0);
        g_assert_cmpstr(record_of(report, cases[i].code)->found, ==, cases[i].found);
        g_assert_cmpstr(record_of(report, cases[i].code)->who, ==, cases[i].id);
    }
}

static void fast_math_startup_is_undone(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("fast_startup");
    const davit_format_iface *iface;
    volatile float tiny = 1e-40f;

    g_assert_cmpint(use_from(path, FORMAT_ID("good"), &registry, &iface, report), ==,
                    DAVIT_OK);
    g_assert_true(tiny * 2.0f != 0.0f);
}

static void core_symbol_gets_the_hint_about_suites(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("undef_core");
    const davit_format_iface *iface;

    g_assert_cmpint(use_from(path, FORMAT_ID("undef_core"), &registry, &iface, report), <,
                    0);
    g_assert_nonnull(strstr(record_of(report, "undefined-symbol")->hint, "suite"));
}

static void second_try_gives_the_same_answer(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitReport) again = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("start_fail");
    const davit_format_iface *iface = NULL;
    void *self = NULL;
    DavitComponent *c;

    g_assert_cmpint(use_from(path, FORMAT_ID("start_fail"), &registry, &iface, report),
                    ==, DAVIT_E_IO);
    c = any_component(registry, FORMAT_ID("start_fail"));
    g_assert_cmpint(davit_component_use(c, (const void **)&iface, &self, again), ==,
                    DAVIT_E_IO);
    g_assert_cmpuint(davit_report_count(again), ==, davit_report_count(report));
}

/* ---- healthy ---- */

static void good_plugin_answers(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("good");
    const davit_format_iface *iface = NULL;
    davit_verdict verdict = {.struct_size = sizeof verdict, .verdict = 99};
    davit_probe_in in = {.struct_size = sizeof in, .name = "x.toy"};
    DavitProbeFn probe;

    g_assert_cmpint(use_from(path, FORMAT_ID("good"), &registry, &iface, report), ==,
                    DAVIT_OK);
    g_assert_nonnull(iface->open);
    probe = davit_component_probe(davit_registry_find(registry, FORMAT_ID("good")));
    g_assert_cmpint(probe(&in, &verdict, NULL), ==, DAVIT_OK);
    g_assert_cmpuint(verdict.verdict, ==, DAVIT_DECLINE);
    g_assert_cmpuint(davit_report_count(report), ==, 0);
}

static void longer_structs_of_a_newer_plugin_are_cut(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("longer_structs");
    const davit_format_iface *iface = NULL;

    g_assert_cmpint(
        use_from(path, FORMAT_ID("longer_structs"), &registry, &iface, report), ==,
        DAVIT_OK);
    g_assert_cmpuint(iface->struct_size, >, sizeof(davit_format_iface));
}

static void start_and_create_run_once_and_end(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("multi");

    for (int round = 0; round < 3; round++) { /* quiesce of each round undoes its start */
        g_autoptr(DavitRegistry) registry = NULL;
        const davit_format_iface *iface = NULL;
        const void *table = NULL;
        int *self = NULL;

        g_assert_cmpint(
            use_from(path, "org.example.multi.format", &registry, &iface, report), ==,
            DAVIT_OK);
        for (int i = 0; i < 3; i++)
            g_assert_cmpint(davit_component_use(
                                davit_registry_find(registry, "org.example.multi.format"),
                                &table, (void **)&self, report),
                            ==, DAVIT_OK);
        g_assert_cmpint(*self, ==, 42);
        g_assert_cmpint(
            davit_component_use(davit_registry_find(registry, "org.example.multi.tok"),
                                &table, (void **)&self, report),
            ==, DAVIT_OK);
        g_assert_null(self);
        g_assert_nonnull(((const davit_tokenizer_iface *)table)->shapes);
    }
}

static void refuser_loads_like_any_other(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("partial");
    const davit_format_iface *iface = NULL;

    g_assert_cmpint(use_from(path, "org.example.refuses", &registry, &iface, report), ==,
                    DAVIT_OK);
}

static void shadowed_and_disabled_say_why(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("good");
    const void *iface = NULL;
    void *self = NULL;

    g_assert_true(g_setenv("DAVIT_PLUGINS_DISABLE", "*", TRUE));
    registry = registry_over(path, report);
    g_unsetenv("DAVIT_PLUGINS_DISABLE");
    g_assert_cmpint(davit_component_use(any_component(registry, FORMAT_ID("good")),
                                        &iface, &self, report),
                    ==, DAVIT_E_UNSUPPORTED);
    g_assert_cmpstr(davit_code_name(davit_report_first_error(report, 0)->code), ==,
                    "disabled");
}

/* ---- process state ---- */

static void expect_side_effect(const DavitReport *records, const char *subject)
{
    for (size_t i = 0; i < davit_report_count(records); i++) {
        const DavitRecord *r = davit_report_get(records, i);

        if (r->code == DAVIT_R_SIDE_EFFECT && g_str_has_prefix(r->subject, subject)) {
            g_assert_cmpint(r->severity, ==, DAVIT_WARNING);
            g_assert_cmpstr(r->who, ==, "org.example.bundle.side");
            return;
        }
    }
    g_error("no side effect on %s", subject);
}

static void side_effects_are_undone_and_named(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("side_effects");
    g_autofree char *cwd = g_get_current_dir();
    g_autofree char *after = NULL;
    const davit_format_iface *iface = NULL;
    const DavitReport *records;
    volatile float tiny = 1e-40f;
    struct sigaction action;

    umask(022);
    g_assert_cmpint(use_from(path, FORMAT_ID("side"), &registry, &iface, report), ==,
                    DAVIT_OK);
    records =
        ((const DavitPluginFile *)g_ptr_array_index(davit_registry_files(registry), 0))
            ->records;
    show_records(records);
    g_assert_cmpint(umask(022), ==, 022);
    after = g_get_current_dir();
    g_assert_cmpstr(after, ==, cwd);
    g_assert_cmpint(sigaction(SIGUSR2, NULL, &action), ==, 0);
    g_assert_true(action.sa_handler == SIG_DFL);
    g_assert_cmpstr(setlocale(LC_ALL, NULL), ==, "C");
    g_assert_true(tiny * 2.0f != 0.0f);
    expect_side_effect(records, "umask");
    expect_side_effect(records, "working directory");
    expect_side_effect(records, "handler of signal");
    expect_side_effect(records, "locale");
#if defined(__x86_64__)
    expect_side_effect(records, "floating-point control");
#endif
}

/* Both bring libspirit.so.1; the second runs on the first's. */
static void two_libraries_of_one_name_are_told(void)
{
    static const char *const names[] = {"dep_a", "dep_b"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry = NULL;
        g_autofree char *path = fixture_path(names[i]);
        g_autofree char *id = g_strdup_printf("org.example.%s", names[i]);
        const davit_format_iface *iface = NULL;
        const DavitRecord *r;

        g_assert_cmpint(use_from(path, id, &registry, &iface, report), ==, DAVIT_OK);
        r = record_of(any_component(registry, id)->file->records, "library-clash");
        g_assert_cmpint(r != NULL, ==, i == 1);
        if (r) {
            g_assert_cmpint(r->severity, ==, DAVIT_WARNING);
            g_assert_nonnull(strstr(r->expected, "dep_b/libspirit.so.1"));
            g_assert_nonnull(strstr(r->found, "dep_a/libspirit.so.1"));
        }
    }
}

static void thread_of_start_is_seen_and_joined(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    g_autofree char *path = fixture_path("thread_start");
    const davit_format_iface *iface = NULL;
    const DavitPluginFile *file;

    g_assert_cmpint(use_from(path, FORMAT_ID("thread"), &registry, &iface, report), ==,
                    DAVIT_OK);
    file = g_ptr_array_index(davit_registry_files(registry), 0);
    g_assert_cmpstr(record_of(file->records, "side-effect")->subject, ==, "threads");
}

static void file_that_changes_after_the_check_is_not_loaded(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = scratch_copy(dir, "good", "a.so");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    const void *iface = NULL;
    void *self = NULL;

    scratch_add(dir, "newer", "a.so");
    g_assert_cmpint(davit_component_use(davit_registry_find(registry, FORMAT_ID("good")),
                                        &iface, &self, report),
                    ==, DAVIT_E_IO);
    g_assert_nonnull(record_of(report, "file-changed"));
    scratch_free(dir);
}

/* ---- threads ---- */

static void *use_many_times(void *data)
{
    for (int i = 0; i < 200; i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const void *iface = NULL;
        void *self = NULL;

        g_assert_cmpint(davit_component_use(data, &iface, &self, report), ==, DAVIT_OK);
        g_assert_cmpint(*(int *)self, ==, 42);
    }
    return NULL;
}

static void many_threads_use_one_component(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("multi");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    DavitComponent *c = davit_registry_find(registry, "org.example.multi.format");
    GThread *threads[4];

    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("use", use_many_times, c);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    setlocale(LC_ALL, "C");
    g_test_add_func("/load/library-clash", two_libraries_of_one_name_are_told);
    g_test_add_func("/load/codes", broken_plugins_are_refused_by_code);
    g_test_add_func("/load/environment", what_the_machine_lacks_is_said_by_create);
    g_test_add_func("/load/fast_startup", fast_math_startup_is_undone);
    g_test_add_func("/load/core_symbol", core_symbol_gets_the_hint_about_suites);
    g_test_add_func("/load/second_try", second_try_gives_the_same_answer);
    g_test_add_func("/load/good", good_plugin_answers);
    g_test_add_func("/load/longer_structs", longer_structs_of_a_newer_plugin_are_cut);
    g_test_add_func("/load/start_and_create", start_and_create_run_once_and_end);
    g_test_add_func("/load/refuser", refuser_loads_like_any_other);
    g_test_add_func("/load/disabled", shadowed_and_disabled_say_why);
    g_test_add_func("/load/side_effects", side_effects_are_undone_and_named);
    g_test_add_func("/load/thread", thread_of_start_is_seen_and_joined);
    g_test_add_func("/load/file_changed",
                    file_that_changes_after_the_check_is_not_loaded);
    g_test_add_func("/load/threads", many_threads_use_one_component);
    return g_test_run();
}
