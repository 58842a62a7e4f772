/* SPDX-License-Identifier: Apache-2.0
 * Vocabularies that are not tokenizer.json: ids of sentencepiece and mistral-common, what
 * spans say, and files that break their rules or are not known.
 */
#include <stdio.h>
#include <string.h>

#include "tokenizer/bpe.h"
#include "tokenizer/test_golden.h"

static char *read_source(const char *name, gsize *len)
{
    g_autofree char *path =
        g_strdup_printf("%s/tests/golden/tokenizers/sources/%s", DAVIT_SOURCE_DIR, name);
    gchar *bytes;

    g_assert_true(g_file_get_contents(path, &bytes, len, NULL));
    return bytes;
}

static DavitTokenizer *open_bytes(const char *bytes, size_t len, DavitReport *report)
{
    DavitTokenizer *tokenizer =
        davit_tokenizer_from_bytes(bytes, len, "file", davit_test_registry(), report);

    davit_test_show(report);
    return tokenizer;
}

/* ---- goldens ---- */

/* Spans lie in order inside the text, and special ids are empty. */
static void check_spans(const DavitTokenizer *t, DavitEncoder *encoder, const char *text,
                        size_t len, const DavitIds *want)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(DavitSpan));
    DavitIds ids = {0};
    size_t n_front;
    uint64_t last = 0;

    davit_tokenizer_prefix(t, &n_front);
    g_assert_cmpint(
        davit_encode_spans(encoder, text, len, DAVIT_ENCODE_SPECIAL, &ids, spans, report),
        ==, DAVIT_OK);
    g_assert_cmpuint(spans->len, ==, ids.n);
    g_assert_cmpuint(ids.n, ==, want->n);
    for (guint i = 0; i < spans->len; i++) {
        const DavitSpan span = g_array_index(spans, DavitSpan, i);

        g_assert_cmpint(ids.ids[i], ==, want->ids[i]);
        g_assert_cmpuint(span.start, <=, span.end);
        g_assert_cmpuint(span.start, >=, last);
        g_assert_cmpuint(span.end, <=, len);
        last = span.start;
    }
    davit_ids_clear(&ids);
}

/* Decoded as the library does; goldens without a text say nothing. Control pieces, which
 * it drops, are skipped. */
static void check_text(const DavitTokenizer *t, const DavitIds *ids, const json_t *want)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (!json_is_string(want))
        return;
    davit_decode(t, ids->ids, ids->n, true, text);
    g_assert_cmpstr(text->str, ==, json_string_value(want));
}

/* Texts and ids of @golden against the tokenizer in @bytes. */
static void check_golden(const char *name, const char *bytes, size_t len,
                         const json_t *golden)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const json_t *cases = json_object_get(golden, "cases");
    g_autoptr(DavitTokenizer) t = open_bytes(bytes, len, report);
    g_autoptr(DavitEncoder) encoder = t ? davit_encoder_new(t) : NULL;

    g_assert_nonnull(t);
    g_assert_cmpuint(json_array_size(cases), >, 200);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i), *text;
        const json_t *want = json_object_get(item, "ids");
        DavitIds ids = {0};
        bool same;

        text = json_object_get(item, "text");
        g_assert_cmpint(davit_encode(encoder, json_string_value(text),
                                     json_string_length(text), DAVIT_ENCODE_SPECIAL, &ids,
                                     report),
                        ==, DAVIT_OK);
        same = ids.n == json_array_size(want);
        for (size_t k = 0; same && k < ids.n; k++)
            same = ids.ids[k] == json_integer_value(json_array_get(want, k));
        if (!same)
            g_test_message("%s: \"%s\"", name, json_string_value(text));
        g_assert_true(same);
        check_spans(t, encoder, json_string_value(text), json_string_length(text), &ids);
        check_text(t, &ids, json_object_get(item, "decoded"));
        davit_ids_clear(&ids);
    }
}

static void ids_are_the_library_s(const void *data)
{
    const char *name = data;
    g_autofree char *stem = g_strndup(name, strcspn(name, "."));
    g_autofree char *golden_path = g_strdup_printf(
        "%s/tests/golden/tokenizers/sources/%s.golden.json", DAVIT_SOURCE_DIR, stem);
    json_t *golden = json_load_file(golden_path, JSON_ALLOW_NUL, NULL);
    gsize len;
    g_autofree char *bytes = read_source(name, &len);

    check_golden(name, bytes, len, golden);
    json_decref(golden);
}

/* The same of a real file, a member of packages.golden.json. */
static void ids_of_real_file(const void *data)
{
    const char *path = data;
    g_autofree char *name = g_path_get_basename(path);
    json_t *golden =
        json_load_file(DAVIT_SOURCE_DIR "/tests/golden/tokenizers/packages.golden.json",
                       JSON_ALLOW_NUL, NULL);
    g_autofree char *bytes = NULL;
    gsize len;

    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    check_golden(name, bytes, len, json_object_get(golden, name));
    json_decref(golden);
}

