/* SPDX-License-Identifier: Apache-2.0
 * Pieces, chunks and the window. A piece is what one thread takes as work; a chunk is what
 * its lane memory holds. Rows that lie one after another are read in chunks; parts whose rows
 * do not are read whole, once. */
#include "plan/piece.h"

#include <string.h>

#include "plan/layout.h"
#include "plan/part.h"

#define PIECE_BYTES    (8ull << 20)   /* written by a piece: small enough for progress */
#define CHUNK_MOST     (4ull << 20)   /* where cold reads past the cache stop gaining */
#define CHUNK_LEAST    (64ull << 10)  /* below, system calls cost more than bytes */
#define DEFAULT_WINDOW (256ull << 20)
#define LANE_ALIGN     64u
#define SCRATCH_TAKES  (DAVIT_MAX_PARTS + 2) /* most blocks of scratch at one time */
#define LEAST_LANES    4u /* on few CPUs too: a disk gives more to several that wait */
#define DECODE_BYTES (512ull << 10) /* of decoded codes: about what a core's own cache holds */
#define DECODE_ROWS  128u /* of 4 bits side by side: a line of the cache */
#define DECODE_LEAST 32u  /* a quarter of it */
#define READ_ROOM      (DAVIT_READ_SLACK + DAVIT_DIRECT_ALIGN) /* and to start aligned */

bool davit_part_by_row(const DavitSlot *slot, const DavitModule *module, size_t part)
{
    return module->desc->parts[part].row_bytes &&
           !(slot->value_ops & DAVIT_VALUE_TRANSPOSE);
}

uint64_t davit_decoded_value_bytes(const DavitSlot *slot)
{
    return slot->layout && strcmp(slot->layout, "f32/1") != 0 ? 2 : 4;
}

/* ---- ranges ---- */

static void add_read(GArray *reads, const DavitRead *read)
{
    DavitRead *last =
        reads->len ? &g_array_index(reads, DavitRead, reads->len - 1) : NULL;

    if (last && last->file == read->file && last->part == read->part &&
        last->n_runs == 1 && read->n_runs == 1 && last->tensor == read->tensor &&
        last->off + last->n_bytes == read->off)
        last->n_bytes += read->n_bytes;
    else
        g_array_append_val(reads, *read);
}

/* Bytes [pos, pos + n) of a part: whole runs that lie at one distance are one read. */
static void add_range(const DavitPlan *plan, const DavitModule *module, uint32_t part,
                      uint64_t pos, uint64_t n, GArray *reads)
{
    const davit_tensor_info *t = davit_part_tensor(plan, module, part);
    const davit_quant_range *r = module->cut ? &module->cut->ranges[part] : NULL;

    while (n > 0) {
        DavitRead read = {.tensor =
                              module->tensor[module->desc->parts[part].index],
                          .part = part,
                          .file = t->file,
                          .n_runs = 1};

        read.off = davit_part_off(plan, module, part, pos, &read.n_bytes);
        read.n_bytes = MIN(read.n_bytes, n);
        if (r && r->n_runs > 1 && read.n_bytes == r->n_bytes) {
            read.n_runs = MIN(n / r->n_bytes, r->n_runs - pos / r->n_bytes % r->n_runs);
            read.stride = r->stride;
        }
        add_read(reads, &read);
        pos += read.n_bytes * read.n_runs;
        n -= read.n_bytes * read.n_runs;
    }
}

void davit_reads_of(const DavitPlan *plan, const DavitSlot *slot,
                    const DavitSlotSource *source, GArray *reads)
{
    const DavitModule *module = source->module;
    const davit_quant_desc *d = module->desc;

    for (uint32_t p = 0; p < d->n_parts; p++) {
        const uint64_t row_bytes = d->parts[p].row_bytes;

        if (!davit_part_by_row(slot, module, p)) {
            add_range(plan, module, p, 0, davit_part_bytes(plan, module, p), reads);
            continue;
        }
        for (uint64_t e = source->expert; e < source->expert + source->n_experts; e++)
            add_range(plan, module, p, (e * d->n_rows + source->row) * row_bytes,
                      source->n_rows * row_bytes, reads);
    }
}

/* ---- pieces ---- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t align_up(uint64_t n)
{
    return round_up(n, LANE_ALIGN);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Rows that are not separated: row blocks of a pack, whole heads when rows are re-ordered.
 */
