/* SPDX-License-Identifier: Apache-2.0
 * The plugin alone, over a source in memory that counts what is asked of it: a header costs
 * few requests, and a vocabulary of twice the size costs one request more, not twice as many.
 * What files mean and how bad ones are refused is in core/checkpoint and tests/faults. */
#include <dlfcn.h>
#include <string.h>

#include <glib.h>

#include <davit/format.h>

struct davit_source {
    GByteArray *bytes; /* NULL when read */
    uint64_t size;
    guint n_views;
    uint64_t viewed; /* bytes of all views together */
};

static uint64_t source_size(const davit_source *src)
{
    return src->size;
}

static const char *source_name(const davit_source *src)
{
    (void)src;
    return "m.gguf";
}

static int32_t source_view(const davit_source *src, uint64_t off, uint64_t n,
                           const uint8_t **out_bytes, const davit_sink *sink)
{
    davit_source *counted = (davit_source *)(uintptr_t)src;

    (void)sink;
    g_assert_cmpuint(n, <=, src->size);
    g_assert_cmpuint(off, <=, src->size - n);
    counted->n_views++;
    counted->viewed += n;
    *out_bytes = src->bytes->data + off;
    return DAVIT_OK;
}

static const davit_io_suite io = {.struct_size = DAVIT_END(davit_io_suite, view),
                                  .size = source_size,
                                  .name = source_name,
                                  .view = source_view};

static const void *host_suite(void *ctx, const char *name, uint32_t major, uint32_t minor)
{
    (void)ctx;
    (void)minor;
    return strcmp(name, "io") == 0 && major == 1 ? &io : NULL;
}

static const davit_component *component;

static void load(void)
{
    g_autofree char *path = g_build_filename(DAVIT_PLUGIN_DIR, "davit-gguf.so", NULL);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    davit_entry_v1_fn entry = NULL;
    void *symbol;

    if (!so)
        g_error("%s", dlerror());
    symbol = dlsym(so, "davit_plugin_entry_v1");
    memcpy(&entry, &symbol, sizeof entry);
    component = entry(NULL, NULL)->components[0];
}

/* ---- files ---- */

static void put(GByteArray *to, uint64_t value, guint n_bytes)
{
    value = GUINT64_TO_LE(value);
    g_byte_array_append(to, (const uint8_t *)&value, n_bytes);
}

static void put_string(GByteArray *to, const char *text)
{
    put(to, strlen(text), 8);
    g_byte_array_append(to, (const uint8_t *)text, (guint)strlen(text));
}

/* No tensor, one key: an array of @count short strings. */
static GByteArray *make_vocabulary(uint64_t count)
{
    GByteArray *file = g_byte_array_sized_new((guint)(count * 11 + 128));

    g_byte_array_append(file, (const uint8_t *)"GGUF", 4);
    put(file, 3, 4); /* version */
    put(file, 0, 8); /* tensors */
    put(file, 1, 8); /* keys */
    put_string(file, "tokenizer.ggml.tokens");
    put(file, 9, 4); /* array */
    put(file, 8, 4); /* of strings */
    put(file, count, 8);
    for (uint64_t i = 0; i < count; i++) {
        static const char *const texts[] = {"a", "the", "ing", "\xc3\xa9", ""};

        put_string(file, texts[i % G_N_ELEMENTS(texts)]);
    }
    return file;
}

/* ---- what is delivered ---- */

static int32_t take_tensor(void *ctx, const davit_extent *extent)
{
    (void)ctx;
    (void)extent;
    g_assert_not_reached();
}

static int32_t take_key(void *ctx, const davit_kv *kv)
{
    uint64_t *count = ctx;

    g_assert_true(kv->is_array);
    *count = kv->count;
    return DAVIT_OK;
}

static davit_source read_vocabulary(uint64_t count)
{
    const davit_host host = {.struct_size = DAVIT_END(davit_host, suite),
                             .suite = host_suite};
    const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                                .host = &host,
                                .component = component->id};
    uint64_t delivered = 0;
    const davit_format_out out = {.struct_size = DAVIT_END(davit_format_out, shard),
                                  .ctx = &delivered,
                                  .tensor = take_tensor,
                                  .key = take_key};
    const davit_format_iface *iface = component->iface;
    davit_source source = {.bytes = make_vocabulary(count)};
    void *self = NULL, *reader = NULL;

    source.size = source.bytes->len;
    g_assert_cmpint(component->create(NULL, &in, &self, NULL), ==, DAVIT_OK);
    g_assert_cmpint(iface->open(self, &source, &out, &reader, NULL), ==, DAVIT_OK);
    g_assert_cmpuint(delivered, ==, count);
    iface->close(self, reader);
    component->destroy(self);
    g_clear_pointer(&source.bytes, g_byte_array_unref);
    return source;
}

/* B224: checks of arrays once made loading slow. Views double, so their number grows by one and
 * their bytes, all together, are less than three times the file (the last is the whole file, the
 * one before at most that, those before at most as much again). */
static void a_vocabulary_twice_as_long_takes_one_view_more(void)
{
    const uint64_t n = 500000;
    const davit_source small = read_vocabulary(n);
    const davit_source large = read_vocabulary(2 * n);

    g_assert_cmpuint(small.n_views, >, 0);
    g_assert_cmpuint(large.n_views, <=, small.n_views + 1);
    g_assert_cmpuint(large.n_views, <=, 10);
    g_assert_cmpuint(large.viewed, >=, large.size);
    g_assert_cmpuint(large.viewed, <, 3 * large.size);
    g_assert_cmpuint(large.viewed * 10, <=, small.viewed * 23);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    load();
    g_test_add_func("/gguf/a_vocabulary_twice_as_long_takes_one_view_more",
                    a_vocabulary_twice_as_long_takes_one_view_more);
    return g_test_run();
}
