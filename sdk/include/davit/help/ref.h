/* SPDX-License-Identifier: Apache-2.0
 * The readable scalar definition of every op of ops.h, and of every stored layout that ships.
 * Part of libdavit-sdk.a. Kernels are tested against these; a device for tests may run them.
 *
 * Precision: sums in double, in ascending order, rounded to float32 once at the end;
 * transcendental functions in double, rounded once. Any size, no alignment, no SIMD.
 * A row of output depends on its own input row only. Nothing here allocates, keeps state or
 * checks what davit_ref_check and the host have checked; every function is pure and runs on any
 * thread. Pointers are (borrowed) the call.
 */
#ifndef DAVIT_HELP_REF_H
#define DAVIT_HELP_REF_H

#include <davit/kernels.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- stored layouts ---- */

#define DAVIT_REF_MAX_BLOCK 256 /* elements of the longest block below */

/* A layout whose rows are whole blocks, one after another, in one part. */
typedef struct davit_ref_layout {
    const char *name;      /* "q4_k/1" */
    uint32_t block_elems;  /* 1 for plain numbers */
    uint32_t block_bytes;
    /* @n_blocks blocks at @src (no alignment) to float32, bit-equal to GGUF's reference. */
    void (*decode)(const uint8_t *src, uint64_t n_blocks, float *out);
    /* The same as unsigned codes: value = scale * (code - zero), or scale * code + zero
     * where has_min; exact to the bit. NULL = plain numbers. */
    void (*codes)(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                  float *zeros);
    uint32_t group;        /* elements that share a scale; 0 = no codes */
    uint32_t has_min;
    uint32_t half_at[2];   /* byte offset of each float16 scale in a block; ~0 = none, or in bits
                            * that lie apart (iq1_m) */
} davit_ref_layout;

/* f32/1 f16/1 bf16/1 q4_0/1 q4_1/1 q5_0/1 q5_1/1 q8_0/1 q2_k/1 q3_k/1 q4_k/1 q5_k/1 q6_k/1, then
 * those of dequant_iq.c, '|'-joined: what the entries of a kernel that uses davit_ref_layout take. */
#define DAVIT_REF_LAYOUTS                                                                 \
    "f32/1|f16/1|bf16/1|q4_0/1|q4_1/1|q5_0/1|q5_1/1|q8_0/1|q2_k/1|q3_k/1|q4_k/1|q5_k/1|"  \
    "q6_k/1|" DAVIT_REF_IQ
#define DAVIT_REF_IQ                                                                      \
    "iq1_s/1|iq1_m/1|iq2_xxs/1|iq2_xs/1|iq2_s/1|iq3_xxs/1|iq3_s/1|iq4_xs/1|tq1_0/1|q1_0/1"

/* (static), or NULL if @name is none of the above. */
const davit_ref_layout *davit_ref_layout_find(const char *name);
/* @index 0.. in the order above; NULL past the end. */
const davit_ref_layout *davit_ref_layout_get(uint64_t index);
/* Bytes of a row of @n_cols elements (a multiple of block_elems; the product fits 64 bits). */
uint64_t davit_ref_row_bytes(const davit_ref_layout *layout, uint64_t n_cols);

float davit_ref_f16_to_f32(uint16_t bits);
uint16_t davit_ref_f32_to_f16(float value); /* to nearest even, NaN quiet, overflow to inf */
/* E4M3FN, to nearest even, saturated to +-448; NaN = 0x7F and 0xFF. Back: davit_q_e4m3. */
uint8_t davit_ref_f32_to_e4m3(float value);

/* ---- modules of one tensor whose dtype is its layout: for quant plugins ---- */

/* The layout of a signature that is one tensor, called "weight" or the module itself, in one
 * of the layouts above; else NULL. (static) */
const davit_ref_layout *davit_ref_module_layout(const davit_quant_module *module);
/* Fill *out for such a module from its tensor's header: leading axes are experts, a vector
 * has one column. @scheme (static) "gguf/1". Errors: DAVIT_E_MISMATCH with a record when shape,
 * block and bytes do not fit. */
int32_t davit_ref_module_describe(const davit_quant_module *module, const char *scheme,
                                  davit_quant_desc *out, const davit_sink *sink);
/* decode of such a module: both forms; @tile and @out as davit_quant_iface.decode gets them. */
void davit_ref_module_decode(const davit_quant_tile *tile, davit_quant_out *out);
/* All float16 scales of the tile finite? Errors: DAVIT_E_CORRUPT, naming row and block. */
int32_t davit_ref_module_verify(const davit_quant_tile *tile, const davit_sink *sink);

/* ---- weights of a call ---- */

/* Stored bytes of row @row of expert @expert, both in range; the layout has one part. (borrowed)
 * as long as @w's segments */
const uint8_t *davit_ref_weight_row(const davit_weight *w, const davit_ref_layout *layout,
                                    uint64_t expert, uint64_t row);
/* Row @row of expert @expert as float32, out[w->n_cols]. */
void davit_ref_weight_decode(const davit_weight *w, const davit_ref_layout *layout,
                             uint64_t expert, uint64_t row, float *out);
/* A vector's values (layout f32/1, one segment). (borrowed) NULL if @w is NULL */
const float *davit_ref_weight_vector(const davit_weight *w);

/* ---- ops ---- */

/* Does @call obey ops.h: number and widths of values and weights, attribute ranges, layouts
 * known to davit_ref_layout_find? Errors: DAVIT_E_UNSUPPORTED with a record that names op,
 * expected and found. */
int32_t davit_ref_check(const davit_call *call, const davit_sink *sink);

/* Bytes of @work that one thread needs for @call; 8-aligned. */
uint64_t davit_ref_work_bytes(const davit_call *call);
/* Rows of the call: tokens, or wanted logit rows for gather_rows. */
uint64_t davit_ref_rows(const davit_call *call);

/* Compute rows [first, first + count) of @call, an op of ops.h that davit_ref_check passes.
 * @work: davit_ref_work_bytes, not shared between threads. [any thread] */
void davit_ref_run(const davit_call *call, uint64_t first, uint64_t count, void *work);

/* f of DAVIT_ACT_ @kind, not OAI_CLAMP. */
double davit_ref_act(uint32_t kind, double x);
/* f(g) * u of glu/1 and moe_ffn/1, any kind. */
float davit_ref_glu(uint32_t kind, float limit, float alpha, float g, float u);
/* Cosines, then sines, of row @t (< T) of a rope_angles call into out[rot_dim]. */
void davit_ref_rope_angles_row(const davit_call *call, uint64_t t, float *out);
/* ids[k] and w[k] of moe_route/1 for one row of logits[E], finite; bias[E] may be NULL. */
void davit_ref_moe_route_row(const davit_moe_route_attr *a, const float *logits,
                             const float *bias, int32_t *ids, float *w);

/* ---- attention state of the reference: block b holds, head by head, k rows then v rows ---- */

/* Bytes of one block of @block_tokens tokens; 0 = not supported (a record is in @sink). */
uint64_t davit_ref_state_size(const davit_state_spec *spec, uint64_t block_tokens,
                              const davit_sink *sink);
/* Sequence of token @t, its index in that sequence. */
uint64_t davit_ref_token_index(const davit_batch *batch, uint64_t t);
/* 1 if token @t (< T) sees index @key of its sequence, else 0; @window in tokens, 0 = all. */
int32_t davit_ref_visible(const davit_batch *batch, uint64_t t, uint64_t key, uint64_t window);

#ifdef __cplusplus
}
#endif
#endif