static uint64_t unit_rows(const DavitSlot *slot, const DavitSlotSource *source)
{
    const uint64_t block = slot->access == DAVIT_ACCESS_PACK ? slot->pack->row_block : 1;
    const uint64_t head = slot->perm_heads ? slot->n_rows / slot->perm_heads : 1;
    const uint64_t unit = head / gcd(head, block) * block;

    return MIN(unit, source->n_rows);
}

/* @n rows rounded down to units, at least one unit, at most all. */
static uint64_t whole_units(uint64_t n, uint64_t unit, uint64_t all)
{
    return MIN(MAX(n / unit * unit, unit), all);
}

/* Bytes written per row. */
static uint64_t out_row_bytes(const DavitSlot *slot, const DavitSlotSource *source)
{
    const davit_quant_desc *d = source->module->desc;
    uint64_t n = 0;

    if (slot->access == DAVIT_ACCESS_DECODE)
        return slot->n_cols * davit_decoded_value_bytes(slot);
    if (slot->access == DAVIT_ACCESS_PACK)
        return davit_pack_block_bytes(slot, source) / slot->pack->row_block + 1;
    for (uint32_t p = 0; p < d->n_parts; p++)
        n += d->parts[p].row_bytes;
    return n;
}

uint64_t davit_decode_rows(const DavitSlot *slot, const DavitSlotSource *source)
{
    const uint64_t block = slot->pack->row_block;
    const uint64_t n_cols = davit_pack_cols(slot, source);
    uint64_t n = block;

    if (source->module->desc->parts[0].row_bytes || slot->perm_heads ||
        !davit_pack_groups(slot, source))
        return block;
    while (2 * n <= DECODE_ROWS && (2 * n <= DECODE_LEAST || 2 * n * n_cols <= DECODE_BYTES))
        n *= 2;
    return n;
}

static uint64_t scratch_of(const DavitSlot *slot, const DavitSlotSource *source,
                           uint64_t in_row, const DavitPiece *piece)
{
    const uint64_t value_row = slot->n_cols * sizeof(float);
    uint64_t n = 0;

    if (slot->value_ops & DAVIT_VALUE_TRANSPOSE)
        n = piece->chunk_rows * value_row;
    else if (slot->access == DAVIT_ACCESS_PACK && davit_pack_groups(slot, source))
        /* codes, scales, zeros, column map, factors */
        n = davit_decode_rows(slot, source) *
                (davit_pack_cols(slot, source) +
                 2 * davit_pack_groups(slot, source) * sizeof(float)) +
            davit_pack_cols(slot, source) * sizeof(uint32_t) +
            davit_pack_factor_bytes(slot, source);
    else if (slot->access == DAVIT_ACCESS_PACK &&
             !davit_pack_from_stored(slot->pack, slot))
        n = slot->pack->row_block * value_row;
    else if (slot->access == DAVIT_ACCESS_PACK && slot->perm_heads)
        n = slot->pack->row_block * in_row;
    if (slot->access == DAVIT_ACCESS_DECODE && davit_decoded_value_bytes(slot) != 4)
        n += value_row;
    if (slot->device != DAVIT_ON_HOST) { /* a copy that waits for its upload */
        n = align_up(n) + piece->chunk_rows * out_row_bytes(slot, source);
        if (slot->access == DAVIT_ACCESS_PACK)
            n += davit_pack_block_bytes(slot, source) + davit_pack_map_bytes(slot, source);
    }
    return n ? n + SCRATCH_TAKES * LANE_ALIGN : 0;
}

