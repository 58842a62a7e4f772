/* SPDX-License-Identifier: Apache-2.0
 * What a DavitTokenizer holds. For core/tokenizer/ only.
 */
#ifndef DAVIT_TOKENIZER_TOKENIZER_PRIVATE_H
#define DAVIT_TOKENIZER_TOKENIZER_PRIVATE_H

#include "base/json.h"
#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decode.h"
#include "tokenizer/fit.h"
#include "tokenizer/normalize.h"
#include "tokenizer/post.h"
#include "tokenizer/shape.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unigram.h"
#include "tokenizer/vocab.h"
#include "tokenizer/wordpiece.h"

typedef enum DavitModelKind {
    DAVIT_MODEL_BPE,
    DAVIT_MODEL_UNIGRAM,
    DAVIT_MODEL_WORDPIECE,
} DavitModelKind;

/* When the Metaspace stage puts its mark in front. */
typedef enum DavitMetaScheme {
    DAVIT_META_NONE, /* no Metaspace stage */
    DAVIT_META_ALWAYS,
    DAVIT_META_FIRST, /* only at the start of the whole text */
    DAVIT_META_NEVER,
} DavitMetaScheme;

/* What the core does to a part before the plugin's scanner sees it, and after. */
typedef struct DavitPretok {
    davit_tok_shape shape;
    bool byte_level;   /* the model gets bytes in the 256 letter alphabet */
    bool prefix_space; /* ByteLevel alone with add_prefix_space */
    DavitMetaScheme meta;
    bool meta_last;  /* Metaspace behind other stages: done on each piece */
    bool meta_split; /* then: pieces are cut before each mark */
    bool drops_space; /* white space between pieces belongs to none of them */
    char mark[8]; /* Metaspace: what a space becomes */
    size_t mark_len;
} DavitPretok;

struct DavitTokenizer {
    DavitVocab *vocab;
    DavitModelKind model; /* which of the three below is filled */
    DavitBpe bpe;
    DavitBpe *text_bpe; /* owned; see davit_bpe_hide, NULL = bpe does */
    DavitUnigram unigram;
    DavitWordPiece wordpiece;
    int32_t unk; /* id of the model's unknown token; -1 = none */
    DavitNormalizer *normalizer;
    DavitPretok pretok;
    bool front_space; /* a space goes in front of every text that is not empty */
    bool open;        /* a text that the normaliser may matter for is refused */
    DavitPost post;
    DavitFit fit;
    DavitDecodeChain decoder;
    GPtrArray *added;        /* DavitAdded, owned, in file order, one per text */
    GHashTable *added_ids;   /* GBytes (owned) of the text to DavitAdded */
    DavitTrie *raw, *normal; /* passes 1 and 2 */
    bool normal_special;     /* normal has special tokens */
    uint8_t *id_flags;       /* by id: DAVIT_ID_ */
    GHashTable *spoken;      /* id to DavitAdded (borrowed) of those with DAVIT_ID_SPOKEN */
    int32_t specials[DAVIT_N_SPECIALS];
    char *source, *family, *plugin, *canonical, *why; /* owned; for explain */
};

/* A merge by its texts. (borrowed) */
typedef struct DavitMergeText {
    DavitVocabText left, right;
} DavitMergeText;

/* Merges whose ids are looked up together. */
#define DAVIT_MERGES_AHEAD (DAVIT_VOCAB_MANY / 2)

/* Pieces that are not like others. */
#define DAVIT_SCORE_SKIP  1u /* never found in a text */
#define DAVIT_SCORE_APART 2u /* its score is not among those the unknown's follows from */

