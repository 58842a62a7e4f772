/* SPDX-License-Identifier: Apache-2.0
 * Packed CODES: size, values to the bit, linear and embed of every layer, any split. */
#include <math.h>
#include <string.h>

#include "kernels/codes_case.h"

#define ROUNDS 250

static const davit_kernels_iface *iface;

typedef struct Shape {
    uint64_t T, N, K;
} Shape;

static const davit_kernel_entry *entry_of(const char *name)
{
    for (size_t i = 0; iface->entries[i]; i++)
        if (strcmp(iface->entries[i]->name, name) == 0)
            return iface->entries[i];
    g_error("no entry %s", name);
}

/* Sum of one output, and how far a kernel may be off: its terms are added in chains of K/4 (or
 * K/32) roundings of partial sums, each below their summed size, codes and zeros apart (@spread);
 * @missed (or NULL) goes through the weights. */
static void expect(const float *w, const float *x, const double *missed, uint64_t K,
                   double spread, double *out_sum, double *out_error)
{
    double sum = 0.0, size = 0.0, lost = 0.0;

    for (uint64_t k = 0; k < K; k++) {
        sum += (double)w[k] * (double)x[k];
        size += (fabs((double)w[k]) + spread) * fabs((double)x[k]);
        lost += missed ? fabs((double)w[k]) * missed[k] : 0.0;
    }
    *out_sum = sum;
    *out_error = 4e-6 * size + 1e-6 + lost;
}

/* Largest |scale * zero| or so of the codes: what may be added and taken away again. */
static double spread_of(const davit_quant_codes *c, const float *values, uint64_t n)
{
    float most = 0.0f;

    for (uint64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(values[i]));
    return c->kind == DAVIT_CODE_UINT ? 2.0 * (double)most : 0.0;
}

static void compare(Rig *rig, const davit_kernel_entry *entry, const davit_quant_codes *what,
                    const float *values, Shape s)
{
    const bool int8 = entry->flags & DAVIT_ENTRY_INT8;
    const uint8_t *part1 = rig->weights[0].segments[0].part[1];
    const uint32_t *map = what->flags & DAVIT_CODES_MAP ? (const uint32_t *)(const void *)part1 : NULL;
    const uint64_t n_codes = what->n_cols ? what->n_cols : s.K;
    const float *factors = what->flags & DAVIT_CODES_FACTORS
                               ? (const float *)(const void *)(part1 + (map ? 4 * n_codes : 0))
                               : NULL;
    const float *bias = davit_ref_weight_vector(rig->call.weight[1]);
    const double spread = int8 ? spread_of(what, values, s.N * s.K) : 0.0;
    g_autofree double *missed = int8 ? g_new(double, s.K) : NULL;

    for (uint64_t t = 0; t < s.T; t++) {
        const float *x = (const float *)rig->call.in[0].data + t * s.K;
        const float *y = (const float *)rig->call.out[0].data + t * s.N;

        if (int8)
            codes_case_missed(x, map, factors, n_codes, missed);
        for (uint64_t n = 0; n < s.N; n++) {
            double want, error;

            expect(values + n * s.K, x, missed, s.K, spread, &want, &error);
            want += bias ? (double)bias[n] : 0.0;
            if (!(fabs((double)y[n] - want) <= error))
                g_error("%s: kind %u, %u bits, scale %u, zero %u, group %" G_GUINT64_FORMAT
                        ", N %" G_GUINT64_FORMAT " K %" G_GUINT64_FORMAT ", t %" G_GUINT64_FORMAT
                        " n %" G_GUINT64_FORMAT ": %g, want %g, may be off %g",
                        entry->name, what->kind, what->bits, what->scale_type, what->zero_type,
                        what->group, s.N, s.K, t, n, (double)y[n], want, error);
        }
    }
}

