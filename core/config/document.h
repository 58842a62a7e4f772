/* SPDX-License-Identifier: Apache-2.0
 * Two documents of the command line, in the dialect of vllm.cpp: --offload-config and
 * --speculative-config. Every key is checked; a key that is not known is refused by its
 * dotted path with the list of those that are (USAGE), a key that is known and whose
 * value asks for what this build does not have is refused as such (FLAG_UNSUPPORTED). null
 * is the same as absent. All findings are reported.
 */
#ifndef DAVIT_CONFIG_DOCUMENT_H
#define DAVIT_CONFIG_DOCUMENT_H

#include "base/report.h"

/* What an offload document asks for. Values are checked; strings borrowed from doc. */
typedef struct DavitOffloadConfig {
    json_t *doc;         /* (owned) the document, for arrays */
    const char *backend; /* "auto" "uva" "prefetch" */
    double cpu_offload_gb;
    int64_t group_size, num_in_group, prefetch_step;
    bool mmap, prefault;
    bool expert_stream;
    int64_t slots, slot_bytes; /* slot_bytes 0 = not stated */
    int64_t weight_budget_bytes; /* -1 = not stated, 0 = no check */
    const json_t *overrides;     /* array of {pattern, device}; NULL = absent */
    bool cpu_moe, fit;
    int64_t n_cpu_moe;
} DavitOffloadConfig;

/* Parse @text and fill @out with defaults for what is absent. Returns a status; @out is
 * to be cleared either way. */
int32_t davit_offload_parse(const char *text, size_t len, DavitOffloadConfig *out,
                            DavitReport *report);
void davit_offload_clear(DavitOffloadConfig *config);
/* What this build does not have: one record per key that asks for it. */
int32_t davit_offload_check_built(const DavitOffloadConfig *config, DavitReport *report);

/* What a speculative document asks for. */
typedef struct DavitSpeculativeConfig {
    json_t *doc;        /* (owned) */
    const char *method; /* "mtp" "dflash" "dspark" "ngram" "draft_model"; NULL = none */
    const char *model;  /* NULL = not stated */
    int64_t n_tokens;   /* 0 = not stated */
    int64_t lookup_min, lookup_max;
    bool chained; /* vllm_cpp.drafter_chain */
} DavitSpeculativeConfig;

int32_t davit_speculative_parse(const char *text, size_t len, DavitSpeculativeConfig *out,
                                DavitReport *report);
void davit_speculative_clear(DavitSpeculativeConfig *config);
int32_t davit_speculative_check_built(const DavitSpeculativeConfig *config,
                                      DavitReport *report);

#endif
