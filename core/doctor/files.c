/* SPDX-License-Identifier: Apache-2.0
 * The files of the model's directory and how tensors lie in them: names, rights, links,
 * strays, pickles, order. Headers themselves were judged when they were opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor/doctor_private.h"
#include "source/source.h"

#define LONG_PATH    260  /* Windows' old limit, where shared folders end up */
#define SMALL_TENSOR 65536u
#define MANY_SMALL   1000u

/* ---- D02: facts, D01, D03, D04 ---- */

static void tell_files(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    g_autofree char *bytes = NULL;

    if (!c) {
        static const char *const ids[] = {"D01", "D02", "D03", "D04", "D42", "D48", "D49"};

        for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
            davit_doctor_skip(d, ids[i], "weights that open");
        return;
    }
    bytes = davit_doctor_bytes(davit_checkpoint_n_bytes(c));
    davit_doctor_fact(d, "D02", "%zu file%s, %zu tensors, %s", davit_checkpoint_n_files(c),
                      davit_checkpoint_n_files(c) == 1 ? "" : "s",
                      davit_checkpoint_n_tensors(c), bytes);
    if (davit_checkpoint_index(c) &&
        davit_report_count(davit_doctor_of(d, "D04")->findings) == 0)
        davit_doctor_fact(d, "D04", "%s agrees with its files", davit_checkpoint_index(c));
    davit_checkpoint_check(c, davit_doctor_of(d, "D42")->findings);
}

/* ---- D02: a web page or a pointer where a file should be ---- */

#define HEAD 64 /* bytes that tell what a small file is */

static void look_at_head(DavitDoctor *d, const char *name, const char *full)
{
    static const char lfs[] = "version https://git-lfs";
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitSource) source = NULL;
    char head[HEAD + 1] = {0};
    uint64_t n;

    if (!g_str_has_suffix(name, ".json") && !g_str_has_suffix(name, ".jinja"))
        return;
    source = davit_source_open(full, aside);
    n = source ? MIN(davit_source_size(source), HEAD) : 0;
    if (n == 0 || davit_source_read(source, 0, head, n, aside))
        return;
    if (strncmp(head, lfs, sizeof lfs - 1) == 0)
        davit_doctor_say(d, "D02",
                         &(DavitFinding){.code = DAVIT_R_LFS_POINTER,
                                         .status = DAVIT_E_CORRUPT,
                                         .subject = name,
                                         .found = "a Git LFS pointer",
                                         .message = "the file itself was not fetched",
                                         .hint = "run git lfs pull in the folder, or "
                                                 "download the file itself"});
    else if (head[0] == '<' && g_str_has_suffix(name, ".json"))
        davit_doctor_say(d, "D02",
                         &(DavitFinding){.status = DAVIT_E_CORRUPT,
                                         .subject = name,
                                         .expected = "JSON",
                                         .found = "a web page",
                                         .message = "a page of the server was saved in "
                                                    "place of the file: a login, an "
                                                    "error, or the file's own page",
                                         .hint = "download the file again, with access "
                                                 "to the model"});
}

/* ---- D05, D43: what else lies there ---- */

static bool is_weights_name(const char *name)
{
    static const char *const ends[] = {".safetensors", ".gguf", ".bin", ".pt",
                                       ".pth",         ".ckpt", ".onnx"};

    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++)
        if (g_str_has_suffix(name, ends[i]))
            return true;
    return false;
}

static void check_weights_there(DavitDoctor *d)
{
    const GPtrArray *names = d->patient.path.names;
    g_autoptr(GString) list = g_string_new(NULL);

    if (d->patient.checkpoint)
        return;
    if (d->patient.path.entry) {
        if (g_str_has_suffix(d->patient.path.entry, ".json"))
            davit_doctor_say(d, "D05",
                             &(DavitFinding){.status = DAVIT_E_UNSUPPORTED,
                                             .subject = d->patient.path.entry,
                                             .expected = "a folder, weights or an index",
                                             .found = "one of the small files",
                                             .message = "a model is examined by its "
                                                        "folder",
                                             .hint = davit_doctor_text(
                                                 d, "davit doctor %s",
                                                 d->patient.path.dir)});
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        if (is_weights_name(names->pdata[i]))
            return;
        if (i < 8)
            g_string_append_printf(list, "%s%s", i ? ", " : "",
                                   (const char *)names->pdata[i]);
    }
    davit_doctor_say(d, "D05",
                     &(DavitFinding){.status = DAVIT_E_UNSUPPORTED,
                                     .subject = "weights",
                                     .expected = "a .safetensors or .gguf file",
                                     .found = list->len ? list->str : "nothing",
                                     .message = "the folder holds no weights at all",
                                     .hint = "download the model's weights, too"});
}

