/* SPDX-License-Identifier: Apache-2.0
 * Where two prompts part, and why. A cause is named only when doing without it makes the
 * ids equal, or when the texts leave no other reading. */
#include "cli/template_diff.h"

#include <stdio.h>
#include <string.h>

#include "cli/run.h"

#define AROUND 6 /* ids shown on each side */

typedef struct Diff {
    DavitTemplateJob *job;
    const int32_t *theirs;
    size_t n_theirs, at;
    json_t *causes; /* sentences */
} Diff;

/* ---- the other ids ---- */

/* Ids of a JSON array or of a text with blanks, commas or line ends between them. At least one:
 * an empty file is a training run's failure, no prompt. */
static GArray *read_ids(DavitCall *call, const char *path)
{
    static const char hint[] = "whole numbers with blanks between them, or one JSON array of them";
    g_autoptr(DavitReport) aside = davit_report_new(); /* it would speak of --ids */
    size_t n = 0;
    g_autofree char *text = davit_call_read_file(call, path, &n);

    if (!text)
        return NULL;
    const bool whole = strlen(text) == n;
    g_autoptr(GArray) ids =
        whole ? davit_parse_ids("--diff-ids", g_strdelimit(text, "[]\n\r\t,", ' '), aside) : NULL;
    if (ids && ids->len)
        return g_steal_pointer(&ids);
    davit_call_usage(call, path, ids ? "the file holds no ids" : "the file is no list of ids", hint);
    return NULL;
}

static size_t common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t i = 0;

    while (i < n_a && i < n_b && a[i] == b[i])
        i++;
    return i;
}

/* The id where the two part, for a record. */
static const char *id_text(const Diff *d, const int32_t *ids, size_t n)
{
    return d->at < n ? davit_report_text(d->job->call->report, "%d", ids[d->at])
                     : "the end of the ids";
}

/* ---- causes ---- */

static void cause(Diff *d, const char *sentence)
{
    json_array_append_new(d->causes, json_string(sentence));
}

/* Are the ids of the job rendered or encoded otherwise the training's? */
static bool equal_when(const Diff *d, bool no_generation_prompt, bool trust)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    DavitChatInput input = d->job->input;
    DavitRendered r = {0};
    DavitIds ids = {0};
    bool same = false;

    input.no_generation_prompt = no_generation_prompt;
    if (!davit_chat_render(d->job->chat, &input, &r, aside) &&
        !davit_chat_encode(d->job->tokenizer, &r, trust, &ids, NULL, aside))
        same = ids.n == d->n_theirs &&
               common(ids.ids, ids.n, d->theirs, d->n_theirs) == ids.n;
    davit_ids_clear(&ids);
    davit_rendered_clear(&r);
    return same;
}

static void check_bos(Diff *d)
{
    const DavitIds *ours = &d->job->ids;
    const bool we = ours->n > 1 && ours->ids[0] == ours->ids[1] &&
                    davit_tokenizer_is_special(d->job->tokenizer, ours->ids[0]);
    const bool they = d->n_theirs > 1 && d->theirs[0] == d->theirs[1] &&
                      davit_tokenizer_is_special(d->job->tokenizer, d->theirs[0]);

    if (they && !we)
        cause(d, "doubled BOS: the training ids begin with it twice (template and tokenizer "
                 "each wrote one)");
    else if (we && !they)
        cause(d, "doubled BOS: the rendered prompt begins with it twice");
    else if (d->at == 0 && d->n_theirs && ours->n && d->n_theirs == ours->n + 1 &&
             common(ours->ids, ours->n, d->theirs + 1, ours->n) == ours->n)
        cause(d, "BOS: the training ids begin with one token more");
    else if (d->at == 0 && ours->n && ours->n == d->n_theirs + 1 &&
             common(ours->ids + 1, d->n_theirs, d->theirs, d->n_theirs) == d->n_theirs)
        cause(d, "BOS: the rendered prompt begins with one token more");
}

/* Returns: true if another rendering is the training's, so that nothing is left to explain. */
static bool check_renderings(Diff *d)
{
    const bool trust = davit_call_has(d->job->call, "trust-content");
    const bool prompt = !d->job->input.no_generation_prompt;
    const size_t before = json_array_size(d->causes);

    if (equal_when(d, prompt, trust))
        cause(d, prompt ? "generation prompt: the ids are equal with --no-generation-prompt"
                        : "generation prompt: the ids are equal without --no-generation-prompt");
    if (equal_when(d, !prompt, !trust))
        cause(d, trust ? "control tokens inside contents: the ids are equal without "
                         "--trust-content"
                       : "control tokens inside contents: the ids are equal with "
                         "--trust-content");
    return json_array_size(d->causes) > before;
}

/* What the ids alone tell. */
static void check_ids(Diff *d)
{
    const DavitIds *ours = &d->job->ids;

    for (size_t i = 0; i < d->n_theirs; i++)
        if ((uint64_t)d->theirs[i] >= davit_tokenizer_n_ids(d->job->tokenizer)) {
            cause(d, "another tokenizer: the training has ids that this one does not know");
            break;
        }
    if (d->at == ours->n)
        cause(d, "more messages, or the answer: the training ids begin with the whole prompt and "
                 "go on");
    else if (d->at == d->n_theirs)
        cause(d, "cut short: the prompt begins with all of the training ids and goes on");
}

static char *text_of(const Diff *d, const int32_t *ids, size_t n)
{
    GString *text = g_string_new(NULL);

    davit_decode(d->job->tokenizer, ids, n, false, text);
    return g_string_free(text, FALSE);
}

