/* SPDX-License-Identifier: Apache-2.0
 * From rotary settings to numbers: inverse frequencies and attention factors of every
 * type of davit_rope_spec, the same float32 results as Hugging Face transformers (to one
 * unit in the last place of its vectorised pow). Formulas: sdk/src/arch/rope.c.
 */
#ifndef DAVIT_HELP_ROPE_H
#define DAVIT_HELP_ROPE_H

#include <davit/help/build.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_ROPE_MAX_PAIRS 4096 /* rot_dim / 2 at most; real heads have up to 256 */

/* Rotated dims of a head of @head_dim: even, 0 = the type is NONE or the head does not
 * fit (odd, too large). PROPORTIONAL rotates the whole head. */
uint64_t davit_rope_rot_dim(const davit_rope_spec *spec, uint64_t head_dim);

/* Inverse frequencies [davit_rope_rot_dim / 2] of variant @variant: 0, or 1 = the long
 * one of LONGROPE. For DYNAMIC those of lengths within max_positions. */
void davit_rope_inv_freq(const davit_rope_spec *spec, uint64_t head_dim, uint32_t variant,
                         float *out);

/* Factor on cos and sin. */
float davit_rope_attention(const davit_rope_spec *spec);

/* YaRN's m(factor, mscale) = 0.1 mscale ln(factor) + 1, 1 for factor <= 1. MLA models
 * scale their softmax with its square. */
double davit_rope_mscale(double factor, double mscale);

/* Record a rope_angles op for @layer_type ("" = the model's only one).
 * @divisors: slot of GGUF's rope_freqs, or -1. Returns: angles [T, rot_dim], or -1 when
 * that type has no rotation (then skip davit_rope). */
int32_t davit_rope_angles(const davit_graph *g, const char *layer_type, uint64_t head_dim,
                          int32_t divisors);

#ifdef __cplusplus
}
#endif
#endif
