/* SPDX-License-Identifier: Apache-2.0
 * Names, and rules of one number: writers spell one scale in a dozen ways (ModelOpt, vLLM,
 * compressed-tensors old and new), and one file may hold several spellings. */
#include "plan/kv_scale.h"

#include <math.h>
#include <string.h>

#include <davit/help/quant.h>

#include "plan/module.h"

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

/* Scales of one layer; tensor NULL = none. */
typedef struct Found {
    const davit_tensor_info *tensor[2]; /* of keys, of values */
    float scale[2];
} Found;

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

/* The one number of @t. */
static int32_t read_scale(DavitDraft *draft, const davit_tensor_info *t, float *out)
{
    const bool any = draft->options->quant_allow & DAVIT_QUANT_ALLOW_SCALE_DTYPE;
    const bool short_float = strcmp(t->dtype, "bf16/1") == 0 || strcmp(t->dtype, "f16/1") == 0;
    const uint8_t *bytes;
    int32_t status;

    if (t->rank > 0 && davit_q_product(t, 0, t->rank) != 1)
        return fail(draft, DAVIT_R_QUANT_SCALE_ARITY, t, "one number",
                    davit_shape_text(draft->report, t->shape, t->rank),
                    "a scale of keys or values that is one number has several");
    if (strcmp(t->dtype, "f32/1") != 0 && !(any && short_float))
        return fail(draft, DAVIT_R_QUANT_DTYPE, t, "f32/1", t->dtype,
                    "a scale that is one number is stored in F32");
    status = davit_checkpoint_view(draft->plan->checkpoint, t->file, t->off, t->n_bytes, &bytes,
                                   draft->report);
    if (status)
        return status;
    *out = davit_q_scale(bytes, (uint32_t)davit_q_scale_type(t->dtype), 0);
    if (!isfinite(*out) || *out <= 0)
        return fail(draft, DAVIT_R_QUANT_SCALE_VALUE, t, "a finite number above 0",
                    davit_report_text(draft->report, "%g", (double)*out),
                    "a scale of keys or values cannot be this");
    return DAVIT_OK;
}

static int32_t take(DavitDraft *draft, const davit_tensor_info *t, unsigned of, Found *layer)
{
    float scale = 0;
    const int32_t status = read_scale(draft, t, &scale);

    if (status)
        return status;
    for (unsigned w = 0; w < 2; w++) {
        if (!(of & (w == 0 ? KEYS : VALUES)))
            continue;
        if (layer->tensor[w] && layer->scale[w] != scale)
            return fail(draft, DAVIT_R_QUANT_CONFIG_CONFLICT, t,
                        davit_report_text(draft->report, "%g, as %s", (double)layer->scale[w],
                                          layer->tensor[w]->name),
                        davit_report_text(draft->report, "%g", (double)scale),
                        "one scale is stored twice and differs");
        layer->tensor[w] = t;
        layer->scale[w] = scale;
    }
    return DAVIT_OK;
}

/* The configuration speaks of a cache of another type? */
static const char *other_type(const DavitDraft *draft)
{
    const json_t *block = davit_settings_quantization(draft->plan->settings);
    const json_t *scheme = json_object_get(block, "kv_cache_scheme");
    const char *algo = json_string_value(json_object_get(block, "kv_cache_quant_algo"));
    const char *type = json_string_value(json_object_get(scheme, "type"));
    const json_t *bits = json_object_get(scheme, "num_bits");

    if (!algo)
        algo = json_string_value(scheme);
    if (algo && g_ascii_strcasecmp(algo, "fp8") != 0)
        return algo;
    if (type && strcmp(type, "float") != 0)
        return type;
    return bits && json_number_value(bits) != 8 ? "another number of bits" : NULL;
}

static int32_t find_all(DavitDraft *draft, Found *layers)
{
    const DavitCheckpoint *c = draft->plan->checkpoint;
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c) && !status; i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        const char *other;
        uint64_t layer;
        const unsigned of = parse(t->name, &layer);

        if (!of || layer >= draft->plan->n_layers)
            continue; /* of heads past the last layer */
        other = other_type(draft);
        if (other)
            return fail(draft, DAVIT_R_CONFIG_UNSUPPORTED, t, "scales of an FP8 cache", other,
                        "the checkpoint's scales are of a KV cache of another type");
        status = take(draft, t, of, &layers[layer]);
    }
    return status;
}

/* Both or neither. */
static int32_t check_pair(DavitDraft *draft, const Found *layer)
{
    const davit_tensor_info *there = layer->tensor[0] ? layer->tensor[0] : layer->tensor[1];

    if (!layer->tensor[0] == !layer->tensor[1])
        return DAVIT_OK;
    return fail(draft, DAVIT_R_TENSOR_MISSING, there,
                layer->tensor[0] ? "a scale of the values too" : "a scale of the keys too", "none",
                "a layer has a scale of its keys or of its values alone");
}

static void tell(DavitDraft *draft, uint64_t n_with, uint64_t n_states)
{
    DavitReport *report = draft->report;
    const bool all = n_with == n_states;

    davit_report_add(report, &(DavitFinding){
                                 .code = DAVIT_R_SOURCE_CHOSEN,
                                 .severity = all ? DAVIT_NOTE : DAVIT_WARNING,
                                 .stage = "plan",
                                 .subject = "kv-dtype",
                                 .found = davit_report_text(report, "scales for %" PRIu64
                                                                    " of %" PRIu64 " layers",
                                                            n_with, n_states),
                                 .message = all ? "keys and values are stored in FP8 with the "
                                                  "checkpoint's scales"
                                                : "keys and values are stored in FP8; layers "
                                                  "without a scale take 1",
                                 .hint = "davit eval with and without --kv-dtype fp8 shows what it costs"});
}

int32_t davit_kv_scales(DavitDraft *draft, DavitProgram *program)
{
    g_autofree Found *layers = g_new0(Found, draft->plan->n_layers + 1);
    uint64_t n_with = 0;
    int32_t status = find_all(draft, layers);

    for (uint64_t i = 0; i < draft->plan->n_layers && !status; i++)
        status = check_pair(draft, &layers[i]);
    for (size_t i = 0; i < program->n_instrs && !status; i++) {
        const DavitInstr *instr = &program->instrs[i];
        davit_state_spec *spec = instr->state < 0 ? NULL : &program->states[instr->state];

        if (!spec || spec->k_scale > 0 || instr->layer < 0 ||
            (uint64_t)instr->layer >= draft->plan->n_layers ||
            !layers[instr->layer].tensor[0])
            continue;
        spec->k_scale = layers[instr->layer].scale[0];
        spec->v_scale = layers[instr->layer].scale[1];
        n_with++;
    }
    if (!status)
        tell(draft, n_with, program->n_states);
    return status;
}
