/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/test_counts.h"

#include <string.h>

#include "plan/layout.h"
#include "plan/part.h"

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

GHashTable *test_counts_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

/* Where the rows of @seg come from. */
static const DavitSlotSource *source_of(const DavitSlot *slot, const davit_segment *seg)
{
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *source = &slot->sources[s];
        if (seg->expert - source->slot_expert < source->n_experts && seg->row == source->slot_row)
            return source;
    }
    g_assert_not_reached();
}

static void add_part(GChecksum *sum, const DavitPlan *plan, const DavitSlot *slot,
                     const davit_segment *seg, uint64_t part)
{
    uint64_t n = seg->n_rows * seg->row_bytes[part];
    if (slot->access == DAVIT_ACCESS_PACK)
        n = part == 0 ? (seg->n_rows + slot->pack->row_block - 1) / slot->pack->row_block *
                            seg->row_bytes[0]
                      : davit_pack_map_bytes(slot, source_of(slot, seg));
    else if (seg->row_bytes[part] == 0)
        n = davit_part_bytes(plan, slot->sources[0].module, part);
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
static void check_digests(const DavitPlan *plan, const DavitWeights *weights, GHashTable *known)
{
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

DavitWeights *test_counts_load(const TestLoad *m, DavitCacheChoice cache, GHashTable *known)
{
    const DavitLoadOptions how = {.cache = cache};
    uint64_t before = 0, after = 0, asking = 0, unused;
    DavitLoadStats stats;
    const bool account = read_account(&before, &asking);
    DavitWeights *weights = davit_weights_load(m->plan, &how, m->report);
    if (account)
        read_account(&after, &unused);
    g_assert_nonnull(weights);
    davit_weights_stats(weights, &stats);
    check_counters(m->plan, &stats);
    if (account)
        g_assert_cmpuint(after - before - asking, ==,
                         stats.read_bytes + stats.compared_bytes + stats.beside_bytes);
    if (cache == DAVIT_CACHE_USE)
        g_assert_cmpuint(stats.direct_bytes, ==, 0);
    if (m->plan->program)
        check_digests(m->plan, weights, known);
    return weights;
}
