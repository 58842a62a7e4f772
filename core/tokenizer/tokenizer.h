/* SPDX-License-Identifier: Apache-2.0
 * Tokenizer: text to ids and back, with the ids of Hugging Face's `tokenizers` 0.23.
 *
 * Three objects. DavitTokenizer is what a file says: immutable, shared by all threads,
 * must outlive the other two. DavitEncoder holds one thread's scratch and word cache.
 * DavitDecoder turns ids into text as they come, never half a character.
 *
 * The pre-tokenizer belongs to plugins (davit/tokenizer.h): the registry is asked for the
 * exact canonical shape of the file's `pre_tokenizer`, or for the GGUF `pre` name. Every
 * other stage is here. What is not known exactly is refused: pretokenizer-unknown,
 * tokenizer-unsupported; a file that breaks its own rules: tokenizer-invalid.
 */
#ifndef DAVIT_TOKENIZER_TOKENIZER_H
#define DAVIT_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <davit/suites.h>

#include "base/report.h"
#include "plugin/registry.h"

#define DAVIT_TOK_MAX_TEXT                                                               \
    (1ull << 30)                   /* bytes of one input; more is refused as LIMIT       \
                                    */
#define DAVIT_TOK_MAX_ID (1 << 24) /* ids above are refused at load */

typedef struct DavitTokenizer DavitTokenizer;
typedef struct DavitEncoder DavitEncoder;
typedef struct DavitDecoder DavitDecoder;

/* ---- load ---- */

/* Strings of a GGUF array value as they lie in the file: each a little-endian u64 length
 * and its bytes, @count times. Zero-initialised = the key is absent. */
typedef struct DavitGgufStrings {
    davit_span bytes; /* (borrowed during the call) exactly the array's elements */
    uint64_t count;
} DavitGgufStrings;

/* The tokenizer.* keys of a GGUF file; all spans borrowed during the call. */
typedef struct DavitGgufVocab {
    davit_span arch;  /* general.architecture: Gemma orders merges by id, not score */
    davit_span model; /* tokenizer.ggml.model: "gpt2", "llama", ...; ptr NULL = absent */
    davit_span pre;   /* tokenizer.ggml.pre */
    davit_span json;  /* tokenizer.huggingface.json: used alone when present */
    DavitGgufStrings tokens; /* tokenizer.ggml.tokens */
    DavitGgufStrings merges; /* tokenizer.ggml.merges */
    const uint8_t *scores;   /* tokenizer.ggml.scores: f32 little-endian; NULL = absent */
    uint64_t n_scores;
    const uint8_t
        *types; /* tokenizer.ggml.token_type: i32 little-endian; NULL = absent */
    uint64_t n_types;
    int64_t bos, eos, unk, pad; /* tokenizer.ggml.*_token_id; -1 = absent */
    int32_t add_bos, add_eos;   /* tokenizer.ggml.add_*_token; -1 = absent */
    int32_t add_space_prefix;   /* tokenizer.ggml.add_space_prefix; -1 = absent */
    /* tokenizer.ggml.normalizer.{lowercase,strip_accents}; -1 = absent */
    int32_t lowercase, strip_accents;
    /* Looked at for the models t5 and bert only. */
    davit_span charsmap;     /* tokenizer.ggml.precompiled_charsmap; ptr NULL = absent */
    int32_t remove_spaces;   /* tokenizer.ggml.remove_extra_whitespaces; -1 = absent */
    int64_t cls, sep;        /* tokenizer.ggml.{cls,seperator}_token_id; -1 = absent */
} DavitGgufVocab;

/* Returns: (owned) the tokenizer of @text, the content of a tokenizer.json (borrowed
 * during the call), or NULL with records in @report that name @subject. */
DavitTokenizer *davit_tokenizer_from_json(const char *text, size_t len,
                                          const char *subject, DavitRegistry *registry,
                                          DavitReport *report);

/* The same from GGUF keys. What GGUF leaves out comes from the plugin that claims the
 * `pre` name; a name that nobody claims is refused, there is no default. */
DavitTokenizer *davit_tokenizer_from_gguf(const DavitGgufVocab *vocab,
                                          const char *subject, DavitRegistry *registry,
                                          DavitReport *report);

/* The same from tekken.json; ids as mistral-common gives them. Special tokens have ids and
 * texts, and are never found in a text. */
DavitTokenizer *davit_tokenizer_from_tekken(const char *text, size_t len,
                                            const char *subject, DavitRegistry *registry,
                                            DavitReport *report);

/* The same from a *.tiktoken file or tiktoken.model; ids as tiktoken gives them. The file
 * says nothing but tokens: it is known by the hash of its list, or refused with that. */
DavitTokenizer *davit_tokenizer_from_tiktoken(const char *text, size_t len,
                                              const char *subject,
                                              DavitRegistry *registry,
                                              DavitReport *report);

