/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rig.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"

#define GUARD 64
#define GUARD_BYTE 0xa5

typedef struct Buffer {
    uint8_t *base; /* GUARD bytes, n_bytes, GUARD bytes; allocation is 64-aligned */
    uint8_t *data;
    size_t n_bytes;
} Buffer;

static const davit_component *component_of(const char *name)
{
    g_autofree char *path = g_build_filename(DAVIT_PLUGIN_DIR, name, NULL);
    const char *other = g_getenv("DAVIT_TEST_KERNELS"); /* another build of the plugin */
    void *so = dlopen(other ? other : path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const davit_hello hello = {.struct_size = DAVIT_END(davit_hello, host_version)};
    davit_entry_v1_fn entry = NULL;
    void *symbol;

    if (!so)
        g_error("%s", dlerror());
    symbol = dlsym(so, "davit_plugin_entry_v1");
    memcpy(&entry, &symbol, sizeof entry);
    return entry(&hello, NULL)->components[0];
}

static uint64_t cpu_features(void *ctx)
{
    (void)ctx;
    return davit_cpu_features();
}

static const void *suite(void *ctx, const char *name, uint32_t major, uint32_t min_minor)
{
    static const davit_cpu_suite cpu = {.struct_size = DAVIT_END(davit_cpu_suite, features),
                                        .features = cpu_features};
    (void)ctx;
    (void)major;
    (void)min_minor;
    return strcmp(name, "cpu") == 0 ? &cpu : NULL;
}

void *rig_instance(const char *name)
{
    static const davit_host host = {.struct_size = DAVIT_END(davit_host, suite), .suite = suite};
    const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component), .host = &host};
    const davit_component *component = component_of(name);
    static void *self; /* one for all tests */

    if (!self && component->create)
        g_assert_cmpint(component->create(NULL, &in, &self, NULL), ==, DAVIT_OK);
    return self;
}

const davit_kernels_iface *rig_plugin(const char *name)
{
    return component_of(name)->iface;
}

bool rig_can_run(const davit_kernel_entry *entry)
{
    if ((entry->cpu & ~davit_cpu_features()) == 0)
        return true;
    g_test_message("skipped: %s needs CPU features that are not here", entry->name);
    return false;
}

bool rig_takes(const Rig *rig, const davit_kernel_entry *entry)
{
    g_auto(GStrv) layouts = g_strsplit(entry->layouts ? entry->layouts : "", "|", 0);

    for (uint32_t i = 0; i < rig->call.n_weights; i++) {
        const davit_weight *w = rig->call.weight[i];

        if (w && w->n_cols > 1 && !g_strv_contains((const char *const *)layouts, w->layout))
            return false;
    }
    return true;
}

static void buffer_free(void *p)
{
    Buffer *b = p;

    g_aligned_free(b->base);
    g_free(b);
}

Rig *rig_new(const char *op, const void *attr)
{
    Rig *rig = g_new0(Rig, 1);
    const guint32 seed = g_test_rand_int_range(1, G_MAXINT32);

    rig->rand = g_rand_new_with_seed(seed);
    g_test_message("%s: seed %u", op, seed);
    rig->buffers = g_ptr_array_new_with_free_func(buffer_free);
    rig->call = (davit_call){
        .struct_size = DAVIT_END(davit_call, weight), .op = op, .attr = attr, .batch = &rig->batch};
    return rig;
}

void rig_free(Rig *rig)
{
    if (!rig)
        return;
    rig_check_guards(rig);
    g_ptr_array_unref(rig->buffers);
    g_rand_free(rig->rand);
    g_free(rig);
}

void *rig_memory(Rig *rig, size_t n_bytes, size_t shift)
{
    Buffer *b = g_new0(Buffer, 1);

    b->base = g_aligned_alloc(1, GUARD + shift + n_bytes + GUARD, 64);
    memset(b->base, GUARD_BYTE, GUARD + shift + n_bytes + GUARD);
    b->data = b->base + GUARD + shift;
    b->n_bytes = n_bytes;
    g_ptr_array_add(rig->buffers, b);
    return b->data;
}

