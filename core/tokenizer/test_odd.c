/* SPDX-License-Identifier: Apache-2.0
 * tokenizer.json files with what no training gives: ids and texts are those of Hugging Face
 * (tests/golden/tokenizers/make_odd_goldens.py).
 */
#include <string.h>

#include "tokenizer/test_golden.h"

static void check_encode(const DavitTokenizer *t, const json_t *item)
{
    const json_t *text = json_array_get(item, 0), *want = json_array_get(item, 2);
    const uint32_t flags = json_is_true(json_array_get(item, 1)) ? DAVIT_ENCODE_SPECIAL : 0;
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(t);
    g_autoptr(DavitReport) report = davit_report_new();
    DavitIds ids = {0};

    g_test_message("encode \"%s\"", json_string_value(text));
    g_assert_cmpint(davit_encode(encoder, json_string_value(text), json_string_length(text), flags,
                                 &ids, report),
                    ==, DAVIT_OK);
    g_assert_cmpuint(ids.n, ==, json_array_size(want));
    for (size_t i = 0; i < ids.n; i++)
        g_assert_cmpint(ids.ids[i], ==, json_integer_value(json_array_get(want, i)));
    davit_ids_clear(&ids);
}

static void check_decode(const DavitTokenizer *t, const json_t *item)
{
    const json_t *list = json_array_get(item, 0), *want = json_array_get(item, 2);
    const bool skip = json_is_true(json_array_get(item, 1));
    const size_t n = json_array_size(list);
    g_autofree int32_t *ids = g_new0(int32_t, n + 1);
    g_autoptr(DavitDecoder) decoder = davit_decoder_new(t, skip);
    g_autoptr(GString) whole = g_string_new(NULL);
    g_autoptr(GString) stream = g_string_new(NULL);

    for (size_t i = 0; i < n; i++) {
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
        davit_decoder_push(decoder, ids[i], stream);
    }
    davit_decoder_flush(decoder, stream);
    davit_decode(t, ids, n, skip, whole);
    g_assert_cmpuint(whole->len, ==, json_string_length(want));
    g_assert_true(memcmp(whole->str, json_string_value(want), whole->len) == 0);
    g_assert_true(g_string_equal(stream, whole));
}

static void case_is_hugging_face_s(const void *data)
{
    const json_t *item = data;
    g_autoptr(DavitReport) report = davit_report_new();
    const json_t *file = json_object_get(item, "file");
    g_autoptr(DavitTokenizer) t =
        davit_tokenizer_from_json(json_string_value(file), json_string_length(file), "odd.json",
                                  davit_test_registry(), report);
    size_t i;
    const json_t *value;

    davit_test_show(report);
    g_assert_nonnull(t);
    json_array_foreach (json_object_get(item, "encode"), i, value)
        check_encode(t, value);
    json_array_foreach (json_object_get(item, "decode"), i, value)
        check_decode(t, value);
}

/* Another version, or a mark that an editor left. */
static void strange_beginnings_are_refused(void)
{
    static const char *const texts[] = {
        "{\"version\":\"2.0\",\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}",
        "\xef\xbb\xbf{\"version\":\"1.0\"}"};
    static const char *const found[] = {"2.0", "a byte order mark (ef bb bf)"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_from_bytes(
            texts[i], strlen(texts[i]), "t.json", davit_test_registry(), report);

        g_assert_null(tokenizer);
        g_assert_cmpstr(davit_report_get(report, 0)->found, ==, found[i]);
    }
}

/* ---- special tokens that merges or letters make ---- */

#define MODEL(vocab, merges, more) \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{" vocab "},\"merges\":[" merges "]" more "}"
#define SPECIAL(id, text) \
    "{\"id\":" id ",\"content\":\"" text "\",\"special\":true,\"normalized\":false," \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false}"
#define BYTES \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
    "\"trim_offsets\":true,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"},"

