/* SPDX-License-Identifier: Apache-2.0
 * GGUF vocabularies of models t5 and bert: the same goldens as the tokenizer.json that they
 * are made of here, and keys that contradict each other.
 */
#include <math.h>
#include <string.h>

#include "tokenizer/test_golden.h"

#define MARK "\xe2\x96\x81"

/* A GGUF vocabulary and what it borrows. */
typedef struct Made {
    DavitGgufVocab vocab;
    GString *tokens;
    GByteArray *scores, *types;
    guchar *charsmap;
} Made;

static void made_clear(Made *made)
{
    g_string_free(made->tokens, TRUE);
    g_byte_array_unref(made->scores);
    g_byte_array_unref(made->types);
    g_free(made->charsmap);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Made, made_clear)

static void put_string(GString *out, const char *text)
{
    const uint64_t len = strlen(text);

    for (int i = 0; i < 8; i++)
        g_string_append_c(out, (char)(len >> (8 * i)));
    g_string_append(out, text);
}

static void put_u32(GByteArray *out, uint32_t value)
{
    const guint8 bytes[4] = {value & 255, value >> 8 & 255, value >> 16 & 255,
                             (guint8)(value >> 24)};

    g_byte_array_append(out, bytes, 4);
}

static void put_token(Made *made, const char *text, double score, uint32_t type)
{
    const float narrow = (float)score;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof bits);
    put_string(made->tokens, text);
    put_u32(made->scores, bits);
    put_u32(made->types, type);
    made->vocab.tokens.count++;
}

static Made start(const char *model)
{
    Made made = {.vocab = {.model = {model, strlen(model)},
                           .bos = -1,
                           .eos = -1,
                           .unk = -1,
                           .pad = -1,
                           .cls = -1,
                           .sep = -1,
                           .add_bos = -1,
                           .add_eos = -1,
                           .add_space_prefix = -1,
                           .lowercase = -1,
                           .strip_accents = -1,
                           .remove_spaces = -1},
                 .tokens = g_string_new(NULL),
                 .scores = g_byte_array_new(),
                 .types = g_byte_array_new()};

    return made;
}

static const DavitGgufVocab *finish(Made *made)
{
    made->vocab.tokens.bytes = (davit_span){made->tokens->str, made->tokens->len};
    made->vocab.scores = made->scores->data;
    made->vocab.types = made->types->data;
    made->vocab.n_scores = made->vocab.n_types = made->vocab.tokens.count;
    return &made->vocab;
}

static json_t *golden_file(const char *name)
{
    g_autofree char *path =
        g_strdup_printf("%s/tests/golden/tokenizers/%s", DAVIT_SOURCE_DIR, name);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, NULL);

    g_assert_nonnull(file);
    return file;
}

static bool is_added(const json_t *file, size_t id)
{
    const json_t *added = json_object_get(file, "added_tokens");

    for (size_t i = 0; i < json_array_size(added); i++) {
        if (json_integer_value(json_object_get(json_array_get(added, i), "id")) ==
            (json_int_t)id)
            return true;
    }
    return false;
}

static void check(Made *made, const char *golden_name)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_from_gguf(
        finish(made), "x.gguf", davit_test_registry(), report);
    json_t *golden = golden_file(golden_name);

    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    g_assert_nonnull(davit_test_find(report, DAVIT_R_ASSUMED));
    davit_test_golden(tokenizer, golden_name, golden);
    json_decref(golden);
}

static void unigram_is_the_json_s(void)
{
    json_t *file = golden_file("unigram_t5.json");
    const json_t *vocab = json_object_get(json_object_get(file, "model"), "vocab");
    g_auto(Made) made = start("t5");
    gsize n;

    for (size_t id = 0; id < json_array_size(vocab); id++) {
        const json_t *entry = json_array_get(vocab, id);

        put_token(&made, json_string_value(json_array_get(entry, 0)),
                  json_number_value(json_array_get(entry, 1)), is_added(file, id) ? 3 : 1);
    }
    made.charsmap = g_base64_decode(
        json_string_value(json_object_get(json_object_get(file, "normalizer"),
                                          "precompiled_charsmap")),
        &n);
    made.vocab.charsmap = (davit_span){(const char *)made.charsmap, n};
    made.vocab.eos = 1;
    made.vocab.unk = 2;
    check(&made, "unigram_t5.golden.json");
    json_decref(file);
}

/* The other way round than read_gguf_encoder.c. */
static char *phantom(const char *text)
{
    if (text[0] == '[' && text[strlen(text) - 1] == ']')
        return g_strdup(text);
    return g_str_has_prefix(text, "##") ? g_strdup(text + 2)
                                        : g_strconcat(MARK, text, NULL);
}

