/* SPDX-License-Identifier: Apache-2.0
 * AFMoE (Trinity): digits in threes from the right, Asian scripts, then the DeepSeek-V3
 * regex.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define CHUNKS                                                                           \
    "\\\\p{Nd}{1,510}(?=(?>\\\\p{Nd}{510})*(?:\\\\P{Nd}|$))|\\\\G\\\\p{Nd}{510}"
#define FIRST  "\\\\A\\\\p{Nd}{1,2}(?=\\\\p{Nd}{3}+\\\\z)"
#define THREES "\\\\A\\\\p{Nd}{3}|\\\\G\\\\p{Nd}{3}"
#define ASIAN(first)                                                                     \
    "[\u4e00-\u9fff\u3400-\u4dbf" first "-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-"       \
    "\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-"     \
    "\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
#define REGEX                                                                            \
    "[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\\\r\\\\n"     \
    "\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n"     \
    "]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES  "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define DIGITS SPLIT(CHUNKS) SPLIT(FIRST) SPLIT(THREES)
#define SHAPE(first)                                                                     \
    "{\"pretokenizers\":[" DIGITS SPLIT(ASIAN(first)) SPLIT(REGEX) BYTES                 \
        "],\"type\":\"Sequence\"}"

static uint64_t afmoe_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    return davit_scan_afmoe(0, text, n, from, ends, cap);
}

static uint64_t afmoe_wide_scan(const char *text, uint64_t n, uint64_t from,
                                uint64_t *ends, uint64_t cap)
{
    return davit_scan_afmoe(1, text, n, from, ends, cap);
}

#define ENTRY(sym, first, fn)                                                            \
    static const davit_tok_shape sym = {.struct_size =                                   \
                                            DAVIT_END(davit_tok_shape, rank_facts),      \
                                        .name = "afmoe",                                 \
                                        .pre_tokenizer = SHAPE(first),                   \
                                        .scan = fn,                                      \
                                        .cut = davit_cut_lines}

ENTRY(afmoe, "\uf900", afmoe_scan);
/* U+F900 is U+8C48 in NFC, and so llama.cpp has it; which of the two a file has, decides.
 */
ENTRY(wide, "\u8c48", afmoe_wide_scan);

static const davit_tok_shape *const shapes[] = {&afmoe, &wide, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.afmoe",
                "model=bpe;family=afmoe", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.afmoe", "AFMoE pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
