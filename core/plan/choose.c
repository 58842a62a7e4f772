/* SPDX-License-Identifier: Apache-2.0
 * Joint choice of layouts and entries. Slots that ops read together form a group; groups
 * are small (one matrix, or the three of an expert layer), so every combination of their
 * layouts is tried. Stored layouts come first and win ties. States are in choose_state.c.
 */
#include "plan/choose.h"

#include <inttypes.h>
#include <string.h>

#include "plan/candidates.h"
#include "plan/choose_state.h"
#include "plan/entry.h"
#include "plan/homes.h"
#include "plan/ranks.h"

#define MAX_TRIES 4096u /* combinations per group; beyond, stored layouts only */

typedef struct Group {
    GArray *slots;  /* (owned) uint32_t */
    GArray *instrs; /* (owned) uint32_t */
} Group;

typedef struct Chooser {
    DavitChooser base;
    GArray **options; /* (owned) [n_slots] DavitLayoutOption, NULL = no op reads it */
    GHashTable *told; /* (owned) text of an op and layouts -> reported already */
    bool spares;      /* also options that are spare */
    int32_t status;
} Chooser;

static DavitSlot *slot_at(const Chooser *c, uint32_t slot)
{
    return &c->base.draft->plan->slots[slot];
}

static DavitLayoutOption *option_at(const Chooser *c, uint32_t slot, uint32_t which)
{
    return &g_array_index(c->options[slot], DavitLayoutOption, which);
}

static uint32_t n_options(const Chooser *c, uint32_t slot)
{
    uint32_t n = c->options[slot]->len;

    while (!c->spares && n > 1 && option_at(c, slot, n - 1)->spare)
        n--;
    return n;
}

/* ---- groups ---- */

static uint32_t root_of(uint32_t *parent, uint32_t slot)
{
    while (parent[slot] != slot)
        slot = parent[slot] = parent[parent[slot]];
    return slot;
}

/* Slots that @instr reads joined, the root lowest; returns it, or UINT32_MAX if it reads
 * none. */
static uint32_t join_slots(const Chooser *c, const DavitInstr *instr, uint32_t *parent)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t slot = davit_instr_slot(&c->base, instr, w);
        uint32_t a, b;

        /* vectors have one layout only and need no company */
        if (slot < 0 || davit_slot_is_vector(slot_at(c, (uint32_t)slot)))
            continue;
        a = root_of(parent, (uint32_t)slot);
        if (first == UINT32_MAX) {
            first = a;
            continue;
        }
        b = root_of(parent, first);
        parent[MAX(a, b)] = MIN(a, b);
        first = MIN(a, b);
    }
    return first;
}

static Group *group_at(GPtrArray *groups, Group **by_root, uint32_t root)
{
    if (!by_root[root]) {
        by_root[root] = g_new0(Group, 1);
        by_root[root]->slots = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        by_root[root]->instrs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_ptr_array_add(groups, by_root[root]);
    }
    return by_root[root];
}

static void group_free(void *p)
{
    Group *group = p;

    g_array_unref(group->slots);
    g_array_unref(group->instrs);
    g_free(group);
}

/* (owned) Groups in order of their first instruction. Instructions without matrices are
 * in
 * @loose. */
static GPtrArray *make_groups(const Chooser *c, GArray *loose)
{
    const size_t n_slots = c->base.draft->plan->n_slots;
    const DavitProgram *program = c->base.program;
    GPtrArray *groups = g_ptr_array_new_with_free_func(group_free);
    g_autofree uint32_t *parent = g_new(uint32_t, MAX(n_slots, 1));
    g_autofree Group **by_root = g_new0(Group *, MAX(n_slots, 1));

    for (uint32_t s = 0; s < n_slots; s++)
        parent[s] = s;
    for (uint32_t i = 0; i < program->n_instrs; i++)
        join_slots(c, &program->instrs[i], parent);
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        const uint32_t slot = join_slots(c, &program->instrs[i], parent);

        if (slot == UINT32_MAX)
            g_array_append_val(loose, i);
        else
            g_array_append_val(group_at(groups, by_root, root_of(parent, slot))->instrs,
                               i);
    }
    for (uint32_t s = 0; s < n_slots; s++) {
        if (c->options[s] && by_root[root_of(parent, s)])
            g_array_append_val(by_root[root_of(parent, s)]->slots, s);
    }
    return groups;
}

