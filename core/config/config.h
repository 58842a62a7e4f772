/* SPDX-License-Identifier: Apache-2.0
 * Settings of a model: one reader for config.json and GGUF keys, one alias table, and the
 * symbols that an architecture's config table asks for.
 *
 * DavitSettings is what the files say. davit_config (the ABI's opaque type) is that,
 * bound to one architecture's table: every symbol has a value, or the binding was
 * refused. It records what was read, so that a watched key which is set and was not read
 * refuses the model.
 *
 * Threads: open and bind on one thread; everything else is read-only, any thread.
 */
#ifndef DAVIT_CONFIG_CONFIG_H
#define DAVIT_CONFIG_CONFIG_H

#include <davit/arch.h>

#include "base/report.h"
#include "checkpoint/checkpoint.h"

typedef struct DavitSettings DavitSettings;

/* Read config.json beside the checkpoint (bounded, Python dialect), or its GGUF keys when
 * the checkpoint is a GGUF (files beside it are then not read, which is a note).
 * generation_config.json is read too when there. Returns:
 * (owned) settings, or NULL with records: config absent (DAVIT_R_CONFIG_MISSING), not
 * JSON, not an object. */
DavitSettings *davit_settings_open(const DavitCheckpoint *checkpoint,
                                   DavitReport *report);
/* From texts, for tests and estimate: @generation may be NULL. */
DavitSettings *davit_settings_parse(const char *config, size_t config_len,
                                    const char *generation, size_t generation_len,
                                    const char *subject, DavitReport *report);
void davit_settings_free(DavitSettings *settings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitSettings, davit_settings_free)

bool davit_settings_is_gguf(const DavitSettings *settings);
/* Names by which an architecture may claim the model, in the order to try:
 * architectures[] entries, model_type (nested text_config's after the wrapper's), or
 * general.architecture. (borrowed) NULL-terminated. */
const char *const *davit_settings_hf_names(const DavitSettings *settings);
const char *const *davit_settings_model_types(const DavitSettings *settings);
const char *
davit_settings_gguf_arch(const DavitSettings *settings); /* NULL if not GGUF */

/* Raw JSON of the whole config after nesting was resolved (nested keys win); NULL for
 * GGUF. (borrowed) */
const json_t *davit_settings_json(const DavitSettings *settings);
/* Quantisation block of the config (quantization_config or compression_config), or NULL.
 */
const json_t *davit_settings_quantization(const DavitSettings *settings);
/* All such blocks of config.json, that one first, then from the outermost level in. Returns:
 * (owned) const json_t * (borrowed); @out_paths takes where each stands, (owned)
 * "config.json: text_config.quantization_config". None for a GGUF. */
GPtrArray *davit_settings_quantizations(const DavitSettings *settings, GPtrArray *out_paths);

/* Values for the engine. Each answers from generation_config.json, config.json, GGUF
 * keys. */
/* EOS ids, de-duplicated: generation_config's, else config's, else GGUF's (incl.
 * eot/eom). */
const int32_t *davit_settings_eos_ids(const DavitSettings *settings, size_t *out_n);
int32_t davit_settings_bos_id(const DavitSettings *settings); /* -1 = none stated */
/* Sampling that the model asks for, all in range; NaN / -1 = not stated. top_k 0 = no
 * limit. */
typedef struct DavitGenerationDefaults {
    double temperature, top_p, min_p, repetition_penalty;
    int64_t top_k;
    bool do_sample;
} DavitGenerationDefaults;
void davit_settings_generation(const DavitSettings *settings,
                               DavitGenerationDefaults *out);

/* ---- bound to an architecture ---- */

/* Evaluate every row of @arch's config table. All findings are reported.
 * Returns: (owned) or NULL. @settings must outlive it. */
davit_config *davit_config_bind(const DavitSettings *settings,
                                const davit_arch_iface *arch, DavitReport *report);
/* A config without a table, for formats and quant plugins of an unknown architecture. */
davit_config *davit_config_bare(const DavitSettings *settings);
void davit_config_free(davit_config *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(davit_config, davit_config_free)

/* Values by symbol for the core: false if there is no such symbol with an integer value
 * (int, bool, layers, str with a list), or it is per layer and @layer is not one. Counts
 * as read. */
bool davit_config_get_int(const davit_config *config, const char *sym, int64_t layer,
                          int64_t *out);

/* Scope of expressions in slot tables: every symbol, and `i` for @layer >= 0:
 *   DavitConfigScope at = {config, layer};
 *   DavitScope scope = {davit_config_lookup, &at}; */
typedef struct DavitConfigScope {
    const davit_config *config;
    int64_t layer; /* -1 = scope G: no `i`, no per-layer symbols */
} DavitConfigScope;
bool davit_config_lookup(void *scope, const char *sym, int64_t *out);

/* Values that came from defaults, as notes (DAVIT_R_ASSUMED). */
void davit_config_report_assumed(const davit_config *config, DavitReport *report);
/* Watched keys that are set, matter to the math and were read by nobody: errors
 * (DAVIT_R_CONFIG_UNSUPPORTED). Call after the arch's build. */
int32_t davit_config_check_unread(const davit_config *config, DavitReport *report);
/* Tie flag: 1 tied, 0 not; *out_given = the file states it (else class default). The
 * wrapper's flag comes before the nested one's. Always 1 and not given for a GGUF, where
 * an absent head means tied. */
int davit_config_tied(const davit_config *config, bool *out_given);

/* The "config" suite of the ABI. */
const davit_config_suite *davit_config_suite_get(void);

#endif
