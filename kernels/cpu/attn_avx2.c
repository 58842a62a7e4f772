/* SPDX-License-Identifier: Apache-2.0
 * attn/1: how spans (attn_tile.h) are shared out and joined, AVX2.
 *
 * Many tokens: one phase; a task is a tile of up to ATTN_ROWS query rows of one key head, which
 * goes through its spans in ascending order. Few tokens: a task is one token, one key head (or
 * one head) and one span, whose result goes to the shared scratch; a second phase joins the
 * spans of each head, in ascending order. Both join with the same arithmetic, so that a token
 * has the same bits in either. */
#include <math.h>

#include <davit/help/ref.h>

#include "attn_tile.h"
#include "layers.h"
#include "vec_avx2.h"

#define SCRATCH_HEAD 16 /* floats before a span's values: max, sum */

/* ---- shapes ---- */

/* Heads that share a task, and tasks for all heads. */
typedef struct plan {
    uint64_t heads;        /* query heads of one task, all on one key head */
    uint64_t per_kv;       /* tasks of one key head */
    uint64_t units;        /* n_kv_heads * per_kv */
    uint64_t tokens;       /* of a tile */
} plan;

static plan plan_of(const davit_attn_attr *a, uint64_t max_heads)
{
    const uint64_t group = a->n_heads / a->n_kv_heads;
    plan p = {.heads = cpu_min(group, max_heads)};

    p.per_kv = cpu_ceil_div(group, p.heads);
    p.units = a->n_kv_heads * p.per_kv;
    p.tokens = ATTN_ROWS / p.heads;
    return p;
}

/* Few enough tokens that spans are shared out too. */
static int is_split(const davit_attn_attr *a, uint64_t n_tokens)
{
    return n_tokens * a->n_kv_heads <= CPU_ATTN_SPLIT;
}

static plan split_plan(const davit_attn_attr *a, uint64_t n_tokens)
{
    const uint64_t group = a->n_heads / a->n_kv_heads;
    /* one key head alone: two tasks at least */
    return plan_of(a, n_tokens * a->n_kv_heads == 1 ? cpu_ceil_div(group, 2) : ATTN_ROWS);
}

static uint64_t partial_floats(const davit_attn_attr *a)
{
    return SCRATCH_HEAD + attn_width(a->v_dim);
}

void cpu_attn_size_avx2(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    const davit_attn_attr *a = call->attr;
    const uint64_t n_spans = cpu_ceil_div(ctx > 0 ? ctx : 1, ATTN_SPAN);
    const uint64_t split_tokens = cpu_min(n_tokens, CPU_ATTN_SPLIT / a->n_kv_heads);
    (void)self;
    (void)n_rows;

    out->worker_bytes = attn_memory_bytes(a->k_dim, a->v_dim);
    out->scratch_bytes =
        n_spans * split_tokens * a->n_heads * partial_floats(a) * sizeof(float);
    if (is_split(a, n_tokens)) {
        out->n_phases = 2;
        out->n_tasks[0] = n_spans * n_tokens * split_plan(a, n_tokens).units;
        out->n_tasks[1] = n_tokens * a->n_heads;
        return;
    }
    const plan p = plan_of(a, ATTN_ROWS);
    out->n_phases = 1;
    out->n_tasks[0] = cpu_ceil_div(n_tokens, p.tokens) * p.units;
}

/* ---- rows ---- */

/* Tokens [t0, t1) of one sequence, heads [head, head + n_heads). */
static void rows_init(const davit_call *call, uint64_t t0, uint64_t t1, uint64_t head,
                      uint64_t n_heads, attn_rows *rows)
{
    const davit_attn_attr *a = call->attr;

    rows->n = 0;
    for (uint64_t t = t0; t < t1; t++) {
        const uint64_t seen = davit_ref_token_index(call->batch, t) + 1;
        for (uint64_t h = head; h < head + n_heads; h++) {
            const uint64_t r = rows->n++;
            rows->token[r] = t;
            rows->head[r] = h;
            rows->lo[r] = a->window > 0 && seen > a->window ? seen - a->window : 0;
            rows->hi[r] = call->batch->tree_mask
                              ? (uint64_t)call->batch->ctx_len[call->batch->seq[t]]
                              : seen;
        }
    }
}

