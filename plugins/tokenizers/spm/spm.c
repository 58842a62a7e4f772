/* SPDX-License-Identifier: Apache-2.0
 * SentencePiece BPE without a pre-tokenizer, or with one that only marks spaces.
 *
 * The core turns spaces into U+2581 (normaliser or Metaspace) before a scanner is asked.
 */
#include <davit/help/scan.h>
#include <davit/tokenizer.h>

#define MARK "\xe2\x96\x81" /* U+2581 */
#define REPLACE(from, to)                                                                 \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},\"content\":\"" to "\"}"
#define MODEL "\"model\":{\"byte_fallback\":true,\"fuse_unk\":true},\"add_bos\":true"
#define UNMARK                                                                            \
    REPLACE(MARK, " ") ",{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}"
#define DECODER(more)                                                                     \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" UNMARK more "]}"
#define METASPACE(scheme, split)                                                          \
    "{\"prepend_scheme\":\"" scheme "\",\"replacement\":\"" MARK "\",\"split\":" split    \
    ",\"type\":\"Metaspace\"}"

static uint64_t spm_before(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    return davit_scan_before(MARK, 3, text, n, from, ends, cap);
}

static uint64_t spm_after_space(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                                uint64_t cap)
{
    return davit_scan_after(" ", 1, text, n, from, ends, cap);
}

#define ENTRY(sym, shape, pre, facts, scanner)                                            \
    static const davit_tok_shape sym = {.struct_size = DAVIT_END(davit_tok_shape, cut),   \
                                        .name = "spm",                                    \
                                        .pre_tokenizer = shape,                           \
                                        .gguf_pre = pre,                                  \
                                        .gguf_facts = facts,                              \
                                        .scan = scanner}

ENTRY(legacy, "null", "@llama",
      "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
      "\"prepend\":\"" MARK "\"}," REPLACE(" ", MARK) "]}," MODEL ","
      DECODER(",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}") "}", NULL);
ENTRY(bare, "null", "@llama-nospace",
      "{\"normalizer\":" REPLACE(" ", MARK) "," MODEL "," DECODER("") "}", NULL);
ENTRY(gemma,
      "{\"behavior\":\"MergedWithPrevious\",\"invert\":false,\"pattern\":{\"String\":\" \"},"
      "\"type\":\"Split\"}", "@gemma",
      "{\"normalizer\":" REPLACE(" ", MARK) ",\"merges_by_id\":true," MODEL ","
      DECODER("") "}", spm_after_space);
ENTRY(always, METASPACE("always", "true"), NULL, NULL, spm_before);
ENTRY(first, METASPACE("first", "true"), NULL, NULL, spm_before);
ENTRY(never, METASPACE("never", "true"), NULL, NULL, spm_before);
ENTRY(always_whole, METASPACE("always", "false"), NULL, NULL, NULL);
ENTRY(first_whole, METASPACE("first", "false"), NULL, NULL, NULL);
ENTRY(never_whole, METASPACE("never", "false"), NULL, NULL, NULL);

static const davit_tok_shape *const shapes[] = {&legacy,       &bare,        &gemma,
                                                &always,       &first,       &never,
                                                &always_whole, &first_whole, &never_whole,
                                                NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(component, DAVIT_KIND_TOKENIZER, "org.davit.tokenizer.spm",
                "model=bpe;family=spm", DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.davit.tokenizer.spm", "SentencePiece BPE without pre-tokenizer", "davit",
             "1.0.0", "Apache-2.0", &component);
