/* SPDX-License-Identifier: Apache-2.0
 * davit inspect: what a checkpoint holds, from headers only. Needs no known architecture. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/inspect_quant.h"
#include "cli/inspect_tensors.h"

static const DavitFlag flags[] = {
    {"tensors", 't', DAVIT_FLAG_TEXT, "GLOB", "list only tensors whose name matches", NULL, NULL,
     false},
    {0},
};
static const char *const examples[] = {
    "davit inspect model/", "files, totals, metadata and every tensor",
    "davit inspect model.gguf --tensors 'blk.0.*'", "the tensors of the first layer",
    "davit inspect model/ --json", "the same as one JSON document", NULL};

#define MAX_SHOWN_ELEMENTS 8 /* of an array key */
#define MAX_SHOWN_TEXT 200   /* bytes of a string key in text output */

static json_t *span_json(davit_span span)
{
    g_autofree char *text = g_strndup(span.ptr, span.len);
    return davit_json_text(text);
}

static json_t *element_json(const davit_kv *kv, uint64_t i)
{
    int64_t n;
    uint64_t u;
    double x;
    bool b;
    if (kv->type == DAVIT_KV_BOOL && !kv->is_array && davit_kv_bool(kv, &b))
        return json_boolean(b);
    if (davit_kv_i64(kv, i, &n))
        return json_integer(n);
    if (davit_kv_u64(kv, i, &u))
        return json_real((double)u);
    if (davit_kv_f64(kv, i, &x)) {
        json_t *real = json_real(x); /* NULL for NaN and infinity */
        return real ? real : json_string("not finite");
    }
    return json_null();
}

/* A key's value; long arrays as {"type","count","first"}. */
static json_t *key_json(const davit_kv *kv)
{
    davit_span text;
    if (!kv->is_array && davit_kv_text(kv, &text))
        return span_json(text);
    if (!kv->is_array)
        return element_json(kv, 0);
    json_t *first = json_array();
    if (kv->type == DAVIT_KV_STR) {
        DavitKvCursor c = davit_kv_strings(kv);
        for (int i = 0; i < MAX_SHOWN_ELEMENTS && davit_kv_next(&c, &text); i++)
            json_array_append_new(first, span_json(text));
    } else {
        for (uint64_t i = 0; i < kv->count && i < MAX_SHOWN_ELEMENTS; i++)
            json_array_append_new(first, element_json(kv, i));
    }
    return json_pack("{s:s, s:I, s:o}", "type", davit_kv_type_name(kv->type), "count",
                     (json_int_t)kv->count, "first", first);
}

static uint64_t elements(const davit_tensor_info *t)
{
    uint64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

typedef struct DtypeSum {
    uint64_t n_tensors, n_elems, n_bytes;
} DtypeSum;

/* Sums by dtype, in name order. (owned) */
static GTree *sum_dtypes(const DavitCheckpoint *c)
{
    GTree *sums = g_tree_new_full((GCompareDataFunc)(void (*)(void))strcmp, NULL, g_free, g_free);
    const char *last = NULL; /* interned; neighbours have the same */
    DtypeSum *sum = NULL;
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        if (t->dtype != last)
            sum = g_tree_lookup(sums, t->dtype);
        if (!sum) {
            sum = g_new0(DtypeSum, 1);
            g_tree_insert(sums, g_strdup(t->dtype), sum);
        }
        last = t->dtype;
        sum->n_tensors++;
        sum->n_elems += elements(t);
        sum->n_bytes += t->n_bytes;
    }
    return sums;
}

static gboolean dtype_row(gpointer key, gpointer value, gpointer data)
{
    const DtypeSum *s = value;
    json_object_set_new(data, key,
                        json_pack("{s:I, s:I, s:I}", "tensors", (json_int_t)s->n_tensors,
                                  "elements", (json_int_t)s->n_elems, "bytes",
                                  (json_int_t)s->n_bytes));
    return FALSE;
}

static gboolean print_dtype(gpointer key, gpointer value, gpointer data)
{
    (void)data;
    const DtypeSum *s = value;
    g_autofree char *bytes = davit_bytes_text(s->n_bytes);
    printf("  %-10s %6" G_GUINT64_FORMAT " tensors  %10.3f M elements  %s\n", (const char *)key,
           s->n_tensors, (double)s->n_elems / 1e6, bytes);
    return FALSE;
}

