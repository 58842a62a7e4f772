/* SPDX-License-Identifier: Apache-2.0
 * Rotary embedding settings: the one reader of every spelling. Old and new config.json,
 * flat or by layer type, and GGUF keys all become one dictionary in the spelling of
 * transformers 5 (rope_dict.c), which is read here into a davit_rope_spec. What the
 * numbers do is in sdk/src/arch/rope.c. */
#include "config/bind_private.h"

#include <math.h>
#include <string.h>

#include "config/tree.h"

#define MAX_FACTORS 65536 /* longrope entries: half a head */

/* Type names as files write them. */
static const struct {
    const char *name;
    uint32_t type;
} type_names[] = {
    {"default", DAVIT_ROPE_DEFAULT},
    {"none", DAVIT_ROPE_DEFAULT},  /* GGUF: no scaling */
    {"mrope", DAVIT_ROPE_DEFAULT}, /* text positions are equal on all axes */
    {"linear", DAVIT_ROPE_LINEAR},
    {"dynamic", DAVIT_ROPE_DYNAMIC},
    {"yarn", DAVIT_ROPE_YARN},
    {"deepseek_yarn", DAVIT_ROPE_YARN},
    {"llama3", DAVIT_ROPE_LLAMA3},
    {"llama3.1", DAVIT_ROPE_LLAMA3},
    {"longrope", DAVIT_ROPE_LONGROPE},
    {"su", DAVIT_ROPE_LONGROPE},
    {"proportional", DAVIT_ROPE_PROPORTIONAL},
};

/* Keys that are read here, or that change nothing for text. */
static const char *const known_keys[] = {
    "rope_type",        "type",
    "rope_theta",       "partial_rotary_factor",
    "factor",           "original_max_position_embeddings",
    "attention_factor", "mscale",
    "mscale_all_dim",   "beta_fast",
    "beta_slow",        "low_freq_factor",
    "high_freq_factor", "truncate",
    "short_factor",     "long_factor",
    "mrope_section",    "mrope_interleaved",
    "finetuned",
};
/* Keys that mean other math than any type above. */
static const char *const other_math[] = {"alpha", "llama_4_scaling_beta", "short_mscale",
                                         "long_mscale", "rope_percent"};

/* What one dictionary is read with. */
typedef struct Reader {
    const davit_config *config;
    const json_t *dict;     /* NULL = nothing stated */
    const char *layer_type; /* "" = flat */
    double theta;           /* default of this layer type */
    DavitReport *report;
    int32_t status; /* first failure; all are reported */
} Reader;

static void refuse(Reader *r, uint32_t code, const char *key, const char *expected,
                   const char *found, const char *message)
{
    const char *subject =
        davit_report_text(r->report, "%s: rope%s%s %s", r->config->settings->subject,
                          *r->layer_type ? " of " : "", r->layer_type, key);
    int32_t status =
        code == DAVIT_R_CONFIG_UNSUPPORTED ? DAVIT_E_UNSUPPORTED : DAVIT_E_CORRUPT;

    status = davit_report_add(r->report, &(DavitFinding){.code = code,
                                                         .status = status,
                                                         .stage = "config",
                                                         .subject = subject,
                                                         .expected = expected,
                                                         .found = found,
                                                         .message = message});
    if (r->status == DAVIT_OK)
        r->status = status;
}

/* A number of the dictionary; absent and null give @otherwise. */
static double number(Reader *r, const char *key, double otherwise)
{
    const json_t *value = json_object_get(r->dict, key);
    g_autofree char *found = NULL;
    double v;

    if (!value || json_is_null(value))
        return otherwise;
    found = davit_tree_text(value);
    if (!davit_tree_number(value, &v)) {
        refuse(r, DAVIT_R_CONFIG_INVALID, key, "a number", found,
               "setting has a wrong type");
        return otherwise;
    }
    if (!isfinite(v)) {
        refuse(r, DAVIT_R_VALUE_NOT_FINITE, key, "a finite number", found,
               "the model needs this setting, and it is not finite");
        return otherwise;
    }
    return v;
}

/* The same for numbers that divide, are powers or go through a logarithm. */
static double positive(Reader *r, const char *key, double otherwise)
{
    double v = number(r, key, otherwise);

    if (isnan(v) || v > 0)
        return v;
    refuse(r, DAVIT_R_CONFIG_INVALID, key, "a number above 0",
           davit_report_text(r->report, "%.9g", v), "setting is outside its range");
    return 1;
}

