/* SPDX-License-Identifier: Apache-2.0
 * One long text on several threads. Added tokens, the normaliser and the post-processor
 * run once over the whole as ever; what they leave is listed, cut where the shape's
 * plugin (or the vocabulary) says that a scan begun afresh equals a continued one, and
 * encoded by whoever is free. Ids are joined in order, so they do not depend on the
 * number of threads.
 */
#include "tokenizer/encode.h"

#include <string.h>

#define STRETCH_BYTES 65536u  /* a part is not cut shorter */
#define TASK_BYTES    65536u  /* stretches are gathered up to this */
#define LEAST_BYTES   262144u /* shorter texts are not worth a thread */

/* ---- listing ---- */

/* A place in (@from, @n] where @text may be cut without changing an id. */
static size_t find_cut(const DavitTokenizer *t, const char *text, size_t n, size_t from)
{
    const DavitPretok *pretok = &t->pretok;
    size_t at;

    if (pretok->meta != DAVIT_META_NONE || pretok->prefix_space || from >= n)
        return n;
    if (pretok->shape.scan) {
        at = pretok->shape.cut ? (size_t)pretok->shape.cut(text, n, from) : n;
        return at > from && at < n ? at : n;
    }
    if (t->model != DAVIT_MODEL_BPE)
        return n;
    /* the first answer takes @from for the start of a piece, the second need not */
    at = davit_bpe_cut(&t->bpe, text, n, from);
    return at < n ? davit_bpe_cut(&t->bpe, text, n, at) : n;
}

void davit_encode_list(DavitEncodeJob *job, const char *text, size_t len, bool first)
{
    size_t from = 0;

    while (from < len) {
        const size_t end =
            len - from > STRETCH_BYTES
                ? find_cut(job->encoder->tokenizer, text, len, from + STRETCH_BYTES)
                : len;
        const DavitStretch stretch = {text + from, end - from, -1, first && from == 0};

        g_array_append_val(job->stretches, stretch);
        from = end;
    }
}

/* ---- doing ---- */

/* Neighbouring stretches. */
typedef struct Task {
    guint first, end; /* of the list */
    DavitIds ids;
    size_t at; /* of the first among all */
    int32_t status;
} Task;

/* What all threads share. */
typedef struct Crew {
    const DavitEncodeJob *job; /* flags, the list */
    GArray *tasks;             /* Task */
    int32_t *out;              /* where copy() puts the ids */
    guint next;                /* atomic */
} Crew;

typedef struct Worker {
    Crew *crew;
    DavitEncoder *encoder;
    GThread *thread;
} Worker;

void davit_encoder_watch(DavitEncoder *encoder, DavitEncodeWatch *watch)
{
    encoder->watch = watch;
}

static void run_task(const DavitEncodeJob *job, DavitEncoder *encoder, Task *task)
{
    DavitEncodeWatch *watch = job->encoder->watch;
    DavitIds ids = {0}; /* the task's lie in one line with those of a neighbour's thread */
    DavitEncodeJob own = {
        .encoder = encoder, .out = &ids, .safe = job->safe, .wide = job->wide,
        .locked = job->locked};

    for (guint i = task->first; i < task->end && task->status == DAVIT_OK; i++) {
        const DavitStretch *s = &g_array_index(job->stretches, DavitStretch, i);

        if (s->added < 0)
            task->status = davit_encode_part(&own, s->text, s->len, s->first);
        else if (davit_ids_reserve(&ids, 1))
            ids.ids[ids.n++] = s->added;
        else
            task->status = DAVIT_E_LIMIT;
        if (watch)
            __atomic_fetch_add(&watch->done, s->len, __ATOMIC_RELAXED);
    }
    task->ids = ids;
}

static void count_total(const DavitEncodeJob *job)
{
    uint64_t total = 0;

    for (guint i = 0; job->encoder->watch && i < job->stretches->len; i++)
        total += g_array_index(job->stretches, DavitStretch, i).len;
    if (job->encoder->watch)
        __atomic_fetch_add(&job->encoder->watch->total, total, __ATOMIC_RELAXED);
}

