/* SPDX-License-Identifier: Apache-2.0
 * What files say before any table binds it (settings.c): stop tokens, sampling defaults,
 * broken parts, depth. */
#include "config/config.h"

#include <math.h>
#include <string.h>

static void test_not_an_object(void)
{
    static const char *const texts[] = {"[]", "1", "{\"a\":1,\"a\":2}", "{", ""};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(DavitReport) report = davit_report_new();

        g_assert_null(davit_settings_parse(texts[i], strlen(texts[i]), NULL, 0,
                                           "config.json", report));
        g_assert_true(davit_report_failed(report));
    }
}

static void test_stop_tokens(void)
{
    static const struct {
        const char *config, *generation;
        int32_t want[3];
        size_t n;
    } cases[] = {
        {"{\"eos_token_id\":2}", "{\"eos_token_id\":[6,7,6]}", {6, 7}, 2},
        {"{\"eos_token_id\":2}", NULL, {2}, 1},
        {"{\"eos_token_id\":[1,106]}", "{\"eos_token_id\":null}", {1, 106}, 2},
        {"{\"eos_token_id\":3,\"text_config\":{}}", "{}", {3}, 1},
        {"{}", NULL, {0}, 0},
        {"{\"eos_token_id\":-1}", NULL, {0}, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const char *generation = cases[i].generation;
        g_autoptr(DavitSettings) s = davit_settings_parse(
            cases[i].config, strlen(cases[i].config), generation,
            generation ? strlen(generation) : 0, "config.json", report);
        size_t n = 99;
        const int32_t *ids;

        g_assert_nonnull(s);
        ids = davit_settings_eos_ids(s, &n);
        g_assert_cmpuint(n, ==, cases[i].n);
        for (size_t k = 0; k < n; k++)
            g_assert_cmpint(ids[k], ==, cases[i].want[k]);
        g_assert_cmpint(davit_settings_bos_id(s), ==, -1);
    }
}

/* A BOS that is no id is told, never dropped in silence. */
static void test_odd_bos(void)
{
    static const char *const odd[] = {"\"<s>\"", "[1]", "1.5", "-2", "3000000000"};

    for (size_t i = 0; i < G_N_ELEMENTS(odd); i++) {
        g_autofree char *text = g_strdup_printf("{\"bos_token_id\":%s}", odd[i]);
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitSettings) s = davit_settings_parse(text, strlen(text), NULL, 0,
                                                          "config.json", report);
        const DavitRecord *r;

        g_assert_nonnull(s);
        g_assert_cmpint(davit_settings_bos_id(s), ==, -1);
        r = davit_report_get(report, 0);
        g_assert_cmpint(r->severity, ==, DAVIT_WARNING);
        g_assert_cmpuint(r->code, ==, DAVIT_R_CONFIG_INVALID);
        g_assert_cmpstr(r->subject, ==, "config.json: bos_token_id");
    }
}

static void test_generation_refused(void)
{
    static const struct {
        const char *generation;
        uint32_t code;
        const char *subject, *found;
    } cases[] = {
        {"{\"eos_token_id\":\"</s>\"}", DAVIT_R_CONFIG_INVALID,
         "generation_config.json: eos_token_id", "\"</s>\""},
        {"{\"eos_token_id\":4294967296}", DAVIT_R_CONFIG_INVALID,
         "generation_config.json: eos_token_id", "4294967296"},
        {"{\"temperature\":\"hot\"}", DAVIT_R_CONFIG_INVALID,
         "generation_config.json: temperature", "\"hot\""},
        {"{\"temperature\":Infinity}", DAVIT_R_VALUE_NOT_FINITE,
         "generation_config.json: temperature", "Infinity"},
        {"{\"temperature\":-1}", DAVIT_R_CONFIG_INVALID,
         "generation_config.json: temperature", "-1"},
        {"{\"top_p\":0}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_p", "0"},
        {"{\"top_p\":-3}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_p", "-3"},
        {"{\"top_p\":5}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_p", "5"},
        {"{\"min_p\":1.5}", DAVIT_R_CONFIG_INVALID, "generation_config.json: min_p",
         "1.5"},
        {"{\"repetition_penalty\":0}", DAVIT_R_CONFIG_INVALID,
         "generation_config.json: repetition_penalty", "0"},
        {"{\"top_k\":-7}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_k", "-7"},
        {"{\"top_k\":0.5}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_k",
         "0.5"},
        {"{\"top_k\":1e30}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_k",
         "1e+30"},
        {"{\"top_k\":[20]}", DAVIT_R_CONFIG_INVALID, "generation_config.json: top_k",
         "[20]"},
        {"{\"do_sample\":\"yes\"}", DAVIT_R_CONFIG_INVALID,
         "generation_config.json: do_sample", "\"yes\""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const DavitRecord *record;

        g_assert_null(davit_settings_parse("{}", 2, cases[i].generation,
                                           strlen(cases[i].generation), "config.json",
                                           report));
        record = davit_report_first_error(report, 0);
        g_assert_cmpuint(record->code, ==, cases[i].code);
        g_assert_cmpint(record->status, ==, DAVIT_E_CORRUPT);
        g_assert_cmpstr(record->subject, ==, cases[i].subject);
        g_assert_cmpstr(record->found, ==, cases[i].found);
        g_assert_nonnull(record->expected);
    }
}

/* The ends of the ranges, and what other programs write for "off". */
static void test_sampling_ends(void)
{
    static const struct {
        const char *text;
        double temperature, top_p, min_p;
        int64_t top_k;
    } cases[] = {
        {"{\"temperature\":0,\"top_p\":1,\"min_p\":0,\"top_k\":0}", 0, 1, 0, 0},
        {"{\"temperature\":2,\"top_p\":0.001,\"min_p\":1,\"top_k\":-1}", 2, 0.001, 1, 0},
        {"{\"temperature\":1,\"top_p\":1,\"min_p\":0,\"top_k\":null}", 1, 1, 0, -1},
        {"{\"temperature\":1,\"top_p\":1,\"min_p\":0,\"top_k\":2147483647}", 1, 1, 0,
         INT32_MAX},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitSettings) s = davit_settings_parse(
            "{}", 2, cases[i].text, strlen(cases[i].text), "config.json", report);
        DavitGenerationDefaults d;

        g_assert_nonnull(s);
        davit_settings_generation(s, &d);
        g_assert_cmpfloat(d.temperature, ==, cases[i].temperature);
        g_assert_cmpfloat(d.top_p, ==, cases[i].top_p);
        g_assert_cmpfloat(d.min_p, ==, cases[i].min_p);
        g_assert_cmpint(d.top_k, ==, cases[i].top_k);
        g_assert_false(d.do_sample);
    }
}

