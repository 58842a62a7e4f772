/* SPDX-License-Identifier: Apache-2.0
 * Rope settings in every spelling (rope.c) through the numbers of the SDK (sdk/src/arch),
 * against what transformers holds (tests/golden/rope/make_rope.py), and what is refused.
 */
#include "config/config.h"

#include <math.h>
#include <string.h>

#include <davit/help/decoder.h>
#include <davit/help/rope.h>

#include "config/settings_private.h"

/* Two units in the last place: torch's vectorised pow is not correctly rounded. */
#define MAX_ULP 2

static const davit_config_row whole_rows[] = {
    DAVIT_CONFIG_SIZES("", "", "", "", ""),
    DAVIT_CONFIG_HEADS("nh", "H/nh"),
    DAVIT_CONFIG_ROPE("10000", "2048"),
    DAVIT_CONFIG_END,
};
static const davit_config_row partial_rows[] = {
    DAVIT_CONFIG_SIZES("", "", "", "", ""),
    DAVIT_CONFIG_HEADS("nh", "H/nh"),
    DAVIT_CONFIG_ROPE("10000", "2048"),
    {"partial", "float", "rope_parameters.partial_rotary_factor|partial_rotary_factor",
     NULL, "0.25", NULL, NULL},
    DAVIT_CONFIG_END,
};
static const davit_config_row local_rows[] = {
    DAVIT_CONFIG_SIZES("", "", "", "", ""),
    DAVIT_CONFIG_HEADS("nh", "H/nh"),
    DAVIT_CONFIG_ROPE("1000000", "2048"),
    {"theta_local", "float",
     "rope_parameters.sliding_attention.rope_theta|rope_local_base_freq",
     "rope.freq_base_swa", "10000", NULL, NULL},
    DAVIT_CONFIG_END,
};

static const davit_arch_iface whole = {.config = whole_rows,
                                       .config_stride = sizeof whole_rows[0]};
static const davit_arch_iface partial = {.config = partial_rows,
                                         .config_stride = sizeof partial_rows[0]};
static const davit_arch_iface local = {.config = local_rows,
                                       .config_stride = sizeof local_rows[0]};

static davit_rope_spec rope_of(const davit_config *config, const char *layer_type)
{
    davit_rope_spec spec = {.struct_size = sizeof spec};

    davit_config_suite_get()->rope(config, layer_type, &spec);
    return spec;
}

/* Distance of two float32 of one sign in units in the last place. */
static int64_t ulps(float a, float b)
{
    int32_t x, y;

    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return llabs((int64_t)x - (int64_t)y);
}

static size_t n_exact, n_values;

static void compare(const char *name, const json_t *want, const davit_rope_spec *spec,
                    uint64_t head_dim, uint32_t variant)
{
    float got[DAVIT_ROPE_MAX_PAIRS];

    g_assert_cmpuint(davit_rope_rot_dim(spec, head_dim), ==, 2 * json_array_size(want));
    davit_rope_inv_freq(spec, head_dim, variant, got);
    for (size_t j = 0; j < json_array_size(want); j++) {
        float w = (float)json_number_value(json_array_get(want, j));

        if (ulps(got[j], w) > MAX_ULP)
            g_error("%s[%zu]: got %.9g, want %.9g", name, j, (double)got[j], (double)w);
        n_exact += ulps(got[j], w) == 0;
        n_values++;
    }
}

static void check_case(const json_t *c)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const json_t *json = json_object_get(c, "config");
    const char *type = json_string_value(json_object_get(json, "model_type"));
    const char *name = json_string_value(json_object_get(c, "name"));
    const davit_arch_iface *arch = &whole;
    char *text = json_dumps(json, 0);
    g_autoptr(DavitSettings) settings =
        davit_settings_parse(text, strlen(text), NULL, 0, "config.json", report);
    g_autoptr(davit_config) config = NULL;
    davit_rope_spec spec;
    int64_t hd = 0;

    free(text);
    if (strcmp(type, "stablelm") == 0)
        arch = &partial;
    else if (strcmp(type, "gemma3_text") == 0)
        arch = &local;
    g_assert_nonnull(settings);
    config = davit_config_bind(settings, arch, report);
    if (!config)
        g_error("%s: %s", name, davit_record_sentence(davit_report_get(report, 0)));
    g_assert_true(davit_config_get_int(config, "hd", -1, &hd));
    spec = rope_of(config, json_string_value(json_object_get(c, "layer_type")));
    compare(name, json_object_get(c, "inv_freq"), &spec, (uint64_t)hd, 0);
    if (json_object_get(c, "inv_freq_long"))
        compare(name, json_object_get(c, "inv_freq_long"), &spec, (uint64_t)hd, 1);
    g_assert_cmpint(ulps(davit_rope_attention(&spec),
                         (float)json_number_value(json_object_get(c, "attention"))),
                    <=, 1);
}

