/* SPDX-License-Identifier: Apache-2.0
 * Walking model text beside raw text.
 */
#include "tokenizer/spans.h"

#include <string.h>

#include <davit/help/ucd.h>

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
}

/* Use up what the @len bytes of model text stand for. False if it is not explained. */
static bool walk(DavitAlign *align, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        const char *raw = align->raw + align->done;
        const size_t left = align->len - align->done;
        uint32_t n = 0;

        if (left > 0 && *raw == text[i]) {
            align->done++;
            i++;
        } else if (starts_with_mark(text + i, len - i)) {
            if (left > 0 && *raw == ' ')
                align->done++;
            i += sizeof mark; /* put in front if no space stands there */
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

static void add_span(DavitAlign *align, size_t start)
{
    const DavitSpan span = {align->base + start, align->base + align->done};

    g_array_append_val(align->spans, span);
}

/* Bytes of model text that @id stands for; SIZE_MAX = as many as are left. */
static size_t id_len(const DavitTokenizer *t, int32_t id)
{
    size_t len = 0;
    const char *text = davit_tokenizer_text(t, id, &len);

    if (!text || (t->unk >= 0 && id == t->unk))
        return SIZE_MAX;
    if (t->bpe.byte_level)
        return (size_t)g_utf8_strlen(text, (gssize)len);
    if ((t->bpe.byte_fallback || t->unigram.byte_fallback) && len == 6 &&
        memcmp(text, "<0x", 3) == 0)
        return 1;
    return len;
}

void davit_align_piece(DavitAlign *align, const char *text, size_t len,
                       const int32_t *ids, size_t n)
{
    const DavitTokenizer *t = align->tokenizer;
    const size_t start = align->done;
    size_t known = 0, n_unknown = 0, off = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t one = id_len(t, ids[i]);

        n_unknown += one == SIZE_MAX;
        known += one == SIZE_MAX ? 0 : one;
    }
    /* Several unknowns, or bytes that vanished: the piece cannot be divided. */
    if (n_unknown > 1 || known > len || (n_unknown == 0 && known != len)) {
        align->lost |= !walk(align, text, len);
        for (size_t i = 0; i < n; i++)
            add_span(align, start);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t one = id_len(t, ids[i]);
        const size_t from = align->done;

        if (one == SIZE_MAX)
            one = len - known;
        align->lost |= align->lost || !walk(align, text + off, one);
        off += one;
        add_span(align, from);
    }
}

void davit_align_token(DavitAlign *align, const char *text, size_t len)
{
    const size_t from = align->done;

    align->lost |= align->lost || !walk(align, text, len);
    add_span(align, from);
}

void davit_align_end(DavitAlign *align)
{
    const DavitSpan whole = {align->base, align->base + align->len};

    for (guint i = align->first; align->lost && i < align->spans->len; i++)
        g_array_index(align->spans, DavitSpan, i) = whole;
}
