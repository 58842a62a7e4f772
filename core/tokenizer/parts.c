/* SPDX-License-Identifier: Apache-2.0
 * Parts of a tokenizer while it is read, and merges by name.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

static void clear_added(void *data)
{
    g_free(((DavitAdded *)data)->text);
}

void davit_tok_parts_init(DavitTokParts *parts, const char *subject, const char *source)
{
    *parts = (DavitTokParts){.subject = subject, .source = source};
    parts->vocab = davit_vocab_new();
    parts->merges = g_array_new(FALSE, FALSE, sizeof(DavitMerge));
    parts->pending = g_new(DavitPendingMerge, DAVIT_MERGES_AHEAD);
    parts->added = g_array_new(FALSE, FALSE, sizeof(DavitAdded));
    g_array_set_clear_func(parts->added, clear_added);
    parts->scores = g_array_new(FALSE, FALSE, sizeof(double));
    parts->types = g_array_new(FALSE, FALSE, sizeof(uint8_t));
    parts->unk_id = -1;
    for (int i = 0; i < DAVIT_N_SPECIALS; i++)
        parts->specials[i] = -1;
}

void davit_tok_parts_clear(DavitTokParts *parts)
{
    json_decref(parts->normalizer);
    json_decref(parts->pre_tokenizer);
    json_decref(parts->post_processor);
    json_decref(parts->decoder);
    json_decref(parts->truncation);
    json_decref(parts->padding);
    davit_vocab_free(parts->vocab);
    g_array_free(parts->merges, TRUE);
    g_free(parts->pending);
    g_array_free(parts->added, TRUE);
    g_free(parts->unk);
    g_array_free(parts->scores, TRUE);
    g_array_free(parts->types, TRUE);
    g_free(parts->inside);
    davit_normalizer_free(parts->own_normalizer);
}

int32_t davit_tok_invalid(const DavitTokParts *parts, DavitReport *report,
                          const char *member, const char *expected, const char *found,
                          const char *message)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                                .status = DAVIT_E_CORRUPT,
                                .stage = "open",
                                .subject = davit_report_text(report, "%s: %s",
                                                             parts->subject, member),
                                .expected = expected,
                                .found = found,
                                .message = message});
}

int32_t davit_tok_check_split(const DavitTokParts *parts, const char *member, size_t len,
                              DavitReport *report)
{
    if (len <= DAVIT_TOK_MAX_SPLIT)
        return DAVIT_OK;
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "open",
                                .subject = davit_report_text(report, "%s: %s",
                                                             parts->subject, member),
                                .expected = davit_report_text(
                                    report, "at most %u bytes a token", DAVIT_TOK_MAX_SPLIT),
                                .found = davit_report_text(report, "%zu bytes", len),
                                .message = "the splits of a token of this length are not "
                                           "searched for"});
}

static int32_t refuse_merge(DavitTokParts *parts, DavitReport *report, const char *text,
                            size_t len, const char *message)
{
    g_autofree char *found = davit_escape(text, len, 80);
    g_autofree char *member = g_strdup_printf("merges[%u]", parts->merges->len);

    return davit_tok_invalid(parts, report, member, "two tokens whose joined text is one",
                             found, message);
}

/* Id of @text; most lists name the tokens in order, or several splits of one in a row. */
static int32_t find_joined(const DavitTokParts *parts, const char *text, size_t len)
{
    const guint n = parts->merges->len;
    const uint32_t last =
        n > 0 ? g_array_index(parts->merges, DavitMerge, n - 1).joined : 0;

    for (uint32_t id = last; n > 0 && id <= last + 1; id++) {
        size_t other_len;
        const char *other = davit_vocab_text(parts->vocab, id, &other_len);

        if (other && other_len == len && memcmp(other, text, len) == 0)
            return (int32_t)id;
    }
    return davit_vocab_find(parts->vocab, text, len);
}

