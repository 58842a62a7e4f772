/* SPDX-License-Identifier: Apache-2.0
 * Settings that differ between modules: config_groups of compressed-tensors, quantized_layers
 * of ModelOpt, dynamic of GPTQModel; and the answer for one module. */
#include <string.h>

#include "config/tree.h"
#include "plan/quant_config_private.h"

static void pattern_clear(void *p)
{
    davit_name_pattern_free(((DavitQuantPattern *)p)->pattern);
}

GArray *davit_quant_patterns_new(void)
{
    GArray *patterns = g_array_new(FALSE, TRUE, sizeof(DavitQuantPattern));

    g_array_set_clear_func(patterns, pattern_clear);
    return patterns;
}

static bool is_one_of(const char *const *list, const char *word)
{
    while (*list && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

/* Keys of @object that are not in @known are faults: upstream forbids them, and one that we
 * do not know may change the meaning. */
static void check_keys(DavitQuantConfig *q, const json_t *object, const char *const *known,
                       DavitReport *report)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!is_one_of(known, key))
            davit_quant_value_fault(q, key, "a known key", value, report);
    }
}

/* ---- compressed-tensors ---- */

/* actorder: "group" or true reorders columns, "weight" and "static" only chose an order while
 * quantising. */
static int32_t act_order(const json_t *value)
{
    const char *text = json_string_value(value);

    if (!value || json_is_null(value))
        return -1;
    if (json_is_boolean(value))
        return json_is_true(value);
    return text && (strcmp(text, "group") == 0 || strcmp(text, "dynamic") == 0);
}

static void read_structure(DavitQuantConfig *q, const json_t *args,
                           davit_quant_settings *s, DavitReport *report)
{
    const json_t *value = json_object_get(args, "block_structure");
    const char *text = json_string_value(value);
    char *end = NULL;

    if (!value || json_is_null(value))
        return;
    if (text) { /* "128x128" */
        s->block_rows = (int64_t)g_ascii_strtoull(text, &end, 10);
        s->block_cols = *end == 'x' ? (int64_t)g_ascii_strtoull(end + 1, NULL, 10) : 0;
    } else if (json_array_size(value) == 2) {
        s->block_rows = json_integer_value(json_array_get(value, 0));
        s->block_cols = json_integer_value(json_array_get(value, 1));
    }
    if (s->block_rows > 0 && s->block_rows <= INT32_MAX && s->block_cols > 0 &&
        s->block_cols <= INT32_MAX)
        return;
    s->block_rows = s->block_cols = 0;
    davit_quant_value_fault(q, "block_structure", "two numbers above 0", value, report);
}

static void read_args(DavitQuantConfig *q, const json_t *args, davit_quant_settings *s,
                      DavitReport *report)
{
    static const char *const known[] = {
        "num_bits",   "type",           "symmetric",       "strategy",  "group_size",
        "block_size", "block_structure", "dynamic",        "actorder",  "scale_dtype",
        "zp_dtype",   "observer",       "observer_kwargs", "is_mse",    NULL};

    check_keys(q, args, known, report);
    s->bits = davit_quant_number(q, args, "num_bits", 1, report);
    s->type = davit_quant_text(q, args, "type", report);
    s->strategy = davit_quant_text(q, args, "strategy", report);
    s->group = davit_quant_number(q, args, "group_size", -1, report);
    s->symmetric = davit_quant_flag(q, args, "symmetric", report);
    s->act_order = act_order(json_object_get(args, "actorder"));
    s->scale_fmt = davit_quant_text(q, args, "scale_dtype", report);
    if (!s->strategy)
        s->strategy = s->group > 0 ? "group" : s->group < 0 ? "channel" : "tensor";
    read_structure(q, args, s, report);
}

/* Names of whole settings, e.g. "W4A16": bits and type by their letters. */
static void read_preset(const char *name, davit_quant_settings *s)
{
    g_autofree char *upper = g_ascii_strup(name, -1);

    if (upper[0] == 'W' && g_ascii_isdigit(upper[1])) {
        s->bits = upper[1] - '0';
        s->type = "int";
        s->symmetric = !strstr(upper, "ASYM");
    } else if (g_str_has_prefix(upper, "FP8") || g_str_has_prefix(upper, "MXFP8")) {
        s->bits = 8;
        s->type = "float";
    } else if (g_str_has_prefix(upper, "NVFP4") || g_str_has_prefix(upper, "MXFP4")) {
        s->bits = 4;
        s->type = "float";
    } else if (g_str_has_prefix(upper, "INT8")) {
        s->bits = 8;
        s->type = "int";
    }
}

