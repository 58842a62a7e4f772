/* SPDX-License-Identifier: Apache-2.0
 * Words between white space, then SentencePiece's mark: T5, XLM-RoBERTa, mBART, ALBERT.
 *
 * The scanner drops the white space; the core puts the mark in front of each word and cuts
 * before further ones.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define MARK "\xe2\x96\x81" /* U+2581 */
#define METASPACE(scheme, split)                                                         \
    "{\"prepend_scheme\":\"" scheme "\",\"replacement\":\"" MARK "\",\"split\":" split   \
    ",\"type\":\"Metaspace\"}"
#define WORDS(scheme, split)                                                             \
    "{\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}," METASPACE(scheme, split)       \
    "],\"type\":\"Sequence\"}"
#define DECODER(scheme)                                                                  \
    "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"" MARK                        \
    "\",\"prepend_scheme\":\"" scheme "\"}"

#define ENTRY(sym, shape, pre, facts, scanner)                                           \
    static const davit_tok_shape sym = {                                                 \
        .struct_size = DAVIT_END(davit_tok_shape, rank_facts),                           \
        .name = "unigram",                                                               \
        .pre_tokenizer = shape,                                                          \
        .gguf_pre = pre,                                                                 \
        .gguf_facts = facts,                                                             \
        .scan = scanner}

ENTRY(always_split, WORDS("always", "true"), "@unigram",
      "{\"add_eos\":true," DECODER("always") "}",
      davit_scan_whitespace);
ENTRY(never_split, WORDS("never", "true"), "@unigram-nospace",
      "{\"add_eos\":true," DECODER("never") "}",
      davit_scan_whitespace);
ENTRY(first_split, WORDS("first", "true"), NULL, NULL, davit_scan_whitespace);
ENTRY(always_whole, WORDS("always", "false"), NULL, NULL, davit_scan_whitespace);
ENTRY(first_whole, WORDS("first", "false"), NULL, NULL, davit_scan_whitespace);
ENTRY(never_whole, WORDS("never", "false"), NULL, NULL, davit_scan_whitespace);
ENTRY(words_only, "{\"type\":\"WhitespaceSplit\"}", NULL, NULL, davit_scan_whitespace);

static const davit_tok_shape *const shapes[] = {
    &always_split, &never_split, &first_split, &always_whole,
    &first_whole,  &never_whole, &words_only,  NULL};
static const davit_tokenizer_iface iface = {DAVIT_END(davit_tokenizer_iface, shapes),
                                            shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.unigram",
                "model=unigram;family=unigram", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.unigram", "SentencePiece Unigram", "davit", "1.0.0",
             "Apache-2.0", &component);
