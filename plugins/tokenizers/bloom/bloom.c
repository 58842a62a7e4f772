/* SPDX-License-Identifier: Apache-2.0
 * BLOOM: words with a space in front, gaps between them; Viking adds Digits.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define REGEX                                                                            \
    " ?[^(\\\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
#define SPLIT(regex)                                                                     \
    "{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"" regex        \
    "\"},\"type\":\"Split\"},"
#define BYTES "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}"
#define DIGITS "{\"individual_digits\":true,\"type\":\"Digits\"},"
#define SHAPE(more)                                                                      \
    "{\"pretokenizers\":[" SPLIT(REGEX) more BYTES "],\"type\":\"Sequence\"}"

static uint64_t bloom_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    return davit_scan_bloom(0, text, n, from, ends, cap);
}

static uint64_t viking_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                            uint64_t cap)
{
    return davit_scan_bloom(1, text, n, from, ends, cap);
}

static const davit_tok_shape bloom = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "bloom",
    .pre_tokenizer = SHAPE(""),
    .gguf_pre = "bloom",
    .gguf_facts = "{\"normalizer\":null,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = bloom_scan,
};

/* Normalisers that are not known. */
static const davit_tok_shape bloom_open = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "bloom",
    .pre_tokenizer = SHAPE(""),
    .gguf_pre = "poro-chat|gpt3-finnish",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = bloom_scan,
};

static const davit_tok_shape viking = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "bloom_digits",
    .pre_tokenizer = SHAPE(DIGITS),
    .gguf_pre = "viking",
    .gguf_facts = "{\"open\":true,\"decoder\":{\"type\":\"ByteLevel\"}}",
    .scan = viking_scan,
};

static const davit_tok_shape *const shapes[] = {&bloom, &viking, &bloom_open, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.bloom",
                "model=bpe;family=bloom", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.bloom", "BLOOM pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
