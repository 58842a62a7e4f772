/* SPDX-License-Identifier: Apache-2.0
 * A walk over the program in order. What is known of a value: all ranks have the same whole of
 * it, or each has a range of its columns. Sums are made as soon as there are parts to sum, so
 * that no value is ever a part of a sum. */
#include "plan/ranks.h"

#include <string.h>

#include <davit/ops.h>

typedef struct Extent {
    bool cut;
    uint64_t first, whole; /* of columns (of rows, for a weight); cut only */
} Extent;

typedef struct Walk {
    DavitDraft *draft;
    DavitProgram *program;
    const char *who;
    Extent *value;  /* (owned) [n_values before] */
    int32_t *moved; /* (owned) [n_values before] the value that stands for it now */
    Extent *state;  /* (owned) [n_states] of its keys */
    GArray *instrs; /* (owned) DavitInstr: the new program */
} Walk;

static const Extent all_of_it = {0};

bool davit_is_rank_op(const char *op)
{
    return strcmp(op, DAVIT_OP_ALL_REDUCE) == 0 || strcmp(op, DAVIT_OP_ALL_GATHER) == 0;
}

static bool same(Extent a, Extent b)
{
    return a.cut == b.cut && a.first == b.first && a.whole == b.whole;
}

/* ---- weights ---- */

/* NULL = a constant or absent: every rank has all of it. */
static const DavitSlot *slot_of(const Walk *w, const DavitInstr *instr, uint32_t index)
{
    const int32_t handle = index < instr->n_weights ? instr->weight[index] : -1;
    const int32_t slot = handle < 0 ? -1 : w->program->weights[handle].slot;

    return slot < 0 ? NULL : &w->draft->plan->slots[slot];
}

static bool cut_by(const DavitSlot *slot, const char *how)
{
    return slot && slot->cut && g_str_has_prefix(slot->cut, how);
}

static Extent extent_of(const DavitSlot *slot)
{
    return slot && slot->cut ? (Extent){true, slot->cut_first, slot->cut_whole} : all_of_it;
}

/* ---- what is added ---- */

static DavitInstr *last(Walk *w)
{
    return &g_array_index(w->instrs, DavitInstr, w->instrs->len - 1);
}

static void add_reduce(Walk *w, int32_t value, int64_t layer)
{
    DavitInstr instr = {.op = davit_intern(DAVIT_OP_ALL_REDUCE),
                        .layer = layer,
                        .state = -1,
                        .n_in = 1,
                        .n_out = 1};

    instr.in[0] = instr.out[0] = value;
    g_array_append_val(w->instrs, instr);
}

/* The gathered value stands for @value from here on. */
static void add_gather(Walk *w, int32_t value, Extent part, int64_t layer)
{
    DavitProgram *p = w->program;
    const DavitValue *old;
    DavitGatherAttr *attr = g_new0(DavitGatherAttr, 1);
    DavitInstr instr = {.op = davit_intern(DAVIT_OP_ALL_GATHER),
                        .layer = layer,
                        .attr = attr,
                        .state = -1,
                        .n_in = 1,
                        .n_out = 1};

    p->values = g_renew(DavitValue, p->values, p->n_values + 1);
    old = &p->values[value];
    p->values[p->n_values] =
        (DavitValue){.dtype = old->dtype, .rows = old->rows, .width = part.whole};
    /* names are for the whole value */
    p->values[p->n_values].name = g_steal_pointer(&p->values[value].name);
    attr->struct_size = sizeof *attr;
    attr->share = w->draft->plan->rank ? part.first / w->draft->plan->rank : old->width;
    instr.in[0] = value;
    instr.out[0] = (int32_t)p->n_values;
    for (size_t v = 0; v < p->n_values; v++)
        if (w->moved[v] == value)
            w->moved[v] = (int32_t)p->n_values;
    p->n_values++;
    g_array_append_val(w->instrs, instr);
}

/* Attributes of @instr in the size that this core knows. */
static void *attr_of_size(DavitInstr *instr, uint64_t size)
{
    uint64_t n = 0;

    if (instr->attr)
        memcpy(&n, instr->attr, sizeof n);
    if (n < size) {
        instr->attr = g_realloc(instr->attr, size);
        memset((uint8_t *)instr->attr + n, 0, size - n);
        memcpy(instr->attr, &size, sizeof size);
    }
    return instr->attr;
}

