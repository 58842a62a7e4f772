/* SPDX-License-Identifier: Apache-2.0
 * BERT: white space dropped, each sign of punctuation alone; WordPiece behind it.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define FACTS(lower)                                                                     \
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"                  \
    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":" lower "},"     \
    "\"model\":{\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","           \
    "\"max_input_chars_per_word\":100},"                                                 \
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"           \
    "\"add_bos\":true,\"add_eos\":true}"

#define ENTRY(sym, label, shape, pre, facts, scanner)                                    \
    static const davit_tok_shape sym = {                                                 \
        .struct_size = DAVIT_END(davit_tok_shape, rank_facts),                           \
        .name = label,                                                                   \
        .pre_tokenizer = shape,                                                          \
        .gguf_pre = pre,                                                                 \
        .gguf_facts = facts,                                                             \
        .scan = scanner}

ENTRY(uncased, "wordpiece", "{\"type\":\"BertPreTokenizer\"}", "@bert", FACTS("true"),
      davit_scan_bert);
ENTRY(cased, "wordpiece", "{\"type\":\"BertPreTokenizer\"}", "@bert-cased", FACTS("false"),
      davit_scan_bert);
ENTRY(words, "words", "{\"type\":\"Whitespace\"}", NULL, NULL, davit_scan_word_runs);

static const davit_tok_shape *const shapes[] = {&uncased, &cased, &words, NULL};
static const davit_tokenizer_iface iface = {DAVIT_END(davit_tokenizer_iface, shapes),
                                            shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.wordpiece",
                "model=wordpiece;family=wordpiece", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.wordpiece", "BERT WordPiece", "davit", "1.0.0",
             "Apache-2.0", &component);
