/* SPDX-License-Identifier: Apache-2.0
 * The texts of tests/golden/tokenizers/corpus: every family gives Hugging Face's ids, and
 * a GGUF with the same vocabulary gives the ids of the tokenizer.json.
 */
#include <string.h>

#include "tokenizer/test_golden.h"

#define FOLDER DAVIT_SOURCE_DIR "/tests/golden/tokenizers/"

static char *read_text(const char *file, gsize *out_len)
{
    g_autofree char *path = g_strconcat(FOLDER "corpus/", file, NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, out_len, NULL));
    return text;
}

static json_t *read_json(const char *name)
{
    g_autofree char *path = g_strconcat(FOLDER, name, ".json", NULL);
    json_t *tree = json_load_file(path, 0, NULL);

    g_assert_nonnull(tree);
    return tree;
}

static DavitTokenizer *load(const char *name)
{
    g_autofree char *path = g_strconcat(FOLDER, name, ".json", NULL);

    return davit_test_load(path);
}

static void encode(DavitEncoder *encoder, const char *text, gsize len, uint32_t flags,
                   DavitIds *ids)
{
    g_autoptr(DavitReport) report = davit_report_new();

    ids->n = 0;
    g_assert_cmpint(davit_encode(encoder, text, len, flags, ids, report), ==, DAVIT_OK);
}

static void add_line(GChecksum *sum, const DavitIds *ids)
{
    g_autoptr(GString) line = g_string_new(NULL);

    for (size_t i = 0; i < ids->n; i++)
        g_string_append_printf(line, i > 0 ? " %d" : "%d", ids->ids[i]);
    g_string_append_c(line, '\n');
    g_checksum_update(sum, (const guchar *)line->str, (gssize)line->len);
}

/* ---- every family on every text ---- */

static void family_gives_reference_ids(const void *data)
{
    const char *name = data, *file;
    json_t *golden = read_json("corpus.golden"), *want;
    g_autoptr(DavitTokenizer) tokenizer = load(name);
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    DavitIds ids = {0};

    g_assert_cmpuint(json_object_size(json_object_get(golden, name)), >=, 13);
    json_object_foreach (json_object_get(golden, name), file, want) {
        gsize len;
        g_autofree char *text = read_text(file, &len);
        g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

        g_test_message("%s on %s", name, file);
        encode(encoder, text, len, 0, &ids);
        g_assert_cmpuint(ids.n, ==, (size_t)json_integer_value(json_array_get(want, 0)));
        add_line(sum, &ids);
        encode(encoder, text, len, DAVIT_ENCODE_SPECIAL, &ids);
        add_line(sum, &ids);
        g_assert_cmpstr(g_checksum_get_string(sum), ==,
                        json_string_value(json_array_get(want, 1)));
    }
    davit_ids_clear(&ids);
    json_decref(golden);
}

/* ---- GGUF of the same vocabulary ---- */

/* The GGUF arrays of a tokenizer.json. */
typedef struct Arrays {
    GString *tokens, *merges, *types;
    uint64_t n_tokens, n_merges;
} Arrays;

static void put_number(GString *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        g_string_append_c(out, (char)(value >> (8 * i)));
}

static void put_text(GString *out, const char *text)
{
    put_number(out, strlen(text), 8);
    g_string_append(out, text);
}

static void take_tokens(Arrays *a, const json_t *tree)
{
    const json_t *added = json_object_get(tree, "added_tokens"), *entry;
    json_t *vocab = json_object_get(json_object_get(tree, "model"), "vocab"), *id;
    g_autoptr(GPtrArray) texts = g_ptr_array_new();
    g_autofree uint32_t *types = NULL;
    const char *text;
    size_t i;

    g_ptr_array_set_size(texts, (gint)(json_object_size(vocab) + json_array_size(added)));
    types = g_new0(uint32_t, texts->len);
    json_object_foreach (vocab, text, id)
        texts->pdata[json_integer_value(id)] = (void *)(uintptr_t)text;
    json_array_foreach (added, i, entry) {
        const json_int_t at = json_integer_value(json_object_get(entry, "id"));

        text = json_string_value(json_object_get(entry, "content"));
        texts->pdata[at] = (void *)(uintptr_t)text;
        types[at] = json_is_true(json_object_get(entry, "special")) ? 3 : 4;
    }
    for (; a->n_tokens < texts->len && texts->pdata[a->n_tokens]; a->n_tokens++) {
        put_text(a->tokens, texts->pdata[a->n_tokens]);
        put_number(a->types, types[a->n_tokens] ? types[a->n_tokens] : 1, 4);
    }
}

