/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/test_ranks.h"

#include <string.h>

#include "base/sanitizer.h"
#include "exec/test_counts.h"
#include "plan/layout.h"
#include "plan/piece.h"

#define MOST 8u /* ranks */

/* ---- the plans of all ranks ---- */

typedef struct Group {
    unsigned tp;
    TestLoad rank[MOST];
    size_t n_planned; /* ranks that have a plan: all or none */
} Group;

static Group group_open(const TestLoad *model, unsigned tp, DavitPlanOptions options)
{
    Group g = {.tp = tp};
    for (unsigned r = 0; r < tp; r++) {
        options.tp = tp;
        options.rank = r;
        g.rank[r] = test_load_again(model, &options);
        g.n_planned += g.rank[r].plan != NULL;
    }
    /* what one rank refuses no other may begin with */
    g_assert_true(g.n_planned == 0 || g.n_planned == tp);
    return g;
}

static void group_clear(Group *g)
{
    for (unsigned r = 0; r < g->tp; r++)
        test_load_clear(&g->rank[r]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Group, group_clear)

/* ---- what they hold ---- */

/* Put what one rank holds of a slot into @whole, [E, N, row] bytes of the stored matrix. */
static void put_rank(const DavitSlot *slot, const davit_weight *w, uint64_t n_rows,
                     uint64_t row_bytes, uint64_t n_cols, uint8_t *whole)
{
    /* a table of two axes has experts as rows */
    const bool by_expert = slot->cut && strcmp(slot->cut, "experts") == 0 && slot->rank == 3;
    const bool by_column = slot->cut && strcmp(slot->cut, "columns") == 0;
    const uint64_t row0 = slot->cut && !by_expert && !by_column ? slot->cut_first : 0;
    const uint64_t col0 = by_column ? slot->cut_first * row_bytes / n_cols : 0;
    for (uint64_t s = 0; s < w->n_segments; s++) {
        const davit_segment *seg = &w->segments[s];
        const uint64_t e = seg->expert + (by_expert ? slot->cut_first : 0);
        for (uint64_t r = 0; r < seg->n_rows; r++)
            memcpy(whole + (e * n_rows + row0 + seg->row + r) * row_bytes + col0,
                   seg->part[0] + r * seg->row_bytes[0], seg->row_bytes[0]);
    }
}

/* The stored bytes of all of @slot, (owned) NULL if it is not one part as stored. */
static uint8_t *stored_whole(const DavitPlan *plan, const DavitSlot *slot, uint64_t *out_n)
{
    const davit_quant_desc *d = slot->n_sources ? slot->sources[0].module->desc : NULL;
    const uint64_t row_bytes = d ? d->parts[0].row_bytes : 0;
    g_autoptr(DavitReport) report = davit_report_new();
    if (!d || d->n_parts != 1 || row_bytes == 0 || slot->value_ops || slot->perm_heads ||
        davit_slot_other_layout(slot)) /* experts in several layouts */
        return NULL;
    *out_n = slot->n_experts * slot->n_rows * row_bytes;
    uint8_t *bytes = g_malloc0(*out_n);
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *src = &slot->sources[s];
        const davit_tensor_info *t = davit_checkpoint_tensor(
            plan->checkpoint, src->module->tensor[src->module->desc->parts[0].index]);
        for (uint64_t e = 0; e < src->n_experts; e++)
            g_assert_cmpint(
                davit_checkpoint_read(
                    plan->checkpoint, t->file,
                    t->off + (e * src->module->desc->n_rows + src->row) * row_bytes,
                    bytes + (src->slot_expert + e) * slot->n_rows * row_bytes,
                    src->n_rows * row_bytes, report),
                ==, 0);
    }
    return bytes;
}

/* What all ranks hold together is the stored matrix. */
static void check_slot(const DavitPlan *whole, size_t i, const Group *g,
                       DavitWeights *const *weights)
{
    const DavitSlot *slot = &whole->slots[i];
    uint64_t n = 0;
    g_autofree uint8_t *want = stored_whole(whole, slot, &n);
    g_autofree uint8_t *have = g_malloc0(n + 1);
    for (unsigned r = 0; want && r < g->tp; r++)
        put_rank(&g->rank[r].plan->slots[i], davit_weights_slot(weights[r], i), slot->n_rows,
                 slot->sources[0].module->desc->parts[0].row_bytes, slot->n_cols, have);
    if (want)
        g_assert_true(memcmp(have, want, n) == 0);
}

