/* SPDX-License-Identifier: Apache-2.0
 * The table for text that shall stay text. Matching passes over special tokens there, but a file
 * may have merges, or a letter, that make one all the same.
 */
#include "tokenizer/bpe.h"

#include <davit/help/ucd.h>

#include "tokenizer/bpe_table.h"

static bool is_special(const uint8_t *id_flags, int64_t id)
{
    return id >= 0 && (id_flags[id] & DAVIT_ID_SPECIAL);
}

/* Is a special token one character, of a table whose symbols are characters? */
static bool is_any_char(const DavitBpe *bpe, const uint8_t *id_flags)
{
    const size_t n_ids = davit_vocab_n_ids(bpe->vocab);

    for (size_t id = 0; id < n_ids && !bpe->byte_level; id++) {
        size_t len = 0;
        uint32_t n = 0;
        const char *text =
            is_special(id_flags, (int64_t)id) ? davit_vocab_text(bpe->vocab, (int64_t)id, &len) : NULL;

        if (text && len > 0)
            (void)davit_ucd_decode(text, len, 0, &n);
        if (n > 0 && n == len)
            return true;
    }
    return false;
}

static bool gives_special(const DavitBpe *bpe, const uint8_t *id_flags)
{
    for (uint32_t at = 0; at < bpe->n_merges; at++) {
        if (is_special(id_flags, bpe->joined[at]))
            return true;
    }
    for (int b = 0; b < 256 && bpe->byte_level; b++) {
        if (is_special(id_flags, bpe->bytes[b]))
            return true;
    }
    return is_any_char(bpe, id_flags);
}

/* (owned) DavitMerge: those that give no special token. */
static GArray *list_others(const DavitBpe *bpe, const uint8_t *id_flags)
{
    GArray *others = g_array_new(FALSE, FALSE, sizeof(DavitMerge));

    for (uint32_t slot = 0; slot < bpe->n_slots; slot++) {
        uint64_t pair;
        const uint32_t at = davit_pair_read(bpe, slot, &pair);
        DavitMerge merge;

        if (at == DAVIT_BPE_NONE || is_special(id_flags, bpe->joined[at]))
            continue;
        merge = (DavitMerge){(uint32_t)(pair >> bpe->id_bits), davit_pair_right(bpe, pair),
                             davit_bpe_rank(bpe, at), bpe->joined[at]};
        g_array_append_val(others, merge);
    }
    return others;
}

/* <0xNN> tokens stay: a byte has no other. */
static void hide_symbols(DavitBpe *bpe, const uint8_t *id_flags)
{
    for (int b = 0; b < 256 && bpe->byte_level; b++) {
        if (is_special(id_flags, bpe->bytes[b]))
            bpe->bytes[b] = -1;
    }
    for (uint32_t cp = 0; cp < bpe->n_bmp; cp++) {
        if (is_special(id_flags, bpe->bmp[cp]))
            bpe->bmp[cp] = -1;
    }
}

bool davit_bpe_hide(const DavitBpe *bpe, const uint8_t *id_flags, DavitBpe **out)
{
    g_autoptr(GArray) others = NULL;
    DavitBpe *own;

    *out = NULL;
    if (!gives_special(bpe, id_flags))
        return true;
    own = *out = g_new0(DavitBpe, 1);
    others = list_others(bpe, id_flags);
    if (!davit_bpe_init(own, bpe->vocab, others->len))
        return false;
    own->byte_level = bpe->byte_level;
    own->byte_fallback = bpe->byte_fallback;
    own->fuse_unk = bpe->fuse_unk;
    own->ignore_merges = bpe->ignore_merges;
    own->open = bpe->open;
    own->has_unk_name = bpe->has_unk_name;
    own->unk = bpe->unk;
    if (!davit_bpe_fill(own, (const DavitMerge *)(const void *)others->data, others->len))
        return false;
    hide_symbols(own, id_flags);
    own->cuts = false; /* they count on the mark being a symbol */
    return true;
}

void davit_bpe_free(DavitBpe *bpe)
{
    if (!bpe)
        return;
    davit_bpe_clear(bpe);
    g_free(bpe);
}
