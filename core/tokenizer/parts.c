/* SPDX-License-Identifier: Apache-2.0
 * Parts of a tokenizer while it is read.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

char *davit_tok_copy(const char *text, size_t len)
{
    char *copy = g_malloc(len + 1);

    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

static void clear_added(void *data)
{
    g_free(((DavitAdded *)data)->text);
}

void davit_tok_parts_init(DavitTokParts *parts, const char *subject, const char *source)
{
    *parts = (DavitTokParts){.subject = subject, .source = source};
    parts->vocab = davit_vocab_new();
    parts->merges = g_array_new(FALSE, FALSE, sizeof(DavitMerge));
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
                                .message = message,
                                .hint = g_str_has_suffix(parts->subject, ".gguf")
                                            ? "convert the model again, from a folder with its "
                                              "whole tokenizer"
                                            : NULL});
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