static void read_group(DavitQuantConfig *q, const char *name, const json_t *group,
                       DavitReport *report)
{
    static const char *const known[] = {"targets",           "weights", "input_activations",
                                        "output_activations", "format",  NULL};
    const json_t *targets = json_is_array(group) ? group : json_object_get(group, "targets");
    const json_t *inputs = json_object_get(group, "input_activations");
    davit_quant_settings s = q->base;

    if (json_is_array(group)) {
        read_preset(name, &s);
    } else if (json_is_object(group)) {
        const char *format = davit_quant_text(q, group, "format", report);

        check_keys(q, group, known, report);
        s.format = format ? format : s.format;
        if (json_is_object(json_object_get(group, "weights")))
            read_args(q, json_object_get(group, "weights"), &s, report);
    } else {
        davit_quant_value_fault(q, name, "an object or a list of targets", group, report);
        return;
    }
    if (json_is_object(inputs))
        s.activations = json_is_true(json_object_get(inputs, "dynamic")) ? "dynamic" : "static";
    s.quantized = 1;
    g_array_append_val(q->groups, s);
    for (size_t i = 0; i < json_array_size(targets); i++)
        davit_quant_add_pattern(q, DAVIT_NAMES_CT, json_array_get(targets, i), "targets",
                                q->targets.patterns, q->groups->len - 1, report);
}

/* Math that the stored bytes need besides their decoding. */
static void refuse_math(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const json_t *transform = json_object_get(block, "transform_config");
    const json_t *sparsity = json_object_get(block, "sparsity_config");
    const char *sparse = json_string_value(json_object_get(sparsity, "format"));
    const char *format = q->base.format;

    if (json_object_size(transform) > 0)
        davit_quant_unsupported(q, "transform_config", "rotated weights",
                                "the weights are rotated, and the inverse rotation of "
                                "activations is not computed here",
                                report);
    if (json_object_size(sparsity) > 0 && g_strcmp0(sparse, "dense") != 0)
        davit_quant_unsupported(q, "sparsity_config", sparse ? sparse : "no format",
                                "sparse weights are not read", report);
    if (format && (g_str_has_prefix(format, "sparse-") || strcmp(format, "marlin-24") == 0))
        davit_quant_unsupported(q, "format", format, "sparse weights are not read", report);
}

static void read_config_groups(DavitQuantConfig *q, const json_t *block,
                               DavitReport *report)
{
    const json_t *groups = json_object_get(block, "config_groups");
    const char *name;
    json_t *group;

    if (!json_is_object(groups)) {
        if (groups && !json_is_null(groups))
            davit_quant_value_fault(q, "config_groups", "an object", groups, report);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)groups, name, group)
        read_group(q, name, group, report);
    q->only_listed = q->targets.patterns->len > 0;
}

/* ---- ModelOpt, GPTQModel ---- */

static void add_override(DavitQuantConfig *q, const davit_quant_settings *s,
                         DavitNameDialect dialect, const char *text, const char *key,
                         DavitReport *report)
{
    json_t *entry = json_string(text);

    g_array_append_val(q->groups, *s);
    davit_quant_add_pattern(q, dialect, entry, key, q->targets.patterns, q->groups->len - 1, report);
    json_decref(entry);
}

static void read_layers(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const json_t *layers = json_object_get(block, "quantized_layers");
    const char *name;
    json_t *layer;

    if (!json_is_object(layers))
        return;
    json_object_foreach((json_t *)(uintptr_t)layers, name, layer)
    {
        davit_quant_settings s = q->base;

        s.format = davit_quant_text(q, layer, "quant_algo", report);
        s.group = davit_quant_number(q, layer, "group_size", -1, report);
        s.quantized = 1;
        add_override(q, &s, DAVIT_NAMES_WILDCARD, name, "quantized_layers", report);
    }
    q->only_listed = true;
}

