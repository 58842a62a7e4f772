/* SPDX-License-Identifier: Apache-2.0
 * Reading quantisation settings. Facts: the configs of transformers, AutoAWQ, AutoGPTQ,
 * GPTQModel, compressed-tensors, ModelOpt. Matching of names is in quant_names.c. */
#include "plan/quant_config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config/tree.h"
#include "plan/quant_config_private.h"

#define MAX_PATTERNS 65536 /* entries of one list; real ones have one per module */

static const char block_name[] = "config.json: quantization_config";

/* ---- findings ---- */

static void add_finding(DavitReport *report, uint32_t code, int32_t status,
                        const char *subject, const char *expected, const char *found,
                        const char *message)
{
    davit_report_add(report, &(DavitFinding){.code = code,
                                             .status = status,
                                             .stage = "config",
                                             .subject = subject,
                                             .expected = expected,
                                             .found = found,
                                             .message = message});
}

void davit_quant_value_fault(DavitQuantConfig *q, const char *key, const char *expected,
                             const json_t *found, DavitReport *report)
{
    g_autofree char *text = davit_tree_text(found);

    add_finding(report, DAVIT_R_QUANT_CONFIG_VALUE, DAVIT_E_CORRUPT,
                davit_report_text(report, "%s: %s", q->base.source, key), expected, text,
                "a quantisation setting has a value that it cannot have");
}

void davit_quant_unsupported(DavitQuantConfig *q, const char *key, const char *found,
                             const char *message, DavitReport *report)
{
    add_finding(report, DAVIT_R_QUANT_LAYOUT, DAVIT_E_UNSUPPORTED,
                davit_report_text(report, "%s: %s", q->base.source, key), NULL, found,
                message);
}

/* ---- values ---- */

const char *davit_quant_text(DavitQuantConfig *q, const json_t *object, const char *key,
                             DavitReport *report)
{
    const json_t *value = json_object_get(object, key);
    g_autofree char *lower = NULL;

    if (!value || json_is_null(value))
        return NULL;
    if (!json_is_string(value)) {
        davit_quant_value_fault(q, key, "a string", value, report);
        return NULL;
    }
    lower = g_ascii_strdown(json_string_value(value), -1);
    return g_string_chunk_insert_const(q->texts, lower);
}

/* 0 = not stated. @least: lowest value besides 0. */
int64_t davit_quant_number(DavitQuantConfig *q, const json_t *object, const char *key,
                           int64_t least, DavitReport *report)
{
    const json_t *value = json_object_get(object, key);
    const double real = json_real_value(value); /* 4.0, as some tools write 4; 0 if it is none */
    int64_t n = json_integer_value(value);

    if (!value || json_is_null(value))
        return 0;
    if (json_is_real(value) && fabs(real) <= INT32_MAX && real == floor(real))
        n = (int64_t)real;
    if (n != 0 && n >= least && n <= INT32_MAX)
        return n;
    davit_quant_value_fault(
        q, key, least < 0 ? "-1, or a whole number above 0" : "a whole number above 0", value, report);
    return 0;
}

int32_t davit_quant_flag(DavitQuantConfig *q, const json_t *object, const char *key,
                         DavitReport *report)
{
    const json_t *value = json_object_get(object, key);

    if (!value || json_is_null(value))
        return -1;
    if (json_is_boolean(value))
        return json_is_true(value);
    davit_quant_value_fault(q, key, "true or false", value, report);
    return -1;
}

static void read_block_size(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const json_t *size = json_object_get(block, "weight_block_size");
    const json_t *rows = json_array_get(size, 0), *cols = json_array_get(size, 1);

    if (!size || json_is_null(size))
        return;
    if (json_array_size(size) != 2 || !json_is_integer(rows) || !json_is_integer(cols) ||
        json_integer_value(rows) <= 0 || json_integer_value(cols) <= 0 ||
        json_integer_value(rows) > INT32_MAX || json_integer_value(cols) > INT32_MAX) {
        davit_quant_value_fault(q, "weight_block_size", "two numbers above 0", size,
                                report);
        return;
    }
    q->base.block_rows = json_integer_value(rows);
    q->base.block_cols = json_integer_value(cols);
}

/* ---- method ---- */

/* Method by the writer's spelling; NULL stays NULL. */
static const char *method_name(const char *stated)
{
    static const char *const other[][2] = {
        {"compressed_tensors", "compressed-tensors"}, {"modelopt_fp4", "modelopt"},
        {"modelopt_mixed", "modelopt"},               {"marlin", "gptq"},
        {"gptq_marlin", "gptq"},                      {"awq_marlin", "awq"},
    };

    for (size_t i = 0; stated && i < G_N_ELEMENTS(other); i++) {
        if (strcmp(stated, other[i][0]) == 0)
            return other[i][1];
    }
    return stated;
}

