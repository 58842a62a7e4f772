/* SPDX-License-Identifier: Apache-2.0
 * The executor: turns the plan's slots into weights. Borrowed slots point into the files'
 * mappings; everything else is made once, in file order, into one arena (host) or through a
 * staging buffer into the memory of its device. */
#include "exec/exec.h"

#include <string.h>

#include "exec/arena.h"
#include "exec/device.h"
#include "exec/head.h"
#include "exec/items.h"
#include "exec/lanes.h"
#include "plan/layout.h"
#include "plan/part.h"

struct DavitWeights {
    const DavitPlan *plan;
    DavitArena arena;          /* private bytes of all slots on the host */
    DavitExecDevice *devices;  /* (owned) of the plan, with queues for uploads */
    void **device_mem;         /* [n_slots] device allocations, NULL on the host */
    void **constant_mem;       /* [n_refs] device copies of constants */
    davit_weight *slot_weight; /* [n_slots] */
    davit_segment **segments;  /* [n_slots] owned arrays */
    davit_quant_codes **codes; /* [n_slots] owned arrays, one for each segment; NULL = alike */
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
        davit_pack_params(slot->pack, slot, &slot->sources[0], weight->params);
    else if (slot->n_sources > 0 && slot->access != DAVIT_ACCESS_DECODE)
        memcpy(weight->params, slot->sources[0].module->desc->params, sizeof weight->params);
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
                                           .n_parts = module->desc->n_parts};
            for (size_t p = 0; p < module->desc->n_parts; p++) {
                const int32_t status =
                    davit_module_part(w->plan, module, p, source->expert + e, source->row,
                                                         &segments[at].part[p], report);
                if (status)
                    return status;
                segments[at].row_bytes[p] = module->desc->parts[p].row_bytes;
            }
        }
    }
    fill_weight(&w->slot_weight[index], slot, segments, n);
    w->stats.borrowed_bytes += slot->borrowed_bytes;
    return DAVIT_OK;
}

/* ---- private slots ---- */

/* Where segments were packed from codes that differ, each points to its own. (owned) NULL = they
 * do not. Segments follow the slot's sources and their experts. */
static davit_quant_codes *own_codes(const DavitSlot *slot, davit_segment *segments, size_t n)
{
    davit_quant_codes *codes;
    size_t at = 0;

    if (slot->access != DAVIT_ACCESS_PACK || !davit_slot_other_layout(slot))
        return NULL;
    codes = g_new0(davit_quant_codes, n);
    for (size_t s = 0; s < slot->n_sources; s++) {
        for (uint64_t e = 0; e < slot->sources[s].n_experts; e++, at++) {
            uint64_t params[8];

            davit_pack_params(slot->pack, slot, &slot->sources[s], params);
            memcpy(&codes[at], params, sizeof codes[at]);
            segments[at].n_parts = 3;
            segments[at].part[2] = (const uint8_t *)&codes[at];
        }
    }
    return codes;
}

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
    w->codes[index] = own_codes(&w->plan->slots[index], segments, placed->len);
    fill_weight(&w->slot_weight[index], &w->plan->slots[index], segments, placed->len);
}

static void place_clear(void *data)
{
    DavitSlotPlace *place = data;
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
        DavitSlotPlace place = {0};
        if (is_private(&plan->slots[i])) {
            place.segments = g_array_new(FALSE, FALSE, sizeof(DavitPlacedSegment));
            place.off = at;
            const int32_t status = davit_items_place(plan, &plan->slots[i], place.segments,
                                                     items, &place.n_bytes, report);
            if (status) {
                g_array_unref(place.segments);
                return status;
            }
            if (plan->slots[i].device == DAVIT_ON_HOST)
                at += davit_align_up(place.n_bytes, plan->devices[DAVIT_ON_HOST].align);
        }
        g_array_append_val(places, place);
    }
    *out_bytes = at;
    return DAVIT_OK;
}

static int32_t reserve(DavitWeights *w, const GArray *places, uint64_t n_bytes,
                       DavitReport *report)
{
    const int32_t status = davit_arena_init(&w->arena, n_bytes, true, "weights", report);
    if (status)
        return status;
    for (guint i = 0; i < places->len; i++) {
        DavitSlotPlace *place = &g_array_index(places, DavitSlotPlace, i);
        const DavitSlot *slot = &w->plan->slots[i];
        if (!place->segments)
            continue;
        if (slot->device == DAVIT_ON_HOST)
            place->base = w->arena.base + place->off;
        else if (!davit_exec_alloc(&w->devices[slot->device], place->n_bytes, slot->id, "load",
                                   &w->device_mem[i], report))
            return DAVIT_E_LIMIT;
        else
            place->base = w->device_mem[i];
        point_segments(w, i, place->segments, place->base);
        w->stats.private_bytes += place->n_bytes;
    }
    return DAVIT_OK;
}

/* ---- weight handles of the program ---- */