/* One token alone, tasks one by one from the end, must give the same bits. */
static void check_split(Rig *rig, const davit_kernel_entry *entry, const float *all, Shape s)
{
    const davit_call saved = rig->call;
    const davit_batch batch = rig->batch;
    const uint64_t first = rig_between(rig, 0, s.T - 1);
    const uint64_t n = rig_between(rig, 1, s.T - first);

    rig->call.in[0].data = (float *)saved.in[0].data + first * s.K;
    rig->call.in[0].n_rows = rig->call.out[0].n_rows = n;
    rig->batch.n_tokens = rig->batch.n_rows = n;
    rig_run(rig, entry, (RigSplit){1, true, 3}, 1);
    rig_same(entry->name, rig->call.out[0].data, all + first * s.N, n * s.N);
    rig->call = saved;
    rig->batch = batch;
}

/* Columns that groups are multiples of, as @entry takes them. */
static uint64_t unit_of(const davit_kernel_entry *entry)
{
    return entry->flags & DAVIT_ENTRY_INT8 ? 32 : entry->cpu ? 16 : 1;
}

static void check_linear(const char *name)
{
    const davit_kernel_entry *entry = entry_of(name);
    const bool int8 = entry->flags & DAVIT_ENTRY_INT8;

    if (!rig_can_run(entry)) {
        g_test_skip("this processor lacks a feature");
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        const davit_linear_attr attr = {.struct_size = DAVIT_END(davit_linear_attr, flags)};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_LINEAR, &attr);
        const Shape s = {rig_between(rig, 1, 8), rig_between(rig, 1, 40),
                         int8 ? 32 * rig_between(rig, 1, 40) : rig_between(rig, 1, 1300)};
        davit_quant_codes what = codes_case_random(rig, s.K, unit_of(entry));
        g_autofree float *all = NULL;
        const float *values;

        if (!rig_between(rig, 0, 2))
            codes_case_map(rig, &what, s.K);
        if (!rig_between(rig, 0, 2))
            codes_case_factors(&what);
        if (!int8 && !rig_between(rig, 0, 9))
            what = codes_case_plain(rig);
        rig_batch(rig, s.T, 0, 10);
        values = codes_case_weight(rig, 0, codes_case_pack(iface), &what, 1, s.N, s.K);
        if (rig_between(rig, 0, 1))
            rig_vector(rig, 1, s.N);
        rig_in(rig, s.T, s.K, 1.0f);
        rig_out(rig, s.T, s.N);
        rig_run(rig, entry, (RigSplit){0}, 1);
        compare(rig, entry, &what, values, s);
        all = rig_save(rig, 0);
        check_split(rig, entry, all, s);
        if (int8) /* other instructions, the same integers */
            check_split(rig, entry_of("linear codes int8 avx2"), all, s);
    }
}

static void scalar_differs_from_values(void)
{
    check_linear("linear codes scalar");
}

static void f32_differs_from_values(void)
{
    check_linear("linear codes f32 avx2");
    check_linear("linear codes f32 avx512");
}

static void int8_differs_from_values(void)
{
    const char *layer = g_getenv("DAVIT_TEST_LAYER");
    g_autofree char *name = g_strdup_printf("linear codes int8 %s", layer ? layer : "avx2");

    check_linear(name);
}

/* A unit vector picks one weight: what the kernels make of codes, bit for bit. */
static void decoded_value_differs_in_a_bit(gconstpointer name)
{
    const davit_kernel_entry *entry = entry_of(name);

    for (int round = 0; rig_can_run(entry) && round < 60; round++) {
        const davit_linear_attr attr = {.struct_size = DAVIT_END(davit_linear_attr, flags)};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_LINEAR, &attr);
        const uint64_t N = 8, K = rig_between(rig, 1, 90);
        const davit_quant_codes what = rig_between(rig, 0, 9)
                                           ? codes_case_random(rig, K, unit_of(entry))
                                           : codes_case_plain(rig);
        const float *values = codes_case_weight(rig, 0, codes_case_pack(iface), &what, 1, N, K);
        float *x, *y;

        rig_batch(rig, K, 0, 10);
        x = rig_in(rig, K, K, 0.0f);
        y = rig_out(rig, K, N);
        for (uint64_t k = 0; k < K; k++)
            x[k * K + k] = 1.0f;
        rig_run(rig, entry, (RigSplit){0}, 1);
        for (uint64_t k = 0; k < K; k++)
            for (uint64_t n = 0; n < N; n++)
                g_assert_cmpfloat(y[k * N + n], ==, values[n * K + k]);
    }
}