static const struct HiddenCase {
    const char *file, *text, *raw, *safe;
} hidden_cases[] = {
    {/* merges make it */
     "{" BYTES "\"added_tokens\":[" SPECIAL("4", "abc") "]," MODEL(
         "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4", "\"a b\",\"ab c\"", "") "}",
     "aabcab", "0 4 3", "0 3 2 3"},
    {/* ignore_merges finds the whole piece */
     "{" BYTES "\"added_tokens\":[" SPECIAL("4", "abc") "]," MODEL(
         "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4", "\"a b\"",
         ",\"ignore_merges\":true") "}",
     "abc", "4", "3 2"},
    {/* it is a letter: unknown then */
     "{\"added_tokens\":[" SPECIAL("2", "\xc2\xa7") "]," MODEL(
         "\"a\":0,\"<unk>\":1,\"\xc2\xa7\":2", "", ",\"unk_token\":\"<unk>\"") "}",
     "a\xc2\xa7", "0 2", "0 1"},
    {/* beyond the table of letters */
     "{\"added_tokens\":[" SPECIAL("2", "\xf0\x9f\x98\x80") "]," MODEL(
         "\"a\":0,\"<unk>\":1,\"\xf0\x9f\x98\x80\":2", "", ",\"unk_token\":\"<unk>\"") "}",
     "a\xf0\x9f\x98\x80", "0 2", "0 1"},
    {/* Unigram: unknown characters that together spell it */
     "{\"added_tokens\":[" SPECIAL("2", "xy") "],\"model\":{\"type\":\"Unigram\",\"unk_id\":0,"
     "\"vocab\":[[\"<unk>\",0],[\"a\",-1],[\"xy\",-2]]}}",
     "axy", "1 2", "1 0"},
};

/* Text that shall stay text gives no special token, in whatever order it was asked for before:
 * words are kept. */
static void special_tokens_are_not_made(const void *data)
{
    const struct HiddenCase *c = data;
    const size_t n = strlen(c->text);
    g_autofree uint8_t *locked = g_malloc(n);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = davit_tokenizer_from_json(
        c->file, strlen(c->file), "t.json", davit_test_registry(), report);
    g_autoptr(DavitEncoder) encoder = t ? davit_encoder_new(t) : NULL;

    davit_test_show(report);
    g_assert_nonnull(t);
    memset(locked, 1, n);
    for (int i = 0; i < 1000; i++) { /* the cache of words begins within */
        DavitIds ids = {0};
        g_autoptr(GString) got = g_string_new(NULL);

        if (i % 3 == 2)
            davit_encode_locked(encoder, c->text, n, locked, 0, &ids, report);
        else
            davit_encode(encoder, c->text, n, i % 3 ? DAVIT_ENCODE_SAFE : 0, &ids, report);
        for (size_t k = 0; k < ids.n; k++)
            g_string_append_printf(got, "%s%d", k ? " " : "", ids.ids[k]);
        g_assert_cmpstr(got->str, ==, i % 3 ? c->safe : c->raw);
        davit_ids_clear(&ids);
    }
}

/* ---- special tokens in normalised text, and contents beside them ---- */

#define NORMAL(id, text) \
    "{\"id\":" id ",\"content\":\"" text "\",\"special\":true,\"normalized\":true," \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false}"
#define LETTERS(more) \
    MODEL("\"<\":0,\"s\":1,\">\":2,\"e\":3,\"\xc3\xa9\":4,\"\xcc\x81\":5,\"x\":6,\"\xe2\x96\x81\":7,\"<s>\":8" more, \
          "", "")
#define NFC_FILE \
    "{\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[" NORMAL("8", "<s>") "]," LETTERS("") "}"
#define LLAMA_FILE \
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"}," \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]}," \
    "\"added_tokens\":[" NORMAL("8", "<s>") "]," LETTERS("") "}"