static void stored_is_held(const TestLoad *model, unsigned tp)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_auto(Group) g = group_open(model, tp, options);
    g_autoptr(GHashTable) none = test_counts_new();
    DavitWeights *weights[MOST] = {NULL};
    for (unsigned r = 0; r < g.n_planned; r++)
        weights[r] = test_counts_load(&g.rank[r], DAVIT_CACHE_USE, none);
    for (size_t i = 0; g.n_planned && i < model->plan->n_slots; i++)
        check_slot(model->plan, i, &g, weights);
    for (unsigned r = 0; r < tp; r++)
        davit_weights_free(weights[r]);
}

/* Every access and window of every rank: the counters, and the same bytes. */
static void ranks_load_every_way(const TestLoad *model, unsigned tp)
{
    static const uint64_t windows[] = {8, 32, 128, 256};
    const bool all = g_getenv("DAVIT_CROSS") != NULL;
    g_autoptr(GPtrArray) known = g_ptr_array_new_with_free_func((GDestroyNotify)g_hash_table_unref);
    for (unsigned r = 0; r < tp; r++)
        g_ptr_array_add(known, test_counts_new());
    for (unsigned a = DAVIT_ACCESS_AUTO; a <= DAVIT_ACCESS_FORCE_STREAM; a++)
        for (unsigned s = 0; s < G_N_ELEMENTS(windows); s++) {
            const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                              .access = a,
                                              .window_bytes = windows[s] * MIB,
                                              .n_lanes = 1 + s % 2};
            if (!all && s != (a + tp) % 4)
                continue;
            g_auto(Group) g = group_open(model, tp, options);
            for (unsigned r = 0; r < g.n_planned; r++)
                davit_weights_free(test_counts_load(
                    &g.rank[r], (a + s) % 2 ? DAVIT_CACHE_USE : DAVIT_CACHE_SKIP,
                    g_ptr_array_index(known, r)));
        }
}

void test_ranks_hold_the_whole(const void *path)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_auto(TestLoad) model = test_load_open(path, &options);
    for (unsigned tp = 2; model.plan && tp <= 4; tp++)
        stored_is_held(&model, tp);
    for (unsigned tp = 2; model.plan && tp <= 4; tp += 2)
        ranks_load_every_way(&model, tp);
}

/* ---- who takes which bytes ---- */

/* How often each byte of the checkpoint is taken as a part of a weight, and how many bytes of what
 * goes with weights. */
typedef struct Taken {
    GArray *files; /* GByteArray * of each file */
    uint64_t n_beside;
} Taken;

static Taken taken_new(const DavitCheckpoint *checkpoint)
{
    Taken t = {.files = g_array_new(FALSE, FALSE, sizeof(GByteArray *))};
    for (size_t f = 0; f < davit_checkpoint_n_files(checkpoint); f++) {
        GByteArray *bytes = g_byte_array_new();
        const uint64_t n = davit_source_size(davit_checkpoint_file(checkpoint, f).source);
        g_byte_array_set_size(bytes, (guint)n);
        memset(bytes->data, 0, n);
        g_array_append_val(t.files, bytes);
    }
    return t;
}

static GByteArray *taken_file(const Taken *t, size_t file)
{
    return g_array_index(t->files, GByteArray *, file);
}

static void taken_clear(Taken *t)
{
    for (guint f = 0; f < t->files->len; f++)
        g_byte_array_unref(taken_file(t, f));
    g_array_unref(t->files);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Taken, taken_clear)

static void take_read(Taken *t, const DavitRead *read)
{
    GByteArray *file = taken_file(t, read->file);
    for (uint64_t run = 0; run < read->n_runs; run++) {
        const uint64_t at = read->off + run * read->stride;
        g_assert_cmpuint(at + read->n_bytes, <=, file->len);
        for (uint64_t b = at; b < at + read->n_bytes; b++)
            file->data[b]++;
    }
}

/* What plan prints as the slot's sources. */
static void take_slot(Taken *t, const DavitPlan *plan, const DavitSlot *slot)
{
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(DavitRead));
    for (size_t s = 0; s < slot->n_sources; s++) {
        const davit_quant_desc *d = slot->sources[s].module->desc;
        g_array_set_size(reads, 0);
        davit_reads_of(plan, slot, &slot->sources[s], reads);
        for (guint i = 0; i < reads->len; i++) {
            const DavitRead *read = &g_array_index(reads, DavitRead, i);
            if (strcmp(d->parts[read->part].role, "weight") == 0)
                take_read(t, read);
            else
                t->n_beside += read->n_bytes * read->n_runs;
        }
    }
}