static void embedded_row_differs_in_a_bit(void)
{
    for (int round = 0; round < 60; round++) {
        davit_embed_attr attr = {.struct_size = DAVIT_END(davit_embed_attr, flags)};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_EMBED, &attr);
        const uint64_t N = rig_between(rig, 1, 50), K = rig_between(rig, 1, 300), T = 5;
        davit_quant_codes what = codes_case_random(rig, K, 1);
        const float *values;
        float *y;

        attr.scale = rig_between(rig, 0, 1) ? 0.0f : 12.0f;
        if (rig_between(rig, 0, 1))
            codes_case_map(rig, &what, K);
        if (rig_between(rig, 0, 1))
            codes_case_factors(&what);
        values = codes_case_weight(rig, 0, codes_case_pack(iface), &what, 1, N, K);
        rig_batch(rig, T, 0, N);
        y = rig_out(rig, T, K);
        if (rig_between(rig, 0, 1)) { /* ids before and past the rows of this rank */
            attr.flags = DAVIT_EMBED_PART;
            attr.row_offset = (int64_t)rig_between(rig, 0, N) - (int64_t)N / 2;
        }
        rig_run(rig, entry_of("embed codes"), (RigSplit){2, true, 2}, 1);
        for (uint64_t t = 0; t < T; t++)
            for (uint64_t k = 0; k < K; k++) {
                const int64_t row = rig->batch.token[t] + attr.row_offset;
                const float v = row < 0 || (uint64_t)row >= N ? 0 : values[(uint64_t)row * K + k];
                g_assert_cmpfloat(y[t * K + k], ==, attr.scale == 0.0f ? v : v * attr.scale);
            }
    }
}

typedef struct Experts {
    /* values [E, rows, D] of gate and up (rows I, or 2I where they alternate), [E, D, I]; biases
     * of the same rows, NULL = none */
    const float *gate, *up, *down, *gate_bias, *up_bias, *down_bias;
    uint64_t D, I, k, by; /* by: rows of gate and up from one hidden value to the next */
    uint64_t unit; /* of groups */
    bool int8;
} Experts;

/* Hidden values of one expert for @x, and how far 8-bit planes of x move each: by what they miss
 * of gate and up, as silu is nowhere steeper than 1.1. */
static void expect_hidden(const Experts *m, uint64_t e, const float *x, double *out, double *moved)
{
    g_autofree double *missed = m->int8 ? g_new(double, m->D) : NULL;

    if (missed)
        codes_case_missed(x, NULL, NULL, m->D, missed);
    for (uint64_t r = 0; r < m->I; r++) {
        const uint64_t row = (e * m->I + r) * m->by, up_row = row + m->by - 1;
        const float *gate = m->gate + row * m->D, *up = m->up + up_row * m->D;
        double g, u, g_off = 0.0, u_off = 0.0, f;

        expect(gate, x, NULL, m->D, 0.0, &g, &f);
        expect(up, x, NULL, m->D, 0.0, &u, &f);
        g += m->gate_bias ? (double)m->gate_bias[row] : 0.0;
        u += m->up_bias ? (double)m->up_bias[up_row] : 0.0;
        for (uint64_t d = 0; missed && d < m->D; d++) {
            g_off += fabs((double)gate[d]) * missed[d];
            u_off += fabs((double)up[d]) * missed[d];
        }
        f = davit_ref_act(DAVIT_ACT_SILU, g);
        out[r] = f * u;
        moved[r] = 1.1 * g_off * (fabs(u) + u_off) + fabs(f) * u_off;
    }
}

/* Planes of hidden values: what they miss of the 32 from @from on, see missed_of_x. */
static double missed_of_hidden(const double *hidden, const double *moved, uint64_t from)
{
    double big = 0.0;

    for (uint64_t r = from; r < from + 32; r++)
        big = fmax(big, fabs(hidden[r]) + moved[r]);
    return big * (1.0 / 64516 + 0x1p-22);
}

/* y = sum_i w_i down(silu(gate x) * up x) in double, over the experts that the weights have, and
 * how far 8-bit planes may move each. */