static void test_numbers_of_transformers(void)
{
    json_t *golden =
        json_load_file(DAVIT_SOURCE_DIR "/tests/golden/rope/rope.json", 0, NULL);
    json_t *cases = json_object_get(golden, "cases");

    g_assert_cmpuint(json_array_size(cases), >, 20);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i));
    g_test_message("%zu of %zu inverse frequencies are equal to the last bit", n_exact,
                   n_values);
    json_decref(golden);
}

/* archs.md 4, "Checks". */
static void test_published_factors(void)
{
    davit_rope_spec s = {.type = DAVIT_ROPE_YARN, .factor = 32, .attention_factor = NAN};

    g_assert_cmpfloat_with_epsilon((double)davit_rope_attention(&s), 1.34657, 1e-5);
    s = (davit_rope_spec){.type = DAVIT_ROPE_LONGROPE,
                          .factor = 32,
                          .original_max = 4096,
                          .attention_factor = NAN};
    g_assert_cmpfloat_with_epsilon((double)davit_rope_attention(&s), 1.19024, 1e-5);
    s = (davit_rope_spec){.type = DAVIT_ROPE_YARN,
                          .factor = 40,
                          .attention_factor = NAN,
                          .mscale = 1,
                          .mscale_all_dim = 1};
    g_assert_cmpfloat((double)davit_rope_attention(&s), ==, 1);
    g_assert_cmpfloat_with_epsilon(pow(davit_rope_mscale(40, 1), 2), 1.8739, 1e-4);
}

#define SIZES                                                                                \
    "\"vocab_size\":64,\"hidden_size\":64,\"intermediate_size\":64,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":4,\"max_position_embeddings\":256"

static davit_config *bind_text(const char *rest, const davit_arch_iface *arch,
                               DavitSettings **out_settings, DavitReport *report)
{
    g_autofree char *text = g_strdup_printf("{" SIZES "%s%s}", *rest ? "," : "", rest);

    *out_settings =
        davit_settings_parse(text, strlen(text), NULL, 0, "config.json", report);
    g_assert_nonnull(*out_settings);
    return davit_config_bind(*out_settings, arch, report);
}

static void test_spellings(void)
{
    static const struct {
        const char *text;
        uint32_t type;
        double theta, factor;
    } rows[] = {
        {"", DAVIT_ROPE_DEFAULT, 10000, 1},
        {"\"rope_scaling\":null", DAVIT_ROPE_DEFAULT, 10000, 1},
        {"\"rope_scaling\":{}", DAVIT_ROPE_DEFAULT, 10000, 1},
        {"\"rope_theta\":500.0,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}",
         DAVIT_ROPE_LINEAR, 500, 2},
        {"\"rope_scaling\":{\"rope_type\":\"linear\",\"type\":\"linear\",\"factor\":2}",
         DAVIT_ROPE_LINEAR, 10000, 2},
        {"\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[2,3,3]}",
         DAVIT_ROPE_DEFAULT, 10000, 1},
        /* theta inside wins over the top level; rope_scaling replaces rope_parameters */
        {"\"rope_theta\":500.0,\"rope_parameters\":{\"rope_theta\":700.0}",
         DAVIT_ROPE_DEFAULT, 700, 1},
        {"\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":700.0},"
         "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":900.0}",
         DAVIT_ROPE_LINEAR, 900, 2},
        {"\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1,1,1,1,1,1,1],"
         "\"long_factor\":[2,2,2,2,2,2,2,2],\"original_max_position_embeddings\":64}",
         DAVIT_ROPE_LONGROPE, 10000, 4},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitSettings) settings = NULL;
        g_autoptr(davit_config) config =
            bind_text(rows[i].text, &whole, &settings, report);
        davit_rope_spec spec;

        g_assert_nonnull(config);
        spec = rope_of(config, "");
        g_assert_cmpuint(spec.type, ==, rows[i].type);
        g_assert_cmpfloat(spec.theta, ==, rows[i].theta);
        g_assert_cmpfloat(spec.factor, ==, rows[i].factor);
        g_assert_cmpfloat(spec.max_positions, ==, 256);
        g_assert_cmpuint(davit_report_count(report), ==, 0);
    }
}

