/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer family as it was written for SDK 1.0: compiled against sdk/abi/1.0 alone. It stays
 * as it is. Every byte is a piece; blanks are dropped. */
#include <davit/tokenizer.h>

static uint64_t old_scan(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                         uint64_t cap)
{
    uint64_t count = 0;

    for (; from < n && count < cap; from++)
        out_ends[count++] = (from + 1) | (text[from] == ' ' ? DAVIT_TOK_DROP : 0);
    return count;
}

static const davit_tok_shape old_shape = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "old",
    .pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                     "\"pattern\":{\"Regex\":\" \"},\"behavior\":\"Removed\",\"invert\":false},"
                     "{\"type\":\"Split\",\"pattern\":{\"Regex\":\".\"},\"behavior\":\"Isolated\","
                     "\"invert\":false}]}",
    .scan = old_scan,
};
static const davit_tok_shape *const old_shapes[] = {&old_shape, NULL};
static const davit_tokenizer_iface old_tokenizer = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = old_shapes};

DAVIT_COMPONENT(old, DAVIT_KIND_TOKENIZER, "org.example.old.tokenizer", "family=old", DAVIT_RUN, 50,
                .iface = &old_tokenizer);
DAVIT_PLUGIN("org.example.old.tokenizer", "Tokenizer of 1.0", "Example", "1.0.0", "Apache-2.0", &old);