static const char *find_method(DavitQuantConfig *q, const json_t *block,
                               const json_t *producer, const char *file,
                               DavitReport *report)
{
    const char *stated = davit_quant_text(q, block, "quant_method", report);
    const char *name = json_string_value(json_object_get(producer, "name"));

    if (!stated && name && strcmp(name, "modelopt") == 0)
        stated = "modelopt";
    if (!stated && strcmp(file, "quantize_config.json") == 0)
        stated = "gptq";
    if (!stated && strcmp(file, "quant_config.json") == 0)
        stated = json_object_get(block, "w_bit") ? "awq" : "gptq";
    return method_name(stated);
}

static const char *either_text(DavitQuantConfig *q, const json_t *block, const char *first,
                               const char *second, DavitReport *report)
{
    const char *text = davit_quant_text(q, block, first, report);

    return text || !second ? text : davit_quant_text(q, block, second, report);
}

static bool is_method(const DavitQuantConfig *q, const char *method)
{
    return g_strcmp0(q->base.method, method) == 0;
}

/* ---- lists ---- */

void davit_quant_add_pattern(DavitQuantConfig *q, DavitNameDialect dialect,
                             const json_t *entry, const char *key, GArray *out,
                             size_t group, DavitReport *report)
{
    const size_t mark = davit_report_count(report);
    DavitQuantPattern p = {.group = group};
    const char *why;

    if (!json_is_string(entry) || out->len >= MAX_PATTERNS) {
        davit_quant_value_fault(q, key, "module names", entry, report);
        return;
    }
    p.pattern = davit_name_pattern_new(dialect, json_string_value(entry), key, report);
    if (p.pattern) {
        g_array_append_val(out, p);
        return;
    }
    why = davit_report_text(report, "a list of names has a pattern that cannot be read: %s",
                            davit_report_get(report, mark)->message);
    davit_report_truncate(report, mark); /* said of a tokenizer's pattern */
    add_finding(report, DAVIT_R_QUANT_CONFIG_VALUE, DAVIT_E_CORRUPT,
                davit_report_text(report, "%s: %s", q->base.source, key),
                "a regular expression of Python", json_string_value(entry), why);
}

static void read_ignore(DavitQuantConfig *q, const json_t *block, const char *key,
                        DavitNameDialect dialect, DavitReport *report)
{
    const json_t *list = json_object_get(block, key);

    if (!list || json_is_null(list))
        return;
    if (json_is_string(list))
        davit_quant_add_pattern(q, dialect, list, key, q->ignore.patterns, 0,
                                report);
    else if (!json_is_array(list))
        davit_quant_value_fault(q, key, "a list of module names", list, report);
    for (size_t i = 0; i < json_array_size(list); i++)
        davit_quant_add_pattern(q, dialect, json_array_get(list, i), key,
                                q->ignore.patterns, 0, report);
}

static void read_ignores(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const DavitNameDialect by_method =
        is_method(q, "awq") ? DAVIT_NAMES_SUBSTRING : DAVIT_NAMES_TRANSFORMERS;

    read_ignore(q, block, "modules_to_not_convert", by_method, report);
    read_ignore(q, block, "llm_int8_skip_modules", DAVIT_NAMES_SUBSTRING, report);
    read_ignore(q, block, "ignored_layers", DAVIT_NAMES_EXACT, report);
    read_ignore(q, block, "exclude_modules", DAVIT_NAMES_WILDCARD, report);
    read_ignore(q, block, "ignore",
                is_method(q, "modelopt") ? DAVIT_NAMES_WILDCARD : DAVIT_NAMES_CT, report);
}

/* ---- one source ---- */

/* Of keys and values: ModelOpt's name of a type (also in place of the scheme), or a scheme as
 * compressed-tensors writes it. */
static void read_cache(DavitQuantConfig *q, const json_t *block, DavitReport *report)
{
    const json_t *scheme = json_object_get(block, "kv_cache_scheme");
    const char *type = davit_quant_text(q, block, "kv_cache_quant_algo", report);
    const char *number;
    int64_t bits;

    if (!json_is_object(scheme)) {
        q->cache.type = type ? type : davit_quant_text(q, block, "kv_cache_scheme", report);
        if (g_strcmp0(q->cache.type, "none") == 0)
            q->cache.type = NULL;
        return;
    }
    bits = davit_quant_number(q, scheme, "num_bits", 1, report);
    number = davit_quant_text(q, scheme, "type", report);
    q->cache.strategy = davit_quant_text(q, scheme, "strategy", report);
    if (!type && ((number && strcmp(number, "float") != 0) || (bits && bits != 8)))
        type = davit_report_text(report, "%s of %" PRId64 " bits", number ? number : "numbers",
                                 bits ? bits : 8);
    q->cache.type = g_string_chunk_insert_const(q->texts, type ? type : "fp8");
}

