/* SPDX-License-Identifier: Apache-2.0
 * libdavit's tokenizer without a model: what a program sees that has only <libdavit.h>.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <glib.h>
#include <glib/gstdio.h>

#include <libdavit.h>

#define FILE_OF(name) DAVIT_SOURCE_DIR "/tests/golden/tokenizers/" name

static davit_text *load(const char *source)
{
    const davit_text_params params = {.struct_size = sizeof params, .source = source};
    davit_text *text = NULL;

    g_assert_cmpint(davit_text_load(&params, &text, NULL), ==, DAVIT_LIB_OK);
    g_assert_nonnull(text);
    return text;
}

static davit_encoding encode(davit_text *text, const char *s, uint32_t flags, uint64_t max)
{
    const davit_encode_params params = {
        .struct_size = sizeof params, .flags = flags, .max_ids = max};
    davit_encoding out = {.struct_size = sizeof out};

    g_assert_cmpint(davit_text_encode(text, s, strlen(s), &params, &out, NULL), ==,
                    DAVIT_LIB_OK);
    return out;
}

static void ids_go_there_and_back(void)
{
    davit_text *text = load(FILE_OF("llama3.json"));
    static const char s[] = "The capital of France";
    davit_encoding e = encode(text, s, DAVIT_LIB_NO_SPECIAL | DAVIT_LIB_OFFSETS, 0);
    davit_text_info info = {.struct_size = sizeof info};
    char *back = NULL;
    size_t len = 0, count = 0;

    g_assert_cmpint(davit_text_decode(text, e.ids, e.n, 0, &back, &len), ==, 0);
    g_assert_cmpstr(back, ==, s);
    g_assert_cmpuint(e.starts[0], ==, 0);
    g_assert_cmpuint(e.ends[e.n - 1], ==, strlen(s));
    for (size_t i = 1; i < e.n; i++) /* a byte-level file leaves no byte out */
        g_assert_cmpuint(e.starts[i], ==, e.ends[i - 1]);
    g_assert_cmpint(davit_text_count(text, s, strlen(s), NULL, &count, NULL), ==, 0);
    g_assert_cmpuint(count, ==, e.n + 1); /* with BOS */
    g_assert_cmpint(davit_text_describe(text, &info), ==, 0);
    g_assert_cmpstr(info.family, ==, "llama3");
    g_assert_cmpint(davit_text_id(text, "<s>", 3), >=, 0);
    g_assert_true(davit_text_is_special(text, davit_text_id(text, "<s>", 3)));
    g_assert_cmpint(davit_text_id(text, "no such", 7), ==, -1);
    g_assert_null(davit_text_token(text, (int32_t)info.n_ids, NULL));
    davit_free(back);
    davit_encoding_clear(&e);
    davit_text_free(text);
}

static void limit_cuts_the_text_and_keeps_bos(void)
{
    davit_text *text = load(FILE_OF("llama3.json"));
    static const char s[] = "The capital of France is Paris, and more of it.";
    davit_encoding all = encode(text, s, 0, 0);
    davit_encoding few = encode(text, s, DAVIT_LIB_OFFSETS, 4);

    g_assert_cmpuint(few.n, ==, 4);
    g_assert_cmpuint(few.total, ==, all.n);
    g_assert_cmpmem(few.ids, 4 * sizeof *few.ids, all.ids, 4 * sizeof *all.ids);
    davit_encoding_clear(&few);
    few = encode(text, s, 0, all.n);
    g_assert_cmpuint(few.n, ==, all.n);
    davit_encoding_clear(&few);
    davit_encoding_clear(&all);
    davit_text_free(text);
}

static void batch_equals_one_by_one(void)
{
    davit_text *text = load(FILE_OF("qwen2.json"));
    enum { N = 200 };
    char *texts[N];
    const char *given[N];
    size_t lens[N];
    davit_encoding many[N];

    for (size_t i = 0; i < N; i++) {
        texts[i] = g_strdup_printf("line %zu of the capital %zu\n", i, i * i);
        given[i] = texts[i];
        lens[i] = strlen(texts[i]);
        many[i] = (davit_encoding){.struct_size = sizeof many[i]};
    }
    const davit_encode_params params = {.struct_size = sizeof params, .n_threads = 4};
    g_assert_cmpint(davit_text_encode_batch(text, given, lens, N, &params, many, NULL), ==,
                    0);
    for (size_t i = 0; i < N; i++) {
        davit_encoding one = encode(text, texts[i], 0, 0);

        g_assert_cmpuint(one.n, ==, many[i].n);
        g_assert_true(memcmp(one.ids, many[i].ids, one.n * sizeof *one.ids) == 0);
        davit_encoding_clear(&one);
        davit_encoding_clear(&many[i]);
    }
    /* One text that is not UTF-8 fails the batch, and nothing is handed out. */
    davit_records *records = NULL;
    given[7] = "\xff";
    lens[7] = 1;
    g_assert_cmpint(davit_text_encode_batch(text, given, lens, N, &params, many, &records),
                    ==, DAVIT_LIB_USAGE);
    g_assert_cmpuint(davit_records_count(records), ==, 1);
    g_assert_null(many[0].ids);
    davit_records_free(records);
    for (size_t i = 0; i < N; i++)
        g_free(texts[i]);
    davit_text_free(text);
}