/* Sums of single precision that differ only before rounding: the first way stays. Ids of
 * sentencepiece 0.2.3. */
static void equal_sums_keep_the_first(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    gsize len;
    g_autofree char *bytes = read_source("unigram_bytes.model", &len);
    g_autoptr(DavitTokenizer) t = open_bytes(bytes, len, report);

    davit_test_encode(t, "\xf3\xa0\x9c\xbclllll", 0, "245 162 158 190 272 372 372");
}

/* ---- faults ---- */

static void refused(const char *bytes, size_t len, uint32_t code, const char *found)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = open_bytes(bytes, len, report);
    const DavitRecord *record = davit_test_find(report, code);

    g_assert_null(t);
    g_assert_nonnull(record);
    if (found)
        g_assert_cmpstr(record->found, ==, found);
}

static void refused_text(const char *text, uint32_t code)
{
    refused(text, strlen(text), code, NULL);
}

/* The hash is that of `printf 'YQ== 0\nYg== 1\n' | sha256sum`. */
static void unknown_rank_list_names_its_hash(void)
{
    g_autofree char *hash =
        g_compute_checksum_for_string(G_CHECKSUM_SHA256, "YQ== 0\nYg== 1\n", -1);

    refused("YQ== 0\nYg== 1\n", 14, DAVIT_R_PRETOKENIZER_UNKNOWN, hash);
    /* The order of lines and a CR do not matter, ranks do. */
    refused("Yg== 1\r\nYQ== 0", 14, DAVIT_R_PRETOKENIZER_UNKNOWN, hash);
}

static void broken_rank_lists_are_malformed(void)
{
    refused_text("YQ== 0\nYg== 0\n", DAVIT_R_TOKENIZER_INVALID); /* rank twice */
    refused_text("YQ== 0\nYQ== 1\n", DAVIT_R_TOKENIZER_INVALID); /* bytes twice */
    refused_text("YQ== 0\nYg== -1\n", DAVIT_R_TOKENIZER_INVALID);
    refused_text("YQ== 0\nYg== 99999999999\n", DAVIT_R_TOKENIZER_INVALID);
    refused_text("YQ== 0\nYg==\n", DAVIT_R_TOKENIZER_INVALID);
    refused_text("YQ== 0\nY!== 1\n", DAVIT_R_TOKENIZER_INVALID);
    refused_text("YQ== 0\nYQ= 1\n", DAVIT_R_TOKENIZER_INVALID);
    refused("YQ== 0\nY\0== 1\n", 14, DAVIT_R_TOKENIZER_INVALID, NULL);
}

/* Every split of every token is looked up: a token as long as the file would take its
 * square. */
static void token_of_a_megabyte_is_refused(void)
{
    g_autofree char *long_text = g_strnfill(1 << 20, 'a');
    g_autofree char *coded = g_base64_encode((const guchar *)long_text, 1 << 20);
    g_autofree char *ranks = g_strdup_printf("YQ== 0\n%s 1\n", coded);
    g_autoptr(GString) spm = g_string_new(NULL);
    static const char unk[] = "\x0a\x09\x0a\x05<unk>\x18\x02";
    static const char one[] = "\x0a\x03\x0a\x01"
                              "a";
    /* a piece of 2^20 bytes: field 1, length 2^20 + 4, of it field 1, length 2^20 */
    static const char head[] = "\x0a\x84\x80\x40\x0a\x80\x80\x40";
    static const char bpe[] = "\x12\x02\x18\x02\x1a\x02\x20\x00";

    refused(ranks, strlen(ranks), DAVIT_R_TOKENIZER_UNSUPPORTED, "1048576 bytes");
    g_string_append_len(spm, unk, sizeof unk - 1);
    g_string_append_len(spm, one, sizeof one - 1);
    g_string_append_len(spm, head, sizeof head - 1);
    g_string_append_len(spm, long_text, 1 << 20);
    g_string_append_len(spm, bpe, sizeof bpe - 1);
    refused(spm->str, spm->len, DAVIT_R_TOKENIZER_UNSUPPORTED, "1048576 bytes");
}

