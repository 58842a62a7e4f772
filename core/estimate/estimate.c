/* SPDX-License-Identifier: Apache-2.0
 * Sums over slots and states. Saturating: an absurd config gives an absurd number, never
 * a wrapped one. */
#include "estimate/estimate.h"

#include <string.h>

#include "plan/speed.h"

/* ---- arithmetic ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t r;

    return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t mul(uint64_t a, uint64_t b)
{
    uint64_t r;

    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

/* a * num / den without the product overflowing. @den > 0. */
static uint64_t scale(uint64_t a, uint64_t num, uint64_t den)
{
    return add(mul(a / den, num), mul(a % den, num) / den);
}

static uint64_t symbol(const DavitPlan *plan, const char *sym, uint64_t absent)
{
    int64_t n = 0;

    return davit_config_get_int(plan->config, sym, -1, &n) && n > 0 ? (uint64_t)n : absent;
}

/* ---- parts ---- */

enum { EMBEDDING, HEAD, ATTENTION, MLP, EXPERTS, ROUTER, NORMS, OTHER };

static const char *const part_names[DAVIT_ESTIMATE_PARTS] = {
    "embedding", "output head", "attention", "MLP", "experts", "router", "norms", "other"};

static int part_of(const DavitSlot *slot)
{
    if (slot->row.flags & DAVIT_SLOT_EMBED)
        return EMBEDDING;
    if (slot->row.flags & DAVIT_SLOT_HEAD)
        return HEAD;
    if (strstr(slot->id, "norm"))
        return NORMS;
    if (strstr(slot->id, "router"))
        return ROUTER;
    if (g_str_has_prefix(slot->id, "moe.") &&
        (strcmp(slot->row.cls, "exp") == 0 || g_str_has_suffix(slot->id, ".bias")))
        return EXPERTS;
    if (g_str_has_prefix(slot->id, "attn.") || g_str_has_prefix(slot->id, "mla."))
        return ATTENTION;
    if (g_str_has_prefix(slot->id, "ffn.") || g_str_has_prefix(slot->id, "moe."))
        return MLP;
    return OTHER;
}

static uint64_t params_of(const DavitSlot *slot)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < slot->rank; i++)
        n = mul(n, slot->shape[i]);
    return n;
}

/* Stored bytes of modules that no earlier slot has. @seen: one byte a tensor. */
static uint64_t stored_of(const DavitPlan *plan, const DavitSlot *slot, uint8_t *seen)
{
    uint64_t n = 0;

    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitModule *m = slot->sources[s].module;

        for (size_t p = 0; p < m->n_parts; p++) {
            if (seen[m->tensor[p]]++)
                continue;
            seen[m->tensor[p]] = 1;
            n = add(n, davit_checkpoint_tensor(plan->checkpoint, m->tensor[p])->n_bytes);
        }
    }
    return n;
}

static bool counts(const DavitSlot *slot)
{
    return slot->present && slot->tied_to < 0;
}

static void sum_parts(const DavitPlan *plan, uint64_t width, DavitEstimate *out)
{
    const uint64_t k = symbol(plan, "k", 0);
    const size_t n_tensors =
        plan->checkpoint ? davit_checkpoint_n_tensors(plan->checkpoint) : 0;
    g_autofree uint8_t *seen = g_new0(uint8_t, n_tensors + 1);

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];
        DavitEstimatePart *part = &out->parts[part_of(slot)];
        const uint64_t n = params_of(slot);
        const bool expert = strcmp(slot->row.cls, "exp") == 0 && k > 0 &&
                            slot->n_experts > 0 && k < slot->n_experts;

        if (!counts(slot))
            continue;
        part->n_params = add(part->n_params, n);
        part->n_active =
            add(part->n_active, expert ? scale(n, k, slot->n_experts) : n);
        if (slot->rank < 2)
            part->n_vector = add(part->n_vector, n);
        part->n_bytes = add(part->n_bytes, plan->checkpoint ? stored_of(plan, slot, seen)
                                                            : mul(n, width));
    }
    for (size_t i = 0; i < n_tensors; i++)
        if (!seen[i])
            out->unused_bytes = add(
                out->unused_bytes, davit_checkpoint_tensor(plan->checkpoint, i)->n_bytes);
    for (int p = 0; p < DAVIT_ESTIMATE_PARTS; p++) {
        out->n_params = add(out->n_params, out->parts[p].n_params);
        out->n_active = add(out->n_active, out->parts[p].n_active);
        out->n_bytes = add(out->n_bytes, out->parts[p].n_bytes);
    }
}

/* ---- data type ---- */

