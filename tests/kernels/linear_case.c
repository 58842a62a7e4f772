/* SPDX-License-Identifier: Apache-2.0 */
#include "linear_case.h"

#include <dlfcn.h>
#include <string.h>

#include <glib.h>

#include <davit/suites.h>

const davit_kernels_iface *linear_case_kernels(void)
{
    static const davit_kernels_iface *iface;
    const char *name = g_getenv("DAVIT_TEST_KERNELS"); /* another build of the plugin */
    void *file;
    davit_entry_v1_fn enter = NULL;
    void *symbol;

    if (iface)
        return iface;
    file = dlopen(name ? name : DAVIT_PLUGIN_DIR "/davit-kernels-cpu.so", RTLD_NOW | RTLD_LOCAL);
    g_assert_nonnull(file);
    symbol = dlsym(file, "davit_plugin_entry_v1");
    g_assert_nonnull(symbol);
    memcpy(&enter, &symbol, sizeof enter);
    iface = enter(NULL, NULL)->components[0]->iface;
    return iface;
}

const davit_kernel_entry *linear_case_entry(const char *name)
{
    const davit_kernel_entry *const *entry = linear_case_kernels()->entries;

    for (; *entry; entry++)
        if (strcmp((*entry)->name, name) == 0)
            return *entry;
    return NULL;
}

const davit_pack *linear_case_pack(const char *from)
{
    const davit_pack *const *pack = linear_case_kernels()->packs;

    for (; *pack; pack++)
        if ((*pack)->from && strcmp((*pack)->from, from) == 0)
            return *pack;
    return NULL;
}

uint64_t linear_case_features(void)
{
    uint64_t bits = 0;

    if (__builtin_cpu_supports("avx2"))
        bits |= DAVIT_CPU_SSE42 | DAVIT_CPU_AVX | DAVIT_CPU_AVX2;
    if (__builtin_cpu_supports("fma"))
        bits |= DAVIT_CPU_FMA | DAVIT_CPU_F16C; /* every processor with FMA3 has both */
    if (__builtin_cpu_supports("avx512f"))
        bits |= DAVIT_CPU_AVX512F;
    if (__builtin_cpu_supports("avx512bw"))
        bits |= DAVIT_CPU_AVX512BW;
    if (__builtin_cpu_supports("avx512dq"))
        bits |= DAVIT_CPU_AVX512DQ;
    if (__builtin_cpu_supports("avx512vl"))
        bits |= DAVIT_CPU_AVX512VL;
    if (__builtin_cpu_supports("avx512vnni"))
        bits |= DAVIT_CPU_AVX512VNNI;
    return bits;
}

/* ---- random data ---- */

static float random_float(float size)
{
    return (float)g_test_rand_double_range(-1.0, 1.0) * size;
}

static void put_half(uint8_t *p, float value)
{
    const uint16_t h = davit_ref_f32_to_f16(value);

    memcpy(p, &h, sizeof h);
}

static void fill_plain(const davit_ref_layout *layout, uint8_t *row, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const float v = random_float(2.0f);
        uint32_t bits;

        memcpy(&bits, &v, sizeof bits);
        bits >>= strcmp(layout->name, "bf16/1") == 0 ? 16 : 0;
        if (strcmp(layout->name, "f16/1") == 0)
            bits = davit_ref_f32_to_f16(v);
        memcpy(row + i * layout->block_bytes, &bits, layout->block_bytes);
    }
}

static void fill_row(const davit_ref_layout *layout, uint8_t *row, uint64_t n_blocks,
                     CaseFill fill, uint64_t n)
{
    if (layout->block_elems == 1) {
        fill_plain(layout, row, n_blocks);
        return;
    }
    for (uint64_t b = 0; b < n_blocks; b++, row += layout->block_bytes) {
        for (uint32_t i = 0; i < layout->block_bytes; i++) {
            row[i] = (uint8_t)g_test_rand_int();
            if (fill == CASE_EXTREME)
                row[i] = n % 3 == 0 ? 0xff : n % 3 == 1 ? 0x00 : 0x80;
        }
        for (int h = 0; h < 2; h++)
            if (layout->half_at[h] != UINT32_MAX)
                put_half(row + layout->half_at[h], random_float(h ? 0.02f : 0.05f));
        if (layout->half_at[0] == UINT32_MAX) /* iq1_m: the top of its float16, finite */
            row[layout->block_bytes - 1] = 0x20 | (row[layout->block_bytes - 1] & 0x0f);
    }
}