static void *work(void *data)
{
    Worker *worker = data;
    Crew *crew = worker->crew;
    guint i;

    while ((i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->tasks->len)
        run_task(crew->job, worker->encoder, &g_array_index(crew->tasks, Task, i));
    return NULL;
}

static GArray *gather(const GArray *stretches)
{
    GArray *tasks = g_array_new(FALSE, FALSE, sizeof(Task));
    size_t bytes = 0;

    for (guint i = 0; i < stretches->len; i++) {
        const DavitStretch *s = &g_array_index(stretches, DavitStretch, i);
        const Task task = {.first = i, .end = i + 1};

        if (i == 0 || bytes >= TASK_BYTES) {
            g_array_append_val(tasks, task);
            bytes = 0;
        }
        g_array_index(tasks, Task, tasks->len - 1).end = i + 1;
        bytes += s->len + 8;
    }
    return tasks;
}

/* Ids of tasks go to their place in crew->out: fresh pages, which take longer than the copies. */
static void *copy(void *data)
{
    Crew *crew = ((Worker *)data)->crew;
    guint i;

    while ((i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->tasks->len) {
        const Task *task = &g_array_index(crew->tasks, Task, i);

        if (task->ids.n > 0)
            memcpy(crew->out + task->at, task->ids.ids, task->ids.n * sizeof *crew->out);
    }
    return NULL;
}

static void run_workers(Crew *crew, Worker *workers, size_t n, GThreadFunc fn)
{
    crew->next = 0;
    for (size_t i = 1; i < n; i++) /* one that cannot be started is not missed */
        workers[i].thread = g_thread_try_new("davit-encode", fn, &workers[i], NULL);
    fn(&workers[0]);
    for (size_t i = 1; i < n; i++) {
        if (workers[i].thread)
            g_thread_join(workers[i].thread);
    }
}

/* Append the ids of all tasks, or give the first status that is no success. */
static int32_t join(Crew *crew, Worker *workers, size_t n_workers, DavitIds *out)
{
    int32_t status = DAVIT_OK;
    size_t n = 0;

    for (guint i = 0; i < crew->tasks->len; i++) {
        Task *task = &g_array_index(crew->tasks, Task, i);

        if (status == DAVIT_OK)
            status = task->status;
        task->at = n;
        n += task->ids.n;
    }
    if (status == DAVIT_OK && !davit_ids_reserve(out, n))
        status = DAVIT_E_LIMIT;
    if (status == DAVIT_OK) {
        crew->out = out->ids + out->n;
        run_workers(crew, workers, n_workers, copy);
        out->n += n;
    }
    for (guint i = 0; i < crew->tasks->len; i++)
        davit_ids_clear(&g_array_index(crew->tasks, Task, i).ids);
    return status;
}

int32_t davit_encode_listed(const DavitEncodeJob *job)
{
    Crew crew = {.job = job, .tasks = gather(job->stretches)};
    const size_t n_workers = MIN(job->n_encoders, MAX(crew.tasks->len, 1));
    g_autofree Worker *workers = g_new0(Worker, n_workers);
    int32_t status;

    count_total(job);
    for (size_t i = 0; i < n_workers; i++)
        workers[i] = (Worker){&crew, job->encoders[i], NULL};
    run_workers(&crew, workers, n_workers, work);
    status = join(&crew, workers, n_workers, job->out);
    g_array_free(crew.tasks, TRUE);
    return status;
}

/* Kept apart: one line of a batch would feel the lists. */
static int32_t encode_long(DavitEncoder *const *encoders, size_t n, const char *text,
                           size_t len, uint32_t flags, DavitIds *out, DavitReport *report)
{
    g_autoptr(GArray) stretches = g_array_new(FALSE, FALSE, sizeof(DavitStretch));
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func(g_free);
    DavitEncodeJob job = {.encoder = encoders[0],
                          .out = out,
                          .stretches = stretches,
                          .kept = kept,
                          .encoders = encoders,
                          .n_encoders = n};

    return davit_encode_run(&job, text, len, flags, report);
}

int32_t davit_encode_threads(DavitEncoder *const *encoders, size_t n, const char *text,
                             size_t len, uint32_t flags, DavitIds *out,
                             DavitReport *report)
{
    if ((n < 2 && !encoders[0]->watch) || len < LEAST_BYTES)
        return davit_encode(encoders[0], text, len, flags, out, report);
    return encode_long(encoders, n, text, len, flags, out, report);
}
