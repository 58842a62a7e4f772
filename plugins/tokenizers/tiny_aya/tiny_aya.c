/* SPDX-License-Identifier: Apache-2.0
 * Tiny Aya and Cohere2-MoE: digits in threes from the right, then the o200k regex.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define GROUPS "\\\\d{1,3}(?=(?:\\\\d{3})*\\\\b)"
#define REGEX                                                                            \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*["     \
    "\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\\\r\\\\"     \
    "n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\"     \
    "\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\\\p{N}{1,3}| ?[^\\\\"     \
    "s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT(GROUPS) SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static uint64_t tiny_aya_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                              uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 3,
                                           .tail = DAVIT_TAIL_SLASHES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_GROUPS};

    return davit_scan_cased(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape tiny_aya = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "tiny_aya",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "tiny_aya|cohere2moe",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = tiny_aya_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&tiny_aya, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.tiny-aya",
                "model=bpe;family=tiny_aya", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.tiny-aya", "Tiny Aya pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
