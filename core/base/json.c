/* SPDX-License-Identifier: Apache-2.0
 * The pull reader: a state per open object or array on an explicit stack, one event a
 * call. Strings and numbers are decoded in json_text.c, keys remembered in json_keys.c.
 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <davit/help/records.h>

#include "base/json_private.h"
#include "base/json_text.h"

/* ---- failing ---- */

static int32_t fail_as(DavitJsonReader *r, uint32_t code, int32_t status, const char *at,
                       const char *found, const char *why)
{
    g_autofree char *where = g_strdup_printf("byte %" PRIu64, (uint64_t)(at - r->text));
    g_autofree char *message = g_strdup_printf("%s (%s)", why, where);
    const char *expected = r->python ? "JSON as Python writes it" : "strict JSON";

    found = found ? found : where;
    r->failed = status;
    if (r->report)
        return davit_report_add(r->report, &(DavitFinding){.code = code,
                                                           .status = status,
                                                           .stage = "json",
                                                           .subject = r->subject,
                                                           .expected = expected,
                                                           .found = found,
                                                           .message = message});
    return davit_say(r->sink, status,
                     &(davit_refusal){.code = code,
                                      .subject = r->subject,
                                      .expected = expected,
                                      .found = found,
                                      .message = message});
}

static int32_t fail(DavitJsonReader *r, const char *at, const char *why)
{
    return fail_as(r, DAVIT_R_JSON_INVALID, DAVIT_E_CORRUPT, at, NULL, why);
}

/* ---- open and close ---- */

static DavitJsonReader *reader_new(const char *text, size_t len, uint32_t dialect,
                                   const char *subject)
{
    DavitJsonReader *r = g_new(DavitJsonReader, 1);

    memset(r, 0, offsetof(DavitJsonReader, frames));
    if (!text)
        text = ""; /* no offset may be taken of a null pointer, not even 0 */
    r->text = r->p = text;
    r->end = text + len;
    r->python = (dialect & DAVIT_JSON_PYTHON) != 0;
    r->subject = g_strdup(subject ? subject : "JSON");
    davit_json_keys_init(&r->keys);
    return r;
}

/* Limits that need no reading. */
static int32_t check_start(DavitJsonReader *r)
{
    const size_t len = (size_t)(r->end - r->text);

    if (len > DAVIT_JSON_MAX_BYTES)
        return fail_as(r, DAVIT_R_JSON_INVALID, DAVIT_E_LIMIT, r->text, NULL,
                       "the text is longer than 1 GiB");
    if (len >= 3 && memcmp(r->text, "\xef\xbb\xbf", 3) == 0)
        return fail(r, r->text, "the text starts with a byte order mark");
    return DAVIT_OK;
}

DavitJsonReader *davit_json_open(const char *text, size_t len, uint32_t dialect,
                                 const char *subject, DavitReport *report)
{
    g_autoptr(DavitJsonReader) r = reader_new(text, len, dialect, subject);

    r->report = report;
    if (check_start(r))
        return NULL;
    return g_steal_pointer(&r);
}

void davit_json_close(DavitJsonReader *r)
{
    if (!r)
        return;
    while (r->depth > 0)
        davit_json_key_table_close(&r->frames[--r->depth].keys, &r->keys);
    davit_json_keys_clear(&r->keys);
    if (r->key_copies)
        g_string_chunk_free(r->key_copies);
    if (r->buf)
        g_string_free(r->buf, TRUE);
    g_free(r->subject);
    g_free(r);
}

/* ---- events ---- */

static void skip_blanks(DavitJsonReader *r)
{
    r->p = davit_json_blanks(r->p, r->end);
}

/* Compact files have none, which one look tells. */
static inline void skip_space(DavitJsonReader *r)
{
    if (r->p < r->end && (unsigned char)*r->p <= ' ')
        skip_blanks(r);
}

/* State after a complete value. */
static void value_done(DavitJsonReader *r)
{
    r->state = r->depth ? STATE_AFTER : STATE_DONE;
}

static int32_t emit(DavitJsonReader *r, davit_json_event *out, uint32_t type,
                    const char *at)
{
    r->last_type = type;
    out->type = type;
    out->depth = r->depth;
    out->text = (davit_span){NULL, 0};
    out->off = (uint64_t)(at - r->text);
    return DAVIT_OK;
}

/* Text of the string that starts at @r->p (on its quote); leaves @r->p after it. */
static int32_t read_text(DavitJsonReader *r, davit_span *out, bool *out_copied)
{
    const char *start = r->p + 1;
    const char *stop;
    const char *at = start;
    const char *why = davit_json_scan_string(start, r->end, &stop, out_copied);

    if (why)
        return fail(r, stop, why);
    r->p = stop + 1;
    *out = (davit_span){start, (uint64_t)(stop - start)};
    if (!*out_copied)
        return DAVIT_OK;
    if (!r->buf)
        r->buf = g_string_new(NULL);
    g_string_truncate(r->buf, 0);
    why = davit_json_unescape(start, stop, r->python, r->buf, &at);
    if (why)
        return fail(r, at, why);
    *out = (davit_span){r->buf->str, r->buf->len};
    return DAVIT_OK;
}