static void take_merges(Arrays *a, const json_t *tree)
{
    const json_t *merges = json_object_get(json_object_get(tree, "model"), "merges"),
                 *merge;
    size_t i;

    json_array_foreach (merges, i, merge) {
        g_autofree char *pair =
            json_is_string(merge)
                ? g_strdup(json_string_value(merge))
                : g_strjoin(" ", json_string_value(json_array_get(merge, 0)),
                            json_string_value(json_array_get(merge, 1)), NULL);

        put_text(a->merges, pair);
        a->n_merges++;
    }
}

static DavitTokenizer *load_as_gguf(const char *name, const char *pre)
{
    json_t *tree = read_json(name);
    Arrays a = {g_string_new(NULL), g_string_new(NULL), g_string_new(NULL), 0, 0};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitTokenizer *tokenizer;

    take_tokens(&a, tree);
    take_merges(&a, tree);
    const DavitGgufVocab vocab = {.model = {"gpt2", 4},
                                  .pre = {pre, strlen(pre)},
                                  .tokens = {{a.tokens->str, a.tokens->len}, a.n_tokens},
                                  .merges = {{a.merges->str, a.merges->len}, a.n_merges},
                                  .types = (const uint8_t *)a.types->str,
                                  .n_types = a.n_tokens,
                                  .bos = -1,
                                  .eos = -1,
                                  .unk = -1,
                                  .pad = -1,
                                  .add_bos = 0,
                                  .add_eos = 0,
                                  .add_space_prefix = -1};
    tokenizer = davit_tokenizer_from_gguf(&vocab, name, davit_test_registry(), report);
    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    json_decref(tree);
    g_string_free(a.tokens, TRUE);
    g_string_free(a.merges, TRUE);
    g_string_free(a.types, TRUE);
    return tokenizer;
}

/* A family and a GGUF name that stands for all it says. */
typedef struct Twin {
    const char *family, *pre;
} Twin;

static const Twin twins[] = {
    {"gpt2", "gpt-2"},
    {"gpt2_digits", "smollm"},
    {"llama3", "llama-bpe"},
    {"qwen2", "qwen2"},
    {"qwen35", "qwen35"},
    {"o200k", "gpt-4o"},
    {"deepseek_v3", "deepseek-v3"},
    {"deepseek_llm", "deepseek-llm"},
    {"deepseek_coder", "deepseek-coder"},
    {"kimi", "kimi-k2"},
    {"falcon", "falcon"},
    {"bloom", "bloom"},
};

static void gguf_gives_ids_of_json(const void *data)
{
    const Twin *twin = data;
    json_t *golden = read_json("corpus.golden"), *unused;
    g_autoptr(DavitTokenizer) a = load(twin->family);
    g_autoptr(DavitTokenizer) b = load_as_gguf(twin->family, twin->pre);
    g_autoptr(DavitEncoder) ea = davit_encoder_new(a);
    g_autoptr(DavitEncoder) eb = davit_encoder_new(b);
    DavitIds want = {0}, got = {0};
    const char *file;

    json_object_foreach (json_object_get(golden, twin->family), file, unused) {
        gsize len;
        g_autofree char *text = read_text(file, &len);

        g_test_message("%s on %s", twin->pre, file);
        encode(ea, text, len, 0, &want);
        encode(eb, text, len, 0, &got);
        g_assert_cmpuint(got.n, ==, want.n);
        g_assert_true(memcmp(got.ids, want.ids, want.n * sizeof *want.ids) == 0);
    }
    davit_ids_clear(&want);
    davit_ids_clear(&got);
    json_decref(golden);
}

int main(int argc, char **argv)
{
    json_t *golden, *unused;
    const char *name;

    g_test_init(&argc, &argv, NULL);
    golden = read_json("corpus.golden");
    json_object_foreach (golden, name, unused) {
        g_autofree char *path = g_strdup_printf("/corpus/reference_ids/%s", name);

        g_test_add_data_func(path, name, family_gives_reference_ids);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(twins); i++) {
        g_autofree char *path = g_strdup_printf("/corpus/gguf_as_json/%s", twins[i].pre);

        g_test_add_data_func(path, &twins[i], gguf_gives_ids_of_json);
    }
    const int code = g_test_run();
    json_decref(golden);
    return code;
}
