/* SPDX-License-Identifier: Apache-2.0
 * Compiling and matching with PCRE2 10.42: JIT where there is one, limits always, and the
 * interpreter when the JIT's stack is too small. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/regex.h"

#include <string.h>

#include <davit/help/records.h>
#include <pcre2.h>

struct davit_regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

/* What is wrong with a pattern, for a report or a sink. */
typedef struct Problem {
    const char *message;
    char found[96];
} Problem;

void davit_regex_free(DavitRegex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_match_context_free(regex->limits);
    g_free(regex);
}

/* ---- compiling ---- */

/* PCRE2's code of @text, the translated pattern. */
static pcre2_code *compile_text(const char *text, Problem *problem)
{
    const uint32_t options =
        PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_UCHAR why[80];
    PCRE2_SIZE off = 0;
    int number = 0;
    pcre2_code *code;

    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
    code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &number, &off,
                         context);
    pcre2_compile_context_free(context);
    if (code) {
        pcre2_jit_compile(code,
                          PCRE2_JIT_COMPLETE); /* without one the interpreter runs */
        return code;
    }
    pcre2_get_error_message(number, why, sizeof why);
    problem->message = "the pattern does not compile";
    g_snprintf(problem->found, sizeof problem->found, "%s", (const char *)why);
    return NULL;
}

/* The translation of @pattern, or NULL and @problem. (owned) */
static char *translate(const char *pattern, size_t len, uint32_t flags, Problem *problem)
{
    const bool caseless = (flags & DAVIT_REGEX_CASELESS) != 0;
    /* Ignoring case from outside is a group with that option. */
    g_autofree char *whole =
        g_strdup_printf(caseless ? "(?i:%.*s)" : "%.*s", (int)len, pattern);
    const size_t extra = caseless ? strlen("(?i:") : 0;
    const char *why = NULL;
    size_t off = 0;
    char *text;

    if (strlen(whole) < len) {
        problem->message = "the pattern has a NUL in it";
        return NULL;
    }
    text = davit_regex_translate(whole, strlen(whole), &why, &off);
    if (text)
        return text;
    off = off > extra ? off - extra : 0;
    problem->message = why;
    g_snprintf(problem->found, sizeof problem->found, "byte %zu: %.*s", off,
               (int)MIN(len - MIN(off, len), 40), pattern + MIN(off, len));
    return NULL;
}

static DavitRegex *compile(const char *pattern, size_t len, uint32_t flags,
                           Problem *problem)
{
    g_autofree char *text = NULL;
    pcre2_code *code;
    DavitRegex *regex;

    if (len > DAVIT_REGEX_MAX_PATTERN) {
        problem->message = "the pattern is longer than 65536 bytes";
        g_snprintf(problem->found, sizeof problem->found, "%zu bytes", len);
        return NULL;
    }
    text = translate(pattern, len, flags, problem);
    code = text ? compile_text(text, problem) : NULL;
    if (!code)
        return NULL;
    regex = g_new0(DavitRegex, 1);
    regex->code = code;
    regex->limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(regex->limits, DAVIT_REGEX_MATCH_LIMIT);
    pcre2_set_depth_limit(regex->limits, DAVIT_REGEX_DEPTH_LIMIT);
    pcre2_set_heap_limit(regex->limits, DAVIT_REGEX_HEAP_LIMIT);
    return regex;
}

DavitRegex *davit_regex_compile(const char *pattern, size_t len, uint32_t flags,
                                const char *subject, DavitReport *report)
{
    Problem problem = {0};
    DavitRegex *regex = compile(pattern, len, flags, &problem);

    if (!regex)
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                                 .status = DAVIT_E_UNSUPPORTED,
                                                 .stage = "regex",
                                                 .subject = subject,
                                                 .found = problem.found,
                                                 .message = problem.message});
    return regex;
}

/* ---- matching ---- */

/* One match at or after @at. Returns 1, 0 (none) or a negative status. */
static int32_t match_once(const DavitRegex *regex, davit_span text, uint64_t at,
                          uint32_t options, pcre2_match_data *data)
{
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text.ptr, (PCRE2_SIZE)text.len,
                         (PCRE2_SIZE)at, options, data, regex->limits);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(regex->code, (PCRE2_SPTR)text.ptr, (PCRE2_SIZE)text.len,
                         (PCRE2_SIZE)at, options | PCRE2_NO_JIT, data, regex->limits);
    if (rc >= 0)
        return 1;
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    return rc == PCRE2_ERROR_NOMEMORY ? DAVIT_E_IO : DAVIT_E_LIMIT;
}

/* Start of the next character after @at < len. */
static uint64_t next_char(davit_span text, uint64_t at)
{
    at++;
    while (at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80)
        at++;
    return at;
}

int64_t davit_regex_matches(const DavitRegex *regex, davit_span text, uint64_t from,
                            uint64_t *out_pairs, uint64_t cap, uint64_t *out_next)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    const PCRE2_SIZE *range;
    uint64_t n = 0;
    bool after_match = from > 0; /* an empty match may not touch the one before it */
    int32_t found = data ? 1 : DAVIT_E_IO;

    while (found > 0 && n < cap && from <= text.len) {
        found =
            match_once(regex, text, from, after_match ? PCRE2_NOTEMPTY_ATSTART : 0, data);
        if (found == 0)
            from = text.len;
        if (found <= 0)
            break;
        range = pcre2_get_ovector_pointer(data);
        out_pairs[2 * n] = range[0];
        out_pairs[2 * n + 1] = range[1];
        n++;
        after_match = range[1] > range[0];
        from = after_match           ? range[1]
               : range[1] < text.len ? next_char(text, range[1])
                                     : text.len + 1;
    }
    pcre2_match_data_free(data);
    if (found < 0)
        return found;
    *out_next = MIN(from, text.len);
    return (int64_t)n;
}

/* ---- the "regex" suite ---- */

static int32_t suite_compile(void *host_ctx, davit_span pattern, uint32_t flags,
                             davit_regex **out_regex, const davit_sink *sink)
{
    Problem problem = {0};
    DavitRegex *regex = compile(pattern.ptr, (size_t)pattern.len, flags, &problem);

    (void)host_ctx;
    if (!regex)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                          .subject = "regex",
                                          .found = problem.found,
                                          .message = problem.message});
    *out_regex = regex;
    return DAVIT_OK;
}

const davit_regex_suite *davit_regex_suite_get(void)
{
    static const davit_regex_suite suite = {
        .struct_size = DAVIT_END(davit_regex_suite, free),
        .compile = suite_compile,
        .matches = davit_regex_matches,
        .free = davit_regex_free,
    };

    return &suite;
}
