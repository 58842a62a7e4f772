/* SPDX-License-Identifier: Apache-2.0
 * The executor: turns the plan's slots into weights. Borrowed slots point into the files'
 * mappings; everything else is made once, in file order, into one arena (host) or through a
 * staging buffer into device memory. */
#include "exec/exec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "exec/arena.h"
#include "exec/head.h"
#include "exec/items.h"
#include "exec/pool.h"
#include "plan/layout.h"

#define DEFAULT_WINDOW (256ull << 20)
#define PROGRESS_BYTES (8ull << 20)
#define WORKER_BYTES (16ull << 20) /* a staged piece and scratch of the same order */

struct DavitWeights {
    const DavitPlan *plan;
    DavitArena arena;          /* private bytes of all slots on the host */
    void **device_mem;         /* [n_slots] device allocations, NULL on the CPU */
    void **constant_mem;       /* [n_refs] device copies of constants */
    void *queue;               /* device queue used for uploads */
    const davit_device_iface *device;
    void *device_self;
    davit_weight *slot_weight; /* [n_slots] */
    davit_segment **segments;  /* [n_slots] owned arrays */
    davit_weight *ref_weight;  /* [n_refs] what a weight handle means */
    davit_segment *ref_segment;/* [n_refs] of constants */
    size_t n_refs;
    DavitLoadStats stats;
};

/* Slot whose bytes this one uses. */
static const DavitSlot *owner_of(const DavitPlan *plan, const DavitSlot *slot)
{
    return slot->tied_to >= 0 ? &plan->slots[slot->tied_to] : slot;
}

static void fill_weight(davit_weight *weight, const DavitSlot *slot, davit_segment *segments,
                        size_t n_segments)
{
    *weight = (davit_weight){.layout = slot->layout,
                             .n_experts = slot->n_experts,
                             .n_rows = slot->n_rows,
                             .n_cols = slot->n_cols,
                             .n_segments = n_segments,
                             .segments = segments};
    if (slot->n_sources > 0 && slot->access == DAVIT_ACCESS_PACK)
        davit_pack_params(slot->pack, slot, weight->params);
    else if (slot->n_sources > 0 && slot->access != DAVIT_ACCESS_DECODE)
        memcpy(weight->params, slot->sources[0].module->desc.params, sizeof weight->params);
}

/* ---- borrowed slots ---- */

static int32_t borrow_slot(DavitWeights *w, size_t index, DavitReport *report)
{
    const DavitSlot *slot = &w->plan->slots[index];
    size_t n = 0, at = 0;
    for (size_t s = 0; s < slot->n_sources; s++)
        n += slot->sources[s].n_experts;
    davit_segment *segments = g_new0(davit_segment, n);
    w->segments[index] = segments;

    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *source = &slot->sources[s];
        const DavitModule *module = source->module;
        for (uint64_t e = 0; e < source->n_experts; e++, at++) {
            segments[at] = (davit_segment){.expert = source->slot_expert + e,
                                           .row = source->slot_row,
                                           .n_rows = source->n_rows,
                                           .n_parts = module->desc.n_parts};
            for (size_t p = 0; p < module->desc.n_parts; p++) {
                const int32_t status = davit_module_part(w->plan, module, p, e, source->row,
                                                         &segments[at].part[p], report);
                if (status)
                    return status;
                segments[at].row_bytes[p] = davit_module_row_bytes(module, p);
            }
        }
    }
    fill_weight(&w->slot_weight[index], slot, segments, n);
    w->stats.borrowed_bytes += slot->borrowed_bytes;
    return DAVIT_OK;
}

/* ---- private slots ---- */

/* Segments of a private slot whose memory starts at @base. */
static void point_segments(DavitWeights *w, size_t index, const GArray *placed, uint8_t *base)
{
    davit_segment *segments = g_new0(davit_segment, placed->len);
    for (guint i = 0; i < placed->len; i++) {
        const DavitPlacedSegment *p = &g_array_index(placed, DavitPlacedSegment, i);
        segments[i] = (davit_segment){.expert = p->expert,
                                      .row = p->row,
                                      .n_rows = p->n_rows,
                                      .n_parts = p->n_parts};
        for (size_t part = 0; part < p->n_parts; part++) {
            segments[i].part[part] = base + p->part_off[part];
            segments[i].row_bytes[part] = p->row_bytes[part];
        }
    }
    w->segments[index] = segments;
    fill_weight(&w->slot_weight[index], &w->plan->slots[index], segments, placed->len);
}

/* Where a slot's private memory starts: in the arena or on the device. */
typedef struct SlotPlace {
    uint64_t off;     /* in the arena */
    uint64_t n_bytes;
    GArray *segments; /* DavitPlacedSegment */
} SlotPlace;

static void place_clear(void *data)
{
    SlotPlace *place = data;
    if (place->segments)
        g_array_unref(place->segments);
}