void rig_check_guards(const Rig *rig)
{
    for (guint i = 0; i < rig->buffers->len; i++) {
        const Buffer *b = g_ptr_array_index(rig->buffers, i);
        for (const uint8_t *p = b->base; p < b->data; p++)
            g_assert_cmphex(*p, ==, GUARD_BYTE);
        for (size_t g = 0; g < GUARD; g++)
            g_assert_cmphex(b->data[b->n_bytes + g], ==, GUARD_BYTE);
    }
}

float rig_normal(Rig *rig)
{
    double sum = -6.0;

    for (int i = 0; i < 12; i++)
        sum += g_rand_double(rig->rand);
    return (float)sum;
}

uint64_t rig_between(Rig *rig, uint64_t lo, uint64_t hi)
{
    return lo + (uint64_t)g_rand_int_range(rig->rand, 0, (gint32)(hi - lo + 1));
}

static davit_value *new_value(Rig *rig, davit_value *v, uint64_t rows, uint64_t width)
{
    *v = (davit_value){.data = rig_memory(rig, rows * width * sizeof(float), 0),
                       .n_rows = rows,
                       .width = width,
                       .dtype = "f32/1"};
    return v;
}

float *rig_in(Rig *rig, uint64_t rows, uint64_t width, float scale)
{
    davit_value *v = new_value(rig, &rig->call.in[rig->call.n_in++], rows, width);
    float *data = v->data;

    for (uint64_t i = 0; i < rows * width; i++)
        data[i] = scale * rig_normal(rig);
    return data;
}

void rig_on_grid(Rig *rig, uint32_t i)
{
    const davit_value *v = &rig->call.in[i];
    float *x = v->data;

    g_assert_cmpuint(v->width % 32, ==, 0);
    for (uint64_t k = 0; k < v->n_rows * v->width; k++) /* the first of a block is the largest */
        x[k] = k % 32 == 0 ? copysignf(127.0f / 64, x[k])
                           : CLAMP(rintf(x[k] * 64), -127.0f, 127.0f) / 64;
}

float *rig_out(Rig *rig, uint64_t rows, uint64_t width)
{
    davit_value *v = new_value(rig, &rig->call.out[rig->call.n_out++], rows, width);
    float *data = v->data;

    for (uint64_t i = 0; i < rows * width; i++)
        data[i] = NAN;
    return data;
}

void rig_in_place(Rig *rig, uint32_t i)
{
    rig->call.out[rig->call.n_out++] = rig->call.in[i];
}

static davit_weight *new_weight(Rig *rig, uint32_t slot, const char *layout, uint64_t E,
                                uint64_t N, uint64_t K)
{
    davit_weight *w = &rig->weights[slot];

    *w = (davit_weight){.layout = layout, .n_experts = E, .n_rows = N, .n_cols = K};
    rig->call.weight[slot] = w;
    rig->call.n_weights = MAX(rig->call.n_weights, slot + 1);
    return w;
}

float *rig_vector(Rig *rig, uint32_t slot, uint64_t n)
{
    davit_weight *w = new_weight(rig, slot, "f32/1", 1, n, 1);
    davit_segment *s = rig_memory(rig, sizeof *s, 0);
    float *data = rig_memory(rig, n * sizeof *data, 0);

    for (uint64_t i = 0; i < n; i++)
        data[i] = 1.0f + 0.3f * rig_normal(rig);
    *s = (davit_segment){.n_rows = n, .n_parts = 1, .part = {(uint8_t *)data}, .row_bytes = {4}};
    w->n_segments = 1;
    w->segments = s;
    return data;
}

