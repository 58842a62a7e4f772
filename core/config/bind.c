/* SPDX-License-Identifier: Apache-2.0
 * Settings bound to an architecture: every row of its config table gets a value, or the
 * binding is refused with all findings. */
#include "config/bind_private.h"

#include <string.h>

static void symbol_free(void *data)
{
    DavitSymbol *symbol = data;

    g_free(symbol->key);
    g_free(symbol->subject);
    g_strfreev(symbol->words);
    g_free(symbol->ints);
    g_free(symbol->nums);
    g_free(symbol->texts);
    g_free(symbol);
}

static void rope_free(void *data)
{
    DavitRope *rope = data;

    g_free(rope->layer_type);
    g_free(rope->factors);
    g_free(rope);
}

static davit_config *config_new(const DavitSettings *settings,
                                const davit_arch_iface *arch)
{
    davit_config *config = g_new0(davit_config, 1);

    config->settings = settings;
    config->arch = arch;
    config->symbols = g_ptr_array_new_with_free_func(symbol_free);
    config->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    config->ropes = g_ptr_array_new_with_free_func(rope_free);
    config->strings = g_string_chunk_new(256);
    config->rope_seen = g_new0(int, 1);
    config->scratch = davit_report_new();
    config->mistakes = davit_report_new();
    return config;
}

void davit_config_free(davit_config *config)
{
    if (!config)
        return;
    g_ptr_array_unref(config->symbols);
    g_hash_table_unref(config->by_name);
    g_ptr_array_unref(config->ropes);
    g_string_chunk_free(config->strings);
    g_free(config->rope_seen);
    davit_report_free(config->scratch);
    davit_report_free(config->mistakes);
    g_free(config);
}

davit_config *davit_config_bare(const DavitSettings *settings)
{
    return config_new(settings, NULL);
}

DavitSymbol *davit_config_symbol(const davit_config *config, const char *sym)
{
    return g_hash_table_lookup(config->by_name, sym);
}

/* L has just been bound: per-layer rows need it within the core's own limit. */
static int32_t take_layers(davit_config *config, DavitReport *report)
{
    DavitSymbol *symbol = davit_config_symbol(config, "L");

    if (symbol->failed || !symbol->ints)
        return DAVIT_E_CORRUPT;
    if (symbol->ints[0] < 1 || symbol->ints[0] > DAVIT_MAX_LAYERS) {
        symbol->failed = true;
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                    .status = DAVIT_E_LIMIT,
                                    .stage = "config",
                                    .subject = symbol->subject,
                                    .expected = "1 to 65536 layers",
                                    .found = davit_report_text(
                                        report, "%" G_GINT64_FORMAT, symbol->ints[0]),
                                    .message = "number of layers is out of bounds"});
    }
    config->n_layers = symbol->ints[0];
    return DAVIT_OK;
}

davit_config *davit_config_bind(const DavitSettings *settings,
                                const davit_arch_iface *arch, DavitReport *report)
{
    g_autoptr(davit_config) config = config_new(settings, arch);
    const char *at = (const char *)arch->config;
    bool ok = true;

    /* The author's rows may be longer than ours (later fields), or shorter: read ours
     * only. */
    for (;; at += arch->config_stride) {
        davit_config_row row = {0};

        memcpy(&row, at, MIN(sizeof row, arch->config_stride));
        if (!row.sym)
            break;
        ok &= davit_config_bind_row(config, &row, report) == DAVIT_OK;
        if (strcmp(row.sym, "L") == 0)
            ok &= take_layers(config, report) == DAVIT_OK;
    }
    ok &= davit_config_bind_rope(config, report) == DAVIT_OK;
    return ok ? g_steal_pointer(&config) : NULL;
}

/* "32", "0.5", "silu", "1 1 0 1 ..." of a bound symbol. (owned, g_free) */
static char *symbol_text(const DavitSymbol *symbol)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < symbol->n && i < 8; i++) {
        if (i > 0)
            g_string_append_c(text, ' ');
        if (symbol->texts)
            g_string_append(text, symbol->texts[i] ? symbol->texts[i] : "none");
        else if (symbol->nums)
            g_string_append_printf(text, "%.9g", symbol->nums[i]);
        else
            g_string_append_printf(text, "%" G_GINT64_FORMAT, symbol->ints[i]);
    }
    if (symbol->n > 8)
        g_string_append(text, " ...");
    return g_string_free(text, FALSE);
}

void davit_config_report_assumed(const davit_config *config, DavitReport *report)
{
    for (guint i = 0; i < config->symbols->len; i++) {
        const DavitSymbol *symbol = g_ptr_array_index(config->symbols, i);
        const char *spellings =
            config->settings->keys ? symbol->row.gguf : symbol->row.json;
        g_autofree char *text = NULL;

        /* Null states that the value is to be derived; what a file cannot hold is no
         * hole. */
        if (symbol->given || symbol->is_null || !spellings)
            continue;
        text = symbol_text(symbol);
        davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_ASSUMED,
                            .stage = "config",
                            .subject = symbol->subject,
                            .expected = text,
                            .found = "nothing",
                            .message = "the file does not state this; the default of "
                                       "the model class was taken"});
    }
}

int davit_config_tied(const davit_config *config, bool *out_given)
{
    const DavitSettings *settings = config->settings;
    DavitSymbol *symbol = davit_config_symbol(config, "tie");
    g_autofree char *key = NULL;
    const json_t *outer;

    *out_given = false;
    if (settings->keys)
        return 1;
    if (!symbol)
        return 0;
    davit_symbol_mark(symbol);
    *out_given = symbol->given;
    outer = davit_settings_lookup(settings->wrapper, symbol->row.json, NULL, &key);
    if (json_is_boolean(outer)) {
        *out_given = true;
        return json_is_true(outer);
    }
    return symbol->ints[0] != 0;
}
