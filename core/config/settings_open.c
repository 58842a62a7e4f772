/* SPDX-License-Identifier: Apache-2.0
 * Settings of a checkpoint: the JSON files beside it, or the keys inside a GGUF. */
#include "config/settings_private.h"

#include <string.h>

#include "config/tree.h"

#define MAX_ARRAY                                                                        \
    65536 /* elements of a GGUF array that can be a setting; vocabularies are not */

/* (owned) element @index of @kv, NULL if it has no JSON form. */
static json_t *element(const davit_kv *kv, uint64_t index)
{
    int64_t i;
    double d;

    if (kv->type == DAVIT_KV_BOOL)
        return davit_kv_i64(kv, index, &i) ? json_boolean(i != 0) : NULL;
    if (kv->type != DAVIT_KV_F32 && kv->type != DAVIT_KV_F64 &&
        davit_kv_i64(kv, index, &i))
        return json_integer(i);
    return davit_kv_f64(kv, index, &d) ? davit_tree_real(d) : NULL;
}

static json_t *value_of(const davit_kv *kv)
{
    davit_span text;
    json_t *array;

    if (kv->type == DAVIT_KV_STR)
        return !kv->is_array && davit_kv_text(kv, &text)
                   ? json_stringn(text.ptr, text.len)
                   : NULL;
    if (!kv->is_array)
        return element(kv, 0);
    if (kv->count > MAX_ARRAY)
        return NULL;
    array = json_array();
    for (uint64_t i = 0; i < kv->count; i++) {
        json_t *item = element(kv, i);

        json_array_append_new(array, item ? item : json_null());
    }
    return array;
}

/* GGUF may leave the vocabulary's size to the rows of the embedding. */
static void add_vocab_size(json_t *keys, const DavitCheckpoint *checkpoint)
{
    const char *arch = json_string_value(json_object_get(keys, "general.architecture"));
    const davit_tensor_info *embedding =
        davit_checkpoint_find(checkpoint, "token_embd.weight");
    g_autofree char *key = g_strconcat(arch ? arch : "", ".vocab_size", NULL);

    if (!json_object_get(keys, key) && embedding && embedding->rank == 2 &&
        embedding->shape[0] <= INT32_MAX)
        json_object_set_new(keys, key, json_integer((json_int_t)embedding->shape[0]));
}

/* A GGUF carries all of its settings, and a folder may hold those of several models: what
 * lies beside it is not read. */
static void note_unread(const DavitCheckpoint *checkpoint, DavitReport *report)
{
    g_autofree char *path = g_build_filename(davit_checkpoint_dir(checkpoint),
                                             "generation_config.json", NULL);

    if (g_file_test(path, G_FILE_TEST_EXISTS))
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                         .severity = DAVIT_NOTE,
                                         .stage = "config",
                                         .subject = "generation_config.json",
                                         .found = "not read",
                                         .message = "the keys inside the GGUF count, not "
                                                    "the file beside it"});
}

static DavitSettings *open_gguf(const DavitCheckpoint *checkpoint, DavitReport *report)
{
    json_t *keys = json_object();
    const char *name = davit_checkpoint_file(checkpoint, 0).name;

    for (size_t i = 0; i < davit_checkpoint_n_keys(checkpoint); i++) {
        const davit_kv *kv = davit_checkpoint_key(checkpoint, i);
        json_t *value = value_of(kv);

        /* A string that is not UTF-8 has no JSON form and is no setting. */
        if (value)
            json_object_set_new(keys, kv->key.ptr, value);
    }
    add_vocab_size(keys, checkpoint);
    note_unread(checkpoint, report);
    return davit_settings_from_keys(keys, name, report);
}

/* A file beside the weights, or NULL with DAVIT_OK when there is none. */
static int32_t read_file(const DavitCheckpoint *checkpoint, const char *name,
                         GBytes **out, DavitReport *report)
{
    *out = NULL;
    return davit_checkpoint_sibling(checkpoint, name, DAVIT_TREE_MAX_BYTES, out, report);
}

DavitSettings *davit_settings_open(const DavitCheckpoint *checkpoint, DavitReport *report)
{
    static const char *const names[] = {"config.json", "params.json"};
    g_autoptr(GBytes) config = NULL;
    g_autoptr(GBytes) generation = NULL;
    const char *subject = names[0];
    const char *generation_text = NULL;
    gsize generation_len = 0;
    const char *text;
    gsize len;

    if (davit_checkpoint_find_key(checkpoint, "general.architecture"))
        return open_gguf(checkpoint, report);
    for (size_t i = 0; i < G_N_ELEMENTS(names) && !config; i++) {
        subject = names[i];
        if (read_file(checkpoint, names[i], &config, report) != DAVIT_OK)
            return NULL;
    }
    if (!config) {
        davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_CONFIG_MISSING,
                                    .status = DAVIT_E_CORRUPT,
                                    .stage = "config",
                                    .subject = "config.json",
                                    .expected = "config.json beside the weights",
                                    .found = "no such file",
                                    .message = "the model's settings are absent",
                                    .hint = "fetch config.json from where the weights "
                                            "came from"});
        return NULL;
    }
    if (read_file(checkpoint, "generation_config.json", &generation, report) != DAVIT_OK)
        return NULL;
    text = g_bytes_get_data(config, &len);
    if (generation)
        generation_text = g_bytes_get_data(generation, &generation_len);
    return davit_settings_parse(text, len, generation_text, generation_len, subject,
                                report);
}
