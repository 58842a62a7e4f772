/* SPDX-License-Identifier: Apache-2.0
 * The pull reader: events, dialects, what is refused and where, limits, and linear time.
 */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/json.h"
#include "base/json_runs.h"
#include "base/test_json_write.h"

/* All events of @text as one line: {k:"v" becomes "{ K(k) S(v)". Ends with the error's
 * code and byte. (owned) */
static char *trace(const char *text, size_t len, uint32_t dialect)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) reader =
        davit_json_open(text, len, dialect, "t.json", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};
    GString *s = g_string_new(NULL);
    static const char *const plain[] = {
        [DAVIT_JSON_OBJECT] = "{",  [DAVIT_JSON_OBJECT_END] = "}",
        [DAVIT_JSON_ARRAY] = "[",   [DAVIT_JSON_ARRAY_END] = "]",
        [DAVIT_JSON_TRUE] = "true", [DAVIT_JSON_FALSE] = "false",
        [DAVIT_JSON_NULL] = "null"};

    while (reader && davit_json_next(reader, &e) == DAVIT_OK &&
           e.type != DAVIT_JSON_DONE) {
        if (s->len)
            g_string_append_c(s, ' ');
        if (e.type == DAVIT_JSON_KEY)
            g_string_append_printf(s, "K(%.*s)", (int)e.text.len, e.text.ptr);
        else if (e.type == DAVIT_JSON_STRING)
            g_string_append_printf(s, "S(%.*s)", (int)e.text.len, e.text.ptr);
        else if (e.type == DAVIT_JSON_INT)
            g_string_append_printf(s, "I(%" G_GINT64_FORMAT ")", e.i64);
        else if (e.type == DAVIT_JSON_REAL)
            g_string_append_printf(s, "R(%.17g)", e.f64);
        else
            g_string_append(s, plain[e.type]);
    }
    if (davit_report_failed(report)) {
        const DavitRecord *r = davit_report_get(report, 0);

        g_assert_cmpuint(davit_report_count(report), ==, 1);
        g_assert_cmpstr(r->subject, ==, "t.json");
        g_string_append_printf(s, " !%s %s", davit_code_name(r->code), r->found);
    }
    return g_string_free(s, FALSE);
}

static void expect(const char *text, uint32_t dialect, const char *wanted)
{
    g_autofree char *found = trace(text, strlen(text), dialect);

    g_assert_cmpstr(found, ==, wanted);
}

static void events_in_order(void)
{
    expect("{\"a\":1,\"b\":[true,false,null],\"c\":{}}", 0,
           "{ K(a) I(1) K(b) [ true false null ] K(c) { } }");
    expect(" [ ] ", 0, "[ ]");
    expect("\"top\"", 0, "S(top)");
    expect("-0", 0, "I(0)");
}

static void depth_is_of_the_value(void)
{
    static const char text[] = "{\"a\":[1]}";
    static const uint32_t depths[] = {0, 1, 1, 2, 1, 0, 0};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) r = davit_json_open(text, strlen(text), 0, "t", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};

    for (size_t i = 0; i < G_N_ELEMENTS(depths); i++) {
        g_assert_cmpint(davit_json_next(r, &e), ==, DAVIT_OK);
        g_assert_cmpuint(e.depth, ==, depths[i]);
    }
    g_assert_cmpuint(e.type, ==, DAVIT_JSON_DONE);
    g_assert_cmpuint(e.off, ==, strlen(text));
}

static void strings_without_escape_are_not_copied(void)
{
    static const char text[] = "[\"plain \xc3\xa9\",\"a\\nb\"]";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) r = davit_json_open(text, strlen(text), 0, "t", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};

    davit_json_next(r, &e);
    davit_json_next(r, &e);
    g_assert_true(e.text.ptr == text + 2);
    davit_json_next(r, &e);
    g_assert_true(e.text.ptr < text || e.text.ptr > text + sizeof text);
    g_assert_true(davit_json_is(&e, "a\nb"));
}