static int32_t constant_ref(DavitWeights *w, size_t i, DavitReport *report)
{
    const DavitWeightRef *ref = &w->plan->program->weights[i];
    const uint64_t n_bytes = ref->n_rows * ref->n_cols * sizeof(float);
    const uint8_t *data = (const uint8_t *)ref->constant;
    if (ref->device != DAVIT_ON_HOST) {
        const DavitExecDevice *device = &w->devices[ref->device];
        const DavitDoing doing = {"load", "a table of the forward"};
        if (!davit_exec_alloc(device, n_bytes, doing.what, "load", &w->constant_mem[i], report))
            return DAVIT_E_LIMIT;
        const int64_t start = g_get_monotonic_time();
        int32_t status =
            davit_exec_upload(device, w->constant_mem[i], data, n_bytes, &doing, report);
        if (!status)
            status = davit_exec_wait(device, &doing, report);
        w->stats.upload_seconds += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
        if (status)
            return status;
        w->stats.uploaded_bytes += n_bytes;
        data = w->constant_mem[i];
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

static int32_t load_all(DavitWeights *w, const DavitLoadOptions *options, DavitReport *report)
{
    const DavitPlan *plan = w->plan;
    int32_t status = DAVIT_OK;
    w->devices = davit_exec_devices_open(plan, true, "load", report);
    if (!w->devices)
        return DAVIT_E_IO;
    /* probed also where nothing is read: the report tells what the page cache held */
    g_autoptr(DavitReader) reader = davit_reader_new(
        plan->checkpoint, plan->n_lanes ? options->cache : DAVIT_CACHE_USE, NULL, &w->stats);
    for (size_t i = 0; !status && i < plan->n_slots; i++)
        if (plan->slots[i].present && plan->slots[i].used && plan->slots[i].tied_to < 0 &&
            plan->slots[i].access == DAVIT_ACCESS_BORROW)
            status = borrow_slot(w, i, report);
    if (status)
        return status;

    g_autoptr(GArray) items = g_array_new(FALSE, FALSE, sizeof(DavitItem));
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(DavitSlotPlace));
    g_array_set_clear_func(places, place_clear);
    uint64_t n_bytes = 0;
    status = place_slots(w, places, items, &n_bytes, report);
    if (!status)
        status = reserve(w, places, n_bytes, report);
    const DavitLanesJob job = {.plan = plan,
                               .options = options,
                               .reader = reader,
                               .items = items,
                               .places = places,
                               .devices = w->devices};
    if (!status)
        status = davit_lanes_run(&job, &w->stats, report);
    if (!status)
        status = link_refs(w, report);
    if (!status)
        status = davit_head_compare(plan, &w->stats, report);
    if (!status)
        status = davit_checkpoint_check(plan->checkpoint, report);
    return status;
}

DavitWeights *davit_weights_load(const DavitPlan *plan, const DavitLoadOptions *options,
                                 DavitReport *report)
{
    const DavitLoadOptions opt = options ? *options : (DavitLoadOptions){0};
    const int64_t start = g_get_monotonic_time();
    g_autoptr(DavitWeights) w = g_new0(DavitWeights, 1);
    w->plan = plan;
    w->n_refs = plan->program ? plan->program->n_weights : 0;
    w->slot_weight = g_new0(davit_weight, plan->n_slots);
    w->segments = g_new0(davit_segment *, plan->n_slots);
    w->codes = g_new0(davit_quant_codes *, plan->n_slots);
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
        g_free(w->codes[i]);
        if (w->device_mem[i])
            davit_exec_free(&w->devices[w->plan->slots[i].device], w->device_mem[i]);
    }
    for (size_t i = 0; i < w->n_refs; i++)
        if (w->constant_mem[i])
            davit_exec_free(&w->devices[w->plan->program->weights[i].device],
                            w->constant_mem[i]);
    davit_exec_devices_close(w->plan, w->devices);
    davit_arena_clear(&w->arena);
    g_free(w->slot_weight);
    g_free(w->segments);
    g_free(w->codes);
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

const davit_weight *davit_weights_slot(const DavitWeights *weights, size_t index)
{
    return &weights->slot_weight[index];
}

void davit_weights_drop_layer(const DavitWeights *w, int64_t layer)
{
    for (size_t i = 0; i < w->plan->n_slots; i++) {
        const DavitSlot *slot = &w->plan->slots[i];
        if (slot->layer != layer || slot->way != DAVIT_WAY_DEFER)
            continue;
        for (size_t s = 0; s < slot->n_sources; s++) {
            const DavitModule *module = slot->sources[s].module;
            for (size_t p = 0; p < module->desc->n_parts; p++) {
                const davit_tensor_info *t = davit_part_tensor(w->plan, module, p);
                uint64_t n = 0; /* borrowed: one run */
                const uint64_t off = davit_part_off(w->plan, module, p, 0, &n);
                davit_source_drop(davit_checkpoint_file(w->plan->checkpoint, t->file).source,
                                  off, n);
            }
        }
    }
}
