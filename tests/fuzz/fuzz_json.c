/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as JSON, in both dialects. The strict reader must agree with Jansson on what
 * is JSON, as far as both have the same rules. */
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "fuzz/fuzz.h"

/* DAVIT_OK when the whole text was read; *out_seen is a checksum of what it gave. */
static int32_t read_all(const uint8_t *data, size_t size, uint32_t dialect,
                        size_t skip_every)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitJsonReader) reader =
        davit_json_open((const char *)data, size, dialect, "fuzz", report);
    davit_json_event event = {.struct_size = DAVIT_END(davit_json_event, off)};
    int32_t status = reader ? DAVIT_OK : DAVIT_E_CORRUPT;
    size_t n = 0;

    while (reader && !status) {
        status = davit_json_next(reader, &event);
        if (status || event.type == DAVIT_JSON_DONE)
            break;
        if (event.type == DAVIT_JSON_KEY || event.type == DAVIT_JSON_STRING)
            g_assert(g_utf8_validate_len(event.text.ptr, (gsize)event.text.len, NULL) ||
                     memchr(event.text.ptr, 0, (size_t)event.text.len));
        g_assert_cmpuint(event.off, <, size);
        if (skip_every && ++n % skip_every == 0)
            status = davit_json_skip(reader);
    }
    g_assert((status != 0) == davit_report_failed(report));
    return status;
}

/* Ends by SIGABRT, which libFuzzer catches and keeps the input of. */
static void disagree(const char *what, const uint8_t *data, size_t size)
{
    g_printerr("%s: %.*s\n", what, (int)size, (const char *)data);
    g_assert_not_reached();
}

/* Jansson takes what we take, but for its own limits: NUL in a text, numbers past int64.
 */
static void compare(const uint8_t *data, size_t size, int32_t status)
{
    const size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_error_t error;
    json_t *doc;

    if (size && memchr(data, 0, size))
        return; /* Jansson takes a NUL between tokens for a blank */
    doc = json_loadb((const char *)data, size, flags, &error);

    if (doc && status == DAVIT_E_CORRUPT)
        disagree("Jansson takes what the reader refuses", data, size);
    if (!doc && status == DAVIT_OK &&
        json_error_code(&error) != json_error_numeric_overflow &&
        json_error_code(&error) != json_error_stack_overflow &&
        json_error_code(&error) != json_error_null_byte_in_key)
        disagree("the reader takes what Jansson refuses", data, size);
    json_decref(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int32_t strict = read_all(data, size, 0, 0);

    if (strict == DAVIT_OK)
        g_assert_cmpint(read_all(data, size, DAVIT_JSON_PYTHON, 0), ==, DAVIT_OK);
    else
        read_all(data, size, DAVIT_JSON_PYTHON, 0);
    if (strict == DAVIT_OK)
        g_assert_cmpint(read_all(data, size, 0, 3), ==, DAVIT_OK);
    compare(data, size, strict);
    return 0;
}
