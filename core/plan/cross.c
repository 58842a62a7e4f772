/* SPDX-License-Identifier: Apache-2.0
 * Two walks over a program: the first gives calls their devices, the second copies values to
 * where they are read. */
#include "plan/cross.h"

#include <string.h>

#include "plan/program.h"
#include "plan/ranks.h"

#define NOWHERE UINT32_MAX

bool davit_is_cross_op(const char *op)
{
    return strcmp(op, DAVIT_OP_CROSS) == 0;
}

/* ---- legs ---- */

GArray *davit_legs(const DavitProgram *program)
{
    GArray *legs = g_array_new(FALSE, FALSE, sizeof(DavitLeg));

    for (size_t i = 0; i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        DavitLeg *leg = legs->len ? &g_array_index(legs, DavitLeg, legs->len - 1) : NULL;

        if (!leg || leg->device != instr->device) {
            const DavitLeg fresh = {.device = instr->device,
                                    .first = i,
                                    .begin = i,
                                    .first_layer = -1,
                                    .last_layer = -1};

            g_array_append_val(legs, fresh);
            leg = &g_array_index(legs, DavitLeg, legs->len - 1);
        }
        if (davit_is_cross_op(instr->op))
            leg->begin = i + 1;
        leg->end = i + 1;
        if (instr->layer < 0)
            continue;
        leg->first_layer = leg->first_layer < 0 ? instr->layer : leg->first_layer;
        leg->last_layer = instr->layer;
    }
    return legs;
}

uint64_t davit_value_bytes(const DavitValue *value, uint64_t n_tokens, uint64_t n_rows)
{
    return (value->rows == DAVIT_ROWS_R ? n_rows : n_tokens) * value->width * 4;
}

uint64_t davit_leg_bytes(const DavitProgram *program, const DavitLeg *leg, uint64_t n_tokens,
                         uint64_t n_rows)
{
    uint64_t sum = 0;

    for (size_t i = leg->first; i < leg->begin; i++)
        sum += davit_value_bytes(&program->values[program->instrs[i].in[0]], n_tokens, n_rows);
    return sum;
}

uint64_t davit_staging_bytes(const DavitProgram *program, uint64_t n_tokens, uint64_t n_rows)
{
    g_autoptr(GArray) legs = davit_legs(program);
    uint64_t most = 0;

    for (guint l = 0; l < legs->len; l++) {
        const DavitLeg *leg = &g_array_index(legs, DavitLeg, l);
        uint64_t sum = 0;

        if (leg->device == DAVIT_ON_HOST)
            continue;
        for (size_t i = leg->first; i < leg->begin; i++) {
            const DavitValue *from = &program->values[program->instrs[i].in[0]];
            const uint64_t n = davit_value_bytes(from, n_tokens, n_rows);

            if (from->device != DAVIT_ON_HOST)
                sum += (n + DAVIT_STAGING_ALIGN - 1) / DAVIT_STAGING_ALIGN * DAVIT_STAGING_ALIGN;
        }
        most = MAX(most, sum);
    }
    return most;
}

/* ---- the first walk: who does what ---- */

typedef struct Walk {
    DavitPlan *plan;
    DavitProgram *program;
    const uint32_t *layers;
    DavitReport *report;
    /* second walk */
    uint32_t *home;   /* (owned) [n_values before] where it was written last */
    int32_t *here;    /* (owned) [n_values before, n_devices] the value that stands for it there,
                       * -1 = it is not there */
    GArray *instrs;   /* (owned) DavitInstr: the new program */
} Walk;

static int32_t refuse(const Walk *w, const DavitInstr *instr, uint32_t a, uint32_t b)
{
    return davit_report_add(
        w->report,
        &(DavitFinding){.code = DAVIT_R_NOT_BUILT,
                        .status = DAVIT_E_UNSUPPORTED,
                        .purposes = DAVIT_RUN,
                        .stage = "plan",
                        .subject = instr->op,
                        .expected = "one device for the weights and the state of a call",
                        .found = davit_report_text(w->report, "%s and %s, layer %" PRId64,
                                                   w->plan->devices[a].name,
                                                   w->plan->devices[b].name, instr->layer),
                        .message = "a call reads what lies on two devices",
                        .hint = "give the weights that it reads the same device in the device "
                                "map"});
}

