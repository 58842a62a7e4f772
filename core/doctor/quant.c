/* SPDX-License-Identifier: Apache-2.0
 * Quantised tensors against the config's block: a block without such tensors, such
 * tensors without a block, a block of another layout, scales of odd types and sizes, modules
 * left out that are not. */
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
        !has_own_file(&d->patient))
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

/* GPTQ packs along the inputs, qweight [in * bits / 32, out]; AWQ (gemm) along the outputs, qweight
 * [in, out * bits / 32]. Scales are [groups, out] in both, so the widths tell. */
static void check_packing(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const json_t *block = davit_settings_quantization(d->patient.settings);
    const char *method = json_string_value(json_object_get(block, "quant_method"));
    const davit_tensor_info *w = davit_find_tail(c, "qweight", -1);
    const bool says_gptq = g_strcmp0(method, "gptq") == 0, says_awq = g_strcmp0(method, "awq") == 0;
    const davit_tensor_info *s;
    g_autofree char *scales = NULL;
    bool is_gptq, is_awq;

    if (!w || w->rank != 2 || (!says_gptq && !says_awq))
        return;
    scales = g_strdup_printf("%.*sscales", (int)(strlen(w->name) - strlen("qweight")), w->name);
    s = davit_checkpoint_find(c, scales);
    if (!s || s->rank != 2)
        return;
    is_gptq = w->shape[1] == s->shape[1];
    is_awq = w->shape[1] < s->shape[1] && s->shape[1] % w->shape[1] == 0 && w->shape[0] > s->shape[0];
    if (is_gptq == is_awq || is_gptq == says_gptq)
        return;
    davit_doctor_say(
        d, "D17",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = "config.json: quantization_config.quant_method",
            .expected = is_awq ? "awq" : "gptq",
            .found = davit_doctor_text(d, "%s; %s is [%" PRIu64 ", %" PRIu64 "] beside scales [%" PRIu64
                                          ", %" PRIu64 "]", method, w->name, w->shape[0], w->shape[1],
                                       s->shape[0], s->shape[1]),
            .message = "the tensors are packed as the other method packs them; davit goes by the "
                       "tensors, programs that believe the block refuse the model or answer noise",
            .hint = is_awq ? "set quant_method to awq and version to gemm in the block; bits and group "
                             "size stay"
                           : "set quant_method to gptq in the block; bits and group size stay"});
}

/* ---- D18 ---- */

/* Scales of fp8 are factors: largest weight / 448, far below 1. A tensor of them that is nowhere
 * below TALL would make weights of thousands: reciprocals. Reads KiB of the first one. */
#define TALL 4.0f

static bool smallest_scale(const DavitCheckpoint *c, const davit_tensor_info *t, float *out)
{
    const bool wide = strcmp(t->dtype, "f32/1") == 0;
    const uint64_t width = wide ? 4 : 2;
    const uint64_t n = MIN(t->n_bytes / width, 1024u);
    g_autoptr(DavitReport) aside = davit_report_new();
    uint8_t bytes[4 * 1024];

    if ((!wide && strcmp(t->dtype, "bf16/1") != 0) || n == 0 ||
        davit_checkpoint_read(c, t->file, t->off, bytes, n * width, aside))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        float x;

        memcpy((uint8_t *)&bits + (4 - width), bytes + i * width, width); /* little-endian */
        memcpy(&x, &bits, sizeof x);
        *out = i == 0 || x < *out ? x : *out;
    }
    return true;
}

