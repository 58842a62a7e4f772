/* SPDX-License-Identifier: Apache-2.0
 * The regex of Ling (BailingMoE) and LLaDA-MoE: Qwen 2 spelled with possessive quantifiers.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}+|\\\\p{N}| ?[^\\"     \
    "\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|\\\\s+"
#define SHAPE(behavior, invert)                                                          \
    "{\"pretokenizers\":[{\"behavior\":\"" behavior "\",\"invert\":" invert              \
    ",\"pattern\":{\"Regex\":\"" REGEX "\"},\"type\":\"Split\"},"                        \
    "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}],"          \
    "\"type\":\"Sequence\"}"

static uint64_t bailing_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                             uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape isolated = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "bailing",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .gguf_pre = "bailingmoe|bailingmoe2|llada-moe",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = bailing_scan,
    .cut = davit_cut_lines,
};

/* The regex covers every character, so keeping the matches only is the same. */
static const davit_tok_shape removed = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "bailing",
    .pre_tokenizer = SHAPE("Removed", "true"),
    .scan = bailing_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&isolated, &removed, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.bailing",
                "model=bpe;family=bailing", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.bailing", "Ling (BailingMoE) and LLaDA-MoE pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