/* ---- rules; each takes the extents of the inputs and sets those of the outputs ---- */

typedef struct Step {
    DavitInstr *instr; /* the new one, in w->instrs: invalid once something is added */
    Extent in[DAVIT_MAX_IN];
    Extent out; /* of all outputs */
    bool reduce, gather; /* to be added */
} Step;

static const char *rule_linear(Walk *w, Step *s)
{
    const DavitSlot *matrix = slot_of(w, s->instr, 0), *bias = slot_of(w, s->instr, 1);
    const Extent cut = extent_of(matrix);

    if (cut_by(matrix, "columns")) {
        davit_linear_attr *attr;

        if (!same(s->in[0], cut))
            return "its input is not cut as the columns of its matrix are";
        if (extent_of(bias).cut)
            return "its bias is cut, its output is not";
        s->reduce = true;
        if (w->draft->plan->rank == 0)
            return NULL;
        /* what is added once, to the sum, is rank 0's to bring */
        attr = attr_of_size(s->instr, sizeof *attr);
        attr->flags &= ~DAVIT_LINEAR_ADD;
        if (s->instr->n_weights > 1)
            s->instr->weight[1] = -1;
        return NULL;
    }
    if (s->in[0].cut)
        return "its input is cut, the columns of its matrix are not";
    if (bias && !same(extent_of(bias), cut))
        return "its bias is not cut as the rows of its matrix are";
    if (matrix && matrix->cut && !cut_by(matrix, "rows") && !cut_by(matrix, "vocabulary rows"))
        return "its matrix is cut along an axis that it cannot be read along";
    s->out = cut;
    s->gather = cut_by(matrix, "vocabulary rows");
    return NULL;
}

static const char *rule_embed(Walk *w, Step *s)
{
    const DavitSlot *matrix = slot_of(w, s->instr, 0);
    davit_embed_attr *attr;

    if (!matrix || !matrix->cut)
        return NULL;
    if (!cut_by(matrix, "vocabulary rows"))
        return "its matrix is not cut by rows of the vocabulary";
    attr = attr_of_size(s->instr, sizeof *attr);
    attr->flags |= DAVIT_EMBED_PART;
    attr->row_offset -= (int64_t)matrix->cut_first;
    s->reduce = true; /* one rank has the row, the others zeros */
    return NULL;
}

static const char *rule_moe(Walk *w, Step *s)
{
    const Extent cut = extent_of(slot_of(w, s->instr, 0));
    davit_moe_ffn_attr *attr;

    if (s->in[0].cut || s->in[1].cut || s->in[2].cut)
        return "its input is cut";
    for (uint32_t i = 0; i < s->instr->n_weights; i++) {
        const DavitSlot *slot = slot_of(w, s->instr, i);

        if (s->instr->weight[i] < 0)
            continue; /* an expert without this bias */
        if (!same(extent_of(slot), cut) || (cut.cut && !cut_by(slot, "experts")))
            return "its matrices are not cut by the same experts";
    }
    if (!cut.cut)
        return NULL;
    attr = attr_of_size(s->instr, sizeof *attr);
    attr->flags |= DAVIT_MOE_PART;
    attr->first_expert = cut.first;
    s->reduce = true;
    return NULL;
}

/* Row by row and column by column: everything cut alike. */
static const char *rule_same(Walk *w, Step *s)
{
    (void)w;
    for (uint32_t i = 1; i < s->instr->n_in; i++)
        if (!same(s->in[i], s->in[0]))
            return "its inputs are not cut alike";
    s->out = s->in[0];
    return NULL;
}

