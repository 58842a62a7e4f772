/* SPDX-License-Identifier: Apache-2.0
 * Listing: search path, gates 1 to 4. No plugin code runs in this program. */
#include "plugin/registry.h"

#include <stdlib.h>

#include "plugins/fixture.h"

/* ---- one file, one fault ---- */

/* Refused as a file. */
static void files_are_refused_by_code(void)
{
    static const struct {
        const char *fixture, *code, *stage;
    } cases[] = {
        {"abi_major", "abi-major", "policy"},
        {"bad_json", "bad-manifest", "manifest"},
        {"build_fact", "build-fact", "policy"},
        {"future_minor", "host-too-old", "policy"},
        {"no_note", "no-manifest", "manifest"},
        {"no_entry", "no-entry", "manifest"},
        {"execstack", "exec-stack", "file"},
        {"runpath_relative", "bad-runpath", "file"},
        {"runpath_empty", "bad-runpath", "file"},
        {"tls2k", "static-tls", "file"},
        {"textrel", "text-relocations", "file"},
        {"missing_dep", "missing-dep", "policy"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *path = fixture_path(cases[i].fixture);
        g_autoptr(DavitRegistry) registry = registry_over(path, report);
        const DavitPluginFile *file =
            g_ptr_array_index(davit_registry_files(registry), 0);
        const DavitRecord *r = record_of(file->records, cases[i].code);

        g_test_message("%s", cases[i].fixture);
        show_records(file->records);
        g_assert_cmpstr(davit_state_name(file->state), ==, "refused");
        g_assert_true(file->is_plugin);
        g_assert_nonnull(r);
        g_assert_cmpstr(r->stage, ==, cases[i].stage);
        g_assert_cmpint(r->severity, ==, DAVIT_ERROR);
        /* the user named this file, so the command hears of it */
        g_assert_nonnull(record_of(report, cases[i].code));
        for (size_t k = 0; k < DAVIT_N_KINDS; k++)
            g_assert_cmpuint(davit_registry_kind(registry, (DavitKind)k)->len, ==, 0);
    }
}

/* Refused or limited as a component, beside others that are fine. */
static void components_are_judged_alone(void)
{
    static const struct {
        const char *fixture, *id, *state, *code;
    } cases[] = {
        {"good", "org.example.good", "ok", NULL},
        {"padded", "org.example.padded", "ok", NULL},
        {"future_kind", "org.example.future.vision", "refused", "kind-unknown"},
        {"future_kind", "org.example.future.format", "ok", NULL},
        {"draft_kind", "org.example.draft.vision", "refused", "draft"},
        {"draft_kind", "org.example.draft.format", "ok", NULL},
        {"kind_version", "org.example.kv.newer", "refused", "kind-version"},
        {"kind_version", "org.example.kv.older", "refused", "kind-version"},
        {"kind_version", "org.example.kv.format", "ok", NULL},
        {"kind_version", "org.example.kv.next", "refused", "kind-version"},
        {"reserved", "org.davit.format.gguf", "refused", "duplicate-id"},
        {"partial", "org.example.partial", "partial", "forward-absent"},
        {"partial", "org.example.refuses", "refuses", "pickle-unsafe"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *path = fixture_path(cases[i].fixture);
        g_autoptr(DavitRegistry) registry = registry_over(path, report);
        const DavitComponent *c = any_component(registry, cases[i].id);

        g_test_message("%s %s", cases[i].fixture, cases[i].id);
        g_assert_nonnull(c);
        show_records(c->records);
        g_assert_cmpstr(davit_state_name(c->state), ==, cases[i].state);
        g_assert_true((davit_registry_find(registry, cases[i].id) != NULL) ==
                      (strcmp(cases[i].state, "refused") != 0));
        if (cases[i].code)
            g_assert_nonnull(record_of(c->records, cases[i].code));
        else
            g_assert_cmpuint(davit_report_count(c->records), ==, 0);
    }
}

static void kind_mismatch_names_both_numbers_and_who_acts(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("kind_version");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    const DavitRecord *newer = record_of(
        any_component(registry, "org.example.kv.newer")->records, "kind-version");
    const DavitRecord *older = record_of(
        any_component(registry, "org.example.kv.older")->records, "kind-version");

    g_assert_cmpstr(newer->found, ==, "quant 0.9");
    g_assert_true(g_str_has_prefix(newer->expected, "quant 0."));
    g_assert_true(g_str_has_suffix(newer->expected, "exactly"));
    g_assert_true(g_str_has_prefix(newer->hint, "update davit"));
    g_assert_true(g_str_has_prefix(older->hint, "the plugin's author must rebuild"));
}

static void two_components_of_one_id_are_refused(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("dup_inside");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    const GPtrArray *all = davit_registry_components(registry);

    g_assert_cmpuint(all->len, ==, 2);
    g_assert_null(davit_registry_find(registry, "org.example.twice"));
    for (size_t i = 0; i < all->len; i++)
        g_assert_nonnull(
            record_of(((const DavitComponent *)g_ptr_array_index(all, i))->records,
                      "duplicate-id"));
}

static void refusals_take_purposes_away(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("partial");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    const DavitComponent *c = any_component(registry, "org.example.partial");
    const DavitRecord *r = record_of(c->records, "forward-absent");

    g_assert_cmpuint(c->purposes, ==, DAVIT_INSPECT | DAVIT_MAP);
    g_assert_cmpuint(r->purposes, ==, DAVIT_RUN);
    g_assert_cmpstr(r->who, ==, "org.example.partial");
    g_assert_cmpstr(r->subject, ==, "ToyForCausalLM");
    g_assert_cmpuint(any_component(registry, "org.example.refuses")->purposes, ==, 0);
}

static void manifest_facts_are_listed(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("good");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    const DavitPluginFile *file = g_ptr_array_index(davit_registry_files(registry), 0);
    const DavitComponent *c = davit_registry_find(registry, "org.example.good");

    g_assert_cmpstr(file->bundle_id, ==, "org.example.bundle.good");
    g_assert_cmpstr(file->version, ==, "1.2.3");
    g_assert_cmpstr(file->license, ==, "Apache-2.0");
    g_assert_cmpstr(file->tier, ==, "option");
    g_assert_cmpuint(file->abi_major, ==, 1);
    g_assert_cmpuint(file->exports->len, ==, 1);
    g_assert_cmpstr(c->kind_name, ==, "format");
    g_assert_cmpint(c->priority, ==, 60);
    g_assert_true(davit_capability_has(c->capability, "ext", "toys"));
    g_assert_cmpuint(davit_report_count(report), ==, 0);
}

/* ---- damaged copies ---- */

static void expect_damaged(const char *dir, const char *name, size_t off, uint8_t value,
                           size_t cut, const char *code)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    g_autofree char *path = NULL;
    g_autoptr(DavitRegistry) registry = NULL;
    const DavitPluginFile *file;

    bytes[off] = value;
    path = scratch_write(dir, name, bytes, MIN(n, cut));
    registry = registry_over(path, report);
    file = g_ptr_array_index(davit_registry_files(registry), 0);
    g_assert_cmpstr(davit_state_name(file->state), ==, "refused");
    g_assert_nonnull(record_of(file->records, code));
    g_assert_cmpint(g_remove(path), ==, 0);
}

static void damaged_files_are_named(void)
{
    char *dir = scratch_new();

    expect_damaged(dir, "cut.so", 0, 0x7f, 5000, "truncated");
    expect_damaged(dir, "empty.so", 0, 0x7f, 0, "truncated");
    expect_damaged(dir, "text.so", 0, '#', SIZE_MAX, "not-elf");
    expect_damaged(dir, "class.so", 4, 1, SIZE_MAX, "wrong-class");
    expect_damaged(dir, "machine.so", 18, 22, SIZE_MAX, "wrong-machine");
    scratch_free(dir);
}

static void writable_copy_is_refused_unread(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = scratch_copy(dir, "good", "good.so");
    g_autoptr(DavitRegistry) registry = NULL;
    const DavitPluginFile *file;

    g_assert_cmpint(g_chmod(path, 0666), ==, 0);
    registry = registry_over(dir, report);
    file = g_ptr_array_index(davit_registry_files(registry), 0);
    g_assert_nonnull(record_of(file->records, "perm-writable"));
    g_assert_null(file->bundle_id);
    g_assert_cmpuint(davit_registry_components(registry)->len, ==, 0);
    scratch_free(dir);
}

/* ---- directories ---- */

static void empty_directory_lists_nothing_and_says_so(void)
{
    char *dir = scratch_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_over(dir, report);

    g_assert_cmpuint(davit_registry_files(registry)->len, ==, 0);
    g_assert_cmpuint(davit_registry_components(registry)->len, ==, 0);
    g_assert_cmpuint(davit_registry_dirs(registry)->len, ==, 1);
    g_assert_false(davit_report_failed(report));
    g_assert_nonnull(strstr(record_of(report, "no-plugins")->found, dir));
    scratch_free(dir);
}

static void absent_own_directory_is_named(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = davit_registry_open(
        &(DavitRegistryOptions){.builtin_dir = "/nowhere/davit", .only_paths = true},
        report);

    g_assert_cmpuint(davit_registry_files(registry)->len, ==, 0);
    g_assert_cmpstr(record_of(report, "no-plugins")->found, ==, "/nowhere/davit");
    g_assert_false(davit_report_failed(report));
}

static void only_so_files_of_one_level_are_seen_in_order(void)
{
    char *dir = scratch_new();
    g_autofree char *sub = g_build_filename(dir, "sub.so", NULL);
    g_autofree char *b = scratch_copy(dir, "padded", "b.so");
    g_autofree char *a = scratch_copy(dir, "good", "a.so");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const GPtrArray *files;

    scratch_add(dir, "good", "c.so.txt");
    scratch_add(dir, "good", ".hidden.so");
    scratch_add(dir, "library", "library.so");
    g_assert_cmpint(g_mkdir(sub, 0755), ==, 0);
    scratch_add(sub, "multi", "deep.so");
    registry = registry_over(dir, report);
    files = davit_registry_files(registry);
    g_assert_cmpuint(files->len, ==, 4);
    g_assert_cmpstr(((DavitPluginFile *)g_ptr_array_index(files, 0))->path, ==, a);
    g_assert_cmpstr(((DavitPluginFile *)g_ptr_array_index(files, 1))->path, ==, b);
    g_assert_false(((DavitPluginFile *)g_ptr_array_index(files, 2))->is_plugin);
    g_assert_cmpuint(
        davit_report_count(((DavitPluginFile *)g_ptr_array_index(files, 2))->records), ==,
        0);
    g_assert_nonnull(record_of(((DavitPluginFile *)g_ptr_array_index(files, 3))->records,
                               "not-regular"));
    g_assert_cmpuint(davit_registry_components(registry)->len, ==, 2);
    scratch_free(dir);
}

static void links_are_aliases(void)
{
    char *dir = scratch_new();
    g_autofree char *a = scratch_copy(dir, "good", "a.so");
    g_autofree char *soft = g_build_filename(dir, "soft.so", NULL);
    g_autofree char *hard = g_build_filename(dir, "hard.so", NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const DavitPluginFile *file;

    g_assert_cmpint(symlink(a, soft), ==, 0);
    g_assert_cmpint(link(a, hard), ==, 0);
    registry = registry_over(dir, report);
    g_assert_cmpuint(davit_registry_files(registry)->len, ==, 1);
    file = g_ptr_array_index(davit_registry_files(registry), 0);
    g_assert_cmpuint(file->aliases->len, ==, 2);
    g_assert_cmpstr(g_ptr_array_index(file->aliases, 0), ==, hard);
    scratch_free(dir);
}

/* ---- davit's own directory ---- */

static void own_ids_load_from_own_directory_only(void)
{
    char *own = scratch_new();
    const char *paths[] = {own, NULL};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const DavitPluginFile *file;

    scratch_add(own, "reserved", "a.so");
    registry = davit_registry_open(&(DavitRegistryOptions){.plugin_paths = paths,
                                                           .builtin_dir = own,
                                                           .only_paths = true},
                                   report);
    file = g_ptr_array_index(davit_registry_files(registry), 0);
    g_assert_cmpuint(davit_registry_files(registry)->len, ==, 1);
    g_assert_cmpuint(file->aliases->len, ==, 0);
    g_assert_cmpstr(file->tier, ==, "builtin");
    g_assert_nonnull(davit_registry_find(registry, "org.davit.format.gguf"));
    scratch_free(own);
}

/* ---- options and environment ---- */

static void absent_path_is_an_error(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_over("/nowhere/at/all", report);

    g_assert_cmpuint(davit_registry_files(registry)->len, ==, 0);
    g_assert_cmpint(davit_report_first_error(report, 0)->status, ==, DAVIT_E_USAGE);
    g_assert_cmpstr(record_of(report, "not-found")->subject, ==, "/nowhere/at/all");
}

static void named_library_is_an_error(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("library");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);

    g_assert_cmpuint(davit_registry_files(registry)->len, ==, 1);
    g_assert_nonnull(record_of(report, "no-entry"));
}

static void environment_brings_absolute_directories_only(void)
{
    char *dir = scratch_new();
    char *own = scratch_new();
    g_autofree char *value = g_strdup_printf("relative:%s:", dir);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const DavitComponent *c;

    scratch_add(dir, "good", "a.so");
    g_assert_true(g_setenv("DAVIT_PLUGIN_PATH", value, TRUE));
    registry = davit_registry_open(&(DavitRegistryOptions){.builtin_dir = own}, report);
    g_unsetenv("DAVIT_PLUGIN_PATH");
    c = davit_registry_find(registry, "org.example.good");
    g_assert_nonnull(c);
    g_assert_cmpstr(c->file->tier, ==, "env");
    g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, "DAVIT_PLUGIN_PATH");
    g_assert_cmpstr(davit_report_get(report, 0)->found, ==, "\"relative\"");
    g_assert_cmpstr(davit_report_get(report, 1)->found, ==, "\"\"");
    scratch_free(dir);
    scratch_free(own);
}

