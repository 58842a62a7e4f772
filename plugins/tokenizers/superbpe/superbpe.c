/* SPDX-License-Identifier: Apache-2.0
 * SuperBPE: only numbers are cut, so tokens may span words.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define NUMBERS "\\\\p{N}+"
#define THREES  "(?=(\\\\d{3})+(?!\\\\d))"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT(NUMBERS) SPLIT(THREES) BYTES "],\"type\":\"Sequence\"}"

static const davit_tok_shape superbpe = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "superbpe",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "superbpe",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_superbpe,
};

static const davit_tok_shape *const shapes[] = {&superbpe, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.superbpe",
                "model=bpe;family=superbpe", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.superbpe", "SuperBPE pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
