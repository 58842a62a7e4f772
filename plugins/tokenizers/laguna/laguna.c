/* SPDX-License-Identifier: Apache-2.0
 * Laguna: lines and runs of line feeds first, then the Qwen 2 regex on each.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define LINES "[^\\\\n]+|[\\\\n]+"
#define REGEX                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"     \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"      \
    "\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT(LINES) SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static uint64_t laguna_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                            uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 1,
                                           .tail = DAVIT_TAIL_NEWLINES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_LINES};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape laguna = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "laguna",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "laguna",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = laguna_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&laguna, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.laguna",
                "model=bpe;family=laguna", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.laguna", "Laguna pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
