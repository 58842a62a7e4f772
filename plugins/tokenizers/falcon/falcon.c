/* SPDX-License-Identifier: Apache-2.0
 * Falcon: punctuation, GPT-2, and digits on the 256 letters.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SHAPE                                                                            \
    "{\"pretokenizers\":[{\"behavior\":\"Contiguous\",\"type\":\"Punctuation\"},"           \
    "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":true},"             \
    "{\"individual_digits\":false,\"type\":\"Digits\"},{\"behavior\":\"Isolated\","        \
    "\"invert\":false,\"pattern\":{\"Regex\":\"[0-9][0-9][0-9]\"},\"type\":\"Split\"}],"    \
    "\"type\":\"Sequence\"}"

static const davit_tok_shape falcon = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "falcon",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "falcon",
    .gguf_facts = "{\"normalizer\":null,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_falcon,
};

static const davit_tok_shape *const shapes[] = {&falcon, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.falcon",
                "model=bpe;family=falcon", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.falcon", "Falcon pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
