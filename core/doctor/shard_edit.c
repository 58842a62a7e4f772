/* SPDX-License-Identifier: Apache-2.0
 * A file read into memory, changed, written. */
#include "doctor/shard_edit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/* A safetensors file in memory. */
typedef struct Shard {
    json_t *head;
    GByteArray *data;
} Shard;

static void shard_read(const char *path, Shard *out)
{
    char *text;
    gsize n;
    uint64_t n_head;

    g_assert_true(g_file_get_contents(path, &text, &n, NULL));
    memcpy(&n_head, text, 8);
    out->head = json_loadb(text + 8, n_head, 0, NULL);
    out->data = g_byte_array_new();
    g_byte_array_append(out->data, (uint8_t *)text + 8 + n_head, (guint)(n - 8 - n_head));
    g_assert_nonnull(out->head);
    g_free(text);
}

static json_int_t offset_of(const json_t *row, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(row, "data_offsets"), i));
}

/* Writes the tensors of @shard one behind the other. */
static void shard_write(const char *path, Shard *shard)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autoptr(GByteArray) data = g_byte_array_new();
    json_t *head = json_object();
    const char *name;
    json_t *row;
    char *text;
    uint64_t n;

    json_object_foreach(shard->head, name, row)
    {
        json_t *copy = json_deep_copy(row);
        const guint at = data->len;

        if (json_object_get(row, "data_offsets")) {
            g_byte_array_append(data, shard->data->data + offset_of(row, 0),
                                (guint)(offset_of(row, 1) - offset_of(row, 0)));
            json_object_set_new(copy, "data_offsets",
                                json_pack("[I, I]", (json_int_t)at, (json_int_t)data->len));
        }
        json_object_set_new(head, name, copy);
    }
    text = json_dumps(head, JSON_COMPACT);
    n = strlen(text);
    g_byte_array_append(out, (uint8_t *)&n, 8);
    g_byte_array_append(out, (uint8_t *)text, (guint)n);
    g_byte_array_append(out, data->data, data->len);
    g_assert_true(g_file_set_contents(path, (char *)out->data, (gssize)out->len, NULL));
    free(text);
    json_decref(head);
    json_decref(shard->head);
    g_byte_array_unref(shard->data);
}

static void fill_tensor(Shard *shard, const char *name, const char *hex)
{
    const json_t *row = json_object_get(shard->head, name);
    const size_t n = strlen(hex) / 2;

    g_assert_nonnull(row);
    for (json_int_t i = offset_of(row, 0); i < offset_of(row, 1); i++) {
        const size_t k = (size_t)(i - offset_of(row, 0)) % n;

        shard->data->data[i] = (uint8_t)(g_ascii_xdigit_value(hex[2 * k]) * 16 +
                                         g_ascii_xdigit_value(hex[2 * k + 1]));
    }
}

/* With bytes of its own, which may be filled. */
static void copy_tensor(Shard *shard, const char *name, const char *to)
{
    json_t *row = json_deep_copy(json_object_get(shard->head, name));
    const json_int_t from = offset_of(row, 0), n = offset_of(row, 1) - from;
    const guint at = shard->data->len;

    g_byte_array_set_size(shard->data, at + (guint)n);
    memcpy(shard->data->data + at, shard->data->data + from, (size_t)n);
    json_object_set_new(row, "data_offsets",
                        json_pack("[I, I]", (json_int_t)at, (json_int_t)at + n));
    json_object_set_new(shard->head, to, row);
}

/* Rows and columns exchanged in the shape. */
static void turn_tensor(Shard *shard, const char *name)
{
    json_t *shape = json_object_get(json_object_get(shard->head, name), "shape");
    const json_int_t rows = json_integer_value(json_array_get(shape, 0));

    json_array_set(shape, 0, json_array_get(shape, 1));
    json_array_set_new(shape, 1, json_integer(rows));
}

/* All names that begin with @prefix: another beginning, or (@to NULL) gone. */
static void rename_tensors(Shard *shard, const char *prefix, const char *to)
{
    json_t *head = json_object();
    const char *name;
    json_t *row;

    json_object_foreach(shard->head, name, row)
    {
        const bool hit = g_str_has_prefix(name, prefix);
        g_autofree char *renamed =
            g_strconcat(hit && to ? to : "", name + (hit && to ? strlen(prefix) : 0), NULL);

        if (!hit || to)
            json_object_set(head, renamed, row);
    }
    json_decref(shard->head);
    shard->head = head;
}

void shard_edit(const char *path, const json_t *edits)
{
    const json_t *edit;
    Shard shard;
    size_t i;

    shard_read(path, &shard);
    json_array_foreach(edits, i, edit)
    {
        const char *to = json_string_value(json_object_get(edit, "to"));
        const char *rename = json_string_value(json_object_get(edit, "rename"));
        const char *drop = json_string_value(json_object_get(edit, "drop"));
        const char *copy = json_string_value(json_object_get(edit, "copy"));
        const char *fill = json_string_value(json_object_get(edit, "fill"));

        if (rename || drop)
            rename_tensors(&shard, rename ? rename : drop, rename ? to : NULL);
        if (copy)
            copy_tensor(&shard, copy, to);
        if (json_object_get(edit, "turn"))
            turn_tensor(&shard, json_string_value(json_object_get(edit, "turn")));
        if (fill)
            fill_tensor(&shard, fill, json_string_value(json_object_get(edit, "hex")));
    }
    shard_write(path, &shard);
}
