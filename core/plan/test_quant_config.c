/* SPDX-License-Identifier: Apache-2.0
 * Lists of module names in quantisation settings: each dialect, and that finding by name says
 * what a look at every entry would. */
#include <string.h>

#include "plan/quant_config_private.h"

static DavitQuantConfig *parse(const char *text)
{
    g_autoptr(DavitReport) report = davit_report_new();
    json_t *block = json_loads(text, 0, NULL);
    DavitQuantConfig *config;

    g_assert_nonnull(block);
    config = davit_quant_config_parse(block, NULL, NULL, report);
    json_decref(block);
    g_assert_false(davit_report_failed(report));
    g_assert_nonnull(config);
    return config;
}

static davit_quant_settings settings_of(const DavitQuantConfig *config, const char *module)
{
    davit_quant_settings s = {0};

    g_assert_true(davit_quant_config_for(config, module, &s));
    return s;
}

/* Is @module left plain by a list @key of method @method that holds @entry alone? */
static bool left_out(const char *method, const char *key, const char *entry,
                     const char *module)
{
    g_autofree char *text = g_strdup_printf("{\"quant_method\":\"%s\",\"%s\":[\"%s\"]}",
                                            method, key, entry);
    g_autoptr(DavitQuantConfig) config = parse(text);

    return settings_of(config, module).quantized == 0;
}

/* A setting that cannot be is told, and nobody gets it. */
static void block_sizes_that_cannot_be(void)
{
    static const char *const sizes[] = {"\"0x0\"", "\"-1x-1\"", "[-1,-1]", "[32,0]",
                                        "\"9223372036854775807x32\"", "\"32\"", "[32]"};

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *text = g_strdup_printf(
            "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{"
            "\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8,\"block_structure\":%s}}}}",
            sizes[i]);
        g_autoptr(DavitReport) report = davit_report_new();
        json_t *block = json_loads(text, 0, NULL);
        g_autoptr(DavitQuantConfig) config = davit_quant_config_parse(block, NULL, NULL, report);

        json_decref(block);
        g_assert_cmpuint(davit_report_count(report), ==, 1);
        g_assert_cmpuint(davit_report_get(report, 0)->code, ==, DAVIT_R_QUANT_CONFIG_VALUE);
        g_assert_cmpint(settings_of(config, "m").block_rows, ==, 0);
        g_assert_cmpint(settings_of(config, "m").block_cols, ==, 0);
    }
}

