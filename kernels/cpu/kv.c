/* SPDX-License-Identifier: Apache-2.0
 * State of attention: its size, and kv_append/1. One task is one token. */
#include "kv.h"

#include <davit/help/records.h>
#include <davit/help/ref.h>

/* The product of all four and 4 bytes fits 64 bits; no model is near it. */
#define MAX_EXTENT (1u << 20)

static int fits(const davit_state_spec *spec, uint64_t block_tokens)
{
    return spec->n_heads > 0 && spec->n_heads <= MAX_EXTENT && spec->k_dim > 0 &&
           spec->k_dim <= MAX_EXTENT && spec->v_dim > 0 && spec->v_dim <= MAX_EXTENT &&
           block_tokens > 0 && block_tokens <= MAX_EXTENT;
}

uint64_t cpu_state_size(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                        const davit_sink *sink)
{
    (void)self;
    if (spec->kind == DAVIT_STATE_KV && fits(spec, block_tokens) &&
        (strcmp(spec->dtype, "f32/1") == 0 || strcmp(spec->dtype, "f16/1") == 0 ||
         strcmp(spec->dtype, "f8_e4m3/1") == 0)) {
        const uint64_t head = kv_key_elems(spec, block_tokens) + block_tokens * spec->v_dim;
        return cpu_round_up(spec->n_heads * head * kv_elem_bytes(spec), 64);
    }
    davit_say(sink, DAVIT_E_UNSUPPORTED,
              &(davit_refusal){
                  .code = DAVIT_R_OP_MISSING,
                  .subject = "state",
                  .expected = "kind kv, stored as f32/1, f16/1 or f8_e4m3/1, extents from 1 to 2^20",
                  .found = spec->dtype,
                  .message = "the CPU kernels do not keep this state",
              });
    return 0;
}

/* @n values to elements @stride apart; @scale of f8_e4m3. */
static void store(const kv_view *kv, uint8_t *dst, uint64_t stride, const float *src, uint64_t n,
                  float scale)
{
    for (uint64_t i = 0; i < n; i++) {
        if (kv->elem_bytes == 1) {
            dst[i * stride] = davit_ref_f32_to_e4m3(src[i] / scale);
        } else if (kv->elem_bytes == 4) {
            memcpy(dst + i * stride * 4, src + i, 4);
        } else {
            const uint16_t half = davit_ref_f32_to_f16(src[i]);
            memcpy(dst + i * stride * 2, &half, 2);
        }
    }
}

static void kv_append_run(const davit_call *call, uint32_t phase, uint64_t first,
                          uint64_t count, uint32_t worker, void *queue)
{
    (void)phase;
    (void)worker;
    (void)queue;
    for (uint64_t t = first; t < first + count; t++) {
        const kv_view kv = kv_view_of(call, (uint64_t)call->batch->seq[t]);
        const uint64_t index = davit_ref_token_index(call->batch, t);
        const float *k = cpu_in(call, 0, t), *v = cpu_in(call, 1, t);

        for (uint64_t h = 0; h < call->state->spec->n_heads; h++) {
            store(&kv, kv_key(&kv, index, h), kv.tile, k + h * kv.k_dim, kv.k_dim,
                  kv_key_scale(&kv, h));
            store(&kv, kv_value(&kv, index, h), 1, v + h * kv.v_dim, kv.v_dim,
                  kv_value_scale(&kv, h));
        }
    }
}

void cpu_kv_append_size(void *self, const davit_call *call, uint64_t n_tokens,
                        uint64_t n_rows, uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)call;
    (void)n_rows;
    (void)ctx;
    out->n_phases = 1;
    out->n_tasks[0] = n_tokens;
}

const davit_kernel_entry cpu_kv_append_scalar = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_KV_APPEND,
    .name = "kv_append scalar",
    .attr_size = DAVIT_END(davit_none_attr, struct_size),
    .score = 100,
    .check = cpu_check,
    .size = cpu_kv_append_size,
    .run = kv_append_run,
};