/* ---- refusal ---- */

/* Say once per op and layouts that nothing computes @instr, and why not. */
static void refuse_instr(Chooser *c, const DavitInstr *instr)
{
    DavitReport *report = c->base.draft->report;
    const GArray *list = g_hash_table_lookup(c->base.by_op, instr->op);
    g_autoptr(GString) layouts = g_string_new(NULL);
    char *key;

    c->status = DAVIT_E_UNSUPPORTED;
    davit_instr_layouts(&c->base, instr, layouts);
    key = g_strdup_printf("%s %s", instr->op, layouts->str);
    if (!g_hash_table_add(c->told, key))
        return;
    davit_report_add(
        report, &(DavitFinding){
                    .code = DAVIT_R_OP_MISSING,
                    .status = DAVIT_E_UNSUPPORTED,
                    .purposes = DAVIT_RUN,
                    .stage = "plan",
                    .subject = instr->op,
                    .expected = davit_report_text(report, "a kernel for it on %s",
                                                  c->base.draft->plan->device),
                    .found = layouts->len ? layouts->str : NULL,
                    .message = list ? "no kernel takes this op with these layouts"
                                    : "no kernels component has this op",
                    .hint = list ? "the notes say why each candidate was not taken; --dtype f32 "
                                   "keeps the weights as float32"
                                 : "davit plugin list shows the kernels that are there"});
    if (list)
        davit_candidates_note(&c->base, instr, list, report);
}

/* "ct_pack/1 (experts.0.up_proj), int8/1 (experts.2.up_proj)"; the layout where all have one. */
static const char *stored_as(const Chooser *c, const DavitSlot *s)
{
    const DavitModule *first = s->sources[0].module;
    const size_t at = davit_slot_other_layout(s);
    const DavitModule *other = s->sources[at].module;

    if (!at)
        return first->desc->layout;
    return davit_report_text(c->base.draft->report, "%s (%s), %s%s (%s)", first->desc->layout,
                             first->name, other->desc->layout,
                             other->desc->layout == first->desc->layout ? " with other parameters"
                                                                      : "",
                             other->name);
}

static void refuse_slot(Chooser *c, uint32_t slot, const char *why)
{
    const DavitSlot *s = slot_at(c, slot);

    c->status = davit_report_add(
        c->base.draft->report,
        &(DavitFinding){
            .code = DAVIT_R_OP_MISSING,
            .status = DAVIT_E_UNSUPPORTED,
            .purposes = DAVIT_RUN,
            .stage = "plan",
            .subject = s->id,
            .expected = "one layout for all its parts, whose rows can be cut",
            .found = stored_as(c, s),
            .message = davit_report_text(c->base.draft->report,
                                         "no kernel can be given this weight: %s", why),
            .hint = "--dtype f32 keeps the weights as float32"});
}

/* ---- one group ---- */

/* Sum of the best scores with the layouts considered now; 0 = some op has no entry. */
static uint64_t group_score(Chooser *c, const Group *group)
{
    uint64_t sum = 0;

    for (guint i = 0; i < group->instrs->len; i++) {
        const uint32_t at = g_array_index(group->instrs, uint32_t, i);
        uint64_t score;

        if (!davit_entry_best(&c->base, &c->base.program->instrs[at], NULL, false,
                              &score))
            return 0;
        sum += score;
    }
    return sum;
}

/* Next combination of @pick, the first slot fastest. Returns: false after the last. */
static bool next_pick(const Chooser *c, const Group *group, uint32_t *pick)
{
    for (guint s = 0; s < group->slots->len; s++) {
        const uint32_t slot = g_array_index(group->slots, uint32_t, s);

        if (++pick[s] < n_options(c, slot))
            return true;
        pick[s] = 0;
    }
    return false;
}

