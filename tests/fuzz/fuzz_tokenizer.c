/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a tokenizer file: tokenizer.json, tekken.json, a rank list, SentencePiece.
 * What loads encodes a short text and decodes it, and makes no special token of what shall stay
 * text; what does not load has a record. With READER
 * defined, one reader gets the bytes whatever they look like.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "tokenizer/tokenizer_private.h"

#ifndef READER
#define READER davit_tokenizer_from_bytes
#endif

static DavitRegistry *registry(void)
{
    static DavitRegistry *one;

    if (!one) {
        g_autoptr(DavitReport) report = davit_report_new();
        const char *const paths[] = {DAVIT_PLUGIN_DIR, NULL};
        const DavitRegistryOptions options = {
            .plugin_paths = paths, .builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true};

        one = davit_registry_open(&options, report);
    }
    return one;
}

static void use(const DavitTokenizer *tokenizer)
{
    static const char text[] = "Hello  w\xc3\xb6rld\n<s> 12345 \xe4\xbd\xa0\xe5\xa5\xbd";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(DavitSpan));
    g_autoptr(GString) back = g_string_new(NULL);
    DavitIds ids = {0};
    const int32_t status = davit_encode_spans(encoder, text, sizeof text - 1,
                                              DAVIT_ENCODE_SPECIAL, &ids, spans, report);

    g_assert((status != 0) == davit_report_failed(report));
    g_assert(status != 0 || spans->len == ids.n);
    davit_decode(tokenizer, ids.ids, ids.n, false, back);
    davit_ids_clear(&ids);
}

/* A letter of the alphabet may be marked special, too: no text is a byte's name. */
static bool is_byte_name(const DavitTokenizer *t, int32_t id)
{
    size_t len = 0;
    const char *text = davit_tokenizer_text(t, id, &len);

    return text && len == 6 && memcmp(text, "<0x", 3) == 0;
}

/* The texts of added tokens and what stands between them, as text. */
static void stay_text(const DavitTokenizer *t)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(t);
    g_autoptr(GString) text = g_string_new(NULL);
    DavitIds ids = {0};

    for (guint i = 0; i < t->added->len && text->len < 256; i++) {
        const DavitAdded *added = g_ptr_array_index(t->added, i);

        if (added->len <= 64)
            g_string_append_len(text, added->text, (gssize)added->len);
        g_string_append(text, i % 2 ? " " : "");
    }
    davit_encode(encoder, text->str, text->len, DAVIT_ENCODE_SAFE, &ids, report);
    for (size_t i = 0; i < ids.n && !t->fit.pads; i++)
        g_assert(!davit_tokenizer_is_special(t, ids.ids[i]) || ids.ids[i] == t->unk ||
                 is_byte_name(t, ids.ids[i]));
    davit_ids_clear(&ids);
}

/* An id costs the memory of all ids below it, some of it made and freed more than once: of a
 * thousand and more, some tenths of a millisecond to a hundred, in which others could be tried.
 * Longer numbers than nine digits (zeros in front count) are refused at once; digits behind a point
 * are no id. */
static bool has_large_id(const uint8_t *data, size_t size)
{
    size_t run = 0;
    bool behind_point = false;

    for (size_t i = 0; i <= size; i++) {
        if (i < size && g_ascii_isdigit(data[i])) {
            run++;
            continue;
        }
        if (run >= 4 && run <= 9 && !behind_point)
            return true;
        behind_point = i < size && data[i] == '.';
        run = 0;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (has_large_id(data, size))
        return 0;
    g_autoptr(DavitReport) report = davit_report_new();
    DavitRegistry *plugins = registry();
    g_autoptr(DavitTokenizer) tokenizer =
        READER((const char *)data, size, "fuzz", plugins, report);

    g_assert(tokenizer || davit_report_failed(report));
    if (tokenizer) {
        use(tokenizer);
        stay_text(tokenizer);
    }
    return 0;
}
