/* SPDX-License-Identifier: Apache-2.0
 * model.safetensors.index.json: which tensor lies in which file. What it promises is
 * settled by the core; here it only has to be well formed. */
#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int32_t next(st_open *o, davit_json_event *event)
{
    *event = (davit_json_event){.struct_size = DAVIT_END(davit_json_event, off)};
    return o->plugin->json->next(o->json, event);
}

static int32_t bad(st_open *o, const char *subject, const char *expected,
                   const char *found, const char *message)
{
    return st_find(o, (davit_span){subject, strlen(subject)}, DAVIT_E_CORRUPT,
                   &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                                    .expected = expected,
                                    .found = found,
                                    .message = message});
}

/* {"total_size": N, ...}: the one value that is used; others are free text of the writer.
 */
static int32_t read_metadata(st_open *o)
{
    davit_json_event event;
    int32_t status = next(o, &event);
    int is_total;

    if (status || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_OBJECT)
        return bad(o, "metadata", "an object", st_type_name(event.type),
                   "the index's metadata is not an object");
    for (;;) {
        status = next(o, &event);
        if (status || event.type == DAVIT_JSON_OBJECT_END)
            return status;
        is_total = st_is(event.text, "total_size");
        status = next(o, &event);
        if (status)
            return status;
        if (is_total && event.type == DAVIT_JSON_INT && event.i64 >= 0)
            status = st_give_u64(o, "__index__.total_size", (uint64_t)event.i64);
        else if (event.type == DAVIT_JSON_OBJECT || event.type == DAVIT_JSON_ARRAY)
            status = o->plugin->json->skip(o->json);
        if (status)
            return status;
    }
}

static int32_t read_map(st_open *o)
{
    davit_json_event event;
    davit_span tensor;
    int32_t status = next(o, &event);

    if (status)
        return status;
    if (event.type != DAVIT_JSON_OBJECT)
        return bad(o, "weight_map", "an object", st_type_name(event.type),
                   "the index's weight_map is not an object");
    for (;;) {
        status = next(o, &event);
        if (status || event.type == DAVIT_JSON_OBJECT_END)
            return status;
        tensor = st_keep(o, event.text);
        if (!tensor.ptr)
            return st_no_memory(o);
        status = next(o, &event);
        if (status)
            return status;
        if (event.type != DAVIT_JSON_STRING)
            return st_find(
                o, tensor, DAVIT_E_CORRUPT,
                &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                                 .expected = "a file name",
                                 .found = st_type_name(event.type),
                                 .message = "weight_map gives no file name for it"});
        const davit_shard_ref ref = {.struct_size = DAVIT_END(davit_shard_ref, tensor),
                                     .file = event.text,
                                     .tensor = tensor};
        status = o->out->shard(o->out->ctx, &ref);
        if (status)
            return status;
    }
}

static int32_t read_top(st_open *o)
{
    davit_json_event event;
    int32_t status = next(o, &event);
    int has_map = 0;

    if (status)
        return status;
    if (event.type != DAVIT_JSON_OBJECT)
        return bad(o, o->name, "an object", st_type_name(event.type),
                   "the index is not an object");
    for (;;) {
        status = next(o, &event);
        if (status)
            return status;
        if (event.type == DAVIT_JSON_OBJECT_END)
            break;
        if (st_is(event.text, "metadata")) {
            status = read_metadata(o);
        } else if (st_is(event.text, "weight_map")) {
            has_map = 1;
            status = read_map(o);
        } else {
            status = o->plugin->json->skip(o->json);
        }
        if (status)
            return status;
    }
    if (!has_map)
        return bad(o, o->name, "weight_map", "nothing", "the index has no weight_map");
    return next(o, &event);
}

int32_t st_read_index(st_open *o)
{
    const uint64_t size = o->plugin->io->size(o->src);
    char found[32];
    int32_t status;

    snprintf(found, sizeof found, "%" PRIu64 " bytes", size);
    if (size > ST_MAX_HEADER)
        return st_find(o, (davit_span){NULL, 0}, DAVIT_E_LIMIT,
                       &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                                        .expected = "at most 100000000 bytes",
                                        .found = found,
                                        .message = "the index is too long"});
    status = st_read_text(o, 0, size);
    if (!status)
        status = o->plugin->json->open(o->plugin->host->ctx,
                                       (davit_span){o->reader->text, size}, 0, o->name,
                                       &o->json, o->sink);
    return status ? status : read_top(o);
}
