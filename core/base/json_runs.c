/* SPDX-License-Identifier: Apache-2.0
 * Runs of simple values. Each function takes a value as a whole or leaves it alone.
 */
#include "base/json_runs.h"

#include "base/json_private.h"
#include "base/json_text.h"

DavitJsonRun davit_json_run(const DavitJsonReader *r)
{
    const bool inside = !r->failed && r->depth > 0 &&
                        (r->state == STATE_FIRST || r->state == STATE_FIRST_KEY ||
                         r->state == STATE_AFTER);

    return (DavitJsonRun){inside ? r->p : r->end, r->end, r->state != STATE_AFTER};
}

void davit_json_run_end(const DavitJsonRun *run, DavitJsonReader *r)
{
    if (run->first || r->failed || r->depth == 0)
        return;
    r->p = run->p;
    r->state = STATE_AFTER;
    r->last_type =
        DAVIT_JSON_NULL; /* a value that davit_json_skip has nothing to do for */
}

const char *davit_json_run_next(const DavitJsonRun *run)
{
    const char *p = davit_json_blanks(run->p, run->end);

    if (run->first)
        return p < run->end ? p : NULL;
    if (p == run->end || *p != ',')
        return NULL;
    p = davit_json_blanks(p + 1, run->end);
    return p < run->end ? p : NULL;
}

/* ---- members ---- */

/* The string on whose quote @p stands. Returns: behind it, NULL if it is not simple. */
static const char *take_key(const char *p, const char *end, davit_span *out)
{
    const char *stop;
    bool escapes;

    if (p == end || *p != '"' || davit_json_scan_string(p + 1, end, &stop, &escapes) ||
        escapes)
        return NULL;
    *out = (davit_span){p + 1, (uint64_t)(stop - p - 1)};
    return stop + 1;
}

/* Up to nine digits, without a zero in front of others, and what ends them. */
static const char *take_digits(const char *p, const char *end, int64_t *out)
{
    const char *start = p;
    int64_t n = 0;

    while (p < end && p - start < 9 && g_ascii_isdigit(*p))
        n = n * 10 + (*p++ - '0');
    if (p == start || (*start == '0' && p - start > 1) || p == end ||
        (*p != ',' && *p != '}' && *p != '\n' && *p != ' '))
        return NULL;
    *out = n;
    return p;
}

size_t davit_json_run_members(DavitJsonRun *run, DavitJsonItem *out, size_t cap)
{
    const char *end = run->end;
    size_t n = 0;

    for (; n < cap; n++) {
        const char *p = davit_json_run_next(run);

        p = p ? take_key(p, end, &out[n].text) : NULL;
        if (!p)
            break;
        p = davit_json_blanks(p, end);
        if (p == end || *p != ':')
            break;
        p = take_digits(davit_json_blanks(p + 1, end), end, &out[n].number);
        if (!p)
            break;
        run->p = p;
        run->first = false;
    }
    return n;
}

/* ---- texts ---- */

static const char *take_text(const char *p, const char *end, davit_span *out,
                             bool *out_escaped)
{
    const char *stop;

    *out_escaped = false;
    if (p == end || *p != '"')
        return NULL;
    stop = davit_json_find_special(p + 1, end);
    while (end - stop >= 2 && *stop == '\\') {
        *out_escaped = true;
        stop = davit_json_find_special(stop + 2, end);
    }
    if (stop == end || *stop != '"')
        return NULL;
    *out = (davit_span){p + 1, (uint64_t)(stop - p - 1)};
    return stop + 1;
}

/* The pair on whose bracket @p stands. */
static const char *take_pair(const char *p, const char *end, DavitJsonItem *out)
{
    p = take_text(davit_json_blanks(p + 1, end), end, &out->text, &out->escaped);
    if (!p)
        return NULL;
    p = davit_json_blanks(p, end);
    if (p == end || *p != ',')
        return NULL;
    p = take_text(davit_json_blanks(p + 1, end), end, &out->second, &out->escaped_second);
    if (!p)
        return NULL;
    p = davit_json_blanks(p, end);
    return p < end && *p == ']' ? p + 1 : NULL;
}

bool davit_json_run_unescape(davit_span raw, GString *to)
{
    const char *at;

    return !davit_json_unescape(raw.ptr, raw.ptr + raw.len, false, to, &at);
}

size_t davit_json_run_texts(DavitJsonRun *run, const char *until, DavitJsonItem *out,
                            size_t cap)
{
    size_t n = 0;

    for (; n < cap; n++) {
        const char *p = davit_json_run_next(run);

        if (!p || (until && p >= until))
            break;
        if (*p == '[') {
            p = take_pair(p, run->end, &out[n]);
        } else {
            out[n].second = (davit_span){NULL, 0};
            out[n].escaped_second = false;
            p = take_text(p, run->end, &out[n].text, &out[n].escaped);
        }
        if (!p)
            break;
        run->p = p;
        run->first = false;
    }
    return n;
}
