/* SPDX-License-Identifier: Apache-2.0
 * Trie and splitter of added tokens. The rules are those of AddedVocabulary::find_matches
 * in Hugging Face's tokenizers, oddities included: a match that single_word rejects is
 * passed over whole, and two tokens may claim the same blank.
 */
#include "tokenizer/added.h"

#include <string.h>

#include <davit/help/ucd.h>

typedef struct Node {
    uint32_t child;   /* first child, 0 = none */
    uint32_t sibling; /* next child of the same parent, 0 = none */
    const DavitAdded *added;
    uint8_t byte;
} Node;

struct DavitTrie {
    GArray *nodes;       /* Node; 0 is unused */
    uint32_t roots[256]; /* node of each first byte, 0 = none */
    int n_roots;
    uint8_t only; /* the first byte, if there is one only */
};

DavitTrie *davit_trie_new(void)
{
    DavitTrie *trie = g_new0(DavitTrie, 1);

    trie->nodes = g_array_new(FALSE, TRUE, sizeof(Node));
    g_array_set_size(trie->nodes, 1);
    return trie;
}

void davit_trie_free(DavitTrie *trie)
{
    if (!trie)
        return;
    g_array_free(trie->nodes, TRUE);
    g_free(trie);
}

bool davit_trie_is_empty(const DavitTrie *trie)
{
    return trie->n_roots == 0;
}

static uint32_t new_node(DavitTrie *trie, char byte)
{
    const Node node = {.byte = (uint8_t)byte};

    g_array_append_val(trie->nodes, node);
    return trie->nodes->len - 1;
}

static uint32_t find_child(const DavitTrie *trie, uint32_t parent, char byte)
{
    const Node *nodes = (const Node *)(const void *)trie->nodes->data;
    uint32_t at = nodes[parent].child;

    while (at && nodes[at].byte != (uint8_t)byte)
        at = nodes[at].sibling;
    return at;
}

bool davit_trie_add(DavitTrie *trie, const char *text, size_t len,
                    const DavitAdded *added)
{
    uint32_t at = trie->roots[(uint8_t)text[0]];

    if (trie->nodes->len > UINT32_MAX / sizeof(Node) / 2 - len)
        return false;
    if (!at) {
        at = trie->roots[(uint8_t)text[0]] = new_node(trie, text[0]);
        trie->only = (uint8_t)text[0];
        trie->n_roots++;
    }
    for (size_t i = 1; i < len; i++) {
        uint32_t child = find_child(trie, at, text[i]);

        if (!child) {
            child = new_node(trie, text[i]);
            g_array_index(trie->nodes, Node, child).sibling =
                g_array_index(trie->nodes, Node, at).child;
            g_array_index(trie->nodes, Node, at).child = child;
        }
        at = child;
    }
    if (!g_array_index(trie->nodes, Node, at).added)
        g_array_index(trie->nodes, Node, at).added = added;
    return true;
}

const DavitAdded *davit_trie_find(const DavitTrie *trie, const char *text, size_t len)
{
    uint32_t at = trie->roots[(uint8_t)text[0]];

    for (size_t i = 1; at && i < len; i++)
        at = find_child(trie, at, text[i]);
    return at ? g_array_index(trie->nodes, Node, at).added : NULL;
}

/* The longest token at @off, or NULL. */
static const DavitAdded *match_at(const DavitTrie *trie, const char *text, size_t n,
                                  size_t off, size_t *out_end)
{
    const Node *nodes = (const Node *)(const void *)trie->nodes->data;
    uint32_t at = trie->roots[(uint8_t)text[off]];
    const DavitAdded *best = NULL;

    while (at) {
        off++;
        if (nodes[at].added) {
            best = nodes[at].added;
            *out_end = off;
        }
        if (off >= n)
            break;
        at = find_child(trie, at, text[off]);
    }
    return best;
}

/* A special token that touches locked bytes is none. Where it began before them, a shorter
 * one may stand there; where it only reached into them, the next may begin inside it. */
