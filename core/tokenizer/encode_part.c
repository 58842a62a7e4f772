/* SPDX-License-Identifier: Apache-2.0
 * A part between added tokens: Metaspace, the plugin's scanner, pieces to the model.
 */
#include "tokenizer/encode.h"

#include <string.h>

/* Spaces become marks, and one goes in front where the scheme says so. */
static void apply_metaspace(const DavitPretok *pretok, GString *out, const char *text,
                            size_t len, bool first)
{
    const bool wanted =
        pretok->meta == DAVIT_META_ALWAYS || (pretok->meta == DAVIT_META_FIRST && first);
    const bool has =
        text[0] == ' ' ||
        (len >= pretok->mark_len && memcmp(text, pretok->mark, pretok->mark_len) == 0);

    g_string_truncate(out, 0);
    if (wanted && !has)
        g_string_append_len(out, pretok->mark, (gssize)pretok->mark_len);
    while (len > 0) {
        const char *space = memchr(text, ' ', len);
        const size_t n = space ? (size_t)(space - text) : len;

        g_string_append_len(out, text, (gssize)n);
        if (space)
            g_string_append_len(out, pretok->mark, (gssize)pretok->mark_len);
        text += n + (space ? 1 : 0);
        len -= n + (space ? 1 : 0);
    }
}

/* Metaspace behind other stages: mark the piece, then cut before each mark. */
static int32_t encode_marked(DavitEncodeJob *job, const char *piece, size_t len,
                             bool first)
{
    const DavitPretok *pretok = &job->encoder->tokenizer->pretok;
    GString *marked = job->encoder->marked;
    int32_t status = DAVIT_OK;
    size_t from = 0;

    apply_metaspace(pretok, marked, piece, len, first);
    while (from < marked->len && status == DAVIT_OK) {
        size_t end = from + 1;

        while (pretok->meta_split && end < marked->len &&
               (marked->len - end < pretok->mark_len ||
                memcmp(marked->str + end, pretok->mark, pretok->mark_len) != 0))
            end++;
        if (!pretok->meta_split)
            end = marked->len;
        status = davit_encode_piece(job, marked->str + from, end - from);
        from = end;
    }
    return status;
}

static int32_t give_piece(DavitEncodeJob *job, const char *piece, size_t len, bool first)
{
    if (job->encoder->tokenizer->pretok.meta_last)
        return encode_marked(job, piece, len, first);
    return davit_encode_piece(job, piece, len);
}

/* Room for @cap ends, or for as many as memory has. */
static size_t grow_ends(DavitEncoder *encoder, size_t cap)
{
    uint64_t *ends;

    if (cap <= encoder->ends_cap)
        return cap;
    ends = g_try_renew(uint64_t, encoder->ends, cap);
    if (!ends)
        return encoder->ends_cap;
    encoder->ends = ends;
    encoder->ends_cap = cap;
    return cap;
}

/* Cut with the plugin's scanner. An end that does not move forward is the plugin's
 * mistake; it is taken as the end of the text, so the loop ends whatever it says.
 * @first: @text starts the whole input. */
static int32_t scan_text(DavitEncodeJob *job, const char *text, size_t len, bool first)
{
    DavitEncoder *encoder = job->encoder;
    const davit_tok_shape *shape = &encoder->tokenizer->pretok.shape;
    uint64_t from = 0, calls = 0;
    size_t cap = DAVIT_SCAN_CAP;
    int32_t status = DAVIT_OK;

    if (!shape->scan)
        return give_piece(job, text, len, first);
    while (from < len && status == DAVIT_OK) {
        if (calls++ > 0 && calls % DAVIT_SCAN_CALLS == 1)
            cap = grow_ends(encoder, MIN(2 * cap, DAVIT_SCAN_MAX_CAP));
        const uint64_t n = shape->scan(text, len, from, encoder->ends, cap);

        for (uint64_t i = 0; i < MIN(n, cap) && status == DAVIT_OK; i++) {
            const uint64_t end = encoder->ends[i] & ~DAVIT_TOK_DROP;

            if (end <= from || end > len)
                return give_piece(job, text + from, len - from, first && from == 0);
            if (!(encoder->ends[i] & DAVIT_TOK_DROP))
                status = give_piece(job, text + from, end - from, first && from == 0);
            from = end;
        }
        if (n == 0)
            return give_piece(job, text + from, len - from, first && from == 0);
    }
    return status;
}

int32_t davit_encode_part(DavitEncodeJob *job, const char *text, size_t len, bool first)
{
    DavitEncoder *encoder = job->encoder;
    const DavitPretok *pretok = &encoder->tokenizer->pretok;

    if (len == 0)
        return DAVIT_OK;
    if (pretok->meta != DAVIT_META_NONE && !pretok->meta_last) {
        apply_metaspace(pretok, encoder->marked, text, len, first);
        return scan_text(job, encoder->marked->str, encoder->marked->len, first);
    }
    if (pretok->prefix_space && text[0] != ' ') {
        g_string_assign(encoder->marked, " ");
        g_string_append_len(encoder->marked, text, (gssize)len);
        return scan_text(job, encoder->marked->str, encoder->marked->len, first);
    }
    return scan_text(job, text, len, first);
}
