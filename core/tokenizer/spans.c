/* SPDX-License-Identifier: Apache-2.0
 * Walking model text beside raw text.
 */
#include "tokenizer/spans.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/origin.h"
#include "tokenizer/tokenizer_private.h"

static const char mark[3] = {'\xe2', '\x96', '\x81'}; /* U+2581 */

static bool starts_with_mark(const char *text, size_t len)
{
    return len >= sizeof mark && memcmp(text, mark, sizeof mark) == 0;
}

void davit_align_start(DavitAlign *align, const char *raw, size_t len, uint64_t base)
{
    align->raw = raw;
    align->len = len;
    align->done = 0;
    align->base = base;
    align->first = align->spans->len;
    align->lost = false;
    align->normal = NULL;
}

void davit_align_normal(DavitAlign *align, DavitAlign *normal, const char *text, size_t len)
{
    normal->tokenizer = align->tokenizer;
    if (align->origin->len != len)
        return; /* no trace of it */
    g_array_set_size(normal->spans, 0);
    davit_align_start(normal, text, len, 0);
    align->normal = normal;
}

/* Use up what the @len bytes of model text stand for. False if it is not explained. */
static bool walk(DavitAlign *align, const char *text, size_t len)
{
    const bool prefix_space = align->tokenizer->pretok.prefix_space;

    for (size_t i = 0; i < len;) {
        const char *raw = align->raw + align->done;
        const size_t left = align->len - align->done;
        uint32_t n = 0;

        if (starts_with_mark(text + i, len - i) && !starts_with_mark(raw, left)) {
            if (left > 0 && *raw == ' ')
                align->done++;
            i += sizeof mark; /* put in front if no space stands there */
        } else if (left > 0 && *raw == text[i]) {
            align->done++;
            i++;
        } else if (prefix_space && align->done == 0 && i == 0 && text[0] == ' ') {
            i++;
        } else if (davit_ucd_at(align->raw, align->len, align->done, &n) &
                   DAVIT_UCD_SPACE) {
            align->done += n; /* dropped */
        } else if (align->done == 0 && text[i] == ' ') {
            i++; /* a space put in front */
        } else {
            return false;
        }
    }
    return true;
}

/* What was only put in front stands for the character behind it, as in Hugging Face's. */
static void add_span(DavitAlign *align, size_t start)
{
    DavitSpan span = {align->base + start, align->base + align->done};
    uint32_t n = 0;

    if (align->done == start && start < align->len) {
        davit_ucd_decode(align->raw, align->len, start, &n);
        span.end += n;
    }
    g_array_append_val(align->spans, span);
}

/* Bytes of model text that @id stands for; SIZE_MAX = as many as are left. @inside: it is not the
 * first of its piece. */
static size_t id_len(const DavitTokenizer *t, int32_t id, bool inside)
{
    size_t len = 0;
    const char *text = davit_tokenizer_text(t, id, &len);

    if (!text || (t->unk >= 0 && id == t->unk))
        return SIZE_MAX;
    if (t->model == DAVIT_MODEL_WORDPIECE)
        return inside && len > t->wordpiece.inside_len ? len - t->wordpiece.inside_len : len;
    if (t->bpe.byte_level)
        return (size_t)g_utf8_strlen(text, (gssize)len);
    if ((t->bpe.byte_fallback || t->unigram.byte_fallback) && len == 6 &&
        memcmp(text, "<0x", 3) == 0)
        return 1;
    return len;
}

/* Bytes at @text that an unknown token stands for, where a piece has several: one character, or
 * where neighbours become one all up to the next that is a token. */
static size_t unknown_len(const DavitTokenizer *t, const char *text, size_t len)
{
    const bool fuses = t->model == DAVIT_MODEL_UNIGRAM || t->bpe.fuse_unk;
    size_t end = 0;
    uint32_t n;

    while (end < len) {
        davit_ucd_decode(text, len, end, &n);
        if (end > 0 && (!fuses || davit_vocab_find(t->vocab, text + end, n) >= 0))
            break;
        end += n;
    }
    return end;
}

/* The pre-tokenizer dropped white space. */
static void pass_space(DavitAlign *align)
{
    uint32_t n;

    while (align->done < align->len &&
           (davit_ucd_at(align->raw, align->len, align->done, &n) & DAVIT_UCD_SPACE))
        align->done += n;
}

static void align_piece(DavitAlign *align, const char *text, size_t len, const int32_t *ids,
                        size_t n)
{
    const DavitTokenizer *t = align->tokenizer;
    size_t known = 0, n_unknown = 0, off = 0;

    if (t->pretok.drops_space)
        pass_space(align);
    const size_t start = align->done;
    for (size_t i = 0; i < n; i++) {
        const size_t one = id_len(t, ids[i], i > 0);

        n_unknown += one == SIZE_MAX;
        known += one == SIZE_MAX ? 0 : one;
    }
    /* Bytes that vanished: the piece cannot be divided. */
    if (known > len || (n_unknown == 0 && known != len)) {
        align->lost |= !walk(align, text, len);
        for (size_t i = 0; i < n; i++)
            add_span(align, start);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t one = id_len(t, ids[i], i > 0);
        const size_t from = align->done;

        if (one == SIZE_MAX)
            one = n_unknown == 1 ? len - known : unknown_len(t, text + off, len - off);
        one = MIN(one, len - off);
        align->lost |= align->lost || !walk(align, text + off, one);
        off += one;
        add_span(align, from);
    }
}

void davit_align_piece(DavitAlign *align, const char *text, size_t len,
                       const int32_t *ids, size_t n)
{
    align_piece(align, text, len, ids, n);
    if (align->normal)
        align_piece(align->normal, text, len, ids, n);
}

void davit_align_token(DavitAlign *align, const char *text, size_t len)
{
    const size_t from = align->done;

    if (align->normal)
        davit_align_token(align->normal, text, len);

    align->lost |= align->lost || !walk(align, text, len);
    add_span(align, from);
}

/* A span of the normalised text as one of the input. */
static DavitSpan original(const DavitAlign *align, DavitSpan span)
{
    const DavitOrigin *origin = (const DavitOrigin *)(const void *)align->origin->data;
    DavitSpan out = {align->base, align->base};

    if (align->origin->len == 0)
        return out;
    out.start += origin[MIN(span.start, align->origin->len - 1)].start;
    out.end += span.end > span.start ? origin[span.end - 1].end : 0;
    out.end = MAX(out.start, out.end);
    return out;
}

void davit_align_end(DavitAlign *align)
{
    const DavitSpan whole = {align->base, align->base + align->len};
    const bool known = align->normal && !align->normal->lost;

    for (guint i = align->first; (known || align->lost) && i < align->spans->len; i++)
        g_array_index(align->spans, DavitSpan, i) =
            known ? original(align, g_array_index(align->normal->spans, DavitSpan,
                                                  i - align->first))
                  : whole;
}