void rig_share(Rig *rig, uint32_t slot, uint32_t from)
{
    rig->weights[slot] = rig->weights[from];
    rig->call.weight[slot] = &rig->weights[slot];
    rig->call.n_weights = MAX(rig->call.n_weights, slot + 1);
}

static void random_plain(Rig *rig, const davit_ref_layout *layout, uint8_t *dst, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const float f = 0.1f * rig_normal(rig);
        uint32_t bits;
        uint16_t half;

        memcpy(&bits, &f, sizeof bits);
        half = strcmp(layout->name, "f16/1") == 0 ? davit_ref_f32_to_f16(f)
                                                  : (uint16_t)(bits >> 16);
        if (layout->block_bytes == 4)
            memcpy(dst + 4 * i, &f, 4);
        else
            memcpy(dst + 2 * i, &half, 2);
    }
}

static void random_blocks(Rig *rig, const davit_ref_layout *layout, uint8_t *dst, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, dst += layout->block_bytes) {
        for (uint32_t i = 0; i < layout->block_bytes; i++)
            dst[i] = (uint8_t)g_rand_int(rig->rand);
        for (int i = 0; i < 2 && layout->half_at[i] != UINT32_MAX; i++) {
            const uint16_t half = davit_ref_f32_to_f16(0.01f * rig_normal(rig));
            memcpy(dst + layout->half_at[i], &half, sizeof half);
        }
        if (strcmp(layout->name, "iq1_m/1") == 0) /* its scale: 2^-7 and more, finite */
            dst[55] = 0x20 | (dst[55] & 0x0f), dst[53] &= 0x0f;
    }
}

/* A matrix comes as segments of random length at odd addresses. */
void rig_matrix(Rig *rig, uint32_t slot, const char *layout_name, uint64_t E, uint64_t N,
                uint64_t K)
{
    const davit_ref_layout *layout = davit_ref_layout_find(layout_name);
    const uint64_t row_bytes = davit_ref_row_bytes(layout, K);
    davit_weight *w = new_weight(rig, slot, layout->name, E, N, K);
    davit_segment *segments = rig_memory(rig, E * N * sizeof *segments, 0);
    uint64_t n = 0;

    for (uint64_t e = 0; e < E; e++)
        for (uint64_t row = 0, rows; row < N; row += rows) {
            const uint64_t most = rig_between(rig, 1, N);
            rows = MIN(N - row, most);
            uint8_t *bytes = rig_memory(rig, rows * row_bytes, rig_between(rig, 0, 3) * 2 + 1);
            if (layout->block_elems == 1)
                random_plain(rig, layout, bytes, rows * K);
            else
                random_blocks(rig, layout, bytes, rows * K / layout->block_elems);
            segments[n++] = (davit_segment){.expert = e,
                                            .row = row,
                                            .n_rows = rows,
                                            .n_parts = 1,
                                            .part = {bytes},
                                            .row_bytes = {row_bytes}};
        }
    w->n_segments = n;
    w->segments = segments;
}

static int32_t *ints(Rig *rig, uint64_t n)
{
    return rig_memory(rig, n * sizeof(int32_t), 0);
}

void rig_batch(Rig *rig, uint64_t n_tokens, uint64_t start, uint64_t vocab)
{
    int32_t *token = ints(rig, n_tokens), *position = ints(rig, n_tokens);
    int32_t *seq = ints(rig, n_tokens), *query_start = ints(rig, 2), *ctx_len = ints(rig, 1);
    int32_t *rope_n = ints(rig, 1), *logit_row = ints(rig, n_tokens);

    for (uint64_t t = 0; t < n_tokens; t++) {
        token[t] = (int32_t)rig_between(rig, 0, vocab - 1);
        position[t] = (int32_t)(start + t);
        seq[t] = 0;
        logit_row[t] = (int32_t)(n_tokens - 1 - t);
    }
    query_start[0] = 0;
    query_start[1] = (int32_t)n_tokens;
    ctx_len[0] = rope_n[0] = (int32_t)(start + n_tokens);
    rig->batch = (davit_batch){.struct_size = DAVIT_END(davit_batch, tree_mask),
                               .n_tokens = n_tokens,
                               .n_seqs = 1,
                               .n_rows = n_tokens,
                               .block_tokens = 1,
                               .token = token,
                               .position = position,
                               .seq = seq,
                               .query_start = query_start,
                               .ctx_len = ctx_len,
                               .rope_n = rope_n,
                               .logit_row = logit_row};
}