/* Device of @instr, which has something on *device (NOWHERE = nothing yet) and on @other. */
static int32_t join(const Walk *w, const DavitInstr *instr, uint32_t other, uint32_t *device)
{
    if (*device != NOWHERE && *device != other)
        return refuse(w, instr, *device, other);
    *device = other;
    return DAVIT_OK;
}

static int32_t device_of(const Walk *w, const DavitInstr *instr, uint32_t before,
                         uint32_t *out_device)
{
    uint32_t device = davit_is_rank_op(instr->op) ? DAVIT_ON_HOST : NOWHERE;
    int32_t status = DAVIT_OK;

    if (instr->state >= 0 && w->program->state_device[instr->state] != NOWHERE)
        device = w->program->state_device[instr->state];
    for (uint32_t k = 0; !status && k < instr->n_weights; k++) {
        const int32_t slot =
            instr->weight[k] < 0 ? -1 : w->program->weights[instr->weight[k]].slot;

        if (slot >= 0)
            status = join(w, instr, w->plan->slots[slot].device, &device);
    }
    if (device == NOWHERE && instr->layer >= 0 && (uint64_t)instr->layer < w->plan->n_layers)
        device = w->layers[instr->layer];
    *out_device = device == NOWHERE ? before : device;
    return status;
}

static int32_t assign_calls(const Walk *w)
{
    DavitProgram *p = w->program;
    uint32_t before = w->layers[w->plan->n_layers];
    int32_t worst = DAVIT_OK;

    for (size_t s = 0; s < p->n_states; s++)
        p->state_device[s] = NOWHERE;
    for (size_t i = 0; i < p->n_instrs; i++) {
        DavitInstr *instr = &p->instrs[i];

        worst = davit_worse(worst, device_of(w, instr, before, &instr->device));
        before = davit_is_rank_op(instr->op) ? before : instr->device;
        if (instr->state >= 0)
            p->state_device[instr->state] = instr->device;
    }
    for (size_t s = 0; s < p->n_states; s++) /* without a call on it */
        if (p->state_device[s] == NOWHERE)
            p->state_device[s] = before;
    return worst;
}

/* ---- tables: every device that reads one has its own ---- */

static int32_t copy_of(DavitProgram *p, int32_t table, uint32_t device)
{
    DavitWeightRef copy = p->weights[table];

    for (size_t w = 0; w < p->n_weights; w++)
        if (p->weights[w].is_copy && p->weights[w].constant == copy.constant &&
            p->weights[w].device == device)
            return (int32_t)w;
    copy.device = device;
    copy.is_copy = true;
    p->weights = g_renew(DavitWeightRef, p->weights, p->n_weights + 1);
    p->weights[p->n_weights] = copy;
    return (int32_t)p->n_weights++;
}

static void assign_tables(const Walk *w)
{
    DavitProgram *p = w->program;
    const size_t n = p->n_weights;
    g_autofree bool *seen = g_new0(bool, n + 1);

    for (size_t i = 0; i < p->n_instrs; i++) {
        DavitInstr *instr = &p->instrs[i];

        for (uint32_t k = 0; k < instr->n_weights; k++) {
            const int32_t at = instr->weight[k];

            if (at < 0)
                continue;
            if (!seen[at]) {
                seen[at] = true;
                p->weights[at].device = instr->device;
            } else if (p->weights[at].device != instr->device) {
                /* slots agree: their calls are where they are */
                instr->weight[k] = copy_of(p, at, instr->device);
            }
        }
    }
}

/* ---- the second walk: what crosses ---- */

static int32_t *here(const Walk *w, int32_t value, uint32_t device)
{
    return &w->here[(size_t)value * w->plan->n_devices + device];
}

