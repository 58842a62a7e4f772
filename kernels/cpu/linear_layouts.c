/* SPDX-License-Identifier: Apache-2.0
 * Table of the layouts that the AVX2 group kernels know, and the walk over the rows of a
 * weight: eight rows from any segments, stored or packed. Baseline code, no intrinsics.
 */
#include "linear_layouts.h"

#include "cpu.h"

#include <string.h>

#include <davit/help/ref.h>

#define LAYOUT(id, elems, bytes)                                                          \
    {                                                                                     \
        .stored = #id "/1", .packed = "cpu." #id "_x8/1", .block_elems = elems,           \
        .block_bytes = bytes, .interleave = cpu_pack_##id,                                \
        .dot = {[CPU_STEP_AVX2] = cpu_dot_##id,                                           \
                [CPU_STEP_AVX_VNNI] = CPU_AVX_VNNI_DOT(cpu_dot_##id),                          \
                [CPU_STEP_AVX512_VNNI] = cpu_dot_##id##_vnni_avx512},                     \
        .dequant = cpu_dequant_##id                                                       \
    }

#define ROWS(id, elems, bytes, planes)                                                    \
    {                                                                                     \
        .stored = #id "/1", .block_elems = elems, .block_bytes = bytes,                   \
        .dequant = cpu_dequant_##id, .one_plane = planes == 1, .rows = cpu_rows_##id      \
    }

static const cpu_layout layouts[] = {
    LAYOUT(q4_k, 256, 144),
    LAYOUT(q6_k, 256, 210),
    LAYOUT(q8_0, 32, 34),
    LAYOUT(q4_0, 32, 18),
    LAYOUT(q4_1, 32, 20),
    LAYOUT(q5_0, 32, 22),
    LAYOUT(q5_1, 32, 24),
    LAYOUT(q5_k, 256, 176),
    LAYOUT(q2_k, 256, 84),
    LAYOUT(q3_k, 256, 110),
    ROWS(iq4_xs, 256, 136, 2),
    ROWS(iq3_s, 256, 110, 2),
    ROWS(iq3_xxs, 256, 98, 2),
    ROWS(iq2_s, 256, 82, 1),
    ROWS(iq2_xs, 256, 74, 1),
    ROWS(iq2_xxs, 256, 66, 1),
    ROWS(iq1_m, 256, 56, 1),
    ROWS(iq1_s, 256, 50, 1),
    ROWS(tq1_0, 256, 54, 1),
    ROWS(q1_0, 128, 18, 1),
};

const cpu_layout *cpu_layout_find(const char *name)
{
    const int packed = strncmp(name, "cpu.", 4) == 0;

    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const char *known = packed ? layouts[i].packed : layouts[i].stored;

        if (known && strcmp(known, name) == 0)
            return &layouts[i];
    }
    return NULL;
}

#define BLOCKS(id, elems) {#id "/1", elems, cpu_dequant_##id}

const cpu_blocks *cpu_blocks_find(const char *stored)
{
    static const cpu_blocks blocks[] = {
        BLOCKS(q4_0, 32),     BLOCKS(q4_1, 32),     BLOCKS(q5_0, 32),    BLOCKS(q5_1, 32),
        BLOCKS(q8_0, 32),     BLOCKS(q2_k, 256),    BLOCKS(q3_k, 256),   BLOCKS(q4_k, 256),
        BLOCKS(q5_k, 256),    BLOCKS(q6_k, 256),    BLOCKS(iq1_s, 256),  BLOCKS(iq1_m, 256),
        BLOCKS(iq2_xxs, 256), BLOCKS(iq2_xs, 256),  BLOCKS(iq2_s, 256),  BLOCKS(iq3_xxs, 256),
        BLOCKS(iq3_s, 256),   BLOCKS(iq4_xs, 256),  BLOCKS(tq1_0, 256),  BLOCKS(q1_0, 128),
    };

    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (strcmp(blocks[i].stored, stored) == 0)
            return &blocks[i];
    return NULL;
}

const davit_segment *cpu_segment_find(const davit_weight *weight, uint64_t expert,
                                      uint64_t row)
{
    uint64_t lo = 0, hi = weight->n_segments;

    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const davit_segment *s = &weight->segments[mid];

        if (s->expert < expert || (s->expert == expert && s->row <= row))
            lo = mid;
        else
            hi = mid;
    }
    return &weight->segments[lo];
}

/* A run of inputs of one group, n_blocks of them from block @first on. */
typedef struct chunk {
    size_t first, n_blocks;
} chunk;

/* Fills *out with the next run; returns 0 at the end. */
static int next_chunk(const cpu_layout *layout, size_t n_blocks, chunk *out)
{
    const size_t most = CPU_CHUNK / layout->block_elems;

    out->first += out->n_blocks;
    out->n_blocks = n_blocks - out->first < most ? n_blocks - out->first : most;
    return out->n_blocks > 0;
}

/* Interleave a chunk and ask for the same of the next group meanwhile: eight short runs
 * of stored rows are too little for the processor to notice the stream. Where rows lie
 * apart, or at the end, the requests go nowhere and do no harm. */
