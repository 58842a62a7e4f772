/* SPDX-License-Identifier: Apache-2.0
 * Finding a checkpoint's tokenizer. */
#include "engine/private.h"


static void take_text(const DavitCheckpoint *c, const char *key, davit_span *out)
{
    const davit_kv *kv = davit_checkpoint_find_key(c, key);
    if (kv)
        davit_kv_text(kv, out);
}

static void take_strings(const DavitCheckpoint *c, const char *key, DavitGgufStrings *out)
{
    const davit_kv *kv = davit_checkpoint_find_key(c, key);
    if (kv && kv->is_array && kv->type == DAVIT_KV_STR)
        *out = (DavitGgufStrings){.bytes = {(const char *)kv->data, kv->n_bytes},
                                  .count = kv->count};
}

static const uint8_t *take_array(const DavitCheckpoint *c, const char *key, uint32_t type,
                                 uint64_t *out_n)
{
    const davit_kv *kv = davit_checkpoint_find_key(c, key);
    if (!kv || !kv->is_array || kv->type != type)
        return NULL;
    *out_n = kv->count;
    return kv->data;
}

/* An array of bytes, which GGUF writers call signed or not. */
static void take_bytes(const DavitCheckpoint *c, const char *key, davit_span *out)
{
    const davit_kv *kv = davit_checkpoint_find_key(c, key);
    if (kv && kv->is_array && (kv->type == DAVIT_KV_U8 || kv->type == DAVIT_KV_I8))
        *out = (davit_span){(const char *)kv->data, kv->n_bytes};
}

static int64_t take_id(const DavitCheckpoint *c, const char *key)
{
    int64_t id;
    const davit_kv *kv = davit_checkpoint_find_key(c, key);
    return kv && davit_kv_i64(kv, 0, &id) && id >= 0 ? id : -1;
}

static int32_t take_flag(const DavitCheckpoint *c, const char *key)
{
    bool flag;
    const davit_kv *kv = davit_checkpoint_find_key(c, key);
    return kv && davit_kv_bool(kv, &flag) ? flag : -1;
}

static bool has_vocab(const DavitCheckpoint *c)
{
    return davit_checkpoint_find_key(c, "tokenizer.ggml.tokens") ||
           davit_checkpoint_find_key(c, "tokenizer.huggingface.json");
}

static DavitTokenizer *from_gguf(const DavitCheckpoint *c, DavitRegistry *registry,
                                 DavitReport *report)
{
    DavitGgufVocab vocab = {0};
    take_text(c, "general.architecture", &vocab.arch);
    take_text(c, "tokenizer.ggml.model", &vocab.model);
    take_text(c, "tokenizer.ggml.pre", &vocab.pre);
    take_text(c, "tokenizer.huggingface.json", &vocab.json);
    take_strings(c, "tokenizer.ggml.tokens", &vocab.tokens);
    take_strings(c, "tokenizer.ggml.merges", &vocab.merges);
    vocab.scores = take_array(c, "tokenizer.ggml.scores", DAVIT_KV_F32, &vocab.n_scores);
    vocab.types = take_array(c, "tokenizer.ggml.token_type", DAVIT_KV_I32, &vocab.n_types);
    vocab.bos = take_id(c, "tokenizer.ggml.bos_token_id");
    vocab.eos = take_id(c, "tokenizer.ggml.eos_token_id");
    vocab.unk = take_id(c, "tokenizer.ggml.unknown_token_id");
    vocab.pad = take_id(c, "tokenizer.ggml.padding_token_id");
    vocab.add_bos = take_flag(c, "tokenizer.ggml.add_bos_token");
    vocab.add_eos = take_flag(c, "tokenizer.ggml.add_eos_token");
    vocab.add_space_prefix = take_flag(c, "tokenizer.ggml.add_space_prefix");
    vocab.remove_spaces = take_flag(c, "tokenizer.ggml.remove_extra_whitespaces");
    vocab.cls = take_id(c, "tokenizer.ggml.cls_token_id");
    vocab.sep = take_id(c, "tokenizer.ggml.seperator_token_id"); /* spelled so in GGUF */
    take_bytes(c, "tokenizer.ggml.precompiled_charsmap", &vocab.charsmap);
    const char *name = davit_checkpoint_n_files(c) ? davit_checkpoint_file(c, 0).name : "gguf";
    return davit_tokenizer_from_gguf(&vocab, name, registry, report);
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
        if (has_vocab(c))
            davit_report_add(report, &(DavitFinding){
                                         .code = DAVIT_R_SOURCE_CHOSEN,
                                         .severity = DAVIT_NOTE,
                                         .stage = "tokenizer",
                                         .subject = facts.source,
                                         .message = davit_report_text(
                                             report, "the %s beside the GGUF is used; the "
                                                     "vocabulary inside it is not",
                                             facts.source)});
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
