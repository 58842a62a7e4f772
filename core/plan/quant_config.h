/* SPDX-License-Identifier: Apache-2.0
 * What the configuration says about quantisation: every place where it may stand, every
 * dialect of its lists, resolved to one davit_quant_settings per module.
 *
 * It is advice for quant plugins, which go by the tensors. What contradicts itself (two files,
 * two groups for one module) or asks for math that nobody here does (rotated weights) is
 * refused while it is read. Immutable afterwards.
 */
#ifndef DAVIT_PLAN_QUANT_CONFIG_H
#define DAVIT_PLAN_QUANT_CONFIG_H

#include <davit/quant.h>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "config/config.h"

typedef struct DavitQuantConfig DavitQuantConfig;

/* From config.json's block (@settings, may be NULL) and the files beside the weights that say
 * the same: hf_quant_config.json, quantize_config.json, quant_config.json. @allow: bits that go
 * into every davit_quant_settings. All findings are reported; none stops the reading.
 * Returns: (owned) or NULL when nothing is stated anywhere. */
DavitQuantConfig *davit_quant_config_new(const DavitSettings *settings,
                                         const DavitCheckpoint *checkpoint, uint32_t allow,
                                         DavitReport *report);
/* The same from texts: @block is config.json's (may be NULL), @file a further one. For tests. */
DavitQuantConfig *davit_quant_config_parse(const json_t *block, const json_t *file,
                                           const char *file_name, DavitReport *report);
void davit_quant_config_free(DavitQuantConfig *config); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitQuantConfig, davit_quant_config_free)

/* Settings of module @module ("model.layers.0.mlp.up_proj"). False if @config is NULL; texts
 * live as long as @config. */
bool davit_quant_config_for(const DavitQuantConfig *config, const char *module,
                            davit_quant_settings *out);

/* Does a list leave @module out, by the rules of its dialect? */
bool davit_quant_config_ignores(const DavitQuantConfig *config, const char *module);

/* What is stated of keys and values. */
typedef struct DavitQuantCache {
    const char *type;     /* "fp8" for E4M3, else in the file's words; NULL = not stated */
    const char *strategy; /* "tensor" "attn_head" ...; NULL = not stated */
} DavitQuantCache;

/* Texts live as long as @config, which may be NULL. */
DavitQuantCache davit_quant_config_cache(const DavitQuantConfig *config);

#endif