static bool is_private(const DavitSlot *slot)
{
    return slot->present && slot->tied_to < 0 && slot->used &&
           slot->access != DAVIT_ACCESS_BORROW;
}

static int32_t place_slots(DavitWeights *w, GArray *places, GArray *items, uint64_t *out_bytes,
                           DavitReport *report)
{
    const DavitPlan *plan = w->plan;
    uint64_t at = 0;
    for (size_t i = 0; i < plan->n_slots; i++) {
        SlotPlace place = {0};
        if (is_private(&plan->slots[i])) {
            place.segments = g_array_new(FALSE, FALSE, sizeof(DavitPlacedSegment));
            place.off = at;
            const int32_t status = davit_items_place(plan, &plan->slots[i], place.segments,
                                                     items, &place.n_bytes, report);
            if (status) {
                g_array_unref(place.segments);
                return status;
            }
            at += davit_align_up(place.n_bytes, plan->device_align);
        }
        g_array_append_val(places, place);
    }
    *out_bytes = at;
    return DAVIT_OK;
}

static int32_t device_short(DavitWeights *w, const DavitSlot *slot, uint64_t n_bytes,
                            DavitReport *report)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                            .status = DAVIT_E_LIMIT,
                                            .stage = "load",
                                            .who = w->plan->device_kernels->id,
                                            .subject = slot ? slot->id : "constant",
                                            .expected = davit_report_text(
                                                report, "%" G_GUINT64_FORMAT " bytes", n_bytes),
                                            .message = "device memory could not be allocated"});
}

static int32_t reserve(DavitWeights *w, const GArray *places, uint64_t n_bytes,
                       DavitReport *report)
{
    if (!w->device) {
        const int32_t status = davit_arena_init(&w->arena, n_bytes, true, "weights", report);
        if (status)
            return status;
    }
    for (guint i = 0; i < places->len; i++) {
        const SlotPlace *place = &g_array_index(places, SlotPlace, i);
        if (!place->segments)
            continue;
        uint8_t *base = w->device ? NULL : w->arena.base + place->off;
        if (w->device) {
            base = w->device->alloc(w->device_self, 0, place->n_bytes);
            if (!base)
                return device_short(w, &w->plan->slots[i], place->n_bytes, report);
            w->device_mem[i] = base;
        }
        point_segments(w, i, place->segments, base);
        w->stats.private_bytes += place->n_bytes;
    }
    return DAVIT_OK;
}

/* ---- the pass over the files ---- */

typedef struct LoadJob {
    DavitWeights *w;
    const DavitLoadOptions *options;
    const GArray *items;   /* DavitItem in file order */
    const GArray *places;
    DavitPool *pool;
    uint64_t total_bytes;  /* private bytes to make */
    _Atomic uint64_t done_bytes;
    atomic_bool stop;
    pthread_mutex_t lock;  /* guards report, status, stats, device queue; not a GMutex, which
                            * the thread sanitizer cannot see */
    DavitReport *report;
    int32_t status;
    uint64_t shown_bytes;  /* worker 0 only */
} LoadJob;

/* The device takes copies from a staging buffer; the lock makes uploads one at a time. */
static int32_t upload(LoadJob *job, void *dst, const uint8_t *src, uint64_t n_bytes)
{
    DavitWeights *w = job->w;
    DavitSink sink;
    pthread_mutex_lock(&job->lock);
    davit_sink_init(&sink, job->report, w->plan->device_kernels->id, "load");
    int32_t status = w->device->upload(w->device_self, w->queue, dst, src, n_bytes);
    if (!status)
        status = w->device->wait(w->device_self, w->queue, &sink.abi);
    davit_sink_done(&sink, status);
    w->stats.uploaded_bytes += n_bytes;
    pthread_mutex_unlock(&job->lock);
    return status;
}

static void fail(LoadJob *job, int32_t status, const DavitReport *said)
{
    pthread_mutex_lock(&job->lock);
    if (job->status == DAVIT_OK)
        job->status = status;
    davit_report_append(job->report, said);
    pthread_mutex_unlock(&job->lock);
    atomic_store(&job->stop, true);
}

static void show_progress(LoadJob *job, unsigned worker)
{
    const uint64_t done = atomic_load(&job->done_bytes);
    if (worker != 0 || !job->options->progress || done < job->shown_bytes + PROGRESS_BYTES)
        return;
    job->shown_bytes = done;
    if (job->options->progress(job->options->ctx, done, job->total_bytes))
        return;
    g_autoptr(DavitReport) said = davit_report_new();
    fail(job,
         davit_report_add(said, &(DavitFinding){.code = DAVIT_R_CANCELLED,
                                                .status = DAVIT_E_IO,
                                                .stage = "load",
                                                .message = "loading was cancelled"}),
         said);
}

