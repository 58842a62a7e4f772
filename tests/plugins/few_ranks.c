/* SPDX-License-Identifier: Apache-2.0
 * A claim of the rank list that is the 256 bytes in order and "he": for vocab.json with merges.txt
 * in test_sources.c. */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

static const davit_tok_shape few = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "few_ranks",
    .pre_tokenizer = "{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":true}",
    .rank_hashes = "1e4bff729107704a7941de942e74a5b3be0ef8325f73f0043d38520266c19e0a",
    .scan = davit_scan_gpt2,
    .cut = davit_cut_lines,
    .rank_facts = "{\"normalizer\":null,\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":["
                  "{\"id\":257,\"content\":\"<claimed>\"}]}",
};

static const davit_tok_shape *const shapes[] = {&few, NULL};

static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes),
    .shapes = shapes,
};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "test.few_ranks", "model=bpe;family=few_ranks",
                DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("test.few_ranks", "A rank list of 257 tokens", "davit", "1.0.0", "Apache-2.0",
             &component);