/* The same from a SentencePiece .model of type BPE or Unigram; ids as sentencepiece gives them.
 * Control pieces have ids and texts, and are never found in a text. */
DavitTokenizer *davit_tokenizer_from_spm(const char *bytes, size_t len,
                                         const char *subject, DavitRegistry *registry,
                                         DavitReport *report);

/* The same from a vocab.txt of BERT. Whether text is lower-cased is not in the file; it is
 * taken from the tokens, with a note. */
DavitTokenizer *davit_tokenizer_from_vocab_txt(const char *text, size_t len,
                                               const char *subject,
                                               DavitRegistry *registry,
                                               DavitReport *report);

/* All (borrowed) during the call; config is tokenizer_config.json, NULL = there is none. */
typedef struct DavitMergesFiles {
    const char *vocab, *merges, *config;
    size_t n_vocab, n_merges, n_config;
} DavitMergesFiles;

/* The same from vocab.json and merges.txt, known by the hash of its tokens. Its added tokens are
 * those of tokenizer_config.json's added_tokens_decoder, without one those of the plugin's claim. */
DavitTokenizer *davit_tokenizer_from_merges(const DavitMergesFiles *files, DavitRegistry *registry,
                                            DavitReport *report);

/* The same from a file of any of the kinds above but the last, told by its content. */
DavitTokenizer *davit_tokenizer_from_bytes(const char *bytes, size_t len,
                                           const char *subject, DavitRegistry *registry,
                                           DavitReport *report);

void davit_tokenizer_free(DavitTokenizer *tokenizer); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitTokenizer, davit_tokenizer_free)

/* ---- vocabulary ---- */

/* One past the highest id; some below may be holes. */
size_t davit_tokenizer_n_ids(const DavitTokenizer *tokenizer);

/* Returns: (borrowed, lives as long as the tokenizer) text of @id as the file spells it
 * (byte-level files in their 256 letter alphabet), NULL for a hole or out of range. */
const char *davit_tokenizer_text(const DavitTokenizer *tokenizer, int32_t id,
                                 size_t *out_len);

/* Id of a token spelled as davit_tokenizer_text gives it, added tokens first; -1 = none.
 */
int32_t davit_tokenizer_id(const DavitTokenizer *tokenizer, const char *text, size_t len);

/* A token marked special, which decoding can skip and --safe does not recognise. */
bool davit_tokenizer_is_special(const DavitTokenizer *tokenizer, int32_t id);
bool davit_tokenizer_is_added(const DavitTokenizer *tokenizer, int32_t id);
/* DAVIT_ADDED_ bits (tokenizer/added.h) of an added token; 0 also where it is none. */
uint32_t davit_tokenizer_added_flags(const DavitTokenizer *tokenizer, int32_t id);

typedef enum DavitSpecial {
    DAVIT_SPECIAL_BOS,
    DAVIT_SPECIAL_EOS,
    DAVIT_SPECIAL_UNK,
    DAVIT_SPECIAL_PAD,
    DAVIT_N_SPECIALS,
} DavitSpecial;

/* Id with a role, -1 where the source does not say. GGUF keys say all; a tokenizer.json
 * only the unknown token (roles are in tokenizer_config.json, not read here). */
int32_t davit_tokenizer_special(const DavitTokenizer *tokenizer, DavitSpecial role);

/* Ids that DAVIT_ENCODE_SPECIAL puts around every text. (borrowed) */
const int32_t *davit_tokenizer_prefix(const DavitTokenizer *tokenizer, size_t *out_n);
const int32_t *davit_tokenizer_suffix(const DavitTokenizer *tokenizer, size_t *out_n);

/* What --explain shows. All borrowed from the tokenizer. */
typedef struct DavitTokenizerFacts {
    const char *source; /* "tokenizer.json", "gguf", "tekken.json", "tiktoken" ... */
    const char *family; /* the plugin's name of the shape, "llama3" */
    const char *plugin; /* component id that claims it */
    const char *shape;  /* canonical pre_tokenizer */
    const char *why;    /* how the plugin was chosen, one sentence */
    const char *model;  /* "BPE, byte level" ... */
} DavitTokenizerFacts;
void davit_tokenizer_facts(const DavitTokenizer *tokenizer, DavitTokenizerFacts *out);

/* Added tokens that the encoder gives for no text, not even their own: the first @cap ids in
 * file order. Returns how many there are. Encodes each once. */
size_t davit_tokenizer_unreachable(const DavitTokenizer *tokenizer, int32_t *out_ids,
                                   size_t cap);

/* ---- encode ---- */

/* A growing list of ids. Zero-initialised = empty. */
typedef struct DavitIds {
    int32_t *ids; /* owned; davit_ids_clear */
    size_t n, cap;
} DavitIds;
void davit_ids_clear(DavitIds *ids); /* frees and zeroes; n = 0 alone keeps the memory */
/* Room for @more ids behind the n there are. False when memory is gone. */
bool davit_ids_reserve(DavitIds *ids, size_t more);

