/* SPDX-License-Identifier: Apache-2.0
 * start leaves a thread behind, which only quiesce ends. */
#include "toy.h"

#include <pthread.h>
#include <semaphore.h>

static pthread_t thread;
static sem_t end;

static void *wait_for_end(void *arg)
{
    sem_wait(arg);
    return NULL;
}

static int32_t thread_begin(const davit_host *host, void **out_ctx,
                            const davit_sink *sink)
{
    (void)host;
    (void)sink;
    sem_init(&end, 0, 0);
    *out_ctx = &end;
    return pthread_create(&thread, NULL, wait_for_end, &end) == 0 ? DAVIT_OK : DAVIT_E_IO;
}

static void thread_quiesce(void *ctx)
{
    sem_post(ctx);
    pthread_join(thread, NULL);
}

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.thread", "ext=toy", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN_START("org.example.bundle.thread", "Thread", "Example", "1.0.0", "MIT",
                   thread_begin, thread_quiesce, &toy);