static const DavitAdded *unlocked(DavitSplitter *s, const DavitAdded *added, size_t *end)
{
    const size_t start = s->scan;
    const uint8_t *hit =
        s->locked && (added->flags & DAVIT_ADDED_SPECIAL)
            ? memchr(s->locked + start, 1, *end - start)
            : NULL;
    const size_t limit = hit ? (size_t)(hit - s->locked) : *end;

    if (!hit)
        return added;
    if (limit > start) {
        const size_t reached = *end;

        added = match_at(s->trie, s->text, limit, start, end);
        s->scan = added ? start : start + 1;
        *end = added ? *end : reached;
        return added;
    }
    s->scan = memchr(hit, 0, *end - limit) ? start + 1 : *end;
    return NULL;
}

/* The next match from splitter->scan on. */
static const DavitAdded *find_match(DavitSplitter *s, size_t *out_start, size_t *out_end)
{
    const DavitTrie *trie = s->trie;

    while (s->scan < s->n) {
        const DavitAdded *added;

        if (trie->n_roots == 1) {
            const char *hit = memchr(s->text + s->scan, trie->only, s->n - s->scan);

            if (!hit)
                break;
            s->scan = (size_t)(hit - s->text);
        }
        added = match_at(trie, s->text, s->n, s->scan, out_end);
        if (added && s->locked) {
            added = unlocked(s, added, out_end);
            if (!added)
                continue;
        }
        if (added) {
            *out_start = s->scan;
            s->scan = *out_end;
            return added;
        }
        s->scan++;
    }
    s->scan = s->n;
    return NULL;
}

static bool is_word_at(const char *text, size_t n, size_t off)
{
    uint32_t len;

    return davit_ucd_at(text, n, off, &len) & DAVIT_UCD_WORD;
}

/* Neighbours of [start, end) that single_word forbids. */
static bool touches_word(const DavitSplitter *s, size_t start, size_t end)
{
    if (start > 0 && is_word_at(s->text, s->n, (size_t)davit_ucd_back(s->text, start)))
        return true;
    return end < s->n && is_word_at(s->text, s->n, end);
}

static size_t strip_left(const DavitSplitter *s, size_t start)
{
    while (start > s->done) {
        const size_t before = (size_t)davit_ucd_back(s->text, start);
        uint32_t len;

        if (!(davit_ucd_at(s->text, s->n, before, &len) & DAVIT_UCD_SPACE))
            break;
        start = before;
    }
    return MAX(start, s->done);
}

static size_t strip_right(const DavitSplitter *s, size_t end)
{
    uint32_t len;

    while (davit_ucd_at(s->text, s->n, end, &len) & DAVIT_UCD_SPACE)
        end += len;
    return end;
}

void davit_splitter_init(DavitSplitter *splitter, const DavitTrie *trie, const char *text,
                         size_t n, bool safe)
{
    *splitter = (DavitSplitter){.trie = trie, .text = text, .n = n, .safe = safe};
    if (davit_trie_is_empty(trie))
        splitter->scan = n;
}

static bool give_held(DavitSplitter *s, DavitPart *out)
{
    *out = (DavitPart){s->held_start, s->held_end, s->held};
    s->done = s->held_end;
    s->held = NULL;
    return true;
}

bool davit_splitter_next(DavitSplitter *s, DavitPart *out)
{
    const DavitAdded *added;
    size_t start, end;

    if (s->held)
        return give_held(s, out);
    while ((added = find_match(s, &start, &end))) {
        const size_t done = s->done;

        if (s->safe && (added->flags & DAVIT_ADDED_SPECIAL))
            continue;
        if ((added->flags & DAVIT_ADDED_SINGLE_WORD) && touches_word(s, start, end))
            continue;
        if (added->flags & DAVIT_ADDED_LSTRIP)
            start = strip_left(s, start);
        if (added->flags & DAVIT_ADDED_RSTRIP)
            end = strip_right(s, end);
        if (end <= start) { /* the token before claimed its blanks: it gives no id */
            s->done = end;
            continue;
        }
        s->held = added;
        s->held_start = start;
        s->held_end = end;
        if (done >= start)
            return give_held(s, out);
        *out = (DavitPart){done, start, NULL};
        return true;
    }
    if (s->done >= s->n)
        return false;
    *out = (DavitPart){s->done, s->n, NULL};
    s->done = s->n;
    return true;
}
