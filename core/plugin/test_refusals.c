/* SPDX-License-Identifier: Apache-2.0
 * Every record that the door makes about any of the fixture plugins: a known code, a stage, and
 * all that core/base/codes.h asks of the code. */
#include "base/codes.h"
#include "plugin/registry.h"

#include "plugins/fixture.h"

static guint faults;

static void complain(const DavitRecord *r, const char *file, const char *what)
{
    g_autofree char *sentence = davit_record_sentence(r);

    g_test_message("%s: %s at %s has no %s: %s", file, davit_code_name(r->code),
                   r->stage ? r->stage : "-", what, sentence);
    faults++;
}

static void walk(const DavitReport *report, const char *file)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);

        if (strcmp(davit_code_name(r->code), "unknown") == 0)
            complain(r, file, "known code");
        if (!r->stage || !*r->stage)
            complain(r, file, "stage");
        if (davit_record_lacks(r))
            complain(r, file, davit_record_lacks(r));
    }
}

/* Listing, then using every component; the helper takes those that end a process. */
static void walk_file(const char *name)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = g_build_filename(DAVIT_FIXTURE_DIR, name, NULL);
    g_autoptr(DavitRegistry) registry = registry_probing(path, "", report);
    const GPtrArray *components = davit_registry_components(registry);

    for (size_t i = 0; i < components->len; i++) {
        DavitComponent *c = g_ptr_array_index(components, i);
        g_autoptr(DavitReport) said = davit_report_new();
        const void *iface;
        void *self;

        davit_component_use(c, &iface, &self, said);
        walk(said, name);
        walk(c->records, name);
    }
    walk(((const DavitPluginFile *)g_ptr_array_index(davit_registry_files(registry), 0))
             ->records,
         name);
    walk(report, name);
}

/* They would keep a helper for its whole step, or leave a process of ours behind. */
static bool is_slow(const char *name)
{
    return strstr(name, "_hang") || strstr(name, "_burn") || strstr(name, "_child");
}

static void every_record_is_complete(void)
{
    GDir *dir = g_dir_open(DAVIT_FIXTURE_DIR, 0, NULL);
    const char *name;
    guint n = 0;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        if (!g_str_has_suffix(name, ".so") || is_slow(name))
            continue;
        walk_file(name);
        n++;
    }
    g_dir_close(dir);
    g_assert_cmpuint(n, >=, 40);
    g_assert_cmpuint(faults, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/refusals/complete", every_record_is_complete);
    return g_test_run();
}
