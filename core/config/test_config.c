/* SPDX-License-Identifier: Apache-2.0
 * core/config/config.h: what a table makes of settings (bind.c, row.c), the tie flag, and
 * the watch list. Rope has its own program, and so have settings that no table binds. */
#include "config/config.h"

#include <math.h>
#include <string.h>

#include "config/settings_private.h"

static const davit_config_row rows[] = {
    {"V", "int", "vocab_size", "vocab_size", "gemma3_text:262208, 32000", NULL,
     "1..2147483647"},
    {"H", "int", "hidden_size|dim", "embedding_length", "", NULL, "1..1048576"},
    {"L", "int", "num_hidden_layers|n_layers", "block_count", "", NULL, "1..65536"},
    {"nh", "int", "num_attention_heads", "attention.head_count", "", NULL, "1..65536"},
    {"nkv", "int", "num_key_value_heads", "attention.head_count_kv", "mistral:8, nh",
     "nh", "1..nh"},
    {"hd", "int", "head_dim", "attention.key_length", "H/nh", "H/nh", "1..65536"},
    {"eps", "float", "rms_norm_eps", "attention.layer_norm_rms_epsilon", "1e-6", NULL,
     "0..1"},
    {"qpas", "float", "query_pre_attn_scalar", NULL, "hd", NULL, NULL},
    {"window", "int", "sliding_window", "attention.sliding_window",
     "mistral:4096, gguf:7, 0", "0", "0..4294967296"},
    {"pattern", "int", "sliding_window_pattern|_sliding_window_pattern", NULL, "6", NULL,
     "1.."},
    {"windowed", "str*", "layer_types", "attention.sliding_window_pattern",
     "=(i + 1) % pattern != 0", NULL, "full_attention|sliding_attention"},
    {"dense", "layers", "mlp_only_layers", NULL, "0", NULL, NULL},
    {"rope_on", "int*", "no_rope_layers", NULL, "(i + 1) % 4 != 0", NULL, "0..1"},
    {"act", "str", "hidden_act", NULL, "silu", NULL, "silu|gelu"},
    {"tie", "bool", "tie_word_embeddings", NULL, "gemma3_text:1, 0", NULL, NULL},
    {"bias", "bool", "attention_bias", NULL, "0", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
static const davit_arch_iface arch = {.config = rows, .config_stride = sizeof rows[0]};

#define SIZES "\"hidden_size\":64,\"num_hidden_layers\":8,\"num_attention_heads\":4"

/* Settings and their binding; both freed together. */
typedef struct Bound {
    DavitReport *report;
    DavitSettings *settings;
    davit_config *config; /* NULL = refused */
} Bound;

static Bound bind_json(const char *text)
{
    Bound b = {.report = davit_report_new()};

    b.settings =
        davit_settings_parse(text, strlen(text), NULL, 0, "config.json", b.report);
    g_assert_nonnull(b.settings);
    b.config = davit_config_bind(b.settings, &arch, b.report);
    return b;
}

static Bound bind_keys(const char *text)
{
    Bound b = {.report = davit_report_new()};

    b.settings = davit_settings_from_keys(json_loads(text, 0, NULL), "m.gguf", b.report);
    g_assert_nonnull(b.settings);
    b.config = davit_config_bind(b.settings, &arch, b.report);
    return b;
}

static void bound_clear(Bound *b)
{
    davit_config_free(b->config);
    davit_settings_free(b->settings);
    davit_report_free(b->report);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Bound, bound_clear)

static int64_t int_of(const Bound *b, const char *sym, int64_t layer)
{
    int64_t v = -77;

    g_assert_true(davit_config_get_int(b->config, sym, layer, &v));
    return v;
}

/* ---- settings ---- */

static void test_nested_keys_win(void)
{
    g_auto(Bound) b = bind_json(
        "{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"model_type\":\"gemma3\","
        "\"hidden_size\":1,\"text_config\":{\"model_type\":\"gemma3_text\"," SIZES "}}");

    g_assert_nonnull(b.config);
    g_assert_cmpint(int_of(&b, "H", -1), ==, 64);
    g_assert_cmpint(int_of(&b, "V", -1), ==,
                    262208); /* class default of the inner type */
    g_assert_cmpstr(davit_settings_hf_names(b.settings)[0], ==,
                    "Gemma3ForConditionalGeneration");
    g_assert_null(davit_settings_hf_names(b.settings)[1]);
    g_assert_cmpstr(davit_settings_model_types(b.settings)[0], ==, "gemma3");
    g_assert_cmpstr(davit_settings_model_types(b.settings)[1], ==, "gemma3_text");
    g_assert_null(davit_settings_model_types(b.settings)[2]);
}

static void test_thinker_nests_twice(void)
{
    g_auto(Bound) b =
        bind_json("{\"model_type\":\"omni\",\"thinker_config\":{\"model_type\":"
                  "\"thinker\",\"text_config\":{" SIZES ",\"head_dim\":20}}}");

    g_assert_nonnull(b.config);
    g_assert_cmpint(int_of(&b, "hd", -1), ==, 20);
}

static void test_native_names_are_mistral(void)
{
    g_auto(Bound) b = bind_json("{\"dim\":64,\"n_layers\":2,\"num_attention_heads\":8}");

    g_assert_nonnull(b.config);
    g_assert_cmpstr(davit_settings_model_types(b.settings)[0], ==, "mistral");
    g_assert_cmpstr(davit_settings_model_types(b.settings)[1], ==, "mistral_native");
    g_assert_cmpint(int_of(&b, "nkv", -1), ==, 8);
    g_assert_cmpuint(davit_report_get(b.report, 0)->code, ==, DAVIT_R_ASSUMED);
}

static void test_python_dialect(void)
{
    g_auto(Bound) b =
        bind_json("{" SIZES ",\"time_step_limit\":[0.0,Infinity],\"x\":NaN,\"y\":2}");

    g_assert_nonnull(b.config); /* nobody reads them */
    g_assert_cmpint(
        json_integer_value(json_object_get(davit_settings_json(b.settings), "y")), ==,
        2); /* what follows a non-finite number is its neighbour */
    g_assert_cmpuint(davit_report_count(b.report), ==, 0);
}

static void test_gguf(void)
{
    g_auto(Bound) b = bind_keys(
        "{\"general.architecture\":\"a\",\"a.embedding_length\":64,\"a.block_count\":2,"
        "\"a.attention.head_count\":4,\"a.attention.head_count_kv\":[2,2],\"a.vocab_size\":9,"
        "\"a.attention.sliding_window_pattern\":[true,false],"
        "\"tokenizer.ggml.eos_token_id\":7,\"tokenizer.ggml.eot_token_id\":8,"
        "\"tokenizer.ggml.bos_token_id\":1}");
    size_t n = 0;
    const int32_t *eos;
    bool given = true;

    g_assert_nonnull(b.config);
    g_assert_cmpstr(davit_settings_gguf_arch(b.settings), ==, "a");
    g_assert_true(davit_settings_is_gguf(b.settings));
    g_assert_cmpint(int_of(&b, "nkv", -1), ==, 2);    /* all layers agree */
    g_assert_cmpint(int_of(&b, "window", -1), ==, 7); /* the gguf arm */
    g_assert_cmpint(int_of(&b, "windowed", 0), ==, 1);
    g_assert_cmpint(int_of(&b, "windowed", 1), ==, 0);
    eos = davit_settings_eos_ids(b.settings, &n);
    g_assert_cmpuint(n, ==, 2);
    g_assert_cmpint(eos[0], ==, 7);
    g_assert_cmpint(eos[1], ==, 8);
    g_assert_cmpint(davit_settings_bos_id(b.settings), ==, 1);
    g_assert_cmpint(davit_config_tied(b.config, &given), ==, 1);
    g_assert_false(given);
}

static void test_gguf_values_differ_by_layer(void)
{
    g_auto(Bound) b = bind_keys(
        "{\"general.architecture\":\"a\",\"a.embedding_length\":64,\"a.block_count\":2,"
        "\"a.attention.head_count\":4,\"a.attention.head_count_kv\":[2,4]}");
    const DavitRecord *record = davit_report_first_error(b.report, 0);

    g_assert_null(b.config);
    g_assert_cmpuint(record->code, ==, DAVIT_R_CONFIG_UNSUPPORTED);
    g_assert_cmpstr(record->subject, ==, "m.gguf: a.attention.head_count_kv");
}

/* ---- binding ---- */

static void test_null_is_not_absent(void)
{
    static const struct {
        const char *text;
        int64_t window, nkv;
    } cases[] = {
        {"{" SIZES ",\"model_type\":\"mistral\",\"num_key_value_heads\":2}", 4096, 2},
        {"{" SIZES
         ",\"model_type\":\"mistral\",\"num_key_value_heads\":2,\"sliding_window\":null}",
         0, 2},
        {"{" SIZES
         ",\"model_type\":\"mistral\",\"num_key_value_heads\":null,\"sliding_window\":9}",
         9, 4},
        {"{" SIZES ",\"model_type\":\"llama\"}", 0, 4},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Bound) b = bind_json(cases[i].text);

        g_assert_nonnull(b.config);
        g_assert_cmpint(int_of(&b, "window", -1), ==, cases[i].window);
        g_assert_cmpint(int_of(&b, "nkv", -1), ==, cases[i].nkv);
    }
}

static void test_aliases_past_nulls(void)
{
    g_auto(Bound) b = bind_json(
        "{\"model_type\":\"llama\",\"hidden_size\":null,\"dim\":32,\"n_layers\":2,"
        "\"num_attention_heads\":4.0}");

    g_assert_nonnull(b.config);
    g_assert_cmpint(int_of(&b, "H", -1), ==, 32);
    g_assert_cmpint(int_of(&b, "nh", -1), ==, 4); /* a whole number however written */
}

static void test_per_layer(void)
{
    const davit_config_suite *get = davit_config_suite_get();
    g_auto(Bound) b = bind_json("{" SIZES ",\"sliding_window_pattern\":3,"
                                "\"mlp_only_layers\":[0,5,99]}");
    DavitConfigScope at;
    int64_t v;

    g_assert_nonnull(b.config);
    for (int64_t i = 0; i < 8; i++) {
        at = (DavitConfigScope){b.config, i};
        g_assert_cmpint(int_of(&b, "windowed", i), ==, (i + 1) % 3 != 0);
        g_assert_cmpint(int_of(&b, "dense", i), ==, i == 0 || i == 5);
        g_assert_cmpint(int_of(&b, "rope_on", i), ==, (i + 1) % 4 != 0);
        g_assert_cmpstr(get->text(b.config, "windowed", i), ==,
                        (i + 1) % 3 ? "sliding_attention" : "full_attention");
        g_assert_true(davit_config_lookup(&at, "i", &v));
        g_assert_cmpint(v, ==, i);
        g_assert_true(davit_config_lookup(&at, "dense", &v));
    }
    at = (DavitConfigScope){b.config, -1};
    g_assert_false(davit_config_lookup(&at, "i", &v));
    g_assert_false(davit_config_lookup(&at, "dense", &v));
    g_assert_true(davit_config_lookup(&at, "nh", &v));
    g_assert_false(
        davit_config_lookup(&at, "eps", &v)); /* floats are not in expressions */
}

static void test_given_layer_types_win(void)
{
    g_auto(Bound) b =
        bind_json("{\"hidden_size\":64,\"num_hidden_layers\":2,"
                  "\"num_attention_heads\":4,\"sliding_window_pattern\":1,"
                  "\"layer_types\":[\"sliding_attention\",\"full_attention\"]}");

    g_assert_nonnull(b.config);
    g_assert_cmpint(int_of(&b, "windowed", 0), ==, 1);
    g_assert_cmpint(int_of(&b, "windowed", 1), ==, 0);
}

static void test_suite(void)
{
    const davit_config_suite *get = davit_config_suite_get();
    g_auto(Bound) b =
        bind_json("{" SIZES ",\"rms_norm_eps\":1e-5,\"hidden_act\":\"gelu\"}");

    g_assert_nonnull(b.config);
    g_assert_cmpint(get->integer(b.config, "H", -1), ==, 64);
    g_assert_cmpfloat(get->number(b.config, "eps", -1), ==, 1e-5);
    g_assert_cmpfloat(get->number(b.config, "qpas", -1), ==, 16); /* hd */
    g_assert_cmpstr(get->text(b.config, "act", -1), ==, "gelu");
    g_assert_cmpint(get->flag(b.config, "bias", -1), ==, 0);
    g_assert_true(get->given(b.config, "eps"));
    g_assert_false(get->given(b.config, "window"));
    g_assert_cmpint(davit_config_check_unread(b.config, b.report), ==, DAVIT_OK);
    /* reading what the table does not have is the plugin's mistake, and is said */
    g_assert_cmpint(get->integer(b.config, "eps", -1), ==, 0);
    g_assert_cmpint(get->integer(b.config, "nope", -1), ==, 0);
    g_assert_cmpint(get->integer(b.config, "windowed", 8), ==, 0);
    g_assert_cmpint(davit_config_check_unread(b.config, b.report), ==, DAVIT_E_USAGE);
    g_assert_cmpuint(davit_report_count(b.report), ==, 3);
}

static void test_refused(void)
{
    static const struct {
        const char *text;
        uint32_t code;
        const char *subject, *expected, *found;
    } cases[] = {
        {"{\"num_hidden_layers\":8,\"num_attention_heads\":4}", DAVIT_R_CONFIG_MISSING,
         "config.json: hidden_size", "an integer", "nothing"},
        {"{\"hidden_size\":\"64\",\"num_hidden_layers\":8,\"num_attention_heads\":4}",
         DAVIT_R_CONFIG_INVALID, "config.json: hidden_size", "an integer", "\"64\""},
        {"{\"hidden_size\":64,\"num_hidden_layers\":8,\"num_attention_heads\":true}",
         DAVIT_R_CONFIG_INVALID, "config.json: num_attention_heads", "an integer",
         "true"},
        {"{\"hidden_size\":64,\"num_hidden_layers\":0,\"num_attention_heads\":4}",
         DAVIT_R_CONFIG_INVALID, "config.json: num_hidden_layers", "1 to 65536", "0"},
        {"{" SIZES ",\"num_key_value_heads\":5}", DAVIT_R_CONFIG_INVALID,
         "config.json: num_key_value_heads", "1 to 4", "5"},
        {"{" SIZES ",\"rms_norm_eps\":NaN}", DAVIT_R_VALUE_NOT_FINITE,
         "config.json: rms_norm_eps", "a finite number", "NaN"},
        {"{" SIZES ",\"rms_norm_eps\":{\"__float__\":\"Infinity\"}}",
         DAVIT_R_VALUE_NOT_FINITE, "config.json: rms_norm_eps", "a finite number",
         "Infinity"},
        {"{" SIZES ",\"hidden_act\":\"sine\"}", DAVIT_R_CONFIG_UNSUPPORTED,
         "config.json: hidden_act", "silu|gelu", "sine"},
        {"{" SIZES ",\"layer_types\":[\"full_attention\"]}", DAVIT_R_CONFIG_INVALID,
         "config.json: layer_types", "8 entries, one for each layer", "1 entries"},
        {"{" SIZES ",\"mlp_only_layers\":2}", DAVIT_R_CONFIG_INVALID,
         "config.json: mlp_only_layers", "a list of layer indexes", "2"},
        {"{" SIZES ",\"tie_word_embeddings\":1}", DAVIT_R_CONFIG_INVALID,
         "config.json: tie_word_embeddings", "true or false", "1"},
        {"{\"hidden_size\":64,\"num_hidden_layers\":[1],\"num_attention_heads\":4}",
         DAVIT_R_CONFIG_INVALID, "config.json: num_hidden_layers", "an integer", "[1]"},
        {"{" SIZES ",\"rms_norm_eps\":[1]}", DAVIT_R_CONFIG_INVALID,
         "config.json: rms_norm_eps", "a number", "[1]"},
        {"{" SIZES ",\"hidden_act\":[\"silu\"]}", DAVIT_R_CONFIG_INVALID,
         "config.json: hidden_act", "a string", "[\"silu\"]"},
        {"{" SIZES ",\"num_key_value_heads\":[]}", DAVIT_R_CONFIG_INVALID,
         "config.json: num_key_value_heads", "an integer", "[]"},
        {"{\"hidden_size\":65,\"num_hidden_layers\":8,\"num_attention_heads\":4}",
         DAVIT_R_CONFIG_INVALID, "config.json: head_dim", "65 divisible by 4", "H/nh"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Bound) b = bind_json(cases[i].text);
        const DavitRecord *record = davit_report_first_error(b.report, 0);

        g_assert_null(b.config);
        /* one fault, one record: what follows from it is not reported again */
        g_assert_cmpuint(davit_report_count(b.report), ==, 1);
        g_assert_cmpuint(record->code, ==, cases[i].code);
        g_assert_cmpstr(record->subject, ==, cases[i].subject);
        g_assert_cmpstr(record->expected, ==, cases[i].expected);
        g_assert_cmpstr(record->found, ==, cases[i].found);
    }
}

static void test_all_findings_together(void)
{
    g_auto(Bound) b = bind_json("{\"num_hidden_layers\":8,\"rms_norm_eps\":2,"
                                "\"attention_bias\":\"no\"}");

    g_assert_null(b.config);
    g_assert_cmpuint(davit_report_count(b.report), ==,
                     4); /* hidden_size, heads, eps, bias */
}

static void test_assumed(void)
{
    g_auto(Bound) b = bind_json("{" SIZES ",\"vocab_size\":5,\"head_dim\":null,"
                                "\"model_type\":\"mistral\",\"num_key_value_heads\":2}");
    bool window = false;

    davit_config_report_assumed(b.config, b.report);
    for (size_t i = 0; i < davit_report_count(b.report); i++) {
        const DavitRecord *r = davit_report_get(b.report, i);

        g_assert_cmpuint(r->code, ==, DAVIT_R_ASSUMED);
        g_assert_cmpint(r->severity, ==, DAVIT_NOTE);
        g_assert_cmpstr(r->subject, !=, "config.json: vocab_size");
        g_assert_cmpstr(r->subject, !=, "config.json: head_dim"); /* null = derive it */
        if (strcmp(r->subject, "config.json: sliding_window") == 0)
            window = strcmp(r->expected, "4096") == 0;
    }
    g_assert_true(window);
}

/* ---- tie flag ---- */

static void test_tie(void)
{
    static const struct {
        const char *text;
        int tied;
        bool given;
    } cases[] = {
        {"{" SIZES "}", 0, false},
        {"{" SIZES ",\"tie_word_embeddings\":true}", 1, true},
        {"{" SIZES ",\"tie_word_embeddings\":null}", 0, false},
        {"{" SIZES ",\"model_type\":\"gemma3_text\"}", 1, false},
        /* the wrapper speaks first, then the nested configuration, then the class */
        {"{\"tie_word_embeddings\":true,\"text_config\":{" SIZES
         ",\"tie_word_embeddings\":false}}",
         1, true},
        {"{\"text_config\":{" SIZES ",\"tie_word_embeddings\":true}}", 1, true},
        {"{\"text_config\":{" SIZES ",\"model_type\":\"gemma3_text\"}}", 1, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Bound) b = bind_json(cases[i].text);
        bool given = !cases[i].given;

        g_assert_nonnull(b.config);
        g_assert_cmpint(davit_config_tied(b.config, &given), ==, cases[i].tied);
        g_assert_cmpint(given, ==, cases[i].given);
    }
}

/* ---- watch list ---- */

static void test_watch(void)
{
    static const struct {
        const char *text;
        const char *subject; /* NULL = accepted */
    } cases[] = {
        {"\"embedding_multiplier\":12.0", "config.json: embedding_multiplier"},
        {"\"embedding_multiplier\":1.0", NULL},
        {"\"attn_logit_softcapping\":50.0", "config.json: attn_logit_softcapping"},
        {"\"attn_logit_softcapping\":null", NULL},
        {"\"clip_qkv\":8", "config.json: clip_qkv"},
        {"\"alibi\":true", "config.json: alibi"},
        {"\"use_qk_norm\":false", NULL},
        {"\"num_local_experts\":8", "config.json: num_local_experts"},
        {"\"no_rope_layers\":[1,1,1,1,1,1,1,1]", NULL},
        {"\"no_rope_layers\":[1,1,1,0,1,1,1,0]", "config.json: no_rope_layers"},
        {"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}",
         "config.json: rope_scaling"},
        {"\"quantization_config\":{\"bits\":4},\"use_cache\":true", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("{" SIZES ",%s}", cases[i].text);
        g_auto(Bound) b = bind_json(text);
        int32_t want = cases[i].subject ? DAVIT_E_UNSUPPORTED : DAVIT_OK;

        g_assert_nonnull(b.config);
        g_assert_cmpint(davit_config_check_unread(b.config, b.report), ==, want);
        g_assert_cmpuint(davit_report_count(b.report), ==, cases[i].subject ? 1 : 0);
        if (!cases[i].subject)
            continue;
        g_assert_cmpuint(davit_report_get(b.report, 0)->code, ==,
                         DAVIT_R_CONFIG_UNSUPPORTED);
        g_assert_cmpstr(davit_report_get(b.report, 0)->subject, ==, cases[i].subject);
    }
}

static void test_watch_is_content_once_read(void)
{
    g_auto(Bound) b = bind_json("{" SIZES ",\"sliding_window\":8}");

    g_assert_cmpint(davit_config_check_unread(b.config, b.report), ==,
                    DAVIT_E_UNSUPPORTED);
    g_assert_cmpint(int_of(&b, "window", -1), ==, 8);
    davit_report_truncate(b.report, 0);
    g_assert_cmpint(davit_config_check_unread(b.config, b.report), ==, DAVIT_OK);
}

static void test_watch_gguf(void)
{
    g_auto(Bound) b = bind_keys(
        "{\"general.architecture\":\"a\",\"a.embedding_length\":64,\"a.block_count\":2,"
        "\"a.attention.head_count\":4,\"a.expert_count\":8}");

    g_assert_nonnull(b.config);
    g_assert_cmpint(davit_config_check_unread(b.config, b.report), ==,
                    DAVIT_E_UNSUPPORTED);
    g_assert_cmpstr(davit_report_get(b.report, 0)->subject, ==, "m.gguf: a.expert_count");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/settings/nested_keys_win", test_nested_keys_win);
    g_test_add_func("/settings/thinker_nests_twice", test_thinker_nests_twice);
    g_test_add_func("/settings/native_names_are_mistral", test_native_names_are_mistral);
    g_test_add_func("/settings/python_dialect", test_python_dialect);
    g_test_add_func("/settings/gguf", test_gguf);
    g_test_add_func("/bind/gguf_values_differ_by_layer",
                    test_gguf_values_differ_by_layer);
    g_test_add_func("/bind/null_is_not_absent", test_null_is_not_absent);
    g_test_add_func("/bind/aliases_past_nulls", test_aliases_past_nulls);
    g_test_add_func("/bind/per_layer", test_per_layer);
    g_test_add_func("/bind/given_layer_types_win", test_given_layer_types_win);
    g_test_add_func("/bind/suite", test_suite);
    g_test_add_func("/bind/refused", test_refused);
    g_test_add_func("/bind/all_findings_together", test_all_findings_together);
    g_test_add_func("/bind/assumed", test_assumed);
    g_test_add_func("/bind/tie", test_tie);
    g_test_add_func("/watch/list", test_watch);
    g_test_add_func("/watch/content_once_read", test_watch_is_content_once_read);
    g_test_add_func("/watch/gguf", test_watch_gguf);
    return g_test_run();
}
