/* SPDX-License-Identifier: Apache-2.0
 * DeepSeek-V3: numbers, then CJK, then everything else, each stage on the pieces before.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n"         \
    "\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|"      \
    "\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define NUMBERS SPLIT("\\\\p{N}{1,3}")
#define CJK     SPLIT("[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+")
#define BYTES   "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" NUMBERS CJK SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static const davit_tok_shape deepseek_v3 = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "deepseek_v3",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "deepseek-v3|hunyuan-dense|joyai-llm",
    .gguf_facts = "{\"normalizer\":null,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = davit_scan_deepseek3,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&deepseek_v3, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.deepseek-v3",
                "model=bpe;family=deepseek_v3", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.deepseek-v3", "DeepSeek-V3 pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
