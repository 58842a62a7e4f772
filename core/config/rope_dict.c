/* SPDX-License-Identifier: Apache-2.0
 * Where rotary settings are stated: config.json in two spellings, flat or by layer type,
 * or GGUF keys; all become one dictionary. What it says is read in rope.c. */
#include "config/bind_private.h"

#include <math.h>

#include "config/tree.h"

double davit_rope_symbol(const davit_config *config, const char *sym, double otherwise)
{
    const DavitSymbol *symbol = davit_config_symbol(config, sym);

    if (!symbol || symbol->failed || symbol->n != 1)
        return otherwise;
    if (symbol->nums)
        return symbol->nums[0];
    return symbol->ints ? (double)symbol->ints[0] : otherwise;
}

/* ---- GGUF keys as a dictionary ---- */

static const json_t *gguf_key(const davit_config *config, const char *name)
{
    g_autofree char *key = g_strconcat(config->settings->gguf_arch, ".rope.", name, NULL);

    return json_object_get(config->settings->keys, key);
}

/* 0.1 ln f + 1, which llama.cpp multiplies attn_factor with under YaRN. */
static double yarn_mscale(double factor)
{
    return factor > 1 ? 0.1 * log(factor) + 1 : 1;
}

/* (owned) the keys of a GGUF in the spelling of config.json. */
static json_t *gguf_dict(const davit_config *config)
{
    static const struct {
        const char *gguf, *json;
    } names[] = {
        {"scaling.type", "rope_type"},
        {"scale_linear", "factor"}, /* files of 2023 */
        {"scaling.factor", "factor"},
        {"scaling.original_context_length", "original_max_position_embeddings"},
        {"scaling.yarn_beta_fast", "beta_fast"},
        {"scaling.yarn_beta_slow", "beta_slow"},
    };
    json_t *dict = json_object();
    const json_t *attn = gguf_key(config, "scaling.attn_factor");
    const json_t *count = gguf_key(config, "dimension_count");
    double hd = davit_rope_symbol(config, "hd", 0);

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const json_t *value = gguf_key(config, names[i].gguf);

        if (value)
            json_object_set(dict, names[i].json, (json_t *)(uintptr_t)value);
    }
    if (gguf_key(config, "scale_linear") && !gguf_key(config, "scaling.type"))
        json_object_set_new(dict, "rope_type", json_string("linear"));
    if (json_is_number(attn))
        json_object_set_new(dict, "attention_factor",
                            davit_tree_real(json_number_value(attn) *
                                            yarn_mscale(json_number_value(
                                                json_object_get(dict, "factor")))));
    if (json_is_integer(count) && hd > 0)
        json_object_set_new(dict, "partial_rotary_factor",
                            davit_tree_real(json_number_value(count) / hd));
    return dict;
}

/* ---- which dictionary for which layers ---- */

bool davit_rope_is_layer_type(const char *key)
{
    return g_str_has_suffix(key, "_attention");
}

bool davit_rope_is_nested(const json_t *dict)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)dict, key, value) {
        if (davit_rope_is_layer_type(key))
            return true;
    }
    return false;
}

/* A non-empty rope_scaling replaces a flat rope_parameters; under a nested one it belongs
 * to the full layers. */
json_t *davit_rope_dict(const davit_config *config)
{
    const json_t *json = config->settings->json;
    json_t *params = json_object_get(json, "rope_parameters");
    json_t *scaling = json_object_get(json, "rope_scaling");
    json_t *merged;
    json_t *full;

    if (config->settings->keys)
        return gguf_dict(config);
    if (json_object_size(scaling) == 0)
        return json_is_object(params) ? json_incref(params) : json_object();
    if (!davit_rope_is_nested(params) || davit_rope_is_nested(scaling))
        return json_incref(scaling);
    merged = json_deep_copy(params);
    full = json_object_get(merged, "full_attention");
    if (json_is_object(full))
        json_object_update(full, scaling);
    else
        json_object_set(merged, "full_attention", scaling);
    return merged;
}
