/* SPDX-License-Identifier: Apache-2.0
 * The davit program: finds the command, parses, runs, prints findings, decides the exit code.
 * Everything it does is done by the library; this folder alone prints and exits. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "cli/command.h"
#include "engine/libdavit.h"
#include "source/guard.h"

/* ---- findings ---- */

static const char *severity_word(DavitSeverity severity)
{
    return severity == DAVIT_ERROR ? "error" : severity == DAVIT_WARNING ? "warning" : "note";
}

/* "config.json: a, b; other.json: c" from subjects "config.json: a" and so on: @subject behind the
 * one before, of the file @last. Returns: its own file's length. */
static size_t append_subject(GString *out, const char *subject, const char *last, size_t n_last)
{
    const char *colon = strstr(subject, ": ");
    const size_t n = colon ? (size_t)(colon - subject) : 0;
    const bool same = n && last && n == n_last && memcmp(subject, last, n) == 0;
    if (out->len)
        g_string_append(out, same || !n ? ", " : "; ");
    g_string_append(out, same ? colon + 2 : subject);
    return n;
}

/* Settings that a file omits are many and alike: one line names them, -v tells each. */
static void print_assumed(const DavitCall *call)
{
    g_autoptr(GString) names = g_string_new(NULL);
    const char *last = NULL;
    size_t n_last = 0;
    for (size_t i = 0; i < davit_report_count(call->report); i++) {
        const DavitRecord *r = davit_report_get(call->report, i);
        if (r->code != DAVIT_R_ASSUMED || r->severity != DAVIT_NOTE)
            continue;
        n_last = append_subject(names, r->subject ? r->subject : "?", last, n_last);
        last = r->subject;
    }
    if (!names->len)
        return;
    g_autofree char *line = g_strdup_printf("davit: note: defaults were taken for what the files "
                                            "do not state: %s (-v tells each)",
                                            names->str);
    g_autofree char *shown = davit_wrap(line, davit_terminal_columns(STDERR_FILENO), 4);
    fprintf(stderr, "%s\n", shown);
}

static void print_record(const DavitCall *call, const DavitRecord *r)
{
    g_autofree char *text = davit_record_sentence(r);
    g_autofree char *more =
        call->verbose ? g_strdup_printf(" [%s, stage %s, said by %s]", davit_code_name(r->code),
                                        r->stage ? r->stage : "-", r->who ? r->who : "core")
                      : g_strdup("");
    g_autofree char *line =
        g_strdup_printf("davit: %s: %s%s", severity_word(r->severity), text, more);
    g_autofree char *shown = davit_wrap(line, davit_terminal_columns(STDERR_FILENO), 4);
    fprintf(stderr, "%s\n", shown);
}

/* A cut file has the same finding for every tensor: the first few tell it, -v and --json tell
 * all. */
#define SHOWN_PER_CODE 6u

static void print_records(const DavitCall *call)
{
    g_autoptr(GHashTable) count = g_hash_table_new(NULL, NULL); /* code -> times seen */
    if (!call->quiet && !call->verbose)
        print_assumed(call);
    for (size_t i = 0; i < davit_report_count(call->report); i++) {
        const DavitRecord *r = davit_report_get(call->report, i);
        if (call->quiet && r->severity != DAVIT_ERROR)
            continue;
        if (!call->verbose && r->severity == DAVIT_NOTE && r->code == DAVIT_R_ASSUMED)
            continue;
        const guint seen =
            GPOINTER_TO_UINT(g_hash_table_lookup(count, GUINT_TO_POINTER(r->code))) + 1;
        g_hash_table_insert(count, GUINT_TO_POINTER(r->code), GUINT_TO_POINTER(seen));
        if (call->verbose || seen <= SHOWN_PER_CODE)
            print_record(call, r);
    }
    GHashTableIter iter;
    gpointer code, seen;
    g_hash_table_iter_init(&iter, count);
    while (!call->verbose && g_hash_table_iter_next(&iter, &code, &seen))
        if (GPOINTER_TO_UINT(seen) > SHOWN_PER_CODE)
            fprintf(stderr, "davit: %u more findings of %s (-v shows them)\n",
                    GPOINTER_TO_UINT(seen) - SHOWN_PER_CODE,
                    davit_code_name(GPOINTER_TO_UINT(code)));
}

/* A refusal names what it met first; the cause may lie elsewhere. */
static void print_advice(const DavitCall *call, int code)
{
    static const char *const stages[] = {"open", "config", "plan", "probe", "claim", "check"};
    const DavitRecord *r = davit_report_first_error(call->report, 0);
    const char *name = call->command ? call->command->name : "";
    bool of_model = false;
    for (size_t i = 0; r && r->stage && i < G_N_ELEMENTS(stages); i++)
        of_model |= strcmp(r->stage, stages[i]) == 0;
    if ((code == DAVIT_EXIT_MALFORMED || code == DAVIT_EXIT_REFUSED) && of_model && !call->quiet && call->n_args > 0 &&
        (strcmp(name, "plan") == 0 || strcmp(name, "run") == 0))
        fprintf(stderr, "davit: hint: davit doctor %s names causes\n",
                davit_shown(call->args[0]));
}

