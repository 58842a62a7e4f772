/* SPDX-License-Identifier: Apache-2.0
 * The GPT-2 pre-tokenizer: one ByteLevel stage with its own regex.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define BYTE_LEVEL(prefix)                                                               \
    "{\"add_prefix_space\":" prefix ",\"type\":\"ByteLevel\",\"use_regex\":true}"

static const davit_tok_shape gpt2 = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2",
    .pre_tokenizer = BYTE_LEVEL("false"),
    .gguf_pre = "gpt-2|phi-2|roberta-bpe|gigachat|mellum|exaone4",
    .gguf_facts = "{\"normalizer\":null,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_gpt2,
    .cut = davit_cut_lines,
};

/* MPT, OLMo 1 and ModernBERT normalise. */
static const davit_tok_shape gpt2_nfc = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2",
    .pre_tokenizer = BYTE_LEVEL("false"),
    .gguf_pre = "mpt|olmo|modern-bert",
    .gguf_facts =
        "{\"normalizer\":{\"type\":\"NFC\"},\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_gpt2,
    .cut = davit_cut_lines,
};

/* The core puts the space in front; the regex is the same. */
static const davit_tok_shape gpt2_prefix = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2",
    .pre_tokenizer = BYTE_LEVEL("true"),
    .scan = davit_scan_gpt2,
    .cut = davit_cut_lines,
};

/* r50k_base.tiktoken, which is GPT-2's vocab.json and merges.txt, too. */
static const davit_tok_shape r50k = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2",
    .pre_tokenizer = BYTE_LEVEL("false"),
    .rank_hashes = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    .scan = davit_scan_gpt2,
    .cut = davit_cut_lines,
    .rank_facts = "{\"normalizer\":null,\"model\":{\"ignore_merges\":true},"
                  "\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":["
                  "{\"id\":50256,\"content\":\"<|endoftext|>\"}]}",
};

/* Normalisers that are not known. */
static const davit_tok_shape gpt2_open = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2",
    .pre_tokenizer = BYTE_LEVEL("false"),
    .gguf_pre = "jais|trillion|granite-docling|a.x-4.0",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_gpt2,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&gpt2, &r50k, &gpt2_nfc, &gpt2_prefix, &gpt2_open, NULL};

static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes),
    .shapes = shapes,
};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.gpt2",
                "model=bpe;family=gpt2", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.gpt2", "GPT-2 pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
