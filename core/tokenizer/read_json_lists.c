/* SPDX-License-Identifier: Apache-2.0
 * The two long lists of a tokenizer.json: tokens with their ids, and merges. Simple
 * values are taken many at a time (base/json_runs.h), the others one by one; a long list
 * of merges is read from its middle by a second thread.
 */
#include <string.h>

#include "base/json_runs.h"
#include "tokenizer/read_json.h"

#define RUN       DAVIT_MERGES_AHEAD /* values taken at once */
#define TWO_BYTES (1u << 20) /* a shorter rest of the file is not worth a thread */

/* ---- vocabulary ---- */

static int32_t refuse_token(DavitTokReading *r, const char *text, size_t len,
                            DavitVocabAdd why)
{
    g_autofree char *found = davit_escape(text, len, 80);
    g_autofree char *member = g_strdup_printf("model.vocab: %s", found);

    if (why == DAVIT_VOCAB_TOO_LARGE)
        return davit_report_add(
            r->report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                       .status = DAVIT_E_LIMIT,
                                       .stage = "open",
                                       .subject = member,
                                       .message = "no memory for the vocabulary"});
    if (why == DAVIT_VOCAB_ID_TAKEN)
        return davit_tok_json_invalid(r, member, "an id of its own", NULL,
                                      "two tokens have one id");
    return davit_tok_json_invalid(r, member, "an id from 0 to 16777216", NULL,
                                  "the id is out of range");
}

/* @twin: its text is that of an earlier id. */
static int32_t refuse_twin(DavitTokReading *r, int32_t twin)
{
    size_t len;
    const char *text = davit_vocab_text(r->parts->vocab, twin, &len);
    g_autofree char *found = davit_escape(text ? text : "", text ? len : 0, 80);

    return davit_report_add(
        r->report, &(DavitFinding){.code = DAVIT_R_DUPLICATE_KEY,
                                   .status = DAVIT_E_CORRUPT,
                                   .stage = "open",
                                   .subject = davit_report_text(
                                       r->report, "%s: model.vocab", r->parts->subject),
                                   .found = found,
                                   .message = "a key is given twice in one object"});
}

static int32_t seal(DavitTokReading *r)
{
    const int32_t twin = davit_vocab_seal(r->parts->vocab);

    if (twin == -1)
        return DAVIT_OK;
    return twin >= 0 ? refuse_twin(r, twin)
                     : refuse_token(r, "", 0, DAVIT_VOCAB_TOO_LARGE);
}

static int32_t add_token(DavitTokReading *r, int64_t id, const char *text, size_t len)
{
    const DavitVocabAdd added = davit_vocab_add(r->parts->vocab, id, text, len);

    return added == DAVIT_VOCAB_ADDED ? DAVIT_OK : refuse_token(r, text, len, added);
}

/* Simple tokens from here on. */
static int32_t add_run(DavitTokReading *r)
{
    DavitJsonItem items[RUN];
    DavitJsonRun run = davit_json_run(r->reader);
    int32_t status = DAVIT_OK;
    size_t n;

    while (status == DAVIT_OK && (n = davit_json_run_members(&run, items, RUN)) > 0) {
        for (size_t i = 0; i < n && status == DAVIT_OK; i++)
            status = add_token(r, items[i].number, items[i].text.ptr, items[i].text.len);
    }
    davit_json_run_end(&run, r->reader);
    return status;
}

/* One token, behind its key. */
static int32_t add_one(DavitTokReading *r, const davit_json_event *name, GString *key)
{
    davit_json_event event;
    int32_t status;

    g_string_truncate(key, 0);
    g_string_append_len(key, name->text.ptr, (gssize)name->text.len);
    status = davit_tok_json_next(r, &event);
    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_INT)
        return davit_tok_json_invalid(r, "model.vocab", "a whole number for every token",
                                      key->str, "a token has no id");
    return add_token(r, event.i64, key->str, key->len);
}

