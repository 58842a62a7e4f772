/* SPDX-License-Identifier: Apache-2.0
 * Files of encoders: vocab.txt, and Unigram and WordPiece files that are broken. Each is
 * refused with a record; none is a crash, a loop or a guess.
 */
#include <string.h>

#include "tokenizer/charsmap.h"
#include "tokenizer/test_golden.h"

static json_t *golden_file(const char *name)
{
    g_autofree char *path =
        g_strdup_printf("%s/tests/golden/tokenizers/%s", DAVIT_SOURCE_DIR, name);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, NULL);

    g_assert_nonnull(file);
    return file;
}

/* ---- vocab.txt ---- */

/* (owned) the tokens of a WordPiece tokenizer.json, a line each, in the order of ids. */
static GString *vocab_lines(const json_t *file)
{
    json_t *vocab = json_object_get(json_object_get(file, "model"), "vocab"), *id;
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    GString *out = g_string_new(NULL);
    const char *text;

    g_ptr_array_set_size(order, (int)json_object_size(vocab));
    json_object_foreach (vocab, text, id) {
        order->pdata[json_integer_value(id)] = (char *)(uintptr_t)text;
    }
    for (guint i = 0; i < order->len; i++)
        g_string_append_printf(out, "%s%s", (const char *)order->pdata[i],
                               i % 2 ? "\n" : "\r\n");
    return out;
}

static DavitTokenizer *open_text(const char *text, size_t len, DavitReport *report)
{
    /* A copy of the exact size, so that a sanitizer sees a read behind it. */
    g_autofree char *copy = g_memdup2(text, len);
    DavitTokenizer *t = davit_tokenizer_from_bytes(copy ? copy : "", len, "f",
                                                   davit_test_registry(), report);

    g_assert_true(t || davit_report_failed(report));
    return t;
}

static void vocab_txt_is_the_json_s(void)
{
    json_t *file = golden_file("bert_uncased.json");
    json_t *golden = golden_file("bert_uncased.golden.json");
    g_autoptr(GString) lines = vocab_lines(file);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = open_text(lines->str, lines->len, report);

    g_assert_nonnull(t);
    g_assert_nonnull(davit_test_find(report, DAVIT_R_ASSUMED));
    davit_test_golden(t, "vocab.txt", golden);
    json_decref(golden);
    json_decref(file);
}

static void broken_vocab_txt(const char *text, const char *subject)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) t = open_text(text, strlen(text), report);

    g_assert_null(t);
    g_assert_cmpstr(davit_test_find(report, DAVIT_R_TOKENIZER_INVALID)->subject, ==,
                    subject);
}

static void broken_vocab_txts_are_refused(void)
{
    broken_vocab_txt("[UNK]\n[CLS]\n[SEP]\na\na\n", "f: file"); /* a text twice */
    broken_vocab_txt("[UNK]\n[CLS]\n[SEP]\n\xff\n", "f: line");
    broken_vocab_txt("[UNK]\na\n", "f: file"); /* nothing to put round the text */
}

/* ---- tokenizer.json ---- */

typedef struct Bad {
    const char *model, *normalizer; /* NULL = a healthy one */
    uint32_t code;
    const char *subject;
} Bad;

#define UNIGRAM(more) "{\"type\":\"Unigram\"," more "}"
#define PIECE         "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
#define CHARSMAP(b64) "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"" b64 "\"}"