static int32_t make_item(LoadJob *job, const DavitItem *item, GByteArray *scratch,
                         GByteArray *staging, DavitLoadStats *stats, DavitReport *said)
{
    DavitWeights *w = job->w;
    const size_t index = (size_t)(item->slot - w->plan->slots);
    const SlotPlace *place = &g_array_index(job->places, SlotPlace, index);
    if (!w->device)
        return davit_items_make(w->plan, item, w->arena.base + place->off + item->dst_off,
                                scratch, stats, said);

    g_byte_array_set_size(staging, 0);
    g_byte_array_set_size(staging, (guint)item->n_bytes);
    memset(staging->data, 0, item->n_bytes);
    const int32_t status =
        davit_items_make(w->plan, item, staging->data, scratch, stats, said);
    if (status)
        return status;
    return upload(job, (uint8_t *)w->device_mem[index] + item->dst_off, staging->data,
                  item->n_bytes);
}

static void add_stats(LoadJob *job, const DavitLoadStats *mine, uint64_t window)
{
    DavitLoadStats *s = &job->w->stats;
    pthread_mutex_lock(&job->lock);
    s->read_bytes += mine->read_bytes;
    s->copied_bytes += mine->copied_bytes;
    s->packed_bytes += mine->packed_bytes;
    s->decoded_bytes += mine->decoded_bytes;
    s->window_bytes += window; /* all workers hold theirs at the same time */
    pthread_mutex_unlock(&job->lock);
}

static void load_worker(void *ctx, unsigned worker)
{
    LoadJob *job = ctx;
    g_autoptr(GByteArray) scratch = g_byte_array_new();
    g_autoptr(GByteArray) staging = g_byte_array_new();
    DavitLoadStats mine = {0};
    uint64_t first, count, window = 0;

    while (!atomic_load(&job->stop) &&
           davit_pool_take(job->pool, 0, job->items->len, &first, &count)) {
        for (uint64_t i = first; i < first + count && !atomic_load(&job->stop); i++) {
            const DavitItem *item = &g_array_index(job->items, DavitItem, i);
            g_autoptr(DavitReport) said = davit_report_new();
            const int32_t status = make_item(job, item, scratch, staging, &mine, said);
            if (status)
                fail(job, status, said);
            atomic_fetch_add(&job->done_bytes, item->n_bytes);
            window = MAX(window, (uint64_t)scratch->len + staging->len);
            show_progress(job, worker);
        }
    }
    add_stats(job, &mine, window);
}

static int by_file(const void *a, const void *b)
{
    const DavitItem *x = a, *y = b;
    return x->file_key < y->file_key ? -1 : x->file_key > y->file_key;
}

static int32_t run_items(DavitWeights *w, const DavitLoadOptions *options, GArray *items,
                         const GArray *places, uint64_t total, DavitReport *report)
{
    if (items->len == 0)
        return DAVIT_OK;
    g_array_sort(items, by_file);
    const uint64_t fit = MAX(options->window_bytes / WORKER_BYTES, 1);
    const unsigned want = options->n_threads ? options->n_threads : davit_pool_cpus();
    g_autoptr(DavitPool) pool = davit_pool_new((unsigned)MIN(fit, want));
    LoadJob job = {.w = w,
                   .options = options,
                   .items = items,
                   .places = places,
                   .pool = pool,
                   .total_bytes = total,
                   .report = report};
    pthread_mutex_init(&job.lock, NULL);
    davit_pool_run(pool, load_worker, &job);
    pthread_mutex_destroy(&job.lock);
    if (job.status == DAVIT_OK && options->progress)
        options->progress(options->ctx, total, total);
    return job.status;
}

/* ---- weight handles of the program ---- */

static int32_t constant_ref(DavitWeights *w, size_t i, DavitReport *report)
{
    const DavitWeightRef *ref = &w->plan->program->weights[i];
    const uint64_t n_bytes = ref->n_rows * ref->n_cols * sizeof(float);
    const uint8_t *data = (const uint8_t *)ref->constant;
    if (w->device) {
        void *mem = w->device->alloc(w->device_self, 0, n_bytes);
        if (!mem)
            return device_short(w, NULL, n_bytes, report);
        w->constant_mem[i] = mem;
        DavitSink sink;
        davit_sink_init(&sink, report, w->plan->device_kernels->id, "load");
        int32_t status = w->device->upload(w->device_self, w->queue, mem, data, n_bytes);
        if (!status)
            status = w->device->wait(w->device_self, w->queue, &sink.abi);
        if (davit_sink_done(&sink, status))
            return status;
        w->stats.uploaded_bytes += n_bytes;
        data = mem;
    }
    w->ref_segment[i] = (davit_segment){.n_rows = ref->n_rows, .n_parts = 1};
    w->ref_segment[i].part[0] = data;
    w->ref_segment[i].row_bytes[0] = ref->n_cols * sizeof(float);
    w->ref_weight[i] = (davit_weight){.layout = davit_intern("f32/1"),
                                      .n_experts = 1,
                                      .n_rows = ref->n_rows,
                                      .n_cols = ref->n_cols,
                                      .n_segments = 1,
                                      .segments = &w->ref_segment[i]};
    return DAVIT_OK;
}

