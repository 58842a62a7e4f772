/* SPDX-License-Identifier: Apache-2.0
 * Youtu: Hangul, CJK signs, Bopomofo, Han and Kana first, then the o200k regex on each.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define SCRIPTS                                                                          \
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014"          \
    "\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5"     \
    "\u3040-\u309f\u30a0-\u30ff]+"
#define REGEX                                                                            \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*["     \
    "\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\\\r\\\\"     \
    "n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\"     \
    "\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\\\p{N}| ?[^\\\\s\\\\"     \
    "p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define SHAPE                                                                            \
    "{\"pretokenizers\":[" SPLIT(SCRIPTS) SPLIT(REGEX) BYTES "],\"type\":\"Sequence\"}"

static uint64_t youtu_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 1,
                                           .tail = DAVIT_TAIL_SLASHES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_SCRIPTS};

    return davit_scan_cased(&rules, text, n, from, ends, cap);
}

static const davit_tok_shape youtu = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "youtu",
    .pre_tokenizer = SHAPE,
    .gguf_pre = "youtu",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = youtu_scan,
    .cut = davit_cut_lines,
};

static const davit_tok_shape *const shapes[] = {&youtu, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.youtu",
                "model=bpe;family=youtu", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.youtu", "Youtu pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
