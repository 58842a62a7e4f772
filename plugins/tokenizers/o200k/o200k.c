/* SPDX-License-Identifier: Apache-2.0
 * The o200k regex: words end where lower case meets upper, contractions belong to words.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "[^\\r\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*["         \
    "\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n"        \
    "\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}"        \
    "\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\\\p{N}{1,3}| ?[^"       \
    "\\\\s\\\\p{L}\\\\p{N}]+[\\r\\n/]*|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SHAPE(behavior, invert)                                                          \
    "{\"pretokenizers\":[{\"behavior\":\"" behavior "\",\"invert\":" invert              \
    ",\"pattern\":{\"Regex\":\"" REGEX "\"},\"type\":\"Split\"},"                        \
    "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}],"          \
    "\"type\":\"Sequence\"}"
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"

static uint64_t o200k_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_SLASHES, .contraction = 1};

    return davit_scan_cased(&rules, text, n, from, ends, cap);
}

#define ENTRY(sym, behavior, invert, pre, facts)                                         \
    static const davit_tok_shape sym = {.struct_size = DAVIT_END(davit_tok_shape, rank_facts),  \
                                        .name = "o200k",                                 \
                                        .pre_tokenizer = SHAPE(behavior, invert),        \
                                        .gguf_pre = pre,                                 \
                                        .gguf_facts = facts,                             \
                                        .scan = o200k_scan,                              \
                                        .cut = davit_cut_lines}

ENTRY(isolated, "Isolated", "false", "gpt-4o",
      "{\"normalizer\":null,\"model\":{\"ignore_merges\":true}," DECODER "}");
ENTRY(llama4, "Isolated", "false", "llama4",
      "{\"normalizer\":null,\"model\":{\"ignore_merges\":true},\"add_bos\":true," DECODER
      "}");
/* o200k_base.tiktoken, as tiktoken itself has it. */
/* Normalisers that are not known. */
ENTRY(others, "Isolated", "false", "kanana2|talkie|minimax-m2", "{\"open\":true," DECODER "}");

static const davit_tok_shape base = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "o200k",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .rank_hashes = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    .scan = o200k_scan,
    .cut = davit_cut_lines,
    .rank_facts = "{\"normalizer\":null,\"model\":{\"ignore_merges\":true}," DECODER
                  ",\"added_tokens\":[{\"id\":199999,\"content\":\"<|endoftext|>\"},"
                  "{\"id\":200018,\"content\":\"<|endofprompt|>\"}]}",
};

#define TOKEN(id, text) "{\"id\":" #id ",\"content\":\"<|" text "|>\"}"
#define RESERVED(name, from, to, number)                                                 \
    "{\"prefix\":\"<|" name "reserved_special_token_\",\"suffix\":\"|>\",\"from\":" #from     \
    ",\"to\":" #to ",\"number\":" #number "}"

/* Meta's tokenizer.model of Llama 4. */
static const davit_tok_shape meta = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "o200k",
    .pre_tokenizer = SHAPE("Isolated", "false"),
    .rank_hashes = "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed",
    .scan = o200k_scan,
    .cut = davit_cut_lines,
    .rank_facts =
        "{\"normalizer\":null,\"model\":{\"ignore_merges\":true}," DECODER
        ",\"add_bos\":true,\"bos_token\":\"<|begin_of_text|>\",\"added_tokens\":["
        TOKEN(200000, "begin_of_text") ","
        TOKEN(200001, "end_of_text") ","
        TOKEN(200002, "fim_prefix") ","
        TOKEN(200003, "fim_middle") ","
        TOKEN(200004, "fim_suffix") ","
        TOKEN(200005, "header_start") ","
        TOKEN(200006, "header_end") ","
        TOKEN(200007, "eom") ","
        TOKEN(200008, "eot") ","
        TOKEN(200009, "step") ","
        TOKEN(200016, "python_start") ","
        TOKEN(200017, "python_end") ","
        TOKEN(200018, "finetune_right_pad") ","
        TOKEN(200080, "image_start") ","
        TOKEN(200081, "image_end") ","
        TOKEN(200084, "tile_x_separator") ","
        TOKEN(200085, "tile_y_separator") ","
        TOKEN(200090, "image") ","
        TOKEN(200092, "patch") ","
        TOKEN(201142, "reasoning_thinking_start") ","
        TOKEN(201143, "reasoning_thinking_end") "],\"reserved_tokens\":["
        RESERVED("text_post_train_", 200010, 200015, 0) ","
        RESERVED("text_post_train_", 200019, 200079, 8) ","
        RESERVED("vision_", 200082, 200083, 0) ","
        RESERVED("vision_", 200086, 200089, 2) ","
        RESERVED("vision_", 200091, 200091, 6) ","
        RESERVED("vision_", 200093, 201133, 7) ","
        RESERVED("reasoning_", 201134, 201141, 0) ","
        RESERVED("", 201144, 202047, 0) "]}",
};

/* The regex covers every character, so keeping the matches only is the same. */
ENTRY(removed, "Removed", "true", NULL, NULL);

static const davit_tok_shape *const shapes[] = {&isolated, &llama4, &others, &base, &meta, &removed,
                                                NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.o200k",
                "model=bpe;family=o200k", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.o200k", "o200k pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
