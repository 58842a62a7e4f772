/* SPDX-License-Identifier: Apache-2.0
 * The tokenizer as a table: its end of life and what it tells about itself.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

void davit_tokenizer_free(DavitTokenizer *t)
{
    if (!t)
        return;
    davit_bpe_clear(&t->bpe);
    davit_bpe_free(t->text_bpe);
    davit_unigram_clear(&t->unigram);
    davit_wordpiece_clear(&t->wordpiece);
    davit_vocab_free(t->vocab);
    davit_normalizer_free(t->normalizer);
    davit_post_clear(&t->post);
    davit_decode_chain_clear(&t->decoder);
    g_hash_table_destroy(t->added_ids);
    g_hash_table_destroy(t->spoken);
    g_ptr_array_free(t->added, TRUE);
    davit_trie_free(t->raw);
    davit_trie_free(t->normal);
    g_free(t->id_flags);
    g_free(t->source);
    g_free(t->family);
    g_free(t->plugin);
    g_free(t->canonical);
    g_free(t->why);
    g_free(t);
}

size_t davit_tokenizer_n_ids(const DavitTokenizer *tokenizer)
{
    return davit_vocab_n_ids(tokenizer->vocab);
}

const char *davit_tokenizer_text(const DavitTokenizer *tokenizer, int32_t id,
                                 size_t *out_len)
{
    return davit_vocab_text(tokenizer->vocab, id, out_len);
}

int32_t davit_tokenizer_id(const DavitTokenizer *tokenizer, const char *text, size_t len)
{
    g_autoptr(GBytes) key = g_bytes_new_static(text, len);
    const DavitAdded *added = g_hash_table_lookup(tokenizer->added_ids, key);

    return added ? added->id : davit_vocab_find(tokenizer->vocab, text, len);
}

static bool has_flag(const DavitTokenizer *tokenizer, int32_t id, uint8_t flag)
{
    return id >= 0 && (size_t)id < davit_vocab_n_ids(tokenizer->vocab) &&
           (tokenizer->id_flags[id] & flag);
}

bool davit_tokenizer_is_special(const DavitTokenizer *tokenizer, int32_t id)
{
    return has_flag(tokenizer, id, DAVIT_ID_SPECIAL);
}

bool davit_tokenizer_is_added(const DavitTokenizer *tokenizer, int32_t id)
{
    return has_flag(tokenizer, id, DAVIT_ID_ADDED);
}

uint32_t davit_tokenizer_added_flags(const DavitTokenizer *tokenizer, int32_t id)
{
    size_t len = 0;
    const char *text = davit_vocab_text(tokenizer->vocab, id, &len);
    g_autoptr(GBytes) key = g_bytes_new_static(text ? text : "", len);
    const DavitAdded *added = g_hash_table_lookup(tokenizer->added_ids, key);

    return added && added->id == id ? added->flags : 0;
}

int32_t davit_tokenizer_special(const DavitTokenizer *tokenizer, DavitSpecial role)
{
    return tokenizer->specials[role];
}

const int32_t *davit_tokenizer_prefix(const DavitTokenizer *tokenizer, size_t *out_n)
{
    *out_n = tokenizer->post.prefix.n;
    return tokenizer->post.prefix.ids;
}

const int32_t *davit_tokenizer_suffix(const DavitTokenizer *tokenizer, size_t *out_n)
{
    *out_n = tokenizer->post.suffix.n;
    return tokenizer->post.suffix.ids;
}

static const char *model_name(const DavitTokenizer *t)
{
    if (t->model == DAVIT_MODEL_WORDPIECE)
        return "WordPiece";
    if (t->model == DAVIT_MODEL_UNIGRAM)
        return t->unigram.byte_fallback ? "Unigram, byte fallback" : "Unigram";
    if (t->bpe.byte_level)
        return "BPE, byte level";
    return t->bpe.byte_fallback ? "BPE, byte fallback" : "BPE";
}

void davit_tokenizer_facts(const DavitTokenizer *tokenizer, DavitTokenizerFacts *out)
{
    *out = (DavitTokenizerFacts){
        .source = tokenizer->source,
        .family = tokenizer->family,
        .plugin = tokenizer->plugin,
        .shape = tokenizer->canonical,
        .why = tokenizer->why,
        .model = model_name(tokenizer),
    };
}

bool davit_ids_reserve(DavitIds *ids, size_t more)
{
    size_t cap = ids->cap ? ids->cap : 256;
    int32_t *grown;

    if (more <= ids->cap - ids->n)
        return true;
    while (cap - ids->n < more)
        cap *= 2;
    grown = g_try_renew(int32_t, ids->ids, cap);
    if (!grown)
        return false;
    ids->ids = grown;
    ids->cap = cap;
    return true;
}

void davit_ids_clear(DavitIds *ids)
{
    g_free(ids->ids);
    *ids = (DavitIds){0};
}
