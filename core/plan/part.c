/* SPDX-License-Identifier: Apache-2.0
 * Parts and cuts. What a plugin says of a cut is held against the tensors before it is
 * used. */
#include "plan/part.h"

#include <string.h>

#include "plan/claim.h"

const davit_tensor_info *davit_part_tensor(const DavitPlan *plan,
                                           const DavitModule *module, size_t part)
{
    return davit_checkpoint_tensor(plan->checkpoint,
                                   module->tensor[module->desc->parts[part].index]);
}

uint64_t davit_part_bytes(const DavitPlan *plan, const DavitModule *module, size_t part)
{
    const davit_quant_range *r = module->cut ? &module->cut->ranges[part] : NULL;

    return r ? r->n_bytes * r->n_runs * r->n_planes
             : davit_part_tensor(plan, module, part)->n_bytes;
}

uint64_t davit_part_off(const DavitPlan *plan, const DavitModule *module, size_t part,
                        uint64_t pos, uint64_t *out_run)
{
    const davit_tensor_info *t = davit_part_tensor(plan, module, part);
    const davit_quant_range *r = module->cut ? &module->cut->ranges[part] : NULL;
    uint64_t run;

    if (!r) {
        *out_run = t->n_bytes - pos;
        return t->off + pos;
    }
    run = pos / r->n_bytes;
    *out_run = r->n_bytes - pos % r->n_bytes;
    return t->off + r->off + run / r->n_runs * r->plane + run % r->n_runs * r->stride +
           pos % r->n_bytes;
}

bool davit_module_in_place(const DavitModule *module)
{
    for (uint32_t p = 0; module->cut && p < module->desc->n_parts; p++) {
        if (module->cut->ranges[p].n_runs != 1 || module->cut->ranges[p].n_planes != 1)
            return false;
    }
    return true;
}

/* ---- cuts ---- */

/* What holds for any layout whose rows lie one after another. */
static int32_t cut_rows(const davit_quant_desc *d, const davit_quant_box *box,
                        davit_quant_cut *out, DavitReport *report)
{
    bool fits = box->n_cols == d->n_cols && d->row_unit && box->row % d->row_unit == 0;

    fits &= (box->row + box->n_rows) % MAX(d->row_unit, 1) == 0 ||
            box->row + box->n_rows == d->n_rows;
    out->desc = *d;
    out->desc.n_experts = box->n_experts;
    out->desc.n_rows = box->n_rows;
    for (uint32_t p = 0; p < d->n_parts; p++) {
        const uint64_t row = d->parts[p].row_bytes;

        fits &= row != 0;
        out->ranges[p].off = (box->expert * d->n_rows + box->row) * row;
        out->ranges[p].n_bytes = box->n_rows * row;
        out->ranges[p].n_runs = 1;
        out->ranges[p].n_planes = box->n_experts;
        out->ranges[p].plane = d->n_rows * row;
    }
    return fits
               ? DAVIT_OK
               : davit_report_add(
                     report,
                     &(DavitFinding){
                         .code = DAVIT_R_QUANT_PARAMS,
                         .status = DAVIT_E_UNSUPPORTED,
                         .stage = "plan",
                         .subject = d->layout,
                         .expected = davit_report_text(
                             report, "multiples of %" PRIu64 " whole outputs",
                             d->row_unit),
                         .found = davit_report_text(report,
                                                    "%" PRIu64 " to %" PRIu64 ", %" PRIu64
                                                    " of %" PRIu64 " inputs",
                                                    box->row, box->row + box->n_rows,
                                                    box->n_cols, d->n_cols),
                         .message = "its quant plugin cannot cut the layout"});
}

/* Bytes of @r as it lies: inside @all? Planes and runs may not overlap. */
static bool range_fits(const davit_quant_range *r, uint64_t all)
{
    uint64_t plane, end;

    if (r->n_bytes == 0 || r->n_runs == 0 || r->n_planes == 0 ||
        (r->n_runs > 1 && r->stride < r->n_bytes) ||
        __builtin_mul_overflow(r->n_runs - 1, r->stride, &plane) ||
        __builtin_add_overflow(plane, r->n_bytes, &plane) ||
        (r->n_planes > 1 && r->plane < plane) ||
        __builtin_mul_overflow(r->n_planes - 1, r->plane, &end) ||
        __builtin_add_overflow(end, plane, &end) ||
        __builtin_add_overflow(end, r->off, &end))
        return false;
    return end <= all;
}

