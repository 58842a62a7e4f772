/* SPDX-License-Identifier: Apache-2.0 */
#include "base/report.h"

#include <string.h>

static void add_marks_negative_status_as_error(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRecord *r;

    g_assert_cmpint(
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_SHAPE_MISMATCH,
                                                 .status = DAVIT_E_MISMATCH,
                                                 .stage = "plan",
                                                 .subject = "a.weight",
                                                 .expected = "[64, 64]",
                                                 .found = "[64, 32]",
                                                 .message = "shape differs",
                                                 .hint = "try another file"}),
        ==, DAVIT_E_MISMATCH);
    r = davit_report_get(report, 0);
    g_assert_cmpint(r->severity, ==, DAVIT_ERROR);
    g_assert_cmpstr(r->who, ==, "core");
    g_assert_cmpstr(r->stage, ==, "plan");
    g_assert_true(davit_report_failed(report));

    {
        g_autofree char *s = davit_record_sentence(r);
        g_assert_cmpstr(s, ==,
                        "a.weight: shape differs: found [64, 32], expected [64, 64]; "
                        "try another file");
    }
}

static void error_without_status_gets_one(void)
{
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_cmpint(davit_report_add(report, &(DavitFinding){.code = DAVIT_R_DISABLED,
                                                             .severity = DAVIT_ERROR}),
                    ==, DAVIT_E_UNSUPPORTED);
    g_assert_cmpstr(davit_report_get(report, 0)->message, ==, "switched off by the user");
}

static void notes_and_warnings_do_not_fail(void)
{
    g_autoptr(DavitReport) report = davit_report_new();

    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_ASSUMED, .message = "m"});
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_STRAY_TENSOR,
                                             .severity = DAVIT_WARNING,
                                             .message = "m"});
    g_assert_false(davit_report_failed(report));
    g_assert_cmpuint(davit_report_count(report), ==, 2);
}

static void first_error_looks_at_purposes(void)
{
    g_autoptr(DavitReport) report = davit_report_new();

    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_FORWARD_ABSENT,
                                             .status = DAVIT_E_UNSUPPORTED,
                                             .purposes = DAVIT_RUN,
                                             .message = "m"});
    g_assert_null(davit_report_first_error(report, DAVIT_INSPECT));
    g_assert_nonnull(davit_report_first_error(report, DAVIT_RUN | DAVIT_MAP));
    g_assert_nonnull(davit_report_first_error(report, 0));
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_IO_FAILED, .status = DAVIT_E_IO, .message = "m"});
    g_assert_cmpuint(davit_report_first_error(report, DAVIT_INSPECT)->code, ==,
                     DAVIT_R_IO_FAILED);
}

static void append_and_truncate(void)
{
    g_autoptr(DavitReport) a = davit_report_new();
    g_autoptr(DavitReport) b = davit_report_new();

    davit_report_add(a, &(DavitFinding){.code = 1, .message = "one"});
    davit_report_add(b, &(DavitFinding){.code = 2, .message = "two"});
    davit_report_add(b, &(DavitFinding){.code = 3, .message = "three"});
    davit_report_append(a, b);
    g_assert_cmpuint(davit_report_count(a), ==, 3);
    g_assert_cmpstr(davit_report_get(a, 2)->message, ==, "three");
    davit_report_truncate(a, 1);
    davit_report_truncate(a, 5);
    g_assert_cmpuint(davit_report_count(a), ==, 1);
    g_assert_cmpstr(davit_report_get(a, 0)->message, ==, "one");
}

static void texts_live_with_the_report(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const char *a = davit_report_text(report, "[%d, %d]", 1, 2);
    const char *b = davit_report_text(report, "%s", "x");

    g_assert_cmpstr(a, ==, "[1, 2]");
    g_assert_cmpstr(b, ==, "x");
}

static void codes_have_names(void)
{
    g_assert_cmpstr(davit_code_name(DAVIT_R_PICKLE_UNSAFE), ==, "pickle-unsafe");
    g_assert_cmpstr(davit_code_name(4711), ==, "unknown");
    g_assert_cmpuint(davit_code_number("shape-mismatch"), ==, DAVIT_R_SHAPE_MISMATCH);
    g_assert_cmpuint(davit_code_number("unknown"), ==, 0);
    g_assert_cmpuint(davit_code_number(NULL), ==, 0);
}

