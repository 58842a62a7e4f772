/* SPDX-License-Identifier: Apache-2.0
 * Unicode facts for scanners: class bits of a code point, and reading UTF-8. Part of
 * libdavit-sdk.a, so ids do not move with the host.
 *
 * The bits are Unicode 16 as the regex engine of Hugging Face's tokenizers has them; the
 * tables come from sdk/src/ucd/make_ucd.py, which asks that engine about every code
 * point.
 */
#ifndef DAVIT_HELP_UCD_H
#define DAVIT_HELP_UCD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_UCD_LU      (1u << 0) /* \p{Lu} */
#define DAVIT_UCD_LL      (1u << 1)
#define DAVIT_UCD_LT      (1u << 2)
#define DAVIT_UCD_LM      (1u << 3)
#define DAVIT_UCD_LO      (1u << 4)
#define DAVIT_UCD_MN      (1u << 5)  /* \p{Mn} */
#define DAVIT_UCD_MCE     (1u << 6)  /* \p{Mc} or \p{Me} */
#define DAVIT_UCD_ND      (1u << 7)  /* \p{Nd}, also \d */
#define DAVIT_UCD_NLO     (1u << 8)  /* \p{Nl} or \p{No} */
#define DAVIT_UCD_P       (1u << 9)  /* \p{P} */
#define DAVIT_UCD_S       (1u << 10) /* \p{S} */
#define DAVIT_UCD_Z       (1u << 11) /* \p{Z} */
#define DAVIT_UCD_C       (1u << 12) /* \p{C}: control, format, private, unassigned */
#define DAVIT_UCD_SPACE   (1u << 13) /* \s, and Rust's char::is_whitespace */
#define DAVIT_UCD_HAN     (1u << 14) /* script Han, without extensions */
#define DAVIT_UCD_NUMERIC (1u << 15) /* what the Digits stage isolates */
#define DAVIT_UCD_WORD    (1u << 16) /* \w of the Rust regex crate */
#define DAVIT_UCD_PUNCT   (1u << 17) /* what the Punctuation stage isolates */

#define DAVIT_UCD_L                                                                      \
    (DAVIT_UCD_LU | DAVIT_UCD_LL | DAVIT_UCD_LT | DAVIT_UCD_LM | DAVIT_UCD_LO)
#define DAVIT_UCD_M (DAVIT_UCD_MN | DAVIT_UCD_MCE)
#define DAVIT_UCD_N (DAVIT_UCD_ND | DAVIT_UCD_NLO)

/* Tables; use the functions below. */
extern const uint32_t davit_ucd_ascii[128];
extern const uint32_t davit_ucd_sets[];
extern const uint16_t davit_ucd_index[];
extern const uint8_t davit_ucd_blocks[];

/* Class bits of @cp; those of an unassigned code point above U+10FFFF. */
static inline uint32_t davit_ucd_bits(uint32_t cp)
{
    if (cp < 128)
        return davit_ucd_ascii[cp];
    if (cp > 0x10ffff)
        return DAVIT_UCD_C;
    return davit_ucd_sets[davit_ucd_blocks[davit_ucd_index[cp >> 7] * 128u + (cp & 127)]];
}

/* Code point at @off < @n; *out_len is its length in bytes. A byte that does not start a
 * whole, valid sequence counts as U+FFFD of one byte, so a scanner never runs over the
 * end. */
uint32_t davit_ucd_decode(const char *text, uint64_t n, uint64_t off, uint32_t *out_len);

/* Start of the code point before @off > 0: at most three continuation bytes back. */
uint64_t davit_ucd_back(const char *text, uint64_t off);

/* Offset of the first byte that breaks UTF-8 (surrogates and overlong forms do), or @n.
 */
uint64_t davit_ucd_check(const char *text, uint64_t n);

/* davit_ucd_decode, which does without a call what most text beyond ASCII is made of: three
 * bytes from U+1000 on, but for U+D000 to U+DFFF. */
static inline uint32_t davit_ucd_next(const char *text, uint64_t n, uint64_t off,
                                      uint32_t *out_len)
{
    const unsigned char *p = (const unsigned char *)text + off;

    if (n - off >= 3) {
        const uint32_t bytes = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

        if ((bytes & 0xf0c0c0) == 0xe08080 && bytes >= 0xe18080 && bytes >> 16 != 0xed) {
            *out_len = 3;
            return (bytes >> 4 & 0xf000) | (bytes >> 2 & 0xfc0) | (bytes & 0x3f);
        }
    }
    return davit_ucd_decode(text, n, off, out_len);
}

/* Class bits of the character at @off and its length; @n ends the text: 0 bits, length 0.
 */
static inline uint32_t davit_ucd_at(const char *text, uint64_t n, uint64_t off,
                                    uint32_t *out_len)
{
    if (off >= n) {
        *out_len = 0;
        return 0;
    }
    if ((unsigned char)text[off] < 128) {
        *out_len = 1;
        return davit_ucd_ascii[(unsigned char)text[off]];
    }
    return davit_ucd_bits(davit_ucd_next(text, n, off, out_len));
}

#ifdef __cplusplus
}
#endif
#endif
