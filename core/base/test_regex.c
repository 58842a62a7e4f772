/* SPDX-License-Identifier: Apache-2.0
 * The regex suite: what Hugging Face's tokenizers 0.23.3 gives (frozen samples; 42,000
 * random strings over 41 patterns were compared when this was written), what is refused,
 * limits. */
#include <string.h>

#include <glib.h>

#include "base/regex.h"

/* The matches of @pattern in @text, each in <>. (owned) */
static char *matches(const char *pattern, uint32_t flags, const char *text, uint64_t cap)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegex) regex =
        davit_regex_compile(pattern, strlen(pattern), flags, "t", report);
    const davit_span span = {text, strlen(text)};
    GString *s = g_string_new(NULL);
    uint64_t from = 0;

    if (!regex)
        g_error("%s: %s", pattern, davit_report_get(report, 0)->message);
    do {
        uint64_t pairs[64];
        const int64_t n = davit_regex_matches(regex, span, from, pairs, cap, &from);

        g_assert_cmpint(n, >=, 0);
        for (int64_t i = 0; i < n; i++)
            g_string_append_printf(s, "<%.*s>", (int)(pairs[2 * i + 1] - pairs[2 * i]),
                                   text + pairs[2 * i]);
    } while (from < span.len);
    return g_string_free(s, FALSE);
}

static void expect(const char *pattern, const char *text, const char *wanted)
{
    g_autofree char *all = matches(pattern, 0, text, 32);
    g_autofree char *one_by_one = matches(pattern, 0, text, 1);

    g_assert_cmpstr(all, ==, wanted);
    g_assert_cmpstr(one_by_one, ==, wanted);
}

#define LLAMA3                                                                           \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"            \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static void llama3(void)
{
    expect(LLAMA3, "I'll pay  1234 EUR!\n\n ok",
           "<I><'ll>< pay>< ><"
           " "
           "><123><4>< EUR><!\n\n>< ok>");
    expect(LLAMA3, "can'T \xc5\xbfo", "<can><'T>< \xc5\xbfo>");
}

static void classes_nest_and_meet(void)
{
    expect("[\\p{L}&&[^\\p{Han}]]+",
           "ab\xe4\xb8\xad"
           "c",
           "<ab><c>");
    expect("[a-c[x-z[0-5]]]+", "az5d6", "<az5>");
    expect("[^(\\s|[.,])]+", "a(b.c", "<a><b><c>");
    expect("[a&&b]", "ab", "");
}

static void words_are_onigs(void)
{
    expect("\\w+", "a\xc2\xb2_\xc2\xbd",
           "<a\xc2\xb2_\xc2\xbd>");           /* superscript, fraction */
    expect("[\\w]+", "a\xc2\xb2_", "<a><_>"); /* not in brackets */
    expect("\\w+",
           "a\xe2\x80\x8d"
           "b",
           "<a><b>"); /* no joiner */
    expect("\\bfoo\\b", "foo foobar foo.", "<foo><foo>");
}

static void spaces_are_onigs(void)
{
    expect("\\s+",
           "a\xe1\xa0\x8e"
           "b\xc2\xa0\xc2\x85"
           "c",
           "<\xc2\xa0\xc2\x85>");
    expect("\\h+", "ab gh", "<ab>");
    expect("[\\v]", "a\nb\vc", "<\v>");
}

static void unicode_16(void)
{
    expect("\\p{L}+", "\xf0\x91\xb7\x80", "");                  /* U+11DC0: unassigned */
    expect("\\p{N}", "\xf0\x91\xaf\xb0", "<\xf0\x91\xaf\xb0>"); /* U+11BF0: Unicode 16 */
}

static void lines(void)
{
    expect("\\s+$", "a \nb ", "< >< >");
    expect("^b", "a\nb", "<b>");
    expect(".+", "a\r\nb", "<a\r><b>");
    expect("(?m:.+)", "a\nb", "<a\nb>");
}

static void intervals(void)
{
    expect("[0-9]{1,3}+", "12345", "<12345>"); /* possessive in PCRE2 */
    expect("a{,2}b", "aaab", "<aab>");
    expect("a{b", "a{b", "<a{b>");
    expect("a{1,2}?", "aa", "<a><a>");
}

