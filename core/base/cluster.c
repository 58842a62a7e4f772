/* SPDX-License-Identifier: Apache-2.0
 * Clusters with the tables of the crate that Hugging Face's tokenizers use. Rules GB9c and
 * GB11 look back; what they look back at is inside the same cluster, so a few bits carried
 * along are enough.
 */
#include "base/cluster.h"

#include <stdbool.h>
#include <stdint.h>

#include <davit/help/ucd.h>

#include "base/text_flags.h"

#define IS_LV  (1u << 16)
#define IS_LVT (1u << 17)
#define IS_CR  (1u << 18)
#define IS_LF  (1u << 19)

#define LV  (IS_LV)
#define LVT (IS_LVT)
#define L   DAVIT_TEXT_L
#define V   DAVIT_TEXT_V
#define T   DAVIT_TEXT_T

/* What went before in the cluster. */
typedef struct Past {
    uint32_t flags; /* of the character before */
    bool pict;      /* a pictograph and only Extend behind it */
    bool pict_zwj;  /* that, and then one ZWJ */
    bool consonant; /* a consonant and only conjunct extends and linkers behind it */
    bool linked;    /* with a linker among them */
} Past;

static uint32_t flags_of(uint32_t cp)
{
    if (cp >= 0xac00 && cp <= 0xd7a3)
        return (cp - 0xac00) % 28 == 0 ? LV : LVT;
    return davit_text_flags(cp) | (cp == '\r' ? IS_CR : cp == '\n' ? IS_LF : 0);
}

static void note(Past *past, uint32_t flags)
{
    past->pict_zwj = past->pict && (flags & DAVIT_TEXT_ZWJ);
    past->pict = (flags & DAVIT_TEXT_PICT) || (past->pict && (flags & DAVIT_TEXT_EXTEND));
    if (flags & DAVIT_TEXT_CONSONANT) {
        past->consonant = true;
        past->linked = false;
    } else if (flags & DAVIT_TEXT_LINKER) {
        past->linked = past->consonant;
    } else if (!(flags & DAVIT_TEXT_INCB_EXTEND)) {
        past->consonant = false;
        past->linked = false;
    }
    past->flags = flags;
}

/* Do the two stay together? Rules in the order of the annex. */
static bool joins(const Past *past, uint32_t after)
{
    const uint32_t before = past->flags;

    if ((before | after) & DAVIT_TEXT_CONTROL)
        return (before & IS_CR) && (after & IS_LF); /* GB3 to GB5 */
    if (((before & L) && (after & (L | V | LV | LVT))) ||
        ((before & (LV | V)) && (after & (V | T))) ||
        ((before & (LVT | T)) && (after & T)))
        return true; /* GB6 to GB8 */
    if ((after & (DAVIT_TEXT_EXTEND | DAVIT_TEXT_ZWJ | DAVIT_TEXT_SPACING)) ||
        (before & DAVIT_TEXT_PREPEND))
        return true; /* GB9, GB9a, GB9b */
    if (after & DAVIT_TEXT_CONSONANT)
        return past->consonant && past->linked; /* GB9c */
    return (after & DAVIT_TEXT_PICT) && past->pict_zwj; /* GB11 */
}

size_t davit_cluster_end(const char *text, size_t len, size_t from)
{
    Past past = {0};
    uint32_t n;
    size_t at = from;

    note(&past, flags_of(davit_ucd_decode(text, len, at, &n)));
    at += n;
    while (at < len) {
        const uint32_t flags = flags_of(davit_ucd_decode(text, len, at, &n));

        if (!joins(&past, flags))
            break;
        note(&past, flags);
        at += n;
    }
    return at;
}
