/* SPDX-License-Identifier: Apache-2.0
 * Reading a bound configuration: for plugins through the "config" suite, for the core by
 * symbol. Every read counts as seen for the watch list. */
#include "config/bind_private.h"

#include <string.h>

#include "config/expr.h"

void davit_symbol_mark(const DavitSymbol *symbol)
{
    g_atomic_int_set((int *)(uintptr_t)&symbol->seen, 1);
}

static void mistake(const davit_config *config, const char *sym, const char *expected,
                    const char *found)
{
    davit_report_add(
        config->mistakes,
        &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                        .status = DAVIT_E_USAGE,
                        .stage = "config",
                        .subject = sym,
                        .expected = expected,
                        .found = found,
                        .message = "the architecture plugin reads a symbol that its "
                                   "config table does not give it"});
}

/* The symbol and the index for @layer; NULL after noting the plugin's mistake. */
static const DavitSymbol *read_symbol(const davit_config *config, const char *sym,
                                      int64_t layer, const char *expected, size_t *out_at)
{
    const DavitSymbol *symbol = sym ? davit_config_symbol(config, sym) : NULL;

    if (!symbol) {
        mistake(config, sym, expected, "no such symbol");
        return NULL;
    }
    if (symbol->n > 1 && (layer < 0 || (uint64_t)layer >= symbol->n)) {
        mistake(config, sym, "a layer index", "a layer that is not there");
        return NULL;
    }
    davit_symbol_mark(symbol);
    *out_at = symbol->n > 1 ? (size_t)layer : 0;
    return symbol;
}

static int64_t suite_integer(const davit_config *config, const char *sym, int64_t layer)
{
    size_t at = 0;
    const DavitSymbol *symbol = read_symbol(config, sym, layer, "an integer", &at);

    if (symbol && !symbol->ints)
        mistake(config, sym, "an integer", symbol->row.type);
    return symbol && symbol->ints ? symbol->ints[at] : 0;
}

static double suite_number(const davit_config *config, const char *sym, int64_t layer)
{
    size_t at = 0;
    const DavitSymbol *symbol = read_symbol(config, sym, layer, "a number", &at);

    if (symbol && symbol->nums)
        return symbol->nums[at];
    if (symbol && symbol->ints && !symbol->texts)
        return (double)symbol->ints[at];
    if (symbol)
        mistake(config, sym, "a number", symbol->row.type);
    return 0;
}

static int32_t suite_flag(const davit_config *config, const char *sym, int64_t layer)
{
    return suite_integer(config, sym, layer) != 0;
}

static const char *suite_text(const davit_config *config, const char *sym, int64_t layer)
{
    size_t at = 0;
    const DavitSymbol *symbol = read_symbol(config, sym, layer, "a string", &at);

    if (symbol && !symbol->texts)
        mistake(config, sym, "a string", symbol->row.type);
    return symbol && symbol->texts ? symbol->texts[at] : "";
}

static int32_t suite_given(const davit_config *config, const char *sym)
{
    size_t at = 0;
    const DavitSymbol *symbol =
        read_symbol(config, sym, 0, "a symbol of the config table", &at);

    return symbol && symbol->given;
}

static void suite_rope(const davit_config *config, const char *layer_type,
                       davit_rope_spec *out)
{
    static const char *const symbols[] = {"theta", "theta_local", "partial", "max_pos"};
    davit_rope_spec none = {.struct_size = DAVIT_END(davit_rope_spec, long_factor)};
    const davit_rope_spec *found = &none;
    uint64_t size = out->struct_size ? out->struct_size : sizeof *out;
    const char *wanted = layer_type ? layer_type : "";

    g_atomic_int_set(config->rope_seen, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(symbols); i++) {
        const DavitSymbol *symbol = davit_config_symbol(config, symbols[i]);

        if (symbol)
            davit_symbol_mark(symbol);
    }
    /* the layer type's own, else the one for all others */
    for (guint i = 0; i < config->ropes->len; i++) {
        const DavitRope *rope = g_ptr_array_index(config->ropes, i);

        if (strcmp(rope->layer_type, wanted) == 0) {
            found = &rope->spec;
            break;
        }
        if (*rope->layer_type == '\0')
            found = &rope->spec;
    }
    memcpy(out, found, MIN(size, sizeof *found));
    out->struct_size = size;
}

static int32_t suite_is_gguf(const davit_config *config)
{
    return config->settings->keys != NULL;
}

const davit_config_suite *davit_config_suite_get(void)
{
    static const davit_config_suite suite = {
        .struct_size = DAVIT_END(davit_config_suite, is_gguf),
        .integer = suite_integer,
        .number = suite_number,
        .flag = suite_flag,
        .text = suite_text,
        .given = suite_given,
        .rope = suite_rope,
        .is_gguf = suite_is_gguf,
    };

    return &suite;
}

/* ---- the core's own reading ---- */

bool davit_config_get_int(const davit_config *config, const char *sym, int64_t layer,
                          int64_t *out)
{
    const DavitSymbol *symbol = davit_config_symbol(config, sym);

    if (!symbol || !symbol->ints || symbol->failed ||
        (symbol->n > 1 && (layer < 0 || (uint64_t)layer >= symbol->n)))
        return false;
    davit_symbol_mark(symbol);
    *out = symbol->ints[symbol->n > 1 ? (size_t)layer : 0];
    return true;
}

bool davit_config_lookup(void *scope, const char *sym, int64_t *out)
{
    const DavitConfigScope *at = scope;

    if (strcmp(sym, "i") == 0 && at->layer >= 0) {
        *out = at->layer;
        return true;
    }
    return davit_config_get_int(at->config, sym, at->layer, out);
}