static char *without_blanks(const char *text)
{
    GString *out = g_string_new(NULL);

    for (; *text; text++)
        if (!g_ascii_isspace(*text))
            g_string_append_c(out, *text);
    return g_string_free(out, FALSE);
}

static int compare_bytes(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* The same characters, in another order. */
static bool same_letters(const char *a, const char *b)
{
    g_autofree char *x = g_strdup(a), *y = g_strdup(b);

    if (strlen(x) != strlen(y))
        return false;
    qsort(x, strlen(x), 1, compare_bytes);
    qsort(y, strlen(y), 1, compare_bytes);
    return strcmp(x, y) == 0;
}

static void check_texts(Diff *d)
{
    const DavitIds *ours = &d->job->ids;
    g_autofree char *a = text_of(d, ours->ids, ours->n), *b = text_of(d, d->theirs, d->n_theirs);
    g_autofree char *a_ink = without_blanks(a), *b_ink = without_blanks(b);

    if (strcmp(a, b) == 0)
        cause(d, "same text, other tokens: the training was tokenised differently (special "
                 "tokens as text, or another tokenizer)");
    else if (strcmp(a_ink, b_ink) == 0)
        cause(d, strlen(a) < strlen(b) ? "missing newline or blank: the texts differ in white "
                                         "space, the training has more"
                                       : "newline or blank too many: the texts differ in white "
                                         "space, the training has less");
    else if (d->job->input.tools && same_letters(a_ink, b_ink))
        cause(d, "tool schema order: the same characters in another order");
    else if (davit_template_reads(davit_chat_template(d->job->chat), "strftime_now"))
        cause(d, "maybe the date: the template asks for it; --now fixes it");
}

/* ---- output ---- */

static json_t *side_json(const Diff *d, const int32_t *ids, size_t n, size_t from, size_t to)
{
    json_t *list = json_array();

    for (size_t i = from; i < MIN(to, n); i++)
        json_array_append_new(list, json_integer(ids[i]));
    g_autofree char *text = text_of(d, ids + MIN(from, n), MIN(to, n) - MIN(from, n));
    return json_pack("{s:o, s:o, s:I}", "ids", list, "text", davit_json_text(text), "count",
                     (json_int_t)n);
}

static void print_side(const Diff *d, const char *name, const int32_t *ids, size_t n,
                       size_t from, size_t to)
{
    g_autofree char *before = text_of(d, ids + MIN(from, n), MIN(d->at, n) - MIN(from, n));
    g_autofree char *after = text_of(d, ids + MIN(d->at, n), MIN(to, n) - MIN(d->at, n));
    g_autofree char *b = davit_escape(before, strlen(before), 200);
    g_autofree char *a = davit_escape(after, strlen(after), 200);

    if (d->at < n)
        printf("%-9s id %d: ...%s >>> %s\n", name, ids[d->at], b, a);
    else
        printf("%-9s ends here: ...%s\n", name, b);
}

static void show(Diff *d)
{
    const DavitIds *ours = &d->job->ids;
    const size_t from = d->at > AROUND ? d->at - AROUND : 0, to = d->at + AROUND;
    const json_t *sentence;
    size_t i;

    if (d->job->call->json) {
        json_t *doc = d->job->call->doc;

        json_object_set_new(doc, "at", json_integer((json_int_t)d->at));
        json_object_set_new(doc, "rendered", side_json(d, ours->ids, ours->n, from, to));
        json_object_set_new(doc, "training", side_json(d, d->theirs, d->n_theirs, from, to));
        json_object_set(doc, "causes", d->causes);
        return;
    }
    printf("the ids part at position %zu (rendered %zu ids, training %zu)\n", d->at, ours->n,
           d->n_theirs);
    print_side(d, "rendered", ours->ids, ours->n, from, to);
    print_side(d, "training", d->theirs, d->n_theirs, from, to);
    json_array_foreach(d->causes, i, sentence)
        printf("likely    %s\n", json_string_value(sentence));
    if (json_array_size(d->causes) == 0)
        printf("likely    other messages, another template or another tokenizer\n");
}

int davit_template_diff(DavitTemplateJob *job, const char *path)
{
    g_autoptr(GArray) theirs = read_ids(job->call, path);
    const DavitIds *ours = &job->ids;

    if (!theirs)
        return davit_call_exit(job->call);
    Diff d = {.job = job,
              .theirs = (const int32_t *)(void *)theirs->data,
              .n_theirs = theirs->len,
              .causes = json_array()};
    d.at = common(ours->ids, ours->n, d.theirs, d.n_theirs);
    const bool equal = d.at == ours->n && d.at == d.n_theirs;
    json_object_set_new(job->call->doc, "equal", json_boolean(equal));
    if (!equal) {
        check_bos(&d);
        if (!check_renderings(&d)) {
            check_texts(&d);
            check_ids(&d);
        }
        show(&d);
        davit_report_add(job->call->report,
                         &(DavitFinding){.code = DAVIT_R_IDS_DIFFER,
                                         .status = DAVIT_E_MISMATCH,
                                         .stage = "template",
                                         .subject = davit_report_text(job->call->report,
                                                                      "id %zu", d.at),
                                         .expected = id_text(&d, d.theirs, d.n_theirs),
                                         .found = id_text(&d, ours->ids, ours->n),
                                         .message = "the prompt's ids are not the training's"});
    } else if (!job->call->json) {
        printf("equal: %zu ids\n", ours->n);
    }
    json_decref(d.causes);
    return davit_call_exit(job->call);
}