static void stream_is_the_whole_text(void)
{
    davit_text *text = load(FILE_OF("spm_legacy.json"));
    davit_encoding e = encode(text, "na\xc3\xafve \xf0\x9f\x98\x80 x", 0, 0);
    davit_text_stream *stream = davit_text_stream_new(text, 1);
    GString *made = g_string_new(NULL);
    const char *part;
    char *whole;
    size_t len;

    for (size_t i = 0; i < e.n; i++) {
        g_assert_cmpint(davit_text_stream_push(stream, e.ids[i], &part, &len), ==, 0);
        g_assert_true(g_utf8_validate(part, (gssize)len, NULL));
        g_string_append_len(made, part, (gssize)len);
    }
    g_assert_cmpint(davit_text_stream_end(stream, &part, &len), ==, 0);
    g_string_append_len(made, part, (gssize)len);
    g_assert_cmpint(davit_text_decode(text, e.ids, e.n, 1, &whole, NULL), ==, 0);
    g_assert_cmpstr(made->str, ==, whole);
    g_assert_cmpint(davit_text_stream_push(stream, -1, &part, &len), ==, DAVIT_LIB_USAGE);
    davit_free(whole);
    g_string_free(made, TRUE);
    davit_text_stream_free(stream);
    davit_encoding_clear(&e);
    davit_text_free(text);
}

static void wrong_calls_say_so(void)
{
    davit_text *text = NULL;
    davit_records *records = NULL;
    const davit_text_params none = {.struct_size = sizeof none,
                                    .source = FILE_OF("no_such.json")};

    g_assert_cmpint(davit_text_load(&none, &text, &records), <, 0);
    g_assert_null(text);
    g_assert_cmpuint(davit_records_count(records), >, 0);
    davit_records_free(records);
    g_assert_cmpint(davit_text_load(NULL, &text, NULL), ==, DAVIT_LIB_USAGE);
    text = load(FILE_OF("gpt2.json"));
    const davit_encode_params odd = {.struct_size = sizeof odd, .flags = 64};
    davit_encoding out = {.struct_size = sizeof out};
    g_assert_cmpint(davit_text_encode(text, "a", 1, &odd, &out, NULL), ==,
                    DAVIT_LIB_USAGE);
    g_assert_cmpint(davit_text_encode(text, NULL, 1, NULL, &out, NULL), ==,
                    DAVIT_LIB_USAGE);
    g_assert_null(out.ids);
    g_assert_cmpint(davit_text_encode(text, NULL, 0, NULL, &out, NULL), ==, 0);
    g_assert_cmpuint(out.n, ==, 0);
    davit_encoding_clear(&out);
    g_assert_cmpint(davit_text_encode_batch(text, NULL, NULL, 0, NULL, NULL, NULL), ==, 0);
    davit_text_free(text);
}

/* A handle of another kind is refused, not used. */
static void handles_are_told_apart(void)
{
    davit_text *text = load(FILE_OF("gpt2.json"));
    davit_text_stream *stream = davit_text_stream_new(text, 0);
    davit_text *wrong = (davit_text *)stream;
    davit_encoding out = {.struct_size = sizeof out};
    char *made;
    const char *part;
    size_t n;

    g_assert_cmpint(davit_text_encode(wrong, "a", 1, NULL, &out, NULL), ==, DAVIT_LIB_USAGE);
    g_assert_cmpint(davit_text_decode(wrong, NULL, 0, 0, &made, &n), ==, DAVIT_LIB_USAGE);
    g_assert_null(davit_text_stream_new(wrong, 0));
    g_assert_null(davit_text_token(wrong, 0, &n));
    g_assert_cmpint(davit_text_id(wrong, "a", 1), ==, -1);
    g_assert_cmpint(davit_text_stream_push((davit_text_stream *)text, 0, &part, &n), ==,
                    DAVIT_LIB_USAGE);
    davit_text_free(wrong);
    davit_text_stream_free((davit_text_stream *)text);
    davit_text_stream_free(stream);
    davit_text_free(text);
}

