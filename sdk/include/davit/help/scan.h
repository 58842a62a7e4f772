/* SPDX-License-Identifier: Apache-2.0
 * Scanner bodies that tokenizer plugins share. Part of libdavit-sdk.a; sources in
 * sdk/src/tok/scan_*.c.
 *
 * Each body cuts text as one family of regexes does, without a regex: linear in the bytes
 * passed over, no allocation, no recursion, resumable at any end that it gave. All of
 * them have the contract of davit_tok_shape.scan (tokenizer.h); a plugin writes a scan
 * function of its own that hands its rules on:
 *
 *   static uint64_t mine_scan(const char *text, uint64_t n, uint64_t from,
 *                             uint64_t *ends, uint64_t cap)
 *   {
 *       static const davit_scan_rules rules = {.max_digits = 3,
 *                                              .tail = DAVIT_TAIL_NEWLINES};
 *
 *       return davit_scan_words(&rules, text, n, from, ends, cap);
 *   }
 *
 * Text that is not valid UTF-8 is cut somewhere, never read past its end.
 */
#ifndef DAVIT_HELP_SCAN_H
#define DAVIT_HELP_SCAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What may follow a run of symbols, ` ?[^\s\p{L}\p{N}]+`, inside the same piece. */
#define DAVIT_TAIL_NONE     0u
#define DAVIT_TAIL_NEWLINES 1u /* [\r\n]* */
#define DAVIT_TAIL_SLASHES  2u /* [\r\n/]* */
#define DAVIT_TAIL_ONE      3u /* [\r\n/]?, the slash being a symbol already */

/* A Split stage in front, Isolated. Its pieces are cut by themselves: one ends the text
 * for the one before it. */
#define DAVIT_FRONT_NONE    0u
#define DAVIT_FRONT_NUMBERS 1u /* words: \p{N}{1,3}   (MiniCPM5) */
#define DAVIT_FRONT_LINES   2u /* words: [^\n]+|[\n]+   (Laguna) */
#define DAVIT_FRONT_GROUPS  3u /* cased: \d{1,3}(?=(?:\d{3})*\b)   (Tiny-Aya) */
#define DAVIT_FRONT_SCRIPTS 4u /* cased: runs of Hangul, of CJK signs, of Bopomofo, of
                                * Han and Kana   (Youtu) */

typedef struct davit_scan_rules {
    uint32_t max_digits; /* \p{N}{1,max}; 0 = \p{N}+ */
    uint32_t tail;       /* DAVIT_TAIL_ */
    uint32_t marks;      /* 1: words are [\p{L}\p{M}]+ and symbols exclude \p{M} */
    uint32_t
        contraction; /* 1: (?i:'s|'t|'re|'ve|'m|'ll|'d) before (words) or after (cased) */
    uint32_t end_space; /* words, 1: white space that ends the text is a piece, before all
                         * other alternatives of white space: \s++$   (tiktoken's cl100k) */
    uint32_t han; /* cased, 1: [\p{Han}]+ first, and no Han in U and W   (Kimi) */
    uint32_t front; /* DAVIT_FRONT_: a stage before this one */
    uint32_t spaced; /* words, 1: a word is (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+, so it goes
                      * on behind a single space   (EXAONE-MoE) */
    uint32_t halves; /* words, 1: instead of the last two alternatives \s{512}(?!\S), then
                      * 256, 128, ... 4, {1,2}, each with (?!\S), then \s{1}   (Jais-2) */
} davit_scan_rules;

/* contraction | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}{1,max} | ` ?[^\s\p{L}\p{N}]+`tail
 * | \s*[\r\n]+ | \s+(?!\S) | \s+         (llama3, cl100k, qwen2, qwen35) */
uint64_t davit_scan_words(const davit_scan_rules *rules, const char *text, uint64_t n,
                          uint64_t from, uint64_t *out_ends, uint64_t cap);

/* [^\r\n\p{L}\p{N}]?[U]*[W]+contraction? | [^\r\n\p{L}\p{N}]?[U]+[W]*contraction?
 * | \p{N}{1,max} | ` ?[^\s\p{L}\p{N}]+`tail | \s*[\r\n]+ | \s+(?!\S) | \s+
 * with U = \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M} and W = \p{Ll}\p{Lm}\p{Lo}\p{M}   (o200k,
 * tekken) */
