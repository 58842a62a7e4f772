/* SPDX-License-Identifier: Apache-2.0
 * What config.json and generation_config.json say: nesting resolved, names by which an
 * architecture may claim the model, stop tokens, sampling. Reading files:
 * settings_open.c. */
#include "config/settings_private.h"

#include <math.h>
#include <string.h>

#include "config/tree.h"

#define MAX_EOS 256 /* ids of one list; real ones have up to 10 */

/* Where wrappers of several modalities keep their text model. */
static const char *const nested_keys[] = {"text_config", "llm_config", "language_config",
                                          "thinker_config"};

static int32_t invalid(DavitReport *report, uint32_t code, const char *file,
                       const char *key, const char *expected, const json_t *found,
                       const char *message)
{
    g_autofree char *text = davit_tree_text(found);

    return davit_report_add(
        report, &(DavitFinding){.code = code,
                                .status = DAVIT_E_CORRUPT,
                                .stage = "config",
                                .subject = davit_report_text(report, "%s: %s", file, key),
                                .expected = expected,
                                .found = text,
                                .message = message});
}

/* ---- nesting and names ---- */

const json_t *davit_settings_nested(const json_t *level, const char **out_key)
{
    for (size_t i = 0; i < G_N_ELEMENTS(nested_keys); i++) {
        const json_t *inner = json_object_get(level, nested_keys[i]);

        *out_key = nested_keys[i];
        if (json_is_object(inner))
            return inner;
    }
    return NULL;
}

static void add_names(GPtrArray *names, const json_t *value)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;

    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        const char *text = json_string_value(item);

        if (text && *text != '\0' &&
            !g_ptr_array_find_with_equal_func(names, text, g_str_equal, NULL))
            g_ptr_array_add(names, g_strdup(text));
    }
}

/* Mistral's own params.json states no type; its key names are nobody else's. */
static void name_native(DavitSettings *s, DavitReport *report)
{
    if (s->hf_names->len > 0 || s->model_types->len > 0 ||
        !json_object_get(s->json, "dim") || !json_object_get(s->json, "n_layers"))
        return;
    g_ptr_array_add(s->model_types, g_strdup("mistral"));
    /* class defaults of config.json are not those of params.json */
    g_ptr_array_add(s->model_types, g_strdup("mistral_native"));
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                     .stage = "config",
                                     .subject = s->subject,
                                     .expected = "model_type",
                                     .found = "none, and the keys dim and n_layers",
                                     .message = "taken for Mistral's native layout"});
}

/* Parts of one level that are objects or null: anything else is a broken file, and not
 * the same as a file without the part. All are reported. */
static int32_t check_parts(const DavitSettings *s, const json_t *level,
                           DavitReport *report)
{
    static const char *const others[] = {"rope_scaling", "rope_parameters",
                                         "quantization_config", "compression_config"};
    const size_t n_nested = G_N_ELEMENTS(nested_keys);
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < n_nested + G_N_ELEMENTS(others); i++) {
        const char *key = i < n_nested ? nested_keys[i] : others[i - n_nested];
        const json_t *part = json_object_get(level, key);

        if (part && !json_is_object(part) && !json_is_null(part))
            status = invalid(report, DAVIT_R_CONFIG_INVALID, s->subject, key,
                             "an object or null", part, "setting has a wrong type");
    }
    return status;
}

/* The keys of every level in one object; the innermost wins. At most
 * DAVIT_SETTINGS_LEVELS, so that a hostile file cannot make this long. */
static int32_t resolve_nesting(DavitSettings *s, DavitReport *report)
{
    const json_t *level = s->wrapper;
    int32_t status = DAVIT_OK;

    s->json = json_object();
    for (int depth = 0; level && depth < DAVIT_SETTINGS_LEVELS; depth++) {
        const char *key;

        json_object_update(s->json, (json_t *)(uintptr_t)level);
        add_names(s->hf_names, json_object_get(level, "architectures"));
        add_names(s->model_types, json_object_get(level, "model_type"));
        if (check_parts(s, level, report) != DAVIT_OK)
            status = DAVIT_E_CORRUPT;
        level = davit_settings_nested(level, &key);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(nested_keys); i++)
        json_object_del(s->json, nested_keys[i]);
    return status;
}

