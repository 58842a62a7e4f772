/* SPDX-License-Identifier: Apache-2.0
 * The JSON header: one object of {dtype, shape, data_offsets} per tensor, and
 * __metadata__. Whether the ranges fit together and into the file is st_ranges.c. */
#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

/* safetensors 0.6, enum Dtype; bits of one element in the comment where not whole bytes.
 */
static const st_dtype dtypes[] = {
    {"F32", "f32/1", 1, 4},
    {"BF16", "bf16/1", 1, 2},
    {"F16", "f16/1", 1, 2},
    {"F8_E4M3", "f8_e4m3/1", 1, 1},
    {"F8_E5M2", "f8_e5m2/1", 1, 1},
    {"F8_E8M0", "f8_e8m0/1", 1, 1},
    {"F8_E4M3FNUZ", "f8_e4m3fnuz/1", 1, 1},
    {"F8_E5M2FNUZ", "f8_e5m2fnuz/1", 1, 1},
    {"F4", "f4/1", 2, 1},           /* 4 */
    {"F6_E2M3", "f6_e2m3/1", 4, 3}, /* 6 */
    {"F6_E3M2", "f6_e3m2/1", 4, 3}, /* 6 */
    {"F64", "f64/1", 1, 8},
    {"I64", "i64/1", 1, 8},
    {"I32", "i32/1", 1, 4},
    {"I16", "i16/1", 1, 2},
    {"I8", "i8/1", 1, 1},
    {"U64", "u64/1", 1, 8},
    {"U32", "u32/1", 1, 4},
    {"U16", "u16/1", 1, 2},
    {"U8", "u8/1", 1, 1},
    {"BOOL", "bool/1", 1, 1},
    {"C64", "c64/1", 1, 8},
};

const st_dtype *st_find_dtype(davit_span name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (st_is(name, dtypes[i].name))
            return &dtypes[i];
    return NULL;
}

#define HAS_DTYPE   1u
#define HAS_SHAPE   2u
#define HAS_OFFSETS 4u

static int32_t next(st_open *o, davit_json_event *event)
{
    *event = (davit_json_event){.struct_size = DAVIT_END(davit_json_event, off)};
    return o->plugin->json->next(o->json, event);
}

static int is_container(const davit_json_event *event)
{
    return event->type == DAVIT_JSON_OBJECT || event->type == DAVIT_JSON_ARRAY;
}

/* A value of the wrong type: a finding, and go past it. */
static int32_t wrong_type(st_open *o, davit_span subject, const davit_json_event *event,
                          const char *expected, const char *message)
{
    st_find(o, subject, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = expected,
                             .found = st_type_name(event->type),
                             .message = message});
    return is_container(event) ? o->plugin->json->skip(o->json) : DAVIT_OK;
}

/* ---- fields of a tensor ---- */

static int32_t read_dtype(st_open *o, st_tensor *t)
{
    davit_json_event event;
    const int32_t status = next(o, &event);
    const st_dtype *dtype;
    char found[64];

    if (status)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return wrong_type(o, t->name, &event, "a string", "dtype is not a string");
    dtype = st_find_dtype(event.text);
    if (dtype) {
        t->dtype = dtype->dtype;
        t->block_elems = dtype->block_elems;
        t->block_bytes = dtype->block_bytes;
        return DAVIT_OK;
    }
    snprintf(found, sizeof found, "%.*s",
             (int)(event.text.len < 60 ? event.text.len : 60), event.text.ptr);
    st_find(o, t->name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_DTYPE_UNKNOWN,
                             .expected =
                                 "a dtype of safetensors (F32, BF16, F16, F8_E4M3 ...)",
                             .found = found,
                             .message = "the tensor's dtype is not known"});
    return DAVIT_OK;
}

/* A finding about the numbers of @field; goes past the value where it is not a number. */
static int32_t bad_numbers(st_open *o, davit_span name, const char *field,
                           const davit_json_event *event, const char *expected)
{
    const int is_number = event->type == DAVIT_JSON_INT || event->type == DAVIT_JSON_REAL;
    char message[64];
    char found[64];

    snprintf(message, sizeof message, "%s is not an array of whole numbers", field);
    if (!is_number)
        return wrong_type(o, name, event, expected, message);
    snprintf(found, sizeof found, "%.*s",
             (int)(event->text.len < 60 ? event->text.len : 60), event->text.ptr);
    st_find(o, name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = expected,
                             .found = found,
                             .message = message});
    return DAVIT_OK;
}