static void fill_x(LinearCase *c, CaseFill fill)
{
    for (uint64_t i = 0; i < c->n_tokens * c->n_cols; i++) {
        const uint64_t t = i / c->n_cols;

        c->x[i] = random_float(t % 5 == 4 ? 1e-3f : 3.0f);
        if (fill == CASE_EXTREME) /* every q is 127 or -127 */
            c->x[i] = t % 3 == 2 && i % 2 ? -1.0f : t % 3 == 1 ? -1.0f : 1.0f;
    }
}

LinearCase *linear_case_new(const davit_ref_layout *layout, uint64_t n_rows,
                            uint64_t n_cols, uint64_t n_tokens, uint64_t row_pad,
                            CaseFill fill)
{
    LinearCase *c = g_new0(LinearCase, 1);
    const uint64_t row_bytes = davit_ref_row_bytes(layout, n_cols);

    c->layout = layout;
    c->n_rows = n_rows;
    c->n_cols = n_cols;
    c->n_tokens = n_tokens;
    c->row_bytes = row_bytes + row_pad;
    c->attr.struct_size = DAVIT_END(davit_linear_attr, flags);
    /* exact size: a kernel that reads past the last row is found by the sanitizer */
    c->rows = g_malloc0((n_rows - 1) * c->row_bytes + row_bytes);
    for (uint64_t n = 0; n < n_rows; n++)
        fill_row(layout, c->rows + n * c->row_bytes, n_cols / layout->block_elems, fill,
                 n);
    c->x = g_new(float, n_tokens *n_cols);
    fill_x(c, fill);
    linear_case_cut(c, NULL, 0);
    return c;
}

void linear_case_free(LinearCase *c)
{
    if (!c)
        return;
    g_free(c->rows);
    g_free(c->x);
    g_free(c->bias);
    g_free(c->packed);
    g_free(c);
}

void linear_case_cut(LinearCase *c, const uint64_t *at, uint64_t n_cuts)
{
    c->n_segments = n_cuts + 1;
    g_assert_cmpuint(c->n_segments, <=, CASE_MAX_SEGMENTS);
    for (uint64_t i = 0; i < c->n_segments; i++) {
        const uint64_t row = i ? at[i - 1] : 0, end = i < n_cuts ? at[i] : c->n_rows;

        c->segments[i] = (davit_segment){
            .row = row,
            .n_rows = end - row,
            .n_parts = 1,
            .part = {c->rows + row * c->row_bytes},
            .row_bytes = {c->row_bytes},
        };
    }
}

static davit_weight stored_weight(const LinearCase *c)
{
    return (davit_weight){
        .layout = c->layout->name,
        .n_experts = 1,
        .n_rows = c->n_rows,
        .n_cols = c->n_cols,
        .n_segments = c->n_segments,
        .segments = c->segments,
    };
}

static uint64_t packed_bytes(const davit_pack *pack, const davit_segment *s,
                             uint64_t n_cols)
{
    const uint64_t block = pack->block_bytes(NULL, n_cols, (const uint64_t[8]){0});

    return (s->n_rows + pack->row_block - 1) / pack->row_block * block;
}

void linear_case_pack_all(LinearCase *c, const davit_pack *pack)
{
    const davit_weight weight = stored_weight(c);
    const uint64_t block = pack->block_bytes(NULL, c->n_cols, (const uint64_t[8]){0});
    uint64_t total = 0;
    uint8_t *dst;

    for (uint64_t i = 0; i < c->n_segments; i++)
        total += packed_bytes(pack, &c->segments[i], c->n_cols);
    g_free(c->packed);
    c->packed = dst = g_malloc0(total);
    c->packed_layout = pack->layout;
    for (uint64_t i = 0; i < c->n_segments; i++)
        for (uint64_t r = 0; r < c->segments[i].n_rows;
             r += pack->row_block, dst += block) {
            davit_segment src = c->segments[i];

            src.row += r;
            src.part[0] += r * c->row_bytes;
            src.n_rows = MIN(pack->row_block, c->segments[i].n_rows - r);
            pack->pack(NULL, &weight, &src, NULL, src.n_rows, dst);
        }
}

/* ---- one call ---- */

/* Memory with guard bytes before and behind, aligned to 64. */
static void *guarded_new(CaseCall *call, int i, size_t n_bytes)
{
    call->memory_bytes[i] = n_bytes;
    call->memory[i] = g_malloc(n_bytes + 3 * CASE_GUARD);
    memset(call->memory[i], 0xa5, n_bytes + 3 * CASE_GUARD);
    return call->memory[i] + 2 * CASE_GUARD - (uintptr_t)call->memory[i] % CASE_GUARD;
}