static void expect_moe(const Rig *rig, const Experts *m, uint64_t t, double *out, double *error)
{
    const float *x = (const float *)rig->call.in[0].data + t * m->D;
    const int32_t *ids = (const int32_t *)rig->call.in[1].data + t * m->k;
    const float *w = (const float *)rig->call.in[2].data + t * m->k;
    const uint64_t first = ((const davit_moe_ffn_attr *)rig->call.attr)->first_expert;
    g_autofree double *hidden = g_new(double, m->I);
    g_autofree double *moved = g_new(double, m->I);

    memset(out, 0, m->D * sizeof *out);
    memset(error, 0, m->D * sizeof *error);
    for (uint64_t i = 0; i < m->k; i++) {
        const uint64_t e = (uint64_t)ids[i] - first;
        if (e >= rig->call.weight[0]->n_experts)
            continue; /* another rank's */
        expect_hidden(m, e, x, hidden, moved);
        for (uint64_t r = 0; m->int8 && r < m->I; r += 32) {
            const double missed = missed_of_hidden(hidden, moved, r);
            for (uint64_t j = r; j < r + 32; j++)
                moved[j] += missed;
        }
        for (uint64_t n = 0; n < m->D; n++) {
            if (m->down_bias)
                out[n] += (double)w[i] * (double)m->down_bias[e * m->D + n];
            for (uint64_t r = 0; r < m->I; r++) {
                const double part = (double)w[i] * (double)m->down[(e * m->D + n) * m->I + r];
                out[n] += part * hidden[r];
                error[n] += fabs(part) * moved[r];
            }
        }
    }
}

static void compare_moe(const double *want, const double *error, const float *y, uint64_t D)
{
    double most = 0.0;

    for (uint64_t n = 0; n < D; n++)
        most = MAX(most, fabs(want[n]));
    for (uint64_t n = 0; n < D; n++) /* two float32 products in a row, terms that cancel */
        if (!(fabs((double)y[n] - want[n]) <= error[n] + 1e-4 * most + 1e-6))
            g_error("moe: n %" G_GUINT64_FORMAT ": %g, want %g, may be off %g, most %g", n,
                    (double)y[n], want[n], error[n], most);
}

/* Weight @slot of size[0] experts of size[1] rows and size[2] columns; some of them often in other
 * codes than the rest. (borrowed, rig) the values */
static const float *mixed_weight(Rig *rig, uint32_t slot, uint64_t unit, const uint64_t size[3])
{
    const uint64_t E = size[0], each = size[1] * size[2], first = rig_between(rig, 1, E);
    const uint64_t count[2] = {first, E - first};
    float *values = rig_memory(rig, E * each * sizeof *values, 0);
    davit_weight *w = &rig->weights[slot], all = {0};
    davit_segment *segments = NULL;
    uint64_t n_segments = 0;

    for (uint64_t i = 0; i < 2 && count[i]; i++) {
        davit_quant_codes what = codes_case_random(rig, size[2], unit);
        davit_quant_codes *own = rig_memory(rig, sizeof *own, 0);
        davit_segment *longer;
        const float *some;

        /* moe_ffn with 8-bit activations takes neither */
        if (unit < 32 && !rig_between(rig, 0, 3))
            codes_case_factors(&what);
        else if (unit < 32 && !rig_between(rig, 0, 3))
            what = codes_case_plain(rig);
        some = codes_case_weight(rig, slot, codes_case_pack(iface), &what, count[i], size[1],
                                 size[2]);
        memcpy(own, w->params, sizeof *own);
        memcpy(values + i * first * each, some, count[i] * each * sizeof *values);
        longer = rig_memory(rig, (n_segments + w->n_segments) * sizeof *longer, 0);
        if (n_segments)
            memcpy(longer, segments, n_segments * sizeof *longer);
        for (uint64_t s = 0; s < w->n_segments; s++) {
            longer[n_segments + s] = w->segments[s];
            longer[n_segments + s].expert += i * first;
            if (count[1]) {
                longer[n_segments + s].n_parts = 3;
                longer[n_segments + s].part[2] = (const uint8_t *)own;
            }
        }
        n_segments += w->n_segments;
        segments = longer;
        all = i == 0 ? *w : all;
    }
    *w = all;
    w->n_experts = E;
    w->n_segments = n_segments;
    w->segments = segments;
    return values;
}