/* ---- stop tokens and sampling ---- */

static int32_t add_eos(DavitSettings *s, const json_t *value, const char *file,
                       const char *key, DavitReport *report)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;

    if (!value || json_is_null(value))
        return DAVIT_OK;
    if (n > MAX_EOS)
        return invalid(report, DAVIT_R_CONFIG_INVALID, file, key, "at most 256 ids", NULL,
                       "too many stop tokens");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        json_int_t id = json_integer_value(item);
        int32_t id32 = (int32_t)id;
        bool known = false;

        if (!json_is_integer(item) || id < -1 || id > INT32_MAX)
            return invalid(report, DAVIT_R_CONFIG_INVALID, file, key,
                           "a token id or a list of token ids", item, "not a token id");
        for (guint j = 0; j < s->eos->len; j++)
            known |= g_array_index(s->eos, int32_t, j) == id32;
        if (id >= 0 && !known) /* -1 is an old spelling of none */
            g_array_append_val(s->eos, id32);
    }
    return DAVIT_OK;
}

/* One of several sources of the same fact. */
typedef struct Source {
    const json_t *object;
    const char *file;
    bool gguf;
} Source;

static size_t sources_of(const DavitSettings *s, Source out[3])
{
    size_t n = 0;

    if (s->generation)
        out[n++] = (Source){s->generation, "generation_config.json", false};
    if (s->json)
        out[n++] = (Source){s->json, s->subject, false};
    if (s->keys)
        out[n++] = (Source){s->keys, s->subject, true};
    return n;
}

/* The tokenizer puts its own BOS, so a value that is none is told and left out. -1 is an
 * old spelling of none. */
static void read_bos(DavitSettings *s, const Source *source, DavitReport *report)
{
    const char *key = source->gguf ? "tokenizer.ggml.bos_token_id" : "bos_token_id";
    const json_t *value = json_object_get(source->object, key);
    const json_int_t id = json_integer_value(value);
    g_autofree char *text = NULL;

    if (!value || json_is_null(value))
        return;
    if (json_is_integer(value) && id >= -1 && id <= INT32_MAX) {
        s->bos = (int32_t)id;
        return;
    }
    text = davit_tree_text(value);
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                        .severity = DAVIT_WARNING,
                        .stage = "config",
                        .subject = davit_report_text(report, "%s: %s", source->file, key),
                        .expected = "a token id",
                        .found = text,
                        .message = "not a token id; taken as not stated"});
}

static int32_t read_stop_tokens(DavitSettings *s, DavitReport *report)
{
    static const char *const gguf_keys[] = {"tokenizer.ggml.eos_token_id",
                                            "tokenizer.ggml.eot_token_id",
                                            "tokenizer.ggml.eom_token_id"};
    Source source[3];
    size_t n = sources_of(s, source);
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < n && status == DAVIT_OK && s->eos->len == 0; i++) {
        if (!source[i].gguf)
            status = add_eos(s, json_object_get(source[i].object, "eos_token_id"),
                             source[i].file, "eos_token_id", report);
        for (size_t k = 0; source[i].gguf && k < G_N_ELEMENTS(gguf_keys); k++)
            if (status == DAVIT_OK)
                status = add_eos(s, json_object_get(source[i].object, gguf_keys[k]),
                                 source[i].file, gguf_keys[k], report);
    }
    s->bos = -1;
    for (size_t i = 0; i < n && s->bos < 0; i++)
        read_bos(s, &source[i], report);
    return status;
}

/* A sampling default and the values that it can have. */
typedef struct SamplingRow {
    const char *key, *gguf;
    double low, high;
    bool open_low; /* @low itself is outside */
    bool whole;
    const char *expected;
    double *out;
} SamplingRow;

static bool in_range(const SamplingRow *row, double v)
{
    return (row->open_low ? v > row->low : v >= row->low) && v <= row->high &&
           (!row->whole || v == floor(v));
}