static void load_queries(const davit_call *call, const attn_rows *rows, float *q)
{
    const davit_attn_attr *a = call->attr;

    for (uint64_t r = 0; r < rows->n; r++)
        memcpy(q + r * a->k_dim, cpu_in(call, 0, rows->token[r]) + rows->head[r] * a->k_dim,
               a->k_dim * sizeof *q);
}

/* Spans that some row sees: [*out_first, *out_end). */
static void spans_of(const attn_rows *rows, uint64_t *out_first, uint64_t *out_end)
{
    uint64_t lo = UINT64_MAX, hi = 0;

    for (uint64_t r = 0; r < rows->n; r++) {
        lo = cpu_min(lo, rows->lo[r]);
        hi = hi > rows->hi[r] ? hi : rows->hi[r];
    }
    *out_first = lo / ATTN_SPAN;
    *out_end = cpu_ceil_div(hi, ATTN_SPAN);
}

/* ---- joining ---- */

static float exp_of(float x)
{
    return _mm256_cvtss_f32(vec_exp(vec_set(x)));
}

/* y[D] = y * @keep + x * @take */
static void blend(float *y, float keep, const float *x, float take, uint64_t D)
{
    for (uint64_t d = 0; d < D; d += 8)
        _mm256_storeu_ps(y + d, _mm256_fmadd_ps(_mm256_loadu_ps(x + d), vec_set(take),
                                                _mm256_mul_ps(_mm256_loadu_ps(y + d),
                                                              vec_set(keep))));
}

/* Running maximum, sum and values of a row. */
typedef struct total {
    float max, sum;
    float *values; /* [D] */
} total;

static void join(total *to, float max, float sum, const float *values, uint64_t D)
{
    if (max == -INFINITY)
        return;
    if (to->max == -INFINITY) {
        memcpy(to->values, values, D * sizeof *values);
        to->max = max;
        to->sum = sum;
        return;
    }
    const float top = to->max > max ? to->max : max;
    const float keep = exp_of(to->max - top), take = exp_of(max - top);
    blend(to->values, keep, values, take, D);
    to->sum = to->sum * keep + sum * take;
    to->max = top;
}

/* The sink is one more logit without a value; then divide and write. */
static void finish(const davit_call *call, total *of, uint64_t t, uint64_t head)
{
    const davit_attn_attr *a = call->attr;
    const float *sinks = davit_ref_weight_vector(call->weight[0]);
    float *o = cpu_out(call, 0, t) + head * a->v_dim;
    float keep = 1.0f, sum = of->sum;

    if (sinks) {
        const float top = of->max > sinks[head] ? of->max : sinks[head];
        keep = exp_of(of->max - top);
        sum = sum * keep + exp_of(sinks[head] - top);
    }
    const __m256 factor = vec_set(keep / sum);
    for (uint64_t d = 0; d < a->v_dim; d += 8)
        vec_store(o + d, a->v_dim - d,
                  _mm256_mul_ps(_mm256_loadu_ps(of->values + d), factor));
}

/* ---- tasks ---- */

/* Tokens [t0, t1) of one sequence and one unit of heads, all spans. */
static void run_rows(const davit_call *call, uint64_t t0, uint64_t t1, uint64_t head,
                     uint64_t n_heads, attn_memory *m)
{
    const davit_attn_attr *a = call->attr;
    const uint64_t D = attn_width(a->v_dim), h = head * a->n_kv_heads / a->n_heads;
    const kv_view kv = kv_view_of(call, (uint64_t)call->batch->seq[t0]);
    total totals[ATTN_ROWS];
    attn_rows rows;
    uint64_t span, end;

    rows_init(call, t0, t1, head, n_heads, &rows);
    load_queries(call, &rows, m->q);
    for (uint64_t r = 0; r < rows.n; r++)
        totals[r] = (total){-INFINITY, 0.0f, m->sum + r * D};
    for (spans_of(&rows, &span, &end); span < end; span++) {
        cpu_attn_span_avx2(call, &kv, h, span, &rows, m);
        for (uint64_t r = 0; r < rows.n; r++)
            join(&totals[r], m->part_max[r], m->part_sum[r], m->part + r * D, D);
    }
    for (uint64_t r = 0; r < rows.n; r++)
        finish(call, &totals[r], rows.token[r], rows.head[r]);
}