static void check_escape(const char *text, size_t len, size_t max, const char *want)
{
    g_autofree char *got = davit_escape(text, len, max);

    g_assert_cmpstr(got, ==, want);
    g_assert_true(g_utf8_validate(got, -1, NULL));
}

static void escape_makes_text_safe(void)
{
    check_escape("plain \"q\" \\p{L}", 15, 100, "plain \"q\" \\p{L}");
    check_escape("\x1b[31m\n\t\r\x7f", 9, 100, "\\x1b[31m\\n\\t\\r\\x7f");
    check_escape("\xc2\x9b", 2, 100, "\\u009b"); /* C1 CSI */
    check_escape("a\xe2\x80\xae"
                 "b",
                 5, 100, "a\\u202eb");
    check_escape("\xff\xc3", 2, 100, "\\xff\\xc3");
    check_escape("\xe2\x82", 2, 100, "\\xe2\\x82"); /* cut in the middle */
    check_escape("\0z", 2, 100, "\\x00z");
    check_escape("\xc3\xa9", 2, 100, "\xc3\xa9");
    check_escape("", 0, 0, "");
    check_escape("\xed\xa0\x80", 3, 100, "\\xed\\xa0\\x80"); /* lone surrogate */
}

static void escape_cuts_between_characters(void)
{
    check_escape("abcdef", 6, 3, "abc...");
    check_escape("abc", 3, 3, "abc");
    check_escape("ab\xc3\xa9", 4, 3, "ab...");
    check_escape("ab\x01", 3, 4, "ab...");
    check_escape("x", 1, 0, "...");
}

static void untrusted_fields_are_escaped_and_cut(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *longer = g_strnfill(5000, 'x');
    const DavitRecord *r;

    davit_report_add(report, &(DavitFinding){.code = 1,
                                             .subject = longer,
                                             .found = "\x1b]0;title\x07",
                                             .message = "two\nlines"});
    r = davit_report_get(report, 0);
    g_assert_cmpuint(strlen(r->subject), ==, 203);
    g_assert_cmpstr(r->found, ==, "\\x1b]0;title\\x07");
    g_assert_cmpstr(r->message, ==, "two\\nlines");
}

static void record_becomes_json(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    json_t *object;

    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_STRAY_SHARD,
                                             .severity = DAVIT_WARNING,
                                             .subject = "b.bin",
                                             .message = "m"});
    object = davit_record_json(davit_report_get(report, 0));
    g_assert_cmpstr(json_string_value(json_object_get(object, "code")), ==,
                    "stray-shard");
    g_assert_cmpstr(json_string_value(json_object_get(object, "severity")), ==,
                    "warning");
    g_assert_true(json_is_null(json_object_get(object, "expected")));
    g_assert_true(json_is_string(json_object_get(object, "hint"))); /* of the code */
    g_assert_cmpuint(json_object_size(object), ==, 9);
    json_decref(object);
}

/* ---- sink ---- */

static void sink_stamps_and_keeps_order(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitSink sink;
    davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, url),
                        .code = DAVIT_R_HEADER_INVALID,
                        .subject = "toy.version",
                        .expected = "1",
                        .found = "9",
                        .message = "version 1 only",
                        .hint = "convert it"};

    davit_report_add(report, &(DavitFinding){.code = 1,
                                             .status = DAVIT_E_IO,
                                             .who = "org.x",
                                             .stage = "probe",
                                             .message = "earlier"});
    davit_sink_init(&sink, report, "org.x", "probe");
    sink.abi.refuse(sink.abi.ctx, &no);
    no.flags = DAVIT_REFUSAL_WARNING;
    sink.abi.refuse(sink.abi.ctx, &no);
    no.flags = DAVIT_REFUSAL_NOTE | DAVIT_REFUSAL_FINAL;
    sink.abi.refuse(sink.abi.ctx, &no);
    sink.abi.refuse(sink.abi.ctx, NULL);

    g_assert_cmpuint(sink.n_errors, ==, 1);
    g_assert_cmpint(davit_sink_done(&sink, DAVIT_E_CORRUPT), ==, DAVIT_E_CORRUPT);
    g_assert_cmpuint(davit_report_count(report), ==, 4);
    g_assert_cmpint(davit_report_get(report, 0)->status, ==, DAVIT_E_IO);
    g_assert_cmpint(davit_report_get(report, 1)->status, ==, DAVIT_E_CORRUPT);
    g_assert_cmpstr(davit_report_get(report, 1)->who, ==, "org.x");
    g_assert_cmpstr(davit_report_get(report, 1)->stage, ==, "probe");
    g_assert_cmpint(davit_report_get(report, 2)->severity, ==, DAVIT_WARNING);
    g_assert_cmpint(davit_report_get(report, 2)->status, ==, DAVIT_OK);
    g_assert_cmpint(davit_report_get(report, 3)->severity, ==, DAVIT_NOTE);
    g_assert_true(davit_report_get(report, 3)->final);
}

