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
/* Meta's tokenizer.model of Llama 3.1 and later; Llama 3 has the same list, and calls some
 * of the reserved tokens by other names. */
static const davit_tok_shape meta = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "llama3",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .rank_hashes = "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
    .scan = llama3_scan,
    .cut = davit_cut_lines,
    .rank_facts =
        "{\"normalizer\":null,\"model\":{\"ignore_merges\":true}," DECODER
        ",\"add_bos\":true,\"bos_token\":\"<|begin_of_text|>\",\"added_tokens\":["
        "{\"id\":128000,\"content\":\"<|begin_of_text|>\"},"
        "{\"id\":128001,\"content\":\"<|end_of_text|>\"},"
        "{\"id\":128002,\"content\":\"<|reserved_special_token_0|>\"},"
        "{\"id\":128003,\"content\":\"<|reserved_special_token_1|>\"},"
        "{\"id\":128004,\"content\":\"<|finetune_right_pad_id|>\"},"
        "{\"id\":128005,\"content\":\"<|step_id|>\"},"
        "{\"id\":128006,\"content\":\"<|start_header_id|>\"},"
        "{\"id\":128007,\"content\":\"<|end_header_id|>\"},"
        "{\"id\":128008,\"content\":\"<|eom_id|>\"},"
        "{\"id\":128009,\"content\":\"<|eot_id|>\"},"
        "{\"id\":128010,\"content\":\"<|python_tag|>\"},"
        "{\"id\":128011,\"content\":\"<|image|>\"}],\"reserved_tokens\":["
        "{\"prefix\":\"<|reserved_special_token_\",\"suffix\":\"|>\",\"from\":128012,"
        "\"to\":128255,\"number\":2}]}",
};

/* The regex covers every character, so keeping the matches only is the same. */
ENTRY(removed, SHAPE("Removed", "true"), NULL, NULL);

static const davit_tok_shape *const shapes[] = {&isolated, &merging, &meta, &removed,
                                                NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.llama3",
                "model=bpe;family=llama3", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.llama3", "Llama 3 and cl100k pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
