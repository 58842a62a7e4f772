/* SPDX-License-Identifier: Apache-2.0
 * One row of a config table: find the value under its spellings, or the default that
 * holds for this model, convert it, check its bound. */
#include "config/bind_private.h"

#include <math.h>
#include <string.h>

#include "config/expr.h"
#include "config/tree.h"

const char *davit_config_subject(const davit_config *config, const char *key,
                                 DavitReport *report)
{
    return davit_report_text(report, "%s: %s", config->settings->subject, key);
}

static int32_t refuse(DavitSymbol *symbol, uint32_t code, const char *expected,
                      const char *found, const char *message, DavitReport *report)
{
    int32_t status =
        code == DAVIT_R_CONFIG_UNSUPPORTED ? DAVIT_E_UNSUPPORTED : DAVIT_E_CORRUPT;

    symbol->failed = true;
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = status,
                                                    .stage = "config",
                                                    .subject = symbol->subject,
                                                    .expected = expected,
                                                    .found = found,
                                                    .message = message});
}

/* ---- scope of a table's own expressions ---- */

typedef struct RowScope {
    davit_config *config;
    int64_t layer; /* -1 = no `i` */
} RowScope;

static bool lookup(void *ctx, const char *sym, int64_t *out)
{
    RowScope *scope = ctx;
    DavitSymbol *symbol = davit_config_symbol(scope->config, sym);

    if (strcmp(sym, "i") == 0 && scope->layer >= 0) {
        *out = scope->layer;
        return true;
    }
    if (symbol && symbol->failed) {
        scope->config->echo = true;
        *out = 1;
        return true;
    }
    if (!symbol || !symbol->ints || (symbol->n > 1 && scope->layer < 0))
        return false;
    davit_symbol_mark(symbol);
    *out = symbol->ints[symbol->n > 1 ? scope->layer : 0];
    return true;
}

/* Evaluate @text of @symbol's row at @layer. An expression over a refused symbol fails
 * without a record of its own. */
static int32_t evaluate(davit_config *config, const DavitSymbol *symbol, const char *text,
                        int64_t layer, int64_t *out, DavitReport *report)
{
    RowScope ctx = {config, symbol->per_layer ? layer : -1};
    DavitScope scope = {lookup, &ctx};
    int32_t status;

    config->echo = false;
    status = davit_expr_eval(text, &scope, symbol->subject, out, config->scratch);
    if (status != DAVIT_OK && !config->echo)
        davit_report_append(report, config->scratch);
    davit_report_truncate(config->scratch, 0);
    return config->echo ? DAVIT_E_CORRUPT : status;
}

/* ---- class defaults ---- */

/* The next item of a list cut at commas outside parentheses. (owned) trimmed, NULL at the
 * end. */
static char *next_item(const char **at)
{
    const char *start = *at;
    int depth = 0;
    char *item;

    if (!start)
        return NULL;
    while (**at != '\0' && (**at != ',' || depth > 0)) {
        depth += **at == '(';
        depth -= **at == ')';
        (*at)++;
    }
    item = g_strstrip(g_strndup(start, (size_t)(*at - start)));
    *at = **at == ',' ? *at + 1 : NULL;
    return item;
}

/* The value of "name:value" in @text, or of the item without a name when @name is NULL.
 */
static char *find_item(const char *text, const char *name)
{
    for (const char *at = text; at;) {
        g_autofree char *item = next_item(&at);
        char *colon = strchr(item, ':');

        if (!name && !colon)
            return g_steal_pointer(&item);
        if (!name || !colon)
            continue;
        *colon = '\0';
        if (strcmp(g_strstrip(item), name) == 0)
            return g_strstrip(g_strdup(colon + 1));
    }
    return NULL;
}

char *davit_config_pick_default(const davit_config *config, const char *text)
{
    const DavitSettings *s = config->settings;
    char *found = NULL;

    if (!text)
        return g_strdup("");
    /* model_types ends with NULL; the innermost type comes last */
    for (guint i = s->model_types->len; i > 0 && !found; i--) {
        const char *type = g_ptr_array_index(s->model_types, i - 1);

        found = type ? find_item(text, type) : NULL;
    }
    if (!found && s->gguf_arch)
        found = find_item(text, s->gguf_arch);
    if (!found && s->gguf_arch)
        found = find_item(text, "gguf");
    if (!found)
        found = find_item(text, NULL);
    return found ? found : g_strdup("");
}

/* ---- one value ---- */

static const char *type_text(const DavitSymbol *symbol)
{
    switch (symbol->type) {
    case DAVIT_SYMBOL_INT:
        return "an integer";
    case DAVIT_SYMBOL_FLOAT:
        return "a number";
    case DAVIT_SYMBOL_BOOL:
        return "true or false";
    case DAVIT_SYMBOL_LAYERS:
        return "a list of layer indexes";
    case DAVIT_SYMBOL_STR:
        break;
    }
    return "a string";
}

