/* SPDX-License-Identifier: Apache-2.0
 * Gate 5, the parent's side: run the helper, judge how it ended, remember it. */
#include "plugin/helper.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/helper_spawn.h"

#define HELPER_NAME "davit-probe"
#define DAY_S       (24 * 60 * 60)

/* An address of this library, by which it finds where it lies. */
static const char own_address[] = HELPER_NAME;

/* ---- the program ---- */

static char *helper_in(const char *dir)
{
    char *path = dir ? g_build_filename(dir, HELPER_NAME, NULL) : NULL;

    if (path && access(path, X_OK) == 0)
        return path;
    g_free(path);
    return NULL;
}

char *davit_helper_find(const char *builtin_dir)
{
    Dl_info info;
    char *found = NULL;

    if (builtin_dir) {
        g_autofree char *dir = g_path_get_dirname(builtin_dir);

        found = helper_in(dir);
    }
    if (!found && dladdr(own_address, &info) && info.dli_fname) {
        char *file = realpath(info.dli_fname, NULL);
        g_autofree char *lib = file ? g_path_get_dirname(file) : NULL;
        g_autofree char *dir = lib ? g_build_filename(lib, "davit", NULL) : NULL;

        found = helper_in(dir);
        free(file);
    }
    return found;
}

/* ---- what is remembered ---- */

static const char *text_of(const json_t *probe, const char *key)
{
    const char *text = json_string_value(json_object_get(probe, key));

    return text ? text : "";
}

/* Outcomes that are no word of the plugin's own, and their codes. All but the last are its
 * own doing, and likely again. */
static const struct {
    const char *outcome;
    uint32_t code;
} ends[] = {{"crashed", DAVIT_R_CRASHED},
            {"timeout", DAVIT_R_TIMEOUT},
            {"exited-early", DAVIT_R_EXITED_EARLY},
            {"bad-report", DAVIT_R_BAD_REPORT},
            {"killed", DAVIT_R_OUT_OF_MEMORY}};

/* 0 if @outcome is none of them. */
static uint32_t code_of_end(const char *outcome)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (strcmp(ends[i].outcome, outcome) == 0)
            return ends[i].code;
    }
    return 0;
}

static bool is_quarantine(const json_t *probe)
{
    const char *outcome = text_of(probe, "outcome");
    const uint32_t code = code_of_end(outcome);
    const int64_t age = g_get_real_time() / G_USEC_PER_SEC -
                        json_integer_value(json_object_get(probe, "time"));

    /* a slow machine is no property of the file */
    if (strcmp(outcome, "timeout") == 0 && (age > DAY_S || age < 0))
        return false;
    return code && code != DAVIT_R_OUT_OF_MEMORY;
}

static char *local_time(const json_t *probe)
{
    g_autoptr(GDateTime) at = g_date_time_new_from_unix_local(
        json_integer_value(json_object_get(probe, "time")));

    return at ? g_date_time_format(at, "%Y-%m-%d %H:%M") : g_strdup("?");
}

/* "SIGSEGV": the name of the signal, without the sentence of strsignal. (static) */
static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
                 {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"},
                 {SIGSYS, "SIGSYS"},   {SIGXCPU, "SIGXCPU"}, {SIGKILL, "SIGKILL"},
                 {SIGPIPE, "SIGPIPE"}, {SIGTERM, "SIGTERM"}, {SIGALRM, "SIGALRM"}};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (names[i].number == number)
            return names[i].name;
    }
    return "a signal";
}

/* ---- records ---- */

static const char *outcome_hint(DavitReport *report, const json_t *probe,
                                const DavitPluginFile *file)
{
    if (json_integer_value(json_object_get(probe, "signal")) == SIGILL) {
        g_autofree char *tag = g_strdup(file->build_tag ? file->build_tag : "?");

        return davit_report_text(
            report, "this processor may lack what it was built for (build: %s)", tag);
    }
    return "tell the plugin's author; `davit plugin retry FILE` looks again, and so does a "
           "changed file";
}

