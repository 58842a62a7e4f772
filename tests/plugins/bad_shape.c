/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer whose second shape is wrong: NAME and SHAPE come from CMakeLists.txt. */
#include <davit/plugin.h>
#include <davit/tokenizer.h>

static const davit_tok_shape good = {.struct_size = DAVIT_END(davit_tok_shape, rank_facts),
                                     .name = "good",
                                     .pre_tokenizer = "{\"type\":\"Whitespace\"}"};
static const davit_tok_shape bad = {.struct_size = DAVIT_END(davit_tok_shape, rank_facts),
                                    SHAPE};
static const davit_tok_shape *const shapes[] = {&good, &bad, 0};
static const davit_tokenizer_iface tokenizer = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(plain, DAVIT_KIND_TOKENIZER, "org.example." NAME, "family=" NAME, DAVIT_RUN, 50,
                .iface = &tokenizer);
DAVIT_PLUGIN("org.example.bundle." NAME, NAME, "Example", "1.0.0", "MIT", &plain);