static const Bad bads[] = {
    {UNIGRAM("\"unk_id\":7,\"vocab\":[[\"a\",0.0]]"), NULL, DAVIT_R_TOKENIZER_INVALID,
     "t.json: model.unk_id"},
    {UNIGRAM("\"unk_id\":-1,\"vocab\":[[\"a\",0.0]]"), NULL, DAVIT_R_TOKENIZER_INVALID,
     "t.json: model.unk_id"},
    {UNIGRAM("\"unk_id\":0,\"vocab\":[[\"a\"]]"), NULL, DAVIT_R_TOKENIZER_INVALID,
     "t.json: model.vocab"},
    {UNIGRAM("\"unk_id\":0,\"vocab\":[[\"a\",0,0]]"), NULL, DAVIT_R_TOKENIZER_INVALID,
     "t.json: model.vocab"},
    {UNIGRAM("\"unk_id\":0,\"vocab\":[[0,\"a\"]]"), NULL, DAVIT_R_TOKENIZER_INVALID,
     "t.json: model.vocab"},
    {UNIGRAM("\"unk_id\":0,\"vocab\":[[\"a\",0.0],[\"a\",1.0]]"), NULL,
     DAVIT_R_TOKENIZER_INVALID, "t.json: model.vocab"},
    {UNIGRAM("\"unk_id\":0,\"vocab\":{\"a\":0}"), NULL, DAVIT_R_TOKENIZER_INVALID,
     "t.json: model.vocab"},
    {"{\"type\":\"BPE\",\"merges\":[],\"vocab\":[[\"a\",0.0]]}", NULL,
     DAVIT_R_TOKENIZER_INVALID, "t.json: model.vocab"},
    {PIECE "\"vocab\":{\"[UNK]\":0}}", NULL, DAVIT_R_TOKENIZER_INVALID, "t.json: model"},
    {PIECE "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":-1,"
           "\"vocab\":{\"[UNK]\":0}}",
     NULL, DAVIT_R_TOKENIZER_INVALID, "t.json: model.max_input_chars_per_word"},
    {NULL, CHARSMAP("!"), DAVIT_R_TOKENIZER_INVALID,
     "t.json: normalizer.precompiled_charsmap"},
    {NULL, CHARSMAP(""), DAVIT_R_TOKENIZER_INVALID,
     "t.json: normalizer.precompiled_charsmap"},
    {NULL, "{\"type\":\"Precompiled\"}", DAVIT_R_TOKENIZER_INVALID,
     "t.json: normalizer.precompiled_charsmap"},
    {NULL, "{\"type\":\"BertNormalizer\",\"lowercase\":true}", DAVIT_R_TOKENIZER_INVALID,
     "t.json: normalizer.clean_text"},
    {NULL, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*\"},\"content\":\"b\"}",
     DAVIT_R_TOKENIZER_UNSUPPORTED, "t.json: normalizer.pattern.Regex"},
};

static DavitTokenizer *load(const char *model, const char *normalizer, DavitReport *report)
{
    g_autofree char *text = g_strdup_printf(
        "{\"added_tokens\":[],\"normalizer\":%s,\"pre_tokenizer\":null,\"post_processor\":"
        "null,\"decoder\":null,\"model\":%s}",
        normalizer ? normalizer : "null",
        model ? model : UNIGRAM("\"unk_id\":0,\"vocab\":[[\"a\",0.0]]"));

    return davit_tokenizer_from_json(text, strlen(text), "t.json", davit_test_registry(),
                                     report);
}

static void broken_files_are_refused(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bads); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitTokenizer) t = load(bads[i].model, bads[i].normalizer, report);
        const DavitRecord *record = davit_test_find(report, bads[i].code);

        davit_test_show(report);
        g_assert_null(t);
        g_assert_nonnull(record);
        g_assert_cmpstr(record->subject, ==, bads[i].subject);
    }
}

/* Without an unknown token a text with an unknown character is an error, others are not. */
static void missing_unknown_is_told_when_needed(void)
{
    static const char *const models[] = {
        UNIGRAM("\"unk_id\":null,\"vocab\":[[\"a\",0.0]]"),
        PIECE "\"continuing_subword_prefix\":\"\",\"max_input_chars_per_word\":9,\"vocab\":"
              "{\"a\":0}}"};

    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitTokenizer) t = load(models[i], NULL, report);

        g_assert_nonnull(t);
        davit_test_encode(t, "aa", 0, "0 0");
        davit_test_encode(t, "ab", 0, "status -2");
    }
}

/* serde_json reads a number by one multiplication or division, which is not always the
 * nearest double: the two spellings of one double here are two numbers to it, and the sum of
 * the parts is the better one. Ids are those of tokenizers 0.23.3. */
