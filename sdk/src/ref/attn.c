/* SPDX-License-Identifier: Apache-2.0
 * kv_append/1 and attn/1 over the reference's own state: in each block, head after head, the
 * k rows and then the v rows of the block's tokens, in float32, float16 or E4M3. */
#include <davit/help/quant.h>

#include "ref.h"

static uint64_t element_bytes(const davit_state_spec *spec)
{
    return strcmp(spec->dtype, "f16/1") == 0 ? 2 : strcmp(spec->dtype, "f8_e4m3/1") == 0 ? 1 : 4;
}

static int is_known(const char *dtype)
{
    return strcmp(dtype, "f32/1") == 0 || strcmp(dtype, "f16/1") == 0 ||
           strcmp(dtype, "f8_e4m3/1") == 0;
}

/* The product of all four and 4 bytes fits 64 bits; no model is near it. */
#define MAX_EXTENT (1u << 20)

static int fits(const davit_state_spec *spec, uint64_t block_tokens)
{
    return spec->n_heads > 0 && spec->n_heads <= MAX_EXTENT && spec->k_dim > 0 &&
           spec->k_dim <= MAX_EXTENT && spec->v_dim > 0 && spec->v_dim <= MAX_EXTENT &&
           block_tokens > 0 && block_tokens <= MAX_EXTENT;
}

uint64_t davit_ref_state_size(const davit_state_spec *spec, uint64_t block_tokens,
                              const davit_sink *sink)
{
    if (spec->kind == DAVIT_STATE_KV && fits(spec, block_tokens) && is_known(spec->dtype)) {
        const uint64_t bytes =
            spec->n_heads * (spec->k_dim + spec->v_dim) * block_tokens * element_bytes(spec);
        return (bytes + 63) / 64 * 64;
    }
    if (sink)
        sink->refuse(sink->ctx, &(davit_refusal){
                                    .struct_size = DAVIT_END(davit_refusal, url),
                                    .code = DAVIT_R_OP_MISSING,
                                    .subject = "state",
                                    .expected = "kind kv, dtype f32/1, f16/1 or f8_e4m3/1, extents from 1 to 2^20",
                                    .found = spec->dtype,
                                    .message = "this state is not supported",
                                });
    return 0;
}

uint64_t davit_ref_token_index(const davit_batch *batch, uint64_t t)
{
    const int32_t s = batch->seq[t];
    const int32_t end = batch->query_start[s + 1];
    return (uint64_t)(batch->ctx_len[s] - (end - (int32_t)t));
}

int32_t davit_ref_visible(const davit_batch *batch, uint64_t t, uint64_t key, uint64_t window)
{
    const uint64_t start = (uint64_t)batch->query_start[batch->seq[t]];
    const uint64_t query = davit_ref_token_index(batch, t);
    const uint64_t step_first = query - (t - start); /* index of the step's first token */

    if (window > 0 && query >= window && key <= query - window)
        return 0;
    if (batch->tree_mask && key >= step_first)
        return batch->tree_mask[t * batch->n_tokens + start + (key - step_first)] != 0;
    return key <= query;
}

/* Address of the k row (or v row) of token @index, head @h of sequence @s. */
static uint8_t *row_at(const davit_call *call, uint64_t s, uint64_t index, uint64_t h, int is_v)
{
    const davit_batch *batch = call->batch;
    const davit_state_spec *spec = call->state->spec;
    const uint64_t bt = batch->block_tokens;
    const int32_t block = batch->block_table[s * batch->max_blocks + index / bt];
    const uint64_t head = h * bt * (spec->k_dim + spec->v_dim);
    const uint64_t row = is_v ? bt * spec->k_dim + index % bt * spec->v_dim
                              : index % bt * spec->k_dim;

    return call->state->base + (uint64_t)block * call->state->block_bytes +
           (head + row) * element_bytes(spec);
}

static float scale_of(const davit_state_spec *spec, uint64_t h, int is_v)
{
    const float *each = is_v ? spec->v_scales : spec->k_scales;

    return ref_or_one(each ? each[h] : is_v ? spec->v_scale : spec->k_scale);
}

