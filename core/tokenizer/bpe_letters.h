/* SPDX-License-Identifier: Apache-2.0
 * Reading tokens that are spelled in the 256 letter alphabet. For bpe*.c only.
 */
#ifndef DAVIT_TOKENIZER_BPE_LETTERS_H
#define DAVIT_TOKENIZER_BPE_LETTERS_H

#include "tokenizer/bpe.h"

#define DAVIT_N_LETTERS 0x800 /* code points of at most two bytes of UTF-8 */

static inline bool davit_is_inner(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Byte of each letter, -1 = no letter. Tokens are read by it, half a million letters at load. */
static inline void davit_letters_fill(int16_t letters[DAVIT_N_LETTERS])
{
    for (uint32_t cp = 0; cp < DAVIT_N_LETTERS; cp++)
        letters[cp] = (int16_t)davit_letter_byte(cp);
}

/* Byte of the letter at @at of a text that is valid UTF-8; *out_size its own bytes. */
static inline int32_t davit_letter_at(const int16_t *letters, const char *text, size_t at,
                                      uint32_t *out_size)
{
    const uint8_t *p = (const uint8_t *)text + at;

    *out_size = *p < 0x80 ? 1 : 2;
    if (*p < 0x80)
        return letters[*p];
    return *p < 0xe0 ? letters[(p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)] : -1;
}

/* The same of the letter before @at > 0. */
static inline int32_t davit_letter_before(const int16_t *letters, const char *text, size_t at,
                                          uint32_t *out_size)
{
    const uint8_t *p = (const uint8_t *)text + at;

    *out_size = p[-1] < 0x80 ? 1 : 2;
    if (p[-1] < 0x80)
        return letters[p[-1]];
    return at > 1 && p[-2] >= 0xc0 ? letters[(p[-2] & 0x1fu) << 6 | (p[-1] & 0x3fu)] : -1;
}

/* Fill joins and triples, behind bmp. False when memory is gone. bpe_cuts.c */
bool davit_bpe_fill_cuts(DavitBpe *bpe, const int16_t *letters);

#endif