/* The record for an outcome that is no refusal of the plugin's own. */
static int32_t report_outcome(const DavitPluginFile *file, const json_t *probe,
                              DavitReport *report)
{
    const char *outcome = text_of(probe, "outcome");
    const char *stage = text_of(probe, "stage");
    const char *output = text_of(probe, "output");
    const char *who = *text_of(probe, "who") ? text_of(probe, "who") : file->bundle_id;
    const bool killed = strcmp(outcome, "killed") == 0;
    const char *found = NULL;

    if (strcmp(outcome, "crashed") == 0 || killed)
        found = davit_report_text(
            report, "%s during %s%s",
            signal_name((int)json_integer_value(json_object_get(probe, "signal"))), stage,
            strcmp(stage, "dlopen") == 0 ? " (constructor)" : "");
    else if (strcmp(outcome, "timeout") == 0)
        found = davit_report_text(
            report, "no end of %s after %d s", stage,
            (int)json_integer_value(json_object_get(probe, "step_s")));
    else if (strcmp(outcome, "exited-early") == 0)
        found = davit_report_text(
            report, "exit status %d during %s",
            (int)json_integer_value(json_object_get(probe, "exit")), stage);
    else
        found = davit_report_text(report, "after %s", stage);
    if (*output)
        found = davit_report_text(report, "%s; it printed \"%s\"", found, output);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = code_of_end(outcome),
            .status = killed ? DAVIT_E_IO : DAVIT_E_UNSUPPORTED,
            .stage = "probe-helper",
            .who = who,
            .subject = file->path,
            .expected = "the plugin loads and answers in a process of its own",
            .found = found,
            .message = killed ? "the probe helper was killed from outside, as a machine "
                                "that is out of memory does"
                              : NULL,
            .hint = killed ? "free some memory and run davit again"
                           : outcome_hint(report, probe, file)});
}

static int32_t report_quarantine(const DavitPluginFile *file, const json_t *probe,
                                 DavitReport *report)
{
    g_autofree char *since = local_time(probe);
    const int count = (int)json_integer_value(json_object_get(probe, "count"));

    report_outcome(file, probe, report);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_QUARANTINED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "policy",
            .subject = file->path,
            .expected = "a changed file, another davit or C library",
            .found = davit_report_text(report, "unchanged since %s, seen %d time%s", since,
                                       count, count == 1 ? "" : "s"),
            .message = "the file is left alone since it failed in the probe helper",
            .hint = davit_report_text(report,
                                      "`davit plugin retry %s` looks again; "
                                      "`davit plugin clear-quarantine` forgets all",
                                      file->bundle_id)});
}

/* The records that the helper sent, as they were. */
static void copy_records(const json_t *list, DavitReport *report)
{
    size_t i;
    json_t *r;

    json_array_foreach(list, i, r)
    {
        const char *severity = text_of(r, "severity");
        const bool is_error = strcmp(severity, "error") == 0;

#define FIELD(name) json_string_value(json_object_get(r, name))
        davit_report_add(report,
                         &(DavitFinding){.code = davit_code_number(FIELD("code")),
                                         .severity = strcmp(severity, "warning") == 0
                                                         ? DAVIT_WARNING
                                                         : DAVIT_NOTE,
                                         .status = is_error ? DAVIT_E_UNSUPPORTED
                                                            : DAVIT_OK,
                                         .stage = FIELD("stage"),
                                         .who = FIELD("who"),
                                         .subject = FIELD("subject"),
                                         .expected = FIELD("expected"),
                                         .found = FIELD("found"),
                                         .message = FIELD("message"),
                                         .hint = FIELD("hint")});
#undef FIELD
    }
}

/* ---- judging a run ---- */

/* (owned) the last line, if it is a report; NULL otherwise. */
static json_t *read_report(const GString *lines)
{
    const char *at = lines->len ? g_strrstr_len(lines->str, (gssize)lines->len - 1, "\n")
                                : NULL;
    json_t *doc;

    at = at ? at + 1 : lines->str;
    if (*at != '{')
        return NULL;
    doc = json_loads(at, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_integer(json_object_get(doc, "status")) &&
        json_is_array(json_object_get(doc, "records")))
        return doc;
    json_decref(doc);
    return json_object(); /* there is one, and it is none */
}

static bool from_outside(int number)
{
    return number == SIGKILL || number == SIGTERM || number == SIGINT ||
           number == SIGHUP || number == SIGQUIT;
}

static const char *judge(const DavitHelperRun *run, const json_t *doc)
{
    if (run->timed_out || (!run->lost && WIFSIGNALED(run->status) &&
                           WTERMSIG(run->status) == SIGXCPU))
        return "timeout";
    if (!run->lost && WIFSIGNALED(run->status))
        return from_outside(WTERMSIG(run->status)) ? "killed" : "crashed";
    if (!doc)
        return "exited-early";
    if (json_object_size(doc) == 0)
        return "bad-report";
    return json_integer_value(json_object_get(doc, "status")) == DAVIT_OK ? "ok"
                                                                          : "refused";
}