static int32_t refuse_key(DavitJsonReader *r, const char *at, davit_span key)
{
    g_autofree char *found = g_strndup(key.ptr, (gsize)MIN(key.len, 200));

    return fail_as(r, DAVIT_R_DUPLICATE_KEY, DAVIT_E_CORRUPT, at, found,
                   "a key is given twice in one object");
}

/* Remember @key of the innermost object; it must be new. */
static int32_t remember_key(DavitJsonReader *r, const char *at, davit_span key,
                            bool copied)
{
    const char *kept = key.ptr;

    if (r->keys.n_keys >= DAVIT_JSON_MAX_KEYS)
        return fail_as(r, DAVIT_R_JSON_INVALID, DAVIT_E_LIMIT, at, NULL,
                       "there are more than 16777216 keys");
    if (copied) {
        if (!r->key_copies)
            r->key_copies = g_string_chunk_new(4096);
        kept = g_string_chunk_insert_len(r->key_copies, key.ptr, (gssize)key.len);
    }
    switch (davit_json_key_add(&r->frames[r->depth - 1].keys, &r->keys, kept,
                               (size_t)key.len)) {
    case DAVIT_JSON_KEY_NEW:
        return DAVIT_OK;
    case DAVIT_JSON_KEY_TWICE:
        return refuse_key(r, at, key);
    default:
        return fail_as(r, DAVIT_R_OUT_OF_MEMORY, DAVIT_E_LIMIT, at, NULL,
                       "no memory for the keys of an object");
    }
}

static int32_t read_key(DavitJsonReader *r, davit_json_event *out)
{
    const char *at = r->p;
    davit_span key;
    bool copied;
    int32_t status;

    if (r->p == r->end || *r->p != '"')
        return fail(r, r->p, "a key in quotes is expected");
    status = read_text(r, &key, &copied);
    if (!status && !r->frames[r->depth - 1].own_keys)
        status = remember_key(r, at, key, copied);
    if (status)
        return status;
    r->state = STATE_COLON_VALUE;
    emit(r, out, DAVIT_JSON_KEY, at);
    out->text = key;
    return DAVIT_OK;
}

static int32_t open_frame(DavitJsonReader *r, davit_json_event *out, bool is_object)
{
    const char *at = r->p++;
    DavitJsonFrame *frame;

    if (r->depth == DAVIT_JSON_MAX_DEPTH)
        return fail_as(r, DAVIT_R_JSON_INVALID, DAVIT_E_LIMIT, at, NULL,
                       "objects and arrays are nested more than 200 deep");
    emit(r, out, is_object ? DAVIT_JSON_OBJECT : DAVIT_JSON_ARRAY, at);
    frame = &r->frames[r->depth++];
    frame->is_object = is_object;
    frame->own_keys = false;
    davit_json_key_table_open(&frame->keys, &r->keys);
    r->state = is_object ? STATE_FIRST_KEY : STATE_FIRST;
    return DAVIT_OK;
}

void davit_json_own_keys(DavitJsonReader *r)
{
    if (r->depth > 0)
        r->frames[r->depth - 1].own_keys = true;
}

static int32_t close_frame(DavitJsonReader *r, davit_json_event *out)
{
    const char *at = r->p++;
    DavitJsonFrame *frame = &r->frames[--r->depth];

    davit_json_key_table_close(&frame->keys, &r->keys);
    value_done(r);
    return emit(r, out, frame->is_object ? DAVIT_JSON_OBJECT_END : DAVIT_JSON_ARRAY_END,
                at);
}

static int32_t read_number(DavitJsonReader *r, davit_json_event *out)
{
    const char *at = r->p;
    DavitJsonNumber n = {0};
    const char *why =
        davit_json_scan_number(r->p, r->end, DAVIT_JSON_MAX_NUMBER, r->python, &n);

    if (why)
        return fail_as(r, DAVIT_R_JSON_INVALID,
                       n.too_long ? DAVIT_E_LIMIT : DAVIT_E_CORRUPT, at, NULL, why);
    r->p = n.end;
    value_done(r);
    emit(r, out, n.whole ? DAVIT_JSON_INT : DAVIT_JSON_REAL, at);
    out->text = (davit_span){at, (uint64_t)(n.end - at)};
    out->i64 = n.i64;
    out->f64 = n.f64;
    return DAVIT_OK;
}

