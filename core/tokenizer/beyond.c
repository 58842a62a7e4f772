/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/beyond.h"

#include <inttypes.h>

#include "tokenizer/tokenizer_private.h"

#define SHOWN    60u   /* bytes of a token's text */
#define COMPARED 1024u /* tokens, about */

/* A place holder for pictures or sound that a text model keeps in its tokenizer. */
static bool is_place_holder(const char *text, size_t n)
{
    static const char *const words[] = {"image", "audio", "video", "soft_token"};

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_strstr_len(text, (gssize)n, words[i]))
            return true;
    return false;
}

bool davit_tokenizer_beyond(const DavitTokenizer *t, uint64_t rows, DavitBeyond *out)
{
    DavitBeyond beyond = {.n_ids = davit_tokenizer_n_ids(t), .idle = true};

    if (beyond.n_ids <= rows)
        return false;
    for (size_t id = (size_t)rows; id < beyond.n_ids; id++) {
        size_t n = 0;
        const char *text = davit_tokenizer_text(t, (int32_t)id, &n);

        if (!text)
            continue;
        beyond.idle = beyond.idle && davit_tokenizer_is_special(t, (int32_t)id) &&
                      is_place_holder(text, n);
        beyond.n_first = beyond.first ? beyond.n_first : n;
        beyond.first = beyond.first ? beyond.first : text;
    }
    *out = beyond;
    return true;
}

void davit_tokenizer_tell_beyond(const DavitTokenizer *t, uint64_t rows, const char *subject,
                                 DavitReport *report)
{
    DavitBeyond beyond;

    if (!davit_tokenizer_beyond(t, rows, &beyond))
        return;
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_TOKENIZER_INVALID,
            .severity = beyond.idle ? DAVIT_NOTE : DAVIT_WARNING,
            .stage = "tokenizer",
            .subject = subject,
            .expected = davit_report_text(report, "at most %" PRIu64 " ids, one a row", rows),
            .found = davit_report_text(report, "%zu ids; first without a row: %.*s",
                                       beyond.n_ids, (int)MIN(beyond.n_first, SHOWN),
                                       beyond.first ? beyond.first : "a hole"),
            .message = "the tokenizer has ids that the model has no row for",
            .hint = "a prompt that needs such an id is refused; take the tokenizer from where "
                    "the weights came from"});
}

void davit_tokenizer_tell_other(const DavitTokenizer *t, const DavitGgufStrings *tokens,
                                const char *subject, DavitReport *report)
{
    const uint64_t step = MAX(1, tokens->count / COMPARED);
    uint64_t off = 0, n = 0, other = 0, first = 0;
    davit_span in_gguf, one = {0};

    for (uint64_t id = 0; id < tokens->count && davit_gguf_next(tokens, &off, &in_gguf); id++) {
        size_t len = 0;
        const char *text;

        if (id % step || id > INT32_MAX ||
            !(text = davit_tokenizer_text(t, (int32_t)id, &len)))
            continue;
        n++;
        if (len == in_gguf.len && memcmp(text, in_gguf.ptr, len) == 0)
            continue;
        if (other++ == 0) {
            first = id;
            one = in_gguf;
        }
    }
    if (other <= n / 2)
        return;
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_TOKENIZER_INVALID,
            .severity = DAVIT_WARNING,
            .stage = "tokenizer",
            .subject = subject,
            .expected = davit_report_text(report, "the GGUF's own tokens, id %" PRIu64 ": %.*s",
                                          first, (int)MIN(one.len, SHOWN), one.ptr),
            .found = davit_report_text(report, "%" PRIu64 " of %" PRIu64 " ids with another text",
                                       other, n),
            .message = "the tokenizer beside the GGUF is another model's",
            .hint = "take the file away, so that the vocabulary inside the GGUF is used, or put "
                    "the model's own there"});
}
