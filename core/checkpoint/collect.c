/* SPDX-License-Identifier: Apache-2.0
 * One file through its format: what the plugin delivers is checked here once for all
 * formats, because a plugin's word is input too. Two equal keys in one file are found
 * here. */
#include <string.h>

#include <davit/help/bytes.h>

#include "base/big.h"
#include "base/dtype.h"
#include "base/json_text.h"
#include "checkpoint/checkpoint_private.h"
#include "plugin/running.h"

static int32_t bad(DavitPart *part, uint32_t code, const char *subject,
                   const char *expected, const char *found, const char *message)
{
    part->sink->n_errors++;
    return davit_report_add(part->sink->report, &(DavitFinding){.code = code,
                                                                .status = DAVIT_E_CORRUPT,
                                                                .stage = "open",
                                                                .who = part->format->id,
                                                                .subject = subject,
                                                                .expected = expected,
                                                                .found = found,
                                                                .message = message});
}

/* @span as a C string of the checkpoint; NULL if it is empty, too long, not UTF-8 or has
 * a NUL in it. */
static const char *keep_name(DavitCheckpoint *ckpt, davit_span span, uint64_t max)
{
    const char *end = span.ptr ? span.ptr + span.len : NULL;

    if (!span.ptr || span.len == 0 || span.len > max ||
        (davit_json_plain_end(span.ptr, end) != end && /* plain ASCII, as nearly all are */
         !g_utf8_validate_len(span.ptr, (gsize)span.len, NULL)))
        return NULL;
    return g_string_chunk_insert_len(ckpt->text, span.ptr, (gssize)span.len);
}

/* ---- tensors ---- */

/* Do block, size and place of @t hold? */
static int32_t check_extent(DavitPart *part, const davit_tensor_info *t)
{
    const DavitDtype *dtype = part->dtype;
    uint64_t n_bytes = 0;

    if (t->block_elems == 0 || t->block_bytes == 0)
        return bad(part, DAVIT_R_TENSOR_SIZE, t->name, "a block of at least one byte",
                   "0", "the plugin gives a block without size");
    if (dtype &&
        (dtype->block_elems != t->block_elems || dtype->block_bytes != t->block_bytes))
        return bad(part, DAVIT_R_TENSOR_SIZE, t->name, t->dtype, "another block",
                   "the plugin gives a block that is not the dtype's");
    if (davit_bytes_of_shape(t->shape, t->rank, t->block_elems, t->block_bytes,
                             &n_bytes) ||
        n_bytes != t->n_bytes)
        return bad(
            part, DAVIT_R_TENSOR_SIZE, t->name,
            davit_report_text(part->sink->report, "%" G_GUINT64_FORMAT " bytes", n_bytes),
            davit_report_text(part->sink->report, "%" G_GUINT64_FORMAT " bytes",
                              t->n_bytes),
            "the tensor's bytes do not follow from shape and dtype");
    if (!davit_bytes_inside(t->off, t->n_bytes, davit_source_size(part->source)))
        return bad(part, DAVIT_R_TENSOR_OUT_OF_FILE, t->name,
                   davit_report_text(part->sink->report,
                                     "end <= %" G_GUINT64_FORMAT " (file size)",
                                     davit_source_size(part->source)),
                   davit_report_text(part->sink->report,
                                     "%" G_GUINT64_FORMAT " bytes at %" G_GUINT64_FORMAT,
                                     t->n_bytes, t->off),
                   "the tensor's bytes lie outside the file");
    return DAVIT_OK;
}

/* The interned name; most tensors of a file have the dtype of the one before. */
static const char *intern_dtype(DavitPart *part, const char *name)
{
    if (!part->dtype_name || strcmp(part->dtype_name, name) != 0) {
        part->dtype_name = g_intern_string(name);
        part->dtype = davit_dtype_find(name);
    }
    return part->dtype_name;
}

static int32_t name_unusable(DavitPart *part, const davit_extent *e)
{
    g_autofree char *shown =
        davit_escape(e->name.ptr ? e->name.ptr : "", (size_t)MIN(e->name.len, 200), 200);

    return bad(part, DAVIT_R_HEADER_INVALID, part->name, "UTF-8 of 1 to 4096 bytes", shown,
               "a tensor's name is not usable");
}

static int32_t no_memory(DavitPart *part)
{
    part->sink->n_errors++;
    return davit_report_add(part->sink->report,
                            &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                            .status = DAVIT_E_LIMIT,
                                            .stage = "open",
                                            .subject = part->name,
                                            .message = "no memory for so many tensors"});
}