/* A number that the type cannot do without. */
static double required(Reader *r, const char *key, const char *type)
{
    double v = positive(r, key, NAN);

    if (!isnan(v))
        return v;
    refuse(r, DAVIT_R_CONFIG_MISSING, key,
           davit_report_text(r->report, "a number for %s", type), "nothing",
           "this type of rotary embedding needs the setting");
    return 1;
}

/* ---- type ---- */

static int find_type(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(type_names); i++)
        if (strcmp(type_names[i].name, name) == 0)
            return (int)type_names[i].type;
    return -1;
}

/* The word at @key; absent and null give NULL. */
static const char *word(Reader *r, const char *key)
{
    const json_t *value = json_object_get(r->dict, key);
    g_autofree char *found = NULL;

    if (!value || json_is_null(value) || json_is_string(value))
        return json_string_value(value);
    found = davit_tree_text(value);
    refuse(r, DAVIT_R_CONFIG_INVALID, key, "a string", found, "setting has a wrong type");
    return NULL;
}

/* rope_type decides; an old `type` beside it may say the same, or gets a warning. */
static const char *read_type(Reader *r, davit_rope_spec *spec)
{
    const char *rope_type = word(r, "rope_type");
    const char *old_type = word(r, "type");
    const char *name = rope_type ? rope_type : old_type ? old_type : "default";
    int type = find_type(name);

    if (rope_type && old_type && find_type(old_type) != type)
        davit_report_add(r->report,
                         &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                         .severity = DAVIT_WARNING,
                                         .stage = "config",
                                         .subject = "rope_type",
                                         .expected = old_type,
                                         .found = rope_type,
                                         .message =
                                             "type and rope_type disagree; rope_type was "
                                             "taken"});
    if (type < 0) {
        refuse(r, DAVIT_R_CONFIG_UNSUPPORTED, "rope_type",
               "default, linear, dynamic, yarn, llama3, longrope or proportional", name,
               "unknown type of rotary embedding");
        type = DAVIT_ROPE_DEFAULT;
    }
    spec->type = (uint32_t)type;
    return name;
}

static void check_keys(Reader *r)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)r->dict, key, value) {
        g_autofree char *found = davit_tree_text(value);
        bool known = json_is_null(value) || json_is_object(value);
        bool other = false;

        for (size_t i = 0; i < G_N_ELEMENTS(known_keys) && !known; i++)
            known = strcmp(key, known_keys[i]) == 0;
        for (size_t i = 0; i < G_N_ELEMENTS(other_math) && !known; i++)
            other |= strcmp(key, other_math[i]) == 0;
        if (other)
            refuse(
                r, DAVIT_R_CONFIG_UNSUPPORTED, key, "no such key", found,
                "the key changes the rotary embedding in a way that is not known here");
        else if (!known)
            davit_report_add(
                r->report,
                &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                .severity = DAVIT_WARNING,
                                .stage = "config",
                                .subject = davit_report_text(r->report, "rope %s", key),
                                .found = found,
                                .message = "unknown key beside the rotary "
                                           "embedding's settings; not used"});
    }
}

/* ---- numbers ---- */

static void read_factors(Reader *r, DavitRope *rope)
{
    static const char *const keys[] = {"short_factor", "long_factor"};
    double half = floor(davit_rope_symbol(r->config, "hd", 0) * rope->spec.partial) / 2;
    size_t n = json_array_size(json_object_get(r->dict, keys[0]));

    if (n == 0 || n > MAX_FACTORS ||
        n != json_array_size(json_object_get(r->dict, keys[1])) ||
        (half > 0 && (double)n != ceil(half))) {
        refuse(r, DAVIT_R_CONFIG_INVALID, "short_factor and long_factor",
               davit_report_text(r->report, "two lists of %.0f numbers", ceil(half)),
               davit_report_text(r->report, "%zu and %zu", n,
                                 json_array_size(json_object_get(r->dict, keys[1]))),
               "longrope factors do not fit the head");
        return;
    }
    rope->factors = g_new0(double, 2 * n);
    for (size_t i = 0; i < 2 * n; i++) {
        const json_t *item = json_array_get(json_object_get(r->dict, keys[i / n]), i % n);

        if (davit_tree_number(item, &rope->factors[i]) && isfinite(rope->factors[i]) &&
            rope->factors[i] > 0)
            continue;
        refuse(r, DAVIT_R_CONFIG_INVALID, keys[i / n], "finite numbers above 0",
               "another value", "longrope factors are divisors");
        return;
    }
    rope->spec.n_factors = (uint32_t)n;
    rope->spec.short_factor = rope->factors;
    rope->spec.long_factor = rope->factors + n;
}

