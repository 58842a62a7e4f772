/* SPDX-License-Identifier: Apache-2.0
 * DeepSeek-Coder: newlines, letters, signs, CJK, digits, each a Split of its own.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define LETTERS SPLIT("\\\\s?\\\\p{L}+")
#define SIGNS   SPLIT("\\\\s?\\\\p{P}+")
#define CJK    SPLIT("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+")
#define DIGITS "{\"individual_digits\":true,\"type\":\"Digits\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT("[\\r\\n]") LETTERS SIGNS CJK DIGITS BYTES                \
    "],\"type\":\"Sequence\"}"

static uint64_t coder_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    return davit_scan_deepseek2(0, text, n, from, ends, cap);
}

static const davit_tok_shape coder = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "deepseek_coder",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "deepseek-coder",
    .gguf_facts = "{\"normalizer\":null,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = coder_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&coder, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.deepseek-coder",
                "model=bpe;family=deepseek_coder", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.deepseek-coder", "DeepSeek-Coder pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
