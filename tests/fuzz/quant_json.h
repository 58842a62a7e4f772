/* SPDX-License-Identifier: Apache-2.0
 * Bytes as the quantisation settings of a checkpoint: what fuzz_quant_config and fuzz_quant_door
 * share. */
#ifndef DAVIT_TESTS_FUZZ_QUANT_JSON_H
#define DAVIT_TESTS_FUZZ_QUANT_JSON_H

#include <jansson.h>

#include "fuzz/quant_parts.h"

/* What is left of @in, if it begins with a brace, as JSON. Else a real configuration of which up to
 * four values are replaced, added or taken away, as the next bytes say; the first chooses it, so
 * that 0 is none. (owned) NULL = no JSON. */
json_t *fuzz_settings(FuzzInput *in);

#endif