#define DAVIT_ENCODE_SPECIAL 1u /* add what the post-processor adds (BOS, EOS) */
/* Text that looks like a special token stays text. Ids marked special come only from what has no
 * other: the unknown token, and <0xNN> for a byte, where a file marks them so. */
#define DAVIT_ENCODE_SAFE    2u

/* Returns: (owned) scratch for one thread at a time. About 2 MiB once it is warm. */
DavitEncoder *davit_encoder_new(const DavitTokenizer *tokenizer);
void davit_encoder_free(DavitEncoder *encoder); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitEncoder, davit_encoder_free)

/* Append the ids of @text to @out. After an error @out holds what it held before.
 * Errors: USAGE when @text is not UTF-8; LIMIT when it is too long or memory is gone;
 * CORRUPT when the text needs the unknown token and the file has none by that name.
 * Ids do not depend on what the encoder has seen before. */
int32_t davit_encode(DavitEncoder *encoder, const char *text, size_t len, uint32_t flags,
                     DavitIds *out, DavitReport *report);

/* How far davit_encode_threads is with a long text, in bytes as the normaliser leaves them. Another
 * thread may read it meanwhile, with __atomic_load_n. */
typedef struct DavitEncodeWatch {
    uint64_t done, total; /* total is 0 until it is known */
} DavitEncodeWatch;
/* Texts that @encoder, as the first of several, encodes from now on are counted in @watch
 * (borrowed while they are; NULL = none). */
void davit_encoder_watch(DavitEncoder *encoder, DavitEncodeWatch *watch);

/* As davit_encode, on up to @n threads, each with an encoder of its own; the caller's thread
 * has encoders[0]. Short texts take that one alone. */
int32_t davit_encode_threads(DavitEncoder *const *encoders, size_t n, const char *text,
                             size_t len, uint32_t flags, DavitIds *out,
                             DavitReport *report);

/* The bytes of the input that an id stands for; start = end for an id that was added round
 * the text. */
typedef struct DavitSpan {
    uint64_t start, end;
} DavitSpan;

/* As davit_encode, and one DavitSpan per new id is appended to @spans. They are those of
 * Hugging Face's encode (without trim_offsets; in bytes, and exact inside characters that the
 * normaliser leaves alone): what was put in has the place of the character before it, or at the
 * start behind it; a character that was put together from several has the place of the first.
 * With sentencepiece's own normaliser the ids of a part (between added tokens) that it changed
 * may all get it whole. */
int32_t davit_encode_spans(DavitEncoder *encoder, const char *text, size_t len,
                           uint32_t flags, DavitIds *out, GArray *spans,
                           DavitReport *report);

/* As davit_encode, but no special token is recognised that touches a byte whose @locked (of
 * @len bytes, 0 or 1; NULL = none) is 1: DAVIT_ENCODE_SAFE for parts of a text. */
int32_t davit_encode_locked(DavitEncoder *encoder, const char *text, size_t len,
                            const uint8_t *locked, uint32_t flags, DavitIds *out,
                            DavitReport *report);

/* One piece of a text on its way: what the model got, and what it made of it. */
typedef struct DavitPiece {
    const char
        *text; /* (borrowed during the call) after normalising; not NUL-terminated */
    size_t len;
    const int32_t *ids; /* (borrowed during the call) */
    size_t n_ids;
    bool added; /* an added token, found in the text as a whole */
} DavitPiece;
typedef void (*DavitPieceFn)(void *ctx, const DavitPiece *piece);

/* As davit_encode without DAVIT_ENCODE_SPECIAL's ids, telling @fn each piece in order. */
int32_t davit_encode_pieces(DavitEncoder *encoder, const char *text, size_t len,
                            uint32_t flags, DavitPieceFn fn, void *ctx,
                            DavitReport *report);

/* Elementary steps (symbols looked at, heap moves) since the encoder was made: the growth
 * test's ruler. */
uint64_t davit_encoder_steps(const DavitEncoder *encoder);

/* ---- decode ---- */

/* Returns: (owned) a stream at its start. @skip_special drops special tokens. */
DavitDecoder *davit_decoder_new(const DavitTokenizer *tokenizer, bool skip_special);
void davit_decoder_free(DavitDecoder *decoder); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitDecoder, davit_decoder_free)

/* Append to @out the text that @id completes: valid UTF-8, maybe none yet. Returns: false
 * if @id has no token; it is passed over then, as Hugging Face does. */
bool davit_decoder_push(DavitDecoder *decoder, int32_t id, GString *out);

/* The end: append what was held back (U+FFFD for an unfinished character) and go back to
 * the start. All pushes and one flush give exactly davit_decode of the ids. */
void davit_decoder_flush(DavitDecoder *decoder, GString *out);

/* Append the text of all @n ids to @out. */
void davit_decode(const DavitTokenizer *tokenizer, const int32_t *ids, size_t n,
                  bool skip_special, GString *out);

#endif