/* An older plugin's record ends before "found"; what lies behind it must not be read. */
static void sink_reads_only_struct_size(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitSink sink;
    davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, expected),
                        .code = DAVIT_R_HEADER_INVALID,
                        .subject = "s",
                        .expected = "e",
                        .found = (const char *)(uintptr_t)0x10,
                        .message = (const char *)(uintptr_t)0x10};

    davit_sink_init(&sink, report, "org.x", "probe");
    sink.abi.refuse(sink.abi.ctx, &no);
    g_assert_cmpstr(davit_report_get(report, 0)->expected, ==, "e");
    g_assert_null(davit_report_get(report, 0)->found);
    g_assert_cmpstr(davit_report_get(report, 0)->message, ==,
                    "a header breaks the rules of its format");
}

static void sink_reads_longer_record_of_newer_plugin(void)
{
    struct {
        davit_refusal head;
        uint64_t future;
    } no = {.head = {.struct_size = sizeof no, .code = 999, .message = "m"}};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitSink sink;

    davit_sink_init(&sink, report, "org.x", "probe");
    sink.abi.refuse(sink.abi.ctx, &no.head);
    g_assert_cmpuint(davit_report_get(report, 0)->code, ==, 999);
}

static void failure_without_reason_is_recorded(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitSink sink;

    davit_sink_init(&sink, report, "org.x", "create");
    g_assert_cmpint(davit_sink_done(&sink, -77), ==, DAVIT_E_UNSUPPORTED);
    g_assert_cmpuint(davit_report_get(report, 0)->code, ==, DAVIT_R_NO_REASON);
    g_assert_cmpstr(davit_report_get(report, 0)->who, ==, "org.x");

    davit_sink_init(&sink, report, "org.x", "create");
    g_assert_cmpint(davit_sink_done(&sink, DAVIT_OK), ==, DAVIT_OK);
    g_assert_cmpuint(davit_report_count(report), ==, 1);
}

static void *add_many(void *data)
{
    for (int i = 0; i < 1000; i++) {
        const char *text = davit_report_text(data, "%d", i);

        davit_report_add(data, &(DavitFinding){.code = 1, .message = text});
    }
    return NULL;
}

static void many_threads_add(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    GThread *threads[4];

    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("add", add_many, report);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    g_assert_cmpuint(davit_report_count(report), ==, 4000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/add/negative_status", add_marks_negative_status_as_error);
    g_test_add_func("/report/add/error_without_status", error_without_status_gets_one);
    g_test_add_func("/report/add/notes_and_warnings", notes_and_warnings_do_not_fail);
    g_test_add_func("/report/first_error/purposes", first_error_looks_at_purposes);
    g_test_add_func("/report/append_and_truncate", append_and_truncate);
    g_test_add_func("/report/texts", texts_live_with_the_report);
    g_test_add_func("/report/codes", codes_have_names);
    g_test_add_func("/report/escape/safe", escape_makes_text_safe);
    g_test_add_func("/report/escape/cut", escape_cuts_between_characters);
    g_test_add_func("/report/escape/fields", untrusted_fields_are_escaped_and_cut);
    g_test_add_func("/report/json", record_becomes_json);
    g_test_add_func("/report/sink/order", sink_stamps_and_keeps_order);
    g_test_add_func("/report/sink/short_record", sink_reads_only_struct_size);
    g_test_add_func("/report/sink/long_record", sink_reads_longer_record_of_newer_plugin);
    g_test_add_func("/report/sink/no_reason", failure_without_reason_is_recorded);
    g_test_add_func("/report/threads", many_threads_add);
    return g_test_run();
}
