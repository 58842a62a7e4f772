/* SPDX-License-Identifier: Apache-2.0
 * Names, and rules of scales: writers spell one in a dozen ways (ModelOpt, vLLM,
 * compressed-tensors old and new), and one file may hold several spellings. One number is the
 * layer's, several are the heads' (strategy attn_head of compressed-tensors). */
#include "plan/kv_scale.h"

#include <math.h>
#include <string.h>

#include <davit/help/quant.h>

#include "plan/module.h"
#include "plan/quant_config.h"

#define KEYS   1u
#define VALUES 2u

/* What follows "layers.N.self_attn."; @of: whose scale it is. */
static const struct {
    const char *name;
    unsigned of;
} spellings[] = {
    {"k_scale", KEYS},
    {"v_scale", VALUES},
    {"attn.k_scale", KEYS},
    {"attn.v_scale", VALUES},
    {"k_proj.k_scale", KEYS},
    {"v_proj.v_scale", VALUES},
    {"k_proj.output_scale", KEYS},
    {"v_proj.output_scale", VALUES},
    {"qkv_proj.k_scale", KEYS},
    {"qkv_proj.v_scale", VALUES},
    {"kv_scale", KEYS | VALUES}, /* before vLLM told them apart */
};

/* Of keys or of values; tensor NULL = none. */
typedef struct Scales {
    const davit_tensor_info *tensor;
    float *value; /* (owned) [n] */
    uint64_t n;   /* 1, or all heads of the model */
} Scales;

/* One layer's. */
typedef struct Layer {
    Scales of[2];     /* keys, values */
    uint64_t n_heads; /* of the whole model; 0 = it keeps no keys */
} Layer;

/* More than any model has, so that what a file says is not reserved unread. */
#define MOST_HEADS (1u << 20)

static int32_t fail(DavitDraft *draft, uint32_t code, const davit_tensor_info *t,
                    const char *expected, const char *found, const char *message)
{
    return davit_report_add(draft->report, &(DavitFinding){.code = code,
                                                           .status = DAVIT_E_CORRUPT,
                                                           .purposes = DAVIT_RUN,
                                                           .stage = "plan",
                                                           .subject = t->name,
                                                           .expected = expected,
                                                           .found = found,
                                                           .message = message});
}

/* Whose scale @name is, and of which layer; 0 = it is none. */
static unsigned parse(const char *name, uint64_t *out_layer)
{
    static const char layers[] = "layers.", attn[] = ".self_attn.";
    const char *at = g_str_has_suffix(name, "_scale") ? strstr(name, layers) : NULL;
    char *end = NULL;

    if (!at || !g_ascii_isdigit(at[sizeof layers - 1]))
        return 0;
    *out_layer = g_ascii_strtoull(at + sizeof layers - 1, &end, 10);
    if (strncmp(end, attn, sizeof attn - 1) != 0)
        return 0;
    for (size_t i = 0; i < G_N_ELEMENTS(spellings); i++)
        if (strcmp(spellings[i].name, end + sizeof attn - 1) == 0)
            return spellings[i].of;
    return 0;
}

/* Scales are in a row; axes of one element beside it are how compressed-tensors writes them, [heads,
 * 1, 1]. Returns: how many, 0 = they are in no row. */
static uint64_t count_of(const davit_tensor_info *t)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < t->rank; i++) {
        if (n != 1 && t->shape[i] != 1)
            return 0;
        n = t->shape[i] == 1 ? n : t->shape[i];
    }
    return n;
}

/* How many scales @t has, as that many may be; 0 and a record. */
static uint64_t check_count(DavitDraft *draft, const davit_tensor_info *t, uint64_t n_heads)
{
    const char *strategy = davit_quant_config_cache(draft->quant).strategy;
    const bool one = g_strcmp0(strategy, "tensor") == 0;
    const uint64_t n = count_of(t);

    if (n == 1 || (n == n_heads && !one && n <= MOST_HEADS))
        return n;
    fail(draft, DAVIT_R_QUANT_SCALE_ARITY, t,
         one || n_heads < 2
             ? "one number"
             : davit_report_text(draft->report, "one number, or %" PRIu64 ", one for each head",
                                 n_heads),
         davit_shape_text(draft->report, t->shape, t->rank),
         one && n == n_heads ? "the configuration says one scale for all heads (strategy tensor), "
                               "the tensor has one for each"
                             : "a scale of keys or values has this many numbers");
    return 0;
}

