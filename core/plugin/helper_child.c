/* SPDX-License-Identifier: Apache-2.0
 * The child's side of the probe helper: the ordinary gates, each step announced. */
#include <string.h>
#include <unistd.h>

#include "plugin/helper.h"
#include "plugin/load.h"
#include "plugin/running.h"

#define N_STEPS 16 /* kinds of steps that are timed */

static struct {
    int fd;
    int64_t start; /* of the last step */
    const char *what;
    struct {
        const char *what;
        double t_ms;
    } steps[N_STEPS];
    size_t n_steps;
    bool is_test; /* its steps are many and not timed */
} child;

/* One write a line: what stands on the pipe after a crash is whole lines. */
static void say_line(const char *text)
{
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    const char *at = line;
    size_t left = strlen(line);

    while (left > 0) {
        const ssize_t n = write(child.fd, at, left);

        if (n <= 0)
            return;
        at += n;
        left -= (size_t)n;
    }
}

static void end_step(void)
{
    const int64_t now = g_get_monotonic_time();
    size_t i = 0;

    if (!child.what)
        return;
    while (i < child.n_steps && strcmp(child.steps[i].what, child.what) != 0)
        i++;
    if (i < N_STEPS) {
        child.steps[i].what = child.what;
        child.steps[i].t_ms += (double)(now - child.start) / 1000.0;
        child.n_steps = MAX(child.n_steps, i + 1);
    }
    child.what = NULL;
    child.start = now;
}

static void on_step(const char *who, const char *what)
{
    g_autofree char *line = NULL;

    if (!what)
        return;
    end_step();
    line = g_strdup_printf("=%s %s", what, who ? who : "");
    g_strdelimit(line, "\n", ' ');
    say_line(line);
    if (!child.is_test)
        child.what = what;
    child.start = g_get_monotonic_time();
}

/* ---- using the components ---- */

/* Heads that no format may fall over: nothing, zeros, noise. */
static void probe_blandly(DavitComponent *c)
{
    const DavitProbeFn probe = davit_component_probe(c);
    g_autofree uint8_t *head = g_malloc0(4096);
    uint32_t seed = 1;

    if (!probe)
        return;
    for (int round = 0; round < 3; round++) {
        g_autoptr(DavitReport) ignored = davit_report_new();
        davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
        const davit_probe_in in = {.struct_size = sizeof in,
                                   .purposes = DAVIT_INSPECT,
                                   .name = "model.bin",
                                   .head = head,
                                   .head_len = round ? 4096 : 0,
                                   .file_size = round ? 4096 : 0};
        DavitSink sink;

        davit_sink_init(&sink, ignored, c->id, "probe");
        davit_running_set(c->id, "probe");
        probe(&in, &verdict, &sink.abi);
        for (size_t i = 0; i < 4096; i++) {
            seed = seed * 1664525u + 1013904223u;
            head[i] = (uint8_t)(seed >> 24);
        }
    }
}

/* Devices are left alone: a set of kernels for one is created when it is used. */
static bool touches_device(DavitComponent *c)
{
    const davit_kernels_iface *kernels = c->load->iface;

    return c->kind == DAVIT_KIND_ID_KERNELS && kernels && kernels->device &&
           strcmp(kernels->device, "cpu") != 0;
}

static void use_components(DavitPluginFile *file)
{
    const GPtrArray *all = file->load->components;

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (!davit_component_usable(c) || touches_device(c))
            continue;
        if (davit_load_component(c) == DAVIT_OK)
            probe_blandly(c);
    }
}

/* ---- the report ---- */

static json_t *records_after(const DavitReport *report, size_t first)
{
    json_t *list = json_array();

    for (size_t i = first; i < davit_report_count(report); i++)
        json_array_append_new(list, davit_record_json(davit_report_get(report, i)));
    return list;
}

/* (owned) [{"id","records"}] of components that a gate refused after the file was loaded. */
static json_t *refused_components(const DavitPluginFile *file)
{
    const GPtrArray *all = file->load->components;
    json_t *list = json_array();

    for (size_t i = 0; i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);

        if (c->state == DAVIT_STATE_REFUSED && davit_report_failed(c->records))
            json_array_append_new(list, json_pack("{s:s, s:o}", "id", c->id, "records",
                                                  records_after(c->records, 0)));
    }
    return list;
}

/* @components is given to the document. */
static void say_report(int32_t status, const DavitReport *records, size_t first,
                       json_t *components, bool skipped)
{
    json_t *ms = json_object();
    json_t *doc;
    char *text;

    for (size_t i = 0; i < child.n_steps; i++)
        json_object_set_new(ms, child.steps[i].what, json_real(child.steps[i].t_ms));
    doc = json_pack("{s:i, s:o, s:o, s:o, s:b}", "status", (int)status, "records",
                    records_after(records, first), "components", components, "ms", ms,
                    "skipped", (int)skipped);
    text = json_dumps(doc, JSON_COMPACT);
    if (text)
        say_line(text);
    free(text);
    json_decref(doc);
}

/* Returns: the status that the test ends with. */
static int32_t run_test(DavitHelperTestFn test, const char *const *words,
                        DavitPluginFile *file, DavitReport *kept, bool *out_skipped)
{
    g_autoptr(DavitReport) said = davit_report_new();

    child.is_test = true;
    test(words, file, said, out_skipped);
    davit_report_append(kept, said);
    return davit_report_failed(said) ? DAVIT_E_UNSUPPORTED : DAVIT_OK;
}

int davit_helper_serve(int fd, const char *path, bool is_builtin, const char *const *words,
                       DavitHelperTestFn test)
{
    DavitRegistry *registry = davit_registry_single(path, is_builtin);
    DavitPluginFile *file = g_ptr_array_index(davit_registry_files(registry), 0);
    g_autoptr(DavitReport) kept = davit_report_new();
    size_t first = davit_report_count(file->records);
    int32_t status = DAVIT_E_UNSUPPORTED;
    bool skipped = false;
    json_t *components;

    child.fd = fd;
    davit_running_watch(on_step);
    if (file->state == DAVIT_STATE_OK)
        status = davit_load_file(file);
    else
        first = 0; /* it changed since the parent looked: all of them */
    if (status == DAVIT_OK && words) {
        first = 0; /* what loading warned of is the business of one test alone */
        status = run_test(test, words, file, kept, &skipped);
    } else {
        if (status == DAVIT_OK)
            use_components(file);
        davit_report_append(kept, file->records);
    }
    components = refused_components(file);
    davit_registry_free(registry); /* destroys and quiesces, which may crash too */
    end_step();
    say_report(status, kept, first, components, skipped);
    return 0;
}