static int exit_of_status(int32_t status)
{
    switch (status) {
    case DAVIT_E_USAGE:
        return DAVIT_EXIT_USAGE;
    case DAVIT_E_UNSUPPORTED:
        return DAVIT_EXIT_REFUSED;
    case DAVIT_E_CORRUPT:
    case DAVIT_E_MISMATCH:
        return DAVIT_EXIT_MALFORMED;
    default:
        return DAVIT_EXIT_FAILED;
    }
}

int davit_call_exit(const DavitCall *call)
{
    const DavitRecord *r = davit_report_first_error(call->report, 0);
    return r ? exit_of_status(r->status) : DAVIT_EXIT_OK;
}

int davit_call_usage(DavitCall *call, const char *subject, const char *message,
                     const char *hint)
{
    davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                                   .status = DAVIT_E_USAGE,
                                                   .stage = "options",
                                                   .subject = subject,
                                                   .message = message,
                                                   .hint = hint});
    return DAVIT_EXIT_USAGE;
}

/* ---- output ---- */

static int out_errno; /* why stdout failed, before other calls failed */

bool davit_out_part(const char *text, size_t n)
{
    if (fwrite(text, 1, n, stdout) == n)
        return true;
    out_errno = errno;
    return false;
}

bool davit_out(const char *text, size_t n)
{
    if (!davit_out_part(text, n))
        return false;
    if (fflush(stdout) == 0)
        return true;
    out_errno = errno;
    return false;
}

#define INDENT 1 /* blanks for a level of a document */

DavitJsonWriter *davit_call_begin_part(DavitCall *call, const char *key)
{
    g_assert(!call->part);
    call->part = key;
    call->part_text = g_string_new(NULL);
    if (!json_object_get(call->doc, key))
        json_object_set_new(call->doc, key, json_null()); /* its place */
    return davit_json_writer_text(call->part_text, INDENT, 1);
}

static void write_fields(const DavitCall *call, DavitJsonWriter *w)
{
    const char *key;
    json_t *value;
    json_object_foreach(call->doc, key, value)
    {
        if (call->part && strcmp(key, call->part) == 0)
            davit_json_put_written(w, key, call->part_text);
        else
            davit_json_put_tree(w, key, value);
    }
}

static void write_records(const DavitCall *call, DavitJsonWriter *w)
{
    davit_json_begin(w, "records", false);
    for (size_t i = 0; i < davit_report_count(call->report); i++) {
        json_t *record = davit_record_json(davit_report_get(call->report, i));
        davit_json_put_tree(w, NULL, record);
        json_decref(record);
    }
    davit_json_end(w);
}

/* The one document of --json: schema, ok, the command's fields, records. */
static bool print_document(const DavitCall *call, int code)
{
    const char *name = call->command ? call->command->name : "davit";
    g_autofree char *schema = g_strdup_printf("davit-%s/1", name);
    g_strdelimit(schema, " ", '-');
    /* after a stream of one event a line the document is one line, too */
    const bool lines = call->command && g_hash_table_contains(call->values, "stream");
    g_autoptr(GString) text = g_string_new(NULL);
    DavitJsonWriter *w = davit_json_writer_text(text, lines ? 0 : INDENT, 0);
    davit_json_begin(w, NULL, true);
    davit_json_put_text(w, "schema", schema);
    davit_json_put_bool(w, "ok", code == 0);
    write_fields(call, w);
    write_records(call, w);
    davit_json_end(w);
    davit_json_writer_finish(w);
    g_string_append_c(text, '\n');
    return davit_out(text->str, text->len);
}

/* ---- dispatch ---- */

/* Longest command name that the words begin with; *out_used = how many words it took. */
static const DavitCommand *find_command(int argc, char **argv, int *out_used)
{
    const DavitCommand *best = NULL;
    for (const DavitCommand *const *c = davit_commands; *c; c++) {
        g_auto(GStrv) words = g_strsplit((*c)->name, " ", -1);
        const int n = (int)g_strv_length(words);
        bool same = n <= argc;
        for (int i = 0; same && i < n; i++)
            same = strcmp(words[i], argv[i]) == 0;
        if (same && (!best || n > *out_used)) {
            best = *c;
            *out_used = n;
        }
    }
    return best;
}

static bool given(int argc, char **argv, const char *word)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

/* Debug traces of core and plugins, with -v. */
static void print_trace(const char *domain, GLogLevelFlags level, const char *message, void *data)
{
    (void)domain;
    (void)level;
    (void)data;
    fprintf(stderr, "davit: debug: %s\n", message);
}