/* Room grows by large steps: pages that no tensor reaches are never made, and little is copied. */
static int32_t keep_tensor(DavitPart *part, const davit_tensor_info *t)
{
    DavitCheckpoint *ckpt = part->ckpt;

    if (ckpt->n_tensors == ckpt->n_room) {
        const size_t n = 4 * ckpt->n_room + 64;
        davit_tensor_info *more = davit_big_zeroed(n, sizeof *more);

        if (!more)
            return no_memory(part);
        if (ckpt->n_tensors)
            memcpy(more, ckpt->tensors, ckpt->n_tensors * sizeof *more);
        davit_big_free(ckpt->tensors);
        ckpt->tensors = more;
        ckpt->n_room = n;
    }
    ckpt->tensors[ckpt->n_tensors++] = *t;
    return DAVIT_OK;
}

static int32_t collect_whole(DavitPart *part, const davit_extent *e)
{
    davit_tensor_info t = {.struct_size = DAVIT_END(davit_tensor_info, block_bytes)};
    int32_t status;

    t.name = keep_name(part->ckpt, e->name, DAVIT_MAX_TENSOR_NAME);
    if (!t.name)
        return name_unusable(part, e);
    if (!e->dtype || e->rank > DAVIT_MAX_RANK)
        return bad(part, DAVIT_R_HEADER_INVALID, t.name,
                   "a dtype and at most 8 dimensions", NULL,
                   "the plugin gives no usable dtype or shape");
    t.dtype = intern_dtype(part, e->dtype);
    t.rank = e->rank;
    memcpy(t.shape, e->shape, e->rank * sizeof t.shape[0]);
    t.off = e->off;
    t.n_bytes = e->n_bytes;
    t.block_elems = e->block_elems;
    t.block_bytes = e->block_bytes;
    status = check_extent(part, &t);
    if (!status) {
        status = keep_tensor(part, &t);
        part->n_tensors += !status;
    }
    return status;
}

static int32_t collect_tensor(void *ctx, const davit_extent *extent)
{
    davit_extent e = {0};

    if (extent->struct_size >= sizeof e)
        return collect_whole(ctx, extent);
    memcpy(&e, extent, (size_t)extent->struct_size); /* of an older plugin */
    return collect_whole(ctx, &e);
}

/* ---- keys and references ---- */

/* Is the value as long as type and count say? Strings are walked. */
static bool is_encoded(const davit_kv *kv)
{
    const uint32_t each = davit_kv_type_bytes(kv->type);
    uint64_t n;
    DavitKvCursor cursor;
    davit_span s;

    if (kv->n_bytes > 0 && !kv->data)
        return false;
    if (each > 0)
        return davit_bytes_mul(kv->count, each, &n) && n == kv->n_bytes;
    if (kv->type != DAVIT_KV_STR)
        return false;
    cursor = davit_kv_strings(kv);
    while (davit_kv_next(&cursor, &s))
        ;
    return cursor.left == 0 && cursor.p == cursor.end;
}

static int32_t collect_key(void *ctx, const davit_kv *in)
{
    DavitPart *part = ctx;
    davit_kv kv = {0};
    const char *name;

    memcpy(&kv, in, (size_t)MIN(sizeof kv, in->struct_size));
    name = keep_name(part->ckpt, kv.key, UINT16_MAX + 64);
    if (!name)
        return bad(part, DAVIT_R_HEADER_INVALID, part->name, "UTF-8 without NUL", NULL,
                   "a key's name is not usable");
    if ((!kv.is_array && kv.count != 1) || !is_encoded(&kv))
        return bad(part, DAVIT_R_HEADER_INVALID, name, "a value as its type says", NULL,
                   "the plugin gives a value that is not whole");
    kv.struct_size = DAVIT_END(davit_kv, n_bytes);
    kv.key.ptr = name;
    g_array_append_val(part->keys, kv);
    return DAVIT_OK;
}

static int compare_keys(const void *a, const void *b, void *ctx)
{
    const davit_kv *keys = ctx;

    return strcmp(keys[*(const uint32_t *)a].key.ptr, keys[*(const uint32_t *)b].key.ptr);
}

/* Sorted order of the keys: lookup, and no hash that a file could make collide. */
static int32_t sort_keys(DavitPart *part)
{
    const davit_kv *keys = (const davit_kv *)(const void *)part->keys->data;
    const uint32_t n = part->keys->len;
    int32_t status = DAVIT_OK;

    part->key_order = g_new(uint32_t, MAX(n, 1));
    for (uint32_t i = 0; i < n; i++)
        part->key_order[i] = i;
    if (n)
        g_qsort_with_data(part->key_order, (gint)n, sizeof(uint32_t), compare_keys,
                          part->keys->data);
    for (uint32_t i = 1; i < n && !status; i++) {
        const char *name = keys[part->key_order[i]].key.ptr;

        if (strcmp(keys[part->key_order[i - 1]].key.ptr, name) == 0)
            status = bad(part, DAVIT_R_DUPLICATE_KEY, name, "once", "twice",
                         "a key is given twice in one file");
    }
    return status;
}