static void case_is_ignored(void)
{
    g_autofree char *found = matches("k|[^b]x", DAVIT_REGEX_CASELESS,
                                     "K\xe2\x84\xaa"
                                     "BX",
                                     8);

    g_assert_cmpstr(found, ==, "<K><\xe2\x84\xaa>");
    expect("(?i:[^a-c])+", "ADcB", "<D>");
}

static void empty_matches(void)
{
    static const char text[] = "baac";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegex) regex = davit_regex_compile("a*", 2, 0, "t", report);
    static const uint64_t wanted[] = {0, 0, 1, 3, 4, 4};
    uint64_t pairs[16];
    uint64_t next = 0;

    g_assert_cmpint(davit_regex_matches(regex, (davit_span){text, 4}, 0, pairs, 8, &next),
                    ==, 3);
    g_assert_cmpmem(pairs, sizeof wanted, wanted, sizeof wanted);
    g_assert_cmpuint(next, ==, 4);
}

static void refused(void)
{
    static const struct {
        const char *pattern;
        const char *found;
    } rows[] = {
        {"a[[:alpha:]]", "byte 2: [:alpha:]]"},
        {"\\p{Greek}", "byte 0: \\p{Greek}"},
        {"a\\Kb", "byte 1: \\Kb"},
        {"a\\Xb", "byte 1: \\Xb"},
        {"(*UTF)a", "byte 0: (*UTF)a"},
        {"(?P<n>a)", "byte 0: (?P<n>a)"},
        {"(?x: a )", "byte 0: (?x: a )"},
        {"(?R)", "byte 0: (?R)"},
        {"a(?i)b", "byte 1: (?i)b"},
        {"a{2}?", "byte 1: {2}?"},
        {"(?i:\\p{Lu})", "byte 4: \\p{Lu})"},
        {"[a", "byte 1: a"},
        {"(a", "byte 1: a"},
        {"a)", "byte 1: )"},
        {"[b-a]", "byte 1: b-a]"},
        {"[]a]", "byte 0: []a]"},
        {"\\x{110000}", "byte 0: \\x{110000}"},
        {"a\\", "byte 1: \\"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegex) regex = davit_regex_compile(
            rows[i].pattern, strlen(rows[i].pattern), 0, "split", report);
        const DavitRecord *r;

        g_assert_null(regex);
        r = davit_report_get(report, 0);
        g_assert_cmpuint(r->code, ==, DAVIT_R_TOKENIZER_UNSUPPORTED);
        g_assert_cmpstr(r->subject, ==, "split");
        g_assert_cmpstr(r->found, ==, rows[i].found);
    }
}

/* Exponential without a limit. */
static void backtracking_is_bounded(void)
{
    g_autofree char *run = g_strnfill(64, 'a');
    g_autofree char *text = g_strconcat(run, "!", NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegex) regex = davit_regex_compile("(?:a|aa)+\\z", 11, 0, "t", report);
    uint64_t pair[2];
    uint64_t next = 7;

    g_assert_cmpint(davit_regex_matches(regex, (davit_span){text, 65}, 0, pair, 1, &next),
                    ==, DAVIT_E_LIMIT);
    g_assert_cmpuint(next, ==, 7);
}

static void invalid_text_never_matches(void)
{
    expect("a.?",
           "a\xff"
           "ab",
           "<a><ab>");
    expect("[^b]+", "\xe2\x82", "");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/regex/llama3", llama3);
    g_test_add_func("/regex/classes_nest_and_meet", classes_nest_and_meet);
    g_test_add_func("/regex/words_are_onigs", words_are_onigs);
    g_test_add_func("/regex/spaces_are_onigs", spaces_are_onigs);
    g_test_add_func("/regex/unicode_16", unicode_16);
    g_test_add_func("/regex/lines", lines);
    g_test_add_func("/regex/intervals", intervals);
    g_test_add_func("/regex/case_is_ignored", case_is_ignored);
    g_test_add_func("/regex/empty_matches", empty_matches);
    g_test_add_func("/regex/refused", refused);
    g_test_add_func("/regex/backtracking_is_bounded", backtracking_is_bounded);
    g_test_add_func("/regex/invalid_text_never_matches", invalid_text_never_matches);
    return g_test_run();
}