/* Norms of whole heads stay within a rank; a norm over all columns does not. */
static const char *rule_norm(Walk *w, Step *s)
{
    const davit_norm_attr *attr = s->instr->attr;
    const uint64_t width = w->program->values[s->instr->in[0]].width;
    const uint64_t groups = attr && attr->n_groups ? attr->n_groups : 1;
    const DavitSlot *gain = slot_of(w, s->instr, 0);

    s->out = s->in[0];
    if (!s->in[0].cut)
        return extent_of(gain).cut ? "its gain is cut, its input is not" : NULL;
    if (extent_of(gain).cut)
        return groups > 1 && same(extent_of(gain), s->in[0])
                   ? NULL
                   : "its norm is over columns of several ranks";
    return gain && gain->n_rows == width / groups && s->in[0].first % (width / groups) == 0
               ? NULL
               : "its norm is over columns of several ranks";
}

static const char *rule_rope(Walk *w, Step *s)
{
    const davit_rope_attr *attr = s->instr->attr;
    (void)w;

    s->out = s->in[0];
    if (s->in[1].cut || (s->in[0].cut && (!attr || attr->head_dim == 0 ||
                                          s->in[0].first % attr->head_dim)))
        return "its input is not cut at whole heads";
    return NULL;
}

/* Which heads a state has, for what checkpoints say of each head. Keys that are not cut at whole
 * heads are refused where attention reads them. */
static void note_heads(const davit_state_spec *spec, Extent keys, DavitStatePart *out)
{
    if (keys.cut && spec->k_dim) {
        out->first = keys.first / spec->k_dim;
        out->whole = keys.whole / spec->k_dim;
    }
}

static const char *rule_kv_append(Walk *w, Step *s)
{
    const uint64_t k = w->program->values[s->instr->in[0]].width;
    const uint64_t v = w->program->values[s->instr->in[1]].width;

    if (s->in[0].cut != s->in[1].cut || s->in[0].first * v != s->in[1].first * k)
        return "keys and values are not cut alike";
    w->state[s->instr->state] = s->in[0];
    note_heads(&w->program->states[s->instr->state], s->in[0],
               &w->program->state_part[s->instr->state]);
    return NULL;
}

/* Every head of this rank finds the KV head that it has in the whole model. */
static bool heads_meet(const davit_attn_attr *a, uint64_t q_first, uint64_t q_all,
                       uint64_t kv_first, uint64_t kv_all)
{
    for (uint64_t h = 0; h < a->n_heads; h++)
        if ((q_first + h) * kv_all / q_all != kv_first + h * a->n_kv_heads / a->n_heads)
            return false;
    return true;
}

static const char *rule_attn(Walk *w, Step *s)
{
    const davit_attn_attr *a = s->instr->attr;
    const Extent q = s->in[0], kv = w->state[s->instr->state];
    const Extent sinks = extent_of(slot_of(w, s->instr, 0));

    if (!q.cut)
        return kv.cut || sinks.cut ? "its keys are cut, its queries are not" : NULL;
    if (!a || a->k_dim == 0 || a->n_heads == 0 || q.first % a->k_dim || kv.first % a->k_dim)
        return "its input is not cut at whole heads";
    if (!heads_meet(a, q.first / a->k_dim, q.whole / a->k_dim, kv.first / a->k_dim,
                    kv.cut ? kv.whole / a->k_dim : a->n_kv_heads))
        return "a head's keys are on another rank";
    if (s->instr->n_weights && s->instr->weight[0] >= 0 &&
        !(sinks.cut && sinks.first == q.first / a->k_dim))
        return "its sinks are not cut as its heads are";
    s->out = (Extent){true, q.first / a->k_dim * a->v_dim, q.whole / a->k_dim * a->v_dim};
    return NULL;
}

/* What nothing is known of: everything whole, on every rank the same. */
static const char *rule_whole(Walk *w, Step *s)
{
    for (uint32_t i = 0; i < s->instr->n_in; i++)
        if (s->in[i].cut)
            return "no rule says how ranks share it";
    for (uint32_t i = 0; i < s->instr->n_weights; i++)
        if (extent_of(slot_of(w, s->instr, i)).cut)
            return "no rule says how ranks share its weight";
    return NULL;
}