/* A scale that is one number is F32, as all such; one of each head has the model's type. */
static int32_t check_dtype(DavitDraft *draft, const davit_tensor_info *t, uint64_t n)
{
    const bool each = n > 1 || g_strcmp0(davit_quant_config_cache(draft->quant).strategy,
                                         "attn_head") == 0;
    const bool any = each || (draft->options->quant_allow & DAVIT_QUANT_ALLOW_SCALE_DTYPE);
    const bool short_float = strcmp(t->dtype, "bf16/1") == 0 || strcmp(t->dtype, "f16/1") == 0;

    if (strcmp(t->dtype, "f32/1") == 0 || (any && short_float))
        return DAVIT_OK;
    return fail(draft, DAVIT_R_QUANT_DTYPE, t, any ? "f32/1, bf16/1 or f16/1" : "f32/1", t->dtype,
                any ? "a scale of keys or values has a type that none has"
                    : "a scale that is one number is stored in F32");
}

/* @out is empty before, and to be freed also after an error. */
static int32_t read_scales(DavitDraft *draft, const davit_tensor_info *t, uint64_t n_heads,
                           Scales *out)
{
    const uint64_t n = check_count(draft, t, n_heads);
    const uint8_t *bytes;
    int32_t status;

    if (n == 0)
        return DAVIT_E_CORRUPT;
    status = check_dtype(draft, t, n);
    if (!status)
        status = davit_checkpoint_view(draft->plan->checkpoint, t->file, t->off, t->n_bytes, &bytes,
                                       draft->report);
    if (status)
        return status;
    *out = (Scales){t, g_new(float, n), n};
    for (uint64_t i = 0; i < n; i++) {
        const float x = davit_q_scale(bytes, (uint32_t)davit_q_scale_type(t->dtype), i);

        if (!isfinite(x) || x <= 0)
            return fail(draft, DAVIT_R_QUANT_SCALE_VALUE, t, "finite numbers above 0",
                        n == 1 ? davit_report_text(draft->report, "%g", (double)x)
                               : davit_report_text(draft->report, "%g of head %" PRIu64, (double)x,
                                                   i),
                        "a scale of keys or values cannot be this");
        out->value[i] = x;
    }
    return DAVIT_OK;
}

/* The first number in which two spellings of one scale differ; n = none does. */
static uint64_t first_difference(const Scales *a, const Scales *b)
{
    const uint64_t n = MAX(a->n, b->n);
    uint64_t i = 0;

    while (i < n && a->value[a->n == 1 ? 0 : i] == b->value[b->n == 1 ? 0 : i])
        i++;
    return i;
}

static int32_t take(DavitDraft *draft, const davit_tensor_info *t, unsigned of, Layer *layer)
{
    Scales read = {0};
    int32_t status = read_scales(draft, t, layer->n_heads, &read);

    for (unsigned w = 0; w < 2 && !status; w++) {
        Scales *have = &layer->of[w];
        uint64_t at;

        if (!(of & (w == 0 ? KEYS : VALUES)))
            continue;
        if (!have->tensor) {
            *have = read;
            have->value = g_memdup2(read.value, read.n * sizeof *read.value);
            continue;
        }
        at = first_difference(have, &read);
        if (at < MAX(have->n, read.n))
            status = fail(draft, DAVIT_R_QUANT_CONFIG_CONFLICT, t,
                          davit_report_text(draft->report, "%g, as %s",
                                            (double)have->value[have->n == 1 ? 0 : at],
                                            have->tensor->name),
                          davit_report_text(draft->report, "%g",
                                            (double)read.value[read.n == 1 ? 0 : at]),
                          "one scale is stored twice and differs");
    }
    g_free(read.value);
    return status;
}

static int32_t find_all(DavitDraft *draft, Layer *layers)
{
    const DavitCheckpoint *c = draft->plan->checkpoint;
    const char *type = davit_quant_config_cache(draft->quant).type;
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c) && !status; i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        uint64_t layer;
        const unsigned of = parse(t->name, &layer);

        if (!of || layer >= draft->plan->n_layers)
            continue; /* of heads past the last layer */
        if (type && strcmp(type, "fp8") != 0)
            return fail(draft, DAVIT_R_CONFIG_UNSUPPORTED, t, "scales of an FP8 cache", type,
                        "the checkpoint's scales are of a KV cache of another type");
        status = take(draft, t, of, &layers[layer]);
    }
    return status;
}

