/* SPDX-License-Identifier: Apache-2.0
 * Names of slot sources in a checkpoint: prefixes of the text stack, layers, experts.
 */
#ifndef DAVIT_PLAN_MATCH_H
#define DAVIT_PLAN_MATCH_H

#include "plan/module.h"
#include "plan/table.h"

/* The prefix under which most slots of @table are found, "model." when none is. For GGUF
 * "". (static) Errors: AMBIGUOUS when two prefixes fit equally well; the first is
 * returned. */
const char *davit_match_prefix(const DavitDraft *draft, const GArray *table);

/* Name number @variant of a source: prefix, layer and expert filled in. Returns: false
 * when there is no such variant. @layer -1 = scope G, @expert used where the source has
 * '*'. */
bool davit_match_name(const DavitDraft *draft, const DavitSourceSpec *spec, int64_t layer,
                      uint64_t expert, size_t variant, GString *out);

/* The tensor that would be there if the source were stored plainly, for messages. */
void davit_match_tensor(const DavitDraft *draft, const DavitSourceSpec *spec,
                        int64_t layer, uint64_t expert, GString *out);

/* (borrowed, table) The module of the first variant that is there, its name in @buf; or
 * NULL. */
DavitModule *davit_match_find(const DavitDraft *draft, const DavitSourceSpec *spec,
                              int64_t layer, uint64_t expert, GString *buf);

/* Names of one source's experts, one after another: all but the number stays. */
typedef struct DavitExpertNames {
    char *name;     /* (owned) of the expert asked for last */
    size_t head;    /* its bytes before the number */
    GString *tail;  /* (owned) what follows the number */
    uint32_t *run;  /* (owned) [n_run] modules by number; NULL = none is known so */
    uint64_t n_run;
} DavitExpertNames;
/* Of @n experts. @layer >= 0 or a GGUF: sources of the whole model have variants. */
void davit_expert_names_init(DavitExpertNames *names, const DavitDraft *draft,
                             const DavitSourceSpec *spec, int64_t layer, uint64_t n);
void davit_expert_names_clear(DavitExpertNames *names);
/* (borrowed, table) The module of expert @expert, NULL if it is not there. */
DavitModule *davit_expert_names_find(DavitExpertNames *names, const DavitDraft *draft,
                                     uint64_t expert);

/* Layer index of a tensor's name under the draft's prefix, -1 = not a layer's. */
int64_t davit_match_layer(const DavitDraft *draft, const char *tensor);

#endif