/* Phi-3 writes original_max at the top level, where it wins over a flat dictionary's. */
static void read_original(Reader *r, davit_rope_spec *spec)
{
    static const char key[] = "original_max_position_embeddings";
    const json_t *top = json_object_get(r->config->settings->json, key);
    const bool by_top =
        *r->layer_type == '\0' && json_is_number(top) && json_number_value(top) > 0;

    spec->max_positions = davit_rope_symbol(r->config, "max_pos", 0);
    /* llama3 puts its bands by it: the stretched length in its place is another model */
    spec->original_max = spec->type == DAVIT_ROPE_LLAMA3 && !by_top
                             ? required(r, key, "llama3")
                             : positive(r, key, spec->max_positions);
    if (by_top)
        spec->original_max = json_number_value(top);
    if (spec->type >= DAVIT_ROPE_DYNAMIC && spec->type <= DAVIT_ROPE_LONGROPE &&
        !(spec->original_max > 0 &&
          (spec->type != DAVIT_ROPE_DYNAMIC || spec->max_positions > 0)))
        refuse(r, DAVIT_R_CONFIG_MISSING, key, "a number above 0", "nothing",
               "this type of rotary embedding needs the setting");
}

static void read_partial(Reader *r, davit_rope_spec *spec)
{
    bool reads = davit_config_symbol(r->config, "partial") != NULL;
    double stated = positive(r, "partial_rotary_factor", NAN);

    spec->partial = 1;
    if (reads || spec->type == DAVIT_ROPE_PROPORTIONAL)
        spec->partial = !isnan(stated) ? stated : davit_rope_symbol(r->config, "partial", 1);
    else if (!isnan(stated) && stated != 1)
        refuse(r, DAVIT_R_CONFIG_UNSUPPORTED, "partial_rotary_factor", "1",
               davit_report_text(r->report, "%.9g", stated),
               "this architecture plugin rotates whole heads");
    if (!(spec->partial > 0 && spec->partial <= 1))
        refuse(r, DAVIT_R_CONFIG_INVALID, "partial_rotary_factor", "above 0, at most 1",
               davit_report_text(r->report, "%.9g", spec->partial),
               "setting is outside its range");
}

static void read_scaling(Reader *r, DavitRope *rope, const char *type_name)
{
    davit_rope_spec *spec = &rope->spec;
    const json_t *truncate = json_object_get(r->dict, "truncate");

    spec->factor = 1;
    if (spec->type == DAVIT_ROPE_LINEAR || spec->type == DAVIT_ROPE_DYNAMIC ||
        spec->type == DAVIT_ROPE_LLAMA3)
        spec->factor = required(r, "factor", type_name);
    else if (spec->type == DAVIT_ROPE_YARN || spec->type == DAVIT_ROPE_LONGROPE)
        spec->factor = positive(r, "factor",
                                spec->max_positions > 0 && spec->original_max > 0
                                    ? spec->max_positions / spec->original_max
                                    : 1);
    else if (spec->type == DAVIT_ROPE_PROPORTIONAL)
        spec->factor = positive(r, "factor", 1);
    if (spec->type == DAVIT_ROPE_LLAMA3) {
        const size_t n_said = davit_report_count(r->report);

        spec->low_freq_factor = required(r, "low_freq_factor", type_name);
        spec->high_freq_factor = required(r, "high_freq_factor", type_name);
        if (davit_report_count(r->report) == n_said && /* both are there */
            spec->high_freq_factor <= spec->low_freq_factor)
            refuse(r, DAVIT_R_CONFIG_INVALID, "high_freq_factor", "above low_freq_factor",
                   davit_report_text(r->report, "%.9g", spec->high_freq_factor),
                   "setting is outside its range");
    }
    spec->attention_factor = number(r, "attention_factor", NAN);
    spec->mscale = number(r, "mscale", 0);
    spec->mscale_all_dim = number(r, "mscale_all_dim", 0);
    spec->beta_fast = number(r, "beta_fast", 0);
    spec->beta_slow = number(r, "beta_slow", 0);
    /* 0 and null mean the defaults, as in transformers */
    spec->beta_fast = spec->beta_fast > 0 ? spec->beta_fast : 32;
    spec->beta_slow = spec->beta_slow > 0 ? spec->beta_slow : 1;
    /* an architecture may know what files of a format do not say */
    spec->truncate = json_is_boolean(truncate)
                         ? json_is_true(truncate)
                         : davit_rope_symbol(r->config, "truncate", 1) != 0;
    if (spec->type == DAVIT_ROPE_LONGROPE)
        read_factors(r, rope);
}