static void consider(Chooser *c, const Group *group, const uint32_t *pick)
{
    for (guint s = 0; s < group->slots->len; s++) {
        const uint32_t slot = g_array_index(group->slots, uint32_t, s);

        c->base.layout_of[slot] = option_at(c, slot, pick[s]);
    }
}

static uint64_t count_packs(const Chooser *c, const Group *group)
{
    uint64_t n = 0;

    for (guint s = 0; s < group->slots->len; s++)
        n += c->base.layout_of[g_array_index(group->slots, uint32_t, s)]->access ==
             DAVIT_ACCESS_PACK;
    return n;
}

static bool too_many(const Chooser *c, const Group *group)
{
    uint64_t n = 1;

    for (guint s = 0; s < group->slots->len && n <= MAX_TRIES; s++)
        n *= n_options(c, g_array_index(group->slots, uint32_t, s));
    return n > MAX_TRIES;
}

static void refuse_group(Chooser *c, const Group *group, uint32_t *pick)
{
    memset(pick, 0, group->slots->len * sizeof *pick);
    consider(c, group, pick);
    for (guint i = 0; i < group->instrs->len; i++) {
        const uint32_t at = g_array_index(group->instrs, uint32_t, i);
        uint64_t score;

        if (!davit_entry_best(&c->base, &c->base.program->instrs[at], NULL, false,
                              &score))
            refuse_instr(c, &c->base.program->instrs[at]);
    }
}

/* The best combination to @best; returns its score, 0 = some op has no entry with any. */
static uint64_t try_group(Chooser *c, const Group *group, uint32_t *best)
{
    const bool want_packs = c->base.draft->options->layout == DAVIT_LAYOUT_PACKED;
    g_autofree uint32_t *pick = g_new0(uint32_t, group->slots->len);
    const bool stored_only = too_many(c, group);
    uint64_t most = 0;

    do {
        uint64_t score;

        consider(c, group, pick);
        score = group_score(c, group);
        if (score && want_packs)
            score += count_packs(c, group) << 40; /* above any sum of scores */
        if (score > most) {
            most = score;
            memcpy(best, pick, group->slots->len * sizeof *best);
        }
    } while (!stored_only && next_pick(c, group, pick));
    return most;
}

static void choose_group(Chooser *c, const Group *group)
{
    g_autofree uint32_t *best = g_new0(uint32_t, group->slots->len);
    uint64_t most = try_group(c, group, best);

    c->spares = most == 0;
    if (most == 0)
        most = try_group(c, group, best);
    c->spares = false;
    if (most == 0)
        refuse_group(c, group, best);
    else
        consider(c, group, best);
}

/* ---- all ---- */

/* What stays on disk is read as it lies there, where it can be. */
static void drop_packs(GArray *options)
{
    for (guint i = options->len; i-- > 1;) {
        if (g_array_index(options, DavitLayoutOption, i).access == DAVIT_ACCESS_PACK &&
            g_array_index(options, DavitLayoutOption, 0).access != DAVIT_ACCESS_PACK)
            g_array_remove_index(options, i);
    }
}

/* (owned) Options of slot @s: those of the slot before it of the same row, which @last has, where
 * that is alike, as in most layers. Refused where there are none. */
static GArray *options_of(Chooser *c, uint32_t s, GHashTable *last)
{
    const DavitSlot *slot = slot_at(c, s);
    const bool even = davit_slot_is_even(slot);
    const gpointer row = (gpointer)(uintptr_t)slot->row.id;
    const guint known = even ? GPOINTER_TO_UINT(g_hash_table_lookup(last, row)) : 0;
    const char *why;
    GArray *options;

    if (known && davit_slots_are_alike(slot, slot_at(c, known - 1)))
        return g_array_ref(c->options[known - 1]);
    options = davit_layout_options(c->base.draft, slot, &why);
    if (davit_home_is_disk(slot->home))
        drop_packs(options);
    if (options->len == 0)
        refuse_slot(c, s, why);
    else if (even)
        g_hash_table_insert(last, row, GUINT_TO_POINTER(s + 1));
    return options;
}

