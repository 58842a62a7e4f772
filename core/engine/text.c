/* SPDX-License-Identifier: Apache-2.0
 * Finding a checkpoint's tokenizer. */
#include "engine/private.h"
#include "tokenizer/beyond.h"

/* Reading keys of a GGUF. One of another type than its name has is refused: passed over, the special
 * tokens, BOS or the order of merges would be others without a word. */
typedef struct Keys {
    const DavitCheckpoint *c; /* (borrowed) */
    const char *file;         /* (borrowed) for records */
    DavitReport *report;
    int32_t status; /* of the first key that is wrong */
} Keys;

static void refuse_type(Keys *k, const char *key, const char *expected, const davit_kv *kv)
{
    k->status = davit_report_add(
        k->report,
        &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "open",
                        .subject = davit_report_text(k->report, "%s: %s", k->file, key),
                        .expected = expected,
                        .found = davit_report_text(k->report, "%s%s",
                                                   kv->is_array ? "an array of " : "",
                                                   davit_kv_type_name(kv->type)),
                        .message = "the key has a value of another type",
                        .hint = "convert the model again, with a converter that knows its "
                                "tokenizer"});
}

static void take_text(Keys *k, const char *key, davit_span *out)
{
    const davit_kv *kv = davit_checkpoint_find_key(k->c, key);
    if (kv && !davit_kv_text(kv, out))
        refuse_type(k, key, "a string", kv);
}

static void take_strings(Keys *k, const char *key, DavitGgufStrings *out)
{
    const davit_kv *kv = davit_checkpoint_find_key(k->c, key);
    if (!kv)
        return;
    if (!kv->is_array || (kv->type != DAVIT_KV_STR && kv->count > 0))
        refuse_type(k, key, "an array of strings", kv);
    else
        *out = (DavitGgufStrings){.bytes = {(const char *)kv->data, kv->n_bytes},
                                  .count = kv->count};
}

/* @other: a second type whose bytes mean the same. */
static const uint8_t *take_array(Keys *k, const char *key, uint32_t type, uint32_t other,
                                 const char *expected, uint64_t *out_n)
{
    const davit_kv *kv = davit_checkpoint_find_key(k->c, key);
    if (!kv)
        return NULL;
    if (!kv->is_array || (kv->type != type && kv->type != other)) {
        refuse_type(k, key, expected, kv);
        return NULL;
    }
    *out_n = kv->count;
    return kv->data;
}

/* An array of bytes, which GGUF writers call signed or not. */
static void take_bytes(Keys *k, const char *key, davit_span *out)
{
    uint64_t n = 0;
    const uint8_t *data =
        take_array(k, key, DAVIT_KV_U8, DAVIT_KV_I8, "an array of bytes", &n);
    if (data)
        *out = (davit_span){(const char *)data, n};
}

/* Some writers say -1 for none. */
static int64_t take_id(Keys *k, const char *key)
{
    int64_t id = -1;
    const davit_kv *kv = davit_checkpoint_find_key(k->c, key);
    if (kv && (kv->is_array || !davit_kv_i64(kv, 0, &id)))
        refuse_type(k, key, "a whole number", kv);
    return id >= 0 ? id : -1;
}

static int32_t take_flag(Keys *k, const char *key)
{
    bool flag = false;
    const davit_kv *kv = davit_checkpoint_find_key(k->c, key);
    if (!kv)
        return -1;
    if (!davit_kv_bool(kv, &flag))
        refuse_type(k, key, "true or false", kv);
    return flag;
}

static bool has_vocab(const DavitCheckpoint *c)
{
    return davit_checkpoint_find_key(c, "tokenizer.ggml.tokens") ||
           davit_checkpoint_find_key(c, "tokenizer.huggingface.json");
}