/* (owned) what to remember of @run. */
static json_t *make_probe(const DavitHelperRun *run, json_t *doc, const json_t *before)
{
    g_autofree char *output = davit_escape(run->output->str, run->output->len, 1000);
    const char *outcome = judge(run, doc);
    const bool again = strcmp(text_of(before, "outcome"), outcome) == 0;
    json_t *probe = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:f, s:i, s:s}", "outcome", outcome, "stage",
        run->what ? run->what : "start of the helper", "who", run->who ? run->who : "",
        "time", (json_int_t)(g_get_real_time() / G_USEC_PER_SEC), "count",
        again ? json_integer_value(json_object_get(before, "count")) + 1 : (json_int_t)1,
        "ms", run->t_ms, "step_s", (int)run->step_s, "output", output);

    if (!run->lost && WIFSIGNALED(run->status))
        json_object_set_new(probe, "signal", json_integer(WTERMSIG(run->status)));
    if (!run->lost && WIFEXITED(run->status))
        json_object_set_new(probe, "exit", json_integer(WEXITSTATUS(run->status)));
    if (doc) {
        json_object_set(probe, "records", json_object_get(doc, "records"));
        json_object_set(probe, "components", json_object_get(doc, "components"));
        json_object_set(probe, "steps", json_object_get(doc, "ms"));
        json_object_set(probe, "status", json_object_get(doc, "status"));
    }
    return probe;
}

static void remember(DavitPluginFile *file, json_t *probe)
{
    DavitCache *cache = file->load->registry->cache;

    json_decref(file->probe);
    file->probe = json_incref(probe);
    if (strcmp(text_of(probe, "outcome"), "killed") == 0)
        return;
    davit_cache_put(cache, file->load->real, &file->load->seen, "probe",
                    json_incref(probe));
    if (is_quarantine(probe)) /* now: the next crash may be our own */
        davit_cache_flush(cache);
}

/* What @probe means for the file, as records. */
static int32_t answer(const DavitPluginFile *file, const json_t *probe,
                      DavitReport *report)
{
    const char *outcome = text_of(probe, "outcome");

    if (strcmp(outcome, "ok") == 0)
        return DAVIT_OK;
    if (strcmp(outcome, "refused") == 0) {
        const int32_t status =
            (int32_t)json_integer_value(json_object_get(probe, "status"));

        copy_records(json_object_get(probe, "records"), report);
        return status < 0 ? status : DAVIT_E_UNSUPPORTED;
    }
    return report_outcome(file, probe, report);
}

int32_t davit_helper_probe_again(DavitPluginFile *file, DavitReport *report)
{
    char *const argv[] = {file->load->registry->helper, file->load->real,
                          file->load->is_builtin ? (char[]){"own"} : (char[]){"foreign"},
                          NULL};
    DavitHelperRun run;
    json_t *doc, *probe;
    int32_t status;

    if (!argv[0])
        return DAVIT_OK; /* a tree without the helper: the other gates must do */
    if (davit_helper_spawn(argv, file->load->registry->step_s, &run) != 0) {
        davit_helper_run_clear(&run);
        return DAVIT_OK; /* no process to be had is not the plugin's fault */
    }
    doc = read_report(run.lines);
    probe = make_probe(&run, doc, file->probe);
    remember(file, probe);
    status = answer(file, probe, report);
    json_decref(probe);
    json_decref(doc);
    davit_helper_run_clear(&run);
    return status;
}