static void test_types_disagree_warns(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) settings = NULL;
    g_autoptr(davit_config) config = bind_text(
        "\"rope_scaling\":{\"rope_type\":\"linear\",\"type\":\"dynamic\",\"factor\":2}",
        &whole, &settings, report);

    g_assert_nonnull(config);
    g_assert_cmpuint(rope_of(config, "").type, ==, DAVIT_ROPE_LINEAR);
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    g_assert_cmpint(davit_report_get(report, 0)->severity, ==, DAVIT_WARNING);
    g_assert_cmpuint(davit_report_get(report, 0)->code, ==, DAVIT_R_SOURCE_CHOSEN);
}

static void test_nested_null_is_no_rotation(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) settings = NULL;
    g_autoptr(davit_config) config = bind_text(
        "\"rope_parameters\":{\"full_attention\":null,\"sliding_attention\":{\"rope_theta\":5.0}}",
        &whole, &settings, report);

    g_assert_nonnull(config);
    g_assert_cmpuint(rope_of(config, "full_attention").type, ==, DAVIT_ROPE_NONE);
    g_assert_cmpuint(rope_of(config, "sliding_attention").type, ==, DAVIT_ROPE_DEFAULT);
    g_assert_cmpfloat(rope_of(config, "sliding_attention").theta, ==, 5);
}

/* B010: layers must not take the base of another type. */
static void test_layer_type_without_entry(void)
{
    static const char text[] =
        "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":9.0}},"
        "\"layer_types\":[\"full_attention\",\"sliding_attention\"]";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) settings = NULL;
    const DavitRecord *record;

    g_assert_null(bind_text(text, &whole, &settings, report));
    record = davit_report_first_error(report, 0);
    g_assert_cmpuint(record->code, ==, DAVIT_R_CONFIG_MISSING);
    g_assert_cmpstr(record->subject, ==, "config.json: rope of sliding_attention settings");
    g_assert_cmpstr(record->found, ==, "nothing");
}

static void test_refused(void)
{
    static const struct {
        const char *text;
        uint32_t code;
        const char *subject, *found;
    } rows[] = {
        {"{\"rope_type\":\"spiral\"}", DAVIT_R_CONFIG_UNSUPPORTED,
         "config.json: rope rope_type", "spiral"},
        {"{\"type\":\"dynamic\",\"factor\":1.0,\"alpha\":1000.0}",
         DAVIT_R_CONFIG_UNSUPPORTED, "config.json: rope alpha", "1000"},
        {"{\"type\":\"yarn\",\"factor\":4.0,\"llama_4_scaling_beta\":0.1}",
         DAVIT_R_CONFIG_UNSUPPORTED, "config.json: rope llama_4_scaling_beta", "0.1"},
        {"{\"type\":\"linear\"}", DAVIT_R_CONFIG_MISSING, "config.json: rope factor",
         "nothing"},
        {"{\"type\":\"linear\",\"factor\":0}", DAVIT_R_CONFIG_INVALID,
         "config.json: rope factor", "0"},
        {"{\"type\":\"linear\",\"factor\":\"2\"}", DAVIT_R_CONFIG_INVALID,
         "config.json: rope factor", "\"2\""},
        {"{\"type\":\"linear\",\"factor\":Infinity}", DAVIT_R_VALUE_NOT_FINITE,
         "config.json: rope factor", "Infinity"},
        {"{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4}",
         DAVIT_R_CONFIG_MISSING, "config.json: rope original_max_position_embeddings",
         "nothing"},
        {"{\"rope_type\":\"llama3\",\"factor\":8,\"high_freq_factor\":4,"
         "\"original_max_position_embeddings\":64}",
         DAVIT_R_CONFIG_MISSING, "config.json: rope low_freq_factor", "nothing"},
        {"{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4,"
         "\"original_max_position_embeddings\":64}",
         DAVIT_R_CONFIG_INVALID, "config.json: rope high_freq_factor", "4"},
        {"{\"type\":\"longrope\",\"short_factor\":[1,1],\"long_factor\":[1,1]}",
         DAVIT_R_CONFIG_INVALID, "config.json: rope short_factor and long_factor",
         "2 and 2"},
        {"{\"rope_type\":1}", DAVIT_R_CONFIG_INVALID, "config.json: rope rope_type", "1"},
        {"{\"type\":[\"yarn\"],\"factor\":2}", DAVIT_R_CONFIG_INVALID,
         "config.json: rope type", "[\"yarn\"]"},
        {"{\"full_attention\":5}", DAVIT_R_CONFIG_INVALID,
         "config.json: rope of full_attention settings", "5"},
        {"{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}",
         DAVIT_R_CONFIG_UNSUPPORTED, "config.json: rope partial_rotary_factor", "0.5"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitSettings) settings = NULL;
        g_autofree char *text = g_strdup_printf("\"rope_scaling\":%s", rows[i].text);
        const DavitRecord *record;

        g_assert_null(bind_text(text, &whole, &settings, report));
        record = davit_report_first_error(report, 0);
        g_assert_nonnull(record);
        g_assert_cmpuint(record->code, ==, rows[i].code);
        g_assert_cmpstr(record->subject, ==, rows[i].subject);
        g_assert_cmpstr(record->found, ==, rows[i].found);
    }
}

