/* SPDX-License-Identifier: Apache-2.0
 * Which reader a file needs, by its content and not by its name.
 */
#include <string.h>

#include "base/json.h"
#include "tokenizer/tokenizer_private.h"

/* Does the object at the start of @text have @key at its top level? Looks at keys only. */
static bool has_key(const char *text, size_t len, const char *key)
{
    g_autoptr(DavitReport) scratch = davit_report_new();
    g_autoptr(DavitJsonReader) reader = davit_json_open(text, len, 0, "", scratch);
    davit_json_event event = {.struct_size = sizeof event};

    if (!reader || davit_json_next(reader, &event) || event.type != DAVIT_JSON_OBJECT)
        return false;
    for (;;) {
        event = (davit_json_event){.struct_size = sizeof event};
        if (davit_json_next(reader, &event) || event.type != DAVIT_JSON_KEY)
            return false;
        if (davit_json_is(&event, key))
            return true;
        event = (davit_json_event){.struct_size = sizeof event};
        if (davit_json_next(reader, &event))
            return false;
        if ((event.type == DAVIT_JSON_OBJECT || event.type == DAVIT_JSON_ARRAY) &&
            davit_json_skip(reader))
            return false;
    }
}

/* A line of base64, a space and digits. */
static bool is_tiktoken(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);
    const size_t n = end ? (size_t)(end - text) : len;
    const char *space = memchr(text, ' ', n);

    return space && space > text && space + 1 < text + n && g_ascii_isdigit(space[1]) &&
           davit_tok_is_base64(text, (size_t)(space - text));
}

/* Editors put it there; no reader of these formats passes over it. */
static DavitTokenizer *refuse_mark(const char *subject, DavitReport *report)
{
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                                     .status = DAVIT_E_CORRUPT,
                                     .stage = "open",
                                     .subject = subject,
                                     .expected = "the first byte of a tokenizer",
                                     .found = "a byte order mark (ef bb bf)",
                                     .message = "the file was saved with a byte order mark, which "
                                                "no tokenizer file has",
                                     .hint = "take the file from the model's origin again, or save "
                                             "it as UTF-8 without the mark"});
    return NULL;
}

static DavitTokenizer *refuse_empty(const char *subject, DavitReport *report)
{
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_EMPTY_FILE,
                                             .status = DAVIT_E_CORRUPT,
                                             .stage = "open",
                                             .subject = subject,
                                             .expected = "a tokenizer",
                                             .found = "0 bytes",
                                             .message = "the file is empty",
                                             .hint = "download it again"});
    return NULL;
}

/* SentencePiece's begins with its first piece: field 1 of the protobuf. */
static bool is_spm(const char *bytes, size_t len)
{
    return len > 0 && bytes[0] == 0x0a;
}

static DavitTokenizer *refuse_unknown(const char *bytes, size_t len, const char *subject,
                                      DavitReport *report)
{
    g_autofree char *shown = davit_escape(bytes, MIN(len, 16), 40);

    davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                                .status = DAVIT_E_CORRUPT,
                                .stage = "open",
                                .subject = subject,
                                .expected = "tokenizer.json, tekken.json, a .tiktoken list, a "
                                            "SentencePiece .model, or vocab.txt with [UNK]",
                                .found = davit_report_text(report, "bytes that begin with %s", shown),
                                .message = "the file is no tokenizer that davit knows",
                                .hint = "take it from where the weights came from"});
    return NULL;
}

DavitTokenizer *davit_tokenizer_from_bytes(const char *bytes, size_t len,
                                           const char *subject, DavitRegistry *registry,
                                           DavitReport *report)
{
    size_t at = 0;

    if (len == 0)
        return refuse_empty(subject, report);
    if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        return refuse_mark(subject, report);
    while (at < len && g_ascii_isspace(bytes[at]))
        at++;
    if (at < len && bytes[at] == '{') {
        if (!has_key(bytes, len, "model") && has_key(bytes, len, "config"))
            return davit_tokenizer_from_tekken(bytes, len, subject, registry, report);
        return davit_tokenizer_from_json(bytes, len, subject, registry, report);
    }
    if (is_tiktoken(bytes, len))
        return davit_tokenizer_from_tiktoken(bytes, len, subject, registry, report);
    if (davit_tok_is_vocab_txt(bytes, len))
        return davit_tokenizer_from_vocab_txt(bytes, len, subject, registry, report);
    if (!is_spm(bytes, len))
        return refuse_unknown(bytes, len, subject, report);
    return davit_tokenizer_from_spm(bytes, len, subject, registry, report);
}
