/* SPDX-License-Identifier: Apache-2.0
 * A ring. Layers ask in one order, so the search begins behind the one that was found last. */
#include "plan/known_entry.h"

#include <string.h>

static bool same_values(const DavitChooser *c, const int32_t *a, const int32_t *b, uint32_t n)
{
    const DavitValue *values = c->program->values;

    for (uint32_t i = 0; i < n; i++)
        if (values[a[i]].width != values[b[i]].width || values[a[i]].dtype != values[b[i]].dtype)
            return false;
    return true;
}

static bool same_attr(const DavitInstr *a, const DavitInstr *b)
{
    uint64_t n = 0, m = 0;

    if (!a->attr || !b->attr)
        return a->attr == b->attr;
    memcpy(&n, a->attr, sizeof n);
    memcpy(&m, b->attr, sizeof m);
    return n == m && memcmp(a->attr, b->attr, n) == 0;
}

static bool same_state(const DavitChooser *c, int32_t a, int32_t b)
{
    const DavitProgram *p = c->program;

    if (a < 0 || b < 0)
        return a < 0 && b < 0;
    return c->state_tool[a] == c->state_tool[b] &&
           p->state_block_bytes[a] == p->state_block_bytes[b] &&
           memcmp(&p->states[a], &p->states[b], sizeof p->states[a]) == 0;
}

/* @at: slot of weight @w of @instr, -1 = none. Absent, a constant of one size, or one option. */
static bool same_weight(const DavitChooser *c, const DavitKnownEntry *known,
                        const DavitInstr *instr, uint32_t w)
{
    const int32_t a = known->instr->weight[w], b = instr->weight[w];
    const int32_t at = davit_instr_slot(c, instr, w);
    const DavitWeightRef *refs = c->program->weights;

    if (a < 0 || b < 0)
        return a < 0 && b < 0;
    if (refs[a].n_rows != refs[b].n_rows || refs[a].n_cols != refs[b].n_cols)
        return false;
    if (at < 0)
        return davit_instr_slot(c, known->instr, w) < 0;
    return c->layout_of[at] && known->layouts[w] == c->layout_of[at];
}

static bool is_same(const DavitChooser *c, const DavitKnownEntry *known, const DavitInstr *instr)
{
    const DavitInstr *other = known->instr;

    if (!other || other->op != instr->op || other->n_in != instr->n_in ||
        other->n_out != instr->n_out || other->n_weights != instr->n_weights ||
        !same_attr(other, instr) || !same_state(c, other->state, instr->state) ||
        !same_values(c, other->in, instr->in, instr->n_in) ||
        !same_values(c, other->out, instr->out, instr->n_out))
        return false;
    for (uint32_t w = 0; w < instr->n_weights; w++)
        if (!same_weight(c, known, instr, w))
            return false;
    return true;
}

DavitKnownEntry *davit_known_entry(DavitChooser *c, const DavitInstr *instr)
{
    const uint32_t n = MIN(c->n_known, DAVIT_KNOWN_ENTRIES);
    DavitKnownEntry *known;

    for (uint32_t i = 1; i <= n; i++) {
        const uint32_t at = (c->known_hit + i) % n;

        if (is_same(c, &c->known[at], instr)) {
            c->known_hit = at;
            return &c->known[at];
        }
    }
    c->known_hit = c->n_known++ % DAVIT_KNOWN_ENTRIES;
    known = &c->known[c->known_hit];
    *known = (DavitKnownEntry){0};
    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t at = davit_instr_slot(c, instr, w);

        known->layouts[w] = at < 0 ? NULL : c->layout_of[at];
    }
    return known;
}
