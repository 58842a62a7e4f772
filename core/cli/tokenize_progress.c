/* SPDX-License-Identifier: Apache-2.0
 * Percent where the text could be cut for several threads, else seconds. */
#include "cli/tokenize_progress.h"

#include <stdio.h>

#define SHOW_EVERY_US 250000

struct DavitTokenizeProgress {
    DavitEncoder *encoder; /* (borrowed) */
    DavitEncodeWatch watch;
    int64_t start; /* us */
    GThread *thread;
    GMutex lock;
    GCond stopped;
    bool stop;
};

static void show(DavitTokenizeProgress *p)
{
    const uint64_t total = __atomic_load_n(&p->watch.total, __ATOMIC_RELAXED);
    const uint64_t done = __atomic_load_n(&p->watch.done, __ATOMIC_RELAXED);
    const double seconds = (double)(g_get_monotonic_time() - p->start) * 1e-6;

    if (done > 0 && total > 0)
        fprintf(stderr, "\r%3.0f %% of the text, %.0f s ", 100.0 * (double)done / (double)total,
                seconds);
    else
        fprintf(stderr, "\rtokenizing, %.0f s ", seconds);
}

static void *watch(void *data)
{
    DavitTokenizeProgress *p = data;

    g_mutex_lock(&p->lock);
    while (!p->stop) {
        const int64_t until = g_get_monotonic_time() + SHOW_EVERY_US;

        while (!p->stop && g_cond_wait_until(&p->stopped, &p->lock, until))
            ;
        if (!p->stop)
            show(p);
    }
    g_mutex_unlock(&p->lock);
    return NULL;
}

DavitTokenizeProgress *davit_tokenize_progress(DavitEncoder *encoder)
{
    DavitTokenizeProgress *p = g_new0(DavitTokenizeProgress, 1);

    p->encoder = encoder;
    p->start = g_get_monotonic_time();
    g_mutex_init(&p->lock);
    g_cond_init(&p->stopped);
    davit_encoder_watch(encoder, &p->watch);
    p->thread = g_thread_try_new("davit-progress", watch, p, NULL); /* not missed */
    return p;
}

void davit_tokenize_progress_stop(DavitTokenizeProgress *p)
{
    if (!p)
        return;
    davit_encoder_watch(p->encoder, NULL);
    g_mutex_lock(&p->lock);
    p->stop = true;
    g_cond_signal(&p->stopped);
    g_mutex_unlock(&p->lock);
    if (p->thread)
        g_thread_join(p->thread);
    fprintf(stderr, "\r%40s\r", "");
    g_mutex_clear(&p->lock);
    g_cond_clear(&p->stopped);
    g_free(p);
}
