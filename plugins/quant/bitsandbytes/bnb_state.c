/* SPDX-License-Identifier: Apache-2.0
 * The JSON that bitsandbytes keeps in a tensor of bytes (utils.pack_dict_to_tensor):
 *   {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [N, K],
 *    "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.04}
 * Keys that say nothing about the stored bytes are passed over. */
#include <stdio.h>
#include <string.h>

#include "bnb.h"

#define MOST_BLOCK 65536 /* elements; bitsandbytes writes 32 to 4096 */

typedef struct Reader {
    const davit_json_suite *json;
    davit_json_reader *at;
    const char *name;
    const davit_sink *sink;
    davit_json_event event;
} Reader;

static int32_t next(Reader *r)
{
    r->event = (davit_json_event){.struct_size = DAVIT_END(davit_json_event, off)};
    return r->json->next(r->at, &r->event);
}

static int32_t bad(Reader *r, const char *key, const char *expected)
{
    char subject[300];

    snprintf(subject, sizeof subject, "%s: %s", r->name, key);
    return davit_say(r->sink, DAVIT_E_CORRUPT,
                     &(davit_refusal){.code = DAVIT_R_QUANT_CONFIG_VALUE,
                                      .subject = subject,
                                      .expected = expected,
                                      .found = "another value",
                                      .message = "a setting in the quantised weight's state "
                                                 "has a value that it cannot have"});
}

static int is(davit_span text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static int32_t read_block(Reader *r, const char *key, uint64_t *out)
{
    const int32_t status = next(r);

    if (status)
        return status;
    if (r->event.type != DAVIT_JSON_INT || r->event.i64 < 2 || r->event.i64 > MOST_BLOCK ||
        (r->event.i64 & (r->event.i64 - 1)) != 0)
        return bad(r, key, "a power of two, 2 to 65536");
    *out = (uint64_t)r->event.i64;
    return 0;
}

static int32_t read_type(Reader *r, bnb_state *out)
{
    const int32_t status = next(r);

    if (status)
        return status;
    if (r->event.type != DAVIT_JSON_STRING ||
        (!is(r->event.text, "nf4") && !is(r->event.text, "fp4")))
        return bad(r, "quant_type", "nf4 or fp4");
    memcpy(out->type, r->event.text.ptr, 3);
    return 0;
}

static int32_t read_offset(Reader *r, bnb_state *out)
{
    const int32_t status = next(r);

    if (status)
        return status;
    if ((r->event.type != DAVIT_JSON_INT && r->event.type != DAVIT_JSON_REAL) ||
        !(r->event.f64 > -1e30 && r->event.f64 < 1e30))
        return bad(r, "nested_offset", "a finite number");
    out->nested_offset = (float)r->event.f64;
    return 0;
}

static int32_t read_shape(Reader *r, bnb_state *out)
{
    int32_t status = next(r);

    if (status)
        return status;
    if (r->event.type != DAVIT_JSON_ARRAY)
        return bad(r, "shape", "two numbers above 0");
    while (!(status = next(r)) && r->event.type == DAVIT_JSON_INT) {
        if (out->rank == 2 || r->event.i64 <= 0 || r->event.i64 > INT32_MAX)
            return bad(r, "shape", "two numbers above 0");
        out->shape[out->rank++] = (uint64_t)r->event.i64;
    }
    if (status)
        return status;
    return r->event.type == DAVIT_JSON_ARRAY_END && out->rank == 2
               ? 0
               : bad(r, "shape", "two numbers above 0");
}

static int32_t read_value(Reader *r, bnb_state *out)
{
    if (is(r->event.text, "quant_type"))
        return read_type(r, out);
    if (is(r->event.text, "blocksize"))
        return read_block(r, "blocksize", &out->block);
    if (is(r->event.text, "nested_blocksize"))
        return read_block(r, "nested_blocksize", &out->nested_block);
    if (is(r->event.text, "nested_offset"))
        return read_offset(r, out);
    if (is(r->event.text, "shape"))
        return read_shape(r, out);
    return r->json->skip(r->at);
}

static int32_t read_object(Reader *r, bnb_state *out)
{
    int32_t status = next(r);

    if (status)
        return status;
    if (r->event.type != DAVIT_JSON_OBJECT)
        return bad(r, "(top)", "an object");
    while (!(status = next(r)) && r->event.type == DAVIT_JSON_KEY) {
        status = read_value(r, out);
        if (status)
            return status;
    }
    return status ? status : next(r); /* nothing but blanks may follow */
}

int32_t bnb_state_read(const davit_json_suite *json, void *host_ctx, const char *name,
                       const uint8_t *text, uint64_t n_bytes, bnb_state *out,
                       const davit_sink *sink)
{
    Reader r = {.json = json, .name = name, .sink = sink};
    const davit_span span = {(const char *)text, n_bytes};
    int32_t status;

    *out = (bnb_state){.type = ""};
    status = json->open(host_ctx, span, DAVIT_JSON_PYTHON, name, &r.at, sink);
    if (status)
        return status;
    status = read_object(&r, out);
    json->close(r.at);
    return status;
}
