/* SPDX-License-Identifier: Apache-2.0
 * Threads of a load. They take pieces from one counter, so that reads go forward through the
 * files; the calling thread is the first lane and shows progress. */
#include "exec/lanes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "exec/arena.h"
#include "exec/lane.h"

#define PROGRESS_BYTES (8ull << 20)

typedef struct Run {
    const DavitLanesJob *job;
    _Atomic uint64_t next;       /* piece */
    _Atomic uint64_t done_bytes; /* read */
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows and the device; a GMutex is one that the
                           * thread sanitizer cannot see */
    DavitReport *report;
    DavitLoadStats *stats;
    int32_t status;
    uint64_t shown_bytes; /* first lane only */
} Run;

typedef struct Worker {
    Run *run;
    DavitLane lane;
    bool first;
    pthread_t thread;
    bool started;
} Worker;

/* Lanes find the same at once: a file that was cut. */
static bool is_told(const DavitReport *report, const DavitRecord *r)
{
    for (size_t i = 0; r && i < davit_report_count(report); i++) {
        const DavitRecord *told = davit_report_get(report, i);
        if (told->severity == DAVIT_ERROR && told->code == r->code &&
            g_strcmp0(told->subject, r->subject) == 0)
            return true;
    }
    return false;
}

static void fail(Run *run, int32_t status, const DavitReport *said)
{
    pthread_mutex_lock(&run->lock);
    const bool again = run->status != DAVIT_OK && is_told(run->report, davit_report_first_error(said, 0));
    if (run->status == DAVIT_OK)
        run->status = status;
    if (!again)
        davit_report_append(run->report, said);
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stop, true);
}

/* A device takes copies from the lane; the lock makes uploads one at a time. */
static int32_t upload(void *ctx, const DavitItem *item, uint64_t off, const uint8_t *bytes,
                      uint64_t n_bytes)
{
    Run *run = ctx;
    const DavitLanesJob *job = run->job;
    const size_t index = (size_t)(item->slot - job->plan->slots);
    uint8_t *base = g_array_index(job->places, DavitSlotPlace, index).base;
    const DavitExecDevice *device = &job->devices[item->slot->device];
    const DavitDoing doing = {"load", item->source->module->name};
    pthread_mutex_lock(&run->lock);
    int32_t status = davit_exec_upload(device, base + off, bytes, n_bytes, &doing, run->report);
    if (!status)
        status = davit_exec_wait(device, &doing, run->report);
    pthread_mutex_unlock(&run->lock);
    return status;
}

/* @done_bytes to the one who asked; false from there ends the load. */
static void tell_progress(Run *run, uint64_t done_bytes)
{
    const DavitLoadOptions *options = run->job->options;
    run->shown_bytes = done_bytes;
    if (options->progress(options->ctx, done_bytes, run->job->plan->read_bytes))
        return;
    g_autoptr(DavitReport) said = davit_report_new();
    fail(run,
         davit_report_add(said, &(DavitFinding){.code = DAVIT_R_CANCELLED,
                                                .status = DAVIT_E_IO,
                                                .stage = "load",
                                                .subject = "weights",
                                                .message = "loading was cancelled"}),
         said);
}

static void show_progress(Run *run)
{
    const uint64_t done = atomic_load(&run->done_bytes);
    if (run->job->options->progress && done >= run->shown_bytes + PROGRESS_BYTES)
        tell_progress(run, done);
}

static void make_piece(Worker *worker, const DavitItem *item)
{
    Run *run = worker->run;
    const DavitLanesJob *job = run->job;
    DavitLane *lane = &worker->lane;
    const size_t index = (size_t)(item->slot - job->plan->slots);
    const uint64_t before = lane->stats.read_bytes;
    g_autoptr(DavitReport) said = davit_report_new();
    lane->report = said;
    lane->base = item->slot->device != DAVIT_ON_HOST
                     ? NULL
                     : g_array_index(job->places, DavitSlotPlace, index).base;
    const int32_t status = davit_lane_make(lane, item);
    if (status)
        fail(run, status, said);
    atomic_fetch_add(&run->done_bytes, lane->stats.read_bytes - before);
}