/* @joined: both halves, end to end. */
static int32_t settle(DavitTokParts *parts, const char *joined, size_t left_len, size_t len,
                      uint64_t left_hash, uint64_t right_hash, DavitReport *report)
{
    const char *right = joined + left_len;
    const int32_t l =
        davit_vocab_find_hashed(parts->vocab, joined, left_len, left_hash);
    const int32_t r =
        davit_vocab_find_hashed(parts->vocab, right, len - left_len, right_hash);
    DavitMerge merge;
    int32_t id;

    if (l < 0)
        return refuse_merge(parts, report, joined, left_len,
                            "left half is not in the vocabulary");
    if (r < 0)
        return refuse_merge(parts, report, right, len - left_len,
                            "right half is not in the vocabulary");
    id = find_joined(parts, joined, len);
    if (id < 0)
        return refuse_merge(parts, report, joined, len,
                            "the joined text is not in the vocabulary");
    merge = (DavitMerge){(uint32_t)l, (uint32_t)r, parts->merges->len, (uint32_t)id};
    g_array_append_val(parts->merges, merge);
    return DAVIT_OK;
}

static int32_t settle_oldest(DavitTokParts *parts, DavitReport *report)
{
    const DavitPendingMerge *m =
        &parts->pending[parts->n_settled++ % DAVIT_MERGES_AHEAD];

    return settle(parts, m->text, m->left_len, m->len, m->left_hash, m->right_hash, report);
}

int32_t davit_tok_settle_merges(DavitTokParts *parts, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    while (status == DAVIT_OK && parts->n_settled < parts->n_pushed)
        status = settle_oldest(parts, report);
    parts->n_settled = parts->n_pushed;
    return status;
}

/* Too long to wait: everything before it, then the merge itself. */
static int32_t add_long(DavitTokParts *parts, const char *left, size_t left_len,
                        const char *right, size_t right_len, DavitReport *report)
{
    g_autofree char *joined = g_malloc(left_len + right_len);
    int32_t status = davit_tok_settle_merges(parts, report);

    memcpy(joined, left, left_len);
    memcpy(joined + left_len, right, right_len);
    if (status != DAVIT_OK)
        return status;
    return settle(parts, joined, left_len, left_len + right_len,
                  davit_vocab_hash(parts->vocab, left, left_len),
                  davit_vocab_hash(parts->vocab, right, right_len), report);
}

int32_t davit_tok_add_merge(DavitTokParts *parts, const char *left, size_t left_len,
                            const char *right, size_t right_len, DavitReport *report)
{
    DavitPendingMerge *m = &parts->pending[parts->n_pushed % DAVIT_MERGES_AHEAD];
    int32_t status = DAVIT_OK;

    if (left_len + right_len > sizeof m->text)
        return add_long(parts, left, left_len, right, right_len, report);
    if (parts->n_pushed - parts->n_settled == DAVIT_MERGES_AHEAD)
        status = settle_oldest(parts, report);
    if (status != DAVIT_OK)
        return status;
    memcpy(m->text, left, left_len);
    memcpy(m->text + left_len, right, right_len);
    m->left_len = (uint32_t)left_len;
    m->len = (uint32_t)(left_len + right_len);
    m->left_hash = davit_vocab_hash(parts->vocab, left, left_len);
    m->right_hash = davit_vocab_hash(parts->vocab, right, right_len);
    davit_vocab_fetch_slot(parts->vocab, m->left_hash);
    davit_vocab_fetch_slot(parts->vocab, m->right_hash);
    parts->n_pushed++;
    /* Half a ring later the slots are there and name the texts. */
    if (parts->n_pushed - parts->n_settled > DAVIT_MERGES_AHEAD / 2) {
        m = &parts->pending[(parts->n_pushed - 1 - DAVIT_MERGES_AHEAD / 2) %
                            DAVIT_MERGES_AHEAD];
        davit_vocab_fetch_text(parts->vocab, m->left_hash);
        davit_vocab_fetch_text(parts->vocab, m->right_hash);
    }
    return DAVIT_OK;
}

int32_t davit_tok_add_merge_line(DavitTokParts *parts, const char *line, size_t len,
                                 DavitReport *report)
{
    const char *space = memchr(line, ' ', len);
    size_t left_len;

    if (len >= 8 && memcmp(line, "#version", 8) == 0)
        return DAVIT_OK;
    if (!space || memchr(space + 1, ' ', len - (size_t)(space + 1 - line))) {
        const int32_t status = davit_tok_settle_merges(parts, report);

        if (status != DAVIT_OK)
            return status;
        return refuse_merge(parts, report, line, len,
                            "a merge is two tokens with one space between them");
    }
    left_len = (size_t)(space - line);
    return davit_tok_add_merge(parts, line, left_len, space + 1, len - left_len - 1,
                               report);
}
