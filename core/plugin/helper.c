/* SPDX-License-Identifier: Apache-2.0
 * Gate 5, the parent's side: run the helper, judge how it ended, remember it. */
#include "plugin/helper.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/helper_memory.h"
#include "plugin/helper_spawn.h"

#define HELPER_NAME "davit-probe"

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
    const bool again = strcmp(davit_probe_text(before, "outcome"), outcome) == 0;
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
    if (strcmp(davit_probe_text(probe, "outcome"), "killed") == 0)
        return;
    davit_cache_put(cache, file->load->real, &file->load->seen, "probe",
                    json_incref(probe));
    if (davit_probe_is_quarantine(probe)) /* now: the next crash may be our own */
        davit_cache_flush(cache);
}

/* What @probe means for the file, as records. */
static int32_t answer(const DavitPluginFile *file, const json_t *probe,
                      DavitReport *report)
{
    const char *outcome = davit_probe_text(probe, "outcome");

    if (strcmp(outcome, "ok") == 0)
        return DAVIT_OK;
    if (strcmp(outcome, "refused") == 0) {
        const int32_t status =
            (int32_t)json_integer_value(json_object_get(probe, "status"));

        davit_probe_records(json_object_get(probe, "records"), report);
        return status < 0 ? status : DAVIT_E_UNSUPPORTED;
    }
    return davit_probe_report(file, probe, report);
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
    if (strcmp(davit_probe_text(probe, "outcome"), "ok") == 0)
        davit_probe_records(json_object_get(probe, "records"), report);
    *out_skipped = json_is_true(json_object_get(doc, "skipped"));
    json_decref(probe);
    json_decref(doc);
    davit_helper_run_clear(&run);
}

int32_t davit_helper_probe(DavitPluginFile *file, DavitReport *report)
{
    if (strcmp(davit_probe_text(file->probe, "outcome"), "ok") == 0)
        return DAVIT_OK;
    return davit_helper_probe_again(file, report);
}
