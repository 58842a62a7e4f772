/* SPDX-License-Identifier: Apache-2.0
 * Files of one set against each other: a file of another revision has other types or other
 * shapes under names that differ in the layer's number only. Judged where no plan fits every
 * shape; architectures whose layers differ by design do not differ along files. */
#include <string.h>

#include "doctor/doctor_private.h"

#define MAX_FILES 4096u

/* ---- types ---- */

/* Which of the two half types a file has. */
enum { HAS_F16 = 1, HAS_BF16 = 2 };

static int half_of(const davit_tensor_info *t)
{
    return strcmp(t->dtype, "f16/1") == 0    ? HAS_F16
           : strcmp(t->dtype, "bf16/1") == 0 ? HAS_BF16
                                             : 0;
}

/* Two half types that no file mixes: the type of the fewer tensors, 0 = it is not so. */
static int odd_half(const DavitCheckpoint *c, const uint8_t *has)
{
    size_t n[3] = {0};
    bool mixed = false;

    for (size_t i = 0; i < davit_checkpoint_n_files(c); i++)
        mixed = mixed || has[i] == (HAS_F16 | HAS_BF16);
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++)
        n[half_of(davit_checkpoint_tensor(c, i))]++;
    if (mixed || !n[HAS_F16] || !n[HAS_BF16])
        return 0;
    return n[HAS_F16] <= n[HAS_BF16] ? HAS_F16 : HAS_BF16;
}

/* (owned) a byte a file: 1 = its half type is the odd one. */
static uint8_t *files_of_odd_half(const DavitCheckpoint *c, bool *out_any, int *out_half)
{
    const size_t n = davit_checkpoint_n_files(c);
    uint8_t *has = g_new0(uint8_t, n + 1);

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        has[t->file] = (uint8_t)(has[t->file] | half_of(t));
    }
    *out_half = odd_half(c, has);
    *out_any = *out_half != 0;
    for (size_t i = 0; i < n; i++)
        has[i] = *out_half && has[i] == *out_half;
    return has;
}

/* ---- shapes ---- */

/* What one name of all layers looks like. */
typedef struct Kind {
    const davit_tensor_info *norm; /* (borrowed) the shape of most files */
    GPtrArray *all;                /* (borrowed) davit_tensor_info */
} Kind;

static void kind_free(void *p)
{
    g_ptr_array_unref(((Kind *)p)->all);
    g_free(p);
}

static bool same_shape(const davit_tensor_info *a, const davit_tensor_info *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Files whose tensors of this kind all have the shape of @like; 0 = some file has others, too. */
static size_t files_like(const Kind *kind, const davit_tensor_info *like, size_t n_files)
{
    g_autofree uint8_t *seen = g_new0(uint8_t, n_files);
    size_t n = 0;

    for (guint i = 0; i < kind->all->len; i++) {
        const davit_tensor_info *t = g_ptr_array_index(kind->all, i);

        seen[t->file] |= same_shape(t, like) ? 1 : 2;
    }
    for (size_t i = 0; i < n_files; i++) {
        if (seen[i] == 3)
            return 0;
        n += seen[i] == 1;
    }
    return n;
}

/* The shape of most files; NULL = all are alike, or they do not differ along files. */
static const davit_tensor_info *norm_of(const Kind *kind, size_t n_files)
{
    const davit_tensor_info *first = g_ptr_array_index(kind->all, 0), *other = NULL;
    size_t n_first, n_other;

    for (guint i = 1; i < kind->all->len && !other; i++)
        if (!same_shape(first, g_ptr_array_index(kind->all, i)))
            other = g_ptr_array_index(kind->all, i);
    if (!other || kind->all->len < 3) /* of two nobody knows which is odd */
        return NULL;
    n_first = files_like(kind, first, n_files);
    n_other = files_like(kind, other, n_files);
    if (!n_first || !n_other)
        return NULL;
    return n_other > n_first ? other : first;
}

static GHashTable *collect_kinds(const DavitCheckpoint *c)
{
    GHashTable *kinds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, kind_free);

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        char *pattern = davit_name_layer(t->name) >= 0 ? davit_name_pattern(t->name) : NULL;
        Kind *kind = pattern ? g_hash_table_lookup(kinds, pattern) : NULL;

        if (!pattern)
            continue;
        if (kind) {
            g_free(pattern);
        } else {
            kind = g_new0(Kind, 1);
            kind->all = g_ptr_array_new();
            g_hash_table_insert(kinds, pattern, kind);
        }
        g_ptr_array_add(kind->all, (void *)(uintptr_t)t);
    }
    return kinds;
}