/* Weights of @n_own experts, gate and up apart or in turn, with or without biases. */
static void add_experts(Rig *rig, davit_moe_ffn_attr *attr, uint64_t n_own, Experts *m)
{
    const bool alternate = rig_between(rig, 0, 1);

    attr->gate_up = alternate ? DAVIT_GATE_UP_ALTERNATE : DAVIT_GATE_UP_APART;
    attr->biases = (uint32_t)rig_between(rig, 0, 1);
    m->by = alternate ? 2 : 1;
    m->up = m->gate = mixed_weight(rig, 0, m->unit, (uint64_t[]){n_own, m->by * m->I, m->D});
    if (alternate)
        rig_share(rig, 1, 0);
    else
        m->up = mixed_weight(rig, 1, m->unit, (uint64_t[]){n_own, m->I, m->D});
    m->down = mixed_weight(rig, 2, m->unit, (uint64_t[]){n_own, m->D, m->I});
    if (!attr->biases)
        return;
    m->up_bias = m->gate_bias = rig_vector(rig, 3, n_own * m->by * m->I);
    if (alternate)
        rig_share(rig, 4, 3);
    else
        m->up_bias = rig_vector(rig, 4, n_own * m->I);
    m->down_bias = rig_vector(rig, 5, n_own * m->D);
}

static void experts_differ_from_values(gconstpointer name)
{
    const davit_kernel_entry *entry = entry_of(name);
    const bool int8 = entry->flags & DAVIT_ENTRY_INT8;

    for (int round = 0; rig_can_run(entry) && round < 20; round++) {
        davit_moe_ffn_attr attr = {.struct_size = DAVIT_END(davit_moe_ffn_attr, biases),
                                   .kind = DAVIT_ACT_SILU};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_MOE_FFN, &attr);
        const uint64_t E = rig_between(rig, 1, 5), T = rig_between(rig, 1, 4);
        Experts m = {.k = rig_between(rig, 1, E), .unit = unit_of(entry), .int8 = int8};
        g_autofree double *want = NULL, *error = NULL;
        g_autofree float *all = NULL;
        uint64_t n_own = E;
        int32_t *ids;
        float *y;

        m.D = int8 ? 32 * rig_between(rig, 1, 3) : rig_between(rig, 1, 70);
        m.I = int8 ? 32 * rig_between(rig, 1, 3) : rig_between(rig, 1, 60);
        attr.n_experts = E;
        attr.top_k = m.k;
        rig_batch(rig, T, 0, 10);
        rig_in(rig, T, m.D, 1.0f);
        ids = (int32_t *)(void *)rig_in(rig, T, m.k, 1.0f);
        rig->call.in[1].dtype = "i32/1";
        for (uint64_t i = 0; i < T * m.k; i++)
            ids[i] = (int32_t)((i / m.k + i % m.k) % E);
        rig_in(rig, T, m.k, 1.0f);
        if (rig_between(rig, 0, 1)) { /* the experts of one rank */
            attr.flags = DAVIT_MOE_PART;
            attr.first_expert = rig_between(rig, 0, E - 1);
            n_own = rig_between(rig, 1, E - attr.first_expert);
        }
        add_experts(rig, &attr, n_own, &m);
        y = rig_out(rig, T, m.D);
        want = g_new(double, m.D);
        error = g_new(double, m.D);
        rig_run(rig, entry, (RigSplit){0}, 1);
        for (uint64_t t = 0; t < T; t++) {
            expect_moe(rig, &m, t, want, error);
            compare_moe(want, error, y + t * m.D, m.D);
        }
        all = rig_save(rig, 0);
        rig_run(rig, entry, (RigSplit){1, true, 3}, 1);
        rig_same(entry->name, y, all, T * m.D);
    }
}