static bool parts_fit(const DavitPlan *plan, const DavitModule *module,
                      const davit_quant_box *box, davit_quant_cut *cut)
{
    const davit_quant_desc *d = &cut->desc;

    if (d->n_experts != box->n_experts || d->n_rows != box->n_rows ||
        d->n_cols != box->n_cols || d->layout != module->desc->layout ||
        d->n_parts != module->desc->n_parts || !(d->forms & DAVIT_FORM_F32) ||
        d->row_unit == 0 || davit_codes_wrong(&d->codes, d->n_cols))
        return false;
    for (uint32_t p = 0; p < d->n_parts; p++) {
        const davit_tensor_info *t = davit_part_tensor(plan, module, p);
        davit_quant_range *r = &cut->ranges[p];
        uint64_t rows;

        if (d->parts[p].index != module->desc->parts[p].index)
            return false;
        if (r->n_bytes == 0)
            *r = (davit_quant_range){.n_bytes = t->n_bytes, .n_runs = 1, .n_planes = 1};
        if (!range_fits(r, t->n_bytes))
            return false;
        rows = d->n_experts * d->n_rows; /* of a checked module: no overflow */
        if (d->parts[p].row_bytes &&
            (d->parts[p].row_bytes > t->n_bytes / rows ||
             d->parts[p].row_bytes * rows != r->n_bytes * r->n_runs * r->n_planes))
            return false;
    }
    return true;
}

static int32_t ask_plugin(const DavitModule *module, const davit_quant_box *box,
                          davit_quant_cut *out, DavitReport *report)
{
    DavitSink sink;

    if (!module->iface->cut)
        return cut_rows(module->desc, box, out, report);
    davit_sink_init(&sink, report, module->quant ? module->quant->id : "core", "plan");
    return davit_sink_done(
        &sink, module->iface->cut(module->self, module->desc, box, out, &sink.abi));
}

static DavitModuleCut *cut_new(const DavitModule *whole, const davit_quant_box *box,
                               const davit_quant_range *ranges)
{
    DavitModuleCut *cut = g_new0(DavitModuleCut, 1);

    cut->whole = whole;
    cut->box = *box;
    memcpy(cut->ranges, ranges, sizeof cut->ranges);
    return cut;
}

int32_t davit_module_cut(const DavitDraft *draft, const DavitModule *module,
                         const davit_quant_box *box, const DavitModule **out,
                         DavitReport *report)
{
    davit_quant_cut cut = {.struct_size = DAVIT_END(davit_quant_cut, ranges)};
    const int32_t status = ask_plugin(module, box, &cut, report);
    DavitModule *made;

    if (status)
        return status;
    if (!parts_fit(draft->plan, module, box, &cut))
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_QUANT_PARAMS,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .stage = "plan",
                                    .who = module->quant ? module->quant->id : NULL,
                                    .subject = module->name,
                                    .found = module->desc->layout,
                                    .message = "what the quant plugin says of a cut "
                                               "does not fit the stored tensors",
                                    .hint = "this is a fault of the quant plugin"});
    if (!out)
        return DAVIT_OK;
    made = g_memdup2(module, sizeof *module);
    made->desc = g_memdup2(&cut.desc, sizeof cut.desc);
    made->cut = cut_new(module, box, cut.ranges);
    if (!draft->plan->cuts)
        draft->plan->cuts = g_ptr_array_new_with_free_func(davit_cut_module_free);
    g_ptr_array_add(draft->plan->cuts, made);
    *out = made;
    return DAVIT_OK;
}

void davit_cut_module_free(void *p)
{
    DavitModule *module = p;

    g_free((davit_quant_desc *)(uintptr_t)module->desc);
    g_free((DavitModuleCut *)(uintptr_t)module->cut);
    g_free(module);
}