static void wordpiece_is_the_json_s(void)
{
    json_t *file = golden_file("bert_uncased.json");
    json_t *vocab = json_object_get(json_object_get(file, "model"), "vocab"), *id;
    g_auto(Made) made = start("bert");
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    const char *text;

    g_ptr_array_set_size(order, (int)json_object_size(vocab));
    json_object_foreach (vocab, text, id) {
        order->pdata[json_integer_value(id)] = (char *)(uintptr_t)text;
    }
    for (guint i = 0; i < order->len; i++) {
        g_autofree char *token = phantom(order->pdata[i]);

        put_token(&made, token, 0, is_added(file, i) ? 3 : 1);
    }
    check(&made, "bert_uncased.golden.json");
    json_decref(file);
}

/* ---- refusals ---- */

static void refused(Made *made, uint32_t code, const char *subject)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_from_gguf(
        finish(made), "x.gguf", davit_test_registry(), report);
    const DavitRecord *record = davit_test_find(report, code);

    g_assert_null(tokenizer);
    g_assert_nonnull(record);
    g_assert_cmpstr(record->subject, ==, subject);
}

static Made two_tokens(double score)
{
    Made made = start("t5");

    put_token(&made, "<unk>", 0, 2);
    put_token(&made, MARK "a", score, 1);
    made.vocab.unk = 0;
    made.vocab.add_eos = 0;
    return made;
}

static void broken_unigrams_are_refused(void)
{
    g_auto(Made) nan = two_tokens((double)NAN), spaces = two_tokens(-1),
                 cut = two_tokens(-1), none = two_tokens(-1), far = two_tokens(-1);

    refused(&nan, DAVIT_R_TOKENIZER_INVALID, "x.gguf: tokenizer.ggml.scores");
    spaces.vocab.remove_spaces = 0;
    refused(&spaces, DAVIT_R_TOKENIZER_UNSUPPORTED,
            "x.gguf: tokenizer.ggml.remove_extra_whitespaces");
    cut.vocab.charsmap = (davit_span){"\x10\0\0\0\0\0\0\0", 8};
    refused(&cut, DAVIT_R_TOKENIZER_INVALID, "x.gguf: normalizer.precompiled_charsmap");
    none.vocab.add_eos = 1;
    refused(&none, DAVIT_R_TOKENIZER_INVALID, "x.gguf: tokenizer.ggml.eos_token_id");
    far.vocab.unk = 9;
    refused(&far, DAVIT_R_TOKENIZER_INVALID, "x.gguf: tokenizer.ggml.unknown_token_id");
}

/* Capital letters outside [NAMES] tell that text was not lower-cased. */
static void cased_vocabulary_keeps_case(void)
{
    static const char *const tokens[] = {"[UNK]", "[CLS]", "[SEP]", MARK "Ab", MARK "ab",
                                         "c"};
    g_auto(Made) made = start("bert");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(tokens); i++)
        put_token(&made, tokens[i], 0, i < 3 ? 3 : 1);
    t = davit_tokenizer_from_gguf(finish(&made), "x.gguf", davit_test_registry(), report);
    g_assert_nonnull(t);
    davit_test_encode(t, "Ab abc x [SEP]", DAVIT_ENCODE_SPECIAL, "1 3 4 5 0 2 2");
    davit_test_encode(t, "[SEP]", DAVIT_ENCODE_SAFE, "0 0 0");
    made.vocab.cls = 99;
    refused(&made, DAVIT_R_TOKENIZER_INVALID, "x.gguf: tokenizer.ggml.cls_token_id");
}

/* Newer files say whether text is lowered; capitals in the vocabulary are then no matter. */
static void a_stated_normalizer_counts(void)
{
    static const char *const tokens[] = {"[UNK]", "[CLS]", "[SEP]", MARK "Ab", MARK "ab"};
    g_auto(Made) made = start("bert"), other = two_tokens(-1);

    for (size_t i = 0; i < G_N_ELEMENTS(tokens); i++)
        put_token(&made, tokens[i], 0, i < 3 ? 3 : 1);
    for (int lower = 0; lower <= 1; lower++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitTokenizer) t = NULL;

        made.vocab.lowercase = made.vocab.strip_accents = lower;
        t = davit_tokenizer_from_gguf(finish(&made), "x.gguf", davit_test_registry(), report);
        g_assert_nonnull(t);
        davit_test_encode(t, "Ab", 0, lower ? "4" : "3");
    }
    made.vocab.strip_accents = 0;
    refused(&made, DAVIT_R_TOKENIZER_UNSUPPORTED,
            "x.gguf: tokenizer.ggml.normalizer.strip_accents");
    other.vocab.lowercase = 1; /* Unigram */
    refused(&other, DAVIT_R_TOKENIZER_UNSUPPORTED, "x.gguf: tokenizer.ggml.normalizer.lowercase");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gguf_encoder/unigram", unigram_is_the_json_s);
    g_test_add_func("/gguf_encoder/wordpiece", wordpiece_is_the_json_s);
    g_test_add_func("/gguf_encoder/broken_unigrams", broken_unigrams_are_refused);
    g_test_add_func("/gguf_encoder/cased", cased_vocabulary_keeps_case);
    g_test_add_func("/gguf_encoder/stated_normalizer", a_stated_normalizer_counts);
    return g_test_run();
}
