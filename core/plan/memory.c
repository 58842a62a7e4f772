/* SPDX-License-Identifier: Apache-2.0
 * First fit in order of first use: simple, and within a few percent of the live maximum for
 * the chain-like programs that models are. */
#include "plan/memory.h"

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

/* Values are 4 bytes wide in this version: f32/1 and i32/1. */
static uint64_t value_bytes(const DavitValue *value, uint64_t max_tokens, uint64_t max_rows,
                            uint64_t align)
{
    const uint64_t rows = value->rows == DAVIT_ROWS_R ? max_rows : max_tokens;
    uint64_t n;
    if (__builtin_mul_overflow(rows, value->width * 4, &n) || n > UINT64_MAX / 4)
        return 0;
    return align_up(n, align);
}

static bool overlap_in_time(const DavitValue *a, const DavitValue *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset at which value @v fits beside the earlier ones that live with it; what is of
 * another device has no size. */
static uint64_t first_fit(const DavitProgram *program, size_t v, const uint64_t *off,
                          const uint64_t *size)
{
    uint64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < v; i++) {
            if (size[i] == 0 || !overlap_in_time(&program->values[i], &program->values[v]))
                continue;
            if (at < off[i] + size[i] && off[i] < at + size[v]) {
                at = off[i] + size[i];
                moved = true;
            }
        }
    }
    return at;
}

uint64_t davit_memory_place(const DavitProgram *program, const DavitMemoryFor *what,
                            uint64_t *out_off)
{
    g_autofree uint64_t *size = g_new0(uint64_t, program->n_values);
    uint64_t total = 0;
    for (size_t v = 0; v < program->n_values; v++) {
        if (program->values[v].device != what->device)
            continue;
        size[v] =
            value_bytes(&program->values[v], what->max_tokens, what->max_rows, what->align);
        if (size[v] == 0)
            return UINT64_MAX;
        out_off[v] = first_fit(program, v, out_off, size);
        total = MAX(total, out_off[v] + size[v]);
        if (total > UINT64_MAX / 4)
            return UINT64_MAX;
    }
    return total;
}