int32_t davit_tok_json_vocab(DavitTokReading *r)
{
    g_autoptr(GString) key = g_string_new(NULL);
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type == DAVIT_JSON_ARRAY) {
        r->has_list = r->has_vocab = true;
        return davit_tok_read_scored(r->parts, r->reader, r->report);
    }
    if (event.type != DAVIT_JSON_OBJECT)
        return davit_tok_json_skip(r, &event);
    davit_json_own_keys(r->reader); /* davit_vocab_seal finds double ones */
    status = add_run(r);
    while (status == DAVIT_OK && (status = davit_tok_json_next(r, &event)) == DAVIT_OK &&
           event.type == DAVIT_JSON_KEY) {
        status = add_one(r, &event, key);
        if (status == DAVIT_OK)
            status = add_run(r);
    }
    if (status != DAVIT_OK)
        return status;
    r->has_vocab = true;
    return seal(r);
}

/* ---- merges: simple ones ---- */

/* One reader of a part of the list. */
typedef struct Half {
    const DavitVocab *vocab; /* (borrowed) sealed */
    DavitJsonRun run;        /* behind the last merge in @merges */
    const char *until;       /* elements from here on are another's; NULL = none are */
    GArray *merges;          /* DavitMerge, (owned by who made it) */
} Half;

/* Both halves of an item; escapes go to @room, which is large enough. */
static bool halves_of(const DavitJsonItem *item, GString *room, DavitMergeText *out)
{
    davit_span spans[2] = {item->text, item->second};
    const bool escaped[2] = {item->escaped, item->escaped_second};

    for (int i = 0; i < 2; i++) {
        const size_t from = room->len;

        if (!escaped[i] || !spans[i].ptr)
            continue;
        if (!davit_json_run_unescape(spans[i], room))
            return false;
        spans[i] = (davit_span){room->str + from, room->len - from};
    }
    if (!spans[1].ptr)
        return !(spans[0].len >= 8 && memcmp(spans[0].ptr, "#version", 8) == 0) &&
               davit_tok_split_line(spans[0].ptr, spans[0].len, out);
    *out = (DavitMergeText){{spans[0].ptr, spans[0].len}, {spans[1].ptr, spans[1].len}};
    return true;
}

/* Look up the @n items; false if that does not go. */
static bool find_items(Half *half, const DavitJsonItem *items, size_t n, GString *room)
{
    DavitMergeText texts[RUN];
    size_t need = 0;

    for (size_t i = 0; i < n; i++)
        need += (items[i].escaped ? items[i].text.len : 0) +
                (items[i].escaped_second ? items[i].second.len : 0);
    if (need > 0)
        g_string_set_size(room, need); /* so that texts do not move */
    g_string_truncate(room, 0);
    for (size_t i = 0; i < n; i++) {
        if (!halves_of(&items[i], room, &texts[i]))
            return false;
    }
    return davit_merges_find(half->vocab, texts, n, half->merges) == n;
}

/* As many merges as go, many at a time; behind them the slow way tells what is wrong. */
static void *take_half(void *data)
{
    Half *half = data;
    g_autoptr(GString) room = g_string_new(NULL);
    DavitJsonItem items[RUN];

    for (;;) {
        const DavitJsonRun before = half->run;
        const guint len = half->merges->len;
        const size_t n = davit_json_run_texts(&half->run, half->until, items, RUN);

        if (n == 0)
            return NULL;
        if (!find_items(half, items, n, room)) {
            half->run = before;
            g_array_set_size(half->merges, len);
            return NULL;
        }
    }
}

/* Where an element of the list begins, somewhere behind @p, if the file is spelled in
 * lines: no string holds a line feed. Only a guess, since it may lie behind the list. */
static const char *guess_element(const char *p, const char *end, char open)
{
    for (int i = 0; i < 16 && p < end; i++) {
        const char *line = memchr(p, '\n', (size_t)(end - p));

        if (!line)
            return NULL;
        p = line + 1;
        while (p < end && *p == ' ')
            p++;
        if (p < end && *p == open && line[-1] == ',')
            return p;
    }
    return NULL;
}

