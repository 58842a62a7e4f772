/* SPDX-License-Identifier: Apache-2.0
 * Layouts of one slot: stored as it lies, packed by a kernels component, or float32.
 * Bytes are what the executor will use: each source, expert and part starts aligned. */
#include "plan/layout.h"

#include <string.h>

#include "plan/part.h"
#include "plan/piece.h"
#include "plan/plan_devices.h"

bool davit_slot_is_vector(const DavitSlot *slot)
{
    return slot->rank < 2 || strcmp(slot->row.cls, "norm") == 0 ||
           strcmp(slot->row.cls, "f32") == 0;
}

bool davit_slot_in_place(const DavitSlot *slot)
{
    for (size_t s = 0; s < slot->n_sources; s++)
        if (!davit_module_in_place(slot->sources[s].module))
            return false;
    return true;
}

static bool on_cpu(const DavitDraft *draft)
{
    return strcmp(draft->plan->device, "cpu") == 0;
}

/* ---- what the sources allow ---- */

size_t davit_slot_other_layout(const DavitSlot *slot)
{
    const davit_quant_desc *first = slot->sources[0].module->desc;

    for (size_t s = 1; s < slot->n_sources; s++) {
        const davit_quant_desc *d = slot->sources[s].module->desc;

        if (d == first)
            continue;
        if (d->layout != first->layout ||
            memcmp(d->params, first->params, sizeof d->params) != 0 ||
            memcmp(&d->codes, &first->codes, sizeof d->codes) != 0)
            return s;
    }
    return 0;
}

/* Does source @s take the same rows as the one before, of a module that is like its? */
static bool is_like_last(const DavitSlot *slot, size_t s)
{
    const DavitSlotSource *a = &slot->sources[s - 1], *b = &slot->sources[s];

    return a->module->desc == b->module->desc && a->row == b->row && a->n_rows == b->n_rows &&
           a->n_experts == b->n_experts && a->expert == b->expert;
}

bool davit_slot_is_even(const DavitSlot *slot)
{
    for (size_t s = 0; s < slot->n_sources; s++)
        if (slot->sources[s].module->cut || (s > 0 && !is_like_last(slot, s)))
            return false;
    return slot->n_sources > 0;
}

bool davit_slots_are_alike(const DavitSlot *a, const DavitSlot *b)
{
    const DavitSlotSource *x = &a->sources[0], *y = &b->sources[0];

    return a->row.cls == b->row.cls && a->rank == b->rank && a->n_experts == b->n_experts &&
           a->n_rows == b->n_rows && a->n_cols == b->n_cols && a->perm_heads == b->perm_heads &&
           a->value_ops == b->value_ops && a->home == b->home && a->n_sources == b->n_sources &&
           x->module->desc == y->module->desc && x->row == y->row && x->n_rows == y->n_rows &&
           x->n_experts == y->n_experts && x->expert == y->expert;
}

/* Can a row range of every source be pointed at? Parts whose rows are not contiguous can
 * only be used whole and in order. */
static bool rows_addressable(const DavitSlot *slot)
{
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *src = &slot->sources[s];
        const davit_quant_desc *d = src->module->desc;
        const bool whole = src->row == 0 && src->n_rows == d->n_rows && d->n_experts == 1;

        if (s > 0 && is_like_last(slot, s))
            continue;
        for (uint32_t p = 0; p < d->n_parts; p++) {
            if (d->parts[p].row_bytes == 0 && (!whole || slot->perm_heads))
                return false;
        }
    }
    return true;
}

/* @layout: interned. */
static void add_option(GArray *options, DavitAccess access, const char *layout,
                       const char *reason)
{
    const DavitLayoutOption option = {
        .access = access, .layout = layout, .reason = reason};

    g_array_append_val(options, option);
}

bool davit_pack_from_stored(const davit_pack *pack, const DavitSlot *slot)
{
    return davit_words_have(pack->from, slot->sources[0].module->desc->layout);
}

/* Rows of every source start where a row block of the codes starts, in stored order: only
 * then can rows of a block share their scales. */
static bool blocks_aligned(const davit_pack *pack, const DavitSlot *slot)
{
    for (size_t s = 0; s < slot->n_sources; s++) {
        if (slot->sources[s].row % pack->row_block)
            return false;
    }
    return slot->perm_heads == 0;
}

/* A plain module as one more kind of codes. Returns: false if it is not plain, or @pack does not know
 * them. */