static const struct {
    const char *op;
    const char *(*rule)(Walk *w, Step *s);
} rules[] = {
    {DAVIT_OP_EMBED, rule_embed},   {DAVIT_OP_LINEAR, rule_linear},
    {DAVIT_OP_RMSNORM, rule_norm},  {DAVIT_OP_LAYERNORM, rule_norm},
    {DAVIT_OP_ADD, rule_same},      {DAVIT_OP_SCALE, rule_same},
    {DAVIT_OP_SOFTCAP, rule_same},  {DAVIT_OP_ACT, rule_same},
    {DAVIT_OP_GLU, rule_same},      {DAVIT_OP_GATHER_ROWS, rule_same},
    {DAVIT_OP_ROPE, rule_rope},     {DAVIT_OP_KV_APPEND, rule_kv_append},
    {DAVIT_OP_ATTN, rule_attn},     {DAVIT_OP_MOE_FFN, rule_moe},
};

static const char *apply_rule(Walk *w, Step *s)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        if (strcmp(rules[i].op, s->instr->op) == 0)
            return rules[i].rule(w, s);
    return rule_whole(w, s);
}

/* ---- the walk ---- */

static int32_t refuse(Walk *w, const DavitInstr *instr, const char *why)
{
    DavitReport *report = w->draft->report;

    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_CONFIG_UNSUPPORTED,
                        .status = DAVIT_E_UNSUPPORTED,
                        .purposes = DAVIT_RUN,
                        .stage = "plan",
                        .who = w->who,
                        .subject = instr ? instr->op : "output",
                        .found = instr ? davit_report_text(report, "--tp %u, layer %" PRId64,
                                                           w->draft->plan->tp, instr->layer)
                                       : NULL,
                        .message = davit_report_text(report, "ranks cannot share this op: %s", why),
                        .hint = "the model runs in one process"});
}

static int32_t walk_instr(Walk *w, const DavitInstr *old)
{
    Step s = {.out = all_of_it};
    const char *why;

    g_array_append_vals(w->instrs, old, 1);
    s.instr = last(w);
    for (uint32_t i = 0; i < old->n_in; i++) {
        s.in[i] = w->value[old->in[i]];
        s.instr->in[i] = w->moved[old->in[i]];
    }
    for (uint32_t i = 0; i < old->n_out; i++)
        s.instr->out[i] = w->moved[old->out[i]];
    why = apply_rule(w, &s);
    if (why)
        return refuse(w, old, why);
    for (uint32_t i = 0; i < old->n_out; i++)
        w->value[old->out[i]] = s.gather ? all_of_it : s.out;
    if (s.reduce)
        add_reduce(w, w->moved[old->out[0]], old->layer);
    if (s.gather)
        add_gather(w, w->moved[old->out[0]], s.out, old->layer);
    return DAVIT_OK;
}

/* The old program's instructions now lie in w->instrs, with their attributes. */
static void take_instrs(Walk *w)
{
    gsize n = 0;

    g_free(w->program->instrs);
    w->program->instrs = g_array_steal(w->instrs, &n);
    w->program->n_instrs = n;
}

int32_t davit_ranks_complete(DavitDraft *draft, DavitProgram *program, const char *who)
{
    const size_t n_values = program->n_values;
    g_autofree Extent *value = g_new0(Extent, n_values + 1);
    g_autofree Extent *state = g_new0(Extent, program->n_states + 1);
    g_autofree int32_t *moved = g_new0(int32_t, n_values + 1);
    g_autoptr(GArray) instrs = g_array_new(FALSE, FALSE, sizeof(DavitInstr));
    Walk w = {.draft = draft,
              .program = program,
              .who = who,
              .value = value,
              .moved = moved,
              .state = state,
              .instrs = instrs};
    int32_t status = DAVIT_OK;
    size_t at = 0;

    for (size_t v = 0; v < n_values; v++)
        moved[v] = (int32_t)v;
    for (; at < program->n_instrs && !status; at++)
        status = walk_instr(&w, &program->instrs[at]);
    if (!status && program->output >= 0 && value[program->output].cut)
        status = refuse(&w, NULL, "the output is cut");
    if (program->output >= 0)
        program->output = moved[program->output];
    /* nothing is lost when a rule stopped the walk: attributes have one owner */
    for (; at < program->n_instrs; at++)
        g_array_append_val(instrs, program->instrs[at]);
    take_instrs(&w);
    return status;
}
