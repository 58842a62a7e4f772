/* SPDX-License-Identifier: Apache-2.0
 * Which device does which layers, and what crosses between them, as JSON. */
#include "plan/cross.h"
#include "plan/document.h"

/* Values that come from one device, and their bytes. */
typedef struct From {
    uint64_t n_values, token_bytes, row_bytes;
} From;

/* (owned) Array: one for each device that something comes from before @leg. */
static json_t *crossings_json(const DavitPlan *plan, const DavitLeg *leg)
{
    const DavitProgram *program = plan->program;
    g_autofree From *from = g_new0(From, plan->n_devices);
    json_t *list = json_array();

    for (size_t i = leg->first; i < leg->begin; i++) {
        const DavitValue *value = &program->values[program->instrs[i].in[0]];
        From *f = &from[value->device];

        f->n_values++;
        f->token_bytes += davit_value_bytes(value, 1, 0);
        f->row_bytes += davit_value_bytes(value, 0, 1);
    }
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        if (from[d].n_values)
            json_array_append_new(
                list, json_pack("{s:s, s:I, s:I, s:I}", "from", plan->devices[d].name, "values",
                                (json_int_t)from[d].n_values, "bytes_per_token",
                                (json_int_t)from[d].token_bytes, "bytes_per_logit_row",
                                (json_int_t)from[d].row_bytes));
    }
    return list;
}

static json_t *layer_json(int64_t layer)
{
    return layer < 0 ? json_null() : json_integer(layer);
}

json_t *davit_legs_json(const DavitPlan *plan)
{
    json_t *list = json_array();
    g_autoptr(GArray) legs = NULL;

    if (!plan->program || plan->refused)
        return list;
    legs = davit_legs(plan->program);
    for (guint l = 0; l < legs->len; l++) {
        const DavitLeg *leg = &g_array_index(legs, DavitLeg, l);

        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:I, s:o}", "device",
                            plan->devices[leg->device].name, "first_layer",
                            layer_json(leg->first_layer), "last_layer",
                            layer_json(leg->last_layer), "calls",
                            (json_int_t)(leg->end - leg->begin), "crossings",
                            crossings_json(plan, leg)));
    }
    return list;
}
