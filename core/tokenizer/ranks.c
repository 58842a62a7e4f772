/* SPDX-License-Identifier: Apache-2.0
 * Rank lists: tokens are bytes, and of all neighbours the pair whose joined bytes have the
 * lowest rank is joined first, leftmost first. (tiktoken, byte_pair_merge.)
 *
 * As a merge list that is every split of every token, with the token's rank for all of its
 * splits.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/splits.h"
#include "tokenizer/tokenizer_private.h"

static int32_t no_memory(const DavitTokParts *parts, DavitReport *report)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                            .status = DAVIT_E_LIMIT,
                                            .stage = "open",
                                            .subject = parts->subject,
                                            .message = "no memory for the tokens"});
}

bool davit_tok_is_base64(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!g_ascii_isalnum(text[i]) && text[i] != '+' && text[i] != '/' && text[i] != '=')
            return false;
    }
    return true;
}

int32_t davit_tok_add_rank(DavitTokParts *parts, int64_t id, const char *bytes,
                           size_t len, GString *room, DavitReport *report)
{
    g_autofree char *member = NULL;

    if (len > DAVIT_TOK_MAX_SPLIT) {
        member = g_strdup_printf("rank %" G_GINT64_FORMAT, id);
        return davit_tok_check_split(parts, member, len, report);
    }
    g_string_truncate(room, 0);
    for (size_t i = 0; i < len; i++)
        g_string_append_unichar(room, davit_byte_letter((uint8_t)bytes[i]));
    switch (davit_vocab_add(parts->vocab, id, room->str, room->len)) {
    case DAVIT_VOCAB_ADDED:
        return DAVIT_OK;
    case DAVIT_VOCAB_TOO_LARGE:
        return no_memory(parts, report);
    default:
        member = g_strdup_printf("rank %" G_GINT64_FORMAT, id);
        return davit_tok_invalid(parts, report, member, "ranks from 0, each once", NULL,
                                 "a rank is out of range or given twice");
    }
}

/* All splits of all tokens. Letters are whole characters. */
static bool add_splits(DavitTokParts *parts)
{
    DavitSplit found[DAVIT_TOK_MAX_SPLIT];
    DavitSplits splits;
    const bool made = davit_splits_init(&splits, parts->vocab);

    for (size_t id = 0; made && id < davit_vocab_n_ids(parts->vocab); id++) {
        /* few ids of a sparse list have links, and a call has room for a thousand splits */
        if (!splits.heads[id].next || !splits.tails[id].next)
            continue;
        const size_t n = davit_splits_of(&splits, (uint32_t)id, found);

        for (size_t i = 0; i < n; i++) {
            const DavitMerge merge = {found[i].left, found[i].right, (uint32_t)id,
                                      (uint32_t)id};

            g_array_append_val(parts->merges, merge);
        }
    }
    davit_splits_clear(&splits);
    return made;
}

int32_t davit_tok_finish_ranks(DavitTokParts *parts, DavitReport *report)
{
    const int32_t twin = davit_vocab_seal(parts->vocab);
    g_autofree char *member = g_strdup_printf("rank %d", twin);

    if (twin == -2)
        return no_memory(parts, report);
    if (twin >= 0)
        return davit_tok_invalid(parts, report, member, "bytes of its own", NULL,
                                 "another token has the same bytes");
    return add_splits(parts) ? DAVIT_OK : no_memory(parts, report);
}

char *davit_tok_hash_ranks(const DavitTokParts *parts, size_t end)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GString) bytes = g_string_new(NULL);

    for (size_t id = 0; id < MIN(end, davit_vocab_n_ids(parts->vocab)); id++) {
        size_t len, off = 0;
        const char *text = davit_vocab_text(parts->vocab, (int64_t)id, &len);
        g_autofree char *line = NULL, *coded = NULL;

        if (!text)
            continue;
        g_string_truncate(bytes, 0);
        while (off < len) {
            uint32_t n;
            const int32_t byte = davit_letter_byte(davit_ucd_decode(text, len, off, &n));

            if (byte < 0)
                break; /* not spelled in letters: no rank list has it */
            g_string_append_c(bytes, (char)byte);
            off += n;
        }
        coded = g_base64_encode((const guchar *)bytes->str, bytes->len);
        line = g_strdup_printf("%s %zu\n", coded, id);
        g_checksum_update(sum, (const guchar *)line, -1);
    }
    return g_strdup(g_checksum_get_string(sum));
}