static int32_t new_value(DavitProgram *p, int32_t like, uint32_t device)
{
    const DavitValue *old;

    p->values = g_renew(DavitValue, p->values, p->n_values + 1);
    old = &p->values[like];
    p->values[p->n_values] = (DavitValue){
        .dtype = old->dtype, .rows = old->rows, .width = old->width, .device = device};
    return (int32_t)p->n_values++;
}

/* What @instr reads and is not on its device. */
static void bring(Walk *w, const DavitInstr *instr)
{
    for (uint32_t k = 0; k < instr->n_in; k++) {
        const int32_t value = instr->in[k];
        DavitInstr cross = {.op = davit_intern(DAVIT_OP_CROSS),
                            .layer = instr->layer,
                            .state = -1,
                            .n_in = 1,
                            .n_out = 1,
                            .device = instr->device};

        if (w->home[value] == NOWHERE || *here(w, value, instr->device) >= 0)
            continue; /* written on this leg, or there */
        cross.in[0] = *here(w, value, w->home[value]);
        cross.out[0] = new_value(w->program, cross.in[0], instr->device);
        *here(w, value, instr->device) = cross.out[0];
        g_array_append_val(w->instrs, cross);
    }
}

/* @value is written on @device: what others have of it is old. */
static void write_value(Walk *w, int32_t value, uint32_t device)
{
    int32_t id = *here(w, value, device);

    if (w->home[value] == NOWHERE) {
        id = value;
        w->program->values[value].device = device;
    } else if (id < 0) {
        id = new_value(w->program, value, device);
    }
    for (uint32_t d = 0; d < w->plan->n_devices; d++)
        *here(w, value, d) = d == device ? id : -1;
    w->home[value] = device;
}

static void take_instr(Walk *w, DavitInstr instr)
{
    for (uint32_t k = 0; k < instr.n_in; k++)
        instr.in[k] = *here(w, instr.in[k], instr.device);
    for (uint32_t k = 0; k < instr.n_out; k++) {
        const int32_t value = instr.out[k];

        write_value(w, value, instr.device);
        instr.out[k] = *here(w, value, instr.device);
    }
    g_array_append_val(w->instrs, instr);
}

/* Instructions [first, end) are on one device. What they read of others is as it was before the
 * first of them: nobody else writes meanwhile. */
static void walk_leg(Walk *w, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        bring(w, &w->program->instrs[i]);
    for (size_t i = first; i < end; i++)
        take_instr(w, w->program->instrs[i]);
}

static void add_crossings(Walk *w)
{
    DavitProgram *p = w->program;
    g_autoptr(GArray) legs = davit_legs(p);
    gsize n = 0;

    for (guint l = 0; l < legs->len; l++)
        walk_leg(w, g_array_index(legs, DavitLeg, l).first, g_array_index(legs, DavitLeg, l).end);
    p->output = *here(w, p->output, w->home[p->output]);
    g_free(p->instrs); /* their attributes are in w->instrs now */
    p->instrs = g_array_steal(w->instrs, &n);
    p->n_instrs = n;
}

int32_t davit_cross_devices(DavitPlan *plan, const uint32_t *layers, DavitReport *report)
{
    DavitProgram *p = plan->program;
    const size_t n_here = p->n_values * plan->n_devices;
    g_autofree uint32_t *home = g_new(uint32_t, p->n_values + 1);
    g_autofree int32_t *at = g_new(int32_t, n_here + 1);
    g_autoptr(GArray) instrs = g_array_new(FALSE, FALSE, sizeof(DavitInstr));
    Walk w = {.plan = plan,
              .program = p,
              .layers = layers,
              .report = report,
              .home = home,
              .here = at,
              .instrs = instrs};
    const int32_t status = assign_calls(&w);

    if (status)
        return status;
    memset(home, 0xff, p->n_values * sizeof *home);
    memset(at, 0xff, n_here * sizeof *at);
    assign_tables(&w);
    add_crossings(&w);
    return davit_program_finish(p, plan->vocab, plan->arch->id, report);
}