/* Both or neither. */
static int32_t check_pair(DavitDraft *draft, const Layer *layer)
{
    const Scales *k = &layer->of[0], *v = &layer->of[1];

    if (!k->tensor == !v->tensor)
        return DAVIT_OK;
    return fail(draft, DAVIT_R_TENSOR_MISSING, k->tensor ? k->tensor : v->tensor,
                k->tensor ? "a scale of the values too" : "a scale of the keys too", "none",
                "a layer has a scale of its keys or of its values alone");
}

/* ---- into the program ---- */

/* State and layer of instruction @i; NULL = it keeps nothing. */
static davit_state_spec *spec_of(const DavitDraft *draft, const DavitProgram *program, size_t i,
                                 uint64_t *out_layer)
{
    const DavitInstr *instr = &program->instrs[i];

    if (instr->state < 0 || instr->layer < 0 ||
        (uint64_t)instr->layer >= draft->plan->n_layers)
        return NULL;
    *out_layer = (uint64_t)instr->layer;
    return &program->states[instr->state];
}

static void count_heads(const DavitDraft *draft, const DavitProgram *program, Layer *layers)
{
    for (size_t i = 0; i < program->n_instrs; i++) {
        uint64_t layer;
        const davit_state_spec *spec = spec_of(draft, program, i, &layer);
        const DavitStatePart *part = spec ? &program->state_part[program->instrs[i].state] : NULL;

        if (spec)
            layers[layer].n_heads = part->whole ? part->whole : spec->n_heads;
    }
}

/* The scales of the heads from @first on. */
static void give(const Scales *scales, uint64_t first, uint64_t n_heads, float *out_one,
                 float **out_each)
{
    if (scales->n == 1)
        *out_one = *scales->value;
    else if (first <= scales->n && n_heads <= scales->n - first)
        *out_each = g_memdup2(scales->value + first, n_heads * sizeof **out_each);
}

/* What was given out, in states. */
typedef struct Tally {
    uint64_t n_with, n_each;
} Tally;

static void give_all(const DavitDraft *draft, DavitProgram *program, const Layer *layers,
                     Tally *out)
{
    for (size_t i = 0; i < program->n_instrs; i++) {
        uint64_t at;
        davit_state_spec *spec = spec_of(draft, program, i, &at);
        const Layer *layer = spec ? &layers[at] : NULL;
        DavitStatePart *part;

        if (!spec || spec->k_scale > 0 || spec->k_scales || !layer->of[0].tensor)
            continue;
        part = &program->state_part[program->instrs[i].state];
        give(&layer->of[0], part->first, spec->n_heads, &spec->k_scale, &part->k_scales);
        give(&layer->of[1], part->first, spec->n_heads, &spec->v_scale, &part->v_scales);
        spec->k_scales = part->k_scales;
        spec->v_scales = part->v_scales;
        out->n_with++;
        out->n_each += layer->of[0].n > 1 || layer->of[1].n > 1;
    }
}

static void tell(DavitDraft *draft, Tally tally, uint64_t n_states)
{
    DavitReport *report = draft->report;
    const bool all = tally.n_with == n_states;
    const char *each =
        tally.n_each ? davit_report_text(report, ", of %" PRIu64 " for each head", tally.n_each)
                     : "";

    davit_report_add(report, &(DavitFinding){
                                 .code = DAVIT_R_SOURCE_CHOSEN,
                                 .severity = all ? DAVIT_NOTE : DAVIT_WARNING,
                                 .stage = "plan",
                                 .subject = "kv-dtype",
                                 .found = davit_report_text(report, "scales for %" PRIu64
                                                                    " of %" PRIu64 " layers%s",
                                                            tally.n_with, n_states, each),
                                 .message = all ? "keys and values are stored in FP8 with the "
                                                  "checkpoint's scales"
                                                : "keys and values are stored in FP8; layers "
                                                  "without a scale take 1",
                                 .hint = "davit eval with and without --kv-dtype fp8 shows what it costs"});
}

int32_t davit_kv_scales(DavitDraft *draft, DavitProgram *program)
{
    const uint64_t n_layers = draft->plan->n_layers;
    g_autofree Layer *layers = g_new0(Layer, n_layers + 1);
    Tally tally = {0};
    int32_t status;

    count_heads(draft, program, layers);
    status = find_all(draft, layers);
    for (uint64_t i = 0; i < n_layers && !status; i++)
        status = check_pair(draft, &layers[i]);
    if (!status) {
        give_all(draft, program, layers, &tally);
        tell(draft, tally, program->n_states);
    }
    for (uint64_t i = 0; i < n_layers; i++) {
        g_free(layers[i].of[0].value);
        g_free(layers[i].of[1].value);
    }
    return status;
}
