/* SPDX-License-Identifier: Apache-2.0
 * A module as the ABI shows it to a quant plugin.
 */
#ifndef DAVIT_PLAN_MODULE_VIEW_H
#define DAVIT_PLAN_MODULE_VIEW_H

#include "plan/draft.h"
#include "plan/quant_config.h"

/* Large and filled for every module: parts past the module's, settings and what only a check
 * sees are not set before they are read. */
typedef struct DavitModuleView {
    davit_quant_part_in part[DAVIT_MAX_PARTS];
    const davit_quant_part_in *parts[DAVIT_MAX_PARTS];
    davit_quant_module module;
    davit_quant_settings settings;
    /* behind peek */
    const DavitCheckpoint *checkpoint;
    const uint32_t *tensor;
    DavitReport *report;
    bool peeked; /* the plugin asked for bytes */
} DavitModuleView;

/* @view of @module for a claim: names, dtypes, ranks. Everything borrowed. */
void davit_module_view_init(DavitModuleView *view, const DavitCheckpoint *checkpoint,
                            const davit_config *config, const DavitModule *module);
/* And what only a check may see: settings of this module, bytes of small parts. @quant_config
 * may be NULL. */
void davit_module_view_for_check(DavitModuleView *view, const DavitQuantConfig *quant_config,
                                 const DavitModule *module, DavitReport *report);

/* (owned) "weight:bf16/1:2;" for each part. */
char *davit_module_view_signature(const DavitModuleView *view);
/* (owned) "weight u8/1 rank 2, weight_scale ...", for people. */
char *davit_module_view_parts(const DavitModuleView *view);

#endif
