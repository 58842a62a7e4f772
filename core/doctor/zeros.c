/* SPDX-License-Identifier: Apache-2.0
 * D02: a file whose end is zeros from the middle of a tensor on: its room was reserved, and the
 * download stopped. Costs one read of TAIL bytes a file where the end is none; without --deep
 * the beginning of the zeros is looked for in LOOK bytes at most, holes of the file not counted. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor_private.h"
#include "source/source.h"

#define TAIL 4096u
#define STEP (1u << 20)
#define LOOK (256u << 20)

/* Zeros from @from to @to. */
typedef struct Run {
    uint32_t file;
    uint64_t from, to;
    bool whole; /* false: they may begin before */
} Run;

/* Index behind the last byte of @bytes[0..n) that is not 0; 0 = all are. */
static size_t end_of_data(const uint8_t *bytes, size_t n)
{
    while (n > 0 && bytes[n - 1] == 0)
        n--;
    return n;
}

/* (owned) of each file where its last tensor ends; 0 = it has none. */
static uint64_t *ends_of_tensors(const DavitCheckpoint *c)
{
    uint64_t *ends = g_new0(uint64_t, davit_checkpoint_n_files(c) + 1);

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        ends[t->file] = MAX(ends[t->file], t->off + t->n_bytes);
    }
    return ends;
}

/* Where the blocks of the file end that lie on disk, if it has none from there to @end; else @end.
 * What has no blocks is zeros that need not be read: 200 shards of them are gigabytes. */
static uint64_t end_of_blocks(const DavitCheckpoint *c, uint32_t file, uint64_t end)
{
    const int fd = davit_source_fd(davit_checkpoint_file(c, file).source);
    const off_t hole = fd < 0 ? -1 : lseek(fd, 0, SEEK_HOLE);
    off_t data;

    if (hole < 0 || (uint64_t)hole >= end)
        return end;
    data = lseek(fd, hole, SEEK_DATA);
    return data < 0 ? (errno == ENXIO ? (uint64_t)hole : end)
                    : (uint64_t)data >= end ? (uint64_t)hole : end;
}

/* False: no zeros of TAIL bytes before @end, or unreadable, which others say. */
static bool zeros_of(const DavitDoctor *d, uint32_t file, uint64_t end, Run *run)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const uint64_t look = d->options->deep ? end : MIN(end, LOOK);
    uint64_t blocks;
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autofree uint8_t *bytes = NULL;
    uint8_t tail[TAIL];

    if (end < TAIL || davit_checkpoint_read(c, file, end - TAIL, tail, TAIL, aside) ||
        end_of_data(tail, TAIL) > 0)
        return false;
    blocks = end_of_blocks(c, file, end);
    *run = (Run){.file = file, .from = blocks, .to = end, .whole = blocks == 0};
    bytes = g_malloc(STEP);
    while (blocks - run->from < look && run->from > 0) {
        const uint64_t n = MIN(STEP, run->from);
        size_t keep;

        if (davit_checkpoint_read(c, file, run->from - n, bytes, n, aside))
            return false;
        keep = end_of_data(bytes, (size_t)n);
        run->from -= n - keep;
        run->whole = keep > 0 || run->from == 0;
        if (run->whole)
            return true;
    }
    return true;
}

static bool in_run(const davit_tensor_info *t, const Run *run)
{
    return t->file == run->file && t->n_bytes > 0 && t->off + t->n_bytes > run->from;
}

/* The tensor that is cut: it has TAIL zeros at its end and data before them, so it is no part
 * that was never trained. */
static const davit_tensor_info *cut_tensor(const DavitCheckpoint *c, const Run *run)
{
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        if (in_run(t, run) && t->off < run->from)
            return t->off + t->n_bytes - run->from >= TAIL ? t : NULL;
    }
    return NULL;
}

/* A warning of D16 about zeros, of a tensor (or the module of one) within the run. */
typedef struct Scope {
    const DavitCheckpoint *c;
    const Run *run;
} Scope;

static bool is_told(const DavitRecord *r, const void *ctx)
{
    const Scope *s = ctx;
    const davit_tensor_info *t;
    g_autofree char *weight = g_strconcat(r->subject ? r->subject : "", ".weight", NULL);

    if (r->code != DAVIT_CODE_DOCTOR(16) || r->severity != DAVIT_WARNING || !r->subject)
        return false;
    t = davit_checkpoint_find(s->c, r->subject);
    t = t ? t : davit_checkpoint_find(s->c, weight);
    return t && in_run(t, s->run);
}

static void say_cut(DavitDoctor *d, const Run *run, const davit_tensor_info *cut)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const DavitSource *source = davit_checkpoint_file(c, run->file).source;
    g_autofree char *name = g_path_get_basename(davit_source_path(source));
    size_t n = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++)
        n += in_run(davit_checkpoint_tensor(c, i), run);
    davit_doctor_say(
        d, "D02",
        &(DavitFinding){
            .status = DAVIT_E_CORRUPT,
            .severity = DAVIT_ERROR,
            .subject = davit_doctor_text(d, "%s", name),
            .expected = "values of every tensor",
            .found = davit_doctor_text(d, "zeros from byte %" PRIu64 " to %" PRIu64
                                          ", where the tensors end: from the middle of %s on, "
                                          "%zu tensors", run->from, run->to, cut->name, n),
            .message = "the file has its whole size and no data in its last part: room was "
                       "reserved for it, and the download or copy stopped",
            .hint = "download the file again, and compare its hash"});
    davit_doctor_drop(d, "D16", is_told, &(Scope){c, run});
}

void davit_check_zeros(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    g_autofree uint64_t *ends = c ? ends_of_tensors(c) : NULL;

    for (uint32_t f = 0; c && f < davit_checkpoint_n_files(c) && !d->stopped; f++) {
        const davit_tensor_info *cut;
        Run run;

        if (!zeros_of(d, f, ends[f], &run) || !run.whole)
            continue;
        cut = cut_tensor(c, &run);
        if (cut)
            say_cut(d, &run, cut);
    }
}
