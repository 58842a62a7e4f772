/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stop.h"

#include <string.h>

/* For every way to split the text in two, the shown text is the same. */
static void check(const char *const *stops, const char *text, const char *want, gboolean want_hit)
{
    const size_t n = strlen(text);
    for (size_t cut = 0; cut <= n; cut++) {
        DavitStop *stop = davit_stop_new(stops);
        GString *out = g_string_new(NULL);
        gboolean hit = davit_stop_push(stop, text, cut, out);
        if (!hit)
            hit = davit_stop_push(stop, text + cut, n - cut, out);
        if (!hit)
            davit_stop_flush(stop, out);
        g_assert_cmpstr(out->str, ==, want);
        g_assert_cmpint(hit, ==, want_hit);
        g_string_free(out, TRUE);
        davit_stop_free(stop);
    }
}

static void test_stop(void)
{
    const char *const end[] = {"<end>", "\n\n", "", NULL};
    check(end, "hello <end> more", "hello ", TRUE);
    check(end, "a\nb\n\nc", "a\nb", TRUE);
    check(end, "no stop <en", "no stop <en", FALSE);
    check(end, "", "", FALSE);
    const char *const overlap[] = {"aab", NULL};
    check(overlap, "xaaab", "xa", TRUE);
    check(NULL, "anything", "anything", FALSE);
}

static void test_nothing_shown_early(void)
{
    const char *const stops[] = {"STOP", NULL};
    DavitStop *stop = davit_stop_new(stops);
    GString *out = g_string_new(NULL);
    g_assert_false(davit_stop_push(stop, "abST", 4, out));
    g_assert_cmpstr(out->str, ==, "ab");
    g_assert_false(davit_stop_push(stop, "x", 1, out));
    g_assert_cmpstr(out->str, ==, "abSTx");
    g_string_free(out, TRUE);
    davit_stop_free(stop);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stop/every-split-shows-the-same", test_stop);
    g_test_add_func("/stop/holds-back-only-beginnings", test_nothing_shown_early);
    return g_test_run();
}