/* An array of whole numbers that are not negative: up to @cap of them into @out, all of
 * them counted in *out_n. *out_bad is set after a finding. */
static int32_t read_numbers(st_open *o, davit_span name, const char *field, uint64_t *out,
                            uint32_t cap, uint32_t *out_n, int *out_bad)
{
    davit_json_event event;
    int32_t status = next(o, &event);

    *out_n = 0;
    *out_bad = 0;
    if (status)
        return status;
    if (event.type != DAVIT_JSON_ARRAY) {
        *out_bad = 1;
        return bad_numbers(o, name, field, &event, "an array of whole numbers");
    }
    for (;;) {
        status = next(o, &event);
        if (status || event.type == DAVIT_JSON_ARRAY_END)
            return status;
        if (event.type == DAVIT_JSON_INT && event.i64 >= 0) {
            if (*out_n < cap)
                out[*out_n] = (uint64_t)event.i64;
            ++*out_n;
            continue;
        }
        *out_bad = 1;
        status = bad_numbers(o, name, field, &event, "whole numbers from 0");
        if (status)
            return status;
    }
}

static int32_t read_shape(st_open *o, st_tensor *t)
{
    char found[32];
    int bad;
    const int32_t status =
        read_numbers(o, t->name, "shape", t->shape, DAVIT_MAX_RANK, &t->rank, &bad);

    if (status)
        return status;
    if (bad)
        t->dtype = NULL; /* no size can be told */
    if (t->rank <= DAVIT_MAX_RANK)
        return DAVIT_OK;
    snprintf(found, sizeof found, "%" PRIu32, t->rank);
    st_find(o, t->name, DAVIT_E_UNSUPPORTED,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = "at most 8 dimensions",
                             .found = found,
                             .message = "the tensor has too many dimensions"});
    t->rank = 0;
    t->dtype = NULL;
    return DAVIT_OK;
}

/* Both offsets in *t, or a finding and *out_bad. */
static int32_t read_offsets(st_open *o, st_tensor *t, int *out_bad)
{
    uint64_t pair[2] = {0, 0};
    uint32_t n = 0;
    char found[64];
    const int32_t status = read_numbers(o, t->name, "data_offsets", pair, 2, &n, out_bad);

    if (status || *out_bad)
        return status;
    if (n == 2 && pair[0] <= pair[1]) {
        t->begin = pair[0];
        t->end = pair[1];
        return DAVIT_OK;
    }
    *out_bad = 1;
    if (n == 2)
        snprintf(found, sizeof found, "[%" PRIu64 ", %" PRIu64 "]", pair[0], pair[1]);
    else
        snprintf(found, sizeof found, "%" PRIu32 " numbers", n);
    st_find(o, t->name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = "[begin, end] with begin <= end",
                             .found = found,
                             .message = "data_offsets is not a range"});
    return DAVIT_OK;
}

static int32_t unknown_field(st_open *o, const st_tensor *t, davit_span key)
{
    char found[64];

    snprintf(found, sizeof found, "%.*s", (int)(key.len < 60 ? key.len : 60), key.ptr);
    st_find(o, t->name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = "dtype, shape and data_offsets only",
                             .found = found,
                             .message = "the tensor has a field that is not known"});
    return o->plugin->json->skip(o->json);
}

/* Fields of one tensor; *out_has tells which were there and well formed. */
static int32_t read_fields(st_open *o, st_tensor *t, uint32_t *out_has)
{
    davit_json_event event;
    int32_t status;
    int bad = 0;

    for (;;) {
        status = next(o, &event);
        if (status || event.type == DAVIT_JSON_OBJECT_END)
            return status;
        if (st_is(event.text, "dtype")) {
            *out_has |= HAS_DTYPE;
            status = read_dtype(o, t);
        } else if (st_is(event.text, "shape")) {
            *out_has |= HAS_SHAPE;
            status = read_shape(o, t);
        } else if (st_is(event.text, "data_offsets")) {
            status = read_offsets(o, t, &bad);
            *out_has |= bad ? 0 : HAS_OFFSETS;
        } else {
            status = unknown_field(o, t, event.text);
        }
        if (status)
            return status;
    }
}