static uint64_t stated_width(const DavitPlan *plan, const char **out_name)
{
    static const struct {
        const char *word;
        uint64_t width;
    } table[] = {{"float32", 4}, {"bfloat16", 2}, {"float16", 2}, {"float64", 8}};
    const json_t *config = davit_settings_json(plan->settings);
    const json_t *value = json_object_get(config, "dtype");
    const char *text;

    if (!json_is_string(value))
        value = json_object_get(config, "torch_dtype");
    text = json_is_string(value) ? json_string_value(value) : "bfloat16";
    text = g_str_has_prefix(text, "torch.") ? text + 6 : text;
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (strcmp(text, table[i].word) == 0) {
            *out_name = table[i].word;
            return table[i].width;
        }
    *out_name = "bfloat16";
    return 2;
}

/* ---- layouts ---- */

/* Bytes of a block and its elements; vectors stay float32 in block layouts. Sizes: the
 * GGUF type table; fp8 with a float32 scale per 128 x 128; mxfp4 and nvfp4 with a byte per
 * 32 and 16. */
static const struct {
    const char *name;
    uint64_t bytes, elems;
    bool plain;
} layouts[DAVIT_ESTIMATE_LAYOUTS] = {
    {"f32", 4, 1, true},      {"bf16 or f16", 2, 1, true}, {"fp8", 16388, 16384, false},
    {"q8_0", 34, 32, false},  {"q6_k", 210, 256, false},   {"q5_k", 176, 256, false},
    {"q4_k", 144, 256, false}, {"q4_0", 18, 32, false},    {"nvfp4", 9, 16, false},
    {"mxfp4", 17, 32, false}, {"q3_k", 110, 256, false},   {"q2_k", 84, 256, false}};

static void sum_layouts(DavitEstimate *out)
{
    uint64_t vectors = 0;

    for (int p = 0; p < DAVIT_ESTIMATE_PARTS; p++)
        vectors = add(vectors, out->parts[p].n_vector);
    out->n_layouts = DAVIT_ESTIMATE_LAYOUTS;
    for (size_t i = 0; i < DAVIT_ESTIMATE_LAYOUTS; i++) {
        const uint64_t matrices = out->n_params - vectors;

        out->layouts[i] = (DavitEstimateLayout){
            layouts[i].name,
            layouts[i].plain
                ? mul(out->n_params, layouts[i].bytes)
                : add(scale(matrices, layouts[i].bytes, layouts[i].elems),
                      mul(vectors, 4))};
    }
}

/* ---- states ---- */

static const char *kind_of(const davit_state_spec *spec)
{
    if (spec->kind != DAVIT_STATE_KV)
        return "recurrent";
    return spec->v_dim == 0 ? "latent" : spec->window ? "window" : "attention";
}

static void add_state(DavitEstimate *out, const davit_state_spec *spec)
{
    for (size_t i = 0; i < out->n_states; i++) {
        DavitEstimateState *s = &out->states[i];

        if ((strcmp(s->kind, kind_of(spec)) == 0 && s->n_heads == spec->n_heads &&
             s->k_dim == spec->k_dim && s->v_dim == spec->v_dim &&
             s->window == spec->window) ||
            i + 1 == DAVIT_ESTIMATE_STATES) {
            s->n_layers++;
            return;
        }
    }
    out->states[out->n_states++] = (DavitEstimateState){.kind = kind_of(spec),
                                                        .n_layers = 1,
                                                        .n_heads = spec->n_heads,
                                                        .k_dim = spec->k_dim,
                                                        .v_dim = spec->v_dim,
                                                        .window = spec->window};
}

/* Declared only: what the usual symbols say of plain attention. */
static void assume_states(const DavitPlan *plan, DavitEstimate *out)
{
    const uint64_t hd = symbol(plan, "hd", 0), nkv = symbol(plan, "nkv", 0);
    const uint64_t window = symbol(plan, "window", 0);

    out->states_assumed = true;
    for (uint64_t i = 0; hd && nkv && i < plan->n_layers; i++) {
        int64_t windowed = 0;
        davit_state_spec spec = {.kind = DAVIT_STATE_KV,
                                 .n_heads = nkv,
                                 .k_dim = hd,
                                 .v_dim = hd};

        if (davit_config_get_int(plan->config, "windowed", (int64_t)i, &windowed) &&
            windowed)
            spec.window = window;
        add_state(out, &spec);
    }
}