/* Parts that are there and cannot be read are not parts that are absent. */
static void test_broken_parts(void)
{
    static const struct {
        const char *text, *subject, *found;
    } cases[] = {
        {"{\"rope_scaling\":\"linear\"}", "config.json: rope_scaling", "\"linear\""},
        {"{\"rope_scaling\":[]}", "config.json: rope_scaling", "[]"},
        {"{\"rope_parameters\":7}", "config.json: rope_parameters", "7"},
        {"{\"text_config\":\"text\"}", "config.json: text_config", "\"text\""},
        {"{\"thinker_config\":{\"text_config\":[1]}}", "config.json: text_config", "[1]"},
        {"{\"text_config\":{\"rope_scaling\":false}}", "config.json: rope_scaling",
         "false"},
        {"{\"quantization_config\":\"fp8\"}", "config.json: quantization_config",
         "\"fp8\""},
        {"{\"compression_config\":[]}", "config.json: compression_config", "[]"},
    };
    static const char good[] =
        "{\"rope_scaling\":null,\"rope_parameters\":{},\"text_config\":null,"
        "\"quantization_config\":null}";
    g_autoptr(DavitReport) none = davit_report_new();
    g_autoptr(DavitSettings) fine =
        davit_settings_parse(good, strlen(good), NULL, 0, "config.json", none);

    g_assert_nonnull(fine);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const DavitRecord *record;

        g_assert_null(davit_settings_parse(cases[i].text, strlen(cases[i].text), NULL, 0,
                                           "config.json", report));
        g_assert_cmpuint(davit_report_count(report), ==, 1);
        record = davit_report_get(report, 0);
        g_assert_cmpuint(record->code, ==, DAVIT_R_CONFIG_INVALID);
        g_assert_cmpint(record->status, ==, DAVIT_E_CORRUPT);
        g_assert_cmpstr(record->subject, ==, cases[i].subject);
        g_assert_cmpstr(record->expected, ==, "an object or null");
        g_assert_cmpstr(record->found, ==, cases[i].found);
    }
}

/* {"a":[[...]]} with @depth open objects and arrays. (owned, g_free) */
static char *nested_text(size_t depth)
{
    GString *text = g_string_new("{\"a\":");

    for (size_t i = 1; i < depth; i++)
        g_string_append_c(text, '[');
    for (size_t i = 1; i < depth; i++)
        g_string_append_c(text, ']');
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}

static void test_depth(void)
{
    g_autofree char *deepest = nested_text(200);
    g_autofree char *deeper = nested_text(201);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) s =
        davit_settings_parse(deepest, strlen(deepest), NULL, 0, "config.json", report);
    const DavitRecord *record;

    g_assert_nonnull(s);
    g_assert_null(
        davit_settings_parse(deeper, strlen(deeper), NULL, 0, "config.json", report));
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    record = davit_report_get(report, 0);
    g_assert_cmpuint(record->code, ==, DAVIT_R_JSON_INVALID);
    g_assert_cmpint(record->status, ==, DAVIT_E_CORRUPT);
    g_assert_cmpstr(record->expected, ==, "at most 200 open objects and arrays");
    g_assert_cmpstr(record->found, ==, "201");
}

static void test_sampling(void)
{
    static const char text[] =
        "{\"do_sample\":true,\"temperature\":0.6,\"top_k\":20,\"top_p\":null}";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) s =
        davit_settings_parse("{}", 2, text, strlen(text), "config.json", report);
    DavitGenerationDefaults d;

    davit_settings_generation(s, &d);
    g_assert_true(d.do_sample);
    g_assert_cmpfloat(d.temperature, ==, 0.6);
    g_assert_cmpint(d.top_k, ==, 20);
    g_assert_true(isnan(d.top_p));
    g_assert_true(isnan(d.min_p));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/settings/not_an_object", test_not_an_object);
    g_test_add_func("/settings/stop_tokens", test_stop_tokens);
    g_test_add_func("/settings/odd_bos", test_odd_bos);
    g_test_add_func("/settings/generation_refused", test_generation_refused);
    g_test_add_func("/settings/sampling_ends", test_sampling_ends);
    g_test_add_func("/settings/broken_parts", test_broken_parts);
    g_test_add_func("/settings/depth", test_depth);
    g_test_add_func("/settings/sampling", test_sampling);
    return g_test_run();
}
