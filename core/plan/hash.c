/* SPDX-License-Identifier: Apache-2.0
 * What goes into the hash is a record that could be read again, so that two plans give the same
 * bytes only if they are the same: numbers are written in sevens of bits, texts with their
 * length. A source is written as what differs from the one before, because neighbours are alike
 * but for a number in the name and their place, and hashing costs per byte. */
#include "plan/hash.h"

#include <string.h>

#include "plan/piece.h"
#include "plan/slot_kernels.h"

/* 1: text records until this one. A new number where the same plan gives other bytes. */
#define RECORD_VERSION 2

#define NUMBER_BYTES 10u /* most of one number */

/* The record as it grows; its room is asked for before several things are put. */
typedef struct Record {
    GByteArray *bytes; /* (owned) */
    uint8_t *at;       /* where the next byte goes */
} Record;

static void need(Record *r, size_t n)
{
    const size_t len = (size_t)(r->at - r->bytes->data);

    if (len + n <= r->bytes->len)
        return;
    g_byte_array_set_size(r->bytes, (guint)(2 * (len + n)));
    r->at = r->bytes->data + len;
}

static void store_number(Record *r, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        *r->at++ = (uint8_t)(n | 0x80);
    *r->at++ = (uint8_t)n;
}

static void store_bytes(Record *r, const char *bytes, size_t n)
{
    memcpy(r->at, bytes, n);
    r->at += n;
}

/* Small for small differences of either sign. */
static void store_difference(Record *r, uint64_t before, uint64_t now)
{
    const uint64_t d = now - before;

    store_number(r, d >> 63 ? ~(d << 1) : d << 1);
}

static void put_number(Record *r, uint64_t n)
{
    need(r, NUMBER_BYTES);
    store_number(r, n);
}

/* @text may be NULL, which is not the empty text. */
static void put_text(Record *r, const char *text)
{
    const size_t n = text ? strlen(text) : 0;

    need(r, NUMBER_BYTES + n);
    store_number(r, text ? n + 1 : 0);
    store_bytes(r, text ? text : "", n);
}

/* ---- sources ---- */

typedef struct Before {
    const char *name; /* (borrowed, checkpoint) "" at first */
    DavitRead read;
    uint64_t end; /* of its bytes in the file */
} Before;

/* Bytes that @name has in common with the one before at its begin and, of the rest, at its end;
 * how many lie between, and those. */
static void store_name(Record *r, const char *before, const char *name, size_t n)
{
    const size_t n_before = strlen(before), most = MIN(n, n_before);
    size_t head = 0, tail = 0;

    while (most - head >= 8 && memcmp(name + head, before + head, 8) == 0)
        head += 8;
    while (head < most && name[head] == before[head])
        head++;
    while (tail < most - head && name[n - 1 - tail] == before[n_before - 1 - tail])
        tail++;
    store_number(r, head);
    store_number(r, tail);
    store_number(r, n - head - tail);
    store_bytes(r, name + head, n - head - tail);
}

static void put_read(Record *r, const DavitPlan *plan, const DavitRead *read, Before *before)
{
    const char *name = davit_checkpoint_tensor(plan->checkpoint, read->tensor)->name;
    const size_t n = strlen(name);
    const DavitRead *last = &before->read;
    const bool alike = read->file == last->file && read->n_bytes == last->n_bytes &&
                       read->n_runs == last->n_runs && read->stride == last->stride;

    need(r, n + 9 * NUMBER_BYTES);
    store_name(r, before->name, name, n);
    store_difference(r, before->end, read->off);
    store_number(r, alike);
    if (!alike) {
        store_number(r, read->file);
        store_number(r, read->n_bytes);
        store_number(r, read->n_runs);
        store_number(r, read->stride);
    }
    *before = (Before){name, *read, read->off + read->n_bytes};
}

static void put_sources(Record *out, const DavitPlan *plan, const DavitSlot *slot,
                        GArray *reads, Before *before)
{
    put_number(out, slot->n_sources);
    for (size_t s = 0; s < slot->n_sources; s++) {
        g_array_set_size(reads, 0);
        davit_reads_of(plan, slot, &slot->sources[s], reads);
        put_number(out, reads->len);
        for (guint i = 0; i < reads->len; i++)
            put_read(out, plan, &g_array_index(reads, DavitRead, i), before);
    }
}

/* ---- slots and the rest ---- */

static void put_slot(Record *out, const DavitSlot *slot, const GPtrArray *kernels)
{
    put_text(out, slot->id);
    put_number(out, (uint64_t)(slot->layer + 1));
    put_text(out, slot->stored_layout);
    put_text(out, slot->layout);
    put_number(out, slot->way);
    put_text(out, slot->home);
    put_number(out, (uint64_t)(slot->tied_to + 1));
    put_number(out, slot->value_ops);
    put_number(out, slot->perm_heads);
    put_number(out, slot->rank);
    for (uint32_t r = 0; r < slot->rank; r++)
        put_number(out, slot->shape[r]);
    put_number(out, kernels->len);
    for (guint k = 0; k < kernels->len; k++)
        put_text(out, g_ptr_array_index(kernels, k));
}

static void put_plan(Record *out, const DavitPlan *plan)
{
    const size_t n_files = davit_checkpoint_n_files(plan->checkpoint);

    put_number(out, RECORD_VERSION);
    put_text(out, plan->arch->id);
    put_text(out, davit_checkpoint_format(plan->checkpoint));
    put_text(out, plan->device);
    put_number(out, plan->program != NULL);
    put_number(out, plan->private_bytes);
    put_number(out, plan->window_bytes);
    put_number(out, n_files);
    for (size_t f = 0; f < n_files; f++)
        put_text(out, davit_checkpoint_file(plan->checkpoint, f).name);
    put_number(out, plan->n_ignored);
    for (size_t i = 0; i < plan->n_ignored; i++) {
        put_text(out, plan->ignored[i].rule);
        put_number(out, plan->ignored[i].n_tensors);
    }
}

/* What is in @record goes into @sum. */
static void flush(Record *record, GChecksum *sum)
{
    g_checksum_update(sum, record->bytes->data, record->at - record->bytes->data);
    record->at = record->bytes->data;
}

char *davit_plan_hash(const DavitPlan *plan)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GByteArray) bytes = g_byte_array_sized_new(4096);
    g_autoptr(GPtrArray) kernels = davit_slot_kernels(plan);
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(DavitRead));
    Before before = {.name = ""};
    Record record = {bytes, bytes->data};

    put_plan(&record, plan);
    for (size_t s = 0; s < plan->n_slots; s++) {
        const DavitSlot *slot = &plan->slots[s];

        put_number(&record, slot->present);
        if (slot->present) {
            put_slot(&record, slot, g_ptr_array_index(kernels, s));
            put_sources(&record, plan, slot, reads, &before);
        }
        flush(&record, sum);
    }
    flush(&record, sum);
    return g_strdup(g_checksum_get_string(sum));
}