static DavitTokenizer *from_gguf(const DavitCheckpoint *c, DavitRegistry *registry,
                                 DavitReport *report)
{
    Keys k = {.c = c,
              .file = davit_checkpoint_n_files(c) ? davit_checkpoint_file(c, 0).name : "gguf",
              .report = report};
    DavitGgufVocab vocab = {0};
    take_text(&k, "general.architecture", &vocab.arch);
    take_text(&k, "tokenizer.ggml.model", &vocab.model);
    take_text(&k, "tokenizer.ggml.pre", &vocab.pre);
    take_text(&k, "tokenizer.huggingface.json", &vocab.json);
    take_strings(&k, "tokenizer.ggml.tokens", &vocab.tokens);
    take_strings(&k, "tokenizer.ggml.merges", &vocab.merges);
    vocab.scores = take_array(&k, "tokenizer.ggml.scores", DAVIT_KV_F32, DAVIT_KV_F32,
                              "an array of f32", &vocab.n_scores);
    vocab.types = take_array(&k, "tokenizer.ggml.token_type", DAVIT_KV_I32, DAVIT_KV_U32,
                             "an array of i32", &vocab.n_types);
    vocab.bos = take_id(&k, "tokenizer.ggml.bos_token_id");
    vocab.eos = take_id(&k, "tokenizer.ggml.eos_token_id");
    vocab.unk = take_id(&k, "tokenizer.ggml.unknown_token_id");
    vocab.pad = take_id(&k, "tokenizer.ggml.padding_token_id");
    vocab.add_bos = take_flag(&k, "tokenizer.ggml.add_bos_token");
    vocab.add_eos = take_flag(&k, "tokenizer.ggml.add_eos_token");
    vocab.add_space_prefix = take_flag(&k, "tokenizer.ggml.add_space_prefix");
    vocab.lowercase = take_flag(&k, "tokenizer.ggml.normalizer.lowercase");
    vocab.strip_accents = take_flag(&k, "tokenizer.ggml.normalizer.strip_accents");
    vocab.remove_spaces = take_flag(&k, "tokenizer.ggml.remove_extra_whitespaces");
    vocab.cls = take_id(&k, "tokenizer.ggml.cls_token_id");
    vocab.sep = take_id(&k, "tokenizer.ggml.seperator_token_id"); /* spelled so in GGUF */
    take_bytes(&k, "tokenizer.ggml.precompiled_charsmap", &vocab.charsmap);
    if (k.status != DAVIT_OK)
        return NULL;
    return davit_tokenizer_from_gguf(&vocab, k.file, registry, report);
}

/* The tokenizer beside a GGUF counts, not the GGUF's own: are they the same? Keys of a wrong type
 * are no matter here. */
static void compare_with_gguf(const DavitCheckpoint *c, const DavitTokenizer *tokenizer,
                              const char *source, DavitReport *report)
{
    const davit_kv *tokens = davit_checkpoint_find_key(c, "tokenizer.ggml.tokens");
    const davit_kv *model = davit_checkpoint_find_key(c, "tokenizer.ggml.model");
    davit_span name = {0};

    if (!tokens || !tokens->is_array || tokens->type != DAVIT_KV_STR || !model ||
        !davit_kv_text(model, &name) || (name.len == 4 && memcmp(name.ptr, "bert", 4) == 0))
        return;
    davit_tokenizer_tell_other(
        tokenizer,
        &(DavitGgufStrings){.bytes = {(const char *)tokens->data, tokens->n_bytes},
                            .count = tokens->count},
        source, report);
}

DavitTokenizer *davit_tokenizer_of(const DavitCheckpoint *c, DavitRegistry *registry,
                                   DavitReport *report)
{
    DavitTokenizer *tokenizer;
    if (davit_tokenizer_beside(c, registry, &tokenizer, report))
        return NULL;
    if (tokenizer) {
        DavitTokenizerFacts facts;
        davit_tokenizer_facts(tokenizer, &facts);
        if (has_vocab(c)) {
            davit_report_add(report, &(DavitFinding){
                                         .code = DAVIT_R_SOURCE_CHOSEN,
                                         .severity = DAVIT_NOTE,
                                         .stage = "tokenizer",
                                         .subject = facts.source,
                                         .message = davit_report_text(
                                             report, "the %s beside the GGUF is used; the "
                                                     "vocabulary inside it is not",
                                             facts.source)});
            compare_with_gguf(c, tokenizer, facts.source, report);
        }
        return tokenizer;
    }
    if (has_vocab(c))
        return from_gguf(c, registry, report);
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "tokenizer",
                                     .subject = "tokenizer.json",
                                     .expected = "tokenizer.json, tekken.json, tokenizer.model, "
                                                 "tiktoken.model, spiece.model, vocab.txt, "
                                                 "vocab.json and merges.txt, or "
                                                 "tokenizer.ggml keys in a GGUF",
                                     .message = "the model has no tokenizer that davit reads",
                                     .hint = "put the model's tokenizer.json beside its weights, "
                                             "or give token ids with --ids"});
    return NULL;
}