/* First head of unit @u, and how many. */
static uint64_t unit_heads(const davit_attn_attr *a, const plan *p, uint64_t u, uint64_t *out_n)
{
    const uint64_t group = a->n_heads / a->n_kv_heads;
    const uint64_t first = u % p->per_kv * p->heads;

    *out_n = cpu_min(p->heads, group - first);
    return u / p->per_kv * group + first;
}

static void run_tile(const davit_call *call, uint64_t task, attn_memory *m)
{
    const davit_attn_attr *a = call->attr;
    const davit_batch *batch = call->batch;
    const plan p = plan_of(a, ATTN_ROWS);
    uint64_t n_heads, t = task / p.units * p.tokens;
    const uint64_t end = cpu_min(t + p.tokens, batch->n_tokens);
    const uint64_t head = unit_heads(a, &p, task % p.units, &n_heads);

    while (t < end) { /* a tile may hold the end of one sequence and the start of the next */
        uint64_t stop = t + 1;
        while (stop < end && batch->seq[stop] == batch->seq[t])
            stop++;
        run_rows(call, t, stop, head, n_heads, m);
        t = stop;
    }
}

static float *partial_of(const davit_call *call, uint64_t span, uint64_t t, uint64_t head)
{
    const davit_attn_attr *a = call->attr;
    const uint64_t at = (span * call->batch->n_tokens + t) * a->n_heads + head;
    return (float *)call->scratch + at * partial_floats(a);
}

static void run_part(const davit_call *call, uint64_t task, attn_memory *m)
{
    const davit_attn_attr *a = call->attr;
    const uint64_t T = call->batch->n_tokens, D = attn_width(a->v_dim);
    const plan p = split_plan(a, T);
    const uint64_t span = task / (T * p.units), t = task / p.units % T;
    uint64_t n_heads, first, end;
    const uint64_t head = unit_heads(a, &p, task % p.units, &n_heads);
    attn_rows rows;

    rows_init(call, t, t + 1, head, n_heads, &rows);
    spans_of(&rows, &first, &end);
    if (span < first || span >= end)
        return;
    const kv_view kv = kv_view_of(call, (uint64_t)call->batch->seq[t]);
    load_queries(call, &rows, m->q);
    cpu_attn_span_avx2(call, &kv, head * a->n_kv_heads / a->n_heads, span, &rows, m);
    for (uint64_t r = 0; r < rows.n; r++) {
        float *to = partial_of(call, span, t, rows.head[r]);
        to[0] = m->part_max[r];
        to[1] = m->part_sum[r];
        memcpy(to + SCRATCH_HEAD, m->part + r * D, D * sizeof *to);
    }
}

static void run_join(const davit_call *call, uint64_t task, attn_memory *m)
{
    const davit_attn_attr *a = call->attr;
    const uint64_t t = task / a->n_heads, head = task % a->n_heads;
    total sum = {-INFINITY, 0.0f, m->sum};
    uint64_t span, end;
    attn_rows rows;

    rows_init(call, t, t + 1, head, 1, &rows);
    for (spans_of(&rows, &span, &end); span < end; span++) {
        const float *from = partial_of(call, span, t, head);
        join(&sum, from[0], from[1], from + SCRATCH_HEAD, attn_width(a->v_dim));
    }
    finish(call, &sum, t, head);
}

void cpu_attn_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                   uint32_t worker, void *queue)
{
    const davit_attn_attr *a = call->attr;
    const int split = is_split(a, call->batch->n_tokens);
    attn_memory m;
    (void)queue;

    attn_memory_init(&m, cpu_worker(call, worker), a->k_dim, a->v_dim);
    for (uint64_t task = first; task < first + count; task++) {
        if (!split)
            run_tile(call, task, &m);
        else if (phase == 0)
            run_part(call, task, &m);
        else
            run_join(call, task, &m);
    }
}