/* Word of the bound list, or any word when there is none. */
static int32_t set_word(DavitSymbol *symbol, size_t at, const char *word,
                        DavitReport *report)
{
    symbol->texts[at] = word;
    for (size_t i = 0; symbol->words && symbol->words[i]; i++)
        if (strcmp(symbol->words[i], word) == 0) {
            symbol->texts[at] = symbol->words[i];
            symbol->ints[at] = (int64_t)i;
            return DAVIT_OK;
        }
    if (!symbol->words)
        return DAVIT_OK;
    return refuse(
        symbol, DAVIT_R_CONFIG_UNSUPPORTED, symbol->row.bound, word,
        "the setting asks for something that this architecture plugin does not know",
        report);
}

static int32_t set_index(DavitSymbol *symbol, size_t at, int64_t index,
                         DavitReport *report)
{
    size_t n = symbol->words ? g_strv_length(symbol->words) : 0;

    if (index < 0 || (uint64_t)index >= n)
        return refuse(symbol, DAVIT_R_CONFIG_UNSUPPORTED,
                      davit_report_text(report, "an index below %zu", n),
                      davit_report_text(report, "%" G_GINT64_FORMAT, index),
                      "index is outside the list of known values", report);
    return set_word(symbol, at, symbol->words[index], report);
}

/* An integer however it is written: 2, 2.0; in a GGUF also true. */
static bool whole_number(const davit_config *config, const json_t *value, int64_t *out)
{
    double d = json_is_real(value) ? json_real_value(value) : NAN;

    if (json_is_integer(value))
        *out = json_integer_value(value);
    else if (isfinite(d) && d == floor(d) && fabs(d) < 9007199254740992.0) /* 2^53 */
        *out = (int64_t)d;
    else if (json_is_boolean(value) && config->settings->keys)
        *out = json_is_true(value);
    else
        return false;
    return true;
}

/* Convert one JSON value that is not null. */
static int32_t set_value(const davit_config *config, DavitSymbol *symbol, size_t at,
                         const json_t *value, DavitReport *report)
{
    int64_t v = 0;
    bool whole = whole_number(config, value, &v);
    g_autofree char *found = NULL;

    if (symbol->type == DAVIT_SYMBOL_STR && json_is_string(value))
        return set_word(symbol, at, json_string_value(value), report);
    if (symbol->type == DAVIT_SYMBOL_STR && whole && config->settings->keys)
        return set_index(symbol, at, v, report);
    found = davit_tree_text(value);
    if (symbol->type == DAVIT_SYMBOL_FLOAT &&
        davit_tree_number(value, &symbol->nums[at])) {
        if (isfinite(symbol->nums[at]))
            return DAVIT_OK;
        return refuse(symbol, DAVIT_R_VALUE_NOT_FINITE, "a finite number", found,
                      "the model needs this setting, and it is not finite", report);
    }
    if (symbol->type == DAVIT_SYMBOL_INT && whole) {
        symbol->ints[at] = v;
        return DAVIT_OK;
    }
    if (symbol->type == DAVIT_SYMBOL_BOOL &&
        (json_is_boolean(value) ||
         (whole && config->settings->keys && (v == 0 || v == 1)))) {
        symbol->ints[at] = json_is_boolean(value) ? json_is_true(value) : v;
        return DAVIT_OK;
    }
    return refuse(symbol, DAVIT_R_CONFIG_INVALID, type_text(symbol), found,
                  "setting has a wrong type", report);
}

static int32_t set_layers(const davit_config *config, DavitSymbol *symbol,
                          const json_t *value, DavitReport *report)
{
    g_autofree char *found = davit_tree_text(value);

    if (!json_is_array(value))
        return refuse(symbol, DAVIT_R_CONFIG_INVALID, type_text(symbol), found,
                      "setting has a wrong type", report);
    for (size_t i = 0; i < json_array_size(value); i++) {
        int64_t layer;

        if (!whole_number(config, json_array_get(value, i), &layer) || layer < 0)
            return refuse(symbol, DAVIT_R_CONFIG_INVALID, type_text(symbol), found,
                          "setting has a wrong type", report);
        if ((uint64_t)layer < symbol->n) /* files list layers that were cut off */
            symbol->ints[layer] = 1;
    }
    return DAVIT_OK;
}

