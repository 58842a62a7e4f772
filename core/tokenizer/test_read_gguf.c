/* SPDX-License-Identifier: Apache-2.0
 * Tokenizers from GGUF keys: facts of plugins, merges from scores, counts that disagree.
 */
#include <string.h>

#include "tokenizer/shape.h"
#include "tokenizer/test_golden.h"

/* Strings as GGUF stores them. */
static void put_string(GString *out, const char *text)
{
    const uint64_t len = strlen(text);

    for (int i = 0; i < 8; i++)
        g_string_append_c(out, (char)(len >> (8 * i)));
    g_string_append(out, text);
}

static DavitGgufStrings strings(GString *out, const char *const *list)
{
    DavitGgufStrings s = {0};

    for (; list[s.count]; s.count++)
        put_string(out, list[s.count]);
    s.bytes = (davit_span){out->str, out->len};
    return s;
}

static davit_span span(const char *text)
{
    return (davit_span){text, strlen(text)};
}

static void gguf_takes_facts_from_plugin(void)
{
    static const char *const tokens[] = {"<s>", "a", "1", "11", "a1", NULL};
    static const char *const merges[] = {"1 1", "a 1", NULL};
    static const uint8_t types[] = {3, 0, 0, 0, 1, 0, 0, 0, 1, 0,
                                    0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    g_autoptr(GString) a = g_string_new(NULL), b = g_string_new(NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    DavitGgufVocab vocab = {.model = span("gpt2"),
                            .pre = span("smollm"),
                            .tokens = strings(a, tokens),
                            .merges = strings(b, merges),
                            .types = types,
                            .n_types = 5,
                            .bos = 0,
                            .eos = -1,
                            .unk = -1,
                            .pad = -1,
                            .add_bos = 1,
                            .add_eos = -1,
                            .add_space_prefix = -1};
    g_autoptr(DavitTokenizer) tokenizer =
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report);

    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    /* Digits stand alone, so neither merge can happen. */
    davit_test_encode(tokenizer, "a11<s>", 0, "1 2 2 0");
    davit_test_encode(tokenizer, "a", DAVIT_ENCODE_SPECIAL, "0 1");
    g_assert_cmpint(davit_tokenizer_special(tokenizer, DAVIT_SPECIAL_BOS), ==, 0);
    g_assert_cmpint(davit_tokenizer_special(tokenizer, DAVIT_SPECIAL_EOS), ==, -1);

    vocab.merges = (DavitGgufStrings){0}; /* the key is absent, or its list empty */
    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_TOKENIZER_INVALID)->subject, ==,
                    "x.gguf: tokenizer.ggml.merges");

    vocab.pre = span("nosuch");
    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_PRETOKENIZER_UNKNOWN)->found, ==,
                    "nosuch");
}

/* Of an open name: what the normaliser or looking words up whole would change is refused, the rest
 * is the same either way. */
static void gguf_open_names_refuse_what_matters(void)
{
    static const char *const tokens[] = {"a", "b", "ab", "ba", "\u00c3", "\u00a9", "\u00c3\u00a9", NULL};
    static const char *const merges[] = {"a b", "\u00c3 \u00a9", NULL};
    static const uint8_t types[7 * 4] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
                                         1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    static const struct {
        const char *text, *ids, *found;
    } rows[] = {
        {"abab", "2 2", NULL},
        {"ab\u00e9", "2 6", NULL}, /* in NFKC already */
        {"ba", "status -3", "a word that it makes otherwise"},
        {"aae\u0301b", "status -3", "U+0065"}, /* NFC joins the two */
        {"a\uff0c", "status -3", "U+FF0C"},    /* NFKC: a comma */
    };
    g_autoptr(GString) a = g_string_new(NULL), b = g_string_new(NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitGgufVocab vocab = {.model = span("gpt2"),
                                  .pre = span("trillion"),
                                  .tokens = strings(a, tokens),
                                  .merges = strings(b, merges),
                                  .types = types,
                                  .n_types = 7,
                                  .bos = -1,
                                  .eos = -1,
                                  .unk = -1,
                                  .pad = -1,
                                  .add_bos = -1,
                                  .add_eos = -1,
                                  .add_space_prefix = -1};
    g_autoptr(DavitTokenizer) tokenizer =
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report);
    g_autoptr(DavitEncoder) encoder = tokenizer ? davit_encoder_new(tokenizer) : NULL;

    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_ASSUMED)->found, ==, "trillion");
    for (int turn = 0; turn < 400; turn++) { /* words that are kept, too */
        const size_t i = (size_t)turn % G_N_ELEMENTS(rows);
        DavitIds ids = {0};
        const int32_t status =
            davit_encode(encoder, rows[i].text, strlen(rows[i].text), 0, &ids, report);

        davit_ids_clear(&ids);
        g_assert_cmpint(status, ==, rows[i].found ? DAVIT_E_UNSUPPORTED : DAVIT_OK);
        if (rows[i].found)
            g_assert_cmpstr(davit_test_find(report, DAVIT_R_TOKENIZER_UNSUPPORTED)->found, ==,
                            rows[i].found);
        else
            davit_test_encode(tokenizer, rows[i].text, 0, rows[i].ids);
        davit_report_truncate(report, 0);
    }
}

