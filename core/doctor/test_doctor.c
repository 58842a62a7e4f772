/* SPDX-License-Identifier: Apache-2.0
 * Every folder of core/doctor/cases: make the model, examine it, compare findings. Then
 * every golden model, which must be found healthy. `test_doctor --print NAME` shows what a
 * case gives.
 *
 * case.json: "from" a golden model that is copied, "into" a folder below the work folder;
 * "patch" of config.json (RFC 7396), "tensors" edits of "file" (model.safetensors):
 * {"rename","to"} prefixes, {"drop"} a prefix, {"copy","to"} one tensor, {"turn"} its
 * shape, {"fill","hex"} bytes over and over; "blob": file that moves into the hub cache's blobs under its own
 * hash, or under "blob_name"; "also" {name: file of the source tree}. Then the recipe (tests/faults/recipe.h), if there is one.
 * "model" is what is examined ("into", else the work folder); "base" a golden model;
 * "options": deep, tp, dtype, strip_prefix, gptq_zeros, kv_dtype. "findings": every error and warning of the model must be
 * listed, notes may be; a field that is not given is not compared. "states": {id: state}.
 * The machine's own checks (D23 to D34) count only where they are listed. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

#include <davit/quant.h>

#include "doctor/doctor.h"
#include "doctor/shard_edit.h"
#include "faults/recipe.h"
#include "golden/folder.h"

#define CASES  DAVIT_SOURCE_DIR "/core/doctor/cases"
#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models"

static DavitRegistry *registry;

/* ---- making a model ---- */

typedef struct Case {
    json_t *doc;
    char *work;
    char *dir; /* where the copy lies */
    char *model;
    char *base;
    GPtrArray *recipe; /* NULL = none */
} Case;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static const char *text_of(const Case *c, const char *key)
{
    return json_string_value(json_object_get(c->doc, key));
}

static void edit_tensors(const Case *c)
{
    const json_t *edits = json_object_get(c->doc, "tensors");
    const char *file = text_of(c, "file");
    g_autofree char *path =
        g_build_filename(c->dir, file ? file : "model.safetensors", NULL);

    if (edits)
        shard_edit(path, edits);
}

/* File "blob" goes into ../../blobs and a link comes in its place. */
static void make_blob(const Case *c)
{
    const char *name = text_of(c, "blob");
    g_autofree char *from = g_build_filename(c->dir, name ? name : "", NULL);
    g_autofree char *target = NULL;
    g_autofree char *to = NULL;
    g_autofree char *hash = NULL;
    g_autofree char *folder = NULL;
    char *text;
    gsize n;

    if (!name)
        return;
    g_assert_true(g_file_get_contents(from, &text, &n, NULL));
    hash = text_of(c, "blob_name")
               ? g_strdup(text_of(c, "blob_name"))
               : g_compute_checksum_for_data(G_CHECKSUM_SHA256, (uint8_t *)text, n);
    g_free(text);
    target = g_build_filename("..", "..", "blobs", hash, NULL);
    to = g_build_filename(c->dir, target, NULL);
    folder = g_path_get_dirname(to);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_assert_cmpint(g_rename(from, to), ==, 0);
    g_assert_cmpint(symlink(target, from), ==, 0);
}

static void copy_model(Case *c)
{
    const char *from = text_of(c, "from");
    const char *into = text_of(c, "into");
    g_autofree char *source = g_build_filename(MODELS, from ? from : "", NULL);
    g_autofree char *parent = NULL;
    char *copy;

    c->dir = into ? g_build_filename(c->work, into, NULL) : g_strdup(c->work);
    parent = g_path_get_dirname(c->dir);
    g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
    if (!from)
        return;
    copy = folder_copy(source);
    folder_change(copy, c->doc);
    if (!into)
        g_assert_cmpint(g_rmdir(c->dir), ==, 0);
    g_assert_cmpint(g_rename(copy, c->dir), ==, 0);
    g_free(copy);
}

/* "also": names in the copy, and the files of the source tree that come there. */
static void add_files(const Case *c)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(c->doc, "also"), name, value)
    {
        g_autofree char *from = g_build_filename(DAVIT_SOURCE_DIR, json_string_value(value), NULL);
        g_autofree char *to = g_build_filename(c->dir, name, NULL);
        g_autofree char *bytes = NULL;
        gsize n;

        g_assert_true(g_file_get_contents(from, &bytes, &n, NULL));
        g_assert_true(g_file_set_contents(to, bytes, (gssize)n, NULL));
    }
}

