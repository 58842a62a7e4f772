/* SPDX-License-Identifier: Apache-2.0
 * Every scalar value, and random runs of what joins, through each normaliser: equal to
 * tokenizers 0.23.3 by hash. Strings are those of make_unicode_goldens.py.
 */
#include <string.h>

#include "tokenizer/normalize.h"
#include "tokenizer/test_golden.h"

/* xorshift64, as in the script. */
static uint64_t below(uint64_t *state, uint64_t n)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return (x >> 11) % n;
}

/* One normaliser and the hash of what it makes. */
typedef struct Form {
    DavitNormalizer *normalizer;
    DavitNormalScratch scratch;
    GChecksum *sum;
} Form;

static void take(Form *form, const GString *text)
{
    size_t len;
    bool cut;
    const char *out = davit_normalize(form->normalizer, &form->scratch, text->str,
                                      text->len, &len, &cut);

    g_assert_nonnull(out);
    g_checksum_update(form->sum, (const guchar *)out, (gssize)len);
    g_checksum_update(form->sum, (const guchar *)"\n", 1);
}

static void take_all(Form *form, const json_t *golden)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const json_t *alphabet = json_object_get(golden, "alphabet");
    uint64_t state = (uint64_t)json_integer_value(json_object_get(golden, "start")) *
                     0x9e3779b97f4a7c15ull;

    for (gunichar c = 0; c < 0x110000; c++) {
        if (c == '\n' || (c >= 0xd800 && c < 0xe000))
            continue;
        g_string_truncate(text, 0);
        g_string_append_unichar(text, c);
        take(form, text);
    }
    for (json_int_t i = json_integer_value(json_object_get(golden, "count")); i > 0; i--) {
        g_string_truncate(text, 0);
        for (uint64_t n = 1 + below(&state, 12); n > 0; n--)
            g_string_append_unichar(
                text, (gunichar)json_integer_value(json_array_get(
                          alphabet, below(&state, json_array_size(alphabet)))));
        take(form, text);
    }
}

static void form_is_the_reference_s(const void *data)
{
    const char *name = data;
    json_t *golden = json_load_file(
        DAVIT_SOURCE_DIR "/tests/golden/tokenizers/unicode.golden.json", 0, NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    json_t *node = json_pack("{s:s,s:b,s:b,s:n,s:b}", "type", name, "clean_text", 1,
                             "handle_chinese_chars", 1, "strip_accents", "lowercase", 1);
    Form form = {.normalizer = davit_normalizer_new(node, "n", report),
                 .scratch = {g_string_new(NULL), g_string_new(NULL), NULL},
                 .sum = g_checksum_new(G_CHECKSUM_SHA256)};

    g_assert_nonnull(golden);
    g_assert_nonnull(form.normalizer);
    take_all(&form, golden);
    g_assert_cmpstr(
        g_checksum_get_string(form.sum), ==,
        json_string_value(json_object_get(json_object_get(golden, "sha256"), name)));
    davit_normalizer_free(form.normalizer);
    g_string_free(form.scratch.a, TRUE);
    g_string_free(form.scratch.b, TRUE);
    g_checksum_free(form.sum);
    json_decref(node);
    json_decref(golden);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"NFC",       "NFD",          "NFKC", "NFKD",
                                        "Lowercase", "StripAccents", "Nmt",  "BertNormalizer"};

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf("/unicode_golden/%s", names[i]);

        g_test_add_data_func(path, names[i], form_is_the_reference_s);
    }
    return g_test_run();
}
