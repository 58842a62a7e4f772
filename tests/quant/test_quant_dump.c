/* SPDX-License-Identifier: Apache-2.0
 * Every folder of tests/golden/quant: the float32 weights of each quantised module are those
 * that the script computed from the codes, in every bit; and codes times scales, and cuts for ranks,
 * are the same bits again. */
#include <string.h>

#include "config/config.h"
#include "plan/plan.h"
#include "plan/tools.h"
#include "cuts.h"

#define FOLDERS DAVIT_SOURCE_DIR "/tests/golden/quant"

static DavitRegistry *registry;

/* CRC-32 as zlib has it. */
static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

static void print_records(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);

        g_test_message("%s %s: %s (found %s, expected %s)", davit_code_name(r->code),
                       r->subject ? r->subject : "", r->message, r->found ? r->found : "-",
                       r->expected ? r->expected : "-");
    }
}

static const DavitModule *find(const DavitModules *modules, const char *name)
{
    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];

        if (strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

static void check_codes(const DavitModule *m, const DavitCheckpoint *c, const float *values,
                        DavitReport *report)
{
    davit_quant_bytes parts[DAVIT_MAX_PARTS];

    if (!(m->desc->forms & DAVIT_FORM_CODES))
        return;
    for (uint32_t p = 0; p < m->desc->n_parts; p++) {
        const davit_tensor_info *t =
            davit_checkpoint_tensor(c, m->tensor[m->desc->parts[p].index]);

        parts[p].n_bytes = t->n_bytes;
        g_assert_cmpint(davit_checkpoint_view(c, t->file, t->off, t->n_bytes, &parts[p].ptr,
                                              report),
                        ==, DAVIT_OK);
    }
    for (uint64_t row = 0; row < m->desc->n_rows; row++) {
        if (!codes_agree(m->iface, m->self, m->desc, parts, row, values + row * m->desc->n_cols)) {
            g_test_fail();
            return;
        }
    }
}

static void check_module(const DavitModules *modules, const DavitCheckpoint *c, const char *name,
                         const char *crc)
{
    const DavitModule *m = find(modules, name);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GRand) rand = NULL;
    g_autofree float *values = NULL;
    g_autofree char *is = NULL;
    size_t n;

    if (!m || !m->quant) {
        g_test_message("%s: not read", name);
        g_test_fail();
        return;
    }
    n = m->desc->n_rows * m->desc->n_cols;
    values = g_new(float, m->desc->n_experts * n);
    for (uint64_t e = 0; e < m->desc->n_experts; e++)
        if (davit_module_decode(m, c, e, 0, m->desc->n_rows, values + e * n, report)) {
            print_records(report);
            g_test_fail();
            return;
        }
    is = g_strdup_printf("%08x", crc32_of((const uint8_t *)values, m->desc->n_experts * n * sizeof *values));
    if (strcmp(is, crc) != 0) {
        g_test_message("%s (%s): CRC %s, the reference has %s", name, m->desc->layout, is, crc);
        g_test_fail();
    }
    check_codes(m, c, values, report);
    rand = g_rand_new_with_seed(crc32_of((const uint8_t *)name, strlen(name)));
    check_cuts(m, c, values, rand);
}

static void run_folder(gconstpointer data)
{
    g_autofree char *dir = g_build_filename(FOLDERS, data, NULL);
    g_autofree char *file = g_build_filename(dir, "golden.json", NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitCheckpoint) c = davit_checkpoint_open(registry, dir, DAVIT_INSPECT, report);
    g_autoptr(DavitSettings) settings = davit_settings_open(c, report);
    g_autoptr(DavitModules) modules = davit_modules_find(registry, c, settings, 0, report);
    json_t *golden = json_load_file(file, 0, NULL);
    const char *name;
    json_t *crc;

    g_assert_nonnull(golden);
    json_object_foreach(json_object_get(golden, "dump"), name, crc)
        check_module(modules, c, name, json_string_value(crc));
    if (davit_report_count(report)) { /* nothing to say about a good file */
        print_records(report);
        g_test_fail();
    }
    json_decref(golden);
}

int main(int argc, char **argv)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRegistryOptions options = {.builtin_dir = DAVIT_PLUGIN_DIR};
    g_autoptr(GDir) dir = g_dir_open(FOLDERS, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    int status;

    g_test_init(&argc, &argv, NULL);
    g_test_set_nonfatal_assertions();
    registry = davit_registry_open(&options, report);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/quant/dump/%s", name);

        g_ptr_array_add(names, g_strdup(name));
        g_test_add_data_func(path, g_ptr_array_index(names, names->len - 1), run_folder);
    }
    status = g_test_run();
    davit_registry_free(registry);
    return status;
}