void davit_helper_test(DavitPluginFile *file, const char *const *words, DavitReport *report,
                       bool *out_skipped)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) argv = NULL;
    DavitHelperRun run;
    json_t *doc, *probe;
    int error;

    g_strv_builder_add_many(builder, file->load->registry->helper, file->load->real,
                            file->load->is_builtin ? "own" : "foreign", NULL);
    g_strv_builder_addv(builder, (const char **)(uintptr_t)words);
    argv = g_strv_builder_end(builder);
    error = davit_helper_spawn(
        argv, MAX(file->load->registry->step_s, DAVIT_HELPER_TEST_S), &run);
    if (error) {
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                 .status = DAVIT_E_IO,
                                                 .stage = "probe-helper",
                                                 .subject = argv[0],
                                                 .expected = "a process",
                                                 .found = g_strerror(error),
                                                 .message = "the helper could not be "
                                                            "started",
                                                 .hint = "free some memory or processes"});
        davit_helper_run_clear(&run);
        return;
    }
    doc = read_report(run.lines);
    probe = make_probe(&run, doc, NULL);
    answer(file, probe, report);
    if (strcmp(text_of(probe, "outcome"), "ok") == 0)
        copy_records(json_object_get(probe, "records"), report);
    *out_skipped = json_is_true(json_object_get(doc, "skipped"));
    json_decref(probe);
    json_decref(doc);
    davit_helper_run_clear(&run);
}

int32_t davit_helper_probe(DavitPluginFile *file, DavitReport *report)
{
    if (strcmp(text_of(file->probe, "outcome"), "ok") == 0)
        return DAVIT_OK;
    return davit_helper_probe_again(file, report);
}

/* Codes that follow from the bytes of the file: nothing but another file changes them. */
static bool is_settled(const json_t *records)
{
    static const uint32_t codes[] = {
        DAVIT_R_NO_ENTRY,          DAVIT_R_BAD_MAGIC,    DAVIT_R_BAD_SIZE,
        DAVIT_R_MANIFEST_MISMATCH, DAVIT_R_KIND_VERSION, DAVIT_R_MISSING_FIELD,
        DAVIT_R_JSON_INVALID};
    size_t i;
    json_t *r;

    json_array_foreach(records, i, r)
    {
        const uint32_t code = davit_code_number(text_of(r, "code"));

        for (size_t k = 0; k < G_N_ELEMENTS(codes); k++) {
            if (code == codes[k] && strcmp(text_of(r, "severity"), "error") == 0)
                return true;
        }
    }
    return false;
}

static void set_state(DavitPluginFile *file, DavitState state)
{
    const GPtrArray *all = file->load->components;

    file->state = state;
    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (davit_component_usable(c))
            c->state = state;
    }
}

/* What the machine lacked last time may be there now: shown as a warning, asked again. */
static void warn_of_last(DavitPluginFile *file)
{
    g_autoptr(DavitReport) last = davit_report_new();
    const DavitRecord *r;

    copy_records(json_object_get(file->probe, "records"), last);
    r = davit_report_first_error(last, 0);
    if (r)
        davit_report_add(
            file->records,
            &(DavitFinding){.code = r->code,
                            .severity = DAVIT_WARNING,
                            .stage = r->stage,
                            .who = r->who,
                            .subject = r->subject,
                            .expected = r->expected,
                            .found = r->found,
                            .message = davit_report_text(file->records,
                                                         "at the last try: %s", r->message),
                            .hint = r->hint});
}

/* A component that its file alone decides to be refused. */
static void recall_component(const DavitPluginFile *file, const char *id, const json_t *records)
{
    const GPtrArray *all = file->load->components;

    for (size_t i = 0; is_settled(records) && i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (strcmp(c->id, id) != 0 || !davit_component_usable(c))
            continue;
        copy_records(records, c->records);
        c->state = DAVIT_STATE_REFUSED;
    }
}

static void recall_components(const DavitPluginFile *file)
{
    size_t i;
    json_t *c;

    json_array_foreach(json_object_get(file->probe, "components"), i, c)
        recall_component(file, text_of(c, "id"), json_object_get(c, "records"));
}

void davit_helper_recall(DavitPluginFile *file)
{
    DavitFileLoad *load = file->load;
    const char *outcome;

    file->probe = json_incref(
        davit_cache_get(load->registry->cache, load->real, &load->seen, "probe"));
    if (file->state != DAVIT_STATE_OK || !file->probe)
        return;
    outcome = text_of(file->probe, "outcome");
    if (is_quarantine(file->probe)) {
        report_quarantine(file, file->probe, file->records);
        set_state(file, DAVIT_STATE_QUARANTINED);
    } else if (strcmp(outcome, "ok") == 0) {
        recall_components(file);
    } else if (strcmp(outcome, "refused") == 0 &&
               is_settled(json_object_get(file->probe, "records"))) {
        copy_records(json_object_get(file->probe, "records"), file->records);
        set_state(file, DAVIT_STATE_REFUSED);
    } else if (strcmp(outcome, "refused") == 0) {
        warn_of_last(file);
    }
}
