/* SPDX-License-Identifier: Apache-2.0
 * Merges by name: the ids of both halves and of the joined text. A list of half a million
 * is a million looks into a table of megabytes, so many are looked up together.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

/* Id of the joined text, -1 = none. Most lists name the tokens in order, or several
 * splits of one in a row. */
static int32_t find_joined(const DavitVocab *vocab, const DavitMergeText *m, int32_t last)
{
    const size_t len = m->left.len + m->right.len;
    char room[256];
    g_autofree char *large = NULL;
    char *joined = room;

    if (davit_vocab_is_joined(vocab, last, m->left, m->right))
        return last;
    if (davit_vocab_is_joined(vocab, last + 1, m->left, m->right))
        return last + 1;
    if (len > sizeof room)
        joined = large = g_malloc(len);
    memcpy(joined, m->left.text, m->left.len);
    memcpy(joined + m->left.len, m->right.text, m->right.len);
    return davit_vocab_find(vocab, joined, len);
}

size_t davit_merges_find(const DavitVocab *vocab, const DavitMergeText *texts, size_t n,
                         GArray *out)
{
    const guint before = out->len;
    int32_t ids[DAVIT_VOCAB_MANY], joined = 0;
    DavitMerge *merges;
    size_t i;

    if (before > 0)
        joined = (int32_t)g_array_index(out, DavitMerge, before - 1).joined;
    davit_vocab_find_many(vocab, &texts[0].left, 2 * n, ids);
    g_array_set_size(out, before + (guint)n);
    merges = &g_array_index(out, DavitMerge, before);
    for (i = 0; i < n; i++) {
        const int32_t left = ids[2 * i], right = ids[2 * i + 1];

        joined = left < 0 || right < 0 ? -1 : find_joined(vocab, &texts[i], joined);
        if (joined < 0)
            break;
        merges[i] = (DavitMerge){(uint32_t)left, (uint32_t)right, before + (uint32_t)i,
                                 (uint32_t)joined};
    }
    g_array_set_size(out, before + (guint)i);
    return i;
}

void davit_merges_append(GArray *merges, GArray *more)
{
    for (guint i = 0; i < more->len; i++)
        g_array_index(more, DavitMerge, i).rank += merges->len;
    g_array_append_vals(merges, more->data, more->len);
}

static int32_t refuse_merge(DavitTokParts *parts, DavitReport *report, const char *text,
                            size_t len, const char *message)
{
    g_autofree char *found = davit_escape(text, len, 80);
    g_autofree char *member = g_strdup_printf("merges[%u]", parts->merges->len);

    return davit_tok_invalid(parts, report, member, "two tokens whose joined text is one",
                             found, message);
}

/* Which of the three texts is missing. */
static int32_t refuse_halves(DavitTokParts *parts, DavitReport *report,
                             const DavitMergeText *m)
{
    g_autoptr(GString) joined = g_string_new_len(m->left.text, (gssize)m->left.len);

    if (davit_vocab_find(parts->vocab, m->left.text, m->left.len) < 0)
        return refuse_merge(parts, report, m->left.text, m->left.len,
                            "left half is not in the vocabulary");
    if (davit_vocab_find(parts->vocab, m->right.text, m->right.len) < 0)
        return refuse_merge(parts, report, m->right.text, m->right.len,
                            "right half is not in the vocabulary");
    g_string_append_len(joined, m->right.text, (gssize)m->right.len);
    return refuse_merge(parts, report, joined->str, joined->len,
                        "the joined text is not in the vocabulary");
}

int32_t davit_tok_settle_merges(DavitTokParts *parts, DavitReport *report)
{
    const size_t n = parts->n_pending;
    size_t found;

    if (n == 0)
        return DAVIT_OK;
    found = davit_merges_find(parts->vocab, parts->pending, n, parts->merges);

    parts->n_pending = 0;
    return found == n ? DAVIT_OK : refuse_halves(parts, report, &parts->pending[found]);
}

int32_t davit_tok_add_merge(DavitTokParts *parts, const DavitMergeText *merge,
                            DavitReport *report)
{
    parts->pending[parts->n_pending++] = *merge;
    return parts->n_pending < DAVIT_MERGES_AHEAD ? DAVIT_OK
                                                 : davit_tok_settle_merges(parts, report);
}

bool davit_tok_split_line(const char *line, size_t len, DavitMergeText *out)
{
    const char *space = memchr(line, ' ', len);
    size_t left;

    if (!space)
        return false;
    left = (size_t)(space - line);
    *out = (DavitMergeText){{line, left}, {space + 1, len - left - 1}};
    return !memchr(out->right.text, ' ', out->right.len);
}

int32_t davit_tok_add_merge_line(DavitTokParts *parts, const char *line, size_t len,
                                 DavitReport *report)
{
    DavitMergeText merge;
    int32_t status;

    if (len >= 8 && memcmp(line, "#version", 8) == 0)
        return DAVIT_OK;
    if (davit_tok_split_line(line, len, &merge))
        return davit_tok_add_merge(parts, &merge, report);
    status = davit_tok_settle_merges(parts, report);
    if (status != DAVIT_OK)
        return status;
    return refuse_merge(parts, report, line, len,
                        "a merge is two tokens with one space between them");
}
