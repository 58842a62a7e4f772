/* SPDX-License-Identifier: Apache-2.0
 * Which quant plugin understands a module: asked once per distinct signature, then
 * checked per module.
 */
#ifndef DAVIT_PLAN_CLAIM_H
#define DAVIT_PLAN_CLAIM_H

#include "plan/draft.h"
#include "plan/quant_config.h"

/* Does @codes say what quant.h does not know, for a matrix of @n_cols? */
bool davit_codes_wrong(const davit_quant_codes *codes, uint64_t n_cols);

typedef struct DavitClaims DavitClaims;

/* What is known of one module. */
typedef struct DavitModuleState {
    uint64_t purposes; /* that the claiming plugin can serve */
    int32_t status;    /* of claim and check */
    bool asked;
} DavitModuleState;

/* All arguments are borrowed until free; @config and @quant_config may be NULL. @descs owns
 * what modules' desc will point to. Returns: (owned) */
DavitClaims *davit_claims_new(const DavitCheckpoint *checkpoint, const GArray *quants,
                              const davit_config *config,
                              const DavitQuantConfig *quant_config, GPtrArray *descs);
void davit_claims_free(DavitClaims *claims); /* NULL is fine */

/* Find the plugin, let it check @module, fill quant, iface, self and desc. */
int32_t davit_claims_ask(DavitClaims *claims, DavitModule *module, uint64_t *out_purposes,
                         DavitReport *report);

/* One note per layout that nobody takes and that more than one module has: only the first
 * of them got a record. */
void davit_claims_note_rest(const DavitClaims *claims, DavitReport *report);

#endif