static bool plain_codes(const davit_pack *pack, const davit_quant_desc *d, davit_quant_codes *out)
{
    const bool is_f32 = strcmp(d->layout, "f32/1") == 0, is_f16 = strcmp(d->layout, "f16/1") == 0;

    if (pack->struct_size < DAVIT_END(davit_pack, flags) || !(pack->flags & DAVIT_PACK_PLAIN) ||
        !(is_f32 || is_f16 || strcmp(d->layout, "bf16/1") == 0))
        return false;
    *out = (davit_quant_codes){.bits = is_f32 ? 32 : 16,
                               .kind = DAVIT_CODE_PLAIN,
                               .scale_type = is_f32   ? DAVIT_SCALE_F32
                                             : is_f16 ? DAVIT_SCALE_F16
                                                      : DAVIT_SCALE_BF16};
    return true;
}

void davit_pack_params(const davit_pack *pack, const DavitSlot *slot,
                       const DavitSlotSource *source, uint64_t params[8])
{
    const davit_quant_desc *d = source->module->desc;
    davit_quant_codes codes = d->codes;
    const bool plain = !davit_pack_from_stored(pack, slot) && plain_codes(pack, d, &codes);

    if (!plain &&
        (davit_pack_from_stored(pack, slot) || !(pack->forms & d->forms & DAVIT_FORM_CODES))) {
        memcpy(params, d->params, sizeof d->params);
        return;
    }
    if (!blocks_aligned(pack, slot))
        codes.scale_rows = 1;
    memset(params, 0, sizeof d->params);
    memcpy(params, &codes, sizeof codes);
}

uint64_t davit_pack_block_bytes(const DavitSlot *slot, const DavitSlotSource *source)
{
    uint64_t params[8];

    davit_pack_params(slot->pack, slot, source, params);
    return slot->pack->block_bytes(slot->pack_self, slot->n_cols, params);
}

/* Is it packed from codes? */
static bool packs_codes(const DavitSlot *slot, const DavitSlotSource *source)
{
    return !davit_pack_from_stored(slot->pack, slot) &&
           slot->pack->forms & source->module->desc->forms & DAVIT_FORM_CODES;
}

uint64_t davit_pack_cols(const DavitSlot *slot, const DavitSlotSource *source)
{
    const uint64_t n = packs_codes(slot, source) ? source->module->desc->codes.n_cols : 0;

    return n ? n : slot->n_cols;
}

uint64_t davit_pack_groups(const DavitSlot *slot, const DavitSlotSource *source)
{
    const uint64_t group = source->module->desc->codes.group;

    if (!packs_codes(slot, source))
        return 0;
    return group == 0 ? 1 : (davit_pack_cols(slot, source) + group - 1) / group;
}

/* DAVIT_CODES_ flags of what a source is packed from. */
static uint32_t pack_flags(const DavitSlot *slot, const DavitSlotSource *source)
{
    if (slot->access != DAVIT_ACCESS_PACK || !packs_codes(slot, source))
        return 0;
    return source->module->desc->codes.flags;
}

uint64_t davit_pack_factor_bytes(const DavitSlot *slot, const DavitSlotSource *source)
{
    return pack_flags(slot, source) & DAVIT_CODES_FACTORS ? slot->n_cols * sizeof(float) : 0;
}

uint64_t davit_pack_map_bytes(const DavitSlot *slot, const DavitSlotSource *source)
{
    const uint64_t n = davit_pack_factor_bytes(slot, source);

    if (!(pack_flags(slot, source) & DAVIT_CODES_MAP))
        return n;
    return n + davit_pack_cols(slot, source) * sizeof(uint32_t);
}

/* Inputs of one expert have one row of factors: its rows may not come from several modules. */
static bool factors_fit(const DavitSlot *slot)
{
    for (size_t s = 0; s < slot->n_sources; s++)
        if (slot->sources[s].module->desc->codes.flags & DAVIT_CODES_FACTORS &&
            slot->sources[s].n_rows != slot->n_rows)
            return false;
    return true;
}

/* Can @pack be written from CODES that differ from source to source? */
static bool packs_mixed(const davit_pack *pack, const DavitSlot *slot)
{
    if (pack->struct_size < DAVIT_END(davit_pack, flags) || !(pack->flags & DAVIT_PACK_MIXED) ||
        !(pack->forms & DAVIT_FORM_CODES) || !factors_fit(slot))
        return false;
    for (size_t s = 0; s < slot->n_sources; s++) {
        const davit_quant_desc *d = slot->sources[s].module->desc;

        davit_quant_codes plain;

        if (davit_words_have(pack->from, d->layout) || d->codes.flags & DAVIT_CODES_MAP)
            return false;
        if (!plain_codes(pack, d, &plain) &&
            (!(d->forms & DAVIT_FORM_CODES) || d->codes.bits == 0))
            return false;
    }
    return true;
}

