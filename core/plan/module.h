/* SPDX-License-Identifier: Apache-2.0
 * The modules of a checkpoint: stored tensors grouped by module name, claimed by a quant
 * plugin once per signature (suffixes, dtypes, ranks), checked one by one when needed.
 *
 * Linear in the number of tensors. Grouping reads names only, those of layers and experts that are
 * alike once (series.h); no plugin is asked before a module is needed.
 */
#ifndef DAVIT_PLAN_MODULE_H
#define DAVIT_PLAN_MODULE_H

#include "plan/draft.h"
#include "plan/quant_config.h"

/* All arguments are borrowed until free; @config and @quant_config may be NULL.
 * Returns: (owned) */
DavitModuleTable *davit_module_table_new(const DavitCheckpoint *checkpoint,
                                         const GArray *quants, const davit_config *config,
                                         const DavitQuantConfig *quant_config);
void davit_module_table_free(DavitModuleTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitModuleTable, davit_module_table_free)

size_t davit_module_table_count(const DavitModuleTable *table);
/* (borrowed from the table, until its modules are stolen) @index < count, in name order
 * of each module's first tensor. */
DavitModule *davit_module_table_at(const DavitModuleTable *table, size_t index);
/* (borrowed, same) NULL if no tensor belongs to a module of the name of @len bytes at @name. */
DavitModule *davit_module_table_find(const DavitModuleTable *table, const char *name,
                                     size_t len);
/* The modules "HEAD NUMBER TAIL" for numbers below @n as far as series (series.h) have them: index of
 * each, UINT32_MAX = not in a series (find may have it). (owned, g_free) NULL = no series. */
uint32_t *davit_module_table_run(const DavitModuleTable *table, const char *head, size_t head_len,
                                 const char *tail, uint64_t n);

/* Claim and check @module, once: later calls repeat the status without new records.
 * Errors: QUANT_UNKNOWN naming the suffixes, a refusal of the claiming plugin, whatever
 * its check says. After DAVIT_OK module->quant and ->desc are set. */
int32_t davit_module_table_need(DavitModuleTable *table, DavitModule *module,
                                DavitReport *report);

/* Purposes that the plugin of @module can serve, 0 before it was needed. */
uint64_t davit_module_table_purposes(const DavitModuleTable *table,
                                     const DavitModule *module);

/* Notes that say how many modules share a layout that nobody takes. */
void davit_module_table_note_rest(const DavitModuleTable *table, DavitReport *report);

/* (owned) All modules, which keep their addresses; the table is only to be freed then. */
DavitModules *davit_module_table_steal(DavitModuleTable *table);

/* What @module's plugin says about the payload of @tile's rows; each record names the module.
 * @stage of the records. Errors: the plugin's. */
int32_t davit_module_verify(const DavitModule *module, const davit_quant_tile *tile,
                            const char *stage, DavitReport *report);

/* (owned by @report) "[64, 32]" of a tensor's shape; "[]" for a scalar. */
const char *davit_shape_text(DavitReport *report, const uint64_t *shape, uint32_t rank);

#endif