static int32_t collect_shard(void *ctx, const davit_shard_ref *in)
{
    DavitPart *part = ctx;
    davit_shard_ref r = {0};
    DavitRef ref = {0};

    memcpy(&r, in, (size_t)MIN(sizeof r, in->struct_size));
    if (r.file.ptr && r.file.len > 0 && r.file.len <= 255 &&
        !memchr(r.file.ptr, '\0', (size_t)r.file.len) &&
        g_utf8_validate_len(r.file.ptr, (gsize)r.file.len, NULL)) {
        g_autofree char *file = g_strndup(r.file.ptr, (gsize)r.file.len);

        ref.file = g_string_chunk_insert(part->ckpt->text, file);
    }
    if (!ref.file)
        return bad(part, DAVIT_R_HEADER_INVALID, part->name,
                   "a file name of 1 to 255 bytes", NULL,
                   "the index names a file that cannot be");
    if (r.tensor.ptr && r.tensor.len) {
        ref.tensor = keep_name(part->ckpt, r.tensor, DAVIT_MAX_TENSOR_NAME);
        if (!ref.tensor)
            return bad(part, DAVIT_R_HEADER_INVALID, part->name,
                       "UTF-8 of 1 to 4096 bytes", NULL,
                       "a tensor's name in the index is not usable");
    }
    g_array_append_val(part->refs, ref);
    return DAVIT_OK;
}

/* ---- a part ---- */

static DavitPart *part_new(DavitCheckpoint *ckpt, DavitSource *source)
{
    DavitPart *part = g_new0(DavitPart, 1);

    part->ckpt = ckpt;
    part->name = g_strdup(davit_source_name(source));
    part->source = source;
    part->first_tensor = ckpt->n_tensors;
    part->keys = g_array_new(FALSE, FALSE, sizeof(davit_kv));
    part->refs = g_array_new(FALSE, FALSE, sizeof(DavitRef));
    return part;
}

void davit_part_free(void *p)
{
    DavitPart *part = p;

    if (!part)
        return;
    if (part->reader)
        part->format->iface->close(part->format->self, part->reader);
    g_array_unref(part->keys);
    g_array_unref(part->refs);
    g_free(part->key_order);
    davit_source_free(part->source);
    g_free(part->name);
    g_free(part);
}

const davit_kv *davit_part_key(const DavitPart *part, const char *key)
{
    uint32_t low = 0;
    uint32_t high = part->keys->len;

    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const davit_kv *kv = &g_array_index(part->keys, davit_kv, part->key_order[mid]);
        const int order = strcmp(key, kv->key.ptr);

        if (order == 0)
            return kv;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

/* The format's open, with everything it delivers collected in @part. */
static int32_t run_open(DavitPart *part, DavitReport *report)
{
    const davit_format_out out = {.struct_size = DAVIT_END(davit_format_out, shard),
                                  .ctx = part,
                                  .tensor = collect_tensor,
                                  .key = collect_key,
                                  .shard = collect_shard};
    const DavitFormat *format = part->format;
    DavitRunning outside;
    DavitSink sink;
    int32_t status;

    davit_sink_init(&sink, report, format->id, "open");
    part->sink = &sink;
    outside = davit_running_set(format->id, "open");
    status =
        format->iface->open(format->self, part->source, &out, &part->reader, &sink.abi);
    davit_running_back(outside);
    if (!status)
        status = sort_keys(part);
    part->sink = NULL;
    return davit_sink_done(&sink, status);
}

DavitPart *davit_part_open_source(DavitCheckpoint *ckpt, DavitSource *source,
                                  DavitReport *report)
{
    DavitPart *part = part_new(ckpt, source);

    part->format = davit_ask_file(ckpt, source, report);
    if (part->format && !run_open(part, report))
        return part;
    ckpt->n_tensors = part->first_tensor;
    davit_part_free(part);
    return NULL;
}

DavitPart *davit_part_open(DavitCheckpoint *ckpt, const char *name, DavitReport *report)
{
    g_autofree char *full = NULL;
    DavitSource *source;

    if (davit_model_path_join(&ckpt->path, name, &full, report))
        return NULL;
    source = davit_source_open(full, report);
    return source ? davit_part_open_source(ckpt, source, report) : NULL;
}