static davit_config *bind_gguf(const char *rest, const davit_arch_iface *arch,
                               DavitSettings **out_settings, DavitReport *report)
{
    g_autofree char *text = g_strdup_printf(
        "{\"general.architecture\":\"a\",\"a.vocab_size\":8,\"a.embedding_length\":64,"
        "\"a.feed_forward_length\":8,\"a.block_count\":2,\"a.attention.head_count\":4,"
        "\"a.context_length\":512%s%s}",
        *rest ? "," : "", rest);

    *out_settings = davit_settings_from_keys(json_loads(text, 0, NULL), "m.gguf", report);
    g_assert_nonnull(*out_settings);
    return davit_config_bind(*out_settings, arch, report);
}

static void test_gguf_keys(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) settings = NULL;
    g_autoptr(davit_config) config = bind_gguf(
        "\"a.rope.freq_base\":500.0,\"a.rope.dimension_count\":16,\"a.rope.scaling.type\":\"yarn\","
        "\"a.rope.scaling.factor\":4.0,\"a.rope.scaling.original_context_length\":128",
        &whole, &settings, report);
    davit_rope_spec spec;

    g_assert_nonnull(config);
    spec = rope_of(config, "");
    g_assert_cmpuint(spec.type, ==, DAVIT_ROPE_YARN);
    g_assert_cmpfloat(spec.theta, ==, 500);
    g_assert_cmpfloat(spec.factor, ==, 4);
    g_assert_cmpfloat(spec.original_max, ==, 128);
    g_assert_cmpfloat(spec.partial, ==, 1);
}

static void test_gguf_partial_and_local(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSettings) settings = NULL, settings2 = NULL, settings3 = NULL;
    g_autoptr(davit_config) whole_head =
        bind_gguf("\"a.rope.dimension_count\":16", &partial, &settings, report);
    g_autoptr(davit_config) gemma =
        bind_gguf("\"a.rope.scaling.type\":\"linear\",\"a.rope.scaling.factor\":8.0",
                  &local, &settings2, report);

    g_assert_nonnull(whole_head);
    g_assert_nonnull(gemma);
    /* the count in the file, not the class default of 0.25 */
    g_assert_cmpfloat(rope_of(whole_head, "").partial, ==, 1);
    g_assert_cmpuint(rope_of(gemma, "full_attention").type, ==, DAVIT_ROPE_LINEAR);
    g_assert_cmpuint(rope_of(gemma, "sliding_attention").type, ==, DAVIT_ROPE_DEFAULT);
    g_assert_cmpfloat(rope_of(gemma, "sliding_attention").theta, ==, 10000);
    /* an architecture that rotates whole heads does not run on a part */
    g_assert_null(bind_gguf("\"a.rope.dimension_count\":8", &whole, &settings3, report));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rope/numbers_of_transformers", test_numbers_of_transformers);
    g_test_add_func("/rope/published_factors", test_published_factors);
    g_test_add_func("/rope/spellings", test_spellings);
    g_test_add_func("/rope/types_disagree_warns", test_types_disagree_warns);
    g_test_add_func("/rope/nested_null_is_no_rotation", test_nested_null_is_no_rotation);
    g_test_add_func("/rope/layer_type_without_entry", test_layer_type_without_entry);
    g_test_add_func("/rope/refused", test_refused);
    g_test_add_func("/rope/gguf_keys", test_gguf_keys);
    g_test_add_func("/rope/gguf_partial_and_local", test_gguf_partial_and_local);
    return g_test_run();
}
