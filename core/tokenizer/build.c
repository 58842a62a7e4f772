/* SPDX-License-Identifier: Apache-2.0
 * From parts to a tokenizer: the plugin's claim, the small stages, the merge table, the
 * added tokens. Every part is tried, so that one report names all that is wrong.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/node.h"
#include "tokenizer/normalize_text.h"
#include "tokenizer/tokenizer_private.h"

/* ---- pre-tokenizer ---- */

static int32_t find_claim(DavitTokenizer *t, DavitTokParts *parts,
                          DavitRegistry *registry, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    t->canonical = davit_shape_canonical(parts->pre_tokenizer, parts->subject, report);
    if (!t->canonical)
        return DAVIT_E_CORRUPT;
    if (!parts->has_claim) {
        status = davit_shape_find(registry, t->canonical, parts->subject, &parts->claim,
                                  report);
        if (status != DAVIT_OK)
            return status;
        t->why = g_strdup("the plugin claims exactly this pre_tokenizer");
    }
    t->pretok.shape = parts->claim.shape;
    t->family = g_strdup(parts->claim.shape.name);
    t->plugin = g_strdup(parts->claim.plugin);
    return status;
}

/* Metaspace alone is done by the core before the scanner, behind others after it. */
static int32_t read_metaspace(DavitPretok *pretok, const DavitNodePlace *place,
                              const json_t *stage)
{
    const char *scheme = json_string_value(json_object_get(stage, "prepend_scheme"));
    const char *mark;
    int32_t status =
        davit_node_text(place, stage, "replacement", &mark, &pretok->mark_len);

    if (status != DAVIT_OK)
        return status;
    if (pretok->mark_len >= sizeof pretok->mark || davit_count_chars(mark, pretok->mark_len) != 1)
        return davit_node_invalid(place, "replacement", "one character",
                                  json_object_get(stage, "replacement"));
    memcpy(pretok->mark, mark, pretok->mark_len);
    pretok->meta_split = json_is_true(json_object_get(stage, "split"));
    if (g_strcmp0(scheme, "always") == 0)
        pretok->meta = DAVIT_META_ALWAYS;
    else if (g_strcmp0(scheme, "first") == 0)
        pretok->meta = DAVIT_META_FIRST;
    else if (g_strcmp0(scheme, "never") == 0)
        pretok->meta = DAVIT_META_NEVER;
    else
        return davit_node_invalid(place, "prepend_scheme", "always, first or never",
                                  json_object_get(stage, "prepend_scheme"));
    return DAVIT_OK;
}

/* What the core has to do itself, from the canonical shape. */
static int32_t read_pretok(DavitTokenizer *t, const char *subject, DavitReport *report)
{
    const DavitNodePlace place = {subject, "pre_tokenizer", report};
    const json_t *stages[DAVIT_TOK_MAX_STAGES];
    json_t *shape = json_loads(t->canonical, JSON_DECODE_ANY, NULL);
    size_t n = 0;
    int32_t status = davit_node_flatten(&place, shape, "pretokenizers", stages, &n);

    for (size_t i = 0; status == DAVIT_OK && i < n; i++) {
        const char *type = davit_node_type(&place, stages[i]);
        bool prefix = false;

        if (strcmp(type, "WhitespaceSplit") == 0 || strcmp(type, "Whitespace") == 0 ||
            strcmp(type, "BertPreTokenizer") == 0) {
            t->pretok.drops_space = true;
        } else if (strcmp(type, "Metaspace") == 0) {
            t->pretok.meta_last = n > 1;
            status = i + 1 == n ? read_metaspace(&t->pretok, &place, stages[i])
                                : davit_node_unsupported(&place, "type",
                                                         "Metaspace as the last", type);
        } else if (strcmp(type, "ByteLevel") == 0) {
            t->pretok.byte_level = true;
            status = davit_node_bool(&place, stages[i], "add_prefix_space", &prefix);
            if (status == DAVIT_OK && prefix && n > 1)
                status = davit_node_unsupported(&place, "add_prefix_space",
                                                "false behind other stages", "true");
            t->pretok.prefix_space = prefix;
        }
    }
    json_decref(shape);
    return status;
}

/* ---- model ---- */

static int32_t refuse_memory(const char *subject, DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                .status = DAVIT_E_LIMIT,
                                .stage = "open",
                                .subject = subject,
                                .message = "no memory for the tokenizer's tables"});
}

