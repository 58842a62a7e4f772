/* SPDX-License-Identifier: Apache-2.0
 * Modules without an architecture: for inspect and dump. Float32 in canonical order, tile
 * by tile through the quant plugin, from the file's mapping. */
#include <string.h>

#include "plan/module.h"
#include "plan/tools.h"

#define TILE_ROWS 64u

/* A module that cannot be read takes nothing from an inspection but its weights: what its
 * plugin says becomes a warning. */
static void add_as_warnings(DavitReport *report, const DavitReport *from)
{
    for (size_t i = 0; i < davit_report_count(from); i++) {
        const DavitRecord *r = davit_report_get(from, i);

        davit_report_add(report,
                         &(DavitFinding){.code = r->code,
                                         .severity = MIN(r->severity, DAVIT_WARNING),
                                         .stage = r->stage,
                                         .who = r->who,
                                         .subject = r->subject,
                                         .expected = r->expected,
                                         .found = r->found,
                                         .message = r->message,
                                         .hint = r->hint});
    }
}

DavitModules *davit_modules_find(DavitRegistry *registry, const DavitCheckpoint *checkpoint,
                                 const DavitSettings *settings, uint32_t allow,
                                 DavitReport *report)
{
    g_autoptr(GArray) quants = davit_tools_quants(registry);
    g_autoptr(davit_config) config = settings ? davit_config_bare(settings) : NULL;
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitQuantConfig) quant_config =
        davit_quant_config_new(settings, checkpoint, allow, said);
    g_autoptr(DavitModuleTable) table =
        davit_module_table_new(checkpoint, quants, config, quant_config);

    for (size_t i = 0; i < davit_module_table_count(table); i++)
        davit_module_table_need(table, davit_module_table_at(table, i), said);
    add_as_warnings(report, said);
    davit_module_table_note_rest(table, report);
    return davit_module_table_steal(table);
}

static int32_t view_parts(const DavitModule *module, const DavitCheckpoint *checkpoint,
                          davit_quant_bytes *parts, DavitReport *report)
{
    for (uint32_t p = 0; p < module->desc->n_parts; p++) {
        const size_t tensor = module->tensor[module->desc->parts[p].index];
        const davit_tensor_info *t = davit_checkpoint_tensor(checkpoint, tensor);
        const int32_t status = davit_checkpoint_view(checkpoint, t->file, t->off,
                                                     t->n_bytes, &parts[p].ptr, report);

        if (status)
            return status;
        parts[p].n_bytes = t->n_bytes;
    }
    return DAVIT_OK;
}

int32_t davit_module_verify(const DavitModule *module, const davit_quant_tile *tile,
                            const char *stage, DavitReport *report)
{
    g_autoptr(DavitReport) said = NULL;
    DavitSink sink;
    int32_t status;

    if (!module->iface->verify)
        return DAVIT_OK;
    said = davit_report_new();
    davit_sink_init(&sink, said, module->quant ? module->quant->id : "core", stage);
    status = davit_sink_done(&sink, module->iface->verify(module->self, tile, &sink.abi));
    for (size_t i = 0; i < davit_report_count(said); i++) {
        const DavitRecord *r = davit_report_get(said, i);

        davit_report_add(report,
                         &(DavitFinding){.code = r->code,
                                         .status = r->status,
                                         .severity = r->severity,
                                         .stage = r->stage,
                                         .who = r->who,
                                         .subject = davit_report_text(
                                             report, "%s: %s", module->name,
                                             r->subject ? r->subject : "its rows"),
                                         .expected = r->expected,
                                         .found = r->found,
                                         .message = r->message,
                                         .hint = r->hint});
    }
    return status;
}

static int32_t decode_tile(const DavitModule *module, const davit_quant_tile *tile,
                           float *out, DavitReport *report)
{
    davit_quant_out to = {.struct_size = DAVIT_END(davit_quant_out, divide),
                          .form = DAVIT_FORM_F32,
                          .values = out,
                          .stride = module->desc->n_cols};

    const int32_t status = davit_module_verify(module, tile, "decode", report);

    if (status)
        return status;
    module->iface->decode(module->self, tile, &to);
    return DAVIT_OK;
}

int32_t davit_module_decode(const DavitModule *module, const DavitCheckpoint *checkpoint,
                            uint64_t expert, uint64_t row, uint64_t n_rows, float *out,
                            DavitReport *report)
{
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    const davit_quant_desc *desc = module->desc;
    davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                             .desc = desc,
                             .parts = parts,
                             .expert = expert,
                             .n_cols = desc->n_cols};
    int32_t status;

    if (!module->quant)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_QUANT_UNKNOWN,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .stage = "decode",
                                    .subject = module->name,
                                    .message = "no plugin reads this module's layout",
                                    .hint = "--raw writes the stored bytes"});
    if (expert >= desc->n_experts || row > desc->n_rows || n_rows > desc->n_rows - row)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                    .status = DAVIT_E_USAGE,
                                    .stage = "decode",
                                    .subject = module->name,
                                    .expected = davit_report_text(
                                        report, "%" PRIu64 " experts of %" PRIu64 " rows",
                                        desc->n_experts, desc->n_rows),
                                    .found = davit_report_text(
                                        report, "expert %" PRIu64 ", row %" PRIu64 ", %" PRIu64
                                                " rows",
                                        expert, row, n_rows),
                                    .message = "rows outside the module were asked for"});
    status = view_parts(module, checkpoint, parts, report);
    for (uint64_t at = 0; !status && at < n_rows; at += tile.n_rows) {
        tile.row = row + at;
        tile.n_rows = MIN(TILE_ROWS, n_rows - at);
        status = decode_tile(module, &tile, out + at * desc->n_cols, report);
    }
    return status;
}
