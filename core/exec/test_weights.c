/* SPDX-License-Identifier: Apache-2.0
 * What the plan printed is what happens: its bytes against the executor's counters and against
 * the kernel's own account, and the same weights for every access, window and thread count. */
#include <string.h>

#include "exec/test_load.h"
#include "plan/layout.h"

/* ---- the kernel's account of reads ---- */

/* rchar of this process, all threads; *out_n = bytes that asking for it read. */
static bool read_account(uint64_t *out, uint64_t *out_n)
{
    g_autofree char *text = NULL;
    gsize n;
    if (!g_file_get_contents("/proc/self/io", &text, &n, NULL))
        return false;
    *out = g_ascii_strtoull(text + strlen("rchar: "), NULL, 10);
    *out_n = n;
    return true;
}

/* ---- bytes of weights ---- */

static void add_part(GChecksum *sum, const DavitPlan *plan, const DavitSlot *slot,
                     const davit_segment *seg, uint64_t part)
{
    const DavitModule *module = slot->sources[0].module;
    uint64_t n = seg->n_rows * seg->row_bytes[part];
    if (slot->access == DAVIT_ACCESS_PACK)
        n = part == 0 ? (seg->n_rows + slot->pack->row_block - 1) / slot->pack->row_block *
                            seg->row_bytes[0]
                      : davit_pack_map_bytes(slot);
    else if (seg->row_bytes[part] == 0)
        n = davit_checkpoint_tensor(plan->checkpoint,
                                    module->tensor[module->desc->parts[part].index])
                ->n_bytes;
    g_checksum_update(sum, seg->part[part], (gssize)n);
}

static char *digest(const DavitPlan *plan, const DavitSlot *slot, const davit_weight *w)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (uint64_t s = 0; s < w->n_segments; s++)
        for (uint64_t p = 0; p < w->segments[s].n_parts; p++)
            add_part(sum, plan, slot, &w->segments[s], p);
    return g_strdup(g_checksum_get_string(sum));
}

/* The same slot in the same layout has the same bytes, however it came into memory. */
static void check_digests(const TestLoad *m, const DavitWeights *weights, GHashTable *known)
{
    const DavitPlan *plan = m->plan;
    for (size_t i = 0; i < plan->program->n_weights; i++) {
        const int32_t at = plan->program->weights[i].slot;
        if (at < 0)
            continue;
        const DavitSlot *slot = &plan->slots[at];
        if (slot->tied_to >= 0)
            slot = &plan->slots[slot->tied_to];
        g_autofree char *sum = digest(plan, slot, davit_weights_get(weights, i));
        char *key = g_strdup_printf("%d %s", at, slot->layout);
        const char *before = g_hash_table_lookup(known, key);
        if (before)
            g_assert_cmpstr(sum, ==, before);
        if (before)
            g_free(key);
        else
            g_hash_table_insert(known, key, g_steal_pointer(&sum));
    }
}

/* ---- predicted and counted ---- */

static uint64_t made_by(const DavitPlan *plan, DavitAccess access)
{
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].access == access)
            n += plan->slots[i].made_bytes;
    return n;
}

static void check_counters(const DavitPlan *plan, const DavitLoadStats *s)
{
    g_assert_cmpuint(s->borrowed_bytes, ==, plan->borrowed_bytes);
    g_assert_cmpuint(s->read_bytes, ==, plan->read_bytes);
    g_assert_cmpuint(s->private_bytes, ==, plan->private_bytes);
    g_assert_cmpuint(s->copied_bytes, ==, made_by(plan, DAVIT_ACCESS_COPY));
    g_assert_cmpuint(s->packed_bytes, ==, made_by(plan, DAVIT_ACCESS_PACK));
    g_assert_cmpuint(s->decoded_bytes, ==, made_by(plan, DAVIT_ACCESS_DECODE));
    g_assert_cmpuint(s->window_bytes, ==, plan->window_bytes);
    g_assert_cmpuint(s->compared_bytes, <=, plan->compare_bytes);
    g_assert_cmpuint(s->uploaded_bytes, ==, 0);
}

static void load_as(const char *path, const DavitPlanOptions *options, DavitCacheChoice cache,
                    GHashTable *known)
{
    g_auto(TestLoad) m = test_load_open(path, options);
    const DavitLoadOptions how = {.cache = cache};
    uint64_t before = 0, after = 0, asking = 0, unused;
    DavitLoadStats stats;
    if (!m.plan)
        return;
    const bool account = read_account(&before, &asking);
    g_autoptr(DavitWeights) weights = davit_weights_load(m.plan, &how, m.report);
    if (account)
        read_account(&after, &unused);
    g_assert_nonnull(weights);
    davit_weights_stats(weights, &stats);
    check_counters(m.plan, &stats);
    if (account)
        g_assert_cmpuint(after - before - asking, ==,
                         stats.read_bytes + stats.compared_bytes + stats.beside_bytes);
    if (cache == DAVIT_CACHE_USE)
        g_assert_cmpuint(stats.direct_bytes, ==, 0);
    check_digests(&m, weights, known);
}