static int32_t build_bpe(DavitTokenizer *t, const DavitTokParts *parts,
                         DavitReport *report)
{
    DavitBpe *bpe = &t->bpe;

    if (!davit_bpe_init(bpe, t->vocab, parts->merges->len))
        return refuse_memory(parts->subject, report);
    bpe->byte_level = t->pretok.byte_level;
    bpe->byte_fallback = parts->byte_fallback;
    bpe->fuse_unk = parts->fuse_unk;
    bpe->ignore_merges = parts->ignore_merges;
    bpe->has_unk_name = parts->unk != NULL;
    bpe->open = parts->open;
    if (parts->unk)
        bpe->unk = davit_vocab_find(t->vocab, parts->unk, parts->unk_len);
    if (!davit_bpe_fill(bpe, (const DavitMerge *)(const void *)parts->merges->data,
                        parts->merges->len))
        return refuse_memory(parts->subject, report);
    for (int b = 0; bpe->byte_level && bpe->byte_fallback && b < 256; b++) {
        if (bpe->bytes[b] < 0)
            return davit_report_add(
                report,
                &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "open",
                                .subject = davit_report_text(
                                    report, "%s: model.byte_fallback", parts->subject),
                                .expected = "false, or all 256 letters in the vocabulary",
                                .found = "true",
                                .message = "byte fallback behind a byte-level stage"});
    }
    return DAVIT_OK;
}

static int32_t build_model(DavitTokenizer *t, const DavitTokParts *parts,
                           DavitReport *report)
{
    int32_t status;

    t->model = parts->model;
    t->unk = -1;
    if (t->model != DAVIT_MODEL_BPE && t->pretok.byte_level)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .stage = "open",
                                    .subject = davit_report_text(report, "%s: model.type",
                                                                 parts->subject),
                                    .expected = "BPE behind a ByteLevel stage",
                                    .found = t->model == DAVIT_MODEL_UNIGRAM ? "Unigram"
                                                                             : "WordPiece",
                                    .message = "this build does not know a vocabulary of this "
                                               "kind over the letters of bytes"});
    if (t->model == DAVIT_MODEL_UNIGRAM)
        return davit_tok_build_unigram(t, parts, report);
    if (t->model == DAVIT_MODEL_WORDPIECE)
        return davit_tok_build_wordpiece(t, parts, report);
    status = build_bpe(t, parts, report);
    t->unk = t->bpe.unk;
    return status;
}

/* ---- added tokens ---- */

/* The declared id is not the one that the token gets: refused if it belongs to another
 * text, else loaded as Hugging Face does, with a warning. */
static int32_t check_declared(const DavitTokenizer *t, const DavitTokParts *parts,
                              const DavitAdded *added, int32_t declared,
                              DavitReport *report)
{
    g_autofree char *shown = davit_escape(added->text, added->len, 80);
    g_autofree char *member = g_strdup_printf("added_tokens: %s", shown);
    g_autofree char *found = g_strdup_printf("%d", declared);
    g_autofree char *gets = g_strdup_printf("%d", added->id);
    size_t len;
    const char *other = davit_vocab_text(t->vocab, declared, &len);

    if (other && (len != added->len || memcmp(other, added->text, len) != 0))
        return davit_tok_invalid(parts, report, member, gets, found,
                                 "the declared id belongs to another token");
    davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                .severity = DAVIT_WARNING,
                                .stage = "open",
                                .subject = davit_report_text(report, "%s: %s",
                                                             parts->subject, member),
                                .expected = gets,
                                .found = found,
                                .message = "the declared id is not used: the token gets "
                                           "the id that Hugging Face gives it"});
    return DAVIT_OK;
}

/* The model's ids have holes, so that the id behind their number is another's. */
static int32_t refuse_taken(const DavitTokenizer *t, const DavitTokParts *parts,
                            const DavitAdded *added, int32_t declared, DavitReport *report)
{
    g_autofree char *shown = davit_escape(added->text, added->len, 80);
    g_autofree char *member = g_strdup_printf("added_tokens: %s", shown);
    g_autofree char *want = g_strdup_printf("the free id %d", declared);
    g_autofree char *found = g_strdup_printf("%d", added->id);
    size_t len;

    if (!davit_vocab_text(t->vocab, added->id, &len))
        return refuse_memory(parts->subject, report);
    return davit_tok_invalid(parts, report, member, want, found,
                             parts->ids_declared
                                 ? "the id of an added token is taken"
                                 : "the vocabulary has holes, and Hugging Face would give the "
                                   "token an id that belongs to another");
}

/* Takes the text of @in. *next is the id that Hugging Face would give a new text: the count of
 * the model's tokens and of the new ones so far, wherever the ids of the others lie. */
