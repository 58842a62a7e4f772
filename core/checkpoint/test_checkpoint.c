/* SPDX-License-Identifier: Apache-2.0
 * What a checkpoint that opens gives: tensors, keys, bytes, neighbours, who was asked.
 * What does not open is in tests/faults. Formats come through the plugin door. */
#include <string.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "checkpoint/checkpoint.h"

static DavitRegistry *registry;

typedef struct Fixture {
    char *dir;
    DavitReport *report;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    (void)data;
    f->dir = g_dir_make_tmp("davit-ckpt-XXXXXX", NULL);
    f->report = davit_report_new();
}

static void tear_down(Fixture *f, gconstpointer data)
{
    GDir *dir = g_dir_open(f->dir, 0, NULL);
    const char *name;

    (void)data;
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(f->dir, name, NULL);

        g_unlink(path);
    }
    g_dir_close(dir);
    g_rmdir(f->dir);
    g_free(f->dir);
    davit_report_free(f->report);
}

static void assert_span(davit_span span, const char *wanted)
{
    g_assert_cmpuint(span.len, ==, strlen(wanted));
    g_assert_cmpint(memcmp(span.ptr, wanted, strlen(wanted)), ==, 0);
}

static void write_file(const Fixture *f, const char *name, const GByteArray *bytes)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);

    g_unlink(path); /* what replaces nothing is not waited for on the disk */
    g_assert_true(
        g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL));
}

static void put_le(GByteArray *to, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)(v >> (8 * i));

        g_byte_array_append(to, &b, 1);
    }
}

static void put_string(GByteArray *to, const char *s)
{
    put_le(to, strlen(s), 8);
    g_byte_array_append(to, (const uint8_t *)s, (guint)strlen(s));
}

static void write_safetensors(const Fixture *f, const char *name, const char *header,
                              const char *data)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    put_string(bytes, header);
    g_byte_array_append(bytes, (const uint8_t *)data, (guint)strlen(data));
    write_file(f, name, bytes);
}

/* One key of each type, an array of each kind, no tensors. */
static void write_gguf(const Fixture *f, const char *name)
{
    static const struct {
        const char *key;
        uint32_t type;
        uint64_t value;
        int n_bytes;
    } numbers[] = {{"u8", 0, 200, 1},
                   {"i8", 1, (uint64_t)-5, 1},
                   {"u16", 2, 60000, 2},
                   {"i16", 3, (uint64_t)-300, 2},
                   {"u32", 4, 4000000000, 4},
                   {"i32", 5, (uint64_t)-70000, 4},
                   {"f32", 6, 0x3fc00000, 4},
                   {"bool", 7, 1, 1},
                   {"u64", 10, UINT64_MAX, 8},
                   {"i64", 11, (uint64_t)INT64_MIN, 8},
                   {"f64", 12, 0x4004000000000000, 8}};
    g_autoptr(GByteArray) b = g_byte_array_new();

    g_byte_array_append(b, (const uint8_t *)"GGUF", 4);
    put_le(b, 3, 4);
    put_le(b, 0, 8);
    put_le(b, G_N_ELEMENTS(numbers) + 3, 8);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        put_string(b, numbers[i].key);
        put_le(b, numbers[i].type, 4);
        put_le(b, numbers[i].value, numbers[i].n_bytes);
    }
    put_string(b, "str");
    put_le(b, 8, 4);
    put_string(b, "text");
    put_string(b, "strs");
    put_le(b, 9, 4);
    put_le(b, 8, 4);
    put_le(b, 3, 8);
    put_string(b, "a");
    put_string(b, "");
    put_string(b, "ccc");
    put_string(b, "ints");
    put_le(b, 9, 4);
    put_le(b, 5, 4);
    put_le(b, 2, 8);
    put_le(b, 7, 4);
    put_le(b, (uint64_t)-8, 4);
    write_file(f, name, b);
}

#define A_HEADER                                                                         \
    "{\"__metadata__\":{\"format\":\"pt\"},"                                             \
    "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"                \
    "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}"

/* ---- tests ---- */

