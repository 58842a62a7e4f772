/* SPDX-License-Identifier: Apache-2.0
 * MiniCPM5: numbers first, three at a time, then the Llama 3 regex on what is between.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define NUMBERS "\\\\p{N}{1,3}"
#define REGEX                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}+"     \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"     \
    "\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT(NUMBERS) SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static uint64_t minicpm5_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                              uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 3,
                                           .tail = DAVIT_TAIL_NEWLINES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_NUMBERS};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape minicpm5 = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "minicpm5",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "minicpm5",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = minicpm5_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&minicpm5, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.minicpm5",
                "model=bpe;family=minicpm5", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.minicpm5", "MiniCPM5 pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
