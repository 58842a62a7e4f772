/* SPDX-License-Identifier: Apache-2.0
 * Kind "tokenizer", interface 1.0: exact pre-tokenizer shapes and their scanners.
 *
 * The core reads every vocabulary and owns added tokens, normalisers, merging, decoders. A
 * plugin says which exact pre-tokenizer shapes it knows and cuts text for them. Nothing is
 * matched by name or by likeness: the canonical shape text is equal or it is not.
 */
#ifndef DAVIT_TOKENIZER_H
#define DAVIT_TOKENIZER_H

#include "suites.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set in an end that `scan` gives: the piece that ends there is dropped, it gives no ids
 * (WhitespaceSplit, a Split whose behaviour is Removed). Neighbouring dropped pieces may
 * be given as one. */
#define DAVIT_TOK_DROP (1ull << 63)

/* One claimed shape. All strings static. */
typedef struct davit_tok_shape {
    uint64_t struct_size; /* DAVIT_END(davit_tok_shape, rank_facts) */
    const char *name;     /* family, for people: "llama3" */

    /* Shape of the `pre_tokenizer` member. The host makes it canonical on both sides: JSON
     * with keys sorted, defaults filled in, no white space, regex escapes folded to
     * characters, members that change no id (trim_offsets, str_rep) left out, nested
     * Sequences flattened; "null" = none. `davit tokenize --explain` prints it. */
    const char *pre_tokenizer;

    /* GGUF `tokenizer.ggml.pre` names this shape answers for, joined by '|'; NULL = none. */
    const char *gguf_pre;
    /* What GGUF leaves out for those names, as members of a tokenizer.json object:
     * {"normalizer":…,"pre_tokenizer":…,"model":{"ignore_merges":true},"decoder":…,
     *  "post_processor":…}; pre_tokenizer defaults to the shape's own. Further members:
     * add_bos, add_eos, merges_by_id (bool), and in model unk_token, byte_fallback, fuse_unk.
     * "open": true where it is not known which of none, NFC and NFKC the normalizer is, nor
     * ignore_merges, both of which are then left out: a text that they make a difference for is
     * refused, so that the ids of all others are right whichever they are.
     * Names in gguf_pre that start with '@' are the host's own (SentencePiece vocabularies).
     * Required with gguf_pre. */
    const char *gguf_facts;

    /* sha256 of rank lists ('|'-joined, lower hex) for files without a pre-tokenizer
     * (tiktoken); NULL = none. Hashed is the list as a .tiktoken file has it, in ascending
     * rank: base64 of the token's bytes, a space, the rank in decimal, a line feed. A
     * record about an unknown list prints its hash. */
    const char *rank_hashes;

    /* Cut @text with the whole pre-tokenizer: byte ends of pieces after @from, at most @cap,
     * ascending; gaps count as pieces where the shape keeps them. Returns how many; fewer
     * than @cap only when the last end is @n. An end may carry DAVIT_TOK_DROP. @from is 0
     * or an end given before on the same text, without the flag. @text is what follows
     * Metaspace or a ByteLevel prefix blank, before bytes become letters; an end may lie
     * inside a character where the shape works on bytes. Where Metaspace is the last of
     * several stages, @text is what lies before it and the host applies it to each piece.
     * No allocation, no recursion, time linear in the bytes passed over.
     * NULL = the shape never splits. [any thread] */
    uint64_t (*scan)(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                     uint64_t cap);

    /* Next offset >= @from that ends a piece and where a scan started afresh equals a
     * continued one, whatever the text before it; or @n.
     * NULL = unknown (no threads inside one text). [any thread] */
    uint64_t (*cut)(const char *text, uint64_t n, uint64_t from);

    /* What a rank list leaves out, as gguf_facts does, and "added_tokens": the list of a
     * tokenizer.json whose entries may leave out their flags (special and nothing else
     * then). "reserved_tokens": [{"prefix","suffix","from","to","number"}] adds one
     * special token for each id in from..to, text prefix + number + suffix, numbers
     * counting up. Required with rank_hashes. */
    const char *rank_facts;
} davit_tok_shape;

typedef struct davit_tokenizer_iface {
    uint64_t struct_size; /* DAVIT_END(davit_tokenizer_iface, shapes) */
    const davit_tok_shape *const *shapes; /* NULL-terminated. Required */
} davit_tokenizer_iface;

#ifdef __cplusplus
}
#endif
#endif