static void tensors_and_bytes(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitCheckpoint) ckpt = NULL;
    const davit_tensor_info *w;
    const uint8_t *view = NULL;
    char buf[4];

    (void)data;
    write_safetensors(f, "model.safetensors", A_HEADER, "0123456789abcdef");
    ckpt = davit_checkpoint_open(registry, f->dir, DAVIT_INSPECT | DAVIT_RUN, f->report);
    g_assert_nonnull(ckpt);
    g_assert_cmpstr(davit_checkpoint_format(ckpt), ==, "org.davit.format.safetensors");
    g_assert_cmpuint(davit_checkpoint_n_tensors(ckpt), ==, 2);
    g_assert_cmpuint(davit_checkpoint_n_bytes(ckpt), ==, 16);
    g_assert_cmpstr(davit_checkpoint_tensor(ckpt, 0)->name, ==, "b");
    g_assert_null(davit_checkpoint_find(ckpt, "v"));
    w = davit_checkpoint_find(ckpt, "w");
    g_assert_cmpstr(w->dtype, ==, "bf16/1");
    g_assert_cmpuint(w->rank, ==, 2);
    g_assert_cmpuint(w->shape[0], ==, 2);
    g_assert_cmpuint(w->shape[1], ==, 3);
    g_assert_cmpuint(w->n_bytes, ==, 12);
    g_assert_cmpint(davit_checkpoint_read(ckpt, w->file, w->off, buf, 4, f->report), ==,
                    0);
    g_assert_cmpmem(buf, 4, "4567", 4);
    g_assert_cmpint(davit_checkpoint_view(ckpt, w->file, w->off, 12, &view, f->report),
                    ==, 0);
    g_assert_cmpmem(view, 12, "456789abcdef", 12);
    g_assert_cmpint(davit_checkpoint_check(ckpt, f->report), ==, DAVIT_OK);
}

static void tensor_suite_is_a_view(Fixture *f, gconstpointer data)
{
    const davit_tensor_suite *suite = davit_tensor_suite_get();
    g_autoptr(DavitCheckpoint) ckpt = NULL;
    davit_tensor_info info = {.struct_size = DAVIT_END(davit_tensor_info, dtype)};

    (void)data;
    write_safetensors(f, "model.safetensors", A_HEADER, "0123456789abcdef");
    ckpt = davit_checkpoint_open(registry, f->dir, DAVIT_INSPECT, f->report);
    g_assert_cmpuint(suite->count(ckpt), ==, 2);
    suite->get(ckpt, 1, &info); /* an older plugin: only the fields it knows */
    g_assert_cmpstr(info.name, ==, "w");
    g_assert_cmpuint(info.rank, ==, 0);
    g_assert_cmpuint(info.struct_size, ==, DAVIT_END(davit_tensor_info, dtype));
    info.struct_size = DAVIT_END(davit_tensor_info, block_bytes);
    g_assert_cmpint(suite->find(ckpt, "w", &info), ==, 1);
    g_assert_cmpuint(info.block_bytes, ==, 2);
    g_assert_cmpint(suite->find(ckpt, "x", &info), ==, 0);
}

static void keys_of_every_type(Fixture *f, gconstpointer data)
{
    static const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"u8", 200},         {"i8", -5},      {"u16", 60000},    {"i16", -300},
                   {"u32", 4000000000}, {"i32", -70000}, {"i64", INT64_MIN}};
    g_autofree char *path = g_build_filename(f->dir, "m.gguf", NULL);
    g_autoptr(DavitCheckpoint) ckpt = NULL;
    int64_t i = 0;
    uint64_t u = 0;
    double d = 0;
    bool b = false;
    davit_span text;

    (void)data;
    write_gguf(f, "m.gguf");
    ckpt = davit_checkpoint_open(registry, path, DAVIT_INSPECT, f->report);
    g_assert_nonnull(ckpt);
    g_assert_cmpuint(davit_checkpoint_n_keys(ckpt), ==, 14);
    for (size_t k = 0; k < G_N_ELEMENTS(numbers); k++) {
        const davit_kv *kv = davit_checkpoint_find_key(ckpt, numbers[k].key);

        g_assert_cmpstr(kv->key.ptr, ==, numbers[k].key);
        g_assert_cmpstr(davit_kv_type_name(kv->type), ==, numbers[k].key);
        g_assert_true(davit_kv_i64(kv, 0, &i));
        g_assert_cmpint(i, ==, numbers[k].value);
        g_assert_cmpint(davit_kv_u64(kv, 0, &u), ==, numbers[k].value >= 0);
        g_assert_true(davit_kv_f64(kv, 0, &d));
        g_assert_cmpfloat(d, ==, (double)numbers[k].value);
        g_assert_false(davit_kv_i64(kv, 1, &i));
        g_assert_false(davit_kv_text(kv, &text));
    }
    g_assert_false(davit_kv_i64(davit_checkpoint_find_key(ckpt, "u64"), 0, &i));
    g_assert_true(davit_kv_u64(davit_checkpoint_find_key(ckpt, "u64"), 0, &u));
    g_assert_true(u == UINT64_MAX);
    g_assert_true(davit_kv_f64(davit_checkpoint_find_key(ckpt, "f32"), 0, &d));
    g_assert_cmpfloat(d, ==, 1.5);
    g_assert_true(davit_kv_f64(davit_checkpoint_find_key(ckpt, "f64"), 0, &d));
    g_assert_cmpfloat(d, ==, 2.5);
    g_assert_false(davit_kv_i64(davit_checkpoint_find_key(ckpt, "f64"), 0, &i));
    g_assert_true(davit_kv_bool(davit_checkpoint_find_key(ckpt, "bool"), &b) && b);
    g_assert_true(davit_kv_text(davit_checkpoint_find_key(ckpt, "str"), &text));
    assert_span(text, "text");
    g_assert_null(davit_checkpoint_find_key(ckpt, "nosuch"));
}

