/* SPDX-License-Identifier: Apache-2.0
 * Code point sets as bitmaps: 136 KiB each, a handful per pattern, gone after compiling.
 */
#include "base/regex_set.h"

#include <string.h>

#include <davit/help/ucd.h>

#define N_WORDS G_N_ELEMENTS(((DavitCharSet *)0)->words)
#define LAST    0x10ffffu

DavitCharSet *davit_char_set_new(void)
{
    return g_new0(DavitCharSet, 1);
}

static void add(DavitCharSet *set, uint32_t cp)
{
    set->words[cp / 64] |= 1ull << (cp % 64);
}

static bool has(const DavitCharSet *set, uint32_t cp)
{
    return (set->words[cp / 64] >> (cp % 64)) & 1;
}

void davit_char_set_add_range(DavitCharSet *set, uint32_t first, uint32_t last)
{
    for (uint32_t cp = first; cp <= last && cp <= LAST; cp++)
        add(set, cp);
}

void davit_char_set_unite(DavitCharSet *set, const DavitCharSet *other)
{
    for (size_t i = 0; i < N_WORDS; i++)
        set->words[i] |= other->words[i];
}

void davit_char_set_intersect(DavitCharSet *set, const DavitCharSet *other)
{
    for (size_t i = 0; i < N_WORDS; i++)
        set->words[i] &= other->words[i];
}

void davit_char_set_complement(DavitCharSet *set)
{
    for (size_t i = 0; i < N_WORDS; i++)
        set->words[i] = ~set->words[i];
}

bool davit_char_set_is_empty(const DavitCharSet *set)
{
    for (size_t i = 0; i < N_WORDS; i++)
        if (set->words[i])
            return false;
    return true;
}

/* ---- classes ---- */

static void add_bits(DavitCharSet *set, uint32_t bits)
{
    for (uint32_t cp = 0; cp <= LAST; cp++)
        if (davit_ucd_bits(cp) & bits)
            add(set, cp);
}

/* onig's \w is Alphabetic, marks, decimal digits and connectors, as Rust's is, but
 * without the joiners; outside brackets it has the superscripts and fractions of Latin-1
 * too (asked of tokenizers 0.23.3 for every code point). */
static void add_word(DavitCharSet *set, bool in_class)
{
    static const uint32_t extra[] = {0xb2, 0xb3, 0xb9, 0xbc, 0xbd, 0xbe};

    for (uint32_t cp = 0; cp <= LAST; cp++)
        if ((davit_ucd_bits(cp) & DAVIT_UCD_WORD) && cp != 0x200c && cp != 0x200d)
            add(set, cp);
    for (size_t i = 0; i < G_N_ELEMENTS(extra) && !in_class; i++)
        add(set, extra[i]);
}

void davit_char_set_add_escape(DavitCharSet *set, char letter, bool in_class)
{
    switch (letter) {
    case 'w':
        add_word(set, in_class);
        break;
    case 'd':
        add_bits(set, DAVIT_UCD_ND);
        break;
    case 's':
        add_bits(set, DAVIT_UCD_SPACE);
        break;
    default: /* h: a hexadecimal digit */
        davit_char_set_add_range(set, '0', '9');
        davit_char_set_add_range(set, 'A', 'F');
        davit_char_set_add_range(set, 'a', 'f');
        break;
    }
}

bool davit_char_set_add_property(DavitCharSet *set, const char *name, size_t len,
                                 bool *out_cased)
{
    static const struct {
        const char *name;
        uint32_t bits;
        bool cased;
    } properties[] = {
        {"L", DAVIT_UCD_L, false},     {"Lu", DAVIT_UCD_LU, true},
        {"Ll", DAVIT_UCD_LL, true},    {"Lt", DAVIT_UCD_LT, true},
        {"Lm", DAVIT_UCD_LM, false},   {"Lo", DAVIT_UCD_LO, false},
        {"M", DAVIT_UCD_M, false},     {"Mn", DAVIT_UCD_MN, false},
        {"N", DAVIT_UCD_N, false},     {"Nd", DAVIT_UCD_ND, false},
        {"P", DAVIT_UCD_P, false},     {"S", DAVIT_UCD_S, false},
        {"Z", DAVIT_UCD_Z, false},     {"C", DAVIT_UCD_C, false},
        {"Han", DAVIT_UCD_HAN, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(properties); i++) {
        if (strlen(properties[i].name) != len ||
            memcmp(properties[i].name, name, len) != 0)
            continue;
        add_bits(set, properties[i].bits);
        *out_cased = properties[i].cased;
        return true;
    }
    return false;
}

/* ---- as text ---- */

void davit_char_set_append(const DavitCharSet *set, GString *to)
{
    uint32_t cp = 0;

    while (cp <= LAST) {
        uint32_t first;

        if (set->words[cp / 64] == 0 && cp % 64 == 0) {
            cp += 64;
            continue;
        }
        if (!has(set, cp) || (cp >= 0xd800 && cp <= 0xdfff)) {
            cp++;
            continue;
        }
        first = cp;
        while (cp <= LAST && has(set, cp) && cp != 0xd800)
            cp++;
        g_string_append_printf(to, "\\x{%x}", first);
        if (cp - 1 > first)
            g_string_append_printf(to, "-\\x{%x}", cp - 1);
    }
}
