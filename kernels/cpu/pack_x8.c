/* SPDX-License-Identifier: Apache-2.0
 * Records of the packed layouts "cpu.<stored>_x8/1": groups of eight rows, each exactly
 * the size of its stored rows (linear_rows.h). Baseline code. The packer needs AVX2, and
 * so does every entry that takes these layouts, so no plan asks for one where it cannot
 * run.
 */
#include "linear_fast.h"
#include "linear_rows.h"

static uint64_t group_bytes(const char *packed, uint64_t n_cols)
{
    const cpu_layout *layout = cpu_layout_find(packed);

    return n_cols % layout->block_elems
               ? 0
               : n_cols / layout->block_elems * layout->block_bytes * CPU_GROUP;
}

/* Rows past the segment's end repeat the last one; nobody reads their results. */
static void pack_group(const char *packed, const davit_weight *weight,
                       const davit_segment *src, uint64_t n_rows, uint8_t *dst)
{
    const cpu_layout *layout = cpu_layout_find(packed);
    const uint64_t n_blocks = weight->n_cols / layout->block_elems;
    const uint64_t step =
        src->row_bytes[0] ? src->row_bytes[0] : n_blocks * layout->block_bytes;
    const uint8_t *row[CPU_GROUP];

    for (uint64_t r = 0; r < CPU_GROUP; r++)
        row[r] = src->part[0] + (r < n_rows ? r : n_rows - 1) * step;
    layout->interleave(dst, row, (size_t)n_blocks);
}

/* The two functions of one record know their layout by name only. */
#define X8_FUNCTIONS(bytes_fn, pack_fn, packed)                                          \
    static uint64_t bytes_fn(void *self, uint64_t n_cols, const uint64_t params[8])      \
    {                                                                                    \
        (void)self;                                                                      \
        (void)params;                                                                    \
        return group_bytes(packed, n_cols);                                              \
    }                                                                                    \
    static void pack_fn(void *self, const davit_weight *weight,                          \
                        const davit_segment *src, const davit_quant_out *decoded,        \
                        uint64_t n_rows, uint8_t *dst)                                   \
    {                                                                                    \
        (void)self;                                                                      \
        (void)decoded;                                                                   \
        pack_group(packed, weight, src, n_rows, dst);                                    \
    }

X8_FUNCTIONS(q4_0_bytes, q4_0_pack, "cpu.q4_0_x8/1")
X8_FUNCTIONS(q4_1_bytes, q4_1_pack, "cpu.q4_1_x8/1")
X8_FUNCTIONS(q5_0_bytes, q5_0_pack, "cpu.q5_0_x8/1")
X8_FUNCTIONS(q5_1_bytes, q5_1_pack, "cpu.q5_1_x8/1")
X8_FUNCTIONS(q8_0_bytes, q8_0_pack, "cpu.q8_0_x8/1")
X8_FUNCTIONS(q2_k_bytes, q2_k_pack, "cpu.q2_k_x8/1")
X8_FUNCTIONS(q3_k_bytes, q3_k_pack, "cpu.q3_k_x8/1")
X8_FUNCTIONS(q4_k_bytes, q4_k_pack, "cpu.q4_k_x8/1")
X8_FUNCTIONS(q5_k_bytes, q5_k_pack, "cpu.q5_k_x8/1")
X8_FUNCTIONS(q6_k_bytes, q6_k_pack, "cpu.q6_k_x8/1")

#define X8_PACK(stored, packed, bytes_fn, pack_fn)                                       \
    {                                                                                    \
        .struct_size = DAVIT_END(davit_pack, pack), .layout = packed, .from = stored,    \
        .row_block = CPU_GROUP, .block_bytes = bytes_fn, .pack = pack_fn                 \
    }

const davit_pack cpu_pack_x8[CPU_N_PACKS] = {
    X8_PACK("q4_0/1", "cpu.q4_0_x8/1", q4_0_bytes, q4_0_pack),
    X8_PACK("q4_1/1", "cpu.q4_1_x8/1", q4_1_bytes, q4_1_pack),
    X8_PACK("q5_0/1", "cpu.q5_0_x8/1", q5_0_bytes, q5_0_pack),
    X8_PACK("q5_1/1", "cpu.q5_1_x8/1", q5_1_bytes, q5_1_pack),
    X8_PACK("q8_0/1", "cpu.q8_0_x8/1", q8_0_bytes, q8_0_pack),
    X8_PACK("q2_k/1", "cpu.q2_k_x8/1", q2_k_bytes, q2_k_pack),
    X8_PACK("q3_k/1", "cpu.q3_k_x8/1", q3_k_bytes, q3_k_pack),
    X8_PACK("q4_k/1", "cpu.q4_k_x8/1", q4_k_bytes, q4_k_pack),
    X8_PACK("q5_k/1", "cpu.q5_k_x8/1", q5_k_bytes, q5_k_pack),
    X8_PACK("q6_k/1", "cpu.q6_k_x8/1", q6_k_bytes, q6_k_pack),
};
