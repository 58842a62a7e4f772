/* SPDX-License-Identifier: Apache-2.0
 * Where the bytes of a normalised text come from. For core/tokenizer/ only.
 *
 * An origin has, for each byte of a text, the bytes of the raw text that it stands for; every
 * step of a normaliser leaves a trace: for each byte of its output, the byte of its input that
 * it is, or the character of its input whose origin it takes. Rules as NormalizedString of
 * Hugging Face's tokenizers (tokenizer/normalizer.rs, transform_range): what is put in shares the
 * origin of what stands before it, and a character that replaces several has the origin of the
 * first.
 */
#ifndef DAVIT_TOKENIZER_ORIGIN_H
#define DAVIT_TOKENIZER_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* Bytes [start, end) of the raw text. */
typedef struct DavitOrigin {
    uint32_t start, end;
} DavitOrigin;

#define DAVIT_TRACE_NONE 0x7fffffffu /* nothing stands before it: an empty origin at 0 */
#define DAVIT_TRACE_SAME 0x80000000u /* beside the place: it is that byte, not only of its character */

/* ---- traces: GArray of uint32_t; NULL = not wanted ---- */

/* @n bytes from @from on were copied. */
void davit_trace_keep(GArray *trace, size_t from, size_t n);
/* @n bytes that take the origin of the character with byte @at. */
void davit_trace_put(GArray *trace, size_t n, uint32_t at);
/* @out stands for @in; @changes: int32_t for each character of @out: 0 or -n: it replaces the next
 * character of @in, and n more vanish; 1: it was put in. */
void davit_trace_changes(GArray *trace, const char *in, size_t in_len, const char *out,
                         size_t out_len, const GArray *changes);

/* ---- origins: GArray of DavitOrigin ---- */

/* Of the raw text: every byte stands for itself. */
void davit_origin_start(GArray *origin, size_t len);
/* After a step with @trace over @text. */
void davit_origin_follow(GArray *origin, const GArray *trace, const char *text);
/* After the text was narrowed to the @len bytes at @from. */
void davit_origin_narrow(GArray *origin, size_t from, size_t len);

#endif