static int run_command(DavitCall *call, int argc, char **argv)
{
    if (davit_call_parse(call, argc, argv))
        return DAVIT_EXIT_USAGE;
    if (call->verbose)
        g_log_set_handler("davit", G_LOG_LEVEL_MASK, print_trace, NULL);
    if (davit_call_has(call, "help")) {
        davit_help_command(call->command, stdout);
        call->json = false;
        return DAVIT_EXIT_OK;
    }
    if (!call->command->run) {
        davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_NOT_BUILT,
                                                       .status = DAVIT_E_USAGE,
                                                       .stage = "options",
                                                       .subject = call->command->name,
                                                       .message = "not in this version"});
        return DAVIT_EXIT_USAGE;
    }
    return call->command->run(call);
}

/* What was typed as a command: two words where the first begins the names of several. */
static char *typed_command(int argc, char **argv)
{
    g_autofree char *prefix = g_strconcat(argv[0], " ", NULL);

    for (const DavitCommand *const *c = davit_commands; argc > 1 && *c; c++)
        if (g_str_has_prefix((*c)->name, prefix))
            return g_strconcat(prefix, argv[1], NULL);
    return g_strdup(argv[0]);
}

/* @word begins the names of several commands ("plugin"): they are listed. */
static bool help_group(const char *word, FILE *to)
{
    g_autofree char *prefix = g_strconcat(word, " ", NULL);
    bool any = false;

    for (const DavitCommand *const *c = davit_commands; *c; c++) {
        if (!g_str_has_prefix((*c)->name, prefix))
            continue;
        if (!any)
            fprintf(to, "commands that begin with %s:\n", word);
        any = true;
        fprintf(to, "  %-26s %s%s\n", (*c)->name, (*c)->summary,
                (*c)->run ? "" : " [not in this version]");
    }
    return any;
}

static int unknown_command(DavitCall *call, int argc, char **argv)
{
    const char *word = argv[0];
    g_autofree char *typed = typed_command(argc, argv);

    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) &&
        help_group(word, stdout))
        return DAVIT_EXIT_OK;
    if (argc == 1 && help_group(word, stderr))
        return DAVIT_EXIT_USAGE;
    return davit_call_usage(call, typed, "there is no such command",
                            "davit --help lists the commands");
}

/* Words that make the files that are installed beside the program. */
static int make_files(int argc, char **argv)
{
    int used = 0;
    if (strcmp(argv[0], "--completion") == 0 && argc == 2) {
        davit_help_completion(argv[1], stdout);
        return DAVIT_EXIT_OK;
    }
    const DavitCommand *c = find_command(argc - 1, argv + 1, &used);
    if (argc > 1 && !c)
        return DAVIT_EXIT_USAGE;
    davit_help_man(c, stdout);
    return DAVIT_EXIT_OK;
}

static int dispatch(DavitCall *call, int argc, char **argv)
{
    int used = 0;
    if (argc == 0) {
        davit_help_overview(stderr);
        return DAVIT_EXIT_USAGE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 ||
        strcmp(argv[0], "help") == 0) {
        const DavitCommand *about = find_command(argc - 1, argv + 1, &used);
        if (about)
            davit_help_command(about, stdout);
        else if (argc != 2 || !help_group(argv[1], stdout))
            davit_help_overview(stdout);
        return DAVIT_EXIT_OK;
    }
    if (strcmp(argv[0], "--man") == 0 || strcmp(argv[0], "--completion") == 0)
        return make_files(argc, argv);
    if (strcmp(argv[0], "--version") == 0) {
        printf("davit %s\n", davit_version());
        return DAVIT_EXIT_OK;
    }
    call->command = find_command(argc, argv, &used);
    call->json = given(argc, argv, "--json"); /* a failed parse answers in JSON too */
    if (!call->command)
        return unknown_command(call, argc, argv);
    return run_command(call, argc - used, argv + used);
}

/* Plugins are never unloaded, so their destructors do not run here either: one that crashes or
 * hangs would spoil a run whose work is done. A sanitizer has work to do at the end. */
static int leave(int code)
{
    if (DAVIT_SANITIZED)
        return code;
    fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed stdout is seen as a failed write */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
    davit_fatal_install();
    davit_guard_install();    /* a mapped file that is cut meanwhile is an error, not a death */
    DavitCall call = {.report = davit_report_new(), .doc = json_object()};
    int code = dispatch(&call, argc - 1, argv + 1);
    if (call.json) {
        if (!print_document(&call, code) && code == DAVIT_EXIT_OK)
            code = DAVIT_EXIT_FAILED;
    } else {
        print_records(&call);
        print_advice(&call, code);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        const int why = out_errno ? out_errno : errno;
        if (why != EPIPE) /* a reader that went away needs no message */
            fprintf(stderr, "davit: error: stdout could not be written: %s\n", g_strerror(why));
        code = code == DAVIT_EXIT_OK ? DAVIT_EXIT_FAILED : code;
    }
    davit_call_clear(&call);
    return leave(code);
}