static void size_state(DavitEstimate *out, DavitEstimateState *s, uint64_t width)
{
    const uint64_t one = mul(mul(s->n_heads, add(s->k_dim, s->v_dim)), width);
    const uint64_t tokens =
        s->window && s->window < out->context ? s->window : out->context;

    if (strcmp(s->kind, "recurrent") == 0) {
        /* kept as float32, whatever the KV type */
        s->sequence_bytes =
            mul(mul(mul(s->n_heads, mul(s->k_dim, MAX(s->v_dim, 1u))), 4), s->n_layers);
        return;
    }
    s->token_bytes = mul(one, s->n_layers);
    s->sequence_bytes = mul(s->token_bytes, tokens);
}

static void sum_states(const DavitPlan *plan, uint64_t width, DavitEstimate *out)
{
    for (size_t i = 0; plan->program && i < plan->program->n_states; i++)
        add_state(out, &plan->program->states[i]);
    if (!plan->program)
        assume_states(plan, out);
    for (size_t i = 0; i < out->n_states; i++) {
        size_state(out, &out->states[i], width);
        out->state_bytes = add(out->state_bytes, out->states[i].sequence_bytes);
    }
    out->state_bytes = mul(out->state_bytes, out->n_sequences);
}

/* ---- reading ---- */

static void fill_reads(DavitEstimate *out)
{
    for (size_t i = 0; i < DAVIT_ESTIMATE_READS; i++)
        out->reads[i] = (DavitEstimateRead){
            davit_read_speeds[i].from, davit_read_speeds[i].gb_s,
            davit_speed_seconds(out->n_bytes, davit_read_speeds[i].gb_s)};
}

/* ---- ranks ---- */

/* Into how many parts a slot is cut among @n ranks. */
static uint64_t cuts_of(const DavitSlot *slot, uint64_t n, uint64_t nkv)
{
    const char *tp = slot->row.tp ? slot->row.tp : "rep";
    const bool of_kv = strcmp(slot->id, "attn.k") == 0 || strcmp(slot->id, "attn.v") == 0 ||
                       strcmp(slot->id, "attn.k.bias") == 0 ||
                       strcmp(slot->id, "attn.v.bias") == 0;

    if (strncmp(tp, "rep", 3) == 0)
        return 1;
    return of_kv && nkv > 0 && nkv < n ? nkv : n;
}

static const char *obstacle_of(uint64_t n, uint64_t nh, uint64_t nkv)
{
    if (nh > 0 && nh % n != 0)
        return "the heads do not divide";
    if (nkv > 0 && nkv % n != 0 && n % nkv != 0)
        return "the key heads do not divide";
    return NULL;
}

static void fill_ranks(const DavitPlan *plan, DavitEstimate *out)
{
    static const uint64_t counts_of[DAVIT_ESTIMATE_RANKS] = {1, 2, 4, 8, 16};
    const uint64_t nh = symbol(plan, "nh", 0), nkv = symbol(plan, "nkv", nh);

    for (size_t r = 0; r < DAVIT_ESTIMATE_RANKS; r++) {
        DavitEstimateRank *rank = &out->ranks[r];
        uint64_t params = 0;

        rank->n = counts_of[r];
        rank->obstacle = obstacle_of(rank->n, nh, nkv);
        for (size_t i = 0; i < plan->n_slots; i++) {
            const DavitSlot *slot = &plan->slots[i];
            const uint64_t c = cuts_of(slot, rank->n, nkv);

            if (counts(slot))
                params = add(params, params_of(slot) / c + (params_of(slot) % c != 0));
        }
        rank->weight_bytes =
            out->n_params ? scale(out->n_bytes, params, out->n_params) : 0;
        rank->state_bytes =
            out->state_bytes / MAX(nkv && nkv < rank->n ? nkv : rank->n, 1u);
    }
}

/* ---- all ---- */

#define USUAL_CONTEXT 8192u

void davit_estimate(const DavitPlan *plan, const DavitEstimateOptions *options,
                    DavitEstimate *out)
{
    uint64_t width;

    *out = (DavitEstimate){.arch = plan->arch->id,
                           .tied = plan->tied,
                           .from_checkpoint = plan->checkpoint != NULL,
                           .n_sequences = MAX(options->n_sequences, 1u),
                           .context = options->context};
    if (!out->context)
        out->context =
            plan->max_ctx ? MIN(plan->max_ctx, USUAL_CONTEXT) : USUAL_CONTEXT;
    for (int p = 0; p < DAVIT_ESTIMATE_PARTS; p++)
        out->parts[p].name = part_names[p];
    width = stated_width(plan, &out->dtype);
    if (plan->checkpoint)
        out->dtype = "stored";
    sum_parts(plan, width, out);
    sum_layouts(out);
    sum_states(plan, options->kv_bytes ? options->kv_bytes : 2, out);
    out->memory_bytes = add(out->n_bytes, out->state_bytes);
    fill_reads(out);
    fill_ranks(plan, out);
}
