/* SPDX-License-Identifier: Apache-2.0
 * The cl100k regex as Llama 3 has it: up to three digits, symbols with the newlines
 * behind.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SHAPE(behavior, invert)                                                          \
    "{\"pretokenizers\":[{\"behavior\":\"" behavior "\",\"invert\":" invert              \
    ",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\\\p{L}\\\\p{N}]?"  \
    "\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\r\\n]*|\\\\s*[\\r\\n]+|"      \
    "\\\\s+(?!\\\\S)|\\\\s+\"},\"type\":\"Split\"},{\"add_prefix_space\":false,"         \
    "\"type\":\"ByteLevel\",\"use_regex\":false}],\"type\":\"Sequence\"}"
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"

static uint64_t llama3_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                            uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

#define ENTRY(sym, shape, pre, facts)                                                    \
    static const davit_tok_shape sym = {.struct_size = DAVIT_END(davit_tok_shape, rank_facts),  \
                                        .name = "llama3",                                \
                                        .pre_tokenizer = shape,                          \
                                        .gguf_pre = pre,                                 \
                                        .gguf_facts = facts,                             \
                                        .scan = llama3_scan,                             \
                                        .cut = davit_cut_lines}

ENTRY(isolated, SHAPE("Isolated", "false"),
      "llama3|llama-v3|llama-bpe|falcon3|falcon-h1|pixtral|midm-2.0|lfm2|jina-v5-nano",
      "{\"normalizer\":null,\"model\":{\"ignore_merges\":true},\"add_bos\":true," DECODER
      "}");
ENTRY(merging, SHAPE("Isolated", "false"), "dbrx|smaug-bpe|glm4|chatglm-bpe",
      "{\"normalizer\":null," DECODER "}");
/* The regex covers every character, so keeping the matches only is the same. */
ENTRY(removed, SHAPE("Removed", "true"), NULL, NULL);

static const davit_tok_shape *const shapes[] = {&isolated, &merging, &removed, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.llama3",
                "model=bpe;family=llama3", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.llama3", "Llama 3 and cl100k pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