uint64_t davit_scan_cased(const davit_scan_rules *rules, const char *text, uint64_t n,
                          uint64_t from, uint64_t *out_ends, uint64_t cap);

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+   (GPT-2) */
uint64_t davit_scan_gpt2(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                         uint64_t cap);

/* The stage Digits(individual_digits) first, then GPT-2 on each part   (SmolLM,
 * StarCoder) */
uint64_t davit_scan_gpt2_digits(const char *text, uint64_t n, uint64_t from,
                                uint64_t *out_ends, uint64_t cap);

/* Split \p{N}{1,3}, Split [CJK]+, Split of the third regex, all Isolated   (DeepSeek-V3)
 */
uint64_t davit_scan_deepseek3(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap);

/* The same behind runs of \p{Nd} cut into threes from their right end (three Splits of the
 * file together), with a wider class of Asian scripts instead of CJK; @wide: its range
 * F900-FAFF starts at 8C48, which U+F900 becomes in NFC. A call that begins between digits
 * of two scripts counts the rest of their run   (AFMoE) */
uint64_t davit_scan_afmoe(uint32_t wide, const char *text, uint64_t n, uint64_t from,
                          uint64_t *out_ends, uint64_t cap);

/* Split \p{N}+, then a Split of the empty (?=(\d{3})+(?!\d)), both Isolated; nothing
 * else is cut   (SuperBPE) */
uint64_t davit_scan_superbpe(const char *text, uint64_t n, uint64_t from,
                             uint64_t *out_ends, uint64_t cap);

/* Splits of sentinels, of IMGIMG[A-I]{1,4}Z and of ([\t\n]|    |  ), Digits(individual),
 * Punctuation(Isolated), GPT-2   (Chameleon) */
uint64_t davit_scan_chameleon(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap);

/* DeepSeek-Coder and -LLM: Split [\r\n], Split \s?[letters]+, Split \s?[signs]+, with
 * @latin also Split \s+$, Split [CJK]+, Digits(individual). @latin: letters and signs are
 * the lists of DeepSeek-LLM, else \p{L} and \p{P}. */
uint64_t davit_scan_deepseek2(uint32_t latin, const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap);

/* Split of ` ?[^(\s|[.,!?...])]+`, Isolated; @digits: Digits(individual) behind it
 * (BLOOM, Viking) */
uint64_t davit_scan_bloom(uint32_t digits, const char *text, uint64_t n, uint64_t from,
                          uint64_t *out_ends, uint64_t cap);

/* Punctuation(Contiguous), GPT-2, then on the 256 letters: Digits(contiguous), Split of
 * [0-9][0-9][0-9]. Ends may lie inside a character. @text is cut at each end as the four
 * stages cut it   (Falcon) */
uint64_t davit_scan_falcon(const char *text, uint64_t n, uint64_t from,
                           uint64_t *out_ends, uint64_t cap);

/* Runs of white space, dropped, and of all else   (WhitespaceSplit) */
uint64_t davit_scan_whitespace(const char *text, uint64_t n, uint64_t from,
                               uint64_t *out_ends, uint64_t cap);

/* White space dropped, each character of punctuation alone   (BertPreTokenizer) */
uint64_t davit_scan_bert(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                         uint64_t cap);

/* \w+|[^\w\s]+, what lies between dropped   (Whitespace) */
uint64_t davit_scan_word_runs(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap);

/* Cut before each U+2581, the Metaspace stage with split=true: a piece is the mark and
 * what follows it   (SentencePiece) */
uint64_t davit_scan_before_mark(const char *text, uint64_t n, uint64_t from,
                                uint64_t *out_ends, uint64_t cap);

/* Cut after each space, a Split of " " with MergedWithPrevious   (Gemma 3) */
uint64_t davit_scan_after_space(const char *text, uint64_t n, uint64_t from,
                                uint64_t *out_ends, uint64_t cap);

/* davit_tok_shape.cut of the regex bodies above: after a line feed that an
 * ASCII letter follows. No alternative joins the two, and none looks further back. */
uint64_t davit_cut_lines(const char *text, uint64_t n, uint64_t from);

#ifdef __cplusplus
}
#endif
#endif
