/* SPDX-License-Identifier: Apache-2.0
 * Loading a model for a command: flags to parameters, progress bar, Ctrl-C. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/repair.h"
#include "cli/run.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    if (interrupted)
        _exit(DAVIT_EXIT_INTERRUPT); /* the second one does not wait for a step */
    interrupted = 1;
}

void davit_catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool davit_interrupted(void)
{
    return interrupted != 0;
}

void davit_interrupt_clear(void)
{
    interrupted = 0;
}

void davit_call_take_records(DavitCall *call, davit_records *records)
{
    for (size_t i = 0; i < davit_records_count(records); i++) {
        davit_record r = {.struct_size = sizeof r};
        davit_records_get(records, i, &r);
        const bool error = strcmp(r.severity, "error") == 0;
        davit_report_add(call->report,
                         &(DavitFinding){.code = davit_code_number(r.code),
                                         .severity = strcmp(r.severity, "warning") == 0
                                                         ? DAVIT_WARNING
                                                         : DAVIT_NOTE,
                                         .status = error ? r.status : DAVIT_OK,
                                         .stage = r.stage,
                                         .who = r.who,
                                         .subject = r.subject,
                                         .expected = r.expected,
                                         .found = r.found,
                                         .message = r.message,
                                         .hint = r.hint});
    }
    davit_records_free(records);
}

typedef struct Bar {
    int64_t start;
    bool shown;
} Bar;

static int show_progress(void *ctx, uint64_t done, uint64_t total)
{
    Bar *bar = ctx;
    const double seconds = (double)(g_get_monotonic_time() - bar->start) / G_USEC_PER_SEC;
    g_autofree char *all = davit_bytes_text(total);
    fprintf(stderr, "\rloading %3.0f %% of %s, %.2f GB/s ", 100.0 * (double)done / (double)total,
            all, seconds > 0 ? (double)done / seconds / 1e9 : 0.0);
    bar->shown = true;
    return !davit_interrupted();
}

int davit_call_load(DavitCall *call, const char *model, unsigned no_tokenizer,
                    davit_model **out_model, DavitRanks **out_ranks)
{
    g_autofree const char **paths = davit_call_list(call, "plugin-path");
    g_autofree const char **trusted = davit_call_list(call, "trust-dir");
    g_autofree const char **ignore = davit_call_list(call, "ignore");
    g_autoptr(GArray) budgets = davit_call_memories(call);
    const char *window = davit_call_text(call, "window");
    uint64_t window_bytes = 0;
    Bar bar = {.start = g_get_monotonic_time()};
    if (davit_call_check_loading(call))
        return DAVIT_E_USAGE;
    if (window)
        davit_parse_bytes(window, &window_bytes);
    const bool terminal = isatty(STDERR_FILENO) && !call->quiet;
    davit_model_params params = {
        .struct_size = sizeof params,
        .model = model,
        .plugin_paths = paths,
        .device = davit_call_device(call),
        .kv_dtype = davit_call_text(call, "kv-dtype"),
        .activations = davit_call_choice(call, "activations", davit_activation_names),
        .layout = davit_call_choice(call, "layout", davit_layout_names),
        .n_threads = (uint32_t)MIN(davit_call_count(call, "threads"), 1024),
        .block_tokens = (uint32_t)MIN(davit_call_count(call, "block-tokens"), 1u << 20),
        .tie = davit_call_has(call, "tie") ? 1 : davit_call_has(call, "no-tie") ? 2 : 0,
        .no_tokenizer = no_tokenizer,
        .ignore = ignore,
        .progress = terminal ? show_progress : NULL,
        .progress_ctx = &bar,
        .trust_dirs = trusted,
        .allow_draft = davit_call_has(call, "allow-draft"),
        .rename = davit_call_text(call, "rename"),
        .strip_prefix = davit_call_text(call, "strip-prefix"),
        .dtype = davit_call_choice(call, "dtype", davit_dtype_names),
        .access = davit_call_choice(call, "access", davit_access_names),
        .page_cache = davit_call_choice(call, "page-cache", davit_cache_names),
        .window_bytes = window_bytes,
        .memory_bytes = davit_call_memory(call),
        .n_io_threads = (uint32_t)davit_call_count(call, "io-threads"),
        .quant_allow = davit_call_quant_allow(call),
        .device_map = davit_call_text(call, "device-map"),
        .budgets = (const davit_device_budget *)(const void *)budgets->data,
        .n_budgets = budgets->len,
        .ctx = davit_call_count(call, "ctx"),
        .chunk = (uint32_t)MIN(davit_call_count(call, "chunk"), 65536)};
    davit_records *records = NULL;
    *out_ranks = davit_ranks_new(call, &params);
    const int status = davit_model_load(&params, out_model, &records);
    if (bar.shown)
        fprintf(stderr, "\r%60s\r", "");
    davit_call_take_records(call, records);
    return status;
}

int davit_call_follow(DavitCall *call, davit_model *model)
{
    const davit_engine_params params = {
        .struct_size = sizeof params,
        .n_threads = (uint32_t)MIN(davit_call_count(call, "threads"), 1024),
        .chunk = (uint32_t)MIN(davit_call_count(call, "chunk"), 65536)};
    davit_engine *engine = NULL;
    davit_records *records = NULL;
    int status = davit_engine_new(model, &params, &engine, &records);
    davit_call_take_records(call, records);
    if (!status) {
        status = davit_engine_follow(engine, &records);
        davit_call_take_records(call, records);
    }
    davit_engine_free(engine);
    return davit_call_exit(call);
}

/* Whole texts are kept in memory, and what has no end, such as a device, would take all of it. */
#define MAX_TEXT (1ull << 30)

static bool read_all(FILE *file, GString *out)
{
    char buffer[65536];

    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        if (out->len + n > MAX_TEXT)
            return false;
        g_string_append_len(out, buffer, (gssize)n);
    }
    return true;
}

char *davit_call_read_file(DavitCall *call, const char *path, size_t *out_len)
{
    const bool piped = strcmp(path, "-") == 0;
    g_autoptr(GString) all = g_string_new(NULL);
    FILE *file = piped ? stdin : fopen(path, "rb");
    bool fits = true, failed = !file;
    int number = errno;

    if (file) {
        fits = read_all(file, all);
        failed = ferror(file) != 0;
        number = errno;
    }
    if (file && !piped)
        fclose(file);
    if (failed) {
        davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                       .status = DAVIT_E_IO,
                                                       .stage = "options",
                                                       .subject = path,
                                                       .found = g_strerror(number),
                                                       .message = "the file could not be read"});
        return NULL;
    }
    if (!fits) {
        davit_report_add(call->report,
                         &(DavitFinding){.code = DAVIT_R_USAGE,
                                         .status = DAVIT_E_LIMIT,
                                         .stage = "options",
                                         .subject = piped ? "standard input" : path,
                                         .expected = "at most 1073741824 bytes",
                                         .found = "more",
                                         .message = "the file is too long for one call",
                                         .hint = "give it in parts"});
        return NULL;
    }
    *out_len = all->len;
    return g_string_free(g_steal_pointer(&all), FALSE);
}
