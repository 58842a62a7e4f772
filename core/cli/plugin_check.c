/* SPDX-License-Identifier: Apache-2.0
 * davit plugin check: the conformance suite on one file, each test in a process of its own. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/plugin_show.h"
#include "plugin/check.h"

static const DavitFlag flags[] = {
    {"allow-draft", 0, DAVIT_FLAG_SWITCH, NULL, "take components of draft kinds", NULL, NULL,
     false},
    {"sample", 0, DAVIT_FLAG_LIST, "FILE",
     "a file of the plugin's format, or a config.json of its architecture, to cut and change",
     NULL, NULL, false},
    {"seed", 0, DAVIT_FLAG_COUNT, "N", "start of the random inputs", NULL, "1", false},
    {"repeat", 0, DAVIT_FLAG_COUNT, "N", "N times as many random inputs, 1 to 1000", NULL, "1",
     false},
    {0},
};
static const char *const examples[] = {
    "davit plugin check ./my-plugin.so", "before it is given to others; exit 3 if a test fails",
    "davit plugin check org.davit.tokenizer.llama3", "a plugin that is installed", NULL};

static const char *result_word(const DavitCheckResult *r)
{
    return !r->passed ? "FAIL" : r->skipped ? "skip" : "ok";
}

static int show(DavitCall *call, const GPtrArray *results)
{
    json_t *tests = json_object_get(call->doc, "tests");
    guint failed = 0, ran = 0;
    for (guint i = 0; i < results->len; i++) {
        const DavitCheckResult *r = g_ptr_array_index(results, i);
        failed += !r->passed;
        ran += !r->skipped;
        json_array_append_new(tests, json_pack("{s:s, s:s, s:s, s:o}", "test", r->test, "rule",
                                               r->what, "result", result_word(r), "records",
                                               davit_show_records(r->records)));
        if (call->json)
            continue;
        printf("%-4s  %-17s  %s\n", result_word(r), r->test, r->what);
        davit_show_print(r->records);
    }
    if (!call->json)
        printf("%u of %u tests passed, %u had nothing to look at\n", ran - failed, ran,
               results->len - ran);
    return failed ? DAVIT_EXIT_REFUSED : DAVIT_EXIT_OK;
}

/* It did not get through the gates that run nothing: those are the answer. */
static int refused(DavitCall *call, const DavitPluginFile *f)
{
    if (!call->json) {
        printf("FAIL  gates              refused before any code of it runs\n");
        davit_show_print(f->records);
    }
    davit_report_append(call->report, f->records);
    return DAVIT_EXIT_REFUSED;
}

static int read_options(DavitCall *call, const char *const *samples, DavitCheckOptions *options)
{
    const uint64_t repeat = davit_call_count(call, "repeat");
    if (repeat < 1 || repeat > 1000)
        return davit_call_usage(call, "--repeat", "is a number from 1 to 1000", NULL);
    *options = (DavitCheckOptions){.seed = davit_call_count(call, "seed"),
                                   .repeat = (unsigned)repeat,
                                   .samples = samples};
    for (size_t i = 0; samples && samples[i]; i++)
        if (!g_file_test(samples[i], G_FILE_TEST_IS_REGULAR))
            return davit_call_usage(call, "--sample", "names no file that can be read", NULL);
    return DAVIT_EXIT_OK;
}

static int check(DavitCall *call)
{
    const char *word = call->args[0];
    DavitCheckOptions options = {0};
    g_autofree const char **samples = davit_call_list(call, "sample");
    const int wrong = read_options(call, samples, &options);
    if (wrong)
        return wrong;
    json_object_set_new(call->doc, "tests", json_array());
    g_autoptr(DavitRegistry) registry =
        davit_show_registry(call, davit_show_is_path(word) ? word : NULL);
    if (!registry)
        return davit_call_exit(call);
    DavitPluginFile *f = davit_show_find(registry, word);
    if (!f)
        return davit_show_unknown(call, word);
    json_object_set_new(call->doc, "file", davit_show_file(f, true));
    if (!f->bundle_id || (f->state == DAVIT_STATE_REFUSED && !f->probe))
        return refused(call, f);
    g_autoptr(GPtrArray) results = davit_check_file(registry, f, &options, call->report);
    return results ? show(call, results) : davit_call_exit(call);
}

const DavitCommand davit_command_plugin_check = {
    .name = "plugin check",
    .args = "FILE|ID",
    .min_args = 1,
    .max_args = 1,
    .summary = "run the conformance suite on a plugin",
    .description = "Each test runs in a process of its own: one that crashes is a test that "
                   "failed. Numbers are not tested; that is for the plugin's own tests.",
    .flags = flags,
    .examples = examples,
    .run = check,
};
