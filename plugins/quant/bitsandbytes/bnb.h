/* SPDX-License-Identifier: Apache-2.0
 * What the files of this plugin share. */
#ifndef DAVIT_QUANT_BNB_H
#define DAVIT_QUANT_BNB_H

#include <davit/help/quant.h>

/* What weight.quant_state.bitsandbytes__nf4 (or __fp4) says: JSON in a tensor of bytes. */
typedef struct bnb_state {
    char type[8];  /* "nf4" "fp4"; "" = not stated */
    uint64_t shape[2];
    uint64_t rank; /* of shape; 0 = not stated */
    uint64_t block; /* elements of one absmax; 0 = not stated */
    uint64_t nested_block; /* 0 = absmax is float32, else it is coded itself */
    float nested_offset;
} bnb_state;

/* Returns: 0, or a negative status after a record. @name: of the tensor. */
int32_t bnb_state_read(const davit_json_suite *json, void *host_ctx, const char *name,
                       const uint8_t *text, uint64_t n_bytes, bnb_state *out,
                       const davit_sink *sink);

/* ---- layouts ---- */

/* Suffix of the JSON among the parts; NULL = none. */
const char *bnb_nibbles_state(const davit_quant_module *m);
int32_t bnb_nibbles_check(const davit_json_suite *json, void *host_ctx,
                          const davit_quant_module *module, davit_quant_desc *out,
                          const davit_sink *sink);
davit_q_view bnb_nibbles_view(const davit_quant_desc *d);
int32_t bnb_nibbles_cut(const davit_quant_desc *d, const davit_quant_box *box,
                        davit_quant_cut *out, const davit_sink *sink);
/* Is absmax coded? Then scales may come out as 0 or a little below. */
int bnb_nibbles_nested(const davit_quant_desc *d);

int bnb_int8_is(const davit_quant_module *m);
int32_t bnb_int8_check(const davit_quant_module *module, davit_quant_desc *out,
                       const davit_sink *sink);
davit_q_view bnb_int8_view(const davit_quant_desc *d);
int32_t bnb_int8_cut(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out,
                     const davit_sink *sink);

#endif