/* A file is what its content says; other programs go by the name. */
static void check_extension(DavitDoctor *d)
{
    static const struct {
        const char *id, *extension, *other, *found; /* other NULL = any other */
    } rows[] = {{"D03", "gguf", NULL, "a GGUF by its content"},
                {"D01", "safetensors", ".gguf", "safetensors by its content"}};
    const DavitCheckpoint *c = d->patient.checkpoint;
    const char *name = c ? davit_checkpoint_file(c, 0).name : NULL;

    for (size_t i = 0; name && i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *end = g_strconcat(".", rows[i].extension, NULL);

        if (!davit_takes_extension(d->patient.registry, davit_checkpoint_format(c),
                                   rows[i].extension) ||
            g_str_has_suffix(name, end) ||
            (rows[i].other && !g_str_has_suffix(name, rows[i].other)))
            continue;
        davit_doctor_say(d, rows[i].id,
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = name,
                                         .expected = davit_doctor_text(d, "a name that ends in %s",
                                                                       end),
                                         .found = rows[i].found,
                                         .message = "other programs go by the name and "
                                                    "will not read it",
                                         .hint = "rename the file"});
    }
}

/* A shard that is asked for may be there under a slightly other name. */
static void check_spelling(DavitDoctor *d)
{
    const DavitReport *f = davit_doctor_of(d, "D04")->findings;
    const GPtrArray *names = d->patient.path.names;
    const size_t n = davit_report_count(f);

    for (size_t i = 0; i < n; i++) {
        const DavitRecord *r = davit_report_get(f, i);

        for (guint k = 0; r->code == DAVIT_R_SHARD_MISSING && r->subject && k < names->len;
             k++)
            if (g_ascii_strcasecmp(names->pdata[k], r->subject) == 0) {
                davit_doctor_say(d, "D04",
                                 &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                                 .subject = r->subject,
                                                 .expected = r->subject,
                                                 .found = names->pdata[k],
                                                 .message = "the file is there under a "
                                                            "name that differs in case",
                                                 .hint = "rename the files as the index "
                                                         "spells them"});
                return;
            }
    }
}

static bool is_pickle_name(const char *name)
{
    return (g_str_has_suffix(name, ".bin") && strstr(name, "model")) ||
           g_str_has_suffix(name, ".pt") || g_str_has_suffix(name, ".pth") ||
           g_str_has_suffix(name, ".ckpt");
}

static bool is_partial(const char *name)
{
    return g_str_has_suffix(name, ".incomplete") || g_str_has_suffix(name, ".part") ||
           g_str_has_suffix(name, ".crdownload") || g_str_has_suffix(name, ".aria2") ||
           g_str_has_suffix(name, ".download");
}

static void look_at_name(DavitDoctor *d, const char *name)
{
    if (is_pickle_name(name) && d->patient.checkpoint)
        davit_doctor_say(d, "D43",
                         &(DavitFinding){.code = DAVIT_R_PICKLE_UNSAFE,
                                         .severity = DAVIT_NOTE,
                                         .subject = name,
                                         .found = "not read",
                                         .message =
                                             "a pickle lies beside the weights that are "
                                             "used; it is left alone",
                                         .hint = "nothing: it was not compared with them, and davit never reads "
                                                 "it"});
    if (is_partial(name))
        davit_doctor_say(d, "D02",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = name,
                                         .found = "a download that did not end",
                                         .message = "a partial download lies in the "
                                                    "folder and is not read",
                                         .hint = "start the download again, or delete "
                                                 "the file"});
}

/* Folders below with weights of their own, when the folder that was named has none. */
static void look_below(DavitDoctor *d)
{
    const DavitModelPath *path = &d->patient.path;

    for (guint i = 0; !d->patient.checkpoint && i < path->names->len; i++) {
        const char *name = g_ptr_array_index(path->names, i);
        g_autofree char *below = g_build_filename(path->dir, name, NULL);
        g_autofree char *index =
            g_build_filename(below, "model.safetensors.index.json", NULL);
        g_autofree char *single = g_build_filename(below, "model.safetensors", NULL);

        if (g_file_test(index, G_FILE_TEST_EXISTS) ||
            g_file_test(single, G_FILE_TEST_EXISTS))
            davit_doctor_say(d, "D05",
                             &(DavitFinding){.severity = DAVIT_NOTE,
                                             .subject = name,
                                             .found = "weights in a folder below",
                                             .message = "the model may lie in a folder "
                                                        "of the one that was named",
                                             .hint = davit_doctor_text(d, "name %s",
                                                                       below)});
    }
}

/* ---- D38, D39 ---- */

static void check_rights(DavitDoctor *d, const char *name, const char *full)
{
    if (access(full, R_OK) != 0 && errno == EACCES)
        davit_doctor_say(d, "D38",
                         &(DavitFinding){.status = DAVIT_E_IO,
                                         .subject = name,
                                         .expected = "readable by this user",
                                         .found = g_strerror(errno),
                                         .message = "a file of the model may not be read"});
}

static const char *hazard_of(const char *name, const char *full)
{
    const size_t n = strlen(name);

    if (!g_str_is_ascii(name))
        return "letters outside ASCII";
    if (n > 0 && (name[n - 1] == '.' || name[n - 1] == ' '))
        return "ends in a dot or a blank";
    if (strlen(full) > LONG_PATH)
        return "a path of more than 260 bytes";
    return NULL;
}

