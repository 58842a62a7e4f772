/* SPDX-License-Identifier: Apache-2.0
 * The merge table and what is derived from it at load. Merging itself is in bpe_merge.c.
 */
#include "tokenizer/bpe.h"

#include <stdio.h>
#include <string.h>

#include <davit/help/ucd.h>

#include "base/big.h"

#define EMPTY UINT32_MAX

/* U+2581, the SentencePiece mark for a space. */
static const char mark[3] = {'\xe2', '\x96', '\x81'};

uint32_t davit_byte_letter(uint8_t byte)
{
    /* GPT-2: printable bytes stand for themselves, the others follow from U+0100 in
     * order. */
    if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

int32_t davit_letter_byte(uint32_t cp)
{
    if (cp < 0x100)
        return davit_byte_letter((uint8_t)cp) == cp ? (int32_t)cp : -1;
    if (cp <= 0x120)
        return (int32_t)(cp - 0x100);
    if (cp <= 0x142)
        return (int32_t)(cp - 0x121 + 0x7f);
    return cp == 0x143 ? 0xad : -1;
}

bool davit_bpe_init(DavitBpe *bpe, const DavitVocab *vocab, uint64_t n_merges)
{
    uint64_t n = 1024;

    bpe->vocab = vocab;
    bpe->unk = -1;
    bpe->seed = (uint64_t)g_random_int() << 32 | g_random_int() | 1;
    while (n < 2 * n_merges)
        n *= 2;
    bpe->merges = davit_big_alloc(n, sizeof(DavitMerge));
    if (!bpe->merges)
        return false;
    memset(bpe->merges, 0xff, n * sizeof *bpe->merges);
    bpe->n_slots = n;
    return true;
}

void davit_bpe_clear(DavitBpe *bpe)
{
    davit_big_free(bpe->merges);
    g_free(bpe->bmp);
}

static uint64_t hash_pair(const DavitBpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) ^ bpe->seed;

    h *= 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

static void add_merge(DavitBpe *bpe, const DavitMerge *merge)
{
    uint64_t at = hash_pair(bpe, merge->left, merge->right) & (bpe->n_slots - 1);

    while (bpe->merges[at].joined != EMPTY &&
           (bpe->merges[at].left != merge->left || bpe->merges[at].right != merge->right))
        at = (at + 1) & (bpe->n_slots - 1);
    bpe->merges[at] = *merge;
}

void davit_bpe_add(DavitBpe *bpe, const DavitMerge *merges, size_t n)
{
    const size_t ahead =
        12; /* slots are far apart in memory: fetch before they are needed */

    for (size_t i = 0; i < n; i++) {
        if (n - i > ahead) {
            const DavitMerge *next = &merges[i + ahead];

            __builtin_prefetch(&bpe->merges[hash_pair(bpe, next->left, next->right) &
                                            (bpe->n_slots - 1)]);
        }
        add_merge(bpe, &merges[i]);
    }
}

const DavitMerge *davit_bpe_find(const DavitBpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t at = hash_pair(bpe, left, right) & (bpe->n_slots - 1);

    for (;; at = (at + 1) & (bpe->n_slots - 1)) {
        const DavitMerge *m = &bpe->merges[at];

        if (m->joined == EMPTY)
            return NULL;
        if (m->left == left && m->right == right)
            return m;
    }
}

/* Ids of the bytes: by letter in byte-level files, else by the name <0xNN>. */
static void fill_bytes(DavitBpe *bpe)
{
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        int len;

        bpe->bytes[i] = -1;
        if (bpe->byte_level) {
            len = g_unichar_to_utf8(davit_byte_letter((uint8_t)i), text);
        } else if (bpe->byte_fallback) {
            len = snprintf(text, sizeof text, "<0x%02X>", i);
        } else {
            continue;
        }
        bpe->bytes[i] = davit_vocab_find(bpe->vocab, text, (size_t)len);
    }
}

static bool fill_bmp(DavitBpe *bpe)
{
    bpe->bmp = g_try_new(int32_t, 65536);
    if (!bpe->bmp)
        return false;
    memset(bpe->bmp, 0xff, 65536 * sizeof *bpe->bmp);
    for (size_t id = 0; id < davit_vocab_n_ids(bpe->vocab); id++) {
        size_t len;
        uint32_t n, cp;
        const char *text = davit_vocab_text(bpe->vocab, (int64_t)id, &len);

        if (!text || len == 0 || len > 3)
            continue;
        cp = davit_ucd_decode(text, len, 0, &n);
        if (n == len && cp < 65536)
            bpe->bmp[cp] = (int32_t)id;
    }
    return true;
}

/* Remember the last byte of every character that stands before a mark inside @text. */
static void note_marks(DavitBpe *bpe, const char *text, size_t len)
{
    for (size_t i = 1; i + sizeof mark <= len; i++) {
        if (memcmp(text + i, mark, sizeof mark) == 0 &&
            (i < sizeof mark || memcmp(text + i - sizeof mark, mark, sizeof mark) != 0))
            bpe->keep[(uint8_t)text[i - 1]] = 1;
    }
}

static bool is_not_text(const DavitBpe *bpe, uint32_t id)
{
    size_t len;
    const char *text;

    if (bpe->unk >= 0 && id == (uint32_t)bpe->unk)
        return true;
    text = davit_vocab_text(bpe->vocab, id, &len);
    return bpe->byte_fallback && len == 6 && memcmp(text, "<0x", 3) == 0;
}

/* A piece may be cut before a mark when no merge can reach over the cut: a merged token
 * then has some character and a mark next to each other inside, and those characters are
 * kept. That needs merged texts to be real text, so no merge may touch <0xNN> or the
 * unknown. */
static void derive_cuts(DavitBpe *bpe)
{
    bpe->cuts = !bpe->byte_level && !bpe->ignore_merges &&
                davit_vocab_find(bpe->vocab, mark, sizeof mark) >= 0;
    for (uint64_t i = 0; bpe->cuts && i < bpe->n_slots; i++) {
        const DavitMerge *m = &bpe->merges[i];
        const char *text;
        size_t len;

        if (m->joined == EMPTY)
            continue;
        if (is_not_text(bpe, m->left) || is_not_text(bpe, m->right))
            bpe->cuts = false;
        text = davit_vocab_text(bpe->vocab, m->joined, &len);
        note_marks(bpe, text, len);
    }
}

bool davit_bpe_finish(DavitBpe *bpe)
{
    fill_bytes(bpe);
    if (!bpe->byte_level && !fill_bmp(bpe))
        return false;
    derive_cuts(bpe);
    return true;
}

size_t davit_bpe_cut(const DavitBpe *bpe, const char *text, size_t n, size_t from)
{
    if (!bpe->cuts)
        return n;
    for (size_t at = from + 1; at < n; at++) {
        const char *hit = memchr(text + at, mark[0], n - at);

        if (!hit || n - (size_t)(hit - text) < sizeof mark)
            return n;
        at = (size_t)(hit - text);
        if (memcmp(hit, mark, sizeof mark) == 0 && !bpe->keep[(uint8_t)hit[-1]] &&
            (at < from + sizeof mark ||
             memcmp(hit - sizeof mark, mark, sizeof mark) != 0))
            return at;
    }
    return n;
}