static void gguf_scores_give_merges(void)
{
    static const char *const tokens[] = {"<unk>",
                                         "<s>",
                                         "\xe2\x96\x81",
                                         "a",
                                         "b",
                                         "ab",
                                         "\xe2\x96\x81"
                                         "a",
                                         NULL};
    static const float scores[] = {0, 0, -3, -4, -5, -2, -1};
    g_autoptr(GString) a = g_string_new(NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    DavitGgufVocab vocab = {.model = span("llama"),
                            .arch = span("llama"),
                            .tokens = strings(a, tokens),
                            .scores = (const uint8_t *)scores,
                            .n_scores = 7,
                            .bos = 1,
                            .eos = -1,
                            .unk = 0,
                            .pad = -1,
                            .add_bos = -1,
                            .add_eos = -1,
                            .add_space_prefix = -1};
    g_autoptr(DavitTokenizer) tokenizer =
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report);
    g_autoptr(DavitTokenizer) gemma = NULL;

    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    davit_test_encode(tokenizer, "ab ab", DAVIT_ENCODE_SPECIAL, "1 6 4 6 4");
    /* Gemma: nothing in front, and merges in the order of ids. */
    vocab.arch = span("gemma3");
    gemma = davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report);
    g_assert_nonnull(gemma);
    davit_test_encode(gemma, "ab ab", 0, "5 2 5");
}

/* Its splits would be looked up one by one, each as long as the token. */
static void gguf_token_too_long_to_split(void)
{
    g_autofree char *long_text = g_strnfill(1025, 'a');
    const char *const tokens[] = {"<unk>", "<s>", long_text, NULL};
    static const float scores[] = {0, 0, -3};
    g_autoptr(GString) a = g_string_new(NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    DavitGgufVocab vocab = {.model = span("llama"),
                            .arch = span("llama"),
                            .tokens = strings(a, tokens),
                            .scores = (const uint8_t *)scores,
                            .n_scores = 3,
                            .bos = 1,
                            .eos = -1,
                            .unk = 0,
                            .pad = -1,
                            .add_bos = -1,
                            .add_eos = -1,
                            .add_space_prefix = -1};
    const DavitRecord *record;

    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    record = davit_test_find(report, DAVIT_R_TOKENIZER_UNSUPPORTED);
    g_assert_nonnull(record);
    g_assert_cmpstr(record->found, ==, "1025 bytes");
}

static void gguf_counts_must_agree(void)
{
    static const char *const tokens[] = {"a", "b", NULL};
    static const uint8_t types[12] = {0};
    g_autoptr(GString) a = g_string_new(NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    DavitGgufVocab vocab = {.model = span("gpt2"),
                            .pre = span("gpt-2"),
                            .tokens = strings(a, tokens),
                            .types = types,
                            .n_types = 3,
                            .bos = -1,
                            .eos = -1,
                            .unk = -1,
                            .pad = -1,
                            .add_bos = -1,
                            .add_eos = -1,
                            .add_space_prefix = -1};
    const DavitRecord *record;

    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    record = davit_test_find(report, DAVIT_R_TOKENIZER_INVALID);
    g_assert_cmpstr(record->subject, ==, "x.gguf: tokenizer.ggml.token_type");
    g_assert_cmpstr(record->expected, ==, "2");
    g_assert_cmpstr(record->found, ==, "3");

    davit_report_truncate(report, 0);
    vocab.types = NULL;
    vocab.tokens.count = 3; /* one more than there are */
    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_TOKENIZER_INVALID)->subject, ==,
                    "x.gguf: tokenizer.ggml.tokens[2]");

    /* too many is the file's fault, and said before anything is read */
    davit_report_truncate(report, 0);
    vocab.tokens.count = 16777218;
    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    record = davit_test_find(report, DAVIT_R_TOKENIZER_INVALID);
    g_assert_cmpint(record->status, ==, DAVIT_E_CORRUPT);
    g_assert_cmpstr(record->subject, ==, "x.gguf: tokenizer.ggml.tokens");
    g_assert_cmpstr(record->expected, ==, "at most 16777217 tokens");
    g_assert_cmpstr(record->found, ==, "16777218");

    davit_report_truncate(report, 0);
    vocab.tokens.count = 2;
    vocab.tokens.bytes.len = (512u << 20) + 1;
    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_TOKENIZER_INVALID)->expected, ==,
                    "at most 536870912 bytes");
    vocab.tokens.bytes.len = a->len;

    davit_report_truncate(report, 0);
    vocab.eos = 2;
    g_assert_null(
        davit_tokenizer_from_gguf(&vocab, "x.gguf", davit_test_registry(), report));
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_TOKENIZER_INVALID)->found, ==, "2");
}

/* Every name of llama.cpp's table: claimed by the family that has its shape, or refused
 * with a reason of its own. */
typedef struct NameRow {
    const char *names, *family; /* joined by '|'; NULL = refused */
} NameRow;