static void broken_tekken_files_are_malformed(void)
{
    refused_text("{\"config\":{}}", DAVIT_R_TOKENIZER_INVALID);
    refused_text(
        "{\"config\":{\"default_vocab_size\":3,\"default_num_special_tokens\":1},"
        "\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"}]}",
        DAVIT_R_TOKENIZER_INVALID); /* a rank is missing */
    refused_text(
        "{\"config\":{\"default_vocab_size\":2,\"default_num_special_tokens\":1},"
        "\"vocab\":[{\"rank\":0,\"token_bytes\":\"Y\\u0000==\"}]}",
        DAVIT_R_TOKENIZER_INVALID); /* a NUL is not base64 */
    refused_text(
        "{\"config\":{\"default_vocab_size\":-3,\"default_num_special_tokens\":1},"
        "\"vocab\":[]}",
        DAVIT_R_TOKENIZER_INVALID);
    refused_text("{\"vocab\":[{\"rank\":0}],\"config\":{\"default_vocab_size\":21,"
                 "\"default_num_special_tokens\":20}}",
                 DAVIT_R_TOKENIZER_INVALID);
}

static void unknown_tekken_regex_is_refused(void)
{
    gsize len;
    g_autofree char *text = read_source("tekken_small.json", &len);
    size_t at = 0;

    while (strncmp(text + at, "{Lu}", 4) != 0)
        at++;
    text[at + 2] = 't'; /* \p{Lt} instead of \p{Lu}: one character */
    refused(text, len, DAVIT_R_PRETOKENIZER_UNKNOWN, NULL);
}

/* Every cut of a SentencePiece file is refused with a record, or gives a tokenizer of the
 * pieces that are whole. */
static void cut_sentencepiece_file_is_refused(void)
{
    gsize len;
    g_autofree char *bytes = read_source("spm_plain.model", &len);

    for (size_t n = 0; n < len; n += n < 64 ? 1 : 97) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitTokenizer) t =
            davit_tokenizer_from_spm(bytes, n, "file", davit_test_registry(), report);

        g_assert_true(t || davit_report_failed(report));
    }
    refused("", 0, DAVIT_R_EMPTY_FILE, NULL);
    refused_text("hello, this is not a model", DAVIT_R_TOKENIZER_INVALID);
}

/* spm_plain.model with a message behind it, which protobuf takes for more of the same: NULL, or the
 * ids of two unknown characters. */
static char *with_message(const char *message, size_t n)
{
    gsize len;
    g_autofree char *bytes = read_source("spm_plain.model", &len);
    g_autoptr(GString) all = g_string_new_len(bytes, (gssize)len);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = NULL;
    g_autoptr(DavitEncoder) encoder = NULL;
    DavitIds ids = {0};
    char *text;

    g_string_append_len(all, message, (gssize)n);
    t = davit_tokenizer_from_spm(all->str, all->len, "file", davit_test_registry(), report);
    if (!t)
        return NULL;
    encoder = davit_encoder_new(t);
    g_assert_cmpint(davit_encode(encoder, "\xf0\x9f\x99\x82", 4, 0, &ids, report), ==, DAVIT_OK);
    text = g_strdup_printf("%d", ids.ids[ids.n - 1]);
    davit_ids_clear(&ids);
    return text;
}

/* sentencepiece encodes as the piece of type UNKNOWN, of which there is one, and never finds a control
 * piece in a text. */
static void types_of_pieces_count_and_not_the_trainer_s_ids(void)
{
    g_autofree char *unk = with_message("\x12\x03\xc0\x02\x04", 5); /* trainer_spec.unk_id = 4 */
    g_autofree char *second = with_message("\x0a\x0a\x0a\x01?\x15\0\0\0\0\x18\x02", 12);
    g_autofree char *control = with_message("\x0a\x0a\x0a\x01~\x15\0\0\0\0\x18\x03", 12);
    g_autofree char *longer = with_message("\x0a\x0b\x0a\x02~~\x15\0\0\0\0\x18\x03", 13);

    g_assert_cmpstr(unk, ==, "0");
    g_assert_null(second);
    g_assert_null(control);
    g_assert_cmpstr(longer, ==, "0");
}

/* ---- vocab.json with merges.txt ---- */

static char *few_tokens(void)
{
    g_autoptr(GString) vocab = g_string_new("{");

    for (unsigned i = 0; i < 256; i++) {
        const uint32_t letter = davit_byte_letter((uint8_t)i);

        if (letter == '"' || letter == '\\')
            g_string_append_c(g_string_append_c(g_string_append_c(vocab, '"'), '\\'), (char)letter);
        else
            g_string_append_unichar(g_string_append_c(vocab, '"'), letter);
        g_string_append_printf(vocab, "\": %u, ", i);
    }
    g_string_append(vocab, "\"he\": 256}");
    return g_strdup(vocab->str);
}