static void read_dynamic(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const json_t *dynamic = json_object_get(block, "dynamic");
    const char *rule;
    json_t *values;

    if (!json_is_object(dynamic))
        return;
    json_object_foreach((json_t *)(uintptr_t)dynamic, rule, values)
    {
        const bool minus = g_str_has_prefix(rule, "-:");
        const char *text = minus || g_str_has_prefix(rule, "+:") ? rule + 2 : rule;
        davit_quant_settings s = q->base;
        int64_t n = davit_quant_number(q, values, "bits", 1, report);

        s.bits = n ? n : s.bits;
        n = davit_quant_number(q, values, "group_size", -1, report);
        s.group = n ? n : s.group;
        if (json_object_get(values, "sym"))
            s.symmetric = davit_quant_flag(q, values, "sym", report);
        if (json_object_get(values, "desc_act"))
            s.act_order = davit_quant_flag(q, values, "desc_act", report);
        s.quantized = !minus;
        add_override(q, &s, DAVIT_NAMES_REGEX, text, "dynamic", report);
    }
    q->first_hit = true;
}

void davit_quant_read_groups(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const char *method = q->base.method;

    if (g_strcmp0(method, "compressed-tensors") == 0) {
        refuse_math(q, block, report);
        read_config_groups(q, block, report);
    } else if (g_strcmp0(method, "modelopt") == 0) {
        read_layers(q, block, report);
    } else if (g_strcmp0(method, "gptq") == 0) {
        read_dynamic(q, block, report);
    }
}

/* ---- one module ---- */

static bool stop_at_once(const DavitQuantPattern *p, int rank, void *ctx)
{
    (void)p;
    (void)rank;
    *(bool *)ctx = true;
    return true;
}

static bool is_ignored(const DavitQuantConfig *q, const char *module)
{
    bool found = false;

    davit_quant_list_find(&q->ignore, module, stop_at_once, &found);
    return found;
}

bool davit_quant_config_ignores(const DavitQuantConfig *config, const char *module)
{
    return config && is_ignored(config, module);
}

/* Same weights whatever the order of groups? */
static bool same_weights(const davit_quant_settings *a, const davit_quant_settings *b)
{
    return a->bits == b->bits && a->group == b->group && a->symmetric == b->symmetric &&
           g_strcmp0(a->type, b->type) == 0 && g_strcmp0(a->strategy, b->strategy) == 0;
}

/* The group that a module belongs to, so far. */
typedef struct Choice {
    const DavitQuantConfig *q;
    int64_t best; /* -1 = none */
    int best_rank;
    const DavitQuantPattern *by; /* that chose it: of equals the first in the list counts */
    bool clash; /* two of the same rank differ */
} Choice;

static bool take_group(const DavitQuantPattern *p, int rank, void *ctx)
{
    Choice *c = ctx;

    if (c->q->first_hit) {
        c->best = (int64_t)p->group;
        return true;
    }
    if (rank < c->best_rank) {
        c->best_rank = rank;
        c->best = (int64_t)p->group;
        c->by = p;
        c->clash = false;
    } else if (rank == c->best_rank && c->best != (int64_t)p->group &&
               !same_weights(
                   &g_array_index(c->q->groups, davit_quant_settings, c->best),
                   &g_array_index(c->q->groups, davit_quant_settings, p->group))) {
        c->clash = true;
    } else if (rank == c->best_rank && p < c->by) {
        c->best = (int64_t)p->group;
        c->by = p;
    }
    return false;
}

/* Group of @module; *out_clash when two of the same rank differ. -1 = none. */
static int64_t find_group(const DavitQuantConfig *q, const char *module, bool *out_clash)
{
    Choice c = {.q = q, .best = -1, .best_rank = 3};

    davit_quant_list_find(&q->targets, module, take_group, &c);
    *out_clash = c.clash;
    return c.best;
}

/* What is said of quantised weights is not said of a module that is left out: where it is quantised
 * all the same, its tensors alone tell. */
static void forget_weights(davit_quant_settings *s)
{
    s->bits = s->group = 0;
    s->symmetric = s->act_order = -1;
    s->type = s->strategy = NULL;
}

bool davit_quant_config_for(const DavitQuantConfig *config, const char *module,
                            davit_quant_settings *out)
{
    bool clash = false;
    int64_t group;

    if (!config)
        return false;
    group = find_group(config, module, &clash);
    *out = group >= 0 ? g_array_index(config->groups, davit_quant_settings, group)
                      : config->base;
    out->allow = config->base.allow;
    if (group < 0)
        out->quantized = config->only_listed ? 0 : config->base.method ? 1 : -1;
    if (is_ignored(config, module))
        out->quantized = 0;
    if (out->quantized == 0)
        forget_weights(out);
    out->ambiguous = clash && out->quantized != 0;
    return true;
}