static Case case_open(const char *name)
{
    Case c = {0};
    g_autofree char *dir = g_build_filename(CASES, name, NULL);
    g_autofree char *doc = g_build_filename(dir, "case.json", NULL);
    g_autofree char *recipe = g_build_filename(dir, "recipe", NULL);
    json_error_t error;

    c.doc = json_load_file(doc, JSON_REJECT_DUPLICATES, &error);
    if (!c.doc)
        g_error("%s: %s", doc, error.text);
    c.work = g_dir_make_tmp("davit-doctor-XXXXXX", NULL);
    copy_model(&c);
    add_files(&c);
    edit_tensors(&c);
    make_blob(&c);
    if (g_file_test(recipe, G_FILE_TEST_EXISTS)) {
        c.recipe = recipe_read(recipe);
        recipe_write(c.recipe, c.work);
    }
    c.model = text_of(&c, "model") ? g_build_filename(c.work, text_of(&c, "model"), NULL)
                                   : g_strdup(c.dir);
    c.base = text_of(&c, "base") ? g_build_filename(MODELS, text_of(&c, "base"), NULL)
                                 : NULL;
    return c;
}

static void case_close(Case *c)
{
    if (c->recipe)
        g_ptr_array_unref(c->recipe);
    nftw(c->work, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    json_decref(c->doc);
    g_free(c->work);
    g_free(c->dir);
    g_free(c->model);
    g_free(c->base);
}

static DavitDoctor *examine(const Case *c, DavitReport *report)
{
    const json_t *o = json_object_get(c->doc, "options");
    const char *zeros = json_string_value(json_object_get(o, "gptq_zeros"));
    const DavitDoctorOptions options = {
        .base = c->base,
        .quant_allow = g_strcmp0(zeros, "v1") == 0   ? DAVIT_QUANT_ALLOW_ZEROS_V1
                       : g_strcmp0(zeros, "v2") == 0 ? DAVIT_QUANT_ALLOW_ZEROS_V2
                                                     : 0,
        .kv_dtype = json_string_value(json_object_get(o, "kv_dtype")),
        .deep = json_is_true(json_object_get(o, "deep")),
        .n_ranks = (uint64_t)json_integer_value(json_object_get(o, "tp")),
        .strip_prefix = json_string_value(json_object_get(o, "strip_prefix")),
        .dtype = json_string_value(json_object_get(o, "dtype"))};

    return davit_doctor_examine(registry, c->model, &options, report);
}

/* ---- comparing ---- */

static const char *severity_name(const DavitRecord *r)
{
    static const char *const names[] = {"note", "warning", "error"};

    return names[r->severity];
}

/* Only this machine knows. */
static bool is_of_machine(const char *id)
{
    return strcmp(id, "D23") >= 0 && strcmp(id, "D34") <= 0;
}

static bool fits(const json_t *wanted, const char *key, const char *is)
{
    const json_t *value = json_object_get(wanted, key);

    return !value || (is && strstr(is, json_string_value(value)));
}

static bool finding_fits(const json_t *wanted, const DavitCheck *check, const DavitRecord *r)
{
    return fits(wanted, "check", check->info->id) &&
           fits(wanted, "code", davit_code_name(r->code)) &&
           fits(wanted, "severity", severity_name(r)) &&
           fits(wanted, "subject", r->subject) && fits(wanted, "found", r->found) &&
           fits(wanted, "expected", r->expected) && fits(wanted, "hint", r->hint);
}

static void print_all(const DavitDoctor *doctor)
{
    for (size_t i = 0; i < davit_doctor_n_checks(doctor); i++) {
        const DavitCheck *check = davit_doctor_check(doctor, i);

        for (size_t k = 0; k < davit_report_count(check->findings); k++) {
            const DavitRecord *r = davit_report_get(check->findings, k);

            printf("# %s %s %s: %s: %s | found %s | expected %s | do %s\n", check->info->id,
                   davit_code_name(r->code), severity_name(r), r->subject, r->message,
                   r->found, r->expected, r->hint);
        }
    }
}

/* Does some entry of @wanted name this finding? Marks it in @used. */
static bool is_listed(const json_t *wanted, bool *used, const DavitCheck *check,
                      const DavitRecord *r)
{
    for (size_t w = 0; w < json_array_size(wanted); w++)
        if (finding_fits(json_array_get(wanted, w), check, r)) {
            used[w] = true;
            return true;
        }
    return false;
}

static guint count_wrong(const DavitDoctor *doctor, const json_t *wanted)
{
    g_autofree bool *used = g_new0(bool, json_array_size(wanted) + 1);
    guint n_wrong = 0;

    for (size_t i = 0; i < davit_doctor_n_checks(doctor); i++) {
        const DavitCheck *check = davit_doctor_check(doctor, i);

        for (size_t k = 0; k < davit_report_count(check->findings); k++) {
            const DavitRecord *r = davit_report_get(check->findings, k);

            g_assert_nonnull(r->hint); /* one remedy each */
            if (is_listed(wanted, used, check, r) || r->severity == DAVIT_NOTE ||
                is_of_machine(check->info->id))
                continue;
            printf("# not expected: %s %s\n", check->info->id, r->message);
            n_wrong++;
        }
    }
    for (size_t w = 0; w < json_array_size(wanted); w++)
        if (!used[w]) {
            printf("# missing: finding %zu\n", w);
            n_wrong++;
        }
    return n_wrong;
}

static void check_states(const DavitDoctor *doctor, const json_t *states)
{
    const char *id;
    json_t *state;

    json_object_foreach((json_t *)(uintptr_t)states, id, state)
    {
        g_assert_cmpstr(davit_check_state(davit_doctor_find(doctor, id)), ==,
                        json_string_value(state));
    }
}

static void run_case(gconstpointer data)
{
    Case c = case_open(data);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitDoctor) doctor = examine(&c, report);
    const json_t *wanted = json_object_get(c.doc, "findings");
    const guint n_wrong = count_wrong(doctor, wanted);

    if (n_wrong)
        print_all(doctor);
    g_assert_cmpuint(n_wrong, ==, 0);
    g_assert_cmpint(davit_doctor_status(doctor), ==,
                    (int)json_integer_value(json_object_get(c.doc, "status")));
    check_states(doctor, json_object_get(c.doc, "states"));
    case_close(&c);
}

