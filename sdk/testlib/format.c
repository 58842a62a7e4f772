/* SPDX-License-Identifier: Apache-2.0
 * A format against bytes in memory, whole and broken. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

#define MAX_CUTS   4096u
#define PROBE_HEAD 4096u /* bytes that a probe is shown, format.h */

void test_file_clear(davit_test_file *file)
{
    for (uint64_t i = 0; i < file->n_tensors; i++) {
        free(file->tensors[i].name);
        free(file->tensors[i].dtype);
    }
    for (uint64_t i = 0; i < file->n_keys; i++) {
        free(file->keys[i].key);
        free(file->keys[i].data);
    }
    free(file->tensors);
    free(file->keys);
    memset(file, 0, sizeof *file);
}

/* Where open delivers. */
typedef struct target {
    davit_test *t;
    davit_test_file *file;
    const davit_source *src;
} target;

/* What core would refuse of an extent. */
static const char *fault_of(const davit_extent *e, const davit_source *src)
{
    uint64_t n_bytes;

    if (e->struct_size < DAVIT_END(davit_extent, block_bytes))
        return "its struct_size is too small";
    if (!e->dtype || !strchr(e->dtype, '/'))
        return "its dtype has no version (\"f32/1\")";
    if (e->name.len == 0 || !e->name.ptr)
        return "it has no name";
    if (e->rank > DAVIT_MAX_RANK || e->block_elems == 0 || e->block_bytes == 0)
        return "its rank or block is out of range";
    if (!davit_bytes_inside(e->off, e->n_bytes, src->n))
        return "its bytes lie outside the file";
    if (davit_bytes_of_shape(e->shape, e->rank, e->block_elems, e->block_bytes, &n_bytes) ||
        n_bytes != e->n_bytes)
        return "its bytes do not follow from shape and block";
    return NULL;
}

static int32_t take_tensor(void *ctx, const davit_extent *e)
{
    target *to = ctx;
    davit_test_file *f = to->file;
    const char *fault = fault_of(e, to->src);
    davit_test_tensor *x;

    if (fault) {
        test_expect(to->t, 0, "tensor %llu of %s: %s", (unsigned long long)f->n_tensors,
                    to->src->name, fault);
        return DAVIT_E_CORRUPT;
    }
    f->tensors = test_realloc(f->tensors, (f->n_tensors + 1) * sizeof *f->tensors);
    x = &f->tensors[f->n_tensors++];
    memset(x, 0, sizeof *x);
    x->name = test_copy(e->name.ptr, e->name.len);
    x->dtype = test_copy(e->dtype, strlen(e->dtype));
    memcpy(x->shape, e->shape, sizeof x->shape);
    x->rank = e->rank;
    x->off = e->off;
    x->n_bytes = e->n_bytes;
    return DAVIT_OK;
}

static int32_t take_key(void *ctx, const davit_kv *kv)
{
    davit_test_file *f = ((target *)ctx)->file;
    davit_test_key *k;

    f->keys = test_realloc(f->keys, (f->n_keys + 1) * sizeof *f->keys);
    k = &f->keys[f->n_keys++];
    k->key = test_copy(kv->key.ptr, kv->key.len);
    k->data = (uint8_t *)test_copy((const char *)kv->data, kv->n_bytes);
    k->n_bytes = kv->n_bytes;
    k->count = kv->count;
    k->type = kv->type;
    k->is_array = kv->is_array;
    return DAVIT_OK;
}

static int32_t take_shard(void *ctx, const davit_shard_ref *ref)
{
    (void)ref;
    ((target *)ctx)->file->n_shards++;
    return DAVIT_OK;
}

