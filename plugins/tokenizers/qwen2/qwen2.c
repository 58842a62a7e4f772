/* SPDX-License-Identifier: Apache-2.0
 * The regex of Qwen 2 and 3: digits one by one, NFC before it.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SHAPE(behavior, invert)                                                          \
    "{\"pretokenizers\":[{\"behavior\":\"" behavior "\",\"invert\":" invert              \
    ",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\\\p{L}\\\\p{N}]?"  \
    "\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\r\\n]*|\\\\s*[\\r\\n]+|"           \
    "\\\\s+(?!\\\\S)|\\\\s+\"},\"type\":\"Split\"},{\"add_prefix_space\":false,"         \
    "\"type\":\"ByteLevel\",\"use_regex\":false}],\"type\":\"Sequence\"}"
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"

static uint64_t qwen2_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

#define ENTRY(sym, shape, pre, facts)                                                    \
    static const davit_tok_shape sym = {.struct_size = DAVIT_END(davit_tok_shape, rank_facts),  \
                                        .name = "qwen2",                                 \
                                        .pre_tokenizer = shape,                          \
                                        .gguf_pre = pre,                                 \
                                        .gguf_facts = facts,                             \
                                        .scan = qwen2_scan,                              \
                                        .cut = davit_cut_lines}

ENTRY(isolated, SHAPE("Isolated", "false"),
      "qwen2|deepseek-r1-qwen|kormo|f2llmv2|megrez|stablelm2|hunyuan|solar-open|grok-2",
      "{\"normalizer\":{\"type\":\"NFC\"}," DECODER "}");
/* qwen.tiktoken of Qwen 1, which normalises in its Python code. */
static const davit_tok_shape first = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "qwen2",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .rank_hashes = "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
    .scan = qwen2_scan,
    .cut = davit_cut_lines,
    .rank_facts =
        "{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"ignore_merges\":true}," DECODER
        ",\"added_tokens\":[{\"id\":151643,\"content\":\"<|endoftext|>\"},"
        "{\"id\":151644,\"content\":\"<|im_start|>\"},"
        "{\"id\":151645,\"content\":\"<|im_end|>\"}],\"reserved_tokens\":["
        "{\"prefix\":\"<|extra_\",\"suffix\":\"|>\",\"from\":151646,\"to\":151850,"
        "\"number\":0}]}",
};

/* The regex covers every character, so keeping the matches only is the same. */
ENTRY(removed, SHAPE("Removed", "true"), NULL, NULL);

static const davit_tok_shape *const shapes[] = {&isolated, &first, &removed, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.qwen2",
                "model=bpe;family=qwen2", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.qwen2", "Qwen 2 pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