static void guarded_free(uint8_t *base, size_t n_bytes)
{
    const uint8_t *data = base + 2 * CASE_GUARD - (uintptr_t)base % CASE_GUARD;

    for (size_t i = 0; i < CASE_GUARD; i++) {
        g_assert_cmphex(data[-1 - (ptrdiff_t)i], ==, 0xa5);
        g_assert_cmphex(data[n_bytes + i], ==, 0xa5);
    }
    g_free(base);
}

static void run_tasks(const davit_call *call, const davit_kernel_entry *entry,
                      const davit_work *work, const CaseRun *run)
{
    for (uint32_t phase = 0; phase < work->n_phases; phase++) {
        const uint64_t n = work->n_tasks[phase], chunk = run->chunk ? run->chunk : n;
        const uint64_t n_chunks = (n + chunk - 1) / chunk;

        for (uint64_t i = 0; i < n_chunks; i++) {
            const uint64_t k = run->backwards ? n_chunks - 1 - i : i;

            entry->run(call, phase, k * chunk, MIN(chunk, n - k * chunk),
                       (uint32_t)(i % CASE_WORKERS), NULL);
        }
    }
}

static void packed_segments(const LinearCase *c, davit_segment out[CASE_MAX_SEGMENTS])
{
    const davit_pack *pack = linear_case_pack(c->layout->name);
    const uint8_t *at = c->packed;

    for (uint64_t i = 0; i < c->n_segments; i++) {
        out[i] = c->segments[i];
        out[i].part[0] = at;
        out[i].row_bytes[0] = 0;
        at += packed_bytes(pack, &c->segments[i], c->n_cols);
    }
}

void linear_case_prepare(const LinearCase *c, const davit_kernel_entry *entry,
                         const CaseRun *run, CaseCall *out)
{
    davit_call *call = &out->call;

    *out = (CaseCall){
        .entry = entry,
        .work = {.struct_size = sizeof out->work},
        .weight = stored_weight(c),
        .bias = {.layout = "f32/1",
                 .n_experts = 1,
                 .n_rows = c->n_rows,
                 .n_cols = 1,
                 .n_segments = 1,
                 .segments = &out->bias_segment},
        .bias_segment = {.n_rows = c->n_rows, .n_parts = 1, .part = {(uint8_t *)c->bias}},
    };
    *call = (davit_call){
        .struct_size = sizeof *call,
        .op = DAVIT_OP_LINEAR,
        .attr = &c->attr,
        .n_in = 1,
        .n_out = 1,
        .n_weights = 2,
        .in = {{NULL, 0, c->n_cols, "f32/1"}},
        .out = {{NULL, 0, c->n_rows, "f32/1"}},
        .weight = {&out->weight, c->bias ? &out->bias : NULL},
    };
    if (run->use_packed) {
        packed_segments(c, out->segments);
        out->weight.layout = c->packed_layout;
        out->weight.segments = out->segments;
    }
    g_assert_cmpint(entry->check(NULL, call, NULL), ==, DAVIT_OK);
    entry->size(NULL, call, run->n_tokens, 1, 1, &out->work);
    call->worker_bytes = out->work.worker_bytes;
    call->in[0].data = c->x + run->first_token * c->n_cols;
    call->in[0].n_rows = call->out[0].n_rows = run->n_tokens;
    call->out[0].data = guarded_new(out, 0, run->n_tokens * c->n_rows * sizeof(float));
    call->scratch = guarded_new(out, 1, out->work.scratch_bytes);
    call->worker_scratch = guarded_new(out, 2, out->work.worker_bytes * CASE_WORKERS);
}

void linear_case_finish(CaseCall *call)
{
    for (int i = 0; i < 3; i++)
        guarded_free(call->memory[i], call->memory_bytes[i]);
}

void linear_case_run(const LinearCase *c, const davit_kernel_entry *entry,
                     const CaseRun *run, float *y)
{
    const size_t y_bytes = run->n_tokens * c->n_rows * sizeof *y;
    CaseCall call;

    linear_case_prepare(c, entry, run, &call);
    memcpy(call.call.out[0].data, y, y_bytes);
    run_tasks(&call.call, entry, &call.work, run);
    memcpy(y, call.call.out[0].data, y_bytes);
    linear_case_finish(&call);
}
