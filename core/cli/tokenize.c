/* SPDX-License-Identifier: Apache-2.0
 * davit tokenize: text to ids and back. Needs no architecture and no weights. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/run.h"
#include "cli/tokenize_progress.h"
#include "engine/private.h"

static const DavitFlag flags[] = {
    {"file", 'f', DAVIT_FLAG_TEXT, "FILE", "take the text from a file; - reads stdin", NULL, NULL,
     false},
    {"lines", 0, DAVIT_FLAG_SWITCH, NULL, "with --file: each line without its LF is one input",
     NULL, NULL, false},
    {"decode", 'd', DAVIT_FLAG_SWITCH, NULL, "the input is ids: print their text", NULL, NULL,
     false},
    {"no-special", 0, DAVIT_FLAG_SWITCH, NULL, "add no BOS, EOS or the like", NULL, NULL, false},
    {"safe", 0, DAVIT_FLAG_SWITCH, NULL, "text that looks like a special token stays text", NULL,
     NULL, false},
    {"count", 0, DAVIT_FLAG_SWITCH, NULL, "print how many ids, not the ids", NULL, NULL, false},
    {"offsets", 0, DAVIT_FLAG_SWITCH, NULL, "with --json: the bytes of the text for each id", NULL,
     NULL, false},
    {"explain", 0, DAVIT_FLAG_SWITCH, NULL, "print pieces, family, plugin and why", NULL, NULL,
     false},
    {0},
};
static const char *const examples[] = {
    "davit tokenize model/ \"Hello world\"", "ids separated by spaces",
    "davit tokenize tokenizer.json --file text.txt --lines", "one output line per input line",
    "davit tokenize model.gguf --decode \"504 3575 282\"", "ids back to text", NULL};

/* ---- encode ---- */

#define SHOW_EVERY ((size_t)4 << 20) /* bytes between two lines of progress; less shows none */

typedef struct Job {
    DavitCall *call;
    DavitEncoder *encoder; /* encoders[0] */
    DavitEncoder **encoders;
    size_t n_encoders;
    DavitTokenizer *tokenizer;
    uint32_t how;
    json_t *inputs; /* with --json */
    size_t line;    /* with --lines: from 1 */
    size_t n_unknown;      /* ids to decode that have no token */
    int32_t first_unknown; /* of them */
    bool closed;
} Job;

/* printf is what most of a large file's time would go to. */
static void append_id(GString *out, int32_t id)
{
    char digits[12];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + id % 10);
    while ((id /= 10) > 0);
    g_string_append_len(out, digits + at, (gssize)(sizeof digits - at));
}

static void print_ids(Job *job, const DavitIds *ids)
{
    g_autoptr(GString) line = g_string_new(NULL);
    if (davit_call_has(job->call, "count"))
        g_string_printf(line, "%zu", ids->n);
    else if (ids->n == 0)
        g_string_assign(line, "EMPTY");
    else
        for (size_t i = 0; i < ids->n; i++) {
            if (i > 0)
                g_string_append_c(line, ' ');
            append_id(line, ids->ids[i]);
        }
    g_string_append_c(line, '\n');
    job->closed |= !davit_out_part(line->str, line->len);
}

static json_t *ids_json(const int32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static void explain_piece(void *ctx, const DavitPiece *piece)
{
    Job *job = ctx;
    g_autofree char *text = davit_escape(piece->text, piece->len, 200);
    if (job->call->json) {
        json_array_append_new(job->inputs,
                              json_pack("{s:o, s:b, s:o}", "text", davit_json_text(text), "added",
                                        (int)piece->added, "ids",
                                        ids_json(piece->ids, piece->n_ids)));
        return;
    }
    printf("  %-24s", text);
    for (size_t i = 0; i < piece->n_ids; i++)
        printf(" %d", piece->ids[i]);
    printf("%s\n", piece->added ? "  (added token)" : "");
}

static void explain_head(Job *job)
{
    DavitTokenizerFacts f;
    davit_tokenizer_facts(job->tokenizer, &f);
    if (job->call->json) {
        json_object_set_new(job->call->doc, "family", json_string(f.family));
        json_object_set_new(job->call->doc, "plugin", json_string(f.plugin ? f.plugin : ""));
        json_object_set_new(job->call->doc, "shape", davit_json_text(f.shape));
        json_object_set_new(job->call->doc, "why", davit_json_text(f.why));
        return;
    }
    printf("family  %s, claimed by %s\nwhy     %s\nsource  %s, model %s\nshape   %s\npieces\n",
           f.family, f.plugin ? f.plugin : "-", f.why, f.source, f.model, f.shape);
}

static json_t *spans_json(const GArray *spans)
{
    json_t *list = json_array();
    for (guint i = 0; i < spans->len; i++) {
        const DavitSpan span = g_array_index(spans, DavitSpan, i);
        json_array_append_new(list, json_pack("[I,I]", (json_int_t)span.start,
                                              (json_int_t)span.end));
    }
    return list;
}

/* An input of the document with ids, count and offsets. */
static int32_t encode_with_offsets(Job *job, const char *text, size_t n)
{
    g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(DavitSpan));
    DavitIds ids = {0};
    const int32_t status =
        davit_encode_spans(job->encoder, text, n, job->how, &ids, spans, job->call->report);
    if (!status)
        json_array_append_new(job->inputs,
                              json_pack("{s:o, s:I, s:o}", "ids", ids_json(ids.ids, ids.n),
                                        "count", (json_int_t)ids.n, "offsets",
                                        spans_json(spans)));
    davit_ids_clear(&ids);
    return status;
}