static void arrays_are_walked_in_place(Fixture *f, gconstpointer data)
{
    static const char *const wanted[] = {"a", "", "ccc"};
    g_autofree char *path = g_build_filename(f->dir, "m.gguf", NULL);
    g_autoptr(DavitCheckpoint) ckpt = NULL;
    const davit_kv *kv;
    DavitKvCursor cursor;
    davit_span s;
    size_t n = 0;
    int64_t i = 0;

    (void)data;
    write_gguf(f, "m.gguf");
    ckpt = davit_checkpoint_open(registry, path, DAVIT_INSPECT, f->report);
    kv = davit_checkpoint_find_key(ckpt, "strs");
    g_assert_cmpuint(kv->count, ==, 3);
    cursor = davit_kv_strings(kv);
    for (; davit_kv_next(&cursor, &s); n++)
        assert_span(s, wanted[n]);
    g_assert_cmpuint(n, ==, 3);
    kv = davit_checkpoint_find_key(ckpt, "ints");
    g_assert_true(davit_kv_i64(kv, 1, &i));
    g_assert_cmpint(i, ==, -8);
    g_assert_false(davit_kv_i64(kv, 2, &i));
    cursor = davit_kv_strings(kv);
    g_assert_false(davit_kv_next(&cursor, &s));
}

static void metadata_is_a_key(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitCheckpoint) ckpt = NULL;
    davit_span text = {NULL, 0};

    (void)data;
    write_safetensors(f, "model.safetensors", A_HEADER, "0123456789abcdef");
    ckpt = davit_checkpoint_open(registry, f->dir, DAVIT_INSPECT, f->report);
    g_assert_true(
        davit_kv_text(davit_checkpoint_find_key(ckpt, "__metadata__.format"), &text));
    assert_span(text, "pt");
}

static void siblings(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitCheckpoint) ckpt = NULL;
    g_autofree char *config = g_build_filename(f->dir, "config.json", NULL);
    g_autofree char *tokens = g_build_filename(f->dir, "tokenizer.model", NULL);
    g_autoptr(GBytes) bytes = NULL;

    (void)data;
    write_safetensors(f, "model.safetensors", A_HEADER, "0123456789abcdef");
    g_file_set_contents(config, "{\"a\":1}", -1, NULL);
    g_file_set_contents(tokens, "version https://git-lfs.github.com/spec/v1\n", -1, NULL);
    ckpt = davit_checkpoint_open(registry, f->dir, DAVIT_INSPECT, f->report);
    g_assert_cmpint(davit_checkpoint_sibling(ckpt, "config.json", 100, &bytes, f->report),
                    ==, 0);
    assert_span((davit_span){g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes)},
                "{\"a\":1}");
    g_clear_pointer(&bytes, g_bytes_unref);
    g_assert_cmpint(davit_checkpoint_sibling(ckpt, "nosuch.json", 9, &bytes, f->report),
                    ==, 0);
    g_assert_null(bytes);
    g_assert_cmpint(davit_checkpoint_sibling(ckpt, "config.json", 6, &bytes, f->report),
                    ==, DAVIT_E_LIMIT);
    g_assert_cmpint(
        davit_checkpoint_sibling(ckpt, "tokenizer.model", 99, &bytes, f->report), ==,
        DAVIT_E_CORRUPT);
    g_assert_cmpuint(davit_report_get(f->report, davit_report_count(f->report) - 1)->code,
                     ==, DAVIT_R_LFS_POINTER);
    g_assert_null(bytes);
}

