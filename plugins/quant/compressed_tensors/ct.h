/* SPDX-License-Identifier: Apache-2.0
 * The layouts of this plugin: which one a module is, its check, its readers. */
#ifndef DAVIT_QUANT_CT_H
#define DAVIT_QUANT_CT_H

#include <davit/help/quant.h>

#define CT_SCALES "f32/1|bf16/1|f16/1"

int ct_pack_is(const davit_quant_module *m);
int32_t ct_pack_check(const davit_quant_module *module, davit_quant_desc *out,
                      const davit_sink *sink);
/* Warns of bits past a word's codes and past the row's columns. */
void ct_pack_padding(const davit_quant_tile *tile, const davit_sink *sink);
davit_q_view ct_pack_view(const davit_quant_desc *d);
int32_t ct_pack_cut(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out,
                    const davit_sink *sink);

/* weight I8 + weight_scale: int-quantized, and W8A16 and SmoothQuant of ModelOpt. */
int ct_int8_is(const davit_quant_module *m);
int32_t ct_int8_check(const davit_quant_module *module, davit_quant_desc *out,
                      const davit_sink *sink);
davit_q_view ct_int8_view(const davit_quant_desc *d);
int32_t ct_int8_cut(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out,
                    const davit_sink *sink);

#endif