static void run_phase(Rig *rig, const davit_kernel_entry *entry, uint32_t phase, uint64_t n,
                      RigSplit split)
{
    const uint64_t chunk = split.chunk ? split.chunk : MAX(n, 1);
    const uint64_t n_chunks = (n + chunk - 1) / chunk;

    for (uint64_t i = 0; i < n_chunks; i++) {
        const uint64_t first = (split.reverse ? n_chunks - 1 - i : i) * chunk;
        const uint32_t worker = (uint32_t)(i % MAX(split.workers, 1));
        entry->run(&rig->call, phase, first, MIN(chunk, n - first), worker, NULL);
    }
}

void rig_run(Rig *rig, const davit_kernel_entry *entry, RigSplit split, uint64_t ctx)
{
    const uint64_t T = rig->batch.n_tokens, R = rig->batch.n_rows;
    davit_work work = {.struct_size = DAVIT_END(davit_work, n_tasks), .n_phases = 1};
    const uint32_t workers = MAX(split.workers, 1);

    if (entry->check)
        g_assert_cmpint(entry->check(NULL, &rig->call, NULL), ==, DAVIT_OK);
    if (entry->size)
        entry->size(NULL, &rig->call, T, R, ctx, &work);
    else
        work.n_tasks[0] = rig->call.out[0].n_rows;
    rig->call.worker_bytes = (work.worker_bytes + 63) / 64 * 64;
    rig->call.scratch = rig_memory(rig, work.scratch_bytes, 0);
    rig->call.worker_scratch = rig_memory(rig, rig->call.worker_bytes * workers, 0);
    for (uint32_t phase = 0; phase < work.n_phases; phase++)
        run_phase(rig, entry, phase, work.n_tasks[phase], split);
    rig_check_guards(rig);
}

void rig_run_reference(Rig *rig)
{
    g_autofree void *work = g_malloc0(davit_ref_work_bytes(&rig->call) + 8);

    g_assert_cmpint(davit_ref_check(&rig->call, NULL), ==, DAVIT_OK);
    davit_ref_run(&rig->call, 0, davit_ref_rows(&rig->call), work);
}

uint64_t rig_count(const Rig *rig, uint32_t i)
{
    return rig->call.out[i].n_rows * rig->call.out[i].width;
}

float *rig_save(const Rig *rig, uint32_t i)
{
    return g_memdup2(rig->call.out[i].data, rig_count(rig, i) * sizeof(float));
}

void rig_compare(const char *what, const float *a, const float *b, uint64_t rows,
                 uint64_t width, double tol, double floor)
{
    for (uint64_t r = 0; r < rows; r++) {
        double largest = 0.0;
        for (uint64_t i = 0; i < width; i++)
            largest = MAX(largest, fabs((double)b[r * width + i]));
        for (uint64_t i = 0; i < width; i++) {
            const double x = (double)a[r * width + i], y = (double)b[r * width + i];
            if (!(fabs(x - y) <= tol * largest + floor))
                g_error("%s: row %" G_GUINT64_FORMAT ", column %" G_GUINT64_FORMAT
                        ": %.9g, reference %.9g, largest %.9g",
                        what, r, i, x, y, largest);
        }
    }
}

void rig_same(const char *what, const float *a, const float *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0)
            g_error("%s: value %" G_GUINT64_FORMAT ": %.9g and %.9g differ in bits", what, i,
                    (double)a[i], (double)b[i]);
}