/* Can @pack be written from decoded tiles of the slot? */
static bool packs_decoded(const davit_pack *pack, const DavitSlot *slot)
{
    const davit_quant_desc *d = slot->sources[0].module->desc;
    uint64_t n_maps = 0;

    if (!(pack->forms & d->forms & DAVIT_FORM_CODES))
        return pack->forms & d->forms & DAVIT_FORM_F32;
    if (!factors_fit(slot))
        return false;
    for (size_t s = 0; s < slot->n_sources; s++)
        n_maps += slot->sources[s].n_experts;
    /* a kernel reorders its input once per call: one column map per weight */
    return d->codes.bits > 0 && (n_maps == 1 || !(d->codes.flags & DAVIT_CODES_MAP));
}

/* What packs may know of a slot; found once, for there are many packs. */
typedef struct Sources {
    bool mixed;       /* they are stored in different layouts */
    bool addressable; /* rows_addressable */
    bool spare;       /* with --access the stored layout is what was asked for: packs are for
                       * weights that would not run otherwise */
} Sources;

static void add_pack(const DavitSlot *slot, const DavitTool *tool, const davit_pack *pack,
                     const Sources *sources, GArray *options)
{
    const bool mixed = sources->mixed;
    const bool stored = !mixed && davit_pack_from_stored(pack, slot);
    uint64_t params[8];
    DavitLayoutOption option = {.access = DAVIT_ACCESS_PACK,
                                .layout = davit_intern(pack->layout),
                                .pack = pack,
                                .pack_self = tool->self,
                                .reason = sources->spare ? "packed: no kernel takes it as stored"
                                                : "packed: a faster kernel takes it",
                                .spare = sources->spare};

    if (pack->lossy || pack->row_block == 0)
        return;
    if (stored ? !sources->addressable : mixed ? !packs_mixed(pack, slot) : !packs_decoded(pack, slot))
        return;
    for (size_t s = 0; s < (mixed ? slot->n_sources : 1); s++) {
        davit_pack_params(pack, slot, &slot->sources[s], params);
        if (pack->block_bytes(tool->self, slot->n_cols, params) == 0)
            return;
    }
    if (mixed)
        option.reason = "packed: its parts are stored in different layouts";
    g_array_append_val(options, option);
}

static void add_packs(const DavitDraft *draft, const DavitSlot *slot, const Sources *sources,
                      GArray *options)
{
    for (guint k = 0; k < draft->tools->kernels->len; k++) {
        const DavitTool *tool = &g_array_index(draft->tools->kernels, DavitTool, k);
        const davit_kernels_iface *iface = tool->iface;

        for (size_t p = 0; iface->packs && iface->packs[p]; p++)
            add_pack(slot, tool, iface->packs[p], sources, options);
    }
}

/* Layout of a type that the user asked for, NULL = as stored. */
static const char *asked_layout(const DavitDraft *draft)
{
    switch (draft->options->dtype) {
    case DAVIT_DTYPE_F32:
        return draft->f32;
    case DAVIT_DTYPE_F16:
        return davit_intern("f16/1");
    case DAVIT_DTYPE_BF16:
        return davit_intern("bf16/1");
    default:
        return NULL;
    }
}

/* The stored bytes as they are: in place, or as a private copy. */
static void add_stored(const DavitDraft *draft, const DavitSlot *slot, const char *stored,
                       GArray *options)
{
    const DavitAccessChoice access = draft->options->access;

    if (!on_cpu(draft))
        add_option(options, DAVIT_ACCESS_COPY, stored, "uploaded as stored");
    else if (slot->perm_heads)
        add_option(options, DAVIT_ACCESS_COPY, stored, "rows are put in another order");
    else if (!davit_slot_in_place(slot))
        add_option(options, DAVIT_ACCESS_COPY, stored, "this rank's bytes are gathered");
    else if (access == DAVIT_ACCESS_FORCE_DIRECT || access == DAVIT_ACCESS_FORCE_STREAM)
        add_option(options, DAVIT_ACCESS_COPY, stored, "a private copy, by --access");
    else
        add_option(options, DAVIT_ACCESS_BORROW, stored,
                   "kernels read the file in place");
}

