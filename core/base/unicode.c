/* SPDX-License-Identifier: Apache-2.0
 * Normal forms (Unicode Standard Annex 15) and lower case over the generated tables.
 */
#include "base/unicode.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "base/unicode_tables.h"

/* Hangul syllables are composed by arithmetic: Unicode Standard 3.12. */
#define S_BASE  0xac00u
#define L_BASE  0x1100u
#define V_BASE  0x1161u
#define T_BASE  0x11a7u
#define L_COUNT 19u
#define V_COUNT 21u
#define T_COUNT 28u
#define S_COUNT (L_COUNT * V_COUNT * T_COUNT)

/* A decomposed character. */
typedef struct Mark {
    uint32_t cp;
    uint32_t ccc;
    int32_t change; /* 1: beside what the source had; -n: stands for n more of it */
} Mark;

static const DavitNfcRecord *find_record(uint32_t cp)
{
    return &davit_nfc_records[davit_nfc_blocks[davit_nfc_index[cp >> 7] * 128u +
                                               (cp & 127)]];
}

static bool is_hangul(uint32_t cp)
{
    return cp >= S_BASE && cp < S_BASE + S_COUNT;
}

/* May @form change it, move it, or join it to what stands before? */
static bool is_busy(DavitForm form, uint32_t cp)
{
    const DavitNfcRecord *record;

    if (cp < 0xa0) /* the first one that any form changes */
        return false;
    record = find_record(cp);
    switch (form) {
    case DAVIT_FORM_NFC:
        return record->busy & 1;
    case DAVIT_FORM_NFKC:
        return record->busy & 2;
    case DAVIT_FORM_NFD:
        return record->n > 0 || record->ccc > 0 || is_hangul(cp);
    case DAVIT_FORM_NFKD:
        return record->compat_n > 0 || record->ccc > 0 || is_hangul(cp);
    }
    g_assert_not_reached();
}

/* Past ASCII in eights. */
static size_t skip_ascii(const char *text, size_t len, size_t off)
{
    uint64_t eight;

    for (; len - off >= sizeof eight; off += sizeof eight) {
        memcpy(&eight, text + off, sizeof eight);
        if (eight & 0x8080808080808080ull)
            break;
    }
    return off;
}

/* Offset of the first busy character, or @len. */
static size_t find_busy(DavitForm form, const char *text, size_t len, size_t off)
{
    /* First byte of the first busy one: U+0300 for NFC, U+00A0 or U+00C0 for others. */
    const unsigned char low = form == DAVIT_FORM_NFC ? 0xcc : 0xc2;

    while (off < len) {
        uint32_t n = 1;

        if ((unsigned char)text[off] < 0x80) {
            off = skip_ascii(text, len, off + 1);
            continue;
        }
        if ((unsigned char)text[off] >= low && is_busy(form, davit_ucd_next(text, len, off, &n)))
            return off;
        off += n;
    }
    return len;
}

bool davit_form_is_plain(DavitForm form, const char *text, size_t len)
{
    return find_busy(form, text, len, 0) == len;
}

bool davit_nfc_is_plain(const char *text, size_t len)
{
    return davit_form_is_plain(DAVIT_FORM_NFC, text, len);
}

static void append_mark(GArray *marks, uint32_t cp, bool first)
{
    const Mark mark = {cp, find_record(cp)->ccc, !first};

    g_array_append_val(marks, mark);
}

static void decompose(DavitForm form, GArray *marks, uint32_t cp)
{
    const DavitNfcRecord *record = find_record(cp);
    const bool compat = form == DAVIT_FORM_NFKC || form == DAVIT_FORM_NFKD;
    const uint32_t off = compat ? record->compat_off : record->off;
    const uint32_t n = compat ? record->compat_n : record->n;

    if (is_hangul(cp)) {
        const uint32_t s = cp - S_BASE;

        append_mark(marks, L_BASE + s / (V_COUNT * T_COUNT), true);
        append_mark(marks, V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT, false);
        if (s % T_COUNT)
            append_mark(marks, T_BASE + s % T_COUNT, false);
        return;
    }
    if (n == 0)
        append_mark(marks, cp, true);
    for (uint32_t i = 0; i < n; i++)
        append_mark(marks, davit_nfc_pool[off + i], i == 0);
}

/* Sort each run of marks by class, keeping the order within a class. Counting sort, so
 * that a hostile run of a million marks stays linear. */
static void order_marks(GArray *marks, GArray *scratch)
{
    Mark *m = (Mark *)(void *)marks->data;

    for (guint i = 0; i < marks->len;) {
        guint end = i + 1, count[257] = {0};

        if (m[i].ccc == 0) {
            i++;
            continue;
        }
        while (end < marks->len && m[end].ccc != 0)
            end++;
        for (guint k = i; k < end; k++)
            count[m[k].ccc + 1]++;
        for (guint c = 1; c < 257; c++)
            count[c] += count[c - 1];
        g_array_set_size(scratch, end - i);
        for (guint k = i; k < end; k++)
            g_array_index(scratch, Mark, count[m[k].ccc]++) = m[k];
        memcpy(m + i, scratch->data, (end - i) * sizeof *m);
        i = end;
    }
}

