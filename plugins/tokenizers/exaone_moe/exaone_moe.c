/* SPDX-License-Identifier: Apache-2.0
 * K-EXAONE (EXAONE-MoE): words go on behind single spaces.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?(?:\\\\p{L}\\\\p{M}"     \
    "*(?: \\\\p{L}\\\\p{M}*)*)+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]?|"     \
    "\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE "{\"pretokenizers\":[" SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static uint64_t exaone_moe_scan(const char *text, uint64_t n, uint64_t from,
                                uint64_t *ends, uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_ONE, .contraction = 1, .spaced = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape exaone_moe = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "exaone_moe",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "exaone-moe",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = exaone_moe_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&exaone_moe, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.exaone-moe",
                "model=bpe;family=exaone_moe", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.exaone-moe", "EXAONE-MoE pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
