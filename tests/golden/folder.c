/* SPDX-License-Identifier: Apache-2.0
 * Copies and edits of golden folders; failures are the test's failures. */
#include "golden/folder.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>

static char *read_all(const char *path, gsize *out_len)
{
    char *text;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(path, &text, out_len, &error);
    g_assert_no_error(error);
    return text;
}

static void write_all(const char *path, const char *data, gsize n)
{
    g_autoptr(GError) error = NULL;
    g_file_set_contents(path, data, (gssize)n, &error);
    g_assert_no_error(error);
}

char *folder_copy(const char *dir)
{
    g_autoptr(GError) error = NULL;
    char *path = g_dir_make_tmp("davit-golden-XXXXXX", &error);
    g_assert_no_error(error);
    g_autoptr(GDir) list = g_dir_open(dir, 0, &error);
    g_assert_no_error(error);
    for (const char *name; (name = g_dir_read_name(list));) {
        if (g_str_has_suffix(name, ".npy") || strcmp(name, "golden.json") == 0)
            continue;
        gsize n;
        g_autofree char *from = g_build_filename(dir, name, NULL);
        g_autofree char *to = g_build_filename(path, name, NULL);
        g_autofree char *data = read_all(from, &n);
        write_all(to, data, n);
    }
    return path;
}

void folder_free(char *path)
{
    g_autoptr(GDir) list = g_dir_open(path, 0, NULL);
    for (const char *name; list && (name = g_dir_read_name(list));) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        g_unlink(file);
    }
    g_rmdir(path);
    g_free(path);
}

/* RFC 7396: null removes, objects merge, anything else replaces. Returns: (owned). */
static json_t *merge(json_t *target, const json_t *patch, int depth)
{
    g_assert_cmpint(depth, <, 20);
    if (!json_is_object(patch))
        return json_deep_copy(patch);
    json_t *out = json_is_object(target) ? json_deep_copy(target) : json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)patch, key, value)
    {
        if (json_is_null(value))
            json_object_del(out, key);
        else
            json_object_set_new(out, key, merge(json_object_get(out, key), value, depth + 1));
    }
    return out;
}

static void set_config(const char *path, const json_t *config)
{
    g_autofree char *file = g_build_filename(path, "config.json", NULL);
    char *text = json_dumps(config, JSON_INDENT(1));
    write_all(file, text, strlen(text));
    free(text);
}

static void patch_config(const char *path, const json_t *patch)
{
    gsize n;
    g_autofree char *file = g_build_filename(path, "config.json", NULL);
    g_autofree char *text = read_all(file, &n);
    json_t *config = json_loadb(text, n, 0, NULL);
    g_assert_nonnull(config);
    json_t *merged = merge(config, patch, 0);
    set_config(path, merged);
    json_decref(merged);
    json_decref(config);
}

static void edit_bytes(char *data, gsize n, const char *original, const json_t *edit)
{
    const json_int_t at = json_integer_value(json_object_get(edit, "at"));
    const char *hex = json_string_value(json_object_get(edit, "hex"));
    const json_t *zero = json_object_get(edit, "zero"), *from = json_object_get(edit, "from");
    const gsize size = hex    ? strlen(hex) / 2
                       : zero ? (gsize)json_integer_value(zero)
                              : (gsize)json_integer_value(json_object_get(edit, "size"));
    g_assert_true(at >= 0 && (gsize)at <= n && size <= n - (gsize)at);
    for (gsize i = 0; hex && i < size; i++)
        data[(gsize)at + i] = (char)(g_ascii_xdigit_value(hex[2 * i]) * 16 +
                                     g_ascii_xdigit_value(hex[2 * i + 1]));
    if (zero)
        memset(data + at, 0, size);
    if (from)
        memcpy(data + at, original + json_integer_value(from), size);
}

static void edit_file(const char *path, const json_t *change)
{
    gsize n;
    g_autofree char *file =
        g_build_filename(path, json_string_value(json_object_get(change, "file")), NULL);
    g_autofree char *original = read_all(file, &n);
    g_autofree char *data = g_memdup2(original, n);
    size_t i;
    json_t *edit;
    json_array_foreach(json_object_get(change, "edits"), i, edit)
        edit_bytes(data, n, original, edit);
    write_all(file, data, n);
}

void folder_change(const char *path, const json_t *change)
{
    if (json_object_get(change, "config"))
        set_config(path, json_object_get(change, "config"));
    if (json_object_get(change, "patch"))
        patch_config(path, json_object_get(change, "patch"));
    if (json_object_get(change, "file"))
        edit_file(path, change);
}
