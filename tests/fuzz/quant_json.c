/* SPDX-License-Identifier: Apache-2.0
 * Configurations as the methods' tools write them, and what may stand in their place: flipped bytes
 * would hardly ever leave JSON that means something. */
#include "fuzz/quant_json.h"

#include <glib.h>

static const char *const real[] = {
    "{'quant_method':'gptq','bits':4,'group_size':32,'sym':true,'desc_act':true,"
    "'checkpoint_format':'gptq','dynamic':{'-:.*down.*':{},'+:.*mlp.*':{'bits':8,"
    "'group_size':-1,'sym':false,'desc_act':false}}}",
    "{'quant_method':'awq','bits':4,'group_size':32,'version':'gemm','zero_point':true,"
    "'modules_to_not_convert':['lm_head']}",
    "{'w_bit':4,'q_group_size':64,'version':'gemv'}",
    "{'quant_method':'fp8','activation_scheme':'dynamic','weight_block_size':[32,32],"
    "'scale_fmt':'ue8m0','ignored_layers':['lm_head'],'modules_to_not_convert':['model.norm']}",
    "{'quant_method':'compressed-tensors','format':'pack-quantized','version':'0.17.1',"
    "'quantization_status':'compressed','ignore':['lm_head','re:.*down_proj$'],"
    "'sparsity_config':{},'transform_config':{},'config_groups':{'group_0':{'targets':["
    "'Linear'],'weights':{'num_bits':4,'type':'int','symmetric':true,'strategy':'group',"
    "'group_size':32,'actorder':'group','block_structure':'32x32'},'input_activations':"
    "{'dynamic':true}},'group_1':{'targets':['re:.*mlp.*'],'format':'nvfp4-pack-quantized',"
    "'weights':{'num_bits':8,'type':'float','strategy':'block','block_structure':[128,128],"
    "'scale_dtype':'ue8m0'}},'W8A16':['model.layers.0.self_attn.q_proj']}}",
    "{'producer':{'name':'modelopt','version':'0.29.0'},'quantization':{'quant_algo':"
    "'MIXED_PRECISION','group_size':16,'exclude_modules':['lm_head','*layers.1.*'],"
    "'quantized_layers':{'model.layers.0.self_attn.q_proj':{'quant_algo':'NVFP4',"
    "'group_size':16},'model.layers.0.mlp*':{'quant_algo':'FP8'}}}}",
    "{'quant_method':'modelopt_fp4','quant_algo':'NVFP4','group_size':16,'ignore':['lm_head']}",
    "{'quant_method':'mxfp4','modules_to_not_convert':['model.layers.*.self_attn']}",
    "{'quant_method':'bitsandbytes','load_in_4bit':true,'bnb_4bit_quant_type':'nf4',"
    "'llm_int8_skip_modules':['lm_head']}",
    "{'quant_method':'fbgemm_fp8','activation_scale_ub':1200.0}",
};

static const char *const keys[] = {
    "quant_method", "bits", "w_bit", "group_size", "q_group_size", "sym", "desc_act",
    "checkpoint_format", "format", "version", "dynamic", "modules_to_not_convert",
    "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules", "weight_block_size",
    "scale_fmt", "activation_scheme", "quantization_status", "config_groups", "sparsity_config",
    "transform_config", "producer", "quantization", "quant_algo", "quantized_layers",
    "load_in_4bit", "bnb_4bit_quant_type", "targets", "weights", "input_activations",
    "output_activations", "num_bits", "type", "symmetric", "strategy", "actorder",
    "block_structure", "scale_dtype", "group_0", "group_1", "name", "W4A16_ASYM", "MXFP8",
    "+:.*q_proj", "model.layers.0.self_attn.q_proj"};

static const char *const values[] = {
    "null", "true", "false", "0", "1", "-1", "-2", "2", "3", "4", "5", "8", "16", "32", "64", "128",
    "4294967296", "1.5", "[]", "{}", "''", "'gptq'", "'awq'", "'fp8'", "'compressed-tensors'",
    "'modelopt'", "'bitsandbytes'", "'gptq_v2'", "'gptq_p'", "'marlin'", "'gemv'", "'ue8m0'",
    "'static'", "'dynamic'", "'int'", "'float'", "'tensor'", "'channel'", "'group'", "'block'",
    "'weight'", "'fp4'", "'0.9.0'", "'0.13.1'", "'dense'", "'sparse-24'", "'128x128'", "'x'",
    "[32,32]", "[0,1]", "[128]", "['']", "['lm_head']", "['re:.*']", "['re:(']", "['Linear']",
    "['model.layers.0.self_attn.q_proj']", "['*q_proj*','[']", "['model.language_model.layers.0']",
    "'q_proj'", "{'bits':8,'group_size':-1}", "{'targets':['Linear'],'weights':{'num_bits':8}}",
    "{'format':'dense'}", "{'name':'modelopt'}", "{'quant_algo':'W4A16_AWQ'}", "['Linear',0]"};

/* (owned) Apostrophes are quotation marks. */
static json_t *parse(const char *text)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);

    g_assert_nonnull(value);
    return value;
}

/* (borrowed) Each text is parsed once. */
static json_t *parsed(const char *const *texts, json_t **made, size_t i)
{
    if (!made[i])
        made[i] = parse(texts[i]);
    return made[i];
}

/* @steps values further into @value, by its own order. What lies on the way is copied, so that it can
 * be changed: only @value's own members are its alone. (borrowed) an object */
static json_t *inner(json_t *value, uint8_t steps)
{
    json_t *object = value;

    for (; steps; steps--) {
        const char *key, *at = NULL;
        json_t *each, *next = NULL;

        json_object_foreach(object, key, each)
        {
            if (json_is_object(each) && (!next || steps % 2)) {
                next = each;
                at = key;
            }
        }
        if (!next)
            return object;
        next = json_copy(next);
        json_object_set_new(object, at, next);
        object = next;
    }
    return object;
}

/* The value at @key of @object changes: by @how it goes, or is one of the list. */
static void change(json_t *object, const char *key, uint8_t how)
{
    static json_t *made[G_N_ELEMENTS(values)];

    if (how == 0xff)
        json_object_del(object, key);
    else
        json_object_set(object, key, parsed(values, made, how % G_N_ELEMENTS(values)));
}

/* A key of @object by its place, or any key. */
static const char *choose_key(json_t *object, uint8_t which)
{
    size_t at = which % 8;
    void *iter = which < 0x80 ? json_object_iter(object) : NULL;

    for (; iter && at > 0; at--)
        iter = json_object_iter_next(object, iter);
    return iter ? json_object_iter_key(iter) : keys[which % G_N_ELEMENTS(keys)];
}

json_t *fuzz_settings(FuzzInput *in)
{
    static json_t *made[G_N_ELEMENTS(real)];
    uint8_t which, n;
    json_t *block;

    if (in->at < in->end && *in->at == '{')
        return json_loadb((const char *)in->at, (size_t)(in->end - in->at), JSON_DISABLE_EOF_CHECK,
                          NULL);
    which = fuzz_byte(in) % (G_N_ELEMENTS(real) + 1);
    if (which == 0)
        return NULL;
    block = json_copy(parsed(real, made, which - 1));
    n = fuzz_byte(in) % 5;
    for (uint8_t i = 0; i < n; i++) {
        json_t *object = inner(block, fuzz_byte(in) % 4);
        const char *key = choose_key(object, fuzz_byte(in));
        g_autofree char *kept = g_strdup(key); /* deleting would free it */

        change(object, kept, fuzz_byte(in));
    }
    return block;
}