static void escapes(void)
{
    expect("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 0, "S(\"\\/\b\f\n\r\t)");
    expect("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", 0,
           "S(A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80)");
    expect("\"\\x\"", 0, " !json-invalid byte 1");
    expect("\"\\u12g4\"", 0, " !json-invalid byte 1");
    expect("\"\\u12", 0, " !json-invalid byte 5");
}

static void lone_surrogates(void)
{
    expect("\"\\ud800\"", 0, " !json-invalid byte 1");
    expect("\"\\udc00x\"", 0, " !json-invalid byte 1");
    expect("\"\\ud800\"", DAVIT_JSON_PYTHON, "S(\xef\xbf\xbd)");
    expect("\"\\ud83d\\ud83d\\ude00\"", DAVIT_JSON_PYTHON,
           "S(\xef\xbf\xbd\xf0\x9f\x98\x80)");
}

static void bad_utf8(void)
{
    expect("\"\xff\"", 0, " !json-invalid byte 1");
    expect("\"\xc0\xaf\"", 0, " !json-invalid byte 1");         /* overlong */
    expect("\"\xed\xa0\x80\"", 0, " !json-invalid byte 1");     /* surrogate */
    expect("\"\xf4\x90\x80\x80\"", 0, " !json-invalid byte 1"); /* above U+10FFFF */
    expect("\"\xe2\x82", 0, " !json-invalid byte 1");
    expect("\"12345678\xff\"", 0, " !json-invalid byte 9");
    expect("\"a\tb\"", 0, " !json-invalid byte 2");
    expect("\xef\xbb\xbf{}", 0, " !json-invalid byte 0");
}

static void numbers(void)
{
    expect("[0,1,-1,1.5,1e2,-2.5E-3]", 0,
           "[ I(0) I(1) I(-1) R(1.5) R(100) R(-0.0025000000000000001) ]");
    expect("9223372036854775807", 0, "I(9223372036854775807)");
    expect("-9223372036854775808", 0, "I(-9223372036854775808)");
    expect("9223372036854775808", 0, "R(9.2233720368547758e+18)");
    expect("0.1", 0, "R(0.10000000000000001)");
    expect("123456789012345678901234567890", 0, "R(1.2345678901234568e+29)");
    expect("1e-400", 0, "R(0)");
    expect("01", 0, " !json-invalid byte 0");
    expect("-", 0, " !json-invalid byte 0");
    expect("1.", 0, " !json-invalid byte 0");
    expect("1e", 0, " !json-invalid byte 0");
    expect("+1", 0, " !json-invalid byte 0");
    expect(".5", 0, " !json-invalid byte 0");
    expect("1x", 0, "I(1) !json-invalid byte 1");
    expect("1e400", 0, " !json-invalid byte 0");
    expect("1e400", DAVIT_JSON_PYTHON, "R(inf)");
}

/* Our fast path against the C library, on numbers of every length. */
static void numbers_round_like_strtod(void)
{
    for (int i = 0; i < 20000; i++) {
        g_autofree char *text = NULL;
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitJsonReader) r = NULL;
        davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};
        const int n = 1 + i % 19;
        const int64_t m =
            (int64_t)((uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int());

        text = g_strdup_printf("%.*s.%de%d", n, "1234567890123456789", (int)(m & 0xffff),
                               (int)(m >> 20) % 40);
        r = davit_json_open(text, strlen(text), 0, "t", report);
        g_assert_cmpint(davit_json_next(r, &e), ==, DAVIT_OK);
        g_assert_cmpfloat(e.f64, ==, g_ascii_strtod(text, NULL));
    }
}

static void non_finite_words(void)
{
    expect("[NaN]", 0, "[ !json-invalid byte 1");
    expect("[-Infinity]", 0, "[ !json-invalid byte 1");
    expect("[Infinity,-Infinity]", DAVIT_JSON_PYTHON, "[ R(inf) R(-inf) ]");
    expect("[Inf]", DAVIT_JSON_PYTHON, "[ !json-invalid byte 1");
}

