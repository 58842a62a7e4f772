/* SPDX-License-Identifier: Apache-2.0
 * Every folder of tests/faults with a recipe and a case.json: make the files, open them
 * the way the command would, and compare exit code and records. Formats come through the
 * plugin door. `test_faults --print NAME` shows what a case gives, for writing its
 * case.json.
 *
 * case.json: {"command": "inspect FILE", "exit": N, "records": [{"code", "severity",
 * "subject", "expected", "found"}, ...], "tensors": N, "n_bytes": N}. FILE lies in the
 * folder that is made, "." is the folder. Every error must be listed; of the rest only
 * what is listed counts. A field that is not given is not compared; null means absent.
 *
 * Cases whose command is another one (config, plan, run) belong to other drivers. */
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "faults/recipe.h"
#include "plan/plan.h"

static DavitRegistry *registry;

/* ---- a case ---- */

typedef struct Case {
    char *dir; /* tests/faults/NAME */
    json_t *doc;
    GPtrArray *files;
    char *work;  /* where the files are made */
    char *model; /* path that is opened */
    uint64_t purposes;
} Case;

static char *folder_of(const char *name)
{
    return g_build_filename(DAVIT_SOURCE_DIR, "tests", "faults", name, NULL);
}

static uint64_t purposes_of(const char *command)
{
    if (strcmp(command, "plan") == 0)
        return DAVIT_INSPECT | DAVIT_MAP;
    if (strcmp(command, "dump") == 0 || strcmp(command, "decode") == 0)
        return DAVIT_INSPECT | DAVIT_CONVERT;
    if (strcmp(command, "run") == 0)
        return DAVIT_INSPECT | DAVIT_MAP | DAVIT_RUN;
    return DAVIT_INSPECT;
}

static Case case_open(const char *name)
{
    Case c = {.dir = folder_of(name)};
    g_autofree char *recipe = g_build_filename(c.dir, "recipe", NULL);
    g_autofree char *doc = g_build_filename(c.dir, "case.json", NULL);
    g_auto(GStrv) words = NULL;
    json_error_t error;

    c.doc = json_load_file(doc, JSON_REJECT_DUPLICATES, &error);
    if (!c.doc)
        g_error("%s: %s", doc, error.text);
    c.files = recipe_read(recipe);
    c.work = g_dir_make_tmp("davit-fault-XXXXXX", NULL);
    recipe_write(c.files, c.work);
    words = g_strsplit(json_string_value(json_object_get(c.doc, "command")), " ", 2);
    c.purposes = purposes_of(words[0]);
    c.model = strcmp(words[1], ".") == 0 ? g_strdup(c.work)
                                         : g_build_filename(c.work, words[1], NULL);
    return c;
}

static void case_close(Case *c)
{
    recipe_remove(c->files, c->work);
    g_ptr_array_unref(c->files);
    json_decref(c->doc);
    g_free(c->dir);
    g_free(c->work);
    g_free(c->model);
}

/* ---- commands ---- */

/* "decode": every module that a quant plugin claims, all of its rows. What a plugin says of
 * headers is a warning here, as in inspect; what it finds in the bytes is an error. */
static void decode_all(const DavitCheckpoint *ckpt, DavitReport *report)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitSettings) settings = davit_settings_open(ckpt, aside);
    g_autoptr(DavitModules) modules = davit_modules_find(registry, ckpt, settings, 0, report);

    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];
        g_autofree float *values = NULL;

        if (!m->quant)
            continue;
        g_assert_cmpuint(m->desc->n_rows * m->desc->n_cols, <, 1u << 20);
        values = g_new(float, m->desc->n_rows * m->desc->n_cols);
        for (uint64_t e = 0; e < m->desc->n_experts; e++)
            davit_module_decode(m, ckpt, e, 0, m->desc->n_rows, values, report);
    }
}

static DavitCheckpoint *run_command(const Case *c, DavitReport *report)
{
    DavitCheckpoint *ckpt = davit_checkpoint_open(registry, c->model, c->purposes, report);

    if (ckpt && g_str_has_prefix(json_string_value(json_object_get(c->doc, "command")),
                                 "decode "))
        decode_all(ckpt, report);
    return ckpt;
}

/* ---- comparing ---- */

static int exit_of(const DavitReport *report)
{
    const DavitRecord *first = davit_report_first_error(report, 0);

    switch (first ? first->status : DAVIT_OK) {
    case DAVIT_OK:
        return 0;
    case DAVIT_E_IO:
    case DAVIT_E_LIMIT:
        return 1;
    case DAVIT_E_USAGE:
        return 2;
    case DAVIT_E_UNSUPPORTED:
        return 3;
    default:
        return 4;
    }
}

/* @text with the folder's random name replaced. (owned) */
static char *without_work(const Case *c, const char *text)
{
    g_autofree char *name = g_path_get_basename(c->work);
    g_auto(GStrv) parts = g_strsplit(text ? text : "", c->work, -1);
    g_autofree char *once = g_strjoinv("DIR", parts);
    g_auto(GStrv) again = g_strsplit(once, name, -1);

    return text ? g_strjoinv("DIR", again) : NULL;
}

static bool field_fits(const Case *c, const json_t *wanted, const char *key,
                       const char *is)
{
    const json_t *value = json_object_get(wanted, key);
    g_autofree char *shown = without_work(c, is);

    if (!value)
        return true;
    return g_strcmp0(json_string_value(value), shown) == 0;
}