static void everybody_is_asked(Fixture *f, gconstpointer data)
{
    g_autoptr(GPtrArray) asked = NULL;
    guint n_chosen = 0;

    (void)data;
    write_safetensors(f, "model.safetensors", A_HEADER, "0123456789abcdef");
    asked = davit_checkpoint_ask(registry, f->dir, DAVIT_INSPECT, f->report);
    g_assert_cmpuint(asked->len, ==, 8); /* four formats: the directory, then its file */
    for (guint i = 0; i < asked->len; i++) {
        const DavitAsked *a = g_ptr_array_index(asked, i);

        n_chosen += a->chosen;
        if (a->chosen)
            g_assert_cmpstr(a->who, ==, "org.davit.format.safetensors");
    }
    g_assert_cmpuint(n_chosen, ==, 2);
}

static void nothing_opens_without_plugins(Fixture *f, gconstpointer data)
{
    const DavitRegistryOptions options = {.only_paths = true};
    g_autoptr(DavitReport) ignored = davit_report_new();
    g_autoptr(DavitRegistry) empty = davit_registry_open(&options, ignored);

    (void)data;
    write_safetensors(f, "model.safetensors", A_HEADER, "0123456789abcdef");
    g_assert_null(davit_checkpoint_open(empty, f->dir, DAVIT_INSPECT, f->report));
    g_assert_cmpuint(davit_report_count(f->report), ==, 1);
    g_assert_cmpuint(davit_report_get(f->report, 0)->code, ==, DAVIT_R_NO_PLUGINS);
}

/* ---- a blank changes the way and nothing else ---- */

/* Headers in the reference writer's form are read in one go, all others by events, and so is the
 * same header with a blank in it: both must give the same tensors, or the same findings. */

static void append_entry(GString *to, GRand *rand, uint64_t *at)
{
    static const char *const dtypes[] = {"F32", "BF16", "U8", "F4", "F6_E2M3", "F9", ""};
    static const char *const names[] = {"a", "b.c", "", "__metadata__", "long.name.of.a.tensor",
                                        "d\xc3\xa9", "q\\u0041", "e f"};
    static const unsigned bits[] = {32, 16, 8, 4, 6, 8, 8};
    const gint32 odd = g_rand_int_range(rand, 0, 80); /* what is wrong, if anything */
    const gint32 d = odd == 0 ? 5 : g_rand_int_range(rand, 0, odd == 1 ? 7 : 3 + (odd > 40) * 2);
    const gint32 rank = odd == 2 ? 9 : g_rand_int_range(rand, 0, 4);
    uint64_t n = bits[d], begin = *at;

    if (g_rand_int_range(rand, 0, 8))
        g_string_append_printf(to, "\"t.%d\"", g_rand_int_range(rand, 0, 200));
    else
        g_string_append_printf(to, "\"%s\"",
                               names[g_rand_int_range(rand, 0, odd < 4 ? 8 : 2)]);
    g_string_append_printf(to, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[d]);
    for (gint32 i = 0; i < rank; i++) {
        const gint32 dim = rank > 3 ? 1 : g_rand_int_range(rand, odd == 5 ? 0 : 1, 5) * 4;

        g_string_append_printf(to, odd == 6 ? "%s0%d" : "%s%d", i ? "," : "", dim);
        n *= (uint64_t)dim;
    }
    *at += n / 8;
    begin += odd == 7 ? 1 : 0;
    g_string_append_printf(to, "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}",
                           odd == 8 ? *at : begin, odd == 8 ? begin : *at - (odd == 9));
}