/* ---- healthy models ---- */

static void is_healthy(gconstpointer data)
{
    g_autofree char *source = g_build_filename(MODELS, data, NULL);
    char *copy = folder_copy(source);
    const DavitDoctorOptions options = {.deep = true};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitDoctor) doctor =
        davit_doctor_examine(registry, copy, &options, report);
    /* an architecture of another build is no fault of the model */
    json_t *unknown = json_pack("[{s:s}]", "check", "D06");
    const bool declined =
        davit_report_failed(davit_doctor_find(doctor, "D06")->findings);
    const guint n_wrong = count_wrong(doctor, declined ? unknown : NULL);

    if (n_wrong)
        print_all(doctor);
    g_assert_cmpuint(n_wrong, ==, 0);
    json_decref(unknown);
    folder_free(copy);
}

/* ---- what all checks have ---- */

static void every_check_is_told(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitDoctorOptions options = {0};
    g_autoptr(DavitDoctor) doctor =
        davit_doctor_examine(registry, "/nowhere/at/all", &options, report);

    for (unsigned i = 1; i <= 49; i++) {
        g_autofree char *id = g_strdup_printf("D%02u", i);
        const DavitCheck *check = davit_doctor_find(doctor, id);

        g_assert_cmpint(check != NULL, ==, i != 46); /* remote sources: the hub's */
        g_assert_cmpstr(davit_code_name(DAVIT_CODE_DOCTOR(i)), ==, id);
        g_assert_cmpuint(davit_code_number(id), ==, DAVIT_CODE_DOCTOR(i));
        if (check)
            g_assert_true(strlen(check->info->meaning) > 10 && check->info->remedy[0]);
    }
    g_assert_cmpint(davit_doctor_status(doctor), ==, DAVIT_E_IO);
    g_assert_cmpstr(davit_check_state(davit_doctor_find(doctor, "D07")), ==, "skipped");
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    unsigned *calls = ctx;

    g_assert_cmpuint(done, <=, total);
    ++*calls;
    return false;
}

static void a_pass_can_be_stopped(void)
{
    g_autofree char *source = g_build_filename(MODELS, "llama_mini", NULL);
    unsigned calls = 0;
    const DavitDoctorOptions options = {
        .deep = true, .progress = stop_at_once, .progress_ctx = &calls};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitDoctor) doctor =
        davit_doctor_examine(registry, source, &options, report);

    g_assert_true(davit_doctor_stopped(doctor));
    g_assert_cmpuint(calls, ==, 1);
}

/* ---- all ---- */

static void add_folder(const char *root, const char *test, const char *file,
                       GTestDataFunc run, GPtrArray *names)
{
    g_autoptr(GDir) dir = g_dir_open(root, 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/doctor/%s/%s", test, name);
        g_autofree char *there = g_build_filename(root, name, file, NULL);

        if (!g_file_test(there, G_FILE_TEST_EXISTS))
            continue;
        g_ptr_array_add(names, g_strdup(name));
        g_test_add_data_func(path, g_ptr_array_index(names, names->len - 1), run);
    }
}

static int print_case(const char *name)
{
    Case c = case_open(name);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitDoctor) doctor = examine(&c, report);

    printf("%s: status %d\n", name, davit_doctor_status(doctor));
    print_all(doctor);
    case_close(&c);
    return 0;
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
        g_test_add_func("/doctor/every_check_is_told", every_check_is_told);
        g_test_add_func("/doctor/a_pass_can_be_stopped", a_pass_can_be_stopped);
        add_folder(CASES, "case", "case.json", run_case, names);
        add_folder(MODELS, "healthy", "golden.json", is_healthy, names);
        status = g_test_run();
    }
    davit_registry_free(registry);
    return status;
}
