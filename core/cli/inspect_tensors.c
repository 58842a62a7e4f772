/* SPDX-License-Identifier: Apache-2.0
 * Lines are put together by hand and written at once: a checkpoint has tens of thousands. */
#include "cli/inspect_tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "cli/commands.h"

#define MAX_NAME   120 /* bytes of a name that are shown */
#define NAME_WIDTH 52
#define TYPE_WIDTH 8
#define SHAPE_WIDTH 20
#define BYTES_WIDTH 12

#define BATCH (256u << 10) /* bytes of text that are written together */

static void append_blanks(GString *out, size_t n)
{
    static const char blanks[] = "                                                    ";

    g_string_append_len(out, blanks, (gssize)MIN(n, sizeof blanks - 1));
}

/* @text, then blanks up to @width. */
static void append_left(GString *out, const char *text, size_t n, size_t width)
{
    g_string_append_len(out, text, (gssize)n);
    if (n < width)
        append_blanks(out, width - n);
}

/* Digits of @n behind as many blanks as fill @width. */
static void append_number(GString *out, uint64_t n, size_t width)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    if (sizeof digits - at < width)
        append_blanks(out, width - (sizeof digits - at));
    g_string_append_len(out, digits + at, (gssize)(sizeof digits - at));
}

static void append_shape(GString *out, const davit_tensor_info *t)
{
    const size_t start = out->len;

    g_string_append_c(out, '[');
    for (uint32_t r = 0; r < t->rank; r++) {
        if (r)
            g_string_append_len(out, ", ", 2);
        append_number(out, t->shape[r], 0);
    }
    g_string_append_c(out, ']');
    if (out->len - start < SHAPE_WIDTH)
        append_blanks(out, SHAPE_WIDTH - (out->len - start));
}

static void append_tensor(GString *out, const davit_tensor_info *t, const char *file)
{
    char name[MAX_NAME + DAVIT_ESCAPE_REST];
    const size_t n = davit_escape_into(name, t->name, strlen(t->name), MAX_NAME);

    g_string_append_len(out, "  ", 2);
    append_left(out, name, n, NAME_WIDTH);
    g_string_append_c(out, ' ');
    append_left(out, t->dtype, strcspn(t->dtype, "/"), TYPE_WIDTH);
    g_string_append_c(out, ' ');
    append_shape(out, t);
    g_string_append_c(out, ' ');
    append_number(out, t->n_bytes, BYTES_WIDTH);
    g_string_append_len(out, "  ", 2);
    g_string_append(out, file);
    g_string_append_c(out, '+');
    append_number(out, t->off, 0);
    g_string_append_c(out, '\n');
}

/* (owned) Names of the files, escaped. */
static GPtrArray *file_names(const DavitCheckpoint *c)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    for (size_t i = 0; i < davit_checkpoint_n_files(c); i++) {
        const char *name = davit_checkpoint_file(c, i).name;

        g_ptr_array_add(names, davit_escape(name, strlen(name), 4096));
    }
    return names;
}

void davit_inspect_tensors_print(const DavitCheckpoint *c, const char *glob)
{
    g_autoptr(GPatternSpec) spec = glob ? g_pattern_spec_new(glob) : NULL;
    g_autoptr(GPtrArray) files = file_names(c);
    g_autoptr(GString) out = g_string_sized_new(BATCH + 8192);

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        if (spec && !g_pattern_spec_match_string(spec, t->name))
            continue;
        append_tensor(out, t, g_ptr_array_index(files, t->file));
        if (out->len >= BATCH) {
            fwrite(out->str, 1, out->len, stdout);
            g_string_truncate(out, 0);
        }
    }
    fwrite(out->str, 1, out->len, stdout);
}

void davit_inspect_tensors_write(const DavitCheckpoint *c, const char *glob, DavitJsonWriter *w)
{
    g_autoptr(GPatternSpec) spec = glob ? g_pattern_spec_new(glob) : NULL;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        if (spec && !g_pattern_spec_match_string(spec, t->name))
            continue;
        davit_json_begin(w, NULL, true);
        davit_json_put_text(w, "name", t->name);
        davit_json_put_text(w, "dtype", t->dtype);
        davit_json_begin(w, "shape", false);
        for (uint32_t r = 0; r < t->rank; r++)
            davit_json_put_int(w, NULL, (int64_t)t->shape[r]);
        davit_json_end(w);
        davit_json_put_text(w, "file", davit_checkpoint_file(c, t->file).name);
        davit_json_put_int(w, "offset", (int64_t)t->off);
        davit_json_put_int(w, "bytes", (int64_t)t->n_bytes);
        davit_json_end(w);
    }
}
