/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer family for sequences: up to six letters of ACGTN make a piece, everything between
 * is one, too. The regex is [ACGTN]{1,6}|[^ACGTN]+, then ByteLevel. */
#include <string.h>

#include <davit/tokenizer.h>

#define LONGEST 6

static int is_base(char c)
{
    return c != '\0' && strchr("ACGTN", c) != NULL;
}

static uint64_t dna_scan(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                         uint64_t cap)
{
    uint64_t count = 0;

    while (from < n && count < cap) {
        const int base = is_base(text[from]);
        const uint64_t start = from;

        while (from < n && is_base(text[from]) == base && !(base && from - start == LONGEST))
            from++;
        out_ends[count++] = from;
    }
    return count;
}

/* Where letters begin after something else, a piece begins whatever was before. */
static uint64_t dna_cut(const char *text, uint64_t n, uint64_t from)
{
    for (from += from == 0; from < n; from++)
        if (is_base(text[from]) && !is_base(text[from - 1]))
            return from;
    return n;
}

static const davit_tok_shape dna_shape = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "dna",
    .pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                     "\"pattern\":{\"Regex\":\"[ACGTN]{1,6}|[^ACGTN]+\"},"
                     "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
                     "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]}",
    .scan = dna_scan,
    .cut = dna_cut,
};

static const davit_tok_shape *const dna_shapes[] = {&dna_shape, NULL};
static const davit_tokenizer_iface dna_tokenizer = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = dna_shapes};

DAVIT_COMPONENT(dna, DAVIT_KIND_TOKENIZER, "org.example.tokenizer.dna", "family=dna", DAVIT_RUN, 50,
                .iface = &dna_tokenizer);
DAVIT_PLUGIN("org.example.tokenizer.dna", "Sequences of bases", "Example", "1.0.0", "Apache-2.0",
             &dna);
