/* SPDX-License-Identifier: Apache-2.0
 * Quantised tensors against the config's block: a block without such tensors, such
 * tensors without a block, scales of odd types, modules left out that are not. */
#include <string.h>

#include "doctor/doctor_private.h"

/* Companions of quantised modules, and the scheme that has them. */
typedef struct Companion {
    const char *tail;
    const char *scheme;
} Companion;

static const Companion companions[] = {
    {"weight_scale_inv", "fp8 in blocks"},
    {"weight_scale_2", "nvfp4 (ModelOpt)"},
    {"weight_global_scale", "nvfp4 (compressed-tensors)"},
    {"weight_packed", "packed (compressed-tensors)"},
    {"weight_scale", "fp8 or int8"},
    {"qzeros", "GPTQ or AWQ"},
    {"qweight", "GPTQ or AWQ"},
    {"weight.absmax", "bitsandbytes"},
    {"weight.quant_map", "bitsandbytes"},
    {"SCB", "bitsandbytes int8"},
    {"_blocks", "mxfp4 (gpt-oss)"},
};

static const Companion *companion_of(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(companions); i++)
        if (g_str_has_suffix(name, companions[i].tail))
            return &companions[i];
    return NULL;
}

static const davit_tensor_info *first_companion(const DavitCheckpoint *c,
                                                const Companion **out, size_t *out_n)
{
    const davit_tensor_info *first = NULL;

    *out_n = 0;
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        const Companion *companion = companion_of(t->name);

        *out_n += companion != NULL;
        if (companion && !first) {
            first = t;
            *out = companion;
        }
    }
    return first;
}

/* Some tools state their scheme in a file of its own. */
static bool has_own_file(const DavitPatient *p)
{
    static const char *const names[] = {"hf_quant_config.json", "quantize_config.json",
                                        "quant_config.json"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (davit_model_path_has(&p->path, names[i]))
            return true;
    return false;
}

static void check_block(DavitDoctor *d)
{
    const json_t *block = davit_settings_quantization(d->patient.settings);
    const Companion *scheme = NULL;
    size_t n = 0;
    const davit_tensor_info *first =
        first_companion(d->patient.checkpoint, &scheme, &n);
    const char *method = json_string_value(json_object_get(block, "quant_method"));

    davit_doctor_fact(d, "D17", "config: %s; tensors: %s",
                      block ? (method ? method : "a block without quant_method") : "none",
                      first ? scheme->scheme : "plain or GGUF blocks");
    if (first && !block && !davit_settings_is_gguf(d->patient.settings) &&
        strcmp(scheme->tail, "_blocks") != 0 && !has_own_file(&d->patient))
        davit_doctor_say(
            d, "D17",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = first->name,
                .expected = "quantization_config in config.json",
                .found = davit_doctor_text(d, "%zu tensors of %s, and no such block", n,
                                           scheme->scheme),
                .message = "the weights are quantised and the config does not say how",
                .hint = "restore quantization_config from the model's origin"});
    if (block && !first && !d->patient.plan && !davit_settings_is_gguf(d->patient.settings))
        davit_doctor_say(d, "D17",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = "config.json: quantization_config",
                                         .expected = "quantised tensors",
                                         .found = "none that is known",
                                         .message = "the config speaks of quantisation "
                                                    "and the weights look plain",
                                         .hint = "remove the block, if the model was "
                                                 "merged or converted to plain numbers"});
}

/* ---- D18 ---- */