GArray *davit_layout_options(const DavitDraft *draft, const DavitSlot *slot,
                             const char **out_why)
{
    const char *asked = asked_layout(draft);
    GArray *options = g_array_new(FALSE, TRUE, sizeof(DavitLayoutOption));
    const char *stored;
    bool addressable;

    *out_why = NULL;
    if (davit_slot_is_vector(slot)) {
        add_option(options, DAVIT_ACCESS_DECODE, draft->f32,
                   "vectors are kept as float32");
        return options;
    }
    if (slot->value_ops) {
        add_option(options, DAVIT_ACCESS_DECODE, asked ? asked : draft->f32,
                   "a transform changes its values");
        return options;
    }
    if (asked && slot->sources[0].module->desc->layout != asked) {
        add_option(options, DAVIT_ACCESS_DECODE, asked, "another type, by --dtype");
        return options;
    }
    if (davit_slot_other_layout(slot)) {
        add_packs(draft, slot, &(Sources){.mixed = true}, options);
        if (options->len == 0)
            *out_why = "its parts are stored in different layouts";
        return options;
    }
    stored = slot->sources[0].module->desc->layout;
    addressable = rows_addressable(slot);
    if (addressable)
        add_stored(draft, slot, stored, options);
    if (!addressable || draft->options->layout != DAVIT_LAYOUT_STORED)
        add_packs(draft, slot,
                  &(Sources){.addressable = addressable,
                             .spare = addressable &&
                                      draft->options->access != DAVIT_ACCESS_AUTO},
                  options);
    if (options->len == 0)
        *out_why = "its rows cannot be cut as the slot needs, and no kernel packs them";
    return options;
}

/* ---- bytes ---- */

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

/* File bytes behind the rows of one source. */
static uint64_t stored_bytes(const DavitDraft *draft, const DavitSlotSource *src,
                             bool turned)
{
    const davit_quant_desc *d = src->module->desc;
    uint64_t n = 0;

    for (uint32_t p = 0; p < d->n_parts; p++) {
        n += d->parts[p].row_bytes && !turned
                 ? d->parts[p].row_bytes * src->n_rows * src->n_experts
                 : davit_part_bytes(draft->plan, src->module, p);
    }
    return n;
}

/* Do bytes follow from the desc alone, which modules share? */
static bool rows_tell_bytes(const DavitModule *module, bool turned)
{
    for (uint32_t p = 0; p < module->desc->n_parts; p++)
        if (module->desc->parts[p].row_bytes == 0)
            return false;
    return !turned;
}

/* Memory of one source in the chosen layout, each expert and part rounded up to @align.
 * Sizes were bounded when modules were checked. */
static uint64_t own_bytes(const DavitDraft *draft, const DavitSlot *slot,
                          const DavitSlotSource *src, uint64_t align)
{
    const davit_quant_desc *d = src->module->desc;
    uint64_t n = 0;

    if (slot->access == DAVIT_ACCESS_PACK) {
        const uint64_t block = slot->pack->row_block;

        n = (src->n_rows + block - 1) / block * davit_pack_block_bytes(slot, src);
        return src->n_experts *
               (align_up(n, align) + align_up(davit_pack_map_bytes(slot, src), align));
    }
    if (slot->access == DAVIT_ACCESS_DECODE)
        return src->n_experts *
               align_up(src->n_rows * slot->n_cols * davit_decoded_value_bytes(slot),
                        align);
    for (uint32_t p = 0; p < d->n_parts; p++) {
        const uint64_t row_bytes = d->parts[p].row_bytes;

        n += align_up(row_bytes ? row_bytes * src->n_rows
                                : davit_part_bytes(draft->plan, src->module, p),
                      align);
    }
    return src->n_experts * n;
}

static DavitWay way_of(const DavitDraft *draft, const DavitSlot *slot)
{
    if (slot->access == DAVIT_ACCESS_BORROW)
        return DAVIT_WAY_BORROW;
    return slot->access == DAVIT_ACCESS_COPY && slot->perm_heads == 0 && on_cpu(draft) &&
                   draft->options->access != DAVIT_ACCESS_FORCE_STREAM
               ? DAVIT_WAY_DIRECT
               : DAVIT_WAY_STREAM;
}

void davit_layout_set(const DavitDraft *draft, DavitSlot *slot,
                      const DavitLayoutOption *option)
{
    const uint64_t align = davit_draft_device(draft)->align;
    const bool borrowed = option->access == DAVIT_ACCESS_BORROW;
    const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;
    uint64_t stored = 0, own = 0, made = 0; /* of a source */

    slot->access = option->access;
    slot->layout = option->layout;
    slot->pack = option->pack;
    slot->pack_self = option->pack_self;
    slot->reason = option->reason;
    slot->way = way_of(draft, slot);
    slot->borrowed_bytes = slot->private_bytes = slot->read_bytes = slot->made_bytes = 0;
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *src = &slot->sources[s];

        if (s == 0 || !is_like_last(slot, s) || !rows_tell_bytes(src->module, turned)) {
            stored = stored_bytes(draft, src, turned);
            own = borrowed ? 0 : own_bytes(draft, slot, src, align);
            made = borrowed ? 0 : own_bytes(draft, slot, src, 1);
        }
        *(borrowed ? &slot->borrowed_bytes : &slot->read_bytes) += stored;
        slot->private_bytes += own;
        slot->made_bytes += made;
    }
}
