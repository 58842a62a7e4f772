/* SPDX-License-Identifier: Apache-2.0
 * The ABI gate: today's layout of every public struct against layout-v1.txt.
 *
 *   test_layout            compare
 *   test_layout --print    write what layout-v1.txt should be
 *
 * Rules. Frozen headers (1.x): a line never changes or goes away, new ones come after the
 * last of their struct or with a new struct. Headers of 0.x kinds: lines may change, but
 * only together with the kind's version, which the section's head states. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include <davit/plugin.h>

#include "layout_tables.h"

/* Interface version that a header's structs follow. */
typedef struct Version {
    const char *header;
    const char *name;
    unsigned major, minor;
} Version;

static const Version versions[] = {
    {"davit/arch.h", DAVIT_KIND_ARCH},           {"davit/comm.h", DAVIT_KIND_COMM},
    {"davit/format.h", DAVIT_KIND_FORMAT},       {"davit/kernels.h", DAVIT_KIND_KERNELS},
    {"davit/ops.h", DAVIT_KIND_KERNELS},         {"davit/quant.h", DAVIT_KIND_QUANT},
    {"davit/tokenizer.h", DAVIT_KIND_TOKENIZER},
};

static Version version_of(const char *header)
{
    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        if (strcmp(versions[i].header, header) == 0)
            return versions[i];
    }
    return (Version){header, "abi", DAVIT_ABI_MAJOR, DAVIT_ABI_MINOR};
}

/* (owned) lines without their newline: "# header name major.minor", then
 * "struct field offset size". */
static GPtrArray *lines_now(void)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    const char *header = "";

    for (size_t i = 0; i < n_layout_rows; i++) {
        const LayoutRow *row = &layout_rows[i];

        if (strcmp(header, row->header) != 0) {
            const Version v = version_of(row->header);

            header = row->header;
            g_ptr_array_add(lines, g_strdup_printf("# %s %s %u.%u", header, v.name,
                                                   v.major, v.minor));
        }
        g_ptr_array_add(lines, g_strdup_printf("%s %s %zu %zu", row->type, row->field,
                                               row->off, row->size));
    }
    return lines;
}

/* (owned) the committed lines. */
static GStrv lines_before(void)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;

    g_file_get_contents(DAVIT_SOURCE_DIR "/tests/abi/layout-v1.txt", &text, NULL, &error);
    g_assert_no_error(error);
    g_strchomp(text);
    return g_strsplit(text, "\n", -1);
}

static bool same_struct(const char *a, const char *b)
{
    const size_t n = strcspn(a, " ");

    return a[0] != '#' && strncmp(a, b, n + 1) == 0;
}

/* Index of @line in @lines, or -1. */
static long find_line(const GPtrArray *lines, const char *line)
{
    guint at;

    return g_ptr_array_find_with_equal_func((GPtrArray *)(uintptr_t)lines, line,
                                            g_str_equal, &at)
               ? (long)at
               : -1;
}

static void fail_with(const char *what, const char *line)
{
    g_test_message("%s: %s", what, line);
    g_test_message("if the change is allowed (tests/abi/README.md), accept it with "
                   "test_layout --print");
    g_test_fail();
}

/* A 0.x section: equal lines, unless its version went up. */
static bool is_draft(const char *head)
{
    return strstr(head, " 0.") != NULL;
}

/* Every committed line is still there, and in a frozen section right after the line that
 * it followed: nothing was put in between. */
static void committed_lines_reappear(void)
{
    g_autoptr(GPtrArray) now = lines_now();
    g_auto(GStrv) before = lines_before();
    bool skip = false; /* a draft whose version went up */

    for (size_t i = 0; before[i]; i++) {
        const long at = find_line(now, before[i]);

        if (before[i][0] == '#') {
            skip = at < 0 && is_draft(before[i]);
            if (at < 0 && !skip)
                fail_with("the version of a frozen header changed", before[i]);
        } else if (skip) {
            continue;
        } else if (at < 0) {
            fail_with("a committed field moved, changed its size or is gone", before[i]);
        } else if (i > 0 && same_struct(before[i], before[i - 1]) &&
                   (at == 0 ||
                    strcmp(g_ptr_array_index(now, at - 1), before[i - 1]) != 0)) {
            fail_with("a field was put before", before[i]);
        }
    }
}

/* A new field of a 0.x header without a new version would be loaded by hosts that lack
 * it. */
static void drafts_do_not_grow_silently(void)
{
    g_autoptr(GPtrArray) now = lines_now();
    g_auto(GStrv) before = lines_before();
    bool draft = false;

    for (size_t i = 0; i < now->len; i++) {
        const char *line = g_ptr_array_index(now, i);

        if (line[0] == '#')
            draft = is_draft(line) && g_strv_contains((const char *const *)before, line);
        else if (draft && !g_strv_contains((const char *const *)before, line))
            fail_with("a 0.x header changed and its kind's minor did not", line);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        g_autoptr(GPtrArray) now = lines_now();

        for (size_t i = 0; i < now->len; i++)
            puts(g_ptr_array_index(now, i));
        return 0;
    }
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/layout/committed_lines", committed_lines_reappear);
    g_test_add_func("/layout/drafts", drafts_do_not_grow_silently);
    return g_test_run();
}
