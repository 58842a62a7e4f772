/* SPDX-License-Identifier: Apache-2.0
 * Running goldens. The random strings are those of make_tokenizer_goldens.py.
 */
#include "tokenizer/test_golden.h"

#include <string.h>

#include <davit/help/ucd.h>

/* xorshift64, as in the script. */
typedef struct Random {
    uint64_t state;
} Random;

static uint64_t below(Random *r, uint64_t n)
{
    uint64_t x = r->state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    r->state = x;
    return (x >> 11) % n;
}

void davit_test_show(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        g_autofree char *text = davit_record_sentence(davit_report_get(report, i));

        g_test_message("%s", text);
    }
}

DavitRegistry *davit_test_registry(void)
{
    static DavitRegistry *registry;

    if (!registry) {
        g_autoptr(DavitReport) report = davit_report_new();
        const char *const paths[] = {DAVIT_PLUGIN_DIR, NULL};
        const DavitRegistryOptions options = {
            .plugin_paths = paths, .builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true};

        registry = davit_registry_open(&options, report);
        davit_test_show(report);
    }
    return registry;
}

DavitTokenizer *davit_test_load(const char *path)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *text = NULL;
    gsize len;
    DavitTokenizer *tokenizer;

    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    tokenizer = davit_tokenizer_from_json(text, len, path, davit_test_registry(), report);
    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    return tokenizer;
}

const DavitRecord *davit_test_find(const DavitReport *report, uint32_t code)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        if (davit_report_get(report, i)->code == code)
            return davit_report_get(report, i);
    }
    return NULL;
}

static char *join_ids(const DavitTokenizer *tokenizer, const char *text, uint32_t flags)
{
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GString) out = g_string_new(NULL);
    DavitIds ids = {0};
    const int32_t status = davit_encode(encoder, text, strlen(text), flags, &ids, report);

    if (status != DAVIT_OK)
        g_string_printf(out, "status %d", status);
    for (size_t i = 0; i < ids.n; i++)
        g_string_append_printf(out, i > 0 ? " %d" : "%d", ids.ids[i]);
    davit_ids_clear(&ids);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

void davit_test_encode(const DavitTokenizer *tokenizer, const char *text, uint32_t flags,
                       const char *want)
{
    g_autofree char *got = join_ids(tokenizer, text, flags);

    g_assert_cmpstr(got, ==, want);
}

/* ---- named cases ---- */

static void check_ids(const char *name, const json_t *item, const char *key,
                      const DavitIds *got)
{
    const json_t *want = json_object_get(item, key);
    bool same = json_array_size(want) == got->n;

    for (size_t i = 0; same && i < got->n; i++)
        same = json_integer_value(json_array_get(want, i)) == got->ids[i];
    if (!same)
        g_test_message("%s: %s of \"%s\"", name, key,
                       json_string_value(json_object_get(item, "text")));
    g_assert_true(same);
}

/* The whole at once, and streamed: never half a character, and the same in the end. */
static void decode_both(const DavitTokenizer *tokenizer, const DavitIds *ids, bool skip,
                        GString *out)
{
    g_autoptr(DavitDecoder) decoder = davit_decoder_new(tokenizer, skip);
    g_autoptr(GString) stream = g_string_new(NULL);

    g_string_truncate(out, 0);
    davit_decode(tokenizer, ids->ids, ids->n, skip, out);
    for (size_t i = 0; i < ids->n; i++) {
        const size_t before = stream->len;

        davit_decoder_push(decoder, ids->ids[i], stream);
        g_assert_cmpuint(davit_ucd_check(stream->str + before, stream->len - before), ==,
                         stream->len - before);
    }
    davit_decoder_flush(decoder, stream);
    g_assert_true(g_string_equal(stream, out));
}

static void check_text(const DavitTokenizer *tokenizer, const json_t *item,
                       const char *key, bool skip, const DavitIds *ids)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const json_t *want = json_object_get(item, key);

    decode_both(tokenizer, ids, skip, text);
    g_assert_cmpuint(text->len, ==, json_string_length(want));
    g_assert_true(memcmp(text->str, json_string_value(want), text->len) == 0);
}

static void run_case(const DavitTokenizer *tokenizer, DavitEncoder *encoder,
                     const char *name, const json_t *item)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const json_t *text = json_object_get(item, "text");
    DavitIds ids = {0};

    g_assert_cmpint(davit_encode(encoder, json_string_value(text),
                                 json_string_length(text), 0, &ids, report),
                    ==, DAVIT_OK);
    check_ids(name, item, "ids", &ids);
    ids.n = 0;
    g_assert_cmpint(davit_encode(encoder, json_string_value(text),
                                 json_string_length(text), DAVIT_ENCODE_SPECIAL, &ids,
                                 report),
                    ==, DAVIT_OK);
    check_ids(name, item, "with", &ids);
    check_text(tokenizer, item, "decoded", false, &ids);
    check_text(tokenizer, item, "skipped", true, &ids);
    davit_ids_clear(&ids);
}