static void plan_is_what_happens(const void *data)
{
    static const DavitAccessChoice accesses[] = {DAVIT_ACCESS_AUTO, DAVIT_ACCESS_FORCE_BORROW,
                                                 DAVIT_ACCESS_FORCE_DIRECT,
                                                 DAVIT_ACCESS_FORCE_STREAM};
    static const struct {
        uint64_t window;
        unsigned lanes;
    } sizes[] = {{64 << 10, 1}, {8 * MIB, 2}, {32 * MIB, 3}, {128 * MIB, 4}, {256 * MIB, 0}};
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN};
    for (size_t a = 0; a < G_N_ELEMENTS(accesses); a++)
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            options.access = accesses[a];
            options.window_bytes = sizes[s].window;
            options.n_lanes = sizes[s].lanes;
            /* every access with two sizes, every size with two accesses */
            if (a == 0 || a == 3 || s == 0 || s == 4)
                load_as(data, &options, s % 2 ? DAVIT_CACHE_USE : DAVIT_CACHE_SKIP, known);
        }
    options.access = DAVIT_ACCESS_AUTO;
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s += 2) {
        options.layout = DAVIT_LAYOUT_PACKED;
        options.window_bytes = sizes[s].window;
        options.n_lanes = sizes[s].lanes;
        load_as(data, &options, s ? DAVIT_CACHE_AUTO : DAVIT_CACHE_SKIP, known);
    }
    options.layout = DAVIT_LAYOUT_AUTO;
    for (DavitDtypeChoice d = DAVIT_DTYPE_F32; d <= DAVIT_DTYPE_BF16; d++) {
        options.dtype = d;
        load_as(data, &options, DAVIT_CACHE_SKIP, known);
    }
}

/* ---- ranks ---- */

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
    if (!d || d->n_parts != 1 || row_bytes == 0 || slot->value_ops || slot->perm_heads)
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

/* Bytes that the ranks together take of a slot: once what is cut, each for itself what is not, and
 * heads that several hold at most once for each. */
static void check_rank_bytes(const DavitPlan *whole, size_t i, const TestLoad *ranks, unsigned tp)
{
    const DavitSlot *slot = &whole->slots[i];
    const uint64_t n = slot->borrowed_bytes + slot->read_bytes;
    const char *cut = ranks[0].plan->slots[i].cut;
    uint64_t sum = 0;
    for (unsigned r = 0; r < tp; r++)
        sum += ranks[r].plan->slots[i].borrowed_bytes + ranks[r].plan->slots[i].read_bytes;
    if (cut && strcmp(cut, "rows, shared") == 0)
        g_assert_cmpuint(sum, <=, n * tp);
    else
        g_assert_cmpuint(sum, ==, cut ? n : n * tp);
}

/* What all ranks hold together is the stored matrix, and each read what it holds. */
static void check_ranks(const char *path, unsigned tp)
{
    DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_auto(TestLoad) whole = test_load_open(path, &options);
    g_autofree TestLoad *ranks = g_new0(TestLoad, tp);
    g_autofree DavitWeights **weights = g_new0(DavitWeights *, tp);
    for (unsigned r = 0; whole.plan && r < tp; r++) {
        DavitLoadStats stats;
        options.tp = tp;
        options.rank = r;
        ranks[r] = test_load_open(path, &options);
        if (!ranks[r].plan)
            break;
        weights[r] = davit_weights_load(ranks[r].plan, NULL, ranks[r].report);
        g_assert_nonnull(weights[r]);
        davit_weights_stats(weights[r], &stats);
        check_counters(ranks[r].plan, &stats);
    }
    for (size_t i = 0; weights[tp - 1] && i < whole.plan->n_slots; i++) {
        const DavitSlot *slot = &whole.plan->slots[i];
        uint64_t n = 0;
        check_rank_bytes(whole.plan, i, ranks, tp);
        g_autofree uint8_t *want = stored_whole(whole.plan, slot, &n);
        g_autofree uint8_t *have = g_malloc0(n + 1);
        for (unsigned r = 0; want && r < tp; r++)
            put_rank(&ranks[r].plan->slots[i], davit_weights_slot(weights[r], i), slot->n_rows,
                     slot->sources[0].module->desc->parts[0].row_bytes, slot->n_cols, have);
        if (want)
            g_assert_true(memcmp(have, want, n) == 0);
    }
    if (!weights[tp - 1] && whole.plan)
        g_assert_true(test_load_says(ranks[0].report, DAVIT_R_CONFIG_UNSUPPORTED) ||
                      test_load_says(ranks[0].report, DAVIT_R_QUANT_PARAMS));
    for (unsigned r = 0; r < tp; r++) {
        davit_weights_free(weights[r]);
        if (ranks[r].report)
            test_load_clear(&ranks[r]);
    }
}

static void ranks_hold_the_whole(const void *data)
{
    check_ranks(data, 2);
    check_ranks(data, 3);
    check_ranks(data, 4);
}

int main(int argc, char **argv)
{
    static const char models[] = DAVIT_SOURCE_DIR "/tests/golden/models";
    g_autoptr(GDir) dir = g_dir_open(models, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    g_test_init(&argc, &argv, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        char *path = g_build_filename(models, name, NULL);
        g_autofree char *test = g_strconcat("/weights/plan/", name, NULL);
        g_ptr_array_add(names, path);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            g_test_add_data_func(test, path, plan_is_what_happens);
        g_autofree char *ranks = g_strconcat("/weights/ranks/", name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            g_test_add_data_func(ranks, path, ranks_hold_the_whole);
    }
    return g_test_run();
}