void davit_piece_of(const DavitPlan *plan, const DavitSlot *slot,
                    const DavitSlotSource *source, uint64_t target, DavitPiece *out)
{
    const davit_quant_desc *d = source->module->desc;
    const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;
    const uint64_t unit = unit_rows(slot, source);
    const uint64_t out_row = MAX(out_row_bytes(slot, source), 1);
    uint64_t in_row = 0, whole = 0, n_by_row = 0;

    for (uint32_t p = 0; p < d->n_parts; p++) {
        if (davit_part_by_row(slot, source->module, p)) {
            in_row += d->parts[p].row_bytes;
            n_by_row++;
        } else {
            whole += align_up(davit_part_bytes(plan, source->module, p)) + READ_ROOM;
        }
    }
    out->rows = whole ? source->n_rows
                      : whole_units(PIECE_BYTES / out_row, unit, source->n_rows);
    if (slot->way == DAVIT_WAY_DIRECT) {
        /* parts lie one after another in memory, so several make one piece */
        out->rows = d->n_parts == 1 ? out->rows : source->n_rows;
        *out = (DavitPiece){.rows = out->rows,
                            .chunk_rows = out->rows,
                            .stage_bytes = MIN(target, out->rows * in_row) + READ_ROOM};
        return;
    }
    if (slot->access == DAVIT_ACCESS_COPY && d->n_parts > 1)
        out->rows = source->n_rows;
    out->chunk_rows =
        whole_units(target / (turned ? slot->n_cols * sizeof(float) : MAX(in_row, 1)),
                    unit, out->rows);
    /* each part starts aligned */
    out->stage_bytes =
        whole + out->chunk_rows * in_row + n_by_row * (READ_ROOM + LANE_ALIGN);
    out->scratch_bytes = scratch_of(slot, source, in_row, out);
}

uint64_t davit_piece_target(uint64_t window_limit, unsigned n_lanes)
{
    const uint64_t share = window_limit / (4ull * MAX(n_lanes, 1));

    return CLAMP(share, CHUNK_LEAST, CHUNK_MOST);
}

/* ---- window ---- */

static bool is_private(const DavitSlot *slot)
{
    return slot->present && slot->used && slot->tied_to < 0 &&
           slot->access != DAVIT_ACCESS_BORROW;
}

/* Most lane memory that a slot needs; *out_slot = which. */
static uint64_t lane_need(const DavitPlan *plan, uint64_t target, int32_t *out_slot)
{
    uint64_t most = 0;

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        for (size_t s = 0; is_private(slot) && s < slot->n_sources; s++) {
            DavitPiece piece;
            uint64_t n;

            /* most sources in a row are alike: experts of one slot */
            if (s > 0 && slot->sources[s].n_rows == slot->sources[s - 1].n_rows &&
                slot->sources[s].module->desc->layout ==
                    slot->sources[s - 1].module->desc->layout &&
                memcmp(&slot->sources[s].module->desc->codes,
                       &slot->sources[s - 1].module->desc->codes,
                       sizeof(davit_quant_codes)) == 0)
                continue;
            davit_piece_of(plan, slot, &slot->sources[s], target, &piece);
            n = align_up(piece.stage_bytes) + align_up(piece.scratch_bytes);
            if (n > most) {
                most = n;
                *out_slot = (int32_t)i;
            }
        }
    }
    return most;
}

static bool any_private(const DavitPlan *plan)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (is_private(&plan->slots[i]))
            return true;
    }
    return false;
}

static void find_peak_slot(DavitPlan *plan)
{
    uint64_t most = 0;

    plan->peak_slot = -1;
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (plan->slots[i].private_bytes > most) {
            most = plan->slots[i].private_bytes;
            plan->peak_slot = (int32_t)i;
        }
    }
}

void davit_plan_window(DavitPlan *plan, uint64_t window_limit, unsigned n_lanes)
{
    unsigned lanes = n_lanes ? n_lanes : CLAMP(g_get_num_processors(), LEAST_LANES, 16);

    plan->window_limit = window_limit ? window_limit : DEFAULT_WINDOW;
    plan->lane_slot = -1;
    plan->n_lanes = 0;
    if (any_private(plan)) {
        const uint64_t target = davit_piece_target(plan->window_limit, lanes);

        plan->lane_bytes =
            round_up(lane_need(plan, target, &plan->lane_slot), DAVIT_DIRECT_ALIGN);
        while (lanes > 1 && lanes * plan->lane_bytes > plan->window_limit)
            lanes--;
        plan->n_lanes = lanes;
        plan->chunk_bytes = target;
    }
    plan->window_bytes = plan->n_lanes * plan->lane_bytes;
    plan->stack_bytes = (uint64_t)plan->n_lanes * DAVIT_LANE_STACK;
    find_peak_slot(plan);
    plan->peak_bytes = plan->devices[DAVIT_ON_HOST].private_bytes + plan->constant_bytes +
                       plan->window_bytes + plan->stack_bytes;
}