/* A value from the file: one for all, or an array with one for each layer. */
static int32_t set_given(const davit_config *config, DavitSymbol *symbol,
                         const json_t *value, DavitReport *report)
{
    size_t n_items = json_is_array(value) ? json_array_size(value) : 0;
    int32_t status = DAVIT_OK;

    symbol->given = true;
    if (symbol->type == DAVIT_SYMBOL_LAYERS)
        return set_layers(config, symbol, value, report);
    if (json_is_array(value) && !symbol->per_layer && !config->settings->keys) {
        g_autofree char *found = davit_tree_text(value);

        return refuse(symbol, DAVIT_R_CONFIG_INVALID, type_text(symbol), found,
                      "setting has a wrong type", report);
    }
    if (json_is_array(value) && symbol->per_layer && n_items != symbol->n)
        return refuse(
            symbol, DAVIT_R_CONFIG_INVALID,
            davit_report_text(report, "%zu entries, one for each layer", symbol->n),
            davit_report_text(report, "%zu entries", n_items),
            "per-layer setting has a wrong length", report);
    if (json_is_array(value) && !symbol->per_layer && n_items > 0) {
        /* GGUF writes some settings for each layer: fine while they are all the same */
        for (size_t i = 1; i < n_items; i++)
            if (!json_equal(json_array_get(value, 0), json_array_get(value, i)))
                return refuse(symbol, DAVIT_R_CONFIG_UNSUPPORTED,
                              "one value for all layers", "different values by layer",
                              "this architecture plugin takes one value for all layers",
                              report);
        value = json_array_get(value, 0);
    }
    for (size_t i = 0; i < symbol->n && status == DAVIT_OK; i++)
        status =
            set_value(config, symbol, i,
                      json_is_array(value) ? json_array_get(value, i) : value, report);
    return status;
}

/* ---- a default ---- */

/* Decimal number, symbol of a float, or an integer expression. */
static int32_t set_default_float(davit_config *config, DavitSymbol *symbol, size_t at,
                                 const char *text, DavitReport *report)
{
    const DavitSymbol *other = davit_config_symbol(config, text);
    char *end = NULL;
    double v = g_ascii_strtod(text, &end);
    int64_t whole = 0;
    int32_t status;

    if (end != text && *end == '\0') {
        symbol->nums[at] = v;
        return DAVIT_OK;
    }
    if (other && other->nums && !other->failed) {
        davit_symbol_mark(other);
        symbol->nums[at] = other->nums[other->n > 1 ? at : 0];
        return DAVIT_OK;
    }
    status = evaluate(config, symbol, text, (int64_t)at, &whole, report);
    symbol->nums[at] = (double)whole;
    return status;
}

static int32_t set_default_at(davit_config *config, DavitSymbol *symbol, size_t at,
                              const char *text, DavitReport *report)
{
    int64_t v = 0;
    int32_t status;

    if (symbol->type == DAVIT_SYMBOL_FLOAT)
        return set_default_float(config, symbol, at, text, report);
    if (symbol->type == DAVIT_SYMBOL_STR && text[0] != '=')
        return set_word(symbol, at, g_string_chunk_insert_const(config->strings, text),
                        report);
    status = evaluate(config, symbol, text + (symbol->type == DAVIT_SYMBOL_STR),
                      (int64_t)at, &v, report);
    if (status != DAVIT_OK)
        return status;
    if (symbol->type == DAVIT_SYMBOL_STR)
        return set_index(symbol, at, v, report);
    symbol->ints[at] = v;
    return DAVIT_OK;
}

static int32_t set_default(davit_config *config, DavitSymbol *symbol, DavitReport *report)
{
    const char *rule =
        symbol->is_null && symbol->row.null ? symbol->row.null : symbol->row.absent;
    g_autofree char *text = davit_config_pick_default(config, rule);
    int32_t status = DAVIT_OK;

    if (*text == '\0')
        return refuse(symbol, DAVIT_R_CONFIG_MISSING, type_text(symbol),
                      symbol->is_null ? "null" : "nothing",
                      "the model needs this setting and it has no default", report);
    for (size_t i = 0; i < symbol->n && status == DAVIT_OK; i++)
        status = set_default_at(config, symbol, i, text, report);
    return status;
}

/* ---- bounds ---- */

static int32_t bound_number(davit_config *config, const DavitSymbol *symbol,
                            const char *text, int64_t layer, double *out,
                            DavitReport *report)
{
    char *end = NULL;
    double v = g_ascii_strtod(text, &end);
    int64_t whole = 0;
    int32_t status;

    if (end != text && *end == '\0') {
        *out = v;
        return DAVIT_OK;
    }
    status = evaluate(config, symbol, text, layer, &whole, report);
    *out = (double)whole;
    return status;
}