static void expect_filtered(const char *variable, const char *value, bool is_on)
{
    g_autofree char *path = fixture_path("good");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const DavitComponent *c;

    g_assert_true(g_setenv(variable, value, TRUE));
    registry = registry_over(path, report);
    g_unsetenv(variable);
    c = any_component(registry, "org.example.good");
    g_assert_cmpstr(davit_state_name(c->state), ==, is_on ? "ok" : "disabled");
    g_assert_true((davit_registry_find(registry, c->id) != NULL) == is_on);
    if (!is_on)
        g_assert_true(
            g_str_has_prefix(record_of(c->records, "disabled")->found, variable));
}

static void environment_filters_by_glob(void)
{
    expect_filtered("DAVIT_PLUGINS_DISABLE", "a, org.example.*", false);
    expect_filtered("DAVIT_PLUGINS_DISABLE", "org.example", true);
    expect_filtered("DAVIT_PLUGINS_DISABLE", "", true);
    expect_filtered("DAVIT_PLUGINS_SELECT", "*.good", true);
    expect_filtered("DAVIT_PLUGINS_SELECT", "org.davit.*,x", false);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_unsetenv("DAVIT_PLUGIN_PATH");
    g_test_add_func("/registry/file_codes", files_are_refused_by_code);
    g_test_add_func("/registry/component_codes", components_are_judged_alone);
    g_test_add_func("/registry/kind_version",
                    kind_mismatch_names_both_numbers_and_who_acts);
    g_test_add_func("/registry/dup_inside", two_components_of_one_id_are_refused);
    g_test_add_func("/registry/partial", refusals_take_purposes_away);
    g_test_add_func("/registry/facts", manifest_facts_are_listed);
    g_test_add_func("/registry/damaged", damaged_files_are_named);
    g_test_add_func("/registry/writable_copy", writable_copy_is_refused_unread);
    g_test_add_func("/registry/empty", empty_directory_lists_nothing_and_says_so);
    g_test_add_func("/registry/no_own_directory", absent_own_directory_is_named);
    g_test_add_func("/registry/one_level", only_so_files_of_one_level_are_seen_in_order);
    g_test_add_func("/registry/links", links_are_aliases);
    g_test_add_func("/registry/own_ids", own_ids_load_from_own_directory_only);
    g_test_add_func("/registry/absent_path", absent_path_is_an_error);
    g_test_add_func("/registry/named_library", named_library_is_an_error);
    g_test_add_func("/registry/environment/path",
                    environment_brings_absolute_directories_only);
    g_test_add_func("/registry/environment/filter", environment_filters_by_glob);
    return g_test_run();
}