/* The list from where the reader stands to its end or to what is not simple; a second
 * thread begins in the middle of what is left of the file. What it found counts if the
 * first arrives at the place where it began. */
static void take_list(DavitTokReading *r)
{
    DavitTokParts *parts = r->parts;
    Half one = {
        .vocab = parts->vocab, .run = davit_json_run(r->reader), .merges = parts->merges};
    Half two = {.vocab = parts->vocab};
    const char *first = davit_json_run_next(&one.run);
    const size_t left = (size_t)(one.run.end - one.run.p);
    GThread *thread = NULL;

    if (first && left >= TWO_BYTES && one.run.first && g_get_num_processors() > 1)
        one.until = guess_element(one.run.p + left / 2, one.run.end, *first);
    if (one.until) {
        two.run = (DavitJsonRun){one.until, one.run.end, true};
        two.merges = g_array_new(FALSE, FALSE, sizeof(DavitMerge));
        thread = g_thread_try_new("davit-merges", take_half, &two, NULL);
        one.until = thread ? one.until : NULL;
    }
    take_half(&one);
    if (thread)
        g_thread_join(thread);
    if (thread && davit_json_run_next(&one.run) == one.until) {
        davit_merges_append(one.merges, two.merges);
        one.run = two.run;
    }
    if (two.merges)
        g_array_free(two.merges, TRUE);
    davit_json_run_end(&one.run, r->reader);
}

/* ---- merges: one by one ---- */

/* ["a", "b"], behind the bracket. */
static int32_t read_pair(DavitTokReading *r, GString *left)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type == DAVIT_JSON_STRING) {
        g_string_truncate(left, 0);
        g_string_append_len(left, event.text.ptr, (gssize)event.text.len);
        status = davit_tok_json_next(r, &event);
        if (status != DAVIT_OK)
            return status;
        if (event.type == DAVIT_JSON_STRING) {
            const DavitMergeText merge = {{left->str, left->len},
                                          {event.text.ptr, event.text.len}};

            status = davit_tok_add_merge(r->parts, &merge, r->report);
            if (status == DAVIT_OK)
                status = davit_tok_settle_merges(r->parts, r->report);
            if (status == DAVIT_OK)
                status = davit_tok_json_next(r, &event);
            if (status != DAVIT_OK || event.type == DAVIT_JSON_ARRAY_END)
                return status;
        }
    }
    return davit_tok_json_invalid(r, "model.merges", "lists of two strings", NULL,
                                  "a merge is malformed");
}

static int32_t read_merge(DavitTokReading *r, const davit_json_event *event,
                          GString *left)
{
    int32_t status;

    if (event->type == DAVIT_JSON_ARRAY)
        return read_pair(r, left);
    if (event->type != DAVIT_JSON_STRING)
        return davit_tok_json_invalid(r, "model.merges",
                                      "strings or lists of two strings", NULL,
                                      "a merge is malformed");
    status =
        davit_tok_add_merge_line(r->parts, event->text.ptr, event->text.len, r->report);
    return status == DAVIT_OK ? davit_tok_settle_merges(r->parts, r->report) : status;
}

int32_t davit_tok_json_merges(DavitTokReading *r)
{
    g_autoptr(GString) left = g_string_new(NULL);
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    r->has_merges = true;
    if (status == DAVIT_OK && event.type == DAVIT_JSON_ARRAY && !r->has_vocab) {
        r->merges_off = event.off;
        return davit_json_skip(r->reader);
    }
    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY)
        return davit_tok_json_invalid(r, "model.merges", "a list", NULL,
                                      "merges are not a list");
    while (status == DAVIT_OK) {
        take_list(r);
        status = davit_tok_json_next(r, &event);
        if (status != DAVIT_OK || event.type == DAVIT_JSON_ARRAY_END)
            break;
        status = read_merge(r, &event, left);
    }
    return status;
}