/* Parts of a tokenizer as its source gives them. */
typedef struct DavitTokParts {
    const char *subject; /* (borrowed) file name for records */
    const char *source;  /* "tokenizer.json" or "gguf" */
    json_t *normalizer, *pre_tokenizer, *post_processor,
        *decoder, *truncation, *padding; /* owned refs or NULL */
    DavitVocab *vocab; /* owned, sealed */
    GArray *merges;    /* DavitMerge, owned */
    DavitMergeText pending[DAVIT_MERGES_AHEAD]; /* behind those of merges */
    size_t n_pending;
    GArray *added;     /* DavitAdded with declared ids, texts owned */
    char *unk;         /* owned; NULL = no unknown token */
    size_t unk_len;
    DavitModelKind model;
    GArray *scores;    /* double by id, owned; Unigram */
    GArray *types;     /* uint8_t by id, DAVIT_SCORE_, or shorter; Unigram */
    int64_t unk_id;    /* Unigram; -1 = none */
    bool sentencepiece; /* Unigram: sentencepiece's arithmetic */
    char *inside;      /* owned; WordPiece: prefix of tokens inside a word */
    size_t inside_len;
    uint64_t max_chars; /* WordPiece: of one word */
    DavitNormalizer *own_normalizer; /* owned; NULL = as `normalizer` says */
    bool added_as_spelled; /* added tokens of the normalised text are not normalised themselves */
    bool byte_fallback, fuse_unk, ignore_merges;
    bool front_space;  /* a space goes in front of every text that is not empty */
    bool open;         /* see gguf_facts in davit/tokenizer.h */
    bool ids_declared; /* added tokens have the ids that they declare, whatever their text */
    bool merges_by_id; /* GGUF without merges: ids give their order, not scores */
    bool has_claim;    /* the claim was found by GGUF's pre name or a rank list's hash */
    const char *why;   /* (borrowed) how; NULL = by the GGUF pre name */
    DavitShapeClaim claim;
    int32_t specials[DAVIT_N_SPECIALS];
} DavitTokParts;

void davit_tok_parts_init(DavitTokParts *parts, const char *subject, const char *source);
void davit_tok_parts_clear(DavitTokParts *parts);

/* (owned) a copy of @len bytes, NUL bytes among them, with one behind. */
char *davit_tok_copy(const char *text, size_t len);

/* Returns: (owned) the tokenizer; takes vocab and texts out of @parts. */
DavitTokenizer *davit_tok_build(DavitTokParts *parts, DavitRegistry *registry,
                                DavitReport *report);

/* The facts of parts->claim, a text as davit/tokenizer.h says, into @parts. */
int32_t davit_tok_read_facts(DavitTokParts *parts, const char *text, DavitReport *report);

/* A post-processor that puts @bos in front and @eos behind; -1 = none. */
void davit_tok_make_post(DavitTokParts *parts, int64_t bos, int64_t eos);

/* ---- rank lists: tokens as bytes, joined where the result has the lowest rank ---- */

/* Whether @n bytes at @text are characters of base64; a NUL is none. */
bool davit_tok_is_base64(const char *text, size_t n);

/* Give @id = rank + a constant the token @bytes. @room is scratch. */
int32_t davit_tok_add_rank(DavitTokParts *parts, int64_t id, const char *bytes,
                           size_t len, GString *room, DavitReport *report);

/* Behind the last one: seal the vocabulary and list all splits of every token with the
 * token's rank, so that merging by list is merging by rank. */
int32_t davit_tok_finish_ranks(DavitTokParts *parts, DavitReport *report);

/* Find the claim of the rank list, ids below @end, and read its facts. */
int32_t davit_tok_claim_ranks(DavitTokParts *parts, size_t end, DavitRegistry *registry,
                              DavitReport *report);

/* Returns: (owned) the hash that davit_tok_shape.rank_hashes names, of ids below @end. */
char *davit_tok_hash_ranks(const DavitTokParts *parts, size_t end);

/* tokenizer-invalid with a sentence; returns DAVIT_E_CORRUPT. */
int32_t davit_tok_invalid(const DavitTokParts *parts, DavitReport *report,
                          const char *member, const char *expected, const char *found,
                          const char *message);

/* The list of a Unigram `vocab`, behind its bracket: [text, score] pairs in the order of ids.
 */
int32_t davit_tok_read_scored(DavitTokParts *parts, DavitJsonReader *reader,
                              DavitReport *report);

