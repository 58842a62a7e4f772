/* SPDX-License-Identifier: Apache-2.0
 * Plain reads into a buffer that nobody looks at: only the page cache fills, mapped pages of the
 * process stay as they are. posix_fadvise would copy nothing, but with it warm tokens were measured
 * to take half as long again (probably single pages in the cache, where reads leave large ones). */
#include "exec/ahead.h"

#include <pthread.h>

#include "plan/piece.h"
#include "source/cached.h"

#define STEP  (256u << 10)
#define NONE  (-1)
#define STACK DAVIT_LANE_STACK

typedef struct Extent {
    const DavitSource *source; /* (borrowed) */
    uint64_t off, n_bytes;
} Extent;

struct DavitAhead {
    uint64_t n_layers;
    GArray **extents; /* [n_layers] Extent, NULL = the layer is not on disk */
    int64_t first;    /* deferred layer */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;
    int64_t wanted; /* layer, NONE */
    uint64_t n_bytes;
    bool stop;
};

/* ---- what lies where ---- */

static void add_source(DavitAhead *ahead, const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source)
{
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(DavitRead));
    GArray **extents = &ahead->extents[slot->layer];

    davit_reads_of(plan, slot, source, reads);
    for (guint i = 0; i < reads->len; i++) {
        const DavitRead *read = &g_array_index(reads, DavitRead, i);
        const Extent extent = {davit_checkpoint_file(plan->checkpoint, read->file).source,
                               read->off, read->n_bytes};

        if (read->n_runs != 1 || davit_source_fd(extent.source) < 0)
            continue; /* columns of a rank: most of what lies between is not wanted */
        if (!*extents)
            *extents = g_array_new(FALSE, FALSE, sizeof(Extent));
        g_array_append_val(*extents, extent);
    }
}

static void find_extents(DavitAhead *ahead, const DavitPlan *plan)
{
    ahead->first = NONE;
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (slot->way != DAVIT_WAY_DEFER || !slot->used || slot->layer < 0 ||
            (uint64_t)slot->layer >= plan->n_layers)
            continue;
        for (size_t s = 0; s < slot->n_sources; s++)
            add_source(ahead, plan, slot, &slot->sources[s]);
        if (ahead->extents[slot->layer] &&
            (ahead->first == NONE || slot->layer < ahead->first))
            ahead->first = slot->layer;
    }
}

/* ---- the thread ---- */

/* The next layer to read, NONE = stop. */
static int64_t wait_for_more(DavitAhead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stop && ahead->wanted == NONE)
        pthread_cond_wait(&ahead->more, &ahead->lock);
    const int64_t layer = ahead->stop ? NONE : ahead->wanted;
    ahead->wanted = NONE;
    pthread_mutex_unlock(&ahead->lock);
    return layer;
}

/* False = the thread shall end. A layer that is wanted by now waits: kernels that have caught
 * up still need the rest of this one first. */
static bool count_and_look(DavitAhead *ahead, uint64_t n_bytes)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->n_bytes += n_bytes;
    const bool go_on = !ahead->stop;
    pthread_mutex_unlock(&ahead->lock);
    return go_on;
}

static void read_layer(DavitAhead *ahead, const GArray *extents, uint8_t *buffer)
{
    g_autoptr(DavitReport) said = davit_report_new(); /* kernels will meet the fault, if any */

    for (guint i = 0; i < extents->len; i++) {
        const Extent *e = &g_array_index(extents, Extent, i);

        /* reading what is there costs a tenth of computing with it */
        if (davit_source_range_cached(e->source, e->off, e->n_bytes)) {
            if (!count_and_look(ahead, e->n_bytes))
                return;
            continue;
        }
        for (uint64_t at = 0; at < e->n_bytes; at += STEP) {
            const uint64_t n = MIN(e->n_bytes - at, STEP);

            if (davit_source_read(e->source, e->off + at, buffer, n, said))
                return;
            if (!count_and_look(ahead, n))
                return;
        }
    }
}

static void *work(void *data)
{
    DavitAhead *ahead = data;
    g_autofree uint8_t *buffer = g_malloc(STEP);
    int64_t layer;

    while ((layer = wait_for_more(ahead)) != NONE)
        read_layer(ahead, ahead->extents[layer], buffer);
    return NULL;
}

static bool start(DavitAhead *ahead)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    const bool started = pthread_create(&ahead->thread, &attr, work, ahead) == 0;
    pthread_attr_destroy(&attr);
    return started;
}

/* ---- the whole ---- */

static void clear(DavitAhead *ahead)
{
    for (uint64_t i = 0; i < ahead->n_layers; i++)
        if (ahead->extents[i])
            g_array_unref(ahead->extents[i]);
    pthread_cond_destroy(&ahead->more);
    pthread_mutex_destroy(&ahead->lock);
    g_free(ahead->extents);
    g_free(ahead);
}

DavitAhead *davit_ahead_new(const DavitPlan *plan)
{
    DavitAhead *ahead = g_new0(DavitAhead, 1);

    ahead->n_layers = plan->n_layers;
    ahead->extents = g_new0(GArray *, plan->n_layers);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->more, NULL);
    find_extents(ahead, plan);
    ahead->wanted = ahead->first;
    if (ahead->first != NONE && start(ahead))
        return ahead;
    clear(ahead);
    return NULL;
}

void davit_ahead_free(DavitAhead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    pthread_cond_signal(&ahead->more);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    clear(ahead);
}

void davit_ahead_begin(DavitAhead *ahead, int64_t layer)
{
    if (!ahead || layer < 0)
        return;
    const int64_t next = (uint64_t)layer + 1 < ahead->n_layers ? layer + 1 : ahead->first;
    if (!ahead->extents[next])
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->wanted = next;
    pthread_cond_signal(&ahead->more);
    pthread_mutex_unlock(&ahead->lock);
}

uint64_t davit_ahead_bytes(DavitAhead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    const uint64_t n = ahead->n_bytes;
    pthread_mutex_unlock(&ahead->lock);
    return n;
}
