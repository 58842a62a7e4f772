/* SPDX-License-Identifier: Apache-2.0
 * Chunks of a piece: read, make, put. */
#include "exec/make.h"

/* ---- where made bytes go ---- */

/* Memory to make @n_bytes in that belong at @off of the slot. */
uint8_t *davit_lane_target(DavitLane *lane, uint64_t off, uint64_t n_bytes)
{
    return lane->base ? lane->base + off : davit_lane_take(lane, n_bytes);
}

int32_t davit_lane_put(DavitLane *lane, const DavitItem *item, uint64_t off, const uint8_t *bytes,
                   uint64_t n_bytes)
{
    if (lane->base)
        return DAVIT_OK;
    const int64_t start = g_get_monotonic_time();
    const int32_t status = lane->upload(lane->ctx, item, off, bytes, n_bytes);
    lane->stats.upload_seconds += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    if (!status)
        lane->stats.uploaded_bytes += n_bytes;
    return status;
}

/* ---- a piece ---- */

static int32_t make_chunk(DavitLane *lane, const DavitItem *item, DavitStage *stage, uint64_t segment,
                          uint64_t expert, uint64_t row, uint64_t n_rows)
{
    int32_t status = davit_stage_rows(lane, item, expert, row, n_rows, stage);
    if (!status)
        status = davit_stage_verify(lane, item, stage, expert, row, n_rows);
    if (status)
        return status;
    switch (item->slot->access) {
    case DAVIT_ACCESS_COPY:
        return davit_make_copied(lane, item, stage, segment, expert, row, n_rows);
    case DAVIT_ACCESS_PACK:
        return davit_make_packed(lane, item, stage, segment, expert, row, n_rows);
    case DAVIT_ACCESS_DECODE:
        return davit_make_decoded(lane, item, stage, segment, expert, row, n_rows);
    case DAVIT_ACCESS_BORROW:
        break;
    }
    return DAVIT_OK;
}

int32_t davit_lane_make(DavitLane *lane, const DavitItem *item)
{
    DavitStage stage = {0};
    if (item->slot->way == DAVIT_WAY_DIRECT)
        return davit_make_direct(lane, item, item->dst_off);
    int32_t status = davit_stage_whole(lane, item, &stage);
    for (uint64_t e = 0; !status && e < item->n_experts; e++) {
        const uint64_t segment = item->dst_off + e * item->dst_stride;
        for (uint64_t r = 0; !status && r < item->n_rows; r += item->chunk_rows)
            status = make_chunk(lane, item, &stage, segment, item->expert + e, item->row + r,
                                MIN(item->chunk_rows, item->n_rows - r));
    }
    return status;
}