static json_t *input_json(const Job *job, const DavitIds *ids)
{
    json_t *input = json_pack("{s:I}", "count", (json_int_t)ids->n);

    if (!davit_call_has(job->call, "count"))
        json_object_set_new(input, "ids", ids_json(ids->ids, ids->n));
    return input;
}

static int32_t encode_one(Job *job, const char *text, size_t n)
{
    if (davit_call_has(job->call, "offsets"))
        return encode_with_offsets(job, text, n);
    if (davit_call_has(job->call, "explain"))
        return davit_encode_pieces(job->encoder, text, n, job->how, explain_piece, job,
                                   job->call->report);
    DavitIds ids = {0};
    const bool show = n > SHOW_EVERY && isatty(STDERR_FILENO) && !job->call->quiet && job->line == 0;
    DavitTokenizeProgress *progress = show ? davit_tokenize_progress(job->encoder) : NULL;
    const int32_t status = davit_encode_threads(job->encoders, job->n_encoders, text, n, job->how,
                                                &ids, job->call->report);
    davit_tokenize_progress_stop(progress);
    if (!status && job->call->json)
        json_array_append_new(job->inputs, input_json(job, &ids));
    else if (!status)
        print_ids(job, &ids);
    davit_ids_clear(&ids);
    return status;
}

static int32_t decode_one(Job *job, const char *text)
{
    g_autofree char *name =
        job->line ? g_strdup_printf("line %zu", job->line) : g_strdup("--decode");
    g_autoptr(GArray) ids = davit_parse_ids(name, strcmp(text, "EMPTY") == 0 ? "" : text,
                                            job->call->report);
    if (!ids)
        return DAVIT_E_USAGE;
    g_autoptr(GString) out = g_string_new(NULL);
    const int32_t *list = (const int32_t *)(void *)ids->data;
    size_t len;
    for (guint i = 0; i < ids->len; i++) {
        if (!davit_tokenizer_text(job->tokenizer, list[i], &len) && job->n_unknown++ == 0)
            job->first_unknown = list[i];
    }
    davit_decode(job->tokenizer, list, ids->len, false, out);
    if (job->call->json) {
        json_array_append_new(job->inputs,
                              json_pack("{s:o}", "text", davit_json_text_n(out->str, out->len)));
        return DAVIT_OK;
    }
    g_string_append_c(out, '\n');
    job->closed |= !davit_out_part(out->str, out->len);
    return DAVIT_OK;
}

static int32_t one_input(Job *job, const char *text, size_t n)
{
    if (!davit_call_has(job->call, "decode"))
        return encode_one(job, text, n);
    g_autofree char *copy = g_strndup(text, n);
    return decode_one(job, copy);
}

/* Offset of the first byte that is no UTF-8, or @n. GLib stops at a NUL, too. */
static size_t valid_bytes(const char *text, size_t n)
{
    const char *end = text;
    while (!g_utf8_validate_len(end, n - (size_t)(end - text), &end) && *end == '\0')
        end++;
    return (size_t)(end - text);
}

/* The library says where in its text; which file or line that is, only this command knows. */
static int32_t check_text(Job *job, const char *text, size_t n)
{
    const size_t bad = valid_bytes(text, n);
    if (bad == n)
        return DAVIT_OK;
    DavitReport *report = job->call->report;
    const char *file = davit_call_text(job->call, "file");
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_TEXT_INVALID,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "run",
                        .subject = job->line ? davit_report_text(report, "line %zu", job->line)
                                   : file    ? file
                                             : "TEXT",
                        .expected = "UTF-8",
                        .found = davit_report_text(report, "byte 0x%02x, the %zu. of the %s",
                                                   (unsigned)(uint8_t)text[bad], bad + 1,
                                                   job->line ? "line" : "text"),
                        .message = davit_report_text(report, "the %s is not valid UTF-8",
                                                     job->line ? "line" : "text"),
                        .hint = job->line ? "the lines before it are done; iconv -t UTF-8 converts "
                                            "what is in another encoding"
                                          : "iconv -t UTF-8 converts what is in another encoding"});
}

/* Lines end at LF only; a last line without LF counts, an empty rest does not. */
static int32_t each_line(Job *job, const char *text, size_t n)
{
    const bool show = n > SHOW_EVERY && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO) &&
                      !job->call->quiet;
    int32_t status = DAVIT_OK;
    size_t shown = 0;
    for (size_t at = 0; !status && !job->closed && at < n;) {
        const char *lf = memchr(text + at, '\n', n - at);
        const size_t len = lf ? (size_t)(lf - text) - at : n - at;
        job->line++;
        status = check_text(job, text + at, len);
        if (!status)
            status = one_input(job, text + at, len);
        at += len + 1;
        if (show && at >= shown + SHOW_EVERY) {
            fprintf(stderr, "\r%3.0f %%, line %zu ", 100.0 * (double)MIN(at, n) / (double)n,
                    job->line);
            shown = at;
        }
    }
    if (show)
        fprintf(stderr, "\r%40s\r", "");
    return status;
}