/* @scale of f8_e4m3. */
static void store(const davit_state_spec *spec, float scale, uint8_t *dst, const float *src,
                  uint64_t n)
{
    if (element_bytes(spec) == 4) {
        memcpy(dst, src, n * sizeof *src);
        return;
    }
    for (uint64_t i = 0; i < n && element_bytes(spec) == 1; i++)
        dst[i] = davit_ref_f32_to_e4m3(src[i] / scale);
    for (uint64_t i = 0; i < n && element_bytes(spec) == 2; i++) {
        const uint16_t half = davit_ref_f32_to_f16(src[i]);
        memcpy(dst + 2 * i, &half, sizeof half);
    }
}

static double load(const davit_state_spec *spec, float scale, const uint8_t *src, uint64_t i)
{
    float f;

    if (element_bytes(spec) == 1)
        return (double)(davit_q_e4m3(src[i]) * scale);
    if (element_bytes(spec) == 2)
        return (double)ref_half_at(src + 2 * i);
    memcpy(&f, src + 4 * i, sizeof f);
    return (double)f;
}

void ref_kv_append(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_state_spec *spec = call->state->spec;
    (void)work;

    for (uint64_t t = first; t < first + count; t++) {
        const uint64_t s = (uint64_t)call->batch->seq[t];
        const uint64_t index = davit_ref_token_index(call->batch, t);
        for (uint64_t h = 0; h < spec->n_heads; h++) {
            store(spec, scale_of(spec, h, 0), row_at(call, s, index, h, 0),
                  ref_in(call, 0, t) + h * spec->k_dim, spec->k_dim);
            store(spec, scale_of(spec, h, 1), row_at(call, s, index, h, 1),
                  ref_in(call, 1, t) + h * spec->v_dim, spec->v_dim);
        }
    }
}

static double score(const davit_call *call, const float *q, uint64_t s, uint64_t key, uint64_t h)
{
    const davit_attn_attr *a = call->attr;
    const davit_state_spec *spec = call->state->spec;
    const uint8_t *k = row_at(call, s, key, h, 0);
    double dot = 0.0;

    for (uint64_t d = 0; d < a->k_dim; d++)
        dot += (double)q[d] * load(spec, scale_of(spec, h, 0), k, d);
    dot *= (double)a->scale;
    return a->softcap > 0.0f ? (double)a->softcap * tanh(dot / (double)a->softcap) : dot;
}

/* One head of one token. @acc: v_dim doubles. */
static void attend(const davit_call *call, uint64_t t, uint64_t head, double *acc)
{
    const davit_attn_attr *a = call->attr;
    const davit_state_spec *spec = call->state->spec;
    const uint64_t s = (uint64_t)call->batch->seq[t];
    const uint64_t n_keys = (uint64_t)call->batch->ctx_len[s];
    const uint64_t h = head * a->n_kv_heads / a->n_heads;
    const float *q = ref_in(call, 0, t) + head * a->k_dim;
    const float *sinks = davit_ref_weight_vector(call->weight[0]);
    float *o = ref_out(call, 0, t) + head * a->v_dim;
    double max = sinks ? (double)sinks[head] : -INFINITY;

    for (uint64_t key = 0; key < n_keys; key++)
        if (davit_ref_visible(call->batch, t, key, a->window))
            max = fmax(max, score(call, q, s, key, h));

    double sum = sinks ? exp((double)sinks[head] - max) : 0.0;
    memset(acc, 0, a->v_dim * sizeof *acc);
    for (uint64_t key = 0; key < n_keys; key++) {
        if (!davit_ref_visible(call->batch, t, key, a->window))
            continue;
        const double p = exp(score(call, q, s, key, h) - max);
        const uint8_t *v = row_at(call, s, key, h, 1);
        sum += p;
        for (uint64_t d = 0; d < a->v_dim; d++)
            acc[d] += p * load(spec, scale_of(spec, h, 1), v, d);
    }
    for (uint64_t d = 0; d < a->v_dim; d++)
        o[d] = (float)(acc[d] / sum);
}

void ref_attn(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_attn_attr *a = call->attr;

    for (uint64_t t = first; t < first + count; t++)
        for (uint64_t head = 0; head < a->n_heads; head++)
            attend(call, t, head, work);
}