static void check_scales(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    size_t n = 0, n_odd = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        const bool scale = g_str_has_suffix(t->name, "_scale") ||
                           g_str_has_suffix(t->name, "_scale_inv") ||
                           g_str_has_suffix(t->name, "_scale_2");

        n += scale;
        if (!scale || g_str_has_prefix(t->dtype, "f32") ||
            g_str_has_prefix(t->dtype, "f16") || g_str_has_prefix(t->dtype, "bf16") ||
            g_str_has_prefix(t->dtype, "f8") || g_str_has_prefix(t->dtype, "u8"))
            continue;
        if (n_odd++ < 8)
            davit_doctor_say(d, "D18",
                             &(DavitFinding){.severity = DAVIT_WARNING,
                                             .subject = t->name,
                                             .expected = "F32, F16, BF16, F8 or U8",
                                             .found = t->dtype,
                                             .message = "a scale of a type that no "
                                                        "scheme has"});
    }
    davit_doctor_fact(d, "D18", "%zu scales", n);
}

/* ---- D19 ---- */

static const json_t *left_out(const json_t *block)
{
    static const char *const keys[] = {"modules_to_not_convert", "ignore",
                                       "ignored_layers", "exclude_modules"};

    for (size_t k = 0; k < G_N_ELEMENTS(keys); k++) {
        const json_t *list = json_object_get(block, keys[k]);

        if (json_is_array(list))
            return list;
    }
    return NULL;
}

/* Entries that name no module: a list of other names would leave nothing out. */
static void check_matches(DavitDoctor *d, const json_t *list)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const char *first = NULL;
    const json_t *item;
    size_t i, n_plain = 0, n_idle = 0;

    json_array_foreach(list, i, item)
    {
        const char *module = json_string_value(item);
        bool hit = false;

        /* a tied head is not stored, and is listed all the same */
        if (!module || g_str_has_prefix(module, "re:") || strpbrk(module, "*?[") ||
            strcmp(module, "lm_head") == 0)
            continue;
        n_plain++;
        for (size_t t = 0; !hit && t < davit_checkpoint_n_tensors(c); t++)
            hit = strstr(davit_checkpoint_tensor(c, t)->name, module) != NULL;
        first = hit || first ? first : module;
        n_idle += !hit;
    }
    if (n_idle == 0)
        return;
    davit_doctor_say(
        d, "D19",
        &(DavitFinding){.severity = n_idle == n_plain ? DAVIT_WARNING : DAVIT_NOTE,
                        .subject = first,
                        .expected = "a module of the checkpoint",
                        .found = davit_doctor_text(d, "%zu of %zu entries name none",
                                                   n_idle, n_plain),
                        .message = "modules that are listed as left out of quantisation "
                                   "are not in the checkpoint under these names"});
}

static void check_left_out(DavitDoctor *d, const json_t *list)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *module = json_string_value(item);

        for (size_t t = 0; module && !g_str_has_prefix(module, "re:") &&
                           t < davit_checkpoint_n_tensors(c);
             t++) {
            const char *name = davit_checkpoint_tensor(c, t)->name;
            const size_t n = strlen(module);

            if (strncmp(name, module, n) != 0 || name[n] != '.' || !companion_of(name))
                continue;
            davit_doctor_say(d, "D19",
                             &(DavitFinding){.severity = DAVIT_WARNING,
                                             .subject = name,
                                             .expected = "a plain module, as config.json "
                                                         "lists it",
                                             .found = "a quantised one",
                                             .message = "a module is listed as left out "
                                                        "of quantisation and is "
                                                        "quantised all the same"});
            break;
        }
    }
}

void davit_check_quant(DavitDoctor *doctor)
{
    const json_t *list;

    if (!doctor->patient.checkpoint || !doctor->patient.settings) {
        davit_doctor_skip(doctor, "D17", "weights and a config");
        davit_doctor_skip(doctor, "D18", "weights that open");
        davit_doctor_skip(doctor, "D19", "weights and a config");
        return;
    }
    check_block(doctor);
    check_scales(doctor);
    list = left_out(davit_settings_quantization(doctor->patient.settings));
    if (list) {
        check_left_out(doctor, list);
        check_matches(doctor, list);
    }
    davit_doctor_fact(doctor, "D19", "%zu modules left out by name",
                      list ? json_array_size(list) : 0);
}