/* The character that @a and @b join to, or 0. */
static uint32_t join_pair(uint32_t a, uint32_t b)
{
    uint32_t low = 0, high = davit_nfc_n_pairs;

    if (a >= L_BASE && a < L_BASE + L_COUNT && b >= V_BASE && b < V_BASE + V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a >= S_BASE && a < S_BASE + S_COUNT && (a - S_BASE) % T_COUNT == 0 &&
        b > T_BASE && b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const DavitNfcPair *p = &davit_nfc_pairs[mid];

        if (p->first < a || (p->first == a && p->second < b))
            low = mid + 1;
        else
            high = mid;
    }
    if (low < davit_nfc_n_pairs && davit_nfc_pairs[low].first == a &&
        davit_nfc_pairs[low].second == b)
        return davit_nfc_pairs[low].joined;
    return 0;
}

/* Join in place; returns the new length. A character is blocked from the starter by one
 * of its own class or a starter in between. */
static guint compose(Mark *m, guint n)
{
    guint out = 0, starter = 0;
    bool have_starter = false;
    uint32_t last = 0;

    for (guint i = 0; i < n; i++) {
        if (have_starter && (out == starter + 1 || last < m[i].ccc)) {
            const uint32_t joined = join_pair(m[starter].cp, m[i].cp);

            if (joined) {
                m[starter].cp = joined;
                m[starter].change += m[i].change - 1;
                continue;
            }
        }
        if (m[i].ccc == 0) {
            have_starter = true;
            starter = out;
        }
        last = m[i].ccc;
        m[out++] = m[i];
    }
    return out;
}

static void note_change(GArray *changes, int32_t change)
{
    if (changes)
        g_array_append_val(changes, change);
}

/* Nothing changed in these bytes. */
static void note_plain(GArray *changes, const char *text, size_t len)
{
    for (size_t i = 0; changes && i < len; i++)
        if ((text[i] & 0xc0) != 0x80)
            note_change(changes, 0);
}

void davit_form_append(DavitForm form, GString *out, const char *text, size_t len)
{
    davit_form_append_changes(form, out, text, len, NULL);
}

void davit_form_append_changes(DavitForm form, GString *out, const char *text, size_t len,
                               GArray *changes)
{
    const bool joins = form == DAVIT_FORM_NFC || form == DAVIT_FORM_NFKC;
    g_autoptr(GArray) marks = NULL;
    g_autoptr(GArray) scratch = NULL;
    size_t done = 0, busy = find_busy(form, text, len, 0);

    while (busy < len) {
        /* The plain character before is the starter that the busy ones may join. */
        size_t start = busy > done ? (size_t)davit_ucd_back(text, busy) : busy;
        size_t at = start;
        uint32_t n;

        if (!marks) {
            marks = g_array_new(FALSE, FALSE, sizeof(Mark));
            scratch = g_array_new(FALSE, FALSE, sizeof(Mark));
        }
        g_array_set_size(marks, 0);
        g_string_append_len(out, text + done, (gssize)(start - done));
        note_plain(changes, text + done, start - done);
        do {
            decompose(form, marks, davit_ucd_decode(text, len, at, &n));
            at += n;
        } while (at < len &&
                 (at <= busy || is_busy(form, davit_ucd_decode(text, len, at, &n))));
        order_marks(marks, scratch);
        n = marks->len;
        if (joins)
            n = compose((Mark *)(void *)marks->data, n);
        for (guint i = 0; i < n; i++) {
            g_string_append_unichar(out, g_array_index(marks, Mark, i).cp);
            note_change(changes, g_array_index(marks, Mark, i).change);
        }
        done = at;
        busy = find_busy(form, text, len, at);
    }
    g_string_append_len(out, text + done, (gssize)(len - done));
    note_plain(changes, text + done, len - done);
}

void davit_nfc_append(GString *out, const char *text, size_t len)
{
    davit_form_append(DAVIT_FORM_NFC, out, text, len);
}

void davit_lower_append(GString *out, const char *text, size_t len)
{
    for (size_t off = 0; off < len;) {
        uint32_t n, low = 0, high = davit_lower_n;
        const uint32_t cp = davit_ucd_decode(text, len, off, &n);

        while (low < high) {
            const uint32_t mid = low + (high - low) / 2;

            if (davit_lower[mid].cp < cp)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < davit_lower_n && davit_lower[low].cp == cp) {
            g_string_append_unichar(out, davit_lower[low].lower[0]);
            if (davit_lower[low].lower[1])
                g_string_append_unichar(out, davit_lower[low].lower[1]);
        } else {
            g_string_append_len(out, text + off, n);
        }
        off += n;
    }
}