/* A caller whose struct ends before the spans: nothing behind it is written or freed. */
static void short_structs_are_respected(void)
{
    davit_text *text = load(FILE_OF("gpt2.json"));
    const davit_encode_params spans = {.struct_size = sizeof spans,
                                       .flags = DAVIT_LIB_OFFSETS};
    davit_encoding out = {.struct_size = offsetof(davit_encoding, starts)};

    out.starts = out.ends = (uint64_t *)text; /* freeing this would end the test */
    g_assert_cmpint(davit_text_encode(text, "ab", 2, &spans, &out, NULL), ==, DAVIT_LIB_USAGE);
    g_assert_cmpint(davit_text_encode(text, "ab", 2, NULL, &out, NULL), ==, 0);
    g_assert_cmpuint(out.n, >, 0);
    g_assert_true(out.starts == (uint64_t *)text);
    davit_encoding_clear(&out);
    g_assert_null(out.ids);
    g_assert_true(out.ends == (uint64_t *)text);
    davit_text_free(text);
}

/* ---- keys of a GGUF ---- */

static void put(GByteArray *out, uint64_t value, guint n)
{
    const uint64_t le = GUINT64_TO_LE(value);

    g_byte_array_append(out, (const guint8 *)&le, n);
}

static void put_text(GByteArray *out, const char *text)
{
    put(out, strlen(text), 8);
    g_byte_array_append(out, (const guint8 *)text, (guint)strlen(text));
}

/* Types of values in GGUF. */
enum { U8 = 0, U32 = 4, I32 = 5, BOOL = 7, STR = 8, ARRAY = 9 };

static void put_key(GByteArray *out, const char *key, uint32_t type)
{
    put_text(out, key);
    put(out, type, 4);
}