static int32_t add_token(DavitTokenizer *t, const DavitTokParts *parts, DavitAdded *in,
                         int32_t *next, DavitReport *report)
{
    const int32_t declared = in->id;
    DavitAdded *added, *old;
    GBytes *key;
    int32_t status = DAVIT_OK;

    if (in->len == 0)
        return DAVIT_OK;
    key = g_bytes_new(in->text, in->len);
    old = g_hash_table_lookup(t->added_ids, key);
    if (old) {
        /* The later entry's flags win, but what was special stays special. */
        old->flags = in->flags | (old->flags & (DAVIT_ADDED_SPECIAL | DAVIT_ADDED_ONCE_NORMAL));
        if (in->flags & DAVIT_ADDED_NORMALIZED)
            old->flags |= DAVIT_ADDED_ONCE_NORMAL;
        g_bytes_unref(key);
        return DAVIT_OK;
    }
    added = g_memdup2(in, sizeof *in);
    in->text = NULL;
    if (in->flags & DAVIT_ADDED_NORMALIZED)
        added->flags |= DAVIT_ADDED_ONCE_NORMAL;
    added->id = parts->ids_declared
                    ? -1
                    : davit_vocab_find(t->vocab, added->text, added->len);
    if (added->id < 0) {
        added->id = parts->ids_declared ? declared : (*next)++;
        if (davit_vocab_add(t->vocab, added->id, added->text, added->len) !=
            DAVIT_VOCAB_ADDED)
            status = refuse_taken(t, parts, added, declared, report);
    }
    g_ptr_array_add(t->added, added);
    g_hash_table_insert(t->added_ids, key, added);
    if (status == DAVIT_OK && added->id != declared)
        status = check_declared(t, parts, added, declared, report);
    return status;
}

/* A token that is, or once was, normalized decodes as its own normalised text, and skipping goes
 * by that text: tokenizers, added_vocabulary.rs (simple_id_to_token, is_special_token). */
static int32_t normalize_added(DavitTokenizer *t, DavitAdded *added, const DavitTokParts *parts,
                               DavitNormalScratch *scratch, DavitReport *report)
{
    const DavitAdded *other;
    const char *text;
    size_t len;
    bool cut;

    if (!(added->flags & DAVIT_ADDED_ONCE_NORMAL) || parts->added_as_spelled ||
        (added->flags & DAVIT_ADDED_HIDDEN))
        return DAVIT_OK;
    text = davit_normalize(t->normalizer, scratch, added->text, added->len, &len, &cut);
    if (!text || (len == 0 && (added->flags & DAVIT_ADDED_NORMALIZED)))
        return davit_tok_invalid(parts, report, "added_tokens", "text that stays", added->text,
                                 "the normalizer leaves nothing of the token");
    if (len == added->len && memcmp(text, added->text, len) == 0)
        return DAVIT_OK;
    added->spoken = davit_tok_copy(text, len);
    added->spoken_len = len;
    g_autoptr(GBytes) key = g_bytes_new_static(added->spoken, len);
    other = g_hash_table_lookup(t->added_ids, key);
    t->id_flags[added->id] |= DAVIT_ID_SPOKEN;
    if (other && (other->flags & DAVIT_ADDED_SPECIAL))
        t->id_flags[added->id] |= DAVIT_ID_SILENT;
    g_hash_table_insert(t->spoken, GINT_TO_POINTER(added->id), added);
    return DAVIT_OK;
}

static void warn_alike(const DavitAdded *first, const DavitTokParts *parts,
                       const DavitAdded *added, DavitReport *report)
{
    g_autofree char *mine = davit_escape(added->text, added->len, 80);
    g_autofree char *other = davit_escape(first->text, first->len, 80);

    davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                .severity = DAVIT_WARNING,
                                .stage = "open",
                                .subject = davit_report_text(report, "%s: added_tokens: %s",
                                                             parts->subject, mine),
                                .expected = "a text of its own behind the normalizer",
                                .found = davit_report_text(report, "the same as %s", other),
                                .message = "two added tokens are alike to the normalizer: the first "
                                           "is found here; Hugging Face's tokenizers 0.23 "
                                           "refuses the file, older ones take one by chance"});
}