/* First source that states the row's key. Absent and null: *out is left alone. */
static int32_t read_sampling_row(const DavitSettings *s, const SamplingRow *row,
                                 DavitReport *report)
{
    Source source[3];
    size_t n = sources_of(s, source);

    for (size_t i = 0; i < n; i++) {
        const char *key = source[i].gguf ? row->gguf : row->key;
        const json_t *value = json_object_get(source[i].object, key);
        double v;

        if (!value || json_is_null(value))
            continue;
        if (!davit_tree_number(value, &v))
            return invalid(report, DAVIT_R_CONFIG_INVALID, source[i].file, key,
                           "a number", value, "sampling default has a wrong type");
        if (!isfinite(v))
            return invalid(report, DAVIT_R_VALUE_NOT_FINITE, source[i].file, key,
                           "a finite number", value, "sampling default is not finite");
        if (!in_range(row, v))
            return invalid(report, DAVIT_R_CONFIG_INVALID, source[i].file, key,
                           row->expected, value, "sampling default is out of range");
        *row->out = v;
        return DAVIT_OK;
    }
    return DAVIT_OK;
}

static int32_t read_do_sample(DavitSettings *s, DavitReport *report)
{
    const json_t *object = s->generation ? s->generation : s->json;
    const json_t *value = json_object_get(object, "do_sample");

    s->sampling.do_sample = json_is_true(value);
    if (!value || json_is_null(value) || json_is_boolean(value))
        return DAVIT_OK;
    return invalid(report, DAVIT_R_CONFIG_INVALID,
                   s->generation ? "generation_config.json" : s->subject, "do_sample",
                   "true or false", value, "sampling default has a wrong type");
}

static int32_t read_sampling(DavitSettings *s, DavitReport *report)
{
    double top_k = NAN;
    const SamplingRow rows[] = {
        {"temperature", "general.sampling.temp", 0, INFINITY, false, false, "0 or more",
         &s->sampling.temperature},
        {"top_p", "general.sampling.top_p", 0, 1, true, false, "in (0, 1]",
         &s->sampling.top_p},
        {"min_p", "general.sampling.min_p", 0, 1, false, false, "in [0, 1]",
         &s->sampling.min_p},
        {"repetition_penalty", "general.sampling.penalty_repeat", 0, INFINITY, true,
         false, "above 0", &s->sampling.repetition_penalty},
        {"top_k", "general.sampling.top_k", -1, INT32_MAX, false, true,
         "a whole number from 0 to 2147483647, or -1 for no limit", &top_k},
    };
    int32_t status = read_do_sample(s, report);

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int32_t row_status;

        *rows[i].out = NAN;
        row_status = read_sampling_row(s, &rows[i], report);
        status = status == DAVIT_OK ? row_status : status;
    }
    s->sampling.top_k = isnan(top_k) ? -1 : (int64_t)MAX(top_k, 0);
    return status;
}

/* ---- making ---- */

static DavitSettings *settings_new(const char *subject)
{
    DavitSettings *s = g_new0(DavitSettings, 1);

    s->subject = g_strdup(subject);
    s->hf_names = g_ptr_array_new_with_free_func(g_free);
    s->model_types = g_ptr_array_new_with_free_func(g_free);
    s->eos = g_array_new(FALSE, FALSE, sizeof(int32_t));
    return s;
}

/* Common end of both ways in. Returns: (owned) @s, or NULL after freeing it. */
static DavitSettings *settings_finish(DavitSettings *s, DavitReport *report)
{
    int32_t stop = read_stop_tokens(s, report);
    int32_t sampling = read_sampling(s, report);

    g_ptr_array_add(s->hf_names, NULL);
    g_ptr_array_add(s->model_types, NULL);
    if (stop == DAVIT_OK && sampling == DAVIT_OK)
        return s;
    davit_settings_free(s);
    return NULL;
}