static const NameRow names[] = {
    {"llama3|llama-v3|llama-bpe|falcon3|falcon-h1|pixtral|midm-2.0|lfm2|jina-v5-nano|dbrx|"
     "smaug-bpe|glm4|chatglm-bpe",
     "llama3"},
    {"qwen2|deepseek-r1-qwen|kormo|f2llmv2|megrez|stablelm2|hunyuan|solar-open|grok-2",
     "qwen2"},
    {"qwen35", "qwen35"},
    {"gpt-4o|llama4", "o200k"},
    {"tekken", "tekken"},
    {"kimi-k2", "kimi"},
    {"deepseek-llm", "deepseek_llm"},
    {"deepseek-coder", "deepseek_coder"},
    {"deepseek-v3|hunyuan-dense|joyai-llm", "deepseek_v3"},
    {"gpt-2|phi-2|gigachat|mellum|modern-bert|roberta-bpe|exaone4|mpt|olmo", "gpt2"},
    {"starcoder|refact|command-r|smollm|codeshell|exaone|minerva-7b", "gpt2_digits"},
    {"falcon", "falcon"},
    {"bloom", "bloom"},
    {"jais|trillion|granite-docling|a.x-4.0", "gpt2"},
    {"mellum2", "gpt2_digits"},
    {"kanana2|talkie|minimax-m2", "o200k"},
    {"poro-chat|gpt3-finnish", "bloom"},
    {"viking", "bloom_digits"},
    {"bailingmoe|bailingmoe2|llada-moe", "bailing"},
    {"seed-coder", "seed_coder"},
    {"jais-2", "jais2"},
    {"youtu", "youtu"},
    {"exaone-moe", "exaone_moe"},
    {"chameleon", "chameleon"},
    {"superbpe", "superbpe"},
    {"tiny_aya|cohere2moe", "tiny_aya"},
    {"laguna", "laguna"},
    {"minicpm5", "minicpm5"},
    {"jina-es|jina-de|jina-v2-es|jina-v2-de|jina-v1-en|jina-v2-code|afmoe|"
     "granite-embed-multi-97m|gemma4|granite-embed-multi-311m|sarvam-moe|whitespace|default|",
     NULL},
};

static void gguf_every_name_is_claimed_or_refused(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_auto(GStrv) list = g_strsplit(names[i].names, "|", -1);

        for (char **name = list; *name; name++) {
            g_autoptr(DavitReport) report = davit_report_new();
            DavitShapeClaim claim;
            const int32_t status = davit_shape_find_pre(
                davit_test_registry(), *name, strlen(*name), "x.gguf", &claim, report);

            g_test_message("%s", *name);
            if (names[i].family) {
                g_assert_cmpint(status, ==, DAVIT_OK);
                g_assert_cmpstr(claim.shape.name, ==, names[i].family);
                continue;
            }
            g_assert_cmpint(status, ==, DAVIT_E_UNSUPPORTED);
            g_assert_nonnull(strstr(
                davit_test_find(report, DAVIT_R_PRETOKENIZER_UNKNOWN)->message, ": "));
        }
    }
}

/* What a reason calls by name is a family that a plugin has. */
static void gguf_reasons_name_families_that_exist(void)
{
    const char *const quoted[] = {"jina-v2-es", "afmoe", "gemma4"};

    for (size_t i = 0; i < G_N_ELEMENTS(quoted); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const char *why = davit_shape_why_unclaimed(quoted[i], strlen(quoted[i]), report);
        const char *open = why ? strchr(why, '"') : NULL;
        bool found = false;

        g_assert_nonnull(open);
        g_autofree char *family = g_strndup(open + 1, strcspn(open + 1, "\""));
        const GPtrArray *components =
            davit_registry_kind(davit_test_registry(), DAVIT_KIND_ID_TOKENIZER);
        for (guint k = 0; k < components->len; k++) {
            DavitComponent *component = g_ptr_array_index(components, k);
            const davit_tokenizer_iface *iface;
            void *self;

            g_assert_cmpint(
                davit_component_use(component, (const void **)&iface, &self, report), ==,
                DAVIT_OK);
            for (size_t s = 0; iface->shapes[s]; s++)
                found = found || strcmp(iface->shapes[s]->name, family) == 0;
        }
        g_test_message("%s", family);
        g_assert_true(found);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tokenizer/gguf_takes_facts_from_plugin",
                    gguf_takes_facts_from_plugin);
    g_test_add_func("/tokenizer/gguf_open_names_refuse_what_matters",
                    gguf_open_names_refuse_what_matters);
    g_test_add_func("/tokenizer/gguf_scores_give_merges", gguf_scores_give_merges);
    g_test_add_func("/tokenizer/gguf_counts_must_agree", gguf_counts_must_agree);
    g_test_add_func("/tokenizer/gguf_token_too_long_to_split", gguf_token_too_long_to_split);
    g_test_add_func("/tokenizer/gguf_every_name_is_claimed_or_refused",
                    gguf_every_name_is_claimed_or_refused);
    g_test_add_func("/tokenizer/gguf_reasons_name_families_that_exist",
                    gguf_reasons_name_families_that_exist);
    return g_test_run();
}
