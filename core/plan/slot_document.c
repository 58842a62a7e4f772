/* SPDX-License-Identifier: Apache-2.0
 * A slot is some twenty fields, its sources are seven each: what a checkpoint of 20,000
 * tensors spends its document on is one of these functions. */
#include "plan/slot_document.h"

#include <inttypes.h>
#include <string.h>

#include "plan/layout.h"
#include "plan/piece.h"
#include "plan/slot_kernels.h"

/* ---- one slot ---- */

static void write_shape(const DavitSlot *slot, DavitJsonWriter *w)
{
    davit_json_begin(w, "shape", false);
    for (uint32_t r = 0; r < slot->rank; r++)
        davit_json_put_u64(w, NULL, slot->shape[r]);
    davit_json_end(w);
}

static void put_printed(DavitJsonWriter *w, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void put_printed(DavitJsonWriter *w, const char *format, ...)
{
    va_list args;
    g_autofree char *text = NULL;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    davit_json_put_text(w, NULL, text);
}

/* Rows that a source takes of the stored module, which a cut may have made smaller. */
static void write_rows(const DavitSlotSource *source, bool turned, DavitJsonWriter *w)
{
    const DavitModule *module = source->module;
    const DavitModule *whole = module->cut ? module->cut->whole : module;
    const uint64_t start = !module->cut ? 0 : turned ? module->cut->box.col : module->cut->box.row;

    if (source->n_rows != (turned ? whole->desc->n_cols : whole->desc->n_rows))
        put_printed(w, "rows(%" PRIu64 ",%" PRIu64 ")", start + source->row, source->n_rows);
}

/* What happens to the stored rows, as words of the slot table's grammar. */
static void write_transforms(const DavitSlot *slot, DavitJsonWriter *w)
{
    const DavitSlotSource *first = slot->n_sources ? &slot->sources[0] : NULL;
    const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;

    davit_json_begin(w, "transforms", false);
    if (first)
        write_rows(first, turned, w);
    if (slot->n_sources > 1)
        davit_json_put_text(w, NULL, "stack");
    if (slot->cut)
        put_printed(w, "rank: %s from %" PRIu64 " of %" PRIu64, slot->cut, slot->cut_first,
                    slot->cut_whole);
    if (slot->perm_heads)
        put_printed(w, "perm(%" PRIu64 ")", slot->perm_heads);
    if (turned)
        davit_json_put_text(w, NULL, "T");
    if (slot->value_ops & DAVIT_VALUE_ADD1)
        davit_json_put_text(w, NULL, "add1");
    if (slot->value_ops & DAVIT_VALUE_NEG_EXP)
        davit_json_put_text(w, NULL, "neg_exp");
    davit_json_end(w);
}

static void write_names(const char *key, const GPtrArray *names, DavitJsonWriter *w)
{
    davit_json_begin(w, key, false);
    for (guint i = 0; i < names->len; i++)
        davit_json_put_text(w, NULL, g_ptr_array_index(names, i));
    davit_json_end(w);
}

/* "also_stored": layouts of other sources than the first, each once; only where there are such. */
static void write_other_layouts(const DavitSlot *slot, DavitJsonWriter *w)
{
    g_autoptr(GPtrArray) others = g_ptr_array_new();

    if (slot->n_sources < 2 || !davit_slot_other_layout(slot))
        return;
    for (size_t s = 1; s < slot->n_sources; s++) {
        const char *layout = slot->sources[s].module->desc->layout; /* interned */

        if (layout != slot->stored_layout && !g_ptr_array_find(others, layout, NULL))
            g_ptr_array_add(others, (char *)(uintptr_t)layout);
    }
    if (others->len)
        write_names("also_stored", others, w);
}

static const char *slot_device(const DavitPlan *plan, const DavitSlot *slot)
{
    if (slot->tied_to >= 0)
        slot = &plan->slots[slot->tied_to];
    if (slot->way == DAVIT_WAY_DEFER)
        return "disk";
    if (slot->home && strcmp(slot->home, "disk") != 0)
        return slot->home;
    return slot->access == DAVIT_ACCESS_BORROW ? "cpu" : plan->devices[slot->device].name;
}

static void write_fields(const DavitPlan *plan, const DavitSlot *slot,
                         const GPtrArray *kernels, DavitJsonWriter *w)
{
    const DavitModule *module = slot->n_sources ? slot->sources[0].module : NULL;

    davit_json_put_text(w, "slot", slot->id);
    if (slot->layer < 0)
        davit_json_put_null(w, "layer");
    else
        davit_json_put_int(w, "layer", slot->layer);
    davit_json_put_text(w, "class", slot->row.cls);
    write_shape(slot, w);
    davit_json_put_bool(w, "present", slot->present);
    davit_json_put_bool(w, "used", slot->used);
    davit_json_put_text(w, "from", slot->source_text);
    davit_json_put_text(w, "tied_to", slot->tied_to < 0 ? NULL : plan->slots[slot->tied_to].id);
    davit_json_put_text(w, "scheme", module ? module->desc->scheme : NULL);
    davit_json_put_text(w, "quant", module && module->quant ? module->quant->id : NULL);
    davit_json_put_text(w, "stored", slot->stored_layout);
    write_other_layouts(slot, w);
    davit_json_put_text(w, "layout", slot->layout);
    davit_json_put_text(w, "device", slot_device(plan, slot));
    write_names("kernels", kernels, w);
    davit_json_put_text(w, "access", davit_way_name(slot->way));
    davit_json_put_text(w, "make", davit_access_name(slot->access));
    davit_json_put_text(w, "why", slot->reason);
    write_transforms(slot, w);
    davit_json_put_u64(w, "borrowed_bytes", slot->borrowed_bytes);
    davit_json_put_u64(w, "read_bytes", slot->read_bytes);
    davit_json_put_u64(w, "private_bytes", slot->private_bytes);
}

/* ---- what it reads ---- */

static void write_read(const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source, const DavitRead *read,
                       DavitJsonWriter *w)
{
    const davit_tensor_info *t = davit_checkpoint_tensor(plan->checkpoint, read->tensor);

    davit_json_begin(w, NULL, true);
    davit_json_put_text(w, "tensor", t->name);
    davit_json_put_text(w, "role", source->module->desc->parts[read->part].role);
    davit_json_put_text(w, "dtype", t->dtype);
    davit_json_put_text(w, "file", davit_checkpoint_file(plan->checkpoint, t->file).name);
    davit_json_put_u64(w, "offset", read->off);
    davit_json_put_u64(w, "bytes", read->n_bytes * read->n_runs);
    if (read->n_runs > 1) {
        davit_json_put_u64(w, "runs", read->n_runs);
        davit_json_put_u64(w, "stride", read->stride);
    }
    if (slot->n_experts > 1)
        davit_json_put_u64(w, "expert", source->slot_expert);
    davit_json_end(w);
}

/* @reads: scratch. */
static void write_sources(const DavitPlan *plan, const DavitSlot *slot, GArray *reads,
                          DavitJsonWriter *w)
{
    davit_json_begin(w, "sources", false);
    for (size_t s = 0; s < slot->n_sources; s++) {
        g_array_set_size(reads, 0);
        davit_reads_of(plan, slot, &slot->sources[s], reads);
        for (guint i = 0; i < reads->len; i++)
            write_read(plan, slot, &slot->sources[s], &g_array_index(reads, DavitRead, i), w);
    }
    davit_json_end(w);
}

void davit_plan_write_slots(const DavitPlan *plan, bool with_sources, DavitJsonWriter *w,
                            const char *key)
{
    g_autoptr(GPtrArray) kernels = davit_slot_kernels(plan);
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(DavitRead));

    davit_json_begin(w, key, false);
    for (size_t s = 0; s < plan->n_slots; s++) {
        const DavitSlot *slot = &plan->slots[s];

        if (!slot->present)
            continue;
        davit_json_begin(w, NULL, true);
        write_fields(plan, slot, g_ptr_array_index(kernels, s), w);
        if (with_sources)
            write_sources(plan, slot, reads, w);
        davit_json_end(w);
    }
    davit_json_end(w);
}
