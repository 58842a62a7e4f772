/* SPDX-License-Identifier: Apache-2.0
 * The rules of the codes: one row a code, and what a record lacks. */
#include "base/codes.h"

#include <string.h>

static const uint32_t numbers[] = {
#define NUMBER(num, name, text, when) num,
    DAVIT_CODES(NUMBER)
#undef NUMBER
};

static void each_code_has_its_row(void)
{
    size_t n;
    const DavitCodeRule *rules = davit_code_rules(&n);

    g_assert_cmpuint(n, ==, G_N_ELEMENTS(numbers));
    for (size_t i = 0; i < n; i++) {
        g_assert_cmpuint(rules[i].code, ==, numbers[i]);
        g_assert_true(davit_code_rule(numbers[i]) == &rules[i]);
        g_assert_cmpuint(strspn(rules[i].fields, "sefc"), ==, strlen(rules[i].fields));
        g_assert_true(strchr(rules[i].fields, 's') != NULL);
    }
    g_assert_null(davit_code_rule(9001));
    g_assert_null(davit_code_rule(0));
}

/* One clause that fits a line behind a sentence, no full stop. */
static void remedies_are_short(void)
{
    size_t n;
    const DavitCodeRule *rules = davit_code_rules(&n);

    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(rules[i].remedy);

        g_assert_cmpuint(len, >=, 10);
        g_assert_cmpuint(len, <=, 72);
        g_assert_true(rules[i].remedy[len - 1] != '.');
        g_assert_false(g_ascii_isupper(rules[i].remedy[0]));
    }
}

/* What a shape-mismatch with these fields lacks. */
static const char *lacks(DavitSeverity severity, const char *subject,
                         const char *expected, const char *found)
{
    const DavitRecord r = {.code = DAVIT_R_SHAPE_MISMATCH,
                           .severity = severity,
                           .subject = (char *)(uintptr_t)subject,
                           .expected = (char *)(uintptr_t)expected,
                           .found = (char *)(uintptr_t)found,
                           .message = (char *)(uintptr_t) "m",
                           .hint = (char *)(uintptr_t) "h"};

    return davit_record_lacks(&r);
}

static void holes_are_named(void)
{
    DavitRecord r = {.code = DAVIT_R_NOT_FOUND, .severity = DAVIT_ERROR};

    g_assert_cmpstr(davit_record_lacks(&r), ==, "sentence");
    r.message = (char *)(uintptr_t) "two\nlines";
    g_assert_cmpstr(davit_record_lacks(&r), ==, "sentence");
    r.message = (char *)(uintptr_t) "m";
    g_assert_cmpstr(davit_record_lacks(&r), ==, "hint");
    r.hint = (char *)(uintptr_t) "h";
    g_assert_cmpstr(davit_record_lacks(&r), ==, "subject");
    r.subject = (char *)(uintptr_t) "s";
    g_assert_cmpstr(davit_record_lacks(&r), ==, "expected or found");
    r.found = (char *)(uintptr_t) "f";
    g_assert_null(davit_record_lacks(&r));

    g_assert_cmpstr(lacks(DAVIT_ERROR, NULL, "e", "f"), ==, "subject");
    g_assert_cmpstr(lacks(DAVIT_ERROR, "s", NULL, "f"), ==, "expected");
    g_assert_cmpstr(lacks(DAVIT_WARNING, "s", "e", NULL), ==, "found");
    g_assert_null(lacks(DAVIT_NOTE, "s", NULL, NULL));
    g_assert_cmpstr(lacks(DAVIT_NOTE, NULL, NULL, NULL), ==, "subject");
}

/* A record's own hint counts before the code's; a note gets none. */
static void hint_comes_from_the_code(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitFinding finding = {.code = DAVIT_R_LFS_POINTER,
                            .severity = DAVIT_WARNING,
                            .subject = "a",
                            .found = "b",
                            .message = "m"};

    davit_report_add(report, &finding);
    g_assert_cmpstr(davit_report_get(report, 0)->hint, ==,
                    davit_code_rule(DAVIT_R_LFS_POINTER)->remedy);
    finding.hint = "own";
    davit_report_add(report, &finding);
    g_assert_cmpstr(davit_report_get(report, 1)->hint, ==, "own");
    finding.hint = NULL;
    finding.severity = DAVIT_NOTE;
    davit_report_add(report, &finding);
    g_assert_null(davit_report_get(report, 2)->hint);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/codes/rows", each_code_has_its_row);
    g_test_add_func("/codes/remedies", remedies_are_short);
    g_test_add_func("/codes/holes", holes_are_named);
    g_test_add_func("/codes/hint", hint_comes_from_the_code);
    return g_test_run();
}