static int32_t fill_trie(DavitTokenizer *t, const DavitAdded *added,
                         const DavitTokParts *parts, DavitReport *report)
{
    const bool normal = added->flags & DAVIT_ADDED_NORMALIZED;
    const bool other = normal && added->spoken;

    const char *text = other ? added->spoken : added->text;
    const size_t len = other ? added->spoken_len : added->len;

    if (added->flags & DAVIT_ADDED_HIDDEN)
        return DAVIT_OK;
    if (!davit_trie_add(normal ? t->normal : t->raw, text, len, added))
        return refuse_memory(parts->subject, report);
    t->normal_special |= normal && (added->flags & DAVIT_ADDED_SPECIAL);
    if (normal && davit_trie_find(t->normal, text, len) != added)
        warn_alike(davit_trie_find(t->normal, text, len), parts, added, report);
    return DAVIT_OK;
}

static int32_t build_added(DavitTokenizer *t, const DavitTokParts *parts,
                           DavitReport *report)
{
    DavitNormalScratch scratch = {g_string_new(NULL), g_string_new(NULL), NULL};
    int32_t status = DAVIT_OK, next = (int32_t)davit_vocab_n_tokens(t->vocab);

    for (guint i = 0; i < parts->added->len && status == DAVIT_OK; i++)
        status = add_token(t, parts, &g_array_index(parts->added, DavitAdded, i), &next,
                           report);
    t->id_flags = g_try_new0(uint8_t, davit_vocab_n_ids(t->vocab) + 1);
    if (status == DAVIT_OK && !t->id_flags)
        status = refuse_memory(parts->subject, report);
    for (guint i = 0; i < t->added->len && status == DAVIT_OK; i++) {
        DavitAdded *added = g_ptr_array_index(t->added, i);

        t->id_flags[added->id] = DAVIT_ID_ADDED;
        if (added->flags & DAVIT_ADDED_SPECIAL)
            t->id_flags[added->id] |= DAVIT_ID_SPECIAL;
        status = normalize_added(t, added, parts, &scratch, report);
        if (status == DAVIT_OK)
            status = fill_trie(t, added, parts, report);
    }
    g_string_free(scratch.a, TRUE);
    g_string_free(scratch.b, TRUE);
    if (status == DAVIT_OK && t->model == DAVIT_MODEL_BPE &&
        !davit_bpe_hide(&t->bpe, t->id_flags, &t->text_bpe))
        status = refuse_memory(parts->subject, report);
    return status;
}

/* ---- whole ---- */

static void free_added(void *data)
{
    DavitAdded *added = data;

    g_free(added->text);
    g_free(added->spoken);
    g_free(added);
}

DavitTokenizer *davit_tok_build(DavitTokParts *parts, DavitRegistry *registry,
                                DavitReport *report)
{
    g_autoptr(DavitTokenizer) t = g_new0(DavitTokenizer, 1);
    int32_t status;

    t->vocab = g_steal_pointer(&parts->vocab);
    t->added = g_ptr_array_new_with_free_func(free_added);
    t->added_ids = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                         (GDestroyNotify)g_bytes_unref, NULL);
    t->spoken = g_hash_table_new(NULL, NULL);
    t->raw = davit_trie_new();
    t->normal = davit_trie_new();
    t->source = g_strdup(parts->source);
    t->front_space = parts->front_space;
    t->open = parts->open;
    if (parts->has_claim)
        t->why = g_strdup(parts->why ? parts->why
                                     : "the plugin claims the GGUF pre-tokenizer name");
    memcpy(t->specials, parts->specials, sizeof t->specials);

    status = find_claim(t, parts, registry, report);
    if (t->canonical && read_pretok(t, parts->subject, report) != DAVIT_OK)
        status = DAVIT_E_UNSUPPORTED;
    t->normalizer =
        parts->own_normalizer
            ? g_steal_pointer(&parts->own_normalizer)
            : davit_normalizer_new(parts->normalizer, parts->subject, report);
    if (davit_post_init(&t->post, parts->post_processor, parts->subject, report) !=
        DAVIT_OK)
        status = DAVIT_E_UNSUPPORTED;
    if (davit_fit_init(&t->fit, parts->truncation, parts->padding, parts->subject,
                       report) != DAVIT_OK)
        status = DAVIT_E_UNSUPPORTED;
    if (davit_decode_chain_init(&t->decoder, parts->decoder, parts->subject, report) !=
        DAVIT_OK)
        status = DAVIT_E_UNSUPPORTED;
    if (status != DAVIT_OK || !t->normalizer)
        return NULL;
    if (build_model(t, parts, report) != DAVIT_OK ||
        build_added(t, parts, report) != DAVIT_OK)
        return NULL;
    if (t->unk >= 0 || parts->unk)
        t->specials[DAVIT_SPECIAL_UNK] = t->unk;
    return g_steal_pointer(&t);
}