#define DROP_FILE \
    "{\"normalizer\":{\"type\":\"StripAccents\"},\"added_tokens\":[" NORMAL("8", "<s>") "]," LETTERS("") "}"

static const struct LockedCase {
    const char *file, *parts[4]; /* template, content, template, content */
    const char *ids;
} locked_cases[] = {
    {NFC_FILE, {"<s>", "e\xcc\x81", "<s>x", ""}, "8 4 8 6"},
    {NFC_FILE, {"<s>", "e\xcc\x81<s>", "<s>", ""}, "8 4 0 1 2 8"},    /* a content's stays text */
    {NFC_FILE, {"<s>e\xcc\x81", "<s", "><s>", ""}, "8 4 0 1 2 8"},    /* half of it is the content's */
    {NFC_FILE, {"<s>xe", "\xcc\x81", "<s>", ""}, "8 6 4 8"},          /* joined over the edge */
    {LLAMA_FILE, {"x <s>", "x x", " <s>x", ""}, "7 6 8 6 7 6 8 6"}, /* the token has the mark, too */
    {LLAMA_FILE, {"x <s>", "x <s>", " <s>x", ""}, "7 6 8 6 7 0 1 2 8 6"},
    {DROP_FILE, {"<s>", "\xcc\x81x<s>", "<s>", "e\xcc\x81"}, "8 6 0 1 2 8 3"}, /* dropped behind one */
};

static void contents_lock_their_own_bytes(const void *data)
{
    const struct LockedCase *c = data;
    g_autoptr(GString) text = g_string_new(NULL), got = g_string_new(NULL);
    g_autoptr(GByteArray) locked = g_byte_array_new();
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = davit_tokenizer_from_json(
        c->file, strlen(c->file), "t.json", davit_test_registry(), report);
    g_autoptr(DavitEncoder) encoder = t ? davit_encoder_new(t) : NULL;
    DavitIds ids = {0};

    davit_test_show(report);
    g_assert_nonnull(t);
    for (size_t i = 0; i < G_N_ELEMENTS(c->parts); i++) {
        const uint8_t is_content = i % 2;

        for (const char *p = c->parts[i]; *p; p++) {
            g_string_append_c(text, *p);
            g_byte_array_append(locked, &is_content, 1);
        }
    }
    g_assert_cmpint(davit_encode_locked(encoder, text->str, text->len, locked->data, 0, &ids, report),
                    ==, DAVIT_OK);
    for (size_t k = 0; k < ids.n; k++)
        g_string_append_printf(got, "%s%d", k ? " " : "", ids.ids[k]);
    g_assert_cmpstr(got->str, ==, c->ids);
    davit_ids_clear(&ids);
}

void davit_test_odd(void)
{
    static json_t *cases; /* as long as the tests run */
    size_t i;
    json_t *item;

    g_test_add_func("/tokenizer/strange_beginnings_are_refused", strange_beginnings_are_refused);
    for (i = 0; i < G_N_ELEMENTS(hidden_cases); i++) {
        g_autofree char *path = g_strdup_printf("/tokenizer/special_tokens_are_not_made/%zu", i);

        g_test_add_data_func(path, &hidden_cases[i], special_tokens_are_not_made);
    }
    for (i = 0; i < G_N_ELEMENTS(locked_cases); i++) {
        g_autofree char *path = g_strdup_printf("/tokenizer/contents_lock_their_own_bytes/%zu", i);

        g_test_add_data_func(path, &locked_cases[i], contents_lock_their_own_bytes);
    }
    cases = json_load_file(DAVIT_SOURCE_DIR "/tests/golden/tokenizers/odd.golden.json",
                           JSON_ALLOW_NUL, NULL);
    g_assert_nonnull(cases);
    json_array_foreach (cases, i, item) {
        g_autofree char *path =
            g_strdup_printf("/tokenizer/odd/%s", json_string_value(json_object_get(item, "name")));

        g_test_add_data_func(path, item, case_is_hugging_face_s);
    }
}
