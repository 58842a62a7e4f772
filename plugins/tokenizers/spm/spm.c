/* SPDX-License-Identifier: Apache-2.0
 * SentencePiece BPE without a pre-tokenizer, or with one that only marks spaces.
 *
 * The core turns spaces into U+2581 (normaliser or Metaspace) before a scanner is asked.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define MARK "\xe2\x96\x81" /* U+2581 */
#define REPLACE(from, to)                                                                \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},\"content\":\"" to "\"}"
#define MODEL "\"model\":{\"byte_fallback\":true,\"fuse_unk\":true},\"add_bos\":true"
#define DECODER(more)                                                                    \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" REPLACE(                         \
        MARK, " ") ",{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}" more "]}"
#define METASPACE(scheme, split)                                                         \
    "{\"prepend_scheme\":\"" scheme "\",\"replacement\":\"" MARK "\",\"split\":" split   \
    ",\"type\":\"Metaspace\"}"

#define ENTRY(sym, shape, pre, facts, scanner)                                           \
    static const davit_tok_shape sym = {                                                 \
        .struct_size = DAVIT_END(davit_tok_shape, rank_facts),                           \
        .name = "spm",                                                                   \
        .pre_tokenizer = shape,                                                          \
        .gguf_pre = pre,                                                                 \
        .gguf_facts = facts,                                                             \
        .scan = scanner}

ENTRY(legacy, "null", "@llama",
      "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
      "\"prepend\":\"" MARK "\"}," REPLACE(" ", MARK) "]}," MODEL "," DECODER(
          ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}") "}",
      NULL);
ENTRY(bare, "null", "@llama-nospace",
      "{\"normalizer\":" REPLACE(" ", MARK) "," MODEL "," DECODER("") "}", NULL);
ENTRY(gemma,
      "{\"behavior\":\"MergedWithPrevious\",\"invert\":false,"
      "\"pattern\":{\"String\":\" \"},\"type\":\"Split\"}",
      "@gemma",
      "{\"normalizer\":" REPLACE(" ", MARK) ",\"merges_by_id\":true," MODEL
                                            "," DECODER("") "}",
      davit_scan_after_space);
#define METASPACES(scheme)                                                               \
    ENTRY(scheme##_split, METASPACE(#scheme, "true"), NULL, NULL,                        \
          davit_scan_before_mark);                                                       \
    ENTRY(scheme##_whole, METASPACE(#scheme, "false"), NULL, NULL, NULL)
METASPACES(always);
METASPACES(first);
METASPACES(never);

static const davit_tok_shape *const shapes[] = {
    &legacy,      &bare,        &gemma,       &always_split, &always_whole,
    &first_split, &first_whole, &never_split, &never_whole,  NULL};
static const davit_tokenizer_iface iface = {DAVIT_END(davit_tokenizer_iface, shapes),
                                            shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.spm",
                "model=bpe;family=spm", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.spm", "SentencePiece BPE", "davit", "1.0.0",
             "Apache-2.0", &component);