static void probe(davit_test *t, const davit_source *src, davit_test_file *file)
{
    davit_verdict v = {.struct_size = DAVIT_END(davit_verdict, flags)};
    const davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                               .purposes = DAVIT_INSPECT,
                               .name = src->name,
                               .head = src->bytes,
                               .head_len = src->n < PROBE_HEAD ? src->n : PROBE_HEAD,
                               .file_size = src->n};
    const uint64_t before = t->records.n;

    test_expect(t, t->component->probe(&in, &v, &t->sink) == DAVIT_OK || v.verdict == 0,
                "probe fails");
    test_expect(t, v.verdict <= DAVIT_REFUSE && v.score <= 1000, "verdict out of range");
    test_expect(t, v.verdict != DAVIT_REFUSE || t->records.n > before,
                "probe refuses without a record");
    file->verdict = v.verdict;
    file->score = v.score;
}

/* Once through probe, open, close. @n bytes are copied to memory of that size. */
static void read_once(davit_test *t, const char *name, const void *bytes, uint64_t n,
                      davit_test_file *file)
{
    const davit_format_iface *f = davit_test_iface(t);
    uint8_t *copy = malloc(n ? n : 1); /* exactly the file: a read past it is seen */
    davit_source src = {.bytes = copy, .n = n, .name = name};
    target to = {.t = t, .file = file, .src = &src};
    const davit_format_out out = {.struct_size = DAVIT_END(davit_format_out, shard),
                                  .ctx = &to,
                                  .tensor = take_tensor,
                                  .key = take_key,
                                  .shard = take_shard};
    void *reader = NULL;
    uint64_t before;

    if (!copy)
        copy = test_realloc(NULL, n); /* says so and ends */
    if (n)
        memcpy(copy, bytes, n);
    src.bytes = copy;
    memset(file, 0, sizeof *file);
    probe(t, &src, file);
    before = t->records.n;
    file->status = DAVIT_E_UNSUPPORTED;
    if (file->verdict == DAVIT_ACCEPT) {
        file->status = f->open(t->self, &src, &out, &reader, &t->sink);
        test_expect(t, file->status == DAVIT_OK || t->records.n > before,
                    "open fails with %d and no record", (int)file->status);
        if (file->status == DAVIT_OK)
            f->close(t->self, reader);
    }
    free(copy);
}

const davit_test_file *davit_test_format(davit_test *t, const char *name, const void *bytes,
                                         uint64_t n)
{
    davit_test_file again;

    davit_test_forget(t);
    test_file_clear(&t->file);
    read_once(t, name, bytes, n, &again);
    davit_test_forget(t);
    read_once(t, name, bytes, n, &t->file);
    test_expect(t,
                again.status == t->file.status && again.verdict == t->file.verdict &&
                    again.n_tensors == t->file.n_tensors && again.n_keys == t->file.n_keys,
                "%s: the second reading differs from the first", name);
    test_file_clear(&again);
    return &t->file;
}

/* One to four bytes changed, or a run of four or eight set to 0 or 255: fields that are empty or
 * as large as they can be. */
static void change(davit_test *t, uint8_t *bytes, uint64_t n)
{
    const uint64_t kind = davit_test_between(t, 0, 3), at = davit_test_between(t, 0, n - 1);
    const uint64_t run = kind & 1 ? 4 : 8;

    if (kind < 2) {
        for (uint64_t k = davit_test_between(t, 1, 4); k > 0; k--)
            bytes[davit_test_between(t, 0, n - 1)] = (uint8_t)davit_test_random(t);
        return;
    }
    memset(bytes + at, davit_test_between(t, 0, 1) ? 0xff : 0, n - at < run ? n - at : run);
}

void davit_test_format_broken(davit_test *t, const char *name, const void *bytes, uint64_t n,
                              uint64_t rounds)
{
    uint8_t *changed = test_alloc(n);
    davit_test_file file;

    for (uint64_t cut = 0; cut < n && cut < MAX_CUTS; cut++) {
        davit_test_forget(t);
        read_once(t, name, bytes, cut, &file);
        test_file_clear(&file);
    }
    for (uint64_t r = 0; n && r < rounds; r++) {
        memcpy(changed, bytes, n);
        change(t, changed, n);
        davit_test_forget(t);
        read_once(t, name, changed, n, &file);
        test_file_clear(&file);
    }
    davit_test_forget(t);
    free(changed);
}