static void grammar(void)
{
    expect("", 0, " !json-invalid byte 0");
    expect("{", 0, "{ !json-invalid byte 1");
    expect("[1", 0, "[ I(1) !json-invalid byte 2");
    expect("[1,]", 0, "[ I(1) !json-invalid byte 3");
    expect("[1 2]", 0, "[ I(1) !json-invalid byte 3");
    expect("{\"a\"}", 0, "{ K(a) !json-invalid byte 4");
    expect("{\"a\":1,}", 0, "{ K(a) I(1) !json-invalid byte 7");
    expect("{a:1}", 0, "{ !json-invalid byte 1");
    expect("[1}", 0, "[ I(1) !json-invalid byte 2");
    expect("{} {}", 0, "{ } !json-invalid byte 3");
    expect("nul", 0, " !json-invalid byte 0");
    expect("[1,//\n2]", 0, "[ I(1) !json-invalid byte 3");
}

static void duplicate_keys(void)
{
    expect("{\"a\":1,\"a\":2}", 0, "{ K(a) I(1) !duplicate-key a");
    expect("{\"a\":1,\"\\u0061\":2}", 0, "{ K(a) I(1) !duplicate-key a");
    expect("{\"a\":{\"a\":1},\"b\":{\"a\":2}}", DAVIT_JSON_PYTHON,
           "{ K(a) { K(a) I(1) } K(b) { K(a) I(2) } }");
    expect("[{\"a\":1},{\"a\":1}]", 0, "[ { K(a) I(1) } { K(a) I(1) } ]");
}

/* An object of @n keys, the last one equal to the first if @twice. (owned) */
static char *many_keys(int n, bool twice)
{
    GString *s = g_string_new("{");

    for (int i = 0; i < n; i++)
        g_string_append_printf(s, "\"key%d\":%d,", i, i);
    g_string_append_printf(s, "\"%s\":0}", twice ? "key0" : "last");
    return g_string_free(s, FALSE);
}

static int32_t read_all(const char *text)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) r = davit_json_open(text, strlen(text), 0, "t", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};
    int32_t status;

    do {
        status = davit_json_next(r, &e);
    } while (!status && e.type != DAVIT_JSON_DONE);
    return status;
}

/* Sizes round the switch from list to table and its growth. */
static void duplicate_keys_of_large_objects(void)
{
    static const int sizes[] = {1, 11, 12, 13, 47, 48, 49, 95, 96, 97, 1000, 100000};

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *good = many_keys(sizes[i], false);
        g_autofree char *bad = many_keys(sizes[i], true);

        g_assert_cmpint(read_all(good), ==, DAVIT_OK);
        g_assert_cmpint(read_all(bad), ==, DAVIT_E_CORRUPT);
    }
}

static void depth_limit(void)
{
    GString *s = g_string_new(NULL);

    for (int i = 0; i < 200; i++)
        g_string_append_c(s, '[');
    for (int i = 0; i < 200; i++)
        g_string_append_c(s, ']');
    g_assert_cmpint(read_all(s->str), ==, DAVIT_OK);
    g_string_prepend_c(s, '[');
    g_string_append_c(s, ']');
    g_assert_cmpint(read_all(s->str), ==, DAVIT_E_LIMIT);
    g_string_free(s, TRUE);
}

static void number_length_limit(void)
{
    g_autofree char *good = g_strnfill(512, '1');
    g_autofree char *bad = g_strnfill(513, '1');

    g_assert_cmpint(read_all(good), ==, DAVIT_E_CORRUPT); /* no double holds it */
    g_assert_cmpint(read_all(bad), ==, DAVIT_E_LIMIT);
    good[0] = '0';
    good[1] = '.';
    g_assert_cmpint(read_all(good), ==, DAVIT_OK);
}

