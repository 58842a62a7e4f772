/* SPDX-License-Identifier: Apache-2.0
 * cl100k_base.tiktoken: the Llama 3 pieces, but white space at the end of a text is one.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

/* Nothing that Hugging Face reads: a pattern of tiktoken's engine. */
#define SHAPE                                                                            \
    "{\"pretokenizers\":[{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{"         \
    "\"Tiktoken\":\"cl100k_base\"},\"type\":\"Split\"},{\"add_prefix_space\":false,"       \
    "\"type\":\"ByteLevel\",\"use_regex\":false}],\"type\":\"Sequence\"}"

static uint64_t cl100k_scan(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                            uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1, .end_space = 1};

    return davit_scan_words(&rules, text, n, from, ends, cap);
}

/* sha256 and special tokens: tiktoken_ext/openai_public.py. */
static const davit_tok_shape base = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "cl100k",
    .pre_tokenizer = SHAPE,
    .rank_hashes = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    .scan = cl100k_scan,
    .rank_facts =
        "{\"normalizer\":null,\"model\":{\"ignore_merges\":true},"
        "\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":["
        "{\"id\":100257,\"content\":\"<|endoftext|>\"},"
        "{\"id\":100258,\"content\":\"<|fim_prefix|>\"},"
        "{\"id\":100259,\"content\":\"<|fim_middle|>\"},"
        "{\"id\":100260,\"content\":\"<|fim_suffix|>\"},"
        "{\"id\":100276,\"content\":\"<|endofprompt|>\"}]}",
};

static const davit_tok_shape *const shapes[] = {&base, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.cl100k",
                "model=bpe;family=cl100k", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.cl100k", "cl100k_base pre-tokenizer", "davit", "1.0.0",
             "Apache-2.0", &component);