/* Everything that one block says, into @q. */
static void read_block(DavitQuantConfig *q, const json_t *whole, const char *file,
                       DavitReport *report)
{
    const json_t *inner = json_object_get(whole, "quantization");
    const json_t *block = json_is_object(inner) ? inner : whole;
    const json_t *producer = json_object_get(whole, "producer");
    const char *version = json_string_value(json_object_get(producer, "version"));

    q->base.method = find_method(q, block, producer, file, report);
    q->base.format = either_text(q, block, "checkpoint_format", "format", report);
    if (is_method(q, "modelopt"))
        q->base.format = either_text(q, block, "quant_algo", NULL, report);
    else if (is_method(q, "awq"))
        q->base.format = either_text(q, block, "version", NULL, report);
    else if (is_method(q, "bitsandbytes") && json_is_true(json_object_get(block, "load_in_4bit")))
        q->base.format = either_text(q, block, "bnb_4bit_quant_type", NULL, report);
    else
        q->base.producer = either_text(q, block, "version", NULL, report);
    if (version)
        q->base.producer = g_string_chunk_insert_const(q->texts, version);
    q->base.scale_fmt = davit_quant_text(q, block, "scale_fmt", report);
    q->base.activations = davit_quant_text(q, block, "activation_scheme", report);
    q->base.bits = davit_quant_number(q, block, "bits", 1, report);
    if (!q->base.bits)
        q->base.bits = davit_quant_number(q, block, "w_bit", 1, report);
    q->base.group = davit_quant_number(q, block, "group_size", -1, report);
    if (!q->base.group)
        q->base.group = davit_quant_number(q, block, "q_group_size", -1, report);
    q->base.symmetric = davit_quant_flag(q, block, "sym", report);
    q->base.act_order = davit_quant_flag(q, block, "desc_act", report);
    q->base.status = davit_quant_text(q, block, "quantization_status", report);
    read_block_size(q, block, report);
    read_cache(q, block, report);
    read_ignores(q, block, report);
    davit_quant_read_groups(q, block, report);
}

static DavitQuantConfig *config_new(const char *source)
{
    DavitQuantConfig *q = g_new0(DavitQuantConfig, 1);

    q->texts = g_string_chunk_new(256);
    q->ignore.patterns = davit_quant_patterns_new();
    q->targets.patterns = davit_quant_patterns_new();
    q->groups = g_array_new(FALSE, TRUE, sizeof(davit_quant_settings));
    q->base = (davit_quant_settings){.struct_size = DAVIT_END(davit_quant_settings, ambiguous),
                                     .source = g_string_chunk_insert(q->texts, source),
                                     .symmetric = -1,
                                     .act_order = -1,
                                     .quantized = -1};
    return q;
}

void davit_quant_config_free(DavitQuantConfig *config)
{
    if (!config)
        return;
    davit_quant_list_clear(&config->ignore);
    davit_quant_list_clear(&config->targets);
    g_array_unref(config->groups);
    g_string_chunk_free(config->texts);
    g_free(config);
}

DavitQuantCache davit_quant_config_cache(const DavitQuantConfig *config)
{
    return config ? config->cache : (DavitQuantCache){NULL, NULL};
}

/* ---- several sources ---- */

static DavitQuantConfig *add_source(DavitQuantConfig *q, const json_t *whole,
                                    const char *file, const char *source,
                                    DavitReport *report)
{
    DavitQuantConfig *other = config_new(source);

    read_block(other, whole, file, report);
    if (!q)
        return other;
    davit_quant_config_merge(q, other, report);
    davit_quant_config_free(other);
    return q;
}

/* All sources are read: lists do not change any more. Returns: @q. */
static DavitQuantConfig *finish(DavitQuantConfig *q)
{
    if (q) {
        davit_quant_list_index(&q->ignore);
        davit_quant_list_index(&q->targets);
    }
    return q;
}

DavitQuantConfig *davit_quant_config_parse(const json_t *block, const json_t *file,
                                           const char *file_name, DavitReport *report)
{
    DavitQuantConfig *q = NULL;

    if (json_is_object(block))
        q = add_source(q, block, "config.json", block_name, report);
    if (json_is_object(file))
        q = add_source(q, file, file_name, file_name, report);
    return finish(q);
}

static const char *const file_names[] = {"hf_quant_config.json", "quantize_config.json",
                                         "quant_config.json"};

DavitQuantConfig *davit_quant_config_new(const DavitSettings *settings,
                                         const DavitCheckpoint *checkpoint, uint32_t allow,
                                         DavitReport *report)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) blocks = settings ? davit_settings_quantizations(settings, paths) : NULL;
    DavitQuantConfig *q = NULL;

    for (guint i = 0; blocks && i < blocks->len; i++)
        q = add_source(q, blocks->pdata[i], "config.json", paths->pdata[i], report);
    for (size_t i = 0; i < G_N_ELEMENTS(file_names); i++) {
        g_autoptr(GBytes) bytes = NULL;
        json_t *tree;
        gsize len;
        const char *text;

        if (davit_checkpoint_sibling(checkpoint, file_names[i], DAVIT_TREE_MAX_BYTES,
                                     &bytes, report) != DAVIT_OK ||
            !bytes)
            continue;
        text = g_bytes_get_data(bytes, &len);
        tree = davit_tree_parse(text, len, file_names[i], report);
        if (!tree)
            continue;
        q = add_source(q, tree, file_names[i], file_names[i], report);
        json_decref(tree);
    }
    if (q)
        q->base.allow = allow;
    return finish(q);
}