static void skip_goes_past_whole_values(void)
{
    static const char text[] = "{\"a\":{\"x\":[1,2,{\"y\":3}]},\"b\":[[],[]],\"c\":5}";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) r = davit_json_open(text, strlen(text), 0, "t", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};

    davit_json_next(r, &e);
    davit_json_next(r, &e);
    g_assert_cmpint(davit_json_skip(r), ==, DAVIT_OK); /* the value of key a */
    davit_json_next(r, &e);
    g_assert_true(davit_json_is(&e, "b"));
    davit_json_next(r, &e);
    g_assert_cmpint(davit_json_skip(r), ==, DAVIT_OK); /* the array just opened */
    davit_json_next(r, &e);
    g_assert_true(davit_json_is(&e, "c"));
    davit_json_skip(r);
    davit_json_next(r, &e);
    g_assert_cmpuint(e.type, ==, DAVIT_JSON_OBJECT_END);
}

static void errors_are_sticky(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) r = davit_json_open("[x]", 3, 0, "t", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};

    davit_json_next(r, &e);
    g_assert_cmpint(davit_json_next(r, &e), ==, DAVIT_E_CORRUPT);
    g_assert_cmpint(davit_json_next(r, &e), ==, DAVIT_E_CORRUPT);
    g_assert_cmpuint(davit_report_count(report), ==, 1);
}

/* ---- runs ---- */

static void put_string(GString *s, davit_span text)
{
    g_string_append_printf(s, "S(%.*s) ", (int)text.len, text.ptr);
}

static void put_raw(GString *s, davit_span raw, bool escaped)
{
    g_autoptr(GString) plain = g_string_new_len(raw.ptr, (gssize)raw.len);

    if (escaped) {
        g_string_truncate(plain, 0);
        if (!davit_json_run_unescape(raw, plain))
            g_string_assign(plain, "bad escape");
    }
    put_string(s, (davit_span){plain->str, plain->len});
}

/* Simple values in front of where the reader stands, as their events would be. */
static void put_run(GString *s, DavitJsonReader *reader, bool members)
{
    DavitJsonRun run = davit_json_run(reader);
    DavitJsonItem items[3];
    size_t n;

    while ((n = members ? davit_json_run_members(&run, items, 3)
                        : davit_json_run_texts(&run, NULL, items, 3)) > 0) {
        for (size_t i = 0; i < n; i++) {
            if (items[i].second.ptr && !members)
                g_string_append(s, "[ ");
            if (members)
                g_string_append_printf(s, "K(%.*s) I(%" G_GINT64_FORMAT ") ",
                                       (int)items[i].text.len, items[i].text.ptr,
                                       items[i].number);
            else
                put_raw(s, items[i].text, items[i].escaped);
            if (!members && items[i].second.ptr) {
                put_raw(s, items[i].second, items[i].escaped_second);
                g_string_append(s, "] ");
            }
        }
    }
    davit_json_run_end(&run, reader);
}

/* Events of @text; with @runs, simple values come from runs wherever one may begin. */
static char *trace_runs(const char *text, size_t len, bool runs)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) reader = davit_json_open(text, len, 0, "t.json", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};
    GString *s = g_string_new(NULL);
    int depth = 0;

    while (davit_json_next(reader, &e) == DAVIT_OK && e.type != DAVIT_JSON_DONE) {
        const bool opened = e.type == DAVIT_JSON_OBJECT || e.type == DAVIT_JSON_ARRAY;

        depth += opened;
        if (e.type == DAVIT_JSON_OBJECT_END || e.type == DAVIT_JSON_ARRAY_END)
            depth--;
        if (e.type == DAVIT_JSON_OBJECT)
            davit_json_own_keys(reader);
        if (e.type == DAVIT_JSON_STRING)
            put_string(s, e.text);
        else if (e.type == DAVIT_JSON_KEY)
            g_string_append_printf(s, "K(%.*s) ", (int)e.text.len, e.text.ptr);
        else if (e.type == DAVIT_JSON_INT)
            g_string_append_printf(s, "I(%" G_GINT64_FORMAT ") ", e.i64);
        else
            g_string_append(s, opened && e.type == DAVIT_JSON_ARRAY   ? "[ "
                               : opened                               ? "{ "
                               : e.type == DAVIT_JSON_ARRAY_END       ? "] "
                               : e.type == DAVIT_JSON_OBJECT_END      ? "} "
                                                                      : "x ");
        if (runs && depth == 1 && e.type != DAVIT_JSON_KEY)
            put_run(s, reader, text[0] == '{');
    }
    if (davit_report_failed(report))
        g_string_append_printf(s, "!%s", davit_report_get(report, 0)->found);
    return g_string_free(s, FALSE);
}