static void add_stats(Run *run, const DavitLoadStats *mine)
{
    DavitLoadStats *s = run->stats;
    pthread_mutex_lock(&run->lock);
    s->read_bytes += mine->read_bytes;
    s->direct_bytes += mine->direct_bytes;
    s->beside_bytes += mine->beside_bytes;
    s->n_reads += mine->n_reads;
    s->copied_bytes += mine->copied_bytes;
    s->packed_bytes += mine->packed_bytes;
    s->decoded_bytes += mine->decoded_bytes;
    s->uploaded_bytes += mine->uploaded_bytes;
    s->read_seconds += mine->read_seconds;
    s->make_seconds += mine->make_seconds;
    s->upload_seconds += mine->upload_seconds;
    pthread_mutex_unlock(&run->lock);
}

static void *work(void *data)
{
    Worker *worker = data;
    Run *run = worker->run;
    const GArray *items = run->job->items;
    const int64_t start = g_get_monotonic_time();
    uint64_t i;
    while (!atomic_load(&run->stop) && (i = atomic_fetch_add(&run->next, 1)) < items->len) {
        make_piece(worker, &g_array_index(items, DavitItem, i));
        if (worker->first)
            show_progress(run);
    }
    worker->lane.stats.make_seconds =
        (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC -
        worker->lane.stats.read_seconds;
    add_stats(run, &worker->lane.stats);
    return NULL;
}

/* A thread that cannot be started is one less: the others do its work. */
static void start(Worker *worker)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, DAVIT_LANE_STACK);
    worker->started = pthread_create(&worker->thread, &attr, work, worker) == 0;
    pthread_attr_destroy(&attr);
}

static int by_file(const void *a, const void *b)
{
    const DavitItem *x = a, *y = b;
    return x->file_key < y->file_key ? -1 : x->file_key > y->file_key;
}

static void run_workers(Run *run, const DavitArena *window, unsigned n)
{
    const DavitPlan *plan = run->job->plan;
    g_autofree Worker *workers = g_new0(Worker, n);
    for (unsigned k = 0; k < n; k++) {
        workers[k] = (Worker){.run = run,
                              .first = k == 0,
                              .lane = {.plan = plan,
                                       .reader = run->job->reader,
                                       .mem = window->base ? window->base + k * plan->lane_bytes
                                                           : NULL,
                                       .n_bytes = plan->lane_bytes,
                                       .upload = upload,
                                       .ctx = run}};
        if (k > 0)
            start(&workers[k]);
    }
    work(&workers[0]);
    for (unsigned k = 1; k < n; k++)
        if (workers[k].started)
            pthread_join(workers[k].thread, NULL);
}

int32_t davit_lanes_run(const DavitLanesJob *job, DavitLoadStats *stats, DavitReport *report)
{
    const DavitPlan *plan = job->plan;
    const unsigned n = (unsigned)MIN(plan->n_lanes, job->items->len);
    DavitArena window;
    if (n == 0)
        return DAVIT_OK;
    const int32_t status =
        davit_arena_init(&window, plan->window_bytes, true, "the load window", report);
    if (status)
        return status;
    g_array_sort(job->items, by_file);
    Run run = {.job = job, .report = report, .stats = stats};
    pthread_mutex_init(&run.lock, NULL);
    stats->window_bytes = plan->window_bytes;
    stats->n_lanes = n;
    stats->n_pieces = job->items->len;
    run_workers(&run, &window, n);
    /* the first lane may have found no piece left: the end is told, and can be refused, always */
    if (run.status == DAVIT_OK && job->options->progress)
        tell_progress(&run, plan->read_bytes);
    pthread_mutex_destroy(&run.lock);
    davit_arena_clear(&window);
    return run.status;
}