/* (owned) a vocabulary a, b, <s>; @key has a value of @type instead of its own. */
static GByteArray *small_gguf(const char *key, uint32_t type)
{
    static const char *const texts[] = {"a", "b", "<s>"};
    static const char *const keys[] = {"tokenizer.ggml.token_type", "tokenizer.ggml.bos_token_id",
                                       "tokenizer.ggml.add_bos_token", "tokenizer.ggml.pre"};
    GByteArray *out = g_byte_array_new();

    g_byte_array_append(out, (const guint8 *)"GGUF", 4);
    put(out, 3, 4);
    put(out, 0, 8);
    put(out, 7, 8);
    put_key(out, "general.architecture", STR);
    put_text(out, "llama");
    put_key(out, "tokenizer.ggml.model", STR);
    put_text(out, "gpt2");
    put_key(out, "tokenizer.ggml.tokens", ARRAY);
    put(out, STR, 4);
    put(out, 3, 8);
    for (size_t i = 0; i < 3; i++)
        put_text(out, texts[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (strcmp(keys[i], key) == 0) {
            put_key(out, keys[i], type);
            put(out, 1, type == U8 ? 1 : 4);
        } else if (i == 0) {
            put_key(out, keys[i], ARRAY);
            put(out, I32, 4);
            put(out, 3, 8);
            put(out, 1 | (uint64_t)1 << 32, 8);
            put(out, 3, 4);
        } else if (i == 1) {
            put_key(out, keys[i], U32);
            put(out, 2, 4);
        } else if (i == 2) {
            put_key(out, keys[i], BOOL);
            put(out, 1, 1);
        } else {
            put_key(out, keys[i], STR);
            put_text(out, "gpt-2");
        }
    }
    return out;
}

static void check_gguf(const char *key, uint32_t type, const char *found)
{
    g_autofree char *folder = g_dir_make_tmp("davit-text-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "t.gguf", NULL);
    g_autoptr(GByteArray) bytes = small_gguf(key, type);
    g_autofree char *subject = g_strdup_printf("t.gguf: %s", key);
    const davit_text_params params = {.struct_size = sizeof params, .source = path};
    davit_record record = {.struct_size = sizeof record};
    davit_records *records = NULL;
    davit_text *text = NULL;

    g_assert_true(g_file_set_contents(path, (const char *)bytes->data, bytes->len, NULL));
    if (!found) {
        g_assert_cmpint(davit_text_load(&params, &text, &records), ==, 0);
        davit_encoding e = encode(text, "a<s>b", 0, 0);
        g_assert_cmpuint(e.n, ==, 4);
        davit_encoding_clear(&e);
    } else {
        g_assert_cmpint(davit_text_load(&params, &text, &records), ==, DAVIT_LIB_CORRUPT);
        g_assert_cmpint(davit_records_get(records, 0, &record), ==, 0);
        g_assert_cmpstr(record.subject, ==, subject);
        g_assert_cmpstr(record.found, ==, found);
    }
    davit_records_free(records);
    davit_text_free(text);
    g_remove(path);
    g_rmdir(folder);
}

/* B185: a key of another type than its name has was passed over, and special tokens were text. */
static void gguf_keys_have_their_types(void)
{
    check_gguf("", 0, NULL);
    check_gguf("tokenizer.ggml.token_type", U32, "u32");
    check_gguf("tokenizer.ggml.add_bos_token", U8, "u8");
    check_gguf("tokenizer.ggml.bos_token_id", 6, "f32");
    check_gguf("tokenizer.ggml.pre", I32, "i32");
}

/* The tokenizer.json beside a GGUF counts; that of another model was taken with no more than a
 * note. */
static void tokenizer_beside_a_gguf_is_compared(void)
{
    static const char json[] =
        "{\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
        "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"%s\":0,\"%s\":1,\"<s>\":2},\"merges\":[]}}";
    static const char *const firsts[] = {"a", "b"};
    g_autofree char *folder = g_dir_make_tmp("davit-text-XXXXXX", NULL);
    g_autofree char *gguf = g_build_filename(folder, "t.gguf", NULL);
    g_autofree char *beside = g_build_filename(folder, "tokenizer.json", NULL);
    g_autoptr(GByteArray) bytes = small_gguf("", 0);
    const davit_text_params params = {.struct_size = sizeof params, .source = gguf};

    g_assert_true(g_file_set_contents(gguf, (const char *)bytes->data, bytes->len, NULL));
    for (size_t i = 0; i < 2; i++) {
        g_autofree char *text = g_strdup_printf(json, firsts[i], firsts[1 - i]);
        davit_records *records = NULL;
        davit_text *tokenizer = NULL;
        size_t warnings = 0;

        g_assert_true(g_file_set_contents(beside, text, -1, NULL));
        g_assert_cmpint(davit_text_load(&params, &tokenizer, &records), ==, 0);
        for (size_t k = 0; k < davit_records_count(records); k++) {
            davit_record record = {.struct_size = sizeof record};

            g_assert_cmpint(davit_records_get(records, k, &record), ==, 0);
            if (record.message &&
                strcmp(record.message, "the tokenizer beside the GGUF is another model's") == 0) {
                g_assert_cmpstr(record.found, ==, "2 of 3 ids with another text");
                warnings++;
            }
        }
        g_assert_cmpuint(warnings, ==, i);
        davit_records_free(records);
        davit_text_free(tokenizer);
    }
    g_remove(beside);
    g_remove(gguf);
    g_rmdir(folder);
}

/* B133: lengths that 32 bits cannot hold are refused, unread: every byte of the text faults. */
static void lengths_keep_all_their_bits(void)
{
    static const size_t lens[] = {((size_t)1 << 31) + 5, ((size_t)1 << 32) + 5, SIZE_MAX};
    davit_text *text = load(FILE_OF("llama3.json"));
    char *bytes = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    g_assert_true(bytes != MAP_FAILED);
    for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
        davit_encoding out = {.struct_size = sizeof out, .n = 7};
        const char *const texts[] = {bytes};
        size_t count = 7;

        g_assert_cmpint(davit_text_encode(text, bytes, lens[i], NULL, &out, NULL), ==,
                        DAVIT_LIB_LIMIT);
        g_assert_cmpint(davit_text_encode_batch(text, texts, &lens[i], 1, NULL, &out, NULL),
                        ==, DAVIT_LIB_LIMIT);
        g_assert_cmpint(davit_text_count(text, bytes, lens[i], NULL, &count, NULL), ==,
                        DAVIT_LIB_LIMIT);
        g_assert_cmpint(davit_text_count(text, NULL, lens[i], NULL, &count, NULL), ==,
                        DAVIT_LIB_USAGE);
        g_assert_cmpuint(count, ==, 7);
        g_assert_cmpuint(out.n, ==, 7);
    }
    munmap(bytes, 4096);
    davit_text_free(text);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/text/round_trip", ids_go_there_and_back);
    g_test_add_func("/text/limit", limit_cuts_the_text_and_keeps_bos);
    g_test_add_func("/text/batch", batch_equals_one_by_one);
    g_test_add_func("/text/stream", stream_is_the_whole_text);
    g_test_add_func("/text/usage", wrong_calls_say_so);
    g_test_add_func("/text/lengths_keep_all_their_bits", lengths_keep_all_their_bits);
    g_test_add_func("/text/handles_are_told_apart", handles_are_told_apart);
    g_test_add_func("/text/short_structs_are_respected", short_structs_are_respected);
    g_test_add_func("/text/gguf_keys_have_their_types", gguf_keys_have_their_types);
    g_test_add_func("/text/tokenizer_beside_a_gguf", tokenizer_beside_a_gguf_is_compared);
    return g_test_run();
}