/* Slots that are cut: each byte of their weights is one rank's, heads that several hold are each
 * holder's. What is not cut every rank has for itself. */
static void check_shares(const DavitPlan *whole, const Group *g)
{
    g_auto(Taken) one = taken_new(whole->checkpoint), many = taken_new(whole->checkpoint);
    for (size_t i = 0; i < whole->n_slots; i++) {
        const char *cut = g->rank[0].plan->slots[i].cut;
        for (unsigned r = 0; r < g->tp; r++)
            g_assert_cmpstr(g->rank[r].plan->slots[i].cut, ==, cut);
        if (!cut)
            continue;
        for (unsigned r = 0; r < g->tp; r++)
            take_slot(&many, g->rank[r].plan, &g->rank[r].plan->slots[i]);
        /* as many hold each head as there are ranks to a head */
        const DavitSlot *part = &g->rank[0].plan->slots[i];
        const uint64_t n_holders = strcmp(cut, "rows, shared") == 0
                                       ? g->tp * part->n_rows / whole->slots[i].n_rows
                                       : 1;
        for (uint64_t k = 0; k < n_holders; k++)
            take_slot(&one, whole, &whole->slots[i]);
    }
    for (guint f = 0; f < one.files->len; f++)
        g_assert_cmpmem(taken_file(&many, f)->data, taken_file(&many, f)->len,
                        taken_file(&one, f)->data, taken_file(&one, f)->len);
    /* scales that every rank has; fewer where AWQ-GEMV pads them */
    g_assert_cmpuint(many.n_beside, <=, g->tp * one.n_beside);
}

/* ---- counts ---- */

static const unsigned counts[] = {2, 3, 4, MOST};

/* Is @tp among the numbers of ranks that a refusal of @report names? */
static bool is_named(const DavitReport *report, unsigned tp)
{
    static const char begin[] = "numbers of ranks that the whole model takes: ";
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);
        const char *at = r->hint ? strstr(r->hint, begin) : NULL;
        if (r->severity != DAVIT_ERROR || !at)
            continue;
        g_assert_true(r->code == DAVIT_R_CONFIG_UNSUPPORTED || r->code == DAVIT_R_QUANT_PARAMS);
        g_assert_nonnull(r->expected);
        g_assert_nonnull(r->found);
        g_auto(GStrv) words = g_strsplit(at + strlen(begin), ", ", -1);
        for (char **w = words; *w; w++)
            if (g_ascii_strtoull(*w, NULL, 10) == tp)
                return true;
        return false;
    }
    g_assert_not_reached(); /* refused without counts */
}

/* Ranks run what can be cut; what no kernel takes runs with float32 copies. */
static void check_run(const TestLoad *model, unsigned tp)
{
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN};
    g_auto(TestLoad) alone = test_load_again(model, &options);
    g_auto(Group) g = group_open(model, tp, options);
    if (g.n_planned || !alone.plan)
        return;
    g_assert_true(test_load_says(g.rank[0].report, DAVIT_R_OP_MISSING));
    options.dtype = DAVIT_DTYPE_F32;
    g_auto(Group) f32 = group_open(model, tp, options);
    g_assert_cmpuint(f32.n_planned, ==, tp);
}

void test_ranks_share_every_byte(const void *path)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_auto(TestLoad) model = test_load_open(path, &options);
    bool fits[G_N_ELEMENTS(counts)], named[G_N_ELEMENTS(counts)] = {false};
    bool refused = false;
    for (size_t c = 0; model.plan && c < G_N_ELEMENTS(counts); c++) {
        g_auto(Group) g = group_open(&model, counts[c], options);
        fits[c] = g.n_planned > 0;
        if (fits[c]) {
            check_shares(model.plan, &g);
            check_run(&model, counts[c]);
            continue;
        }
        for (size_t k = 0; k < G_N_ELEMENTS(counts); k++) {
            const bool is = is_named(g.rank[counts[c] - 1].report, counts[k]);
            g_assert_true(!refused || named[k] == is); /* the same list whatever was asked */
            named[k] = is;
        }
        refused = true;
    }
    for (size_t c = 0; refused && c < G_N_ELEMENTS(counts); c++)
        g_assert_true(named[c] == fits[c]);
}
