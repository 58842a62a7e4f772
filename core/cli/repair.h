/* SPDX-License-Identifier: Apache-2.0
 * Flags that plan, run and eval share: how a model is read, and what the user decides about
 * it.
 */
#ifndef DAVIT_CLI_REPAIR_H
#define DAVIT_CLI_REPAIR_H

#include "cli/command.h"

/* clang-format off */
/* Rows of a flag table. */
#define DAVIT_REPAIR_FLAGS                                                               \
    {"tie", 0, DAVIT_FLAG_SWITCH, NULL, "use the embedding as output head", NULL, NULL,  \
     false},                                                                             \
    {"no-tie", 0, DAVIT_FLAG_SWITCH, NULL,                                               \
     "do not use the embedding as output head", NULL, NULL, false},                      \
    {"ignore", 0, DAVIT_FLAG_LIST, "GLOB",                                               \
     "accept stored tensors of this name that nothing takes; may be repeated", NULL,     \
     NULL, false},                                                                       \
    {"rename", 0, DAVIT_FLAG_TEXT, "RULES.json",                                         \
     "change tensor names: {\"old.*\": \"new.*\", ...}", NULL, NULL, false},             \
    {"strip-prefix", 0, DAVIT_FLAG_TEXT, "PREFIX",                                       \
     "take this away where a tensor's name starts with it", NULL, NULL, false},          \
    {"dtype", 0, DAVIT_FLAG_CHOICE, "TYPE", "type of matrices in memory",                \
     "stored|f32|f16|bf16", "stored", false}
#define DAVIT_LOADING_FLAGS                                                              \
    {"access", 0, DAVIT_FLAG_CHOICE, "HOW",                                              \
     "borrow from the file, or copy: read into place or streamed; a weight that no "     \
     "kernel takes as stored is packed",                                                 \
     "auto|borrow|direct|stream", "auto", false},                                        \
    {"window", 0, DAVIT_FLAG_TEXT, "SIZE",                                               \
     "most temporary memory while loading, like 64MiB", NULL, "256MiB", false},          \
    {"io-threads", 0, DAVIT_FLAG_COUNT, "N",                                             \
     "threads that read and convert while loading, 0 = by the machine", NULL, "0",       \
     false},                                                                             \
    {"memory", 0, DAVIT_FLAG_TEXT, "cpu=SIZE,DEVICE=SIZE",                               \
     "budget for weights; beyond the host's, layers stay on disk", NULL, NULL, false},   \
    {"device-map", 0, DAVIT_FLAG_TEXT, "auto|FILE",                                      \
     "where modules go: a JSON object of names and devices, cpu or disk; auto fills "    \
     "devices in order, keys and values reckoned in",                                    \
     NULL, NULL, false},                                                                 \
    DAVIT_QUANT_FLAGS
/* What the user decides about quantised weights; of davit_call_quant_allow. */
#define DAVIT_QUANT_FLAGS                                                                \
    {"scale-dtype", 0, DAVIT_FLAG_CHOICE, "TYPE",                                        \
     "dtype of one-number scales: as the layouts demand, or BF16 and F16 too", "f32|any", \
     "f32", false},                                                                      \
    {"gptq-zeros", 0, DAVIT_FLAG_CHOICE, "KIND",                                         \
     "how GPTQ stores zeros, whatever the files state", "stated|v1|v2", "stated", false}, \
    {"scale-grid", 0, DAVIT_FLAG_CHOICE, "HOW",                                          \
     "grid of FP8 block scales: as the shape demands, or larger", "exact|padded",        \
     "exact", false}
/* Of commands that load. */
#define DAVIT_PAGE_CACHE_FLAG                                                            \
    {"page-cache", 0, DAVIT_FLAG_CHOICE, "HOW",                                          \
     "read private copies past it when it does not hold the files, always through it "   \
     "(a next start is then faster), or never",                                          \
     "auto|use|skip", "auto", false}
/* clang-format on */

/* "64MiB" "8GiB" "1.5GB" "4096": bytes. Strict: the whole text, no sign, no overflow. */
bool davit_parse_bytes(const char *text, uint64_t *out);

/* The host's budget of --memory, 0 = not given. */
uint64_t davit_call_memory(const DavitCall *call);
/* (owned) Budgets of --memory for other devices, as pairs; names live as long as the process. */
typedef struct DavitMemoryOf {
    const char *device;
    uint64_t n_bytes;
} DavitMemoryOf;
GArray *davit_call_memories(const DavitCall *call);
/* --device as it was given, NULL for auto and where --device-map decides. */
const char *davit_call_device(const DavitCall *call);
/* Contradictions and sizes of the flags above. 0, or an exit code with a record. */
int davit_call_check_loading(DavitCall *call);
/* DAVIT_QUANT_ALLOW_ bits of --scale-dtype, --gptq-zeros and --scale-grid. */
uint32_t davit_call_quant_allow(const DavitCall *call);
/* Storage type of --kv-dtype ("f8_e4m3/1"), NULL where it is not given. (static) */
const char *davit_call_kv_dtype(const DavitCall *call);
/* Index of a CHOICE flag's value in @names (NULL-terminated), 0 if it is none of them. */
uint32_t davit_call_choice(const DavitCall *call, const char *flag,
                           const char *const *names);
extern const char *const davit_dtype_names[];   /* in the order of DavitDtypeChoice */
extern const char *const davit_access_names[];  /* DavitAccessChoice */
extern const char *const davit_cache_names[];   /* DavitCacheChoice */
extern const char *const davit_layout_names[];  /* DavitLayoutChoice */
extern const char *const davit_activation_names[]; /* DavitActivations */

#endif
