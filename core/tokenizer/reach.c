/* SPDX-License-Identifier: Apache-2.0
 * Added tokens that no text can give: a token of an earlier pass is cut out of theirs, or
 * the normaliser makes two of them alike.
 */
#include "tokenizer/tokenizer_private.h"

size_t davit_tokenizer_unreachable(const DavitTokenizer *tokenizer, int32_t *out_ids,
                                   size_t cap)
{
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    DavitIds ids = {0};
    size_t n = 0;

    for (guint i = 0; i < tokenizer->added->len; i++) {
        const DavitAdded *added = g_ptr_array_index(tokenizer->added, i);
        g_autoptr(DavitReport) report = davit_report_new();
        bool found = false;

        if (added->flags & DAVIT_ADDED_HIDDEN)
            continue;
        ids.n = 0;
        if (davit_encode(encoder, added->text, added->len, 0, &ids, report) != DAVIT_OK)
            continue;
        for (size_t k = 0; k < ids.n && !found; k++)
            found = ids.ids[k] == added->id;
        if (found)
            continue;
        if (n < cap)
            out_ids[n] = added->id;
        n++;
    }
    davit_ids_clear(&ids);
    return n;
}