static int32_t check_bound(davit_config *config, DavitSymbol *symbol, DavitReport *report)
{
    const char *bound = symbol->row.bound;
    const char *dots =
        bound && symbol->type != DAVIT_SYMBOL_STR ? strstr(bound, "..") : NULL;
    g_autofree char *low = dots ? g_strndup(bound, (size_t)(dots - bound)) : NULL;

    for (size_t i = 0; dots && i < symbol->n; i++) {
        double v = symbol->nums ? symbol->nums[i] : (double)symbol->ints[i];
        double lo = -INFINITY;
        double hi = INFINITY;

        if ((*low != '\0' &&
             bound_number(config, symbol, low, (int64_t)i, &lo, report) != DAVIT_OK) ||
            (dots[2] != '\0' && bound_number(config, symbol, dots + 2, (int64_t)i, &hi,
                                             report) != DAVIT_OK)) {
            symbol->failed = true;
            return DAVIT_E_CORRUPT;
        }
        if (!(v >= lo && v <= hi))
            return refuse(symbol, DAVIT_R_CONFIG_INVALID,
                          davit_report_text(report, "%.10g to %.10g", lo, hi),
                          symbol->given
                              ? davit_report_text(report, "%.10g", v)
                              : davit_report_text(report,
                                                  "%.10g, taken because the file does not state it",
                                                  v),
                          "setting is outside its range", report);
    }
    return DAVIT_OK;
}

/* ---- the row ---- */

/* "int*" -> INT, per layer. False for an unknown type. */
static bool read_type(DavitSymbol *symbol)
{
    static const struct {
        const char *name;
        DavitSymbolType type;
    } types[] = {{"int", DAVIT_SYMBOL_INT},
                 {"float", DAVIT_SYMBOL_FLOAT},
                 {"bool", DAVIT_SYMBOL_BOOL},
                 {"str", DAVIT_SYMBOL_STR},
                 {"layers", DAVIT_SYMBOL_LAYERS}};
    size_t len = strcspn(symbol->row.type, "*");

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        if (strlen(types[i].name) == len &&
            strncmp(symbol->row.type, types[i].name, len) == 0) {
            symbol->type = types[i].type;
            symbol->per_layer =
                symbol->row.type[len] == '*' || types[i].type == DAVIT_SYMBOL_LAYERS;
            return true;
        }
    return false;
}

static void allocate(DavitSymbol *symbol, int64_t n_layers)
{
    symbol->n = symbol->per_layer ? (size_t)n_layers : 1;
    if (symbol->type == DAVIT_SYMBOL_STR && symbol->row.bound)
        symbol->words = g_strsplit(symbol->row.bound, "|", -1);
    if (symbol->type == DAVIT_SYMBOL_FLOAT)
        symbol->nums = g_new0(double, symbol->n);
    else if (symbol->type != DAVIT_SYMBOL_STR || symbol->words)
        symbol->ints = g_new0(int64_t, symbol->n);
    if (symbol->type == DAVIT_SYMBOL_STR)
        symbol->texts = g_new0(const char *, symbol->n);
}

int32_t davit_config_bind_row(davit_config *config, const davit_config_row *row,
                              DavitReport *report)
{
    DavitSymbol *symbol = g_new0(DavitSymbol, 1);
    const json_t *value;
    int32_t status;

    symbol->row = *row;
    value = davit_settings_value(config->settings, row->json, row->gguf, &symbol->key);
    g_ptr_array_add(config->symbols, symbol);
    g_hash_table_insert(config->by_name, (char *)(uintptr_t)row->sym, symbol);
    if (*symbol->key == '\0') { /* the file cannot state it: records name the symbol */
        g_free(symbol->key);
        symbol->key = g_strdup(row->sym);
    }
    symbol->subject = g_strdup_printf("%s: %s", config->settings->subject, symbol->key);
    if (!row->type || !read_type(symbol))
        return refuse(symbol, DAVIT_R_CONFIG_INVALID, "int, float, bool, str or layers",
                      row->type, "config table of the architecture has an unknown type",
                      report);
    if (symbol->per_layer && config->n_layers == 0) {
        symbol->failed = true; /* L was refused, or the table's author forgot it */
        return davit_config_symbol(config, "L")
                   ? DAVIT_E_CORRUPT
                   : refuse(symbol, DAVIT_R_CONFIG_INVALID, "L before per-layer rows",
                            row->sym, "config table of the architecture is out of order",
                            report);
    }
    allocate(symbol, config->n_layers);
    symbol->is_null = json_is_null(value);
    if (value && !symbol->is_null)
        status = set_given(config, symbol, value, report);
    else
        status = set_default(config, symbol, report);
    if (status == DAVIT_OK)
        status = check_bound(config, symbol, report);
    symbol->failed |= status != DAVIT_OK;
    return status;
}