static void scores_are_read_as_serde_reads_them(void)
{
    static const char *const scores[][2] = {
        {"-11.929070472717285", "-11.929070472717285156250000000000"},
        {"-12.864946365356445", "-12.864946365356445312500000000000"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(scores); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *model = g_strdup_printf(
            UNIGRAM("\"unk_id\":0,\"vocab\":[[\"?\",-99],[\"a\",0],[\"b\",%s],[\"ab\",%s]]"),
            scores[i][0], scores[i][1]);
        g_autoptr(DavitTokenizer) t = load(model, NULL, report);

        g_assert_nonnull(t);
        davit_test_encode(t, "ab", 0, "1 2");
    }
}

/* ---- truncation and padding ---- */

static void fit_is_refused(const char *members, const char *subject)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *text = g_strdup_printf(
        "{%s,\"model\":" UNIGRAM("\"unk_id\":0,\"vocab\":[[\"a\",0.0]]") "}", members);
    g_autoptr(DavitTokenizer) t = davit_tokenizer_from_json(
        text, strlen(text), "t.json", davit_test_registry(), report);

    g_assert_null(t);
    g_assert_true(davit_report_failed(report));
    g_assert_cmpstr(davit_report_get(report, davit_report_count(report) - 1)->subject, ==,
                    subject);
}

static void unknown_fits_are_refused(void)
{
    fit_is_refused("\"truncation\":{\"max_length\":3,\"stride\":0,\"strategy\":\"OnlySecond\"}",
                   "t.json: truncation.strategy");
    fit_is_refused("\"truncation\":{\"max_length\":-3,\"stride\":0,\"strategy\":"
                   "\"LongestFirst\"}",
                   "t.json: truncation.max_length");
    fit_is_refused("\"padding\":{\"pad_id\":0,\"strategy\":{\"Fixed\":99999999999}}",
                   "t.json: padding.pad_id");
    fit_is_refused("\"padding\":{\"pad_id\":0,\"strategy\":\"Fixed\"}",
                   "t.json: padding.strategy");
}

/* Spans are cut and filled up with the ids. */
static void spans_follow_the_fit(void)
{
    static const char *const names[] = {"bert_fit", "bert_fit_left"};
    static const char text[] = "the quick brown fox jumps over the lazy dog";

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        for (size_t len = 0; len < sizeof text; len += 3) {
            g_autofree char *path = g_strdup_printf("%s/tests/golden/tokenizers/%s.json",
                                                    DAVIT_SOURCE_DIR, names[i]);
            g_autoptr(DavitTokenizer) t = davit_test_load(path);
            g_autoptr(DavitEncoder) encoder = davit_encoder_new(t);
            g_autoptr(DavitReport) report = davit_report_new();
            g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(DavitSpan));
            DavitIds ids = {0};

            g_assert_cmpint(davit_encode_spans(encoder, text, len, DAVIT_ENCODE_SPECIAL, &ids,
                                               spans, report),
                            ==, DAVIT_OK);
            g_assert_cmpuint(spans->len, ==, ids.n);
            for (guint k = 0; k < spans->len; k++) {
                const DavitSpan span = g_array_index(spans, DavitSpan, k);

                /* the tokens of the file's own: [PAD] 0, [CLS] 2, [SEP] 3 */
                g_assert_true((span.start == span.end) == (ids.ids[k] <= 3));
            }
            davit_ids_clear(&ids);
        }
    }
}

/* Whole characters of @text. */
static DavitSpan widened(const char *text, size_t len, DavitSpan span)
{
    while (span.start > 0 && ((uint8_t)text[span.start] & 0xc0) == 0x80)
        span.start--;
    while (span.end < len && ((uint8_t)text[span.end] & 0xc0) == 0x80)
        span.end++;
    return span;
}

/* Hugging Face's offsets are whole characters; ours may be finer inside those that did not
 * change. @golden: [text, ids, starts and ends]. */
