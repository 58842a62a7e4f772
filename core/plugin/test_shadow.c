/* SPDX-License-Identifier: Apache-2.0
 * Several files together: who provides an id, and the order of candidates. */
#include "plugin/shadow.h"

#include "plugins/fixture.h"

/* ---- shadowing ---- */

static void expect_shadowed(const DavitRegistry *registry, const char *winner,
                            const char *loser, const char *why)
{
    const GPtrArray *all = davit_registry_components(registry);

    g_assert_cmpuint(all->len, ==, 2);
    for (size_t i = 0; i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);

        if (strcmp(c->file->path, winner) == 0) {
            g_assert_cmpstr(davit_state_name(c->state), ==, "ok");
        } else {
            const DavitRecord *r = record_of(c->records, "shadowed");

            g_assert_cmpstr(c->file->path, ==, loser);
            g_assert_cmpstr(davit_state_name(c->state), ==, "shadowed");
            g_assert_nonnull(strstr(r->found, winner));
            g_assert_nonnull(strstr(r->found, why));
            g_assert_cmpint(r->severity, ==, DAVIT_NOTE);
        }
    }
}

static void higher_version_wins_within_a_tier(void)
{
    char *dir = scratch_new();
    g_autofree char *older = scratch_copy(dir, "good", "a.so");
    g_autofree char *newer = scratch_copy(dir, "newer", "b.so"); /* 1.10.0 > 1.2.3 */
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_over(dir, report);

    expect_shadowed(registry, newer, older, "higher version");
    g_assert_cmpuint(davit_registry_kind(registry, DAVIT_KIND_ID_FORMAT)->len, ==, 1);
    scratch_free(dir);
}

static void copy_of_one_build_is_shadowed(void)
{
    char *dir = scratch_new();
    g_autofree char *first = scratch_copy(dir, "good", "a.so");
    g_autofree char *second = scratch_copy(dir, "good", "b.so");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_over(dir, report);

    expect_shadowed(registry, first, second, "same build");
    scratch_free(dir);
}

static void earlier_tier_wins_over_version(void)
{
    char *dir = scratch_new();
    char *own = scratch_new();
    g_autofree char *older = scratch_copy(dir, "good", "z.so");
    g_autofree char *newer = scratch_copy(own, "newer", "a.so");
    const char *paths[] = {dir, NULL};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = davit_registry_open(
        &(DavitRegistryOptions){
            .plugin_paths = paths, .builtin_dir = own, .only_paths = true},
        report);

    expect_shadowed(registry, older, newer, "earlier tier");
    scratch_free(dir);
    scratch_free(own);
}

/* ---- processors: main() caps this one at x86-64-v2 ---- */

static const DavitPluginFile *file_called(const DavitRegistry *registry, const char *path)
{
    const GPtrArray *files = davit_registry_files(registry);

    for (size_t i = 0; i < files->len; i++) {
        const DavitPluginFile *f = g_ptr_array_index(files, i);

        if (strcmp(f->path, path) == 0)
            return f;
    }
    g_assert_not_reached();
}

static void the_fitting_variant_wins(void)
{
    char *dir = scratch_new();
    g_autofree char *base = scratch_copy(dir, "good", "acme.so");
    g_autofree char *v2 = scratch_copy(dir, "good", "acme.x86-64-v2.so");
    g_autofree char *v3 = scratch_copy(dir, "good", "acme.x86-64-v3.so");
    g_autofree char *other = scratch_copy(dir, "newer", "acme.x86-64-v4.so");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_over(dir, report);
    const DavitComponent *c = davit_registry_find(registry, "org.example.good");

    g_assert_nonnull(c);
    g_assert_cmpstr(c->file->path, ==, v2);
    g_assert_cmpstr(davit_state_name(file_called(registry, base)->state), ==, "shadowed");
    g_assert_cmpstr(davit_state_name(file_called(registry, v3)->state), ==, "shadowed");
    /* another version is no variant of these: it stands alone, and not for this processor */
    g_assert_cmpstr(davit_state_name(file_called(registry, other)->state), ==, "refused");
    g_assert_nonnull(record_of(file_called(registry, other)->records, "cpu-unsupported"));
    scratch_free(dir);
}

static void a_variant_alone_may_be_refused(void)
{
    char *dir = scratch_new();
    g_autofree char *v3 = scratch_copy(dir, "good", "acme.x86-64-v3.so");
    g_autofree char *fact = scratch_copy(dir, "cpu_fact", "fact.so");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = registry_over(dir, report);
    const char *const paths[] = {v3, fact};
    const char *const wanted[] = {"x86-64-v3", "a processor with x86-64-v4"};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        const DavitPluginFile *f = file_called(registry, paths[i]);
        const DavitRecord *r = record_of(f->records, "cpu-unsupported");

        show_records(f->records);
        g_assert_cmpstr(davit_state_name(f->state), ==, "refused");
        g_assert_nonnull(r);
        g_assert_cmpstr(r->expected, ==, wanted[i]);
        g_assert_cmpint(r->severity, ==, DAVIT_ERROR);
    }
    g_assert_cmpuint(davit_registry_kind(registry, DAVIT_KIND_ID_FORMAT)->len, ==, 0);
    scratch_free(dir);
}

/* ---- order ---- */

static void candidates_come_in_one_order(void)
{
    char *dir = scratch_new();
    static const char *const want[] = {"org.example.good", "org.example.padded",
                                       "org.example.partial", "org.example.refuses",
                                       "org.example.multi.format"};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegistry) registry = NULL;
    const GPtrArray *list;

    scratch_add(dir, "multi", "a.so");   /* priority 40 */
    scratch_add(dir, "padded", "b.so");  /* 50, 1.0.0 */
    scratch_add(dir, "good", "c.so");    /* 60 */
    scratch_add(dir, "partial", "d.so"); /* 50, 1.0.0 */
    registry = registry_over(dir, report);
    list = davit_registry_kind(registry, DAVIT_KIND_ID_FORMAT);
    g_assert_cmpuint(list->len, ==, G_N_ELEMENTS(want));
    for (size_t i = 0; i < list->len; i++)
        g_assert_cmpstr(((DavitComponent *)g_ptr_array_index(list, i))->id, ==, want[i]);
    g_assert_cmpuint(davit_registry_kind(registry, DAVIT_KIND_ID_TOKENIZER)->len, ==, 1);
    scratch_free(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_unsetenv("DAVIT_PLUGIN_PATH");
    g_setenv("DAVIT_CPU_LEVEL", "x86-64-v2", TRUE);
    g_test_add_func("/shadow/version", higher_version_wins_within_a_tier);
    g_test_add_func("/shadow/build", copy_of_one_build_is_shadowed);
    g_test_add_func("/shadow/tier", earlier_tier_wins_over_version);
    g_test_add_func("/shadow/variants", the_fitting_variant_wins);
    g_test_add_func("/shadow/variant-alone", a_variant_alone_may_be_refused);
    g_test_add_func("/shadow/order", candidates_come_in_one_order);
    return g_test_run();
}
