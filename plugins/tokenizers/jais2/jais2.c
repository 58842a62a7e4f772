/* SPDX-License-Identifier: Apache-2.0
 * Jais 2: the Llama 3 regex with white space cut into powers of two.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{"     \
    "1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s{512}(?"     \
    "!\\\\S)|\\\\s{256}(?!\\\\S)|\\\\s{128}(?!\\\\S)|\\\\s{64}(?!\\\\S)|\\\\s{32}(?"     \
    "!\\\\S)|\\\\s{16}(?!\\\\S)|\\\\s{8}(?!\\\\S)|\\\\s{4}(?!\\\\S)|\\\\s{1,2}(?!\\"     \
    "\\S)|\\\\s{1}"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE "{\"pretokenizers\":[" SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static uint64_t jais2_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1, .halves = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape jais2 = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "jais2",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "jais-2",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = jais2_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&jais2, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.jais2",
                "model=bpe;family=jais2", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.jais2", "Jais 2 pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
