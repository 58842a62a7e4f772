/* SPDX-License-Identifier: Apache-2.0
 * davit dump: one stored tensor or module weight as float32, or its stored bytes. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/repair.h"
#include "plan/plan.h"

static const DavitFlag flags[] = {
    {"out", 'o', DAVIT_FLAG_TEXT, "FILE", "write here instead of stdout", NULL, NULL, false},
    {"raw", 0, DAVIT_FLAG_SWITCH, NULL, "the stored bytes as they lie", NULL, NULL, false},
    DAVIT_QUANT_FLAGS,
    {0},
};
static const char *const examples[] = {
    "davit dump model/ model.norm.weight --out norm.npy", "one tensor, dequantised to float32",
    "davit dump model.gguf blk.0.attn_q --out q.npy", "a module's weight by its name",
    "davit dump model/ lm_head.weight --raw --out head.bin", "stored bytes", NULL};

#define BLOCK_BYTES (16u << 20) /* float32 decoded at a time */

static int32_t not_found(const char *name, DavitReport *report)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                            .status = DAVIT_E_USAGE,
                                            .stage = "dump",
                                            .subject = name,
                                            .found = "absent",
                                            .message = "the model has no such tensor or module",
                                            .hint = "davit inspect lists the names"});
}

static int32_t dump_raw(const DavitCheckpoint *c, const davit_tensor_info *t, FILE *file,
                        DavitReport *report)
{
    for (uint64_t at = 0; at < t->n_bytes;) {
        const uint8_t *bytes;
        const uint64_t n = MIN(t->n_bytes - at, (uint64_t)BLOCK_BYTES);
        const int32_t status = davit_checkpoint_view(c, t->file, t->off + at, n, &bytes, report);
        if (status)
            return status;
        if (fwrite(bytes, 1, n, file) != n)
            return DAVIT_OK; /* closing the file tells */
        at += n;
    }
    return DAVIT_OK;
}

/* The module that tensor or module @name belongs to. */
static const DavitModule *find_module(const DavitModules *modules, const DavitCheckpoint *c,
                                      const char *name)
{
    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];
        if (strcmp(m->name, name) == 0)
            return m;
        for (size_t p = 0; p < m->n_parts; p++)
            if (strcmp(davit_checkpoint_tensor(c, m->tensor[p])->name, name) == 0)
                return m;
    }
    return NULL;
}

static int32_t dump_module(const DavitCheckpoint *c, const DavitModule *m, FILE *file,
                           DavitReport *report)
{
    const davit_quant_desc *d = m->desc;
    const davit_tensor_info *t = davit_checkpoint_tensor(c, m->tensor[d->parts[0].index]);
    uint64_t shape[3] = {d->n_experts, d->n_rows, d->n_cols};
    const uint32_t rank = d->n_experts > 1 ? 3 : t->rank == 1 ? 1 : t->rank == 0 ? 0 : 2;
    const uint64_t *first = rank == 3 ? shape : shape + 1;
    const uint64_t step = MAX(BLOCK_BYTES / sizeof(float) / MAX(d->n_cols, 1), 1);
    g_autofree float *block = g_try_malloc_n(MIN(step, d->n_rows) * d->n_cols, sizeof(float));
    if (!block)
        return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                        .status = DAVIT_E_LIMIT,
                                                        .stage = "dump",
                                                        .subject = m->name,
                                                        .message = "memory for a block of rows could not be had"});
    if (!davit_npy_header(file, first, rank))
        return DAVIT_OK;
    for (uint64_t e = 0; e < d->n_experts; e++)
        for (uint64_t row = 0; row < d->n_rows; row += step) {
            const uint64_t n = MIN(step, d->n_rows - row);
            const int32_t status = davit_module_decode(m, c, e, row, n, block, report);
            if (status)
                return status;
            if (fwrite(block, sizeof(float), n * d->n_cols, file) != n * d->n_cols)
                return DAVIT_OK;
        }
    return DAVIT_OK;
}

static int32_t undecodable(const DavitModule *m, DavitReport *report)
{
    return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_QUANT_UNKNOWN,
                                                    .status = DAVIT_E_UNSUPPORTED,
                                                    .stage = "dump",
                                                    .subject = m->name,
                                                    .message = "no quant plugin decodes this module",
                                                    .hint = "--raw writes the stored bytes"});
}

static int32_t dump(DavitCall *call, DavitRegistry *registry, const DavitCheckpoint *c, FILE *file)
{
    const char *name = call->args[1];
    const davit_tensor_info *t = davit_checkpoint_find(c, name);
    if (davit_call_has(call, "raw"))
        return t ? dump_raw(c, t, file, call->report) : not_found(name, call->report);
    g_autoptr(DavitReport) aside = davit_report_new(); /* other modules' findings */
    /* a quantised module may need the configuration; without one it says so itself */
    g_autoptr(DavitReport) unread = davit_report_new();
    g_autoptr(DavitSettings) settings = davit_settings_open(c, unread);
    g_autoptr(DavitModules) modules =
        davit_modules_find(registry, c, settings, davit_call_quant_allow(call), aside);
    const DavitModule *m = find_module(modules, c, name);
    if (!m)
        return not_found(name, call->report);
    if (m->quant)
        return dump_module(c, m, file, call->report);
    for (size_t i = 0; i < davit_report_count(aside); i++) {
        const DavitRecord *r = davit_report_get(aside, i);
        if (r->subject && g_str_has_prefix(r->subject, m->name)) {
            davit_report_append(call->report, aside);
            break;
        }
    }
    return undecodable(m, call->report);
}

/* Is @path one of the files that are being read? */
static bool is_own_file(const DavitCheckpoint *c, const char *path)
{
    struct stat out, in;
    if (!path || stat(path, &out) != 0)
        return false;
    for (size_t i = 0; i < davit_checkpoint_n_files(c); i++) {
        const char *own = davit_source_path(davit_checkpoint_file(c, i).source);
        if (stat(own, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return true;
    }
    return false;
}

static int run(DavitCall *call)
{
    const char *path = davit_call_text(call, "out");
    if (path && strcmp(path, "-") == 0)
        path = NULL;
    if (!path && isatty(STDOUT_FILENO))
        return davit_call_usage(call, "--out", "binary output would go to the terminal",
                                "give --out FILE");
    if (!path && call->json)
        return davit_call_usage(call, "--out", "--json needs stdout for its document",
                                "give --out FILE");
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(registry, call->args[0], DAVIT_INSPECT, call->report);
    if (!c)
        return davit_call_exit(call);
    if (is_own_file(c, path))
        return davit_call_usage(call, path, "the output would overwrite the model", NULL);
    DavitOut out;
    if (davit_outfile_open(&out, path, call->report))
        return davit_call_exit(call);
    int32_t status = dump(call, registry, c, out.file);
    if (!status) /* a page that was lost meanwhile has read as zeros */
        status = davit_checkpoint_check(c, call->report);
    davit_outfile_close(&out, status == DAVIT_OK, call->report);
    json_object_set_new(call->doc, "name", davit_json_text(call->args[1]));
    return davit_call_exit(call);
}

const DavitCommand davit_command_dump = {
    .name = "dump",
    .args = "MODEL NAME",
    .min_args = 2,
    .max_args = 2,
    .summary = "write one tensor or module weight as a .npy file of float32",
    .flags = flags,
    .examples = examples,
    .run = run,
};
