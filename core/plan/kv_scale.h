/* SPDX-License-Identifier: Apache-2.0
 * Scales of a KV cache of 8 bits, which checkpoints bring along as tensors: a number for a layer, or one for
 * each head of its keys.
 */
#ifndef DAVIT_PLAN_KV_SCALE_H
#define DAVIT_PLAN_KV_SCALE_H

#include "plan/draft.h"

/* Storage type of --kv-dtype fp8. */
#define DAVIT_KV_FP8 "f8_e4m3/1"

/* Fill k_scale and v_scale, or k_scales and v_scales (of this rank's heads), of the states of
 * @program, which are kept as DAVIT_KV_FP8. A layer without scales keeps 1, with a warning. Errors,
 * with records: not one number and not one for each head; one number that is not F32 (BF16 and F16
 * where the user allows, and for each head); not finite or not above 0; only one of two; several
 * spellings that differ; scales of a cache of another type. */
int32_t davit_kv_scales(DavitDraft *draft, DavitProgram *program);

#endif