static const char *severity_name(const DavitRecord *r)
{
    return r->severity == DAVIT_ERROR     ? "error"
           : r->severity == DAVIT_WARNING ? "warning"
                                          : "note";
}

static bool record_fits(const Case *c, const json_t *wanted, const DavitRecord *r)
{
    return field_fits(c, wanted, "code", davit_code_name(r->code)) &&
           field_fits(c, wanted, "severity", severity_name(r)) &&
           field_fits(c, wanted, "subject", r->subject) &&
           field_fits(c, wanted, "expected", r->expected) &&
           field_fits(c, wanted, "found", r->found);
}

static void print_record(const Case *c, const DavitRecord *r)
{
    json_t *o = davit_record_json(r);
    static const char *const keys[] = {"subject", "expected", "found", "message"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *text = json_string_value(json_object_get(o, keys[i]));
        g_autofree char *shown = without_work(c, text);

        json_object_set_new(o, keys[i], shown ? json_string(shown) : json_null());
    }
    json_object_del(o, "hint");
    json_object_del(o, "stage");
    char *text = json_dumps(o, 0);
    printf("  %s\n", text);
    free(text);
    json_decref(o);
}

/* Wanted records that are not there, and errors that nobody wanted. */
static guint count_wrong(const Case *c, const DavitReport *report)
{
    const json_t *records = json_object_get(c->doc, "records");
    g_autofree bool *used = g_new0(bool, davit_report_count(report) + 1);
    guint n_wrong = 0;

    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *wanted = json_array_get(records, i);
        bool found = false;

        for (size_t k = 0; k < davit_report_count(report) && !found; k++) {
            found = !used[k] && record_fits(c, wanted, davit_report_get(report, k));
            used[k] = used[k] || found;
        }
        if (!found)
            g_printerr("missing: record %zu of case.json\n", i);
        n_wrong += !found;
    }
    for (size_t k = 0; k < davit_report_count(report); k++) {
        if (used[k] || davit_report_get(report, k)->severity != DAVIT_ERROR)
            continue;
        g_printerr("not expected: record %zu of the report\n", k);
        n_wrong++;
    }
    return n_wrong;
}

static void check_counts(const Case *c, const DavitCheckpoint *ckpt)
{
    const json_t *tensors = json_object_get(c->doc, "tensors");
    const json_t *n_bytes = json_object_get(c->doc, "n_bytes");

    if (tensors)
        g_assert_cmpuint(davit_checkpoint_n_tensors(ckpt), ==,
                         (guint64)json_integer_value(tensors));
    if (n_bytes)
        g_assert_cmpuint(davit_checkpoint_n_bytes(ckpt), ==,
                         (guint64)json_integer_value(n_bytes));
}

static void run_case(gconstpointer data)
{
    Case c = case_open(data);
    const int wanted = (int)json_integer_value(json_object_get(c.doc, "exit"));
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitCheckpoint) ckpt = run_command(&c, report);
    const guint n_wrong = count_wrong(&c, report);

    if (n_wrong || exit_of(report) != wanted)
        for (size_t i = 0; i < davit_report_count(report); i++)
            print_record(&c, davit_report_get(report, i));
    g_assert_cmpuint(n_wrong, ==, 0);
    g_assert_cmpint(exit_of(report), ==, wanted);
    /* decode may fail after a checkpoint was opened */
    if (c.purposes != (DAVIT_INSPECT | DAVIT_CONVERT))
        g_assert_cmpint(ckpt != NULL, ==, wanted == 0);
    if (ckpt)
        check_counts(&c, ckpt);
    case_close(&c);
}

static int print_case(const char *name)
{
    Case c = case_open(name);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitCheckpoint) ckpt = run_command(&c, report);

    printf("%s: exit %d", name, exit_of(report));
    if (ckpt)
        printf(" tensors %zu", davit_checkpoint_n_tensors(ckpt));
    printf("\n");
    for (size_t i = 0; i < davit_report_count(report); i++)
        print_record(&c, davit_report_get(report, i));
    case_close(&c);
    return 0;
}

/* ---- all cases ---- */

/* Is it a case of this driver: a recipe and a command that opens a checkpoint? */
static bool is_case(const char *name)
{
    g_autofree char *dir = folder_of(name);
    g_autofree char *recipe = g_build_filename(dir, "recipe", NULL);
    g_autofree char *doc = g_build_filename(dir, "case.json", NULL);

    return g_file_test(recipe, G_FILE_TEST_EXISTS) &&
           g_file_test(doc, G_FILE_TEST_EXISTS);
}

static void add_cases(GPtrArray *names)
{
    g_autofree char *root = folder_of("");
    g_autoptr(GDir) dir = g_dir_open(root, 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/faults/%s", name);

        if (!is_case(name))
            continue;
        g_ptr_array_add(names, g_strdup(name));
        g_test_add_data_func(path, g_ptr_array_index(names, names->len - 1), run_case);
    }
    g_assert_cmpuint(names->len, >, 0);
}

int main(int argc, char **argv)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const DavitRegistryOptions options = {.builtin_dir = DAVIT_PLUGIN_DIR};
    int status;

    registry = davit_registry_open(&options, report);
    if (argc == 3 && strcmp(argv[1], "--print") == 0) {
        status = print_case(argv[2]);
    } else {
        g_test_init(&argc, &argv, NULL);
        add_cases(names);
        status = g_test_run();
    }
    davit_registry_free(registry);
    return status;
}
