/* SPDX-License-Identifier: Apache-2.0
 * The regex of Qwen 3.5: marks belong to words, digits one by one, NFC before it.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|"        \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\r\\n]*|\\\\s*[\\r\\n]+|\\\\s+(?"     \
    "!\\\\S)|\\\\s+"
#define SHAPE(behavior, invert)                                                          \
    "{\"pretokenizers\":[{\"behavior\":\"" behavior "\",\"invert\":" invert              \
    ",\"pattern\":{\"Regex\":\"" REGEX "\"},\"type\":\"Split\"},"                        \
    "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}],"          \
    "\"type\":\"Sequence\"}"
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"

static uint64_t qwen35_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                            uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_NEWLINES, .marks = 1, .contraction = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

#define ENTRY(sym, behavior, invert, pre, facts)                                         \
    static const davit_tok_shape sym = {.struct_size = DAVIT_END(davit_tok_shape, rank_facts),  \
                                        .name = "qwen35",                                \
                                        .pre_tokenizer = SHAPE(behavior, invert),        \
                                        .gguf_pre = pre,                                 \
                                        .gguf_facts = facts,                             \
                                        .scan = qwen35_scan,                             \
                                        .cut = davit_cut_lines}

ENTRY(isolated, "Isolated", "false", "qwen35",
      "{\"normalizer\":{\"type\":\"NFC\"}," DECODER "}");
/* The regex covers every character, so keeping the matches only is the same. */
ENTRY(removed, "Removed", "true", NULL, NULL);

static const davit_tok_shape *const shapes[] = {&isolated, &removed, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.qwen35",
                "model=bpe;family=qwen35", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.qwen35", "Qwen 3.5 pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