/* Fill t->unigram or t->wordpiece from @parts, whose vocab @t has taken. */
int32_t davit_tok_build_unigram(DavitTokenizer *t, const DavitTokParts *parts,
                                DavitReport *report);
int32_t davit_tok_build_wordpiece(DavitTokenizer *t, const DavitTokParts *parts,
                                  DavitReport *report);

/* ---- GGUF ---- */

/* The string at *off of @strings; false when its length passes the end. */
bool davit_gguf_next(const DavitGgufStrings *strings, uint64_t *off, davit_span *out);

/* A post-processor that puts BOS in front and EOS behind as the flags say. */
int32_t davit_tok_gguf_post(DavitTokParts *parts, const DavitGgufVocab *v,
                            DavitReport *report);

/* Reads tokens and types into @parts and seals the vocabulary. */
typedef int32_t (*DavitTokensFn)(DavitTokParts *parts, const DavitGgufVocab *v, bool pieces,
                                 DavitReport *report);

/* The vocabularies of models t5 and bert, behind claim, facts and special ids. */
int32_t davit_tok_gguf_unigram(DavitTokParts *parts, const DavitGgufVocab *v,
                               DavitTokensFn read_tokens, DavitReport *report);
int32_t davit_tok_gguf_wordpiece(DavitTokParts *parts, const DavitGgufVocab *v,
                                 DavitTokensFn read_tokens, DavitReport *report);

/* Has some token, but for [NAMES], a capital letter of ASCII? Such a vocabulary is of a text
 * that was not lower-cased. */
bool davit_tok_has_capitals(const DavitGgufStrings *tokens);

/* Is this a vocab.txt: has it a line [UNK]? */
bool davit_tok_is_vocab_txt(const char *text, size_t len);

/* A WordPiece token as GGUF spells it, as the vocabulary has it: "▁word" is word, "[CLS]" is
 * itself, others get @inside in front. */
void davit_tok_respell_word(GString *room, const char *inside, davit_span *text);

/* Look up ids: a DavitMerge for each of up to DAVIT_MERGES_AHEAD @texts, with its place in @out
 * as rank, is appended to @out. Returns: how many; texts[that], if there is one, has a half or a
 * joined text that is not in the vocabulary. [any thread: @vocab is only read] */
size_t davit_merges_find(const DavitVocab *vocab, const DavitMergeText *texts, size_t n,
                         GArray *out);

/* Put the merges of @more, whose ranks begin at 0, behind those of @merges. */
void davit_merges_append(GArray *merges, GArray *more);

/* Append the merge of two texts, or of a line "left right" (one that begins with "#version" is
 * passed over). Texts are borrowed until davit_tok_settle_merges. CORRUPT with a record if one
 * of the three is not in the vocabulary; which may be told by a later call. */
int32_t davit_tok_add_merge(DavitTokParts *parts, const DavitMergeText *merge,
                            DavitReport *report);
int32_t davit_tok_add_merge_line(DavitTokParts *parts, const char *line, size_t len,
                                 DavitReport *report);

/* Behind the last merge, and before the text of one goes away. */
int32_t davit_tok_settle_merges(DavitTokParts *parts, DavitReport *report);

/* The halves of a line; false if it has not exactly one space. */
bool davit_tok_split_line(const char *line, size_t len, DavitMergeText *out);

/* Bytes of a token whose splits are tried, each by a look into the vocabulary: their number times
 * their length must not grow with a file's size. Real tokens have up to some hundred bytes. */
#define DAVIT_TOK_MAX_SPLIT 1024u

/* Refuses a token of @len bytes, which @member names, when it is longer than that. */
int32_t davit_tok_check_split(const DavitTokParts *parts, const char *member, size_t len,
                              DavitReport *report);

/* The merge list that Hugging Face's converter makes from a SentencePiece vocabulary: all
 * splits of every token of at most DAVIT_TOK_MAX_SPLIT bytes (the caller refuses longer ones), by
 * falling @scores, then by lengths of the halves. False when memory is gone. */
bool davit_tok_merges_from_scores(DavitTokParts *parts, const float *scores);

#endif
