/* SPDX-License-Identifier: Apache-2.0
 * Where a stored tensor's name ends its module and begins its suffix.
 */
#ifndef DAVIT_PLAN_SUFFIX_H
#define DAVIT_PLAN_SUFFIX_H

#include "plan/draft.h"

/* "model.layers.0.mlp.up_proj.weight_scale": module_len up to "up_proj", suffix
 * "weight_scale". A tensor that is a module of its own has suffix "". */
typedef struct DavitSplit {
    size_t module_len;
    const char *suffix; /* (borrowed) within the tensor's name */
} DavitSplit;

/* @quants: their capability may name suffixes of their own, "suffix=codes|lut".
 * "bias" is never a suffix: it is a vector module named "....bias". */
DavitSplit davit_suffix_split(const char *tensor, const DavitCheckpoint *checkpoint,
                              const GArray *quants);

#endif
