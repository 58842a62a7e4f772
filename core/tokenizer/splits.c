/* SPDX-License-Identifier: Apache-2.0
 * Looking for every half of every token would be a look for each character; from the longest half
 * down until one is found is two looks for most, and shorter halves are halves of that one.
 */
#include "tokenizer/splits.h"

#include "base/big.h"
#include "tokenizer/tokenizer_private.h"

#define TWO_TOKENS 16384u /* fewer are not worth a thread */

/* A token whose link is looked for, and where the half begins or ends that comes next. */
typedef struct Seek {
    uint32_t id, cut;
} Seek;

/* What one thread does. */
typedef struct Work {
    const DavitVocab *vocab;
    DavitPartLink *links;
    size_t from, end; /* ids */
    bool tails;
} Work;

static bool is_inner(char byte)
{
    return ((uint8_t)byte & 0xc0) == 0x80;
}

/* The cut of the next shorter half; 0 or @len = there is none. */
static uint32_t next_cut(const char *text, uint32_t len, uint32_t cut, bool tails)
{
    if (tails) {
        do
            cut++;
        while (cut < len && is_inner(text[cut]));
        return MIN(cut, len);
    }
    do
        cut--;
    while (cut > 0 && is_inner(text[cut]));
    return cut;
}

/* Look for the halves of all of @seeks; those that are not found and have a shorter one stay. */
static size_t look(const Work *w, Seek *seeks, size_t n)
{
    const char *block;
    const DavitVocabEntry *entries = davit_vocab_entries(w->vocab, &block);
    DavitVocabText texts[DAVIT_VOCAB_MANY];
    int32_t ids[DAVIT_VOCAB_MANY];
    size_t n_left = 0;

    for (size_t i = 0; i < n; i++) {
        const DavitVocabEntry *entry = &entries[seeks[i].id];
        const char *text = block + entry->off;

        texts[i] = w->tails ? (DavitVocabText){text + seeks[i].cut, entry->len - seeks[i].cut}
                            : (DavitVocabText){text, seeks[i].cut};
    }
    davit_vocab_find_many(w->vocab, texts, n, ids);
    for (size_t i = 0; i < n; i++) {
        Seek seek = seeks[i];
        const DavitVocabEntry *entry = &entries[seek.id];

        if (ids[i] >= 0) {
            w->links[seek.id] = (DavitPartLink){(uint32_t)ids[i] + 1, (uint32_t)texts[i].len};
            continue;
        }
        seek.cut = next_cut(block + entry->off, entry->len, seek.cut, w->tails);
        if (seek.cut > 0 && seek.cut < entry->len)
            seeks[n_left++] = seek;
    }
    return n_left;
}

static void *find_links(void *data)
{
    const Work *w = data;
    const char *block;
    const DavitVocabEntry *entries = davit_vocab_entries(w->vocab, &block);
    Seek seeks[DAVIT_VOCAB_MANY];
    size_t n = 0;

    for (size_t id = w->from; id < w->end || n > 0;) {
        for (; id < w->end && n < DAVIT_VOCAB_MANY; id++) {
            const uint32_t len = entries[id].len;
            uint32_t cut;

            if (len == DAVIT_VOCAB_HOLE || len < 2)
                continue;
            cut = next_cut(block + entries[id].off, len, w->tails ? 0 : len, w->tails);
            if (cut > 0 && cut < len)
                seeks[n++] = (Seek){(uint32_t)id, cut};
        }
        n = look(w, seeks, n);
    }
    return NULL;
}

bool davit_splits_init(DavitSplits *splits, const DavitVocab *vocab)
{
    const size_t n_ids = davit_vocab_n_ids(vocab);
    GThread *thread = NULL;
    Work heads, tails;

    *splits = (DavitSplits){vocab, davit_big_zeroed(n_ids + 1, sizeof(DavitPartLink)),
                            davit_big_zeroed(n_ids + 1, sizeof(DavitPartLink))};
    if (!splits->heads || !splits->tails)
        return false;
    heads = (Work){vocab, splits->heads, 0, n_ids, false};
    tails = (Work){vocab, splits->tails, 0, n_ids, true};
    if (davit_vocab_n_tokens(vocab) >= TWO_TOKENS && g_get_num_processors() > 1)
        thread = g_thread_try_new("davit-splits", find_links, &tails, NULL);
    find_links(&heads);
    if (thread)
        g_thread_join(thread);
    else
        find_links(&tails);
    return true;
}

void davit_splits_clear(DavitSplits *splits)
{
    davit_big_free(splits->heads);
    davit_big_free(splits->tails);
    *splits = (DavitSplits){0};
}

size_t davit_splits_of(const DavitSplits *splits, uint32_t id, DavitSplit *out)
{
    DavitPartLink tails[2 * DAVIT_TOK_MAX_SPLIT];
    size_t len, n_tails = 0, n = 0;

    if (!davit_vocab_text(splits->vocab, id, &len) || len > 2 * DAVIT_TOK_MAX_SPLIT)
        return 0; /* readers refuse longer ones */
    for (DavitPartLink tail = splits->tails[id]; tail.next; tail = splits->tails[tail.next - 1])
        tails[n_tails++] = tail;
    /* heads become shorter, so the tails that fit become longer */
    for (DavitPartLink head = splits->heads[id]; head.next;
         head = splits->heads[head.next - 1]) {
        while (n_tails > 0 && tails[n_tails - 1].len < len - head.len)
            n_tails--;
        if (n_tails > 0 && tails[n_tails - 1].len == len - head.len)
            out[n++] = (DavitSplit){head.next - 1, tails[n_tails - 1].next - 1, head.len,
                                    tails[n_tails - 1].len};
    }
    return n;
}
