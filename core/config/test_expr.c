/* SPDX-License-Identifier: Apache-2.0
 * core/config/expr.h: values, precedence, and every way in which an expression is
 * refused. */
#include "config/expr.h"

#include <string.h>

static bool lookup(void *ctx, const char *sym, int64_t *out)
{
    (void)ctx;
    if (strcmp(sym, "nh") == 0)
        *out = 9;
    else if (strcmp(sym, "hd") == 0)
        *out = 64;
    else if (strcmp(sym, "zero") == 0)
        *out = 0;
    else if (strcmp(sym, "big") == 0)
        *out = INT64_MAX;
    else
        return false;
    return true;
}

static const DavitScope scope = {.lookup = lookup};

static void test_values(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {
        {"nh*hd", 576},
        {"1+2*3", 7},
        {"(1+2)*3", 9},
        {"10-3-2", 5},
        {"nh * hd / 3", 192},
        {"7 % 4", 3},
        {"ceildiv(hd+1, 32)", 3},
        {"roundup(100, 64)", 128},
        {"min(nh, hd)", 9},
        {"max(nh,hd)", 64},
        {"-1", -1},
        {"!zero", 1},
        {"!nh", 0},
        {"!(1 != 1)", 1},
        {"1 == 1 && 2 < 3", 1},
        {"1 < 2 == 1", 1},
        {"nh >= 9 || 0", 1},
        {"zero > 0 && nh % zero == 0", 0},
        {"zero == 0 || 5 / zero > 0", 1},
        {"9223372036854775807", INT64_MAX},
        {"512*(nh > 8)", 512},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        int64_t v = -77;

        g_assert_cmpint(davit_expr_eval(rows[i].text, &scope, "t", &v, report), ==,
                        DAVIT_OK);
        g_assert_cmpint(v, ==, rows[i].want);
        g_assert_cmpuint(davit_report_count(report), ==, 0);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *text;
        const char *expected;
        const char *message;
    } rows[] = {
        {"nh/2", "9 divisible by 2", "division leaves a remainder"},
        {"nh/zero", "a divisor other than 0", "division by zero"},
        {"big+1", "a value within 64 bits", "overflow"},
        {"big*2", "a value within 64 bits", "overflow"},
        {"-big-2", "a value within 64 bits", "overflow"},
        {"(-big-1)/(-1)", "a value within 64 bits", "overflow"},
        {"9223372036854775808", "an integer within 64 bits", "overflow"},
        {"roundup(big, 2)", "a value within 64 bits", "overflow"},
        {"ceildiv(1, zero)", "a >= 0 and b > 0", "ceildiv or roundup"},
        {"nh % zero", "a >= 0 and b > 0 in a % b", "remainder"},
        {"nkv*hd", "a symbol with an integer value, not nkv", "no such symbol"},
        {"zero && nkv", "a symbol with an integer value, not nkv", "no such symbol"},
        {"pow(2,3)", "ceildiv, roundup, min or max", "no such function"},
        {"min(1)", "two arguments", "expression does not parse"},
        {"min(1,2", ")", "expression does not parse"},
        {"(1", ")", "expression does not parse"},
        {"", "an integer, a symbol or (", "expression does not parse"},
        {"1 +", "an integer, a symbol or (", "expression does not parse"},
        {"1 2", "an operator or the end", "expression does not parse"},
        {"1.5", "an integer", "expression does not parse"},
        {"1, 2", "at most 1 expressions", "expression does not parse"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const DavitRecord *record;
        int64_t v = -77;

        g_assert_cmpint(davit_expr_eval(rows[i].text, &scope, "slot x", &v, report), ==,
                        DAVIT_E_CORRUPT);
        g_assert_cmpint(v, ==, -77); /* left alone */
        g_assert_cmpuint(davit_report_count(report), ==, 1);
        record = davit_report_get(report, 0);
        g_assert_cmpuint(record->code, ==, DAVIT_R_CONFIG_INVALID);
        g_assert_cmpstr(record->subject, ==, "slot x");
        g_assert_cmpstr(record->found, ==, rows[i].text);
        g_assert_cmpstr(record->expected, ==, rows[i].expected);
        g_assert_true(g_str_has_prefix(record->message, rows[i].message));
    }
}

/* "((((...1...))))" and "!!!!...1" with @n levels. */
static char *nested(size_t n, bool parentheses)
{
    GString *s = g_string_new(NULL);

    for (size_t i = 0; i < n; i++)
        g_string_append_c(s, parentheses ? '(' : '!');
    g_string_append_c(s, '1');
    for (size_t i = 0; parentheses && i < n; i++)
        g_string_append_c(s, ')');
    return g_string_free(s, FALSE);
}

static void test_depth_200_and_201(void)
{
    for (int parentheses = 0; parentheses < 2; parentheses++) {
        g_autofree char *ok = nested(200, parentheses != 0);
        g_autofree char *deep = nested(201, parentheses != 0);
        g_autoptr(DavitReport) report = davit_report_new();
        int64_t v = 0;

        g_assert_cmpint(davit_expr_eval(ok, &scope, "t", &v, report), ==, DAVIT_OK);
        g_assert_cmpint(v, ==, 1);
        g_assert_cmpint(davit_expr_eval(deep, &scope, "t", &v, report), ==,
                        DAVIT_E_CORRUPT);
        g_assert_cmpstr(davit_report_get(report, 0)->message, ==,
                        "expression is nested too deeply");
    }
}

static void test_list(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    int64_t v[3] = {0};

    g_assert_cmpint(davit_expr_list("nh*hd, min(1,2), 3", &scope, "t", v, 3, report), ==,
                    3);
    g_assert_cmpint(v[0], ==, 576);
    g_assert_cmpint(v[1], ==, 1);
    g_assert_cmpint(v[2], ==, 3);
    g_assert_cmpint(davit_expr_list("1,2,3", &scope, "t", v, 2, report), ==,
                    DAVIT_E_CORRUPT);
    g_assert_cmpint(davit_expr_list("1,", &scope, "t", v, 2, report), ==,
                    DAVIT_E_CORRUPT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/expr/values", test_values);
    g_test_add_func("/expr/refused", test_refused);
    g_test_add_func("/expr/depth_200_and_201", test_depth_200_and_201);
    g_test_add_func("/expr/list", test_list);
    return g_test_run();
}
