/* SPDX-License-Identifier: Apache-2.0
 * Where the rows of a weight lie. */
#include "ref.h"

/* Segments are ascending in (expert, row) and cover all rows: the last that starts at or
 * before the row has it. */
static const davit_segment *segment_of(const davit_weight *w, uint64_t expert, uint64_t row)
{
    uint64_t lo = 0, hi = w->n_segments;

    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const davit_segment *s = &w->segments[mid];
        if (s->expert < expert || (s->expert == expert && s->row <= row))
            lo = mid;
        else
            hi = mid;
    }
    return &w->segments[lo];
}

const uint8_t *davit_ref_weight_row(const davit_weight *w, const davit_ref_layout *layout,
                                    uint64_t expert, uint64_t row)
{
    const davit_segment *s = segment_of(w, expert, row);
    const uint64_t bytes =
        s->row_bytes[0] ? s->row_bytes[0] : davit_ref_row_bytes(layout, w->n_cols);
    return s->part[0] + (row - s->row) * bytes;
}

void davit_ref_weight_decode(const davit_weight *w, const davit_ref_layout *layout,
                             uint64_t expert, uint64_t row, float *out)
{
    const uint8_t *src = davit_ref_weight_row(w, layout, expert, row);
    layout->decode(src, w->n_cols / layout->block_elems, out);
}

const float *davit_ref_weight_vector(const davit_weight *w)
{
    return w ? (const float *)(const void *)w->segments[0].part[0] : NULL;
}