static void check_offsets(DavitEncoder *encoder, const json_t *golden)
{
    const json_t *want_ids = json_array_get(golden, 1), *want = json_array_get(golden, 2);
    const char *text = json_string_value(json_array_get(golden, 0));
    const size_t len = json_string_length(json_array_get(golden, 0));
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(DavitSpan));
    DavitIds ids = {0};

    g_assert_cmpint(davit_encode_spans(encoder, text, len, 0, &ids, spans, report), ==, DAVIT_OK);
    g_assert_cmpuint(ids.n, ==, json_array_size(want_ids));
    for (guint i = 0; i < spans->len; i++) {
        const DavitSpan span = widened(text, len, g_array_index(spans, DavitSpan, i));

        if (span.start != (uint64_t)json_integer_value(json_array_get(want, 2 * i)) ||
            span.end != (uint64_t)json_integer_value(json_array_get(want, 2 * i + 1)))
            g_test_message("id %u of \"%s\": %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, i,
                           text, span.start, span.end);
        g_assert_cmpint(ids.ids[i], ==, json_integer_value(json_array_get(want_ids, i)));
        g_assert_cmpuint(span.start, ==, json_integer_value(json_array_get(want, 2 * i)));
        g_assert_cmpuint(span.end, ==, json_integer_value(json_array_get(want, 2 * i + 1)));
    }
    davit_ids_clear(&ids);
}

static void offsets_are_hugging_face_s(void)
{
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests", "golden", "tokenizers",
                                             "spans.golden.json", NULL);
    json_t *all = json_load_file(path, JSON_ALLOW_NUL, NULL), *cases, *one;
    const char *name;
    size_t i;

    g_assert_cmpuint(json_object_size(all), >=, 15);
    json_object_foreach (all, name, cases) {
        g_autofree char *file = g_strdup_printf("%s/tests/golden/tokenizers/%s.json",
                                                DAVIT_SOURCE_DIR, name);
        g_autoptr(DavitTokenizer) t = davit_test_load(file);
        g_autoptr(DavitEncoder) encoder = davit_encoder_new(t);

        g_assert_cmpuint(json_array_size(cases), >, 60);
        json_array_foreach (cases, i, one)
            check_offsets(encoder, one);
    }
    json_decref(all);
}

/* ---- charsmaps ---- */

/* (owned) @n units and the text "x". */
static GByteArray *made_map(const uint32_t *units, size_t n)
{
    GByteArray *out = g_byte_array_new();

    for (size_t i = 0; i <= n; i++) {
        const uint32_t v = i == 0 ? (uint32_t)(4 * n) : units[i - 1];
        const guint8 bytes[4] = {v & 255, v >> 8 & 255, v >> 16 & 255, (guint8)(v >> 24)};

        g_byte_array_append(out, bytes, 4);
    }
    return g_byte_array_append(out, (const guint8 *)"x\0", 2);
}

static void expect_map(uint32_t *units, size_t n, const char *want)
{
    g_autoptr(GByteArray) bytes = made_map(units, n);
    const char *why;
    g_autoptr(DavitCharsmap) map = davit_charsmap_new(bytes->data, bytes->len, &why);

    g_assert_cmpstr(why, ==, want);
    g_assert_true((map == NULL) == (want != NULL));
}

/* The root's children lie at 256, those of "a" at 512. */
static void broken_charsmaps_are_refused(void)
{
    static const char outside[] = "the array leads out of itself, or to no text";
    g_autofree uint32_t *u = g_new0(uint32_t, 768);
    const uint32_t a = 256 ^ 'a';

    u[0] = 256u << 10;
    u[a] = (a ^ 512u) << 10 | 1u << 8 | 'a';
    u[512] = 1u << 31;
    expect_map(u, 768, NULL);
    expect_map(u, 512, outside); /* cut: the end of "a" is not there */
    u[512] = 1u << 31 | 3;       /* behind the texts */
    expect_map(u, 768, outside);
    u[512] = 1u << 31;
    u[512 ^ 'b'] = ((512u ^ 'b') ^ 256u) << 10 | 'b'; /* "ab" is the root again */
    expect_map(u, 768, "the array has a loop");
    u[512 ^ 'b'] = 0x3ffffu << 10 | 'b';
    expect_map(u, 768, outside);
    u[0] = 0x3ffffu << 10;
    expect_map(u, 768, "the array leads out of itself");
}