static void interleave_ahead(uint8_t *dst, const cpu_layout *layout,
                             const uint8_t *const rows[CPU_GROUP], const uint8_t *next,
                             const chunk *c)
{
    const size_t step = layout->block_elems == CPU_XBLOCK ? 8 : 1;
    const size_t step_bytes = step * layout->block_bytes;
    const uint8_t *row[CPU_GROUP];

    for (int r = 0; r < CPU_GROUP; r++)
        row[r] = rows[r] + c->first * layout->block_bytes;
    next += c->first * layout->block_bytes * CPU_GROUP;
    for (size_t b = 0; b < c->n_blocks; b += step) {
        for (size_t i = 0; i < step_bytes * CPU_GROUP; i += 64)
            __builtin_prefetch(next + i);
        layout->interleave(dst, row, c->n_blocks - b < step ? c->n_blocks - b : step);
        next += step_bytes * CPU_GROUP;
        dst += step_bytes * CPU_GROUP;
        for (int r = 0; r < CPU_GROUP; r++)
            row[r] += step_bytes;
    }
}

/* Rows that do not exist repeat the last one; their results are dropped. */
static void dot_stored(float *out, const cpu_layout *layout, const davit_weight *weight,
                       uint64_t expert, uint64_t row0, uint64_t n_rows,
                       const cpu_xblock *x, size_t x_stride, size_t n_tokens, int step,
                       uint8_t *scratch)
{
    const size_t n_blocks = (size_t)(weight->n_cols / layout->block_elems);
    const davit_ref_layout *stored = davit_ref_layout_find(layout->stored);
    const uint8_t *row[CPU_GROUP], *next;
    chunk c = {0, 0};

    for (uint64_t r = 0; r < CPU_GROUP; r++)
        row[r] = r < n_rows ? davit_ref_weight_row(weight, stored, expert, row0 + r)
                            : row[r - 1];
    next = row[0] + n_blocks * layout->block_bytes * CPU_GROUP;
    while (next_chunk(layout, n_blocks, &c)) {
        interleave_ahead(scratch, layout, row, next, &c);
        layout->dot[step](out, scratch, c.n_blocks,
                    x + c.first * layout->block_elems / CPU_XBLOCK, x_stride, n_tokens,
                    c.first > 0);
    }
}

static void dot_group(float *out, const cpu_layout *layout, const uint8_t *group,
                      size_t n_blocks, const cpu_xblock *x, size_t x_stride,
                      size_t n_tokens, int step)
{
    chunk c = {0, 0};

    while (next_chunk(layout, n_blocks, &c))
        layout->dot[step](out, group + c.first * layout->block_bytes * CPU_GROUP, c.n_blocks,
                    x + c.first * layout->block_elems / CPU_XBLOCK, x_stride, n_tokens,
                    c.first > 0);
}

/* A packed group starts at every multiple of eight rows of its segment. Where segments
 * are cut elsewhere, the wanted rows are collected from several groups. */
static void dot_packed(float *out, const cpu_layout *layout, const davit_weight *weight,
                       uint64_t expert, uint64_t row0, uint64_t n_rows,
                       const cpu_xblock *x, size_t x_stride, size_t n_tokens, int step)
{
    const size_t n_blocks = (size_t)(weight->n_cols / layout->block_elems);
    const size_t group_bytes = n_blocks * layout->block_bytes * CPU_GROUP;
    uint64_t done = 0;

    while (done < n_rows) {
        const davit_segment *s = cpu_segment_find(weight, expert, row0 + done);
        const uint64_t rel = row0 + done - s->row;
        const uint64_t in_group = rel % CPU_GROUP;
        const uint8_t *group = s->part[0] + rel / CPU_GROUP * group_bytes;
        uint64_t take = CPU_GROUP - in_group;

        if (take > s->n_rows - rel)
            take = s->n_rows - rel;
        if (take > n_rows - done)
            take = n_rows - done;
        if (in_group == 0 && done == 0 && take == n_rows) {
            dot_group(out, layout, group, n_blocks, x, x_stride, n_tokens, step);
            return;
        }
        for (size_t t = 0; t < n_tokens; t++) {
            float part[CPU_GROUP];

            dot_group(part, layout, group, n_blocks, x + t * x_stride, x_stride, 1, step);
            memcpy(out + t * CPU_GROUP + done, part + in_group, take * sizeof *part);
        }
        done += take;
    }
}

static void dot_rows(float *out, const cpu_layout *layout, const davit_weight *weight,
                     uint64_t expert, uint64_t row0, uint64_t n_rows, const cpu_xblock *x,
                     size_t x_stride, size_t n_tokens)
{
    const davit_ref_layout *stored = davit_ref_layout_find(layout->stored);
    const uint8_t *row[CPU_GROUP];

    for (uint64_t r = 0; r < n_rows; r++)
        row[r] = davit_ref_weight_row(weight, stored, expert, row0 + r);
    layout->rows(out, row, (size_t)n_rows, (size_t)(weight->n_cols / layout->block_elems), x,
                 x_stride, n_tokens);
}

void cpu_rows_dot(float *out, const cpu_layout *layout, const davit_weight *weight,
                  uint64_t expert, uint64_t row0, uint64_t n_rows, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int step, uint8_t *scratch)
{
    if (layout->rows)
        dot_rows(out, layout, weight, expert, row0, n_rows, x, x_stride, n_tokens);
    else if (strncmp(weight->layout, "cpu.", 4) == 0)
        dot_packed(out, layout, weight, expert, row0, n_rows, x, x_stride, n_tokens, step);
    else
        dot_stored(out, layout, weight, expert, row0, n_rows, x, x_stride, n_tokens,
                   step, scratch);
}
