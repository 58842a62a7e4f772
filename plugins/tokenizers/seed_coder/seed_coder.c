/* SPDX-License-Identifier: Apache-2.0
 * The regex of Seed-Coder: Qwen 2, symbols without the newlines behind.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{"     \
    "1}| ?[^\\\\s\\\\p{L}\\\\p{N}\\\\r\\\\n]+|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"      \
    "\\\\s+"
#define SHAPE(behavior, invert)                                                          \
    "{\"pretokenizers\":[{\"behavior\":\"" behavior "\",\"invert\":" invert              \
    ",\"pattern\":{\"Regex\":\"" REGEX "\"},\"type\":\"Split\"},"                        \
    "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}],"          \
    "\"type\":\"Sequence\"}"

static uint64_t seed_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                          uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_NONE, .contraction = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape isolated = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "seed_coder",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .gguf_pre = "seed-coder",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = seed_scan,
    .cut = davit_cut_lines,
};

/* The regex covers every character, so keeping the matches only is the same. */
static const davit_tok_shape removed = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "seed_coder",
    .pre_tokenizer = SHAPE("Removed", "true"),
    .scan = seed_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&isolated, &removed, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.seed-coder",
                "model=bpe;family=seed_coder", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.seed-coder", "Seed-Coder pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