static void cut_charsmap_is_refused(void)
{
    json_t *file = golden_file("unigram_t5.json");
    const char *why;
    gsize n;
    g_autofree guchar *bytes = g_base64_decode(
        json_string_value(json_object_get(json_object_get(file, "normalizer"),
                                          "precompiled_charsmap")),
        &n);

    for (gsize len = 0; len < n; len += 1 + len / 8) {
        g_autofree guchar *part = g_memdup2(bytes, len);
        g_autoptr(DavitCharsmap) map =
            davit_charsmap_new(part ? part : bytes, len, &why);

        g_assert_true((map == NULL) == (why != NULL));
    }
    json_decref(file);
}

/* ---- SentencePiece ---- */

/* Any byte changed: a tokenizer that works, or a record. */
static void changed_models_are_refused_or_work(void)
{
    g_autofree char *path = g_strdup_printf(
        "%s/tests/golden/tokenizers/sources/unigram_bytes.model", DAVIT_SOURCE_DIR);
    g_autofree char *bytes = NULL;
    gsize len;

    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    for (int i = 0; i < 600; i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *copy = g_memdup2(bytes, len);
        g_autoptr(DavitTokenizer) t = NULL;

        for (int k = 0; k < 3; k++)
            copy[g_test_rand_int_range(0, (int)len)] = (char)g_test_rand_int();
        t = open_text(copy, (size_t)g_test_rand_int_range(1, (int)len + 1), report);
        if (t) {
            g_autoptr(DavitEncoder) encoder = davit_encoder_new(t);
            DavitIds ids = {0};

            davit_encode(encoder, "  a b\xc3\xa9 \xe6\x97\xa5", 10, 0, &ids, report);
            davit_ids_clear(&ids);
        }
    }
}

/* ---- growth ---- */

static uint64_t steps_of(const DavitTokenizer *t, const char *unit, size_t times)
{
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(t);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GString) text = g_string_new(NULL);
    DavitIds ids = {0};

    for (size_t i = 0; i < times; i++)
        g_string_append(text, unit);
    g_assert_cmpint(davit_encode(encoder, text->str, text->len, 0, &ids, report), ==, 0);
    davit_ids_clear(&ids);
    return davit_encoder_steps(encoder);
}

/* Twice the text, twice the steps: the same letter, spaces, marks, the mark itself. */
static void work_is_linear(void)
{
    static const char *const units[] = {"a", " ", "=", "\n", "\xcc\x80", "the", "7",
                                        "\xe2\x96\x81", "\xe2\x80\x8d\xc2\xa9"};
    static const char *const files[] = {"unigram_t5.json", "unigram_bytes.json",
                                        "bert_uncased.json"};

    for (size_t f = 0; f < G_N_ELEMENTS(files); f++) {
        g_autofree char *path =
            g_strdup_printf("%s/tests/golden/tokenizers/%s", DAVIT_SOURCE_DIR, files[f]);
        g_autoptr(DavitTokenizer) t = davit_test_load(path);

        for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
            const uint64_t once = steps_of(t, units[i], 20000);
            const uint64_t twice = steps_of(t, units[i], 40000);

            g_assert_cmpuint(twice, <=, 2 * once + 200);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/encoder_files/vocab_txt", vocab_txt_is_the_json_s);
    g_test_add_func("/encoder_files/broken_vocab_txt", broken_vocab_txts_are_refused);
    g_test_add_func("/encoder_files/broken", broken_files_are_refused);
    g_test_add_func("/encoder_files/missing_unknown", missing_unknown_is_told_when_needed);
    g_test_add_func("/encoder_files/scores", scores_are_read_as_serde_reads_them);
    g_test_add_func("/encoder_files/unknown_fits", unknown_fits_are_refused);
    g_test_add_func("/encoder_files/spans_fit", spans_follow_the_fit);
    g_test_add_func("/encoder_files/offsets", offsets_are_hugging_face_s);
    g_test_add_func("/encoder_files/broken_charsmap", broken_charsmaps_are_refused);
    g_test_add_func("/encoder_files/cut_charsmap", cut_charsmap_is_refused);
    g_test_add_func("/encoder_files/changed_models", changed_models_are_refused_or_work);
    g_test_add_func("/encoder_files/linear", work_is_linear);
    return g_test_run();
}
