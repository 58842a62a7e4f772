/* SPDX-License-Identifier: Apache-2.0
 * The JSON writer against Jansson: the same bytes for the same values, whether they are given
 * piece by piece or as a tree. */
#include "base/test_json_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"

static char *random_text(GRand *rand)
{
    static const char *const pieces[] = {"a",  "layers.12.", "\"", "\\", "/",    "\n", "\t",
                                         "\b", "\f",         "\r", "\x01", "\x1f", "\x7f", "é",
                                         "☃",  "😀",         " ",  ""};
    GString *s = g_string_new(NULL);

    for (int n = g_rand_int_range(rand, 0, 12); n > 0; n--)
        g_string_append(s, pieces[g_rand_int_range(rand, 0, G_N_ELEMENTS(pieces))]);
    return g_string_free(s, FALSE);
}

static json_t *random_tree(GRand *rand, int depth)
{
    static const double reals[] = {0.0, -0.0, 1.5, 1e300, -2.5e-9, 1.0 / 3, 123456789.0};
    const int kind = g_rand_int_range(rand, 0, depth > 5 ? 6 : 9);
    json_t *tree;

    switch (kind) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(g_rand_boolean(rand));
    case 2:
        return json_integer((json_int_t)((uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand)));
    case 3:
        return json_integer(g_rand_int_range(rand, -12, 12));
    case 4:
        return json_real(reals[g_rand_int_range(rand, 0, G_N_ELEMENTS(reals))]);
    case 5: {
        g_autofree char *text = random_text(rand);

        return json_string(text);
    }
    case 6:
        tree = json_array();
        for (int n = g_rand_int_range(rand, 0, 5); n > 0; n--)
            json_array_append_new(tree, random_tree(rand, depth + 1));
        return tree;
    default:
        tree = json_object();
        for (int n = g_rand_int_range(rand, 0, 5); n > 0; n--) {
            g_autofree char *key = random_text(rand);

            json_object_set_new(tree, key, random_tree(rand, depth + 1));
        }
        return tree;
    }
}

/* (owned) @tree as the writer puts it. */
static char *written(const json_t *tree, unsigned indent)
{
    GString *out = g_string_new(NULL);
    DavitJsonWriter *w = davit_json_writer_text(out, indent, 0);

    davit_json_put_tree(w, NULL, tree);
    g_assert_null(davit_json_writer_finish(w));
    g_assert_cmpuint(strlen(out->str), ==, out->len);
    return g_string_free(out, FALSE);
}

static void check_tree(const json_t *tree, unsigned indent)
{
    g_autofree char *is = written(tree, indent);
    char *wanted =
        json_dumps(tree, JSON_ENCODE_ANY | (indent ? JSON_INDENT(indent) : JSON_COMPACT));

    g_assert_cmpstr(is, ==, wanted);
    free(wanted);
}

static void trees_are_as_jansson_prints_them(void)
{
    const guint32 seed = g_test_rand_int();
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);

    g_test_message("seed %u", seed);
    for (unsigned i = 0; i < 2000; i++) {
        json_t *tree = random_tree(rand, 0);

        check_tree(tree, i % 3);
        json_decref(tree);
    }
}

/* One document by hand into @w. */
static void write_pieces(DavitJsonWriter *w)
{
    davit_json_begin(w, NULL, true);
    davit_json_put_text(w, "text", "x\xff\"y");
    davit_json_put_text(w, "none", NULL);
    davit_json_put_int(w, "least", INT64_MIN);
    davit_json_put_u64(w, "most", UINT64_MAX);
    davit_json_put_bool(w, "yes", true);
    davit_json_begin(w, "empty", true);
    davit_json_end(w);
    davit_json_begin(w, "list", false);
    for (int i = 0; i < 3; i++)
        davit_json_put_int(w, NULL, i);
    davit_json_begin(w, NULL, false);
    davit_json_end(w);
    davit_json_end(w);
    davit_json_end(w);
}

static void text_and_tree_are_the_same(void)
{
    DavitJsonWriter *w = davit_json_writer_tree();
    g_autoptr(GString) out = g_string_new("before ");
    json_t *tree;
    char *wanted;

    write_pieces(w);
    tree = davit_json_writer_finish(w);
    g_assert_cmpint(json_integer_value(json_object_get(tree, "least")), ==, INT64_MIN);
    g_assert_cmpint(json_integer_value(json_object_get(tree, "most")), ==, INT64_MAX);
    g_assert_cmpstr(json_string_value(json_object_get(tree, "text")), ==, "x\xef\xbf\xbd\"y");
    w = davit_json_writer_text(out, 1, 0);
    write_pieces(w);
    davit_json_writer_finish(w);
    wanted = json_dumps(tree, JSON_INDENT(1));
    g_assert_true(g_str_has_prefix(out->str, "before "));
    g_assert_cmpstr(out->str + strlen("before "), ==, wanted);
    free(wanted);
    json_decref(tree);
}

/* A part that is written for its depth joins as if it had been put in place. */
static void a_part_joins_its_document(void)
{
    g_autoptr(GString) part = g_string_new(NULL);
    g_autoptr(GString) all = g_string_new(NULL);
    json_t *tree = json_pack("{s:i, s:{s:[i,i], s:s}}", "a", 1, "part", "n", 2, 3, "t", "u");
    DavitJsonWriter *w = davit_json_writer_text(part, 1, 1);
    char *wanted = json_dumps(tree, JSON_INDENT(1));

    davit_json_put_tree(w, NULL, json_object_get(tree, "part"));
    davit_json_writer_finish(w);
    w = davit_json_writer_text(all, 1, 0);
    davit_json_begin(w, NULL, true);
    davit_json_put_int(w, "a", 1);
    davit_json_put_written(w, "part", part);
    davit_json_end(w);
    davit_json_writer_finish(w);
    g_assert_cmpstr(all->str, ==, wanted);
    free(wanted);
    json_decref(tree);
}

/* Deeper than the writer goes: still JSON, and the same value. */
static void what_is_too_deep_is_on_one_line(void)
{
    json_t *tree = json_array(), *again;
    g_autofree char *is = NULL;

    for (unsigned i = 0; i < 2 * DAVIT_JSON_WRITE_DEPTH; i++) {
        json_t *outer = json_array();

        json_array_append_new(outer, tree);
        tree = outer;
    }
    is = written(tree, 1);
    again = json_loads(is, 0, NULL);
    g_assert_true(again && json_equal(tree, again));
    json_decref(again);
    json_decref(tree);
}

void test_json_write_add(void)
{
    g_test_add_func("/json_write/trees_are_as_jansson_prints_them",
                    trees_are_as_jansson_prints_them);
    g_test_add_func("/json_write/text_and_tree_are_the_same", text_and_tree_are_the_same);
    g_test_add_func("/json_write/a_part_joins_its_document", a_part_joins_its_document);
    g_test_add_func("/json_write/what_is_too_deep_is_on_one_line",
                    what_is_too_deep_is_on_one_line);
}