/* ---- tensors and metadata ---- */

static int32_t append(st_open *o, st_table *table, const st_tensor *t)
{
    if (table->n == table->cap) {
        const uint64_t cap = table->cap ? table->cap * 2 : 64;
        st_tensor *more = cap > SIZE_MAX / sizeof *more
                              ? NULL
                              : realloc(table->tensors, (size_t)cap * sizeof *more);

        if (!more)
            return st_no_memory(o);
        table->tensors = more;
        table->cap = cap;
    }
    table->tensors[table->n++] = *t;
    return DAVIT_OK;
}

static int32_t read_tensor(st_open *o, davit_span name, st_table *table)
{
    st_tensor t = {.name = st_keep(o, name)};
    davit_json_event event;
    const uint32_t before = o->n_findings;
    uint32_t has = 0;
    int32_t status;

    if (!t.name.ptr)
        return st_no_memory(o);
    status = next(o, &event);
    if (status)
        return status;
    if (event.type != DAVIT_JSON_OBJECT)
        return wrong_type(o, t.name, &event, "an object",
                          "the tensor's entry is not an object");
    status = read_fields(o, &t, &has);
    if (status)
        return status;
    /* Its range counts even when its dtype or shape is bad. */
    if (has & HAS_OFFSETS)
        status = append(o, table, &t);
    if (has == (HAS_DTYPE | HAS_SHAPE | HAS_OFFSETS) || o->n_findings != before)
        return status;
    st_find(o, t.name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = "dtype, shape and data_offsets",
                             .found = !(has & HAS_DTYPE)   ? "no dtype"
                                      : !(has & HAS_SHAPE) ? "no shape"
                                                           : "no data_offsets",
                             .message = "the tensor's entry is not complete"});
    return status;
}

/* Strings by name; null counts as absent, as in the reference. */
static int32_t read_metadata(st_open *o)
{
    static const char subject[] = "__metadata__";
    const davit_span whole = {subject, sizeof subject - 1};
    davit_json_event event;
    davit_span key;
    int32_t status = next(o, &event);

    if (status || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_OBJECT)
        return wrong_type(o, whole, &event, "an object", "__metadata__ is not an object");
    for (;;) {
        status = next(o, &event);
        if (status || event.type == DAVIT_JSON_OBJECT_END)
            return status;
        key = st_keep(o, event.text);
        if (!key.ptr)
            return st_no_memory(o);
        status = next(o, &event);
        if (!status && event.type == DAVIT_JSON_STRING)
            status = st_give_text(o, "__metadata__.", key, event.text);
        else if (!status)
            status = wrong_type(o, whole, &event, "strings",
                                "a metadata value is not a string");
        if (status)
            return status;
    }
}

static int32_t read_entries(st_open *o, st_table *table)
{
    davit_json_event event;
    int32_t status = next(o, &event);

    if (status)
        return status;
    if (event.type != DAVIT_JSON_OBJECT)
        return wrong_type(o, (davit_span){NULL, 0}, &event, "an object",
                          "the header is not an object");
    for (;;) {
        status = next(o, &event);
        if (status)
            return status;
        if (event.type == DAVIT_JSON_OBJECT_END)
            break;
        if (st_is(event.text, "__metadata__"))
            status = read_metadata(o);
        else
            status = read_tensor(o, event.text, table);
        if (status)
            return status;
    }
    return next(o, &event); /* nothing but white space may follow */
}

int32_t st_read_header(st_open *o, st_table *table)
{
    const st_reader *reader = o->reader;
    char found[16];
    int32_t status;

    if (reader->n_text == 0 || reader->text[0] != '{') {
        snprintf(found, sizeof found, reader->n_text ? "byte 0x%02x" : "nothing",
                 (unsigned char)reader->text[0]);
        return st_find(
            o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = "{",
                             .found = found,
                             .message = "the header does not start with a brace"});
    }
    status = o->plugin->json->open(o->plugin->host->ctx,
                                   (davit_span){reader->text, reader->n_text}, 0, o->name,
                                   &o->json, o->sink);
    return status ? status : read_entries(o, table);
}
