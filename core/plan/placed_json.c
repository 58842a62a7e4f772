/* SPDX-License-Identifier: Apache-2.0
 * What a placement takes of each device, as JSON. */
#include "plan/document.h"

json_t *davit_placed_json(const DavitPlan *plan)
{
    json_t *list = json_array();

    for (guint i = 0; plan->placed && i < plan->placed->len; i++) {
        const DavitPlaced *p = &g_array_index(plan->placed, DavitPlaced, i);
        json_t *one = json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I}", "device", p->device, "slots",
            (json_int_t)p->n_slots, "weight_bytes", (json_int_t)p->weight_bytes, "state_bytes",
            (json_int_t)p->state_bytes, "step_bytes", (json_int_t)p->step_bytes, "ctx",
            (json_int_t)plan->ctx);

        json_object_set_new(one, "budget_bytes",
                            p->budget_bytes ? json_integer((json_int_t)p->budget_bytes)
                                            : json_null());
        json_array_append_new(list, one);
    }
    return list;
}