/* Ids of @text by the pair beside @config (NULL = none), or the first record that refuses it. */
static char *by_pair(DavitRegistry *registry, const char *config, const char *text)
{
    g_autofree char *vocab = few_tokens();
    const char *merges = "#version: 0.2\nh e\n";
    const DavitMergesFiles files = {vocab,          merges,         config,
                                    strlen(vocab),  strlen(merges), config ? strlen(config) : 0};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = davit_tokenizer_from_merges(&files, registry, report);
    g_autoptr(DavitEncoder) encoder = t ? davit_encoder_new(t) : NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    DavitIds ids = {0};

    if (!t)
        return g_strdup(davit_report_get(report, 0)->subject);
    g_assert_cmpint(davit_encode(encoder, text, strlen(text), 0, &ids, report), ==, DAVIT_OK);
    for (size_t i = 0; i < ids.n; i++)
        g_string_append_printf(out, "%s%d", i ? " " : "", ids.ids[i]);
    davit_ids_clear(&ids);
    return g_strdup(out->str);
}

static void pair_takes_added_tokens_from_its_config(void)
{
    static const struct {
        const char *config, *text, *want;
    } rows[] = {
        {NULL, "he<claimed>a", "256 257 97"},
        {"{}", "he<claimed>a", "256 257 97"},
        {"{\"added_tokens_decoder\":{}}", "<claimed>", "257"},
        {"{\"added_tokens_decoder\":{\"258\":{\"content\":\"<b>\",\"rstrip\":true},"
         "\"257\":{\"content\":\"<a>\",\"special\":true}}}",
         "<a><b> <claimed>", "257 258 60 99 108 97 105 109 101 100 62"},
        {"{\"added_tokens_decoder\":{\"104\":{\"content\":\"h\"}}}", "he", "104 101"},
        {"{\"add_prefix_space\":true}", "", "tokenizer_config.json: add_prefix_space"},
        {"{\"add_bos_token\":true}", "", "tokenizer_config.json: add_bos_token"},
        {"{\"added_tokens_decoder\":[]}", "", "tokenizer_config.json: added_tokens_decoder"},
        {"{\"added_tokens_decoder\":{\"-1\":{\"content\":\"a\"}}}", "",
         "tokenizer_config.json: added_tokens_decoder"},
        {"{\"added_tokens_decoder\":{\"99999999\":{\"content\":\"a\"}}}", "",
         "tokenizer_config.json: added_tokens_decoder"},
        {"{\"added_tokens_decoder\":{\"257\":{\"content\":7}}}", "",
         "tokenizer_config.json: added_tokens_decoder"},
        {"{", "", "tokenizer_config.json"},
    };
    const char *const paths[] = {DAVIT_FEW_RANKS, NULL};
    const DavitRegistryOptions options = {.plugin_paths = paths, .only_paths = true};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitRegistry *registry = davit_registry_open(&options, report);

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *got = by_pair(registry, rows[i].config, rows[i].text);

        g_assert_cmpstr(got, ==, rows[i].want);
    }
    davit_registry_free(registry);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (argc == 2) { /* a file out of a package; scripts/fetch-models.sh */
        if (!g_file_test(argv[1], G_FILE_TEST_IS_REGULAR)) {
            fprintf(stderr, "skipped: no %s (scripts/fetch-models.sh DIR tokenizers)\n",
                    argv[1]);
            return 77;
        }
        g_test_add_data_func("/sources/real", argv[1], ids_of_real_file);
        return g_test_run();
    }
    g_test_add_data_func("/sources/spm_bytes", "spm_bytes.model", ids_are_the_library_s);
    g_test_add_data_func("/sources/spm_plain", "spm_plain.model", ids_are_the_library_s);
    g_test_add_data_func("/sources/spm_charsmap", "spm_charsmap.model",
                         ids_are_the_library_s);
    g_test_add_data_func("/sources/spm_charsmap_bare", "spm_charsmap_bare.model",
                         ids_are_the_library_s);
    g_test_add_data_func("/sources/unigram_nmt", "unigram_nmt.model",
                         ids_are_the_library_s);
    g_test_add_data_func("/sources/unigram_bytes", "unigram_bytes.model",
                         ids_are_the_library_s);
    g_test_add_data_func("/sources/tekken", "tekken_small.json", ids_are_the_library_s);
    g_test_add_func("/sources/equal_sums", equal_sums_keep_the_first);
    g_test_add_func("/sources/unknown_ranks", unknown_rank_list_names_its_hash);
    g_test_add_func("/sources/broken_ranks", broken_rank_lists_are_malformed);
    g_test_add_func("/sources/token_of_a_megabyte", token_of_a_megabyte_is_refused);
    g_test_add_func("/sources/broken_tekken", broken_tekken_files_are_malformed);
    g_test_add_func("/sources/unknown_tekken", unknown_tekken_regex_is_refused);
    g_test_add_func("/sources/spm_types", types_of_pieces_count_and_not_the_trainer_s_ids);
    g_test_add_func("/sources/pair", pair_takes_added_tokens_from_its_config);
    g_test_add_func("/sources/cut_spm", cut_sentencepiece_file_is_refused);
    return g_test_run();
}
