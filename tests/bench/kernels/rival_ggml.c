/* SPDX-License-Identifier: Apache-2.0 */
#include "rival.h"

#include <string.h>

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <glib.h>

struct BenchRival {
    struct ggml_context *ctx, *w_ctx;
    ggml_backend_t backend;
    ggml_backend_buffer_t w_buffer, buffer;
    struct ggml_cgraph *graph;
    struct ggml_tensor *last;
};

static int type_of(const char *layout)
{
    static const struct {
        const char *name;
        int type;
    } types[] = {
        {"f32/1", GGML_TYPE_F32},   {"f16/1", GGML_TYPE_F16},
        {"bf16/1", GGML_TYPE_BF16}, {"q4_0/1", GGML_TYPE_Q4_0},
        {"q4_1/1", GGML_TYPE_Q4_1}, {"q5_0/1", GGML_TYPE_Q5_0},
        {"q5_1/1", GGML_TYPE_Q5_1}, {"q8_0/1", GGML_TYPE_Q8_0},
        {"q2_k/1", GGML_TYPE_Q2_K}, {"q3_k/1", GGML_TYPE_Q3_K},
        {"q4_k/1", GGML_TYPE_Q4_K}, {"q5_k/1", GGML_TYPE_Q5_K},
        {"q6_k/1", GGML_TYPE_Q6_K},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        if (strcmp(types[i].name, layout) == 0)
            return types[i].type;
    return -1;
}

/* The CPU's extra buffer type that repacks, or NULL. */
static ggml_backend_buffer_type_t repack_type(void)
{
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_get_extra_bufts_t get;
    ggml_backend_buffer_type_t *list;
    void *address = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev),
                                                      "ggml_backend_dev_get_extra_bufts");

    memcpy(&get, &address, sizeof get);
    if (!get)
        return NULL;
    for (list = get(dev); list && *list; list++)
        if (strstr(ggml_backend_buft_name(*list), "REPACK"))
            return *list;
    return NULL;
}

static void no_log(enum ggml_log_level level, const char *text, void *data)
{
    (void)level, (void)text, (void)data;
}

BenchRival *bench_rival_new(const char *layout, const uint8_t *rows, uint64_t n_rows,
                            uint64_t n_cols, const float *x, uint64_t n_tokens,
                            unsigned n_copies, unsigned n_threads, int repack)
{
    const int type = type_of(layout);
    const struct ggml_init_params params = {
        .mem_size = (n_copies * 4 + 16) * ggml_tensor_overhead() + ggml_graph_overhead(),
        .no_alloc = true};
    ggml_backend_buffer_type_t buft =
        repack ? repack_type() : ggml_backend_cpu_buffer_type();
    BenchRival *rival;
    struct ggml_tensor *xt;

    if (type < 0 || !buft)
        return NULL;
    ggml_log_set(no_log, NULL);
    rival = g_new0(BenchRival, 1);
    rival->ctx = ggml_init(params);
    rival->w_ctx = ggml_init(params);
    rival->backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(rival->backend, (int)n_threads);
    rival->graph = ggml_new_graph(rival->ctx);
    xt =
        ggml_new_tensor_2d(rival->ctx, GGML_TYPE_F32, (int64_t)n_cols, (int64_t)n_tokens);
    for (unsigned i = 0; i < n_copies; i++)
        ggml_new_tensor_2d(rival->w_ctx, (enum ggml_type)type, (int64_t)n_cols,
                           (int64_t)n_rows);
    rival->w_buffer = ggml_backend_alloc_ctx_tensors_from_buft(rival->w_ctx, buft);
    if (repack &&
        !ggml_get_first_tensor(rival->w_ctx)->extra) { /* it has no packing for it */
        bench_rival_free(rival);
        return NULL;
    }
    for (struct ggml_tensor *w = ggml_get_first_tensor(rival->w_ctx); w;
         w = ggml_get_next_tensor(rival->w_ctx, w)) {
        ggml_backend_tensor_set(w, rows, 0, ggml_nbytes(w));
        rival->last = ggml_mul_mat(rival->ctx, w, xt);
        ggml_build_forward_expand(rival->graph, rival->last);
    }
    rival->buffer = ggml_backend_alloc_ctx_tensors(rival->ctx, rival->backend);
    ggml_backend_tensor_set(xt, x, 0, ggml_nbytes(xt));
    if (!ggml_backend_supports_op(rival->backend, rival->last)) {
        bench_rival_free(rival);
        return NULL;
    }
    return rival;
}

void bench_rival_run(BenchRival *rival)
{
    ggml_backend_graph_compute(rival->backend, rival->graph);
}

const float *bench_rival_output(const BenchRival *rival)
{
    return rival->last->data;
}

void bench_rival_free(BenchRival *rival)
{
    if (!rival)
        return;
    ggml_backend_buffer_free(rival->w_buffer);
    if (rival->buffer)
        ggml_backend_buffer_free(rival->buffer);
    ggml_backend_free(rival->backend);
    ggml_free(rival->ctx);
    ggml_free(rival->w_ctx);
    g_free(rival);
}
