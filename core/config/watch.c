/* SPDX-License-Identifier: Apache-2.0
 * The watch list: settings that change the math. One that is set to something other than
 * its neutral value, and that neither the architecture's forward nor its tables read,
 * refuses the model: running without it would give wrong text, quietly. */
#include "config/bind_private.h"

#include <math.h>
#include <string.h>

#include "config/tree.h"

typedef enum Neutral {
    NEUTRAL_NEVER, /* any value matters */
    NEUTRAL_ZERO,  /* 0 or false */
    NEUTRAL_ONE,   /* 1 or true; of a list, all entries */
    NEUTRAL_FULL,  /* layer_types: all full_attention */
} Neutral;

/* null never matters. Of a GGUF the key is matched without the architecture's name. */
static const struct {
    const char *glob;
    Neutral neutral;
} watched[] = {
    {"*_multiplier", NEUTRAL_ONE},
    {"*softcap*", NEUTRAL_ZERO},
    {"alibi", NEUTRAL_ZERO},
    {"attention.clamp_kqv", NEUTRAL_ZERO},
    {"attention.max_alibi_bias", NEUTRAL_ZERO},
    {"attention.scale", NEUTRAL_ZERO},
    {"attention.sliding_window", NEUTRAL_ZERO},
    {"attention.temperature_scale", NEUTRAL_ZERO},
    {"attention_chunk_size", NEUTRAL_ZERO},
    {"attn_temperature_tuning", NEUTRAL_ZERO},
    {"clip_qkv", NEUTRAL_ZERO},
    {"embedding_scale", NEUTRAL_ONE},
    {"expert_count", NEUTRAL_ZERO},
    {"layer_types", NEUTRAL_FULL},
    {"logit_scale", NEUTRAL_ONE},
    {"logits_scaling", NEUTRAL_ONE},
    {"n_routed_experts", NEUTRAL_ZERO},
    {"no_rope_layers", NEUTRAL_ONE},
    {"num_experts", NEUTRAL_ZERO},
    {"num_kv_shared_layers", NEUTRAL_ZERO},
    {"num_local_experts", NEUTRAL_ZERO},
    {"parallel_attn", NEUTRAL_ZERO},
    {"partial_rotary_factor", NEUTRAL_ONE},
    {"qk_layernorm", NEUTRAL_ZERO},
    {"qk_norm", NEUTRAL_ZERO},
    {"query_pre_attn_scalar", NEUTRAL_NEVER},
    {"residual_scale", NEUTRAL_ONE},
    {"rope_local_base_freq", NEUTRAL_NEVER},
    {"rotary_pct", NEUTRAL_ONE},
    {"scale_depth", NEUTRAL_ONE},
    {"scale_emb", NEUTRAL_ONE},
    {"sliding_window", NEUTRAL_ZERO},
    {"use_bidirectional_attention", NEUTRAL_ZERO},
    {"use_parallel_residual", NEUTRAL_ZERO},
    {"use_qk_norm", NEUTRAL_ZERO},
    {"use_sliding_window", NEUTRAL_ZERO},
};

static bool item_is_neutral(const json_t *value, Neutral neutral)
{
    double v = NAN;

    if (!value || json_is_null(value))
        return true;
    if (json_is_boolean(value))
        v = json_is_true(value);
    else
        davit_tree_number(value, &v);
    switch (neutral) {
    case NEUTRAL_ZERO:
        return v == 0;
    case NEUTRAL_ONE:
        return v == 1;
    case NEUTRAL_FULL:
        return g_strcmp0(json_string_value(value), "full_attention") == 0;
    case NEUTRAL_NEVER:
        break;
    }
    return false;
}

static bool is_neutral(const json_t *value, Neutral neutral)
{
    if (!json_is_array(value))
        return item_is_neutral(value, neutral);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!item_is_neutral(json_array_get(value, i), neutral))
            return false;
    return true;
}

/* Is @key among the spellings of a symbol that somebody read? */
static bool was_read(const davit_config *config, const char *key)
{
    for (guint i = 0; i < config->symbols->len; i++) {
        DavitSymbol *symbol = g_ptr_array_index(config->symbols, i);
        const char *spellings =
            config->settings->keys ? symbol->row.gguf : symbol->row.json;
        g_auto(GStrv) names = g_strsplit(spellings ? spellings : "", "|", -1);

        if (g_atomic_int_get(&symbol->seen) &&
            g_strv_contains((const char *const *)names, key))
            return true;
    }
    return false;
}

static int32_t refuse(const davit_config *config, const char *key, const json_t *value,
                      DavitReport *report)
{
    g_autofree char *found = davit_tree_text(value);

    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_CONFIG_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .purposes = DAVIT_RUN,
            .stage = "config",
            .subject = davit_config_subject(config, key, report),
            .expected = "a neutral value, or an architecture that reads the key",
            .found = found,
            .message = "the setting changes the model's math and the architecture "
                       "plugin does not know it"});
}

/* @key as it is in the file, @name without the architecture's prefix. */
static int32_t check_key(const davit_config *config, const char *key, const char *name,
                         const json_t *value, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(watched); i++)
        if (g_pattern_match_simple(watched[i].glob, name) &&
            !is_neutral(value, watched[i].neutral) && !was_read(config, name))
            status = refuse(config, key, value, report);
    return status;
}

/* A rotary embedding that is scaled, and nobody asked for it. */
static int32_t check_rope(const davit_config *config, DavitReport *report)
{
    const json_t *scaling = json_object_get(config->settings->json, "rope_scaling");
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));

    type = type ? type : json_string_value(json_object_get(scaling, "type"));
    if (g_atomic_int_get(config->rope_seen) || !type || strcmp(type, "default") == 0)
        return DAVIT_OK;
    return refuse(config, "rope_scaling", scaling, report);
}

int32_t davit_config_check_unread(const davit_config *config, DavitReport *report)
{
    const DavitSettings *settings = config->settings;
    json_t *object = settings->keys ? settings->keys : settings->json;
    g_autofree char *prefix =
        g_strconcat(settings->gguf_arch ? settings->gguf_arch : "", ".", NULL);
    int32_t status = check_rope(config, report);
    const char *key;
    json_t *value;

    json_object_foreach (object, key, value) {
        const char *name = key;
        int32_t s;

        if (settings->keys) {
            if (!g_str_has_prefix(key, prefix))
                continue;
            name = key + strlen(prefix);
        }
        s = check_key(config, key, name, value, report);
        status = status == DAVIT_OK ? s : status;
    }
    if (davit_report_count(config->mistakes) > 0) {
        davit_report_append(report, config->mistakes);
        status = status == DAVIT_OK ? DAVIT_E_USAGE : status;
    }
    return status;
}