static int32_t link_refs(DavitWeights *w, DavitReport *report)
{
    const DavitPlan *plan = w->plan;
    for (size_t i = 0; i < w->n_refs; i++) {
        const int32_t slot = plan->program->weights[i].slot;
        if (slot < 0) {
            const int32_t status = constant_ref(w, i, report);
            if (status)
                return status;
            continue;
        }
        const DavitSlot *owner = owner_of(plan, &plan->slots[slot]);
        w->ref_weight[i] = w->slot_weight[owner - plan->slots];
    }
    return DAVIT_OK;
}

/* ---- the whole ---- */

static int32_t open_device(DavitWeights *w, DavitReport *report)
{
    if (!w->plan->device_kernels)
        return DAVIT_OK;
    const davit_kernels_iface *kernels;
    int32_t status = davit_component_use(w->plan->device_kernels, (const void **)&kernels,
                                         &w->device_self, report);
    if (status)
        return status;
    w->device = kernels->device_iface;
    DavitSink sink;
    davit_sink_init(&sink, report, w->plan->device_kernels->id, "load");
    status = w->device->queue_open(w->device_self, 0, &w->queue, &sink.abi);
    return davit_sink_done(&sink, status);
}

static int32_t load_all(DavitWeights *w, const DavitLoadOptions *options, DavitReport *report)
{
    const DavitPlan *plan = w->plan;
    int32_t status = open_device(w, report);
    for (size_t i = 0; !status && i < plan->n_slots; i++)
        if (plan->slots[i].present && plan->slots[i].used && plan->slots[i].tied_to < 0 &&
            plan->slots[i].access == DAVIT_ACCESS_BORROW)
            status = borrow_slot(w, i, report);
    if (status)
        return status;

    g_autoptr(GArray) items = g_array_new(FALSE, FALSE, sizeof(DavitItem));
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(SlotPlace));
    g_array_set_clear_func(places, place_clear);
    uint64_t n_bytes = 0;
    status = place_slots(w, places, items, &n_bytes, report);
    if (!status)
        status = reserve(w, places, n_bytes, report);
    if (!status)
        status = run_items(w, options, items, places, w->stats.private_bytes, report);
    if (!status)
        status = link_refs(w, report);
    if (!status)
        status = davit_head_compare(plan, report);
    if (!status)
        status = davit_checkpoint_check(plan->checkpoint, report);
    return status;
}

DavitWeights *davit_weights_load(const DavitPlan *plan, const DavitLoadOptions *options,
                                 DavitReport *report)
{
    DavitLoadOptions opt = options ? *options : (DavitLoadOptions){0};
    if (opt.window_bytes == 0)
        opt.window_bytes = DEFAULT_WINDOW;
    const int64_t start = g_get_monotonic_time();
    g_autoptr(DavitWeights) w = g_new0(DavitWeights, 1);
    w->plan = plan;
    w->n_refs = plan->program ? plan->program->n_weights : 0;
    w->slot_weight = g_new0(davit_weight, plan->n_slots);
    w->segments = g_new0(davit_segment *, plan->n_slots);
    w->device_mem = g_new0(void *, plan->n_slots);
    w->ref_weight = g_new0(davit_weight, w->n_refs);
    w->ref_segment = g_new0(davit_segment, w->n_refs);
    w->constant_mem = g_new0(void *, w->n_refs);
    if (load_all(w, &opt, report))
        return NULL;
    w->stats.seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return g_steal_pointer(&w);
}

void davit_weights_free(DavitWeights *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->plan->n_slots; i++) {
        g_free(w->segments[i]);
        if (w->device_mem[i])
            w->device->free(w->device_self, 0, w->device_mem[i]);
    }
    for (size_t i = 0; i < w->n_refs; i++)
        if (w->constant_mem[i])
            w->device->free(w->device_self, 0, w->constant_mem[i]);
    if (w->queue)
        w->device->queue_close(w->device_self, w->queue);
    davit_arena_clear(&w->arena);
    g_free(w->slot_weight);
    g_free(w->segments);
    g_free(w->device_mem);
    g_free(w->ref_weight);
    g_free(w->ref_segment);
    g_free(w->constant_mem);
    g_free(w);
}

void davit_weights_stats(const DavitWeights *weights, DavitLoadStats *out)
{
    *out = weights->stats;
}

const davit_weight *davit_weights_get(const DavitWeights *weights, size_t index)
{
    return &weights->ref_weight[index];
}