/* If @word stands at @r->p, go past it. */
static bool take_word(DavitJsonReader *r, const char *word)
{
    const size_t n = strlen(word);

    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

/* true, false, null, and in the Python dialect the three words for what is not finite. */
static int32_t read_word(DavitJsonReader *r, davit_json_event *out)
{
    const char *at = r->p;
    uint32_t type = DAVIT_JSON_REAL;
    double value = 0;

    if (take_word(r, "true"))
        type = DAVIT_JSON_TRUE;
    else if (take_word(r, "false"))
        type = DAVIT_JSON_FALSE;
    else if (take_word(r, "null"))
        type = DAVIT_JSON_NULL;
    else if (r->python && take_word(r, "NaN"))
        value = (double)NAN;
    else if (r->python && take_word(r, "Infinity"))
        value = (double)INFINITY;
    else if (r->python && take_word(r, "-Infinity"))
        value = -(double)INFINITY;
    else
        return fail(r, at,
                    at == r->end ? "the text ends where a value is expected"
                                 : "a value is expected");
    value_done(r);
    emit(r, out, type, at);
    if (type == DAVIT_JSON_REAL) {
        out->text = (davit_span){at, (uint64_t)(r->p - at)};
        out->f64 = value;
    }
    return DAVIT_OK;
}

static int32_t read_value(DavitJsonReader *r, davit_json_event *out)
{
    const char *at = r->p;
    davit_span text;
    bool copied;

    if (at == r->end)
        return read_word(r, out);
    switch (*at) {
    case '{':
        return open_frame(r, out, true);
    case '[':
        return open_frame(r, out, false);
    case '"':
        if (read_text(r, &text, &copied))
            return r->failed;
        value_done(r);
        emit(r, out, DAVIT_JSON_STRING, at);
        out->text = text;
        return DAVIT_OK;
    default:
        if (g_ascii_isdigit(*at) ||
            (*at == '-' && !(r->python && r->end - at > 1 && at[1] == 'I')))
            return read_number(r, out);
        return read_word(r, out);
    }
}

/* A comma or the end of the innermost frame. */
static int32_t read_after(DavitJsonReader *r, davit_json_event *out)
{
    const bool is_object = r->frames[r->depth - 1].is_object;
    const char c = r->p < r->end ? *r->p : '\0';

    if (c == (is_object ? '}' : ']'))
        return close_frame(r, out);
    if (c != ',')
        return fail(r, r->p,
                    r->p == r->end ? "the text ends inside an object or array"
                    : is_object    ? "a comma or } is expected"
                                   : "a comma or ] is expected");
    r->p++;
    skip_space(r);
    return is_object ? read_key(r, out) : read_value(r, out);
}

static int32_t read_colon_value(DavitJsonReader *r, davit_json_event *out)
{
    if (r->p == r->end || *r->p != ':')
        return fail(r, r->p, "a colon is expected after a key");
    r->p++;
    skip_space(r);
    return read_value(r, out);
}

int32_t davit_json_next(DavitJsonReader *r, davit_json_event *out)
{
    if (r->failed)
        return r->failed;
    skip_space(r);
    switch (r->state) {
    case STATE_FIRST_KEY:
        if (r->p < r->end && *r->p == '}')
            return close_frame(r, out);
        return read_key(r, out);
    case STATE_FIRST:
        if (r->p < r->end && *r->p == ']')
            return close_frame(r, out);
        return read_value(r, out);
    case STATE_COLON_VALUE:
        return read_colon_value(r, out);
    case STATE_AFTER:
        return read_after(r, out);
    case STATE_DONE:
        if (r->p != r->end)
            return fail(r, r->p, "something follows the value");
        return emit(r, out, DAVIT_JSON_DONE, r->p);
    case STATE_VALUE:
    default:
        return read_value(r, out);
    }
}

int32_t davit_json_skip(DavitJsonReader *r)
{
    const bool opened =
        r->last_type == DAVIT_JSON_OBJECT || r->last_type == DAVIT_JSON_ARRAY;
    const uint32_t outer = opened ? r->depth - 1 : r->depth;
    davit_json_event event = {.struct_size = DAVIT_END(davit_json_event, off)};
    int32_t status;

    if (!opened && r->last_type != DAVIT_JSON_KEY)
        return DAVIT_OK;
    do {
        status = davit_json_next(r, &event);
    } while (!status && r->depth > outer);
    return status;
}

bool davit_json_is(const davit_json_event *event, const char *s)
{
    return event->text.len == strlen(s) && memcmp(event->text.ptr, s, strlen(s)) == 0;
}

/* ---- the "json" suite ---- */

static int32_t suite_open(void *host_ctx, davit_span text, uint32_t dialect,
                          const char *subject, davit_json_reader **out_reader,
                          const davit_sink *sink)
{
    g_autoptr(DavitJsonReader) r = NULL;
    int32_t status;

    (void)host_ctx;
    if (text.len > SIZE_MAX)
        return DAVIT_E_LIMIT;
    r = reader_new(text.ptr, (size_t)text.len, dialect, subject);
    r->sink = sink;
    status = check_start(r);
    if (!status)
        *out_reader = g_steal_pointer(&r);
    return status;
}

const davit_json_suite *davit_json_suite_get(void)
{
    static const davit_json_suite suite = {
        .struct_size = DAVIT_END(davit_json_suite, close),
        .open = suite_open,
        .next = davit_json_next,
        .skip = davit_json_skip,
        .close = davit_json_close,
    };

    return &suite;
}