static void check_inverted(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const davit_tensor_info *t = davit_find_tail(c, "weight_scale_inv|weight_scale", -1);
    const davit_tensor_info *w;
    g_autofree char *name = NULL;
    float least;

    if (!t)
        return;
    name = g_strndup(t->name, (gsize)(strstr(t->name, "weight_scale") - t->name) + strlen("weight"));
    w = davit_checkpoint_find(c, name);
    if (!w || !g_str_has_prefix(w->dtype, "f8_e4m3") || !smallest_scale(c, t, &least) ||
        !(least > TALL))
        return;
    davit_doctor_say(
        d, "D18",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = t->name,
            .expected = "factors far below 1: the largest weight of a block by 448",
            .found = davit_doctor_text(d, "nothing below %g, so weights reach %g", (double)least,
                                       448.0 * (double)least),
            .message = "the scales look like reciprocals: they would make every matrix thousands of "
                       "times too large",
            .hint = "store 1 / scale instead, or take the scales from the model's origin"});
}

static void check_scales(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    size_t n = 0, n_odd = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        const bool scale = g_str_has_suffix(t->name, "_scale") ||
                           g_str_has_suffix(t->name, "_scale_inv") ||
                           g_str_has_suffix(t->name, "_scale_2");

        n += scale || g_str_has_suffix(t->name, ".scales");
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

/* FP8 in blocks has its scales under weight_scale_inv (DeepSeek-V3's convention); under
 * weight_scale programs that go by the name leave them out. */
static void check_scale_names(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const json_t *block = davit_settings_quantization(d->patient.settings);
    const char *method = json_string_value(json_object_get(block, "quant_method"));
    const davit_tensor_info *first = NULL;
    size_t n = 0;

    if (g_strcmp0(method, "fp8") != 0 ||
        !json_is_array(json_object_get(block, "weight_block_size")))
        return;
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        if (g_str_has_suffix(t->name, ".weight_scale_inv"))
            return;
        if (!g_str_has_suffix(t->name, ".weight_scale"))
            continue;
        first = first ? first : t;
        n++;
    }
    if (first)
        davit_doctor_say(
            d, "D18",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = first->name,
                .expected = "weight_scale_inv, as scales of fp8 in blocks are named",
                .found = davit_doctor_text(d, "%zu tensor%s named weight_scale", n, n == 1 ? "" : "s"),
                .message = "the scales are there under another name: davit takes them as factors, "
                           "programs that go by the name load the matrices without scales",
                .hint = "rename them to weight_scale_inv and keep the values: they are factors "
                        "already, nothing is to be inverted"});
}

/* GPTQ with act-order: g_idx gives columns their groups in no order. A few KiB of the first one
 * that has several groups tell. */
static void check_act_order(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const json_t *block = davit_settings_quantization(d->patient.settings);
    const davit_tensor_info *t = davit_find_tail(c, "g_idx", -1);
    g_autoptr(DavitReport) aside = davit_report_new();
    int32_t idx[1024];
    const uint64_t n = t ? MIN(t->n_bytes, sizeof idx) / sizeof *idx : 0;

    if (!block || !t || json_is_true(json_object_get(block, "desc_act")) || n < 2 ||
        strcmp(t->dtype, "i32/1") != 0 ||
        davit_checkpoint_read(c, t->file, t->off, idx, n * sizeof *idx, aside))
        return;
    for (uint64_t i = 1; i < n; i++) {
        if (idx[i] >= idx[i - 1])
            continue;
        davit_doctor_say(
            d, "D17",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = "config.json: quantization_config.desc_act",
                .expected = davit_doctor_text(d, "true: %s is in no order (%d behind %d)", t->name,
                                              idx[i], idx[i - 1]),
                .found = json_object_get(block, "desc_act") ? "false" : "absent",
                .message = "the matrices were quantised with act-order and the config says that "
                           "they were not: programs that believe it scale the wrong columns",
                .hint = "set desc_act to true in the block"});
        return;
    }
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
    check_packing(doctor);
    check_scales(doctor);
    check_inverted(doctor);
    check_scale_names(doctor);
    check_act_order(doctor);
    list = left_out(davit_settings_quantization(doctor->patient.settings));
    if (list)
        check_matches(doctor, list);
    davit_doctor_fact(doctor, "D19", "%zu modules left out by name",
                      list ? json_array_size(list) : 0);
    davit_check_quant_claims(doctor);
}