/* What of one file is odd. */
typedef struct Odd {
    size_t n;                       /* tensors of other shapes */
    const davit_tensor_info *first; /* (borrowed) */
    const davit_tensor_info *norm;  /* (borrowed) the same in another file */
} Odd;

static Odd *collect_odd(const DavitCheckpoint *c)
{
    const size_t n_files = davit_checkpoint_n_files(c);
    g_autoptr(GHashTable) kinds = collect_kinds(c);
    Odd *odd = g_new0(Odd, n_files + 1);
    GHashTableIter it;
    void *value;

    g_hash_table_iter_init(&it, kinds);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        const Kind *kind = value;
        const davit_tensor_info *norm = norm_of(kind, n_files);

        for (guint i = 0; norm && i < kind->all->len; i++) {
            const davit_tensor_info *t = g_ptr_array_index(kind->all, i);
            Odd *o = &odd[t->file];

            if (same_shape(t, norm))
                continue;
            o->n++;
            if (!o->first || strcmp(t->name, o->first->name) < 0) {
                o->first = t;
                o->norm = norm;
            }
        }
    }
    return odd;
}

/* ---- saying ---- */

/* (owned) "[96, 224]" */
static char *shape_text(const davit_tensor_info *t)
{
    GString *out = g_string_new("[");

    for (uint32_t i = 0; i < t->rank; i++)
        g_string_append_printf(out, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    g_string_append_c(out, ']');
    return g_string_free(out, FALSE);
}

static void say_shapes(DavitDoctor *d, const char *file, const Odd *o, const char *half)
{
    g_autofree char *found = shape_text(o->first);
    g_autofree char *norm = shape_text(o->norm);

    davit_doctor_say(
        d, "D04",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = file,
            .expected = davit_doctor_text(d, "%s, as %s in another file", norm, o->norm->name),
            .found = davit_doctor_text(d, "%s is %s; %zu tensor%s of this file differ%s so%s%s",
                                       o->first->name, found, o->n, o->n == 1 ? "" : "s",
                                       o->n == 1 ? "s" : "",
                                       half ? ", and it alone is " : "", half ? half : ""),
            .message = "one file has other sizes than the same tensors have in the other files: "
                       "it is of another revision or model",
            .hint = davit_doctor_text(d, "replace %s by the one of the others' revision; its other "
                                         "tensors are not to be trusted either", file)});
}

static void say_half(DavitDoctor *d, const char *files, const char *half)
{
    davit_doctor_say(
        d, "D15",
        &(DavitFinding){.severity = DAVIT_WARNING,
                        .subject = files,
                        .expected = davit_doctor_text(d, "%s, as the other files",
                                                      strcmp(half, "float16") == 0 ? "bfloat16"
                                                                                   : "float16"),
                        .found = half,
                        .message = "the two half types are split exactly along the files: these "
                                   "files are of another revision or conversion",
                        .hint = "take all files from one revision"});
}

void davit_check_revisions(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const size_t n = c ? davit_checkpoint_n_files(c) : 0;
    g_autofree uint8_t *odd_types = NULL;
    g_autofree Odd *odd = NULL;
    g_autoptr(GString) files = g_string_new(NULL);
    const char *half;
    bool any = false;
    int which = 0;

    if (n < 2 || n > MAX_FILES)
        return;
    odd_types = files_of_odd_half(c, &any, &which);
    odd = d->patient.plan ? g_new0(Odd, n + 1) : collect_odd(c);
    half = which == HAS_F16 ? "float16" : "bfloat16";
    for (size_t i = 0; i < n; i++) {
        const char *name = davit_checkpoint_file(c, i).name;

        if (odd[i].n)
            say_shapes(d, name, &odd[i], odd_types[i] ? half : NULL);
        else if (odd_types[i] && files->len < 160)
            g_string_append_printf(files, "%s%s", files->len ? ", " : "", name);
    }
    if (files->len)
        say_half(d, files->str, half);
}
