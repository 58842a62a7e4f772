/* SPDX-License-Identifier: Apache-2.0
 * Chameleon: sentinels, image tokens, blanks, digits and signs, then GPT-2.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SENTINELS "<sentinel:[0-9]+>"
#define IMAGES    "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"
#define BLANKS    "([\\\\t\\\\n]|    |  )"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES  "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":true}"
#define DIGITS "{\"individual_digits\":true,\"type\":\"Digits\"},"
#define SIGNS  "{\"behavior\":\"Isolated\",\"type\":\"Punctuation\"},"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT(SENTINELS) SPLIT(IMAGES) SPLIT(BLANKS)                  \
        DIGITS SIGNS BYTES "],\"type\":\"Sequence\"}"

static const davit_tok_shape chameleon = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "chameleon",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "chameleon",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_chameleon,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&chameleon, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.chameleon",
                "model=bpe;family=chameleon", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.chameleon", "Chameleon pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