/* Bits per weight of real layouts against what their files take (spec quant 13.9). */
static void packed_size_exceeds_stored_size(void)
{
    static const struct {
        const char *name;
        davit_quant_codes codes;
        double stored_bits;
    } cases[] = {
        {"awq g128", {128, 1, 4, DAVIT_CODE_UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4, 0, 0, 0}, 4.15625},
        {"gptq g128", {128, 1, 4, DAVIT_CODE_UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4_1, 0, 0, 0}, 4.15625},
        {"gptq 8 bit", {128, 1, 8, DAVIT_CODE_UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U8_1, 0, 0, 0}, 8.1875},
        {"gptq 3 bit", {128, 1, 3, DAVIT_CODE_UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4_1, 0, 0, 0}, 3.1484375},
        {"gptq 2 bit", {64, 1, 2, DAVIT_CODE_UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4_1, 0, 0, 0}, 2.28125},
        {"ct sym g32", {32, 1, 4, DAVIT_CODE_UINT, DAVIT_SCALE_BF16, DAVIT_ZERO_CONST, 0, 8, 0}, 4.5},
        {"int8 channel", {0, 1, 8, DAVIT_CODE_UINT, DAVIT_SCALE_F32, DAVIT_ZERO_CONST, 0, 128, 0}, 8.0156},
        {"fp8 block", {128, 128, 8, DAVIT_CODE_E4M3, DAVIT_SCALE_F32, DAVIT_ZERO_CONST, 0, 0, 0}, 8.00195},
        {"mxfp4", {32, 1, 4, DAVIT_CODE_E2M1, DAVIT_SCALE_E8M0, DAVIT_ZERO_CONST, 0, 0, 0}, 4.25},
        {"nvfp4", {16, 1, 4, DAVIT_CODE_E2M1, DAVIT_SCALE_E4M3, DAVIT_ZERO_CONST, 0, 0, 0}, 4.5},
        {"iq4_nl", {32, 1, 4, DAVIT_CODE_IQ4, DAVIT_SCALE_F16, DAVIT_ZERO_CONST, 0, 0, 0}, 4.5},
    };
    const davit_pack *pack = codes_case_pack(iface);
    uint64_t params[8] = {0};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        memcpy(params, &cases[i].codes, sizeof cases[i].codes);
        const double bits = 8.0 * (double)pack->block_bytes(NULL, 2048, params) / 8 / 2048;
        if (bits > 1.02 * cases[i].stored_bits)
            g_error("%s: %g bits packed, %g stored", cases[i].name, bits, cases[i].stored_bits);
    }
    memset(params, 0, sizeof params); /* no width */
    g_assert_cmpuint(pack->block_bytes(NULL, 2048, params), ==, 0);
}

int main(int argc, char **argv)
{
    const bool vnni = g_getenv("DAVIT_TEST_LAYER") != NULL;

    g_test_init(&argc, &argv, NULL);
    iface = rig_plugin("davit-kernels-cpu.so");
    g_test_add_func("/codes/packed_size_exceeds_stored_size", packed_size_exceeds_stored_size);
    g_test_add_func("/codes/scalar_differs_from_values", scalar_differs_from_values);
    g_test_add_func("/codes/f32_differs_from_values", f32_differs_from_values);
    g_test_add_func("/codes/int8_differs_from_values", int8_differs_from_values);
    g_test_add_data_func("/codes/decoded_value_differs_in_a_bit/scalar", "linear codes scalar",
                         decoded_value_differs_in_a_bit);
    g_test_add_data_func("/codes/decoded_value_differs_in_a_bit/avx2", "linear codes f32 avx2",
                         decoded_value_differs_in_a_bit);
    g_test_add_data_func("/codes/decoded_value_differs_in_a_bit/avx512",
                         "linear codes f32 avx512", decoded_value_differs_in_a_bit);
    g_test_add_data_func("/codes/experts_differ_from_values/scalar", "moe_ffn codes scalar",
                         experts_differ_from_values);
    g_test_add_data_func("/codes/experts_differ_from_values/f32", "moe_ffn codes avx2",
                         experts_differ_from_values);
    g_test_add_data_func("/codes/experts_differ_from_values/int8",
                         vnni ? "moe_ffn int8 avx512vnni" : "moe_ffn int8 avx2",
                         experts_differ_from_values);
    g_test_add_func("/codes/embedded_row_differs_in_a_bit", embedded_row_differs_in_a_bit);
    return g_test_run();
}
