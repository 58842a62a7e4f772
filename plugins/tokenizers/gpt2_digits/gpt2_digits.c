/* SPDX-License-Identifier: Apache-2.0
 * Digits one by one, then the GPT-2 pre-tokenizer.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SHAPE                                                                            \
    "{\"pretokenizers\":[{\"individual_digits\":true,\"type\":\"Digits\"},"              \
    "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":true}],"           \
    "\"type\":\"Sequence\"}"
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"

/* SmolLM's vocabulary lacks the letters of 21 bytes; without an unknown token they
 * vanish. */
static const davit_tok_shape digits = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2_digits",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "smollm|starcoder|refact|codeshell|exaone|minerva-7b",
    .gguf_facts = "{\"normalizer\":null,\"model\":{\"unk_token\":null}," DECODER "}",
    .scan = davit_scan_gpt2_digits,
    .cut = davit_cut_lines,
};

static const davit_tok_shape command_r = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2_digits",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "command-r",
    .gguf_facts = "{\"normalizer\":{\"type\":\"NFC\"},\"add_bos\":true," DECODER "}",
    .scan = davit_scan_gpt2_digits,
    .cut = davit_cut_lines,
};

/* Normalisers that are not known. */
static const davit_tok_shape mellum2 = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "gpt2_digits",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "mellum2",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_gpt2_digits,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&digits, &command_r, &mellum2, NULL};

static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes),
    .shapes = shapes,
};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.gpt2-digits",
                "model=bpe;family=gpt2_digits", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.gpt2-digits", "GPT-2 pre-tokenizer with single digits",
             "davit", "1.0.0", "Apache-2.0", &component);
