/* SPDX-License-Identifier: Apache-2.0
 * Texts that scanners stumble over: units of every class that pre-tokenizers tell apart, and
 * a walk over all code points where a class begins or ends. */
#include "test.h"

#include <string.h>

#include <davit/help/ucd.h>

/* ---- UTF-8 ---- */

static uint64_t put(char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 63));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 63));
        out[2] = (char)(0x80 | (cp & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 63));
    out[2] = (char)(0x80 | (cp >> 6 & 63));
    out[3] = (char)(0x80 | (cp & 63));
    return 4;
}

/* ---- borders ---- */

#define MAX_BORDERS 16384u

/* Code points whose classes differ from those of the one before. One test at a time, on one
 * thread: test.h. */
static uint32_t borders[MAX_BORDERS];
static uint64_t n_borders;

static void find_borders(void)
{
    uint32_t before = davit_ucd_bits(0);

    for (uint32_t cp = 1; cp <= 0x10ffff && n_borders < MAX_BORDERS; cp++) {
        const uint32_t bits = davit_ucd_bits(cp);

        if (bits != before && (cp < 0xd800 || cp > 0xe000)) /* no surrogates in UTF-8 */
            borders[n_borders++] = cp;
        before = bits;
    }
}

uint64_t test_text_border(uint64_t i, char *out, uint64_t cap)
{
    /* 'c' the border's code point, 'p' the one before it; the rest as it stands */
    static const char pattern[] = "Acbpc c1cp\ncpp'sc. cc\r\npBc";
    uint64_t n = 0;

    if (n_borders == 0)
        find_borders();
    if (i >= n_borders)
        return 0;
    for (const char *at = pattern; *at && n + 4 <= cap; at++) {
        if (*at == 'c' || *at == 'p')
            n += put(out + n, borders[i] - (*at == 'p'));
        else
            out[n++] = *at;
    }
    return n;
}

/* ---- units ---- */

static const char *const units[] = {
    /* letters of every case and kind, words of one and more */
    "a", "B", "z", "Qu", "aBc", "XYZ", "word", "\xc7\x85", "\xca\xb0", "\xc3\x9f", "\xc3\xa9",
    "e\xcc\x81", "\xd0\x96", "\xce\xa9\xcf\x89", "\xef\xac\x81", "\xc4\xb0", "\xe1\xba\x9e",
    /* contractions in each case, straight and curly, and what only looks like one */
    "'s", "'S", "'t", "'T", "'re", "'RE", "'Re", "'ve", "'VE", "'vE", "'m", "'M", "'ll", "'LL",
    "'lL", "'d", "'D", "\xe2\x80\x99s", "'\xc5\xbf", "'x", "'", "''", "I'm", "DON'T",
    /* numbers: decimal of several scripts, letter and other numbers */
    "0", "7", "42", "123", "1000", "3.14", "\xd9\xa3", "\xef\xbc\x95", "\xe0\xa5\xa7",
    "\xe2\x85\xa7", "\xc2\xb2", "\xc2\xbd", "\xe3\x8a\xb7",
    /* blanks and ends of lines, alone and in runs */
    " ", "  ", "   ", "\t", " \t", "\n", "\n\n", "\n\n\n", "\r", "\r\n", "\r\n\r\n", "\n\r",
    " \n", "\n ", "\x0b", "\x0c", "\xc2\x85", "\xc2\xa0", "\xe2\x80\x83", "\xe2\x80\xa8",
    "\xe3\x80\x80", "\xe1\xa0\x8e", "\xe2\x80\x8b", "\xef\xbb\xbf",
    /* punctuation and symbols */
    ".", ",", "!?", "...", "--", "_", "$", "/", "//", "\\", "(", "\"", "#", "+=", "\xe2\x82\xac",
    "\xc2\xab", "\xe3\x80\x82", "\xef\xbc\x81", "\xe2\x80\xa6", "\xe2\x96\x81", "|", "<|",
    /* marks: nonspacing, spacing, enclosing */
    "\xcc\x81", "\xe0\xa4\xbf", "\xe2\x83\x9d", "\xef\xb8\x8f",
    /* other scripts */
    "\xe4\xb8\xad\xe6\x96\x87", "\xe6\x97\xa5", "\xe3\x81\x82", "\xe3\x82\xab\xe3\x83\xbc",
    "\xed\x95\x9c", "\xe0\xa4\xb9\xe0\xa4\xbf", "\xe0\xb8\x81\xe0\xb8\xb3", "\xd8\xb9\xd8\xb1",
    "\xd7\xa9", "\xf0\xa0\x80\x80", "\xf0\x9d\x94\x98",
    /* emoji: plain, with a skin tone, joined, a flag, a keycap */
    "\xf0\x9f\x98\x80", "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd",
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
    "1\xef\xb8\x8f\xe2\x83\xa3"};

uint64_t test_text_unit(davit_test *t, char *out)
{
    const uint64_t n_units = sizeof units / sizeof *units;
    const uint64_t pick = davit_test_between(t, 0, n_units + 3);
    uint64_t n;

    if (n_borders == 0)
        find_borders();
    if (pick == n_units) /* any byte: broken UTF-8, NUL */
        return *out = (char)davit_test_random(t), 1;
    if (pick > n_units) { /* a class's first character or its last */
        const uint64_t i = davit_test_between(t, 0, n_borders - 1);

        return put(out, borders[i] - (uint32_t)(davit_test_random(t) & 1));
    }
    n = strlen(units[pick]);
    memcpy(out, units[pick], n);
    return n;
}