static void collect_options(Chooser *c)
{
    g_autoptr(GHashTable) last = g_hash_table_new(NULL, NULL);
    DavitDraft *draft = c->base.draft;

    for (uint32_t s = 0; s < draft->plan->n_slots; s++) {
        const DavitSlot *slot = &draft->plan->slots[s];

        if (!slot->present || !slot->used || slot->tied_to >= 0 || slot->n_sources == 0)
            continue;
        c->options[s] = options_of(c, s, last);
        if (c->options[s]->len > 0)
            c->base.layout_of[s] = option_at(c, s, 0);
    }
}

/* Kernels read all attributes that they know; those that the forward did not know are 0. */
static void pad_attr(DavitInstr *instr)
{
    uint64_t n = 0;

    if (instr->attr)
        memcpy(&n, instr->attr, sizeof n);
    if (n >= instr->entry->attr_size)
        return;
    instr->attr = g_realloc(instr->attr, instr->entry->attr_size);
    memset((uint8_t *)instr->attr + n, 0, instr->entry->attr_size - n);
}

static void write_entries(Chooser *c)
{
    for (size_t i = 0; i < c->base.program->n_instrs; i++) {
        DavitInstr *instr = &c->base.program->instrs[i];
        uint64_t score;
        const DavitEntryRef *ref;

        if (davit_is_rank_op(instr->op)) /* no plugin is asked */
            continue;
        ref = davit_entry_best(&c->base, instr, NULL, false, &score);
        if (!ref) {
            refuse_instr(c, instr);
            continue;
        }
        instr->entry = ref->entry;
        instr->kernels = ref->tool->component;
        instr->self = ref->tool->self;
        pad_attr(instr);
    }
}

/* A slot without users costs nothing: it stays in the file. */
static void leave_unused(DavitSlot *slot)
{
    if (slot->n_sources == 0)
        return;
    slot->access = DAVIT_ACCESS_BORROW;
    slot->layout = slot->stored_layout;
    slot->reason = "no op reads it";
}

static void write_layouts(Chooser *c)
{
    DavitPlan *plan = c->base.draft->plan;

    for (size_t s = 0; s < plan->n_slots; s++) {
        DavitSlot *slot = &plan->slots[s];

        if (c->base.layout_of[s])
            davit_layout_set(c->base.draft, slot, c->base.layout_of[s]);
        else
            leave_unused(slot);
    }
    for (size_t s = 0; s < plan->n_slots; s++) {
        DavitSlot *slot = &plan->slots[s];

        if (slot->tied_to < 0)
            continue;
        slot->access = plan->slots[slot->tied_to].access;
        slot->stored_layout = plan->slots[slot->tied_to].stored_layout;
        slot->layout = plan->slots[slot->tied_to].layout;
        slot->pack = plan->slots[slot->tied_to].pack;
        slot->pack_self = plan->slots[slot->tied_to].pack_self;
        slot->reason = "shares the embedding's bytes";
    }
}

static void options_clear(Chooser *c)
{
    for (size_t s = 0; s < c->base.draft->plan->n_slots; s++) {
        if (c->options[s])
            g_array_unref(c->options[s]);
    }
    g_free(c->options);
}

int32_t davit_choose(DavitDraft *draft, DavitProgram *program)
{
    g_autoptr(GArray) loose = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GPtrArray) groups = NULL;
    Chooser c = {.status = DAVIT_OK};

    davit_chooser_init(&c.base, draft, program);
    c.options = g_new0(GArray *, MAX(draft->plan->n_slots, 1));
    c.told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c.status = davit_choose_states(&c.base);
    if (!c.status)
        collect_options(&c);
    if (!c.status) {
        groups = make_groups(&c, loose);
        for (guint g = 0; g < groups->len; g++)
            choose_group(&c, g_ptr_array_index(groups, g));
        write_entries(&c);
        davit_candidates_tell(&c.base);
        write_layouts(&c);
    }
    options_clear(&c);
    g_hash_table_unref(c.told);
    davit_chooser_clear(&c.base);
    return c.status;
}