static void dialects(void)
{
    static const struct {
        const char *method, *key, *entry, *module;
        bool covers;
    } rows[] = {
        {"fp8", "ignored_layers", "model.a", "model.a", true},
        {"fp8", "ignored_layers", "model.a", "model.a.b", false},
        {"fp8", "ignored_layers", "model.a", "model.language_model.a", true},
        {"fp8", "ignored_layers", "model.language_model.a", "model.a", true},
        {"fp8", "ignored_layers", "language_model.model.a", "model.a", true},
        {"fp8", "ignored_layers", "a", "model.a", false},
        {"modelopt", "exclude_modules", "model.a", "model.a.b.c", true},
        {"modelopt", "exclude_modules", "model.a", "model.ab", false},
        {"modelopt", "exclude_modules", "model.a*", "model.a.b", true},
        {"modelopt", "exclude_modules", "model.a*", "model.ab", false},
        {"modelopt", "exclude_modules", "*.b", "model.a.b", true},
        {"modelopt", "exclude_modules", "language_model.model.a", "model.a.b", true},
        {"compressed-tensors", "ignore", "model.a", "model.a", true},
        {"compressed-tensors", "ignore", "model.a", "model.a.b", false},
        {"compressed-tensors", "ignore", "re:.*b$", "model.a.b", true},
        {"compressed-tensors", "ignore", "Linear", "model.layers.0.mlp.up_proj", true},
        {"compressed-tensors", "ignore", "Linear", "lm_head", true},
        {"compressed-tensors", "ignore", "Linear", "model.embed_tokens", false},
        {"compressed-tensors", "ignore", "Embedding", "model.embed_tokens", true},
        {"compressed-tensors", "ignore", "Embedding", "lm_head", false},
        {"compressed-tensors", "ignore", "Conv1d", "model.a", false},
        {"awq", "modules_to_not_convert", "a", "model.bar", true},
        {"gptq", "modules_to_not_convert", "a", "model.a", true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%s %s on %s", rows[i].key, rows[i].entry, rows[i].module);
        g_assert_cmpint(left_out(rows[i].method, rows[i].key, rows[i].entry, rows[i].module),
                        ==, rows[i].covers);
    }
}

/* A name for each of a few thousand modules, among them patterns: what a look at every entry
 * finds is what finding by name finds. */
static bool in_list(const DavitQuantConfig *config, const char *module)
{
    for (guint i = 0; i < config->ignore.patterns->len; i++)
        if (davit_name_pattern_has(
                g_array_index(config->ignore.patterns, DavitQuantPattern, i).pattern, module,
                NULL))
            return true;
    return false;
}

static void found_by_name_as_by_looking(void)
{
    g_autoptr(GString) text =
        g_string_new("{\"quant_method\":\"modelopt\",\"exclude_modules\":[\"*.gate\"");
    g_autoptr(DavitQuantConfig) config = NULL;
    size_t n_out = 0;

    for (int i = 0; i < 2000; i += 3)
        g_string_append_printf(text, ",\"%s%d.%s\"", i % 2 ? "m." : "model.language_model.", i,
                               i % 5 ? "up" : "up.weight_quantizer");
    g_string_append(text, ",\"m.5*\"]}");
    config = parse(text->str);
    g_assert_cmpuint(g_hash_table_size(config->ignore.plain), ==, 667);
    g_assert_cmpuint(config->ignore.rest->len, ==, 2);
    for (int i = 0; i < 2000; i++) {
        static const char *const forms[] = {"m.%d.up", "model.%d.up", "m.%d.up.part",
                                            "m.%d.gate", "model.language_model.%d"};

        for (size_t f = 0; f < G_N_ELEMENTS(forms); f++) {
            g_autofree char *place = g_strdup_printf("%d", i);
            g_auto(GStrv) parts = g_strsplit(forms[f], "%d", 2);
            g_autofree char *module = g_strjoinv(place, parts);
            const bool out = settings_of(config, module).quantized == 0;

            g_assert_cmpint(out, ==, in_list(config, module));
            n_out += out;
        }
    }
    g_assert_cmpuint(n_out, >, 2000);
}

/* Of two that say the same the first counts, wherever each was found. */
static void groups_of_layers(void)
{
    g_autoptr(DavitQuantConfig) config =
        parse("{\"quant_method\":\"modelopt\",\"quantized_layers\":{"
              "\"m.a\":{\"quant_algo\":\"FP8\"},\"m.b\":{\"quant_algo\":\"NVFP4\",\"group_size\":16},"
              "\"m.?\":{\"quant_algo\":\"W8A8\"}}}");

    g_assert_cmpstr(settings_of(config, "m.a").format, ==, "fp8");
    g_assert_cmpint(settings_of(config, "m.a").ambiguous, ==, 0);
    g_assert_cmpint(settings_of(config, "m.b").ambiguous, ==, 1);
    g_assert_cmpstr(settings_of(config, "m.c").format, ==, "w8a8");
    g_assert_cmpint(settings_of(config, "x").quantized, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quant_config/block_sizes_that_cannot_be", block_sizes_that_cannot_be);
    g_test_add_func("/quant_config/dialects", dialects);
    g_test_add_func("/quant_config/found_by_name_as_by_looking", found_by_name_as_by_looking);
    g_test_add_func("/quant_config/groups_of_layers", groups_of_layers);
    return g_test_run();
}