static void fill_document(DavitCall *call, const DavitCheckpoint *c, const char *glob, GTree *sums,
                          json_t *quantised)
{
    json_t *files = json_array(), *keys = json_object();
    json_t *dtypes = json_object();
    for (size_t i = 0; i < davit_checkpoint_n_files(c); i++) {
        const DavitCheckpointFile f = davit_checkpoint_file(c, i);
        json_array_append_new(files, json_pack("{s:o, s:s, s:I, s:I}", "name",
                                               davit_json_text(f.name), "format", f.format,
                                               "bytes", (json_int_t)f.n_bytes, "tensors",
                                               (json_int_t)f.n_tensors));
    }
    for (size_t i = 0; i < davit_checkpoint_n_keys(c); i++) {
        const davit_kv *kv = davit_checkpoint_key(c, i);
        g_autofree char *name = g_utf8_make_valid(kv->key.ptr, (gssize)kv->key.len);
        json_object_set_new(keys, name, key_json(kv));
    }
    g_tree_foreach(sums, dtype_row, dtypes);
    json_object_set_new(call->doc, "format", json_string(davit_checkpoint_format(c)));
    json_object_set_new(call->doc, "files", files);
    json_object_set_new(call->doc, "totals",
                        json_pack("{s:I, s:I, s:O}", "tensors",
                                  (json_int_t)davit_checkpoint_n_tensors(c), "bytes",
                                  (json_int_t)davit_checkpoint_n_bytes(c), "dtypes", dtypes));
    json_decref(dtypes);
    json_object_set(call->doc, "quantised", quantised);
    json_object_set_new(call->doc, "metadata", keys);
    DavitJsonWriter *w = davit_call_begin_part(call, "tensors");
    davit_json_begin(w, NULL, false);
    davit_inspect_tensors_write(c, glob, w);
    davit_json_end(w);
    davit_json_writer_finish(w);
}

static void print_keys(const DavitCheckpoint *c)
{
    if (davit_checkpoint_n_keys(c))
        printf("metadata\n");
    for (size_t i = 0; i < davit_checkpoint_n_keys(c); i++) {
        const davit_kv *kv = davit_checkpoint_key(c, i);
        json_t *value = key_json(kv);
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        g_autofree char *shown = davit_escape(text ? text : "", text ? strlen(text) : 0,
                                              MAX_SHOWN_TEXT);
        g_autofree char *key = davit_escape(kv->key.ptr, kv->key.len, MAX_SHOWN_TEXT);
        printf("  %s = %s\n", key, shown);
        free(text);
        json_decref(value);
    }
}

static void print_text(const DavitCheckpoint *c, const char *glob, GTree *sums,
                       const json_t *quantised)
{
    for (size_t i = 0; i < davit_checkpoint_n_files(c); i++) {
        const DavitCheckpointFile f = davit_checkpoint_file(c, i);
        g_autofree char *bytes = davit_bytes_text(f.n_bytes);
        printf("%s  %s  %" G_GUINT64_FORMAT " tensors  (%s)\n", davit_shown(f.name), bytes, f.n_tensors,
               f.format);
    }
    print_keys(c);
    printf("dtypes\n");
    g_tree_foreach(sums, print_dtype, NULL);
    davit_inspect_quant_print(quantised);
    printf("tensors (name, dtype, shape, bytes, file+offset)\n");
    davit_inspect_tensors_print(c, glob);
    g_autofree char *bytes = davit_bytes_text(davit_checkpoint_n_bytes(c));
    printf("%zu tensors, %s\n", davit_checkpoint_n_tensors(c), bytes);
}

static int run(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(registry, call->args[0], DAVIT_INSPECT, call->report);
    if (!c)
        return davit_call_exit(call);
    GTree *sums = sum_dtypes(c);
    const char *glob = davit_call_text(call, "tensors");
    json_t *quantised = davit_inspect_quant(registry, c);
    if (call->json)
        fill_document(call, c, glob, sums, quantised);
    else
        print_text(c, glob, sums, quantised);
    json_decref(quantised);
    g_tree_unref(sums);
    return davit_call_exit(call);
}

const DavitCommand davit_command_inspect = {
    .name = "inspect",
    .args = "MODEL|FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "list tensors, types, offsets and metadata from headers only",
    .flags = flags,
    .examples = examples,
    .run = run,
};