/* A layer type's settings that are neither an object nor null. */
static void refuse_dict(Reader *r, const json_t *dict)
{
    g_autofree char *found = davit_tree_text(dict);

    refuse(r, DAVIT_R_CONFIG_INVALID, "settings", "an object or null", found,
           "setting has a wrong type");
}

/* One dictionary, or a JSON null = no rotation, into a new entry of config->ropes. */
static int32_t add_rope(davit_config *config, const char *layer_type, const json_t *dict,
                        double theta, DavitReport *report)
{
    Reader r = {.config = config,
                .dict = json_is_object(dict) ? dict : NULL,
                .layer_type = layer_type,
                .theta = theta,
                .report = report};
    DavitRope *rope = g_new0(DavitRope, 1);
    const char *type_name;

    rope->layer_type = g_strdup(layer_type);
    rope->spec.struct_size = DAVIT_END(davit_rope_spec, long_factor);
    g_ptr_array_add(config->ropes, rope);
    if (json_is_null(dict))
        return DAVIT_OK; /* type NONE */
    if (dict && !r.dict) {
        refuse_dict(&r, dict);
        return r.status;
    }
    type_name = read_type(&r, &rope->spec);
    check_keys(&r);
    rope->spec.theta = positive(&r, "rope_theta", theta);
    if (rope->spec.theta <= 1)
        refuse(&r, DAVIT_R_CONFIG_INVALID, "rope_theta", "a number above 1",
               davit_report_text(report, "%.9g", rope->spec.theta),
               "setting is outside its range");
    read_partial(&r, &rope->spec);
    read_original(&r, &rope->spec);
    read_scaling(&r, rope, type_name);
    return r.status;
}

/* ---- which dictionary for which layers ---- */

/* Layers of a type for which nested settings have no entry: another type's would be wrong for
 * them. Sliding layers of a class with a base of their own (@local) need none. */
static int32_t check_layer_types(const davit_config *config, const json_t *dict, bool local,
                                 DavitReport *report)
{
    static const char *const types[] = {"full_attention", "sliding_attention"};
    const json_t *list = json_object_get(config->settings->json, "layer_types");
    Reader r = {.config = config, .report = report};

    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        bool used = false;

        for (size_t i = 0; i < json_array_size(list) && !used; i++)
            used = g_strcmp0(json_string_value(json_array_get(list, i)), types[t]) == 0;
        r.layer_type = types[t];
        if (used && !json_object_get(dict, types[t]) && !(t == 1 && local))
            refuse(&r, DAVIT_R_CONFIG_MISSING, "settings", "an entry of rope_parameters",
                   "nothing", "layer_types has layers whose rope is not stated");
    }
    return r.status;
}

static int32_t bind_nested(davit_config *config, const json_t *dict, double theta,
                           DavitReport *report)
{
    bool local = davit_config_symbol(config, "theta_local") != NULL;
    const json_t *first = json_object_get(dict, "full_attention");
    bool has_sliding = json_is_object(json_object_get(dict, "sliding_attention"));
    int32_t status = check_layer_types(config, dict, local, report);
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)dict, key, value) {
        bool sliding = strcmp(key, "sliding_attention") == 0;
        int32_t s;

        if (!davit_rope_is_layer_type(key) || (sliding && local && !has_sliding))
            continue;
        first = first ? first : value;
        s = add_rope(config, key, value,
                     sliding && local ? davit_rope_symbol(config, "theta_local", theta)
                                      : theta,
                     report);
        status = status == DAVIT_OK ? s : status;
    }
    if (status == DAVIT_OK)
        status = add_rope(config, "", first, theta, report);
    return status;
}

int32_t davit_config_bind_rope(davit_config *config, DavitReport *report)
{
    const DavitSymbol *theta = davit_config_symbol(config, "theta");
    const DavitSymbol *local = davit_config_symbol(config, "theta_local");
    json_t *dict;
    int32_t status;

    if (!theta) {
        json_t *nothing = json_null();

        return add_rope(config, "", nothing, 0, report);
    }
    if (theta->failed || !theta->nums || (local && (local->failed || !local->nums)))
        return DAVIT_E_CORRUPT; /* a record says why */
    dict = davit_rope_dict(config);
    if (davit_rope_is_nested(dict))
        status = bind_nested(config, dict, theta->nums[0], report);
    else
        status = add_rope(config, "", dict, theta->nums[0], report);
    if (status == DAVIT_OK && local &&
        !json_is_object(json_object_get(dict, "sliding_attention")))
        status = add_rope(config, "sliding_attention", NULL, local->nums[0], report);
    json_decref(dict);
    return status;
}
