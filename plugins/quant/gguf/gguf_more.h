/* SPDX-License-Identifier: Apache-2.0
 * GGUF's float, ternary and one- and two-bit blocks. */
#ifndef DAVIT_QUANT_GGUF_MORE_H
#define DAVIT_QUANT_GGUF_MORE_H

#include <davit/help/quant.h>

/* Is a module of this signature one of these types? */
int gguf_more_is(const davit_quant_module *m);
/* Does a description come from here (else from the SDK's reference layouts)? */
int gguf_more_has(const davit_quant_desc *d);
int32_t gguf_more_check(const davit_quant_module *module, davit_quant_desc *out,
                        const davit_sink *sink);
void gguf_more_decode(const davit_quant_tile *tile, davit_quant_out *out);
int32_t gguf_more_verify(const davit_quant_tile *tile, const davit_sink *sink);

#endif