/* ---- random strings ---- */

static void random_text(Random *r, const json_t *golden, GString *out)
{
    const json_t *alphabet = json_object_get(golden, "alphabet");
    const json_t *specials = json_object_get(golden, "specials");
    const uint64_t n = 1 + below(r, 24);

    g_string_truncate(out, 0);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t pick = below(r, 40);
        uint64_t times;
        json_int_t cp;

        if (pick == 0 && json_array_size(specials) > 0) {
            g_string_append(out, json_string_value(json_array_get(
                                     specials, below(r, json_array_size(specials)))));
            continue;
        }
        times = 1 + (below(r, 8) == 0 ? below(r, 6) : 0);
        cp = json_integer_value(
            json_array_get(alphabet, below(r, json_array_size(alphabet))));
        while (times-- > 0)
            g_string_append_unichar(out, (gunichar)cp);
    }
}

static void hash_ids(GChecksum *sum, const DavitIds *ids)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (size_t i = 0; i < ids->n; i++)
        g_string_append_printf(text, i > 0 ? " %d" : "%d", ids->ids[i]);
    g_string_append_c(text, '\n');
    g_checksum_update(sum, (const guchar *)text->str, (gssize)text->len);
}

static void hash_text(GChecksum *sum, const DavitTokenizer *tokenizer,
                      const DavitIds *ids, bool skip)
{
    g_autoptr(GString) text = g_string_new(NULL);

    decode_both(tokenizer, ids, skip, text);
    g_string_append_c(text, '\n');
    g_checksum_update(sum, (const guchar *)text->str, (gssize)text->len);
}

static void check_sum(const json_t *golden, const char *key, GChecksum *sum)
{
    g_assert_cmpstr(g_checksum_get_string(sum), ==,
                    json_string_value(json_object_get(golden, key)));
    g_checksum_free(sum);
}

static void run_random(const DavitTokenizer *tokenizer, DavitEncoder *encoder,
                       const json_t *golden)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GString) text = g_string_new(NULL);
    const uint64_t n_ids = (uint64_t)json_integer_value(json_object_get(golden, "n_ids"));
    GChecksum *ids_sum = g_checksum_new(G_CHECKSUM_SHA256);
    GChecksum *with_sum = g_checksum_new(G_CHECKSUM_SHA256);
    GChecksum *decoded_sum = g_checksum_new(G_CHECKSUM_SHA256);
    GChecksum *skipped_sum = g_checksum_new(G_CHECKSUM_SHA256);
    DavitIds ids = {0};
    Random r = {(uint64_t)json_integer_value(json_object_get(golden, "start")) *
                0x9e3779b97f4a7c15ull};

    for (json_int_t i = json_integer_value(json_object_get(golden, "count")); i > 0;
         i--) {
        random_text(&r, golden, text);
        ids.n = 0;
        g_assert_cmpint(davit_encode(encoder, text->str, text->len, 0, &ids, report), ==,
                        0);
        hash_ids(ids_sum, &ids);
        ids.n = 0;
        g_assert_cmpint(davit_encode(encoder, text->str, text->len, DAVIT_ENCODE_SPECIAL,
                                     &ids, report),
                        ==, 0);
        hash_ids(with_sum, &ids);
        for (uint64_t noise = below(&r, 9); noise > 0; noise--) {
            g_assert_true(davit_ids_reserve(&ids, 1));
            ids.ids[ids.n++] = (int32_t)below(&r, n_ids);
        }
        hash_text(decoded_sum, tokenizer, &ids, false);
        hash_text(skipped_sum, tokenizer, &ids, true);
    }
    check_sum(golden, "sha256_ids", ids_sum);
    check_sum(golden, "sha256_with", with_sum);
    check_sum(golden, "sha256_decoded", decoded_sum);
    check_sum(golden, "sha256_skipped", skipped_sum);
    davit_ids_clear(&ids);
}

void davit_test_golden(const DavitTokenizer *tokenizer, const char *name,
                       const json_t *golden)
{
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    const json_t *cases = json_object_get(golden, "cases");

    for (size_t i = 0; i < json_array_size(cases); i++)
        run_case(tokenizer, encoder, name, json_array_get(cases, i));
    run_random(tokenizer, encoder, golden);
}