static void check_hazard(DavitDoctor *d, const char *name, const char *full)
{
    const char *hazard = hazard_of(name, full);

    if (hazard)
        davit_doctor_say(d, "D39",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = name,
                                         .found = hazard,
                                         .message = "davit reads it; some other tools "
                                                    "and systems do not"});
}

static int by_folded(const void *a, const void *b)
{
    return g_ascii_strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_case(DavitDoctor *d)
{
    const GPtrArray *names = d->patient.path.names;
    g_autofree const char **sorted = g_new(const char *, names->len + 1);

    if (names->len == 0)
        return;
    memcpy(sorted, names->pdata, names->len * sizeof *sorted);
    qsort(sorted, names->len, sizeof *sorted, by_folded);
    for (guint i = 1; i < names->len; i++)
        if (g_ascii_strcasecmp(sorted[i - 1], sorted[i]) == 0)
            davit_doctor_say(d, "D39",
                             &(DavitFinding){.severity = DAVIT_WARNING,
                                             .subject = sorted[i],
                                             .found = sorted[i - 1],
                                             .message = "two names differ in case only, "
                                                        "and one is lost where case does "
                                                        "not count"});
}

static void check_directory(DavitDoctor *d)
{
    const DavitModelPath *path = &d->patient.path;

    for (guint i = 0; i < path->names->len; i++) {
        const char *name = g_ptr_array_index(path->names, i);
        g_autofree char *full = g_build_filename(path->dir, name, NULL);

        /* of a file that was named only that file counts */
        if (path->entry && strcmp(path->entry, name) != 0)
            continue;
        look_at_name(d, name);
        look_at_head(d, name, full);
        check_rights(d, name, full);
        check_hazard(d, name, full);
    }
    if (!path->entry) {
        check_case(d);
        look_below(d);
        check_spelling(d);
    }
}

/* ---- D45 ---- */

static void check_room(DavitDoctor *d)
{
    struct statvfs fs;
    g_autofree char *left = NULL;

    if (statvfs(d->patient.path.dir, &fs) != 0) {
        davit_doctor_skip(d, "D45", "a file system that tells its free space");
        return;
    }
    left = davit_doctor_bytes((uint64_t)fs.f_bavail * fs.f_frsize);
    davit_doctor_fact(d, "D45", "%s free beside the model", left);
}

/* ---- D48, D49 ---- */

static void check_small(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const size_t n = davit_checkpoint_n_tensors(c);
    size_t n_small = 0;

    for (size_t i = 0; i < n; i++)
        n_small += davit_checkpoint_tensor(c, i)->n_bytes < SMALL_TENSOR;
    davit_doctor_fact(d, "D48", "%zu of %zu tensors are below 64 KiB", n_small, n);
    if (n_small > MANY_SMALL && n_small > n / 2)
        davit_doctor_say(d, "D48",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "tensors below 64 KiB",
                                         .found = davit_doctor_text(d, "%zu of %zu",
                                                                    n_small, n),
                                         .message = "most tensors are so small that a "
                                                    "read each would cost more than "
                                                    "their bytes"});
}

/* Names whose numbers count as numbers: layers.2 before layers.10. */
static int by_nature(const void *a, const void *b, void *unused)
{
    const davit_tensor_info *x = *(const davit_tensor_info *const *)a;
    const davit_tensor_info *y = *(const davit_tensor_info *const *)b;
    const int64_t layer_x = davit_name_layer(x->name), layer_y = davit_name_layer(y->name);

    (void)unused;
    if (layer_x != layer_y)
        return layer_x < layer_y ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void check_order(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const size_t n = davit_checkpoint_n_tensors(c);
    g_autofree const davit_tensor_info **order = g_new(const davit_tensor_info *, n + 1);
    size_t n_back = 0, n_odd = 0;

    for (size_t i = 0; i < n; i++)
        order[i] = davit_checkpoint_tensor(c, i);
    g_qsort_with_data(order, (gint)n, sizeof *order, by_nature, NULL);
    for (size_t i = 1; i < n; i++)
        n_back += order[i]->file == order[i - 1]->file && order[i]->off < order[i - 1]->off;
    for (size_t i = 0; i < n; i++)
        n_odd += order[i]->off % 64 != 0;
    davit_doctor_fact(d, "D49",
                      "%zu steps back when read by layer (davit reads by offset), %zu of "
                      "%zu tensors not at a multiple of 64 bytes",
                      n_back, n_odd, n);
}

void davit_check_files(DavitDoctor *doctor)
{
    tell_files(doctor);
    if (!doctor->patient.path.dir) {
        static const char *const ids[] = {"D05", "D38", "D39", "D43", "D45"};

        for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
            davit_doctor_skip(doctor, ids[i], "a model that is there");
        return;
    }
    check_directory(doctor);
    check_weights_there(doctor);
    check_extension(doctor);
    check_room(doctor);
    if (doctor->patient.checkpoint) {
        check_small(doctor);
        check_order(doctor);
    }
}