DavitSettings *davit_settings_parse(const char *config, size_t config_len,
                                    const char *generation, size_t generation_len,
                                    const char *subject, DavitReport *report)
{
    g_autoptr(DavitSettings) s = settings_new(subject);

    s->wrapper = davit_tree_parse(config, config_len, subject, report);
    if (!s->wrapper)
        return NULL;
    if (generation) {
        s->generation = davit_tree_parse(generation, generation_len,
                                         "generation_config.json", report);
        if (!s->generation)
            return NULL;
    }
    if (resolve_nesting(s, report) != DAVIT_OK)
        return NULL;
    name_native(s, report);
    return settings_finish(g_steal_pointer(&s), report);
}

DavitSettings *davit_settings_from_keys(json_t *keys, const char *subject,
                                        DavitReport *report)
{
    g_autoptr(DavitSettings) s = settings_new(subject);
    const char *arch = json_string_value(json_object_get(keys, "general.architecture"));

    s->keys = keys;
    if (!arch) {
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_CONFIG_MISSING,
                                         .status = DAVIT_E_CORRUPT,
                                         .stage = "config",
                                         .subject = "general.architecture",
                                         .expected = "a string",
                                         .found = "nothing",
                                         .message = "GGUF names no architecture"});
        return NULL;
    }
    s->gguf_arch = g_strdup(arch);
    return settings_finish(g_steal_pointer(&s), report);
}

void davit_settings_free(DavitSettings *settings)
{
    if (!settings)
        return;
    g_free(settings->subject);
    g_free(settings->gguf_arch);
    json_decref(settings->wrapper);
    json_decref(settings->json);
    json_decref(settings->keys);
    json_decref(settings->generation);
    g_ptr_array_unref(settings->hf_names);
    g_ptr_array_unref(settings->model_types);
    g_array_unref(settings->eos);
    g_free(settings);
}

/* ---- asking ---- */

bool davit_settings_is_gguf(const DavitSettings *settings)
{
    return settings->keys != NULL;
}

const char *const *davit_settings_hf_names(const DavitSettings *settings)
{
    return (const char *const *)settings->hf_names->pdata;
}

const char *const *davit_settings_model_types(const DavitSettings *settings)
{
    return (const char *const *)settings->model_types->pdata;
}

const char *davit_settings_gguf_arch(const DavitSettings *settings)
{
    return settings->gguf_arch;
}

const json_t *davit_settings_json(const DavitSettings *settings)
{
    return settings->json;
}

const int32_t *davit_settings_eos_ids(const DavitSettings *settings, size_t *out_n)
{
    *out_n = settings->eos->len;
    return (const int32_t *)(const void *)settings->eos->data;
}

int32_t davit_settings_bos_id(const DavitSettings *settings)
{
    return settings->bos;
}

void davit_settings_generation(const DavitSettings *settings,
                               DavitGenerationDefaults *out)
{
    *out = settings->sampling;
}

json_t *davit_settings_lookup(const json_t *object, const char *spellings,
                              const char *prefix, char **out_key)
{
    g_auto(GStrv) names = g_strsplit(spellings ? spellings : "", "|", -1);
    json_t *null_value = NULL;
    char *first = NULL;

    for (size_t i = 0; names[i]; i++) {
        g_autofree char *key = NULL;
        json_t *value;

        if (prefix)
            key = names[i][0] == '/' ? g_strdup(names[i] + 1)
                                     : g_strconcat(prefix, names[i], NULL);
        else
            key = g_strdup(names[i]);
        value = prefix ? json_object_get(object, key)
                       : davit_tree_get(object, key, strlen(key));
        if (value && !json_is_null(value)) {
            g_free(first);
            *out_key = g_steal_pointer(&key);
            return value;
        }
        if (!first || (value && !null_value)) {
            g_free(first);
            first = g_steal_pointer(&key);
        }
        null_value = value ? value : null_value;
    }
    *out_key = first ? first : g_strdup("");
    return null_value;
}

json_t *davit_settings_value(const DavitSettings *settings, const char *json,
                             const char *gguf, char **out_key)
{
    g_autofree char *prefix = NULL;

    if (!settings->keys)
        return davit_settings_lookup(settings->json, json, NULL, out_key);
    prefix = g_strconcat(settings->gguf_arch, ".", NULL);
    return davit_settings_lookup(settings->keys, gguf, prefix, out_key);
}