/* Every byte of a few lists and objects replaced by every byte that means something. */
static void runs_give_what_events_give(void)
{
    static const char *const texts[] = {
        "[\"a b\",[\"c\",\"d\"], [ \"e\\n\" ,\n          \"f\"]\n,\"\\u00e9\\\"x\"  ]",
        "[[\"\",\"\\\\\"],1,[\"g\"],[],[\"h\",\"i\",\"j\"],\"k\"]",
        "{\"a\":1, \"b\\\\\" :22,\n        \"\xc3\xa9\":  333333333\n,\"d\":4444444444 , \"e\":0}",
        "{\"a\":01,\"b\":1.5,\"c\":-1,\"d\":7,\"e\":[8],\"f\":9}",
    };
    static const char bytes[] = "\"\\[]{},:0 1\nax\x01-.";

    for (size_t t = 0; t < G_N_ELEMENTS(texts); t++) {
        const size_t len = strlen(texts[t]);

        for (size_t at = 0; at <= len; at++) {
            for (size_t b = 0; b + 1 < sizeof bytes; b++) {
                g_autofree char *text = g_strdup(texts[t]);
                g_autofree char *want = NULL, *got = NULL;

                if (at > 0 && at < len)
                    text[at] = bytes[b];
                want = trace_runs(text, len, false);
                got = trace_runs(text, len, true);
                if (!strstr(got, "bad escape"))
                    g_assert_cmpstr(got, ==, want);
                else
                    g_assert_nonnull(strchr(want, '!'));
            }
        }
    }
}

static void run_stops_before_an_offset(void)
{
    static const char text[] = "[\"a\", \"b\", \"c\"]";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) r = davit_json_open(text, sizeof text - 1, 0, "t", report);
    davit_json_event e = {.struct_size = DAVIT_END(davit_json_event, off)};
    DavitJsonItem items[8];
    DavitJsonRun run;

    davit_json_next(r, &e);
    run = davit_json_run(r);
    g_assert_cmpuint(davit_json_run_texts(&run, text + 6, items, 8), ==, 1);
    g_assert_true(davit_json_run_next(&run) == text + 6);
    g_assert_cmpuint(davit_json_run_texts(&run, text + 7, items, 8), ==, 1);
    davit_json_run_end(&run, r);
    davit_json_next(r, &e);
    g_assert_cmpuint(e.type, ==, DAVIT_JSON_STRING);
    g_assert_true(davit_json_is(&e, "c"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/events_in_order", events_in_order);
    g_test_add_func("/json/depth_is_of_the_value", depth_is_of_the_value);
    g_test_add_func("/json/strings_without_escape_are_not_copied",
                    strings_without_escape_are_not_copied);
    g_test_add_func("/json/escapes", escapes);
    g_test_add_func("/json/lone_surrogates", lone_surrogates);
    g_test_add_func("/json/bad_utf8", bad_utf8);
    g_test_add_func("/json/numbers", numbers);
    g_test_add_func("/json/numbers_round_like_strtod", numbers_round_like_strtod);
    g_test_add_func("/json/non_finite_words", non_finite_words);
    g_test_add_func("/json/grammar", grammar);
    g_test_add_func("/json/duplicate_keys", duplicate_keys);
    g_test_add_func("/json/duplicate_keys_of_large_objects",
                    duplicate_keys_of_large_objects);
    g_test_add_func("/json/depth_limit", depth_limit);
    g_test_add_func("/json/number_length_limit", number_length_limit);
    g_test_add_func("/json/skip_goes_past_whole_values", skip_goes_past_whole_values);
    g_test_add_func("/json/errors_are_sticky", errors_are_sticky);
    g_test_add_func("/json/runs_give_what_events_give", runs_give_what_events_give);
    g_test_add_func("/json/run_stops_before_an_offset", run_stops_before_an_offset);
    test_json_write_add();
    return g_test_run();
}