/* They give no text, as with Hugging Face; who mistyped one should hear of it. */
static void tell_unknown(const Job *job)
{
    DavitReport *report = job->call->report;
    if (job->n_unknown == 0)
        return;
    davit_report_add(
        report, &(DavitFinding){
                    .code = DAVIT_R_ASSUMED,
                    .severity = DAVIT_WARNING,
                    .stage = "run",
                    .subject = "--decode",
                    .expected = davit_report_text(report, "ids of tokens, all below %zu",
                                                  davit_tokenizer_n_ids(job->tokenizer)),
                    .found = davit_report_text(report, "%d%s", job->first_unknown,
                                               job->n_unknown > 1 ? " and others" : ""),
                    .message = davit_report_text(report, "%zu id%s no token and give%s no text",
                                                 job->n_unknown,
                                                 job->n_unknown == 1 ? " has" : "s have",
                                                 job->n_unknown == 1 ? "s" : ""),
                    .hint = "another tokenizer's ids would give another text, too"});
}

/* One encoder for each thread that @n bytes are worth. */
static void make_encoders(Job *job, size_t n)
{
    const uint64_t asked = davit_call_count(job->call, "threads");
    const uint64_t most = davit_call_has(job->call, "lines") ? 1 : 1 + n / 131072;

    job->n_encoders = (size_t)MIN(MIN(asked ? asked : g_get_num_processors(), most), 256);
    job->encoders = g_new0(DavitEncoder *, job->n_encoders);
    for (size_t i = 0; i < job->n_encoders; i++)
        job->encoders[i] = davit_encoder_new(job->tokenizer);
    job->encoder = job->encoders[0];
}

static void free_encoders(Job *job)
{
    for (size_t i = 0; i < job->n_encoders; i++)
        davit_encoder_free(job->encoders[i]);
    g_free(job->encoders);
}

static int run(DavitCall *call)
{
    const char *file = davit_call_text(call, "file");
    if ((file != NULL) == (call->n_args == 2))
        return davit_call_usage(call, "TEXT", "give a text, or --file with a file's name or - for standard input", NULL);
    if (davit_call_has(call, "lines") && !file)
        return davit_call_usage(call, "--lines", "goes with --file", NULL);
    if (davit_call_has(call, "decode") &&
        (davit_call_has(call, "count") || davit_call_has(call, "explain")))
        return davit_call_usage(call, "--decode", "does not go with --count and --explain", NULL);
    if (davit_call_has(call, "count") && davit_call_has(call, "explain"))
        return davit_call_usage(call, "--count", "does not go with --explain", NULL);
    if (davit_call_has(call, "offsets") &&
        (!call->json || davit_call_has(call, "decode") || davit_call_has(call, "explain")))
        return davit_call_usage(call, "--offsets",
                                "goes with --json, and not with --decode or --explain", NULL);
    size_t n = 0;
    g_autofree char *text = file ? davit_call_read_file(call, file, &n) : g_strdup(call->args[1]);
    if (!text)
        return davit_call_exit(call);
    if (!file)
        n = strlen(text);
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_open(call->args[0], registry, call->report);
    if (!tokenizer)
        return davit_call_exit(call);
    Job job = {.call = call,
               .tokenizer = tokenizer,
               .how = (davit_call_has(call, "no-special") ? 0 : DAVIT_ENCODE_SPECIAL) |
                      (davit_call_has(call, "safe") ? DAVIT_ENCODE_SAFE : 0),
               .inputs = json_array()};
    make_encoders(&job, n);
    const bool explain = davit_call_has(call, "explain");
    if (explain)
        explain_head(&job);
    if (davit_call_has(call, "lines"))
        each_line(&job, text, n);
    else if (check_text(&job, text, n) == DAVIT_OK)
        one_input(&job, text, n);
    tell_unknown(&job);
    free_encoders(&job);
    json_object_set_new(call->doc, explain ? "pieces" : "inputs", job.inputs);
    return job.closed ? DAVIT_EXIT_FAILED : davit_call_exit(call);
}

const DavitCommand davit_command_tokenize = {
    .name = "tokenize",
    .args = "MODEL|FILE [TEXT]",
    .min_args = 1,
    .max_args = 2,
    .summary = "text to token ids and back",
    .description = "Prints token ids separated by spaces, one output line per input, EMPTY for "
                   "none.\nFILE is a tokenizer by itself: tokenizer.json, tekken.json, a SentencePiece "
                   ".model,\na .tiktoken file, vocab.txt. Ids equal Hugging Face's tokenizers, "
                   "mistral-common,\nsentencepiece or tiktoken. --decode prints text, special tokens kept.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