static char *random_header(GRand *rand, uint64_t *out_bytes)
{
    static const char *const metadata[] = {
        "", "", "", "\"__metadata__\":{\"format\":\"pt\"},", "\"__metadata__\":{},",
        "\"__metadata__\":{\"a\":\"1\",\"b\":\"\"},", "\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"},",
        "\"__metadata__\":{\"a\":1},", "\"__metadata__\":null,"};
    GString *to = g_string_new("{");
    const gint32 n = g_rand_int_range(rand, 0, 9);

    *out_bytes = 0;
    g_string_append(to, metadata[g_rand_int_range(rand, 0, G_N_ELEMENTS(metadata))]);
    for (gint32 i = 0; i < n; i++) {
        if (i)
            g_string_append_c(to, ',');
        append_entry(to, rand, out_bytes);
    }
    g_string_append(to, g_rand_int_range(rand, 0, 8) ? "}" : "}  ");
    if (g_rand_int_range(rand, 0, 6) == 0)
        to->str[g_rand_int_range(rand, 1, (gint32)to->len)] =
            "{}[]\",:0 9\\\x01"[g_rand_int_range(rand, 0, 12)];
    *out_bytes += g_rand_int_range(rand, 0, 12) == 0;
    return g_string_free(to, FALSE);
}

static void assert_same(const DavitCheckpoint *a, const DavitCheckpoint *b, const char *header)
{
    if (!a != !b)
        g_error("one of them was refused: %s", header);
    if (!a)
        return;
    g_assert_cmpuint(davit_checkpoint_n_tensors(a), ==, davit_checkpoint_n_tensors(b));
    g_assert_cmpuint(davit_checkpoint_n_keys(a), ==, davit_checkpoint_n_keys(b));
    for (size_t i = 0; i < davit_checkpoint_n_tensors(a); i++) {
        const davit_tensor_info *x = davit_checkpoint_tensor(a, i);
        const davit_tensor_info *y = davit_checkpoint_tensor(b, i);

        g_assert_cmpstr(x->name, ==, y->name);
        g_assert_true(x->dtype == y->dtype && x->rank == y->rank && x->n_bytes == y->n_bytes);
        g_assert_cmpmem(x->shape, sizeof x->shape, y->shape, sizeof y->shape);
        g_assert_cmpuint(x->off + 1, ==, y->off);
    }
}

static void blank_changes_nothing(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->dir, "model.safetensors", NULL);
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());
    unsigned n_good = 0;

    (void)data;
    for (unsigned i = 0; i < 400; i++) {
        uint64_t n_bytes;
        g_autofree char *header = random_header(rand, &n_bytes);
        g_autofree char *blank = g_strconcat("{ ", header + 1, NULL);
        g_autofree char *bytes = g_strnfill(n_bytes, 'x');
        g_autoptr(DavitReport) said_a = davit_report_new();
        g_autoptr(DavitReport) said_b = davit_report_new();
        g_autoptr(DavitCheckpoint) a = NULL;
        g_autoptr(DavitCheckpoint) b = NULL;

        write_safetensors(f, "model.safetensors", header, bytes);
        a = davit_checkpoint_open(registry, path, DAVIT_INSPECT, said_a);
        write_safetensors(f, "model.safetensors", blank, bytes);
        b = davit_checkpoint_open(registry, path, DAVIT_INSPECT, said_b);
        assert_same(a, b, header);
        g_assert_cmpuint(davit_report_count(said_a), ==, davit_report_count(said_b));
        for (size_t r = 0; r < davit_report_count(said_a); r++) {
            g_assert_cmpuint(davit_report_get(said_a, r)->code, ==,
                             davit_report_get(said_b, r)->code);
            g_assert_cmpstr(davit_report_get(said_a, r)->subject, ==,
                            davit_report_get(said_b, r)->subject);
        }
        n_good += a && davit_checkpoint_n_tensors(a) > 1;
    }
    g_rand_free(rand);
    g_test_message("%u of 400 opened with more than one tensor", n_good);
    g_assert_cmpuint(n_good, >, 40);
}

int main(int argc, char **argv)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRegistryOptions options = {.builtin_dir = DAVIT_PLUGIN_DIR};
    int status;

    g_test_init(&argc, &argv, NULL);
    registry = davit_registry_open(&options, report);
#define ADD(name) g_test_add("/checkpoint/" #name, Fixture, NULL, set_up, name, tear_down)
    ADD(tensors_and_bytes);
    ADD(tensor_suite_is_a_view);
    ADD(keys_of_every_type);
    ADD(arrays_are_walked_in_place);
    ADD(metadata_is_a_key);
    ADD(siblings);
    ADD(everybody_is_asked);
    ADD(nothing_opens_without_plugins);
    ADD(blank_changes_nothing);
#undef ADD
    status = g_test_run();
    davit_registry_free(registry);
    return status;
}
