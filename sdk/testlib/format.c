/* SPDX-License-Identifier: Apache-2.0
 * A format against bytes in memory, whole and broken. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

#define MAX_CUTS   4096u
#define MAX_FAILS  16u
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
    const char *name; /* of the file */
    const uint8_t *bytes;
    uint64_t n;
    uint64_t fail_at; /* this delivery fails, 0 = none */
    uint64_t n_given; /* deliveries so far */
    int refused;      /* a delivery was refused: open must fail */
} target;

/* Counts a delivery. Returns 0 when it is the one that fails. */
static int is_taken(target *to)
{
    to->n_given++;
    if (to->refused)
        test_expect(to->t, 0, "open goes on after a delivery was refused");
    to->refused = to->refused || to->n_given == to->fail_at;
    return !to->refused;
}

/* What core would refuse of an extent. */
static const char *fault_of(const davit_extent *e, uint64_t n_file)
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
    if (!davit_bytes_inside(e->off, e->n_bytes, n_file))
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
    const char *fault = fault_of(e, to->n);
    davit_test_tensor *x;

    if (!is_taken(to))
        return DAVIT_E_LIMIT;
    if (fault) {
        test_expect(to->t, 0, "tensor %llu of %s: %s", (unsigned long long)f->n_tensors,
                    to->name, fault);
        to->refused = 1;
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
    target *to = ctx;
    davit_test_file *f = to->file;
    davit_test_key *k;

    if (!is_taken(to))
        return DAVIT_E_LIMIT;
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
    target *to = ctx;

    (void)ref;
    if (!is_taken(to))
        return DAVIT_E_LIMIT;
    to->file->n_shards++;
    return DAVIT_OK;
}

static void probe(const target *to)
{
    davit_test *t = to->t;
    davit_verdict v = {.struct_size = DAVIT_END(davit_verdict, flags)};
    const uint64_t n_head = to->n < PROBE_HEAD ? to->n : PROBE_HEAD, before = t->records.n;
    uint8_t *head = test_exact(to->bytes, n_head);
    const davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                               .purposes = DAVIT_INSPECT,
                               .name = to->name,
                               .head = head,
                               .head_len = n_head,
                               .file_size = to->n};

    test_expect(t, t->component->probe(&in, &v, &t->sink) == DAVIT_OK || v.verdict == 0,
                "probe fails");
    test_expect(t, v.verdict <= DAVIT_REFUSE && v.score <= 1000, "verdict out of range");
    test_expect(t, v.verdict != DAVIT_REFUSE || t->records.n > before,
                "probe refuses without a record");
    to->file->verdict = v.verdict;
    to->file->score = v.score;
    test_exact_free(head, n_head);
}

static void open_and_close(target *to, davit_source *src)
{
    davit_test *t = to->t;
    const davit_format_iface *f = davit_test_iface(t);
    const davit_format_out out = {.struct_size = DAVIT_END(davit_format_out, shard),
                                  .ctx = to,
                                  .tensor = take_tensor,
                                  .key = take_key,
                                  .shard = take_shard};
    const uint64_t before = t->records.n;
    void *reader = NULL;

    to->file->status = f->open(t->self, src, &out, &reader, &t->sink);
    test_expect(t, to->file->status == DAVIT_OK || t->records.n > before || to->refused,
                "open fails with %d and no record", (int)to->file->status);
    test_expect(t, to->file->status != DAVIT_OK || !to->refused,
                "open succeeds though a delivery was refused");
    if (to->file->status == DAVIT_OK)
        f->close(t->self, reader);
}

/* Once through probe, open, close. @n bytes are copied to memory of that size. */
static void read_once(davit_test *t, const char *name, const void *bytes, uint64_t n,
                      uint64_t fail_at, davit_test_file *file)
{
    uint8_t *copy = test_exact(bytes, n); /* exactly the file: a read past it is seen */
    target to = {
        .t = t, .file = file, .name = name, .bytes = copy, .n = n, .fail_at = fail_at};

    memset(file, 0, sizeof *file);
    test_round(t);
    probe(&to);
    file->status = DAVIT_E_UNSUPPORTED;
    if (file->verdict == DAVIT_ACCEPT) {
        davit_source *src = t->source_new(name, copy, n);

        open_and_close(&to, src);
        t->source_free(src);
    }
    test_exact_free(copy, n);
}

const davit_test_file *davit_test_format(davit_test *t, const char *name, const void *bytes,
                                         uint64_t n)
{
    davit_test_file again;

    davit_test_forget(t);
    test_file_clear(&t->file);
    read_once(t, name, bytes, n, 0, &again);
    davit_test_forget(t);
    read_once(t, name, bytes, n, 0, &t->file);
    test_expect(t,
                again.status == t->file.status && again.verdict == t->file.verdict &&
                    again.n_tensors == t->file.n_tensors && again.n_keys == t->file.n_keys,
                "%s: the second reading differs from the first", name);
    test_file_clear(&again);
    return &t->file;
}

void test_format_once(davit_test *t, const char *name, const void *bytes, uint64_t n)
{
    davit_test_file file;

    davit_test_forget(t);
    read_once(t, name, bytes, n, 0, &file);
    test_file_clear(&file);
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

    for (uint64_t cut = 0; cut < n && cut < MAX_CUTS; cut++)
        test_format_once(t, name, bytes, cut);
    for (uint64_t r = 0; n && r < rounds; r++) {
        memcpy(changed, bytes, n);
        change(t, changed, n);
        test_format_once(t, name, changed, n);
    }
    for (uint64_t i = 1; i <= MAX_FAILS; i++) { /* the host refuses what is delivered */
        davit_test_forget(t);
        read_once(t, name, bytes, n, i, &file);
        test_file_clear(&file);
    }
    davit_test_forget(t);
    free(changed);
}
