/* SPDX-License-Identifier: Apache-2.0
 * The words inside manifest strings: purposes, refusal codes and capabilities. They are
 * the text of C expressions, as the preprocessor saw them. */
#include "plugin/manifest.h"

#include <string.h>

#include "plugin/registry.h"

/* One operand of a purposes text: a name, or a number with C suffixes. */
static bool purpose_value(const char *word, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t bit;
    } names[] = {
        {"DAVIT_INSPECT", DAVIT_INSPECT},
        {"DAVIT_MAP", DAVIT_MAP},
        {"DAVIT_CONVERT", DAVIT_CONVERT},
        {"DAVIT_RUN", DAVIT_RUN},
    };
    char *end = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(names[i].name, word) == 0) {
            *out = names[i].bit;
            return true;
        }
    }
    if (g_str_has_prefix(word, "DAVIT_")) {
        *out = 0;
        return true;
    }
    if (!g_ascii_isdigit(word[0]))
        return false;
    *out = g_ascii_strtoull(word, &end, 0);
    return strspn(end, "uUlL") == strlen(end);
}

bool davit_purposes_parse(const char *text, uint64_t *out_purposes)
{
    g_auto(GStrv) words = g_strsplit(text, "|", 33);
    uint64_t all = 0;

    if (g_strv_length(words) > 32) /* no expression of this kind has more operands */
        return false;
    for (size_t i = 0; words[i]; i++) {
        uint64_t bits = 0;

        g_strdelimit(words[i], "()", ' ');
        if (!purpose_value(g_strstrip(words[i]), &bits))
            return false;
        all |= bits;
    }
    *out_purposes = all;
    return words[0] != NULL;
}

uint32_t davit_code_parse(const char *text)
{
    static const struct {
        const char *name;
        uint32_t code;
    } table[] = {
#define CODE_ROW(num, name_, form, when) {"DAVIT_R_" #name_, num},
        DAVIT_CODES(CODE_ROW)
#undef CODE_ROW
    };
    char *end = NULL;
    guint64 number;

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        if (strcmp(table[i].name, text) == 0)
            return table[i].code;
    }
    number = g_ascii_strtoull(text, &end, 10);
    return end != text && strspn(end, "uU") == strlen(end) && number < 100000
               ? (uint32_t)number
               : 0;
}

/* Is @word one of the '|'-separated words of [list, end)? */
static bool list_has(const char *list, const char *end, const char *word)
{
    const size_t n = strlen(word);

    while (list < end) {
        const char *bar = memchr(list, '|', (size_t)(end - list));
        const char *stop = bar ? bar : end;

        if ((size_t)(stop - list) == n && memcmp(list, word, n) == 0)
            return true;
        if (!bar)
            return false;
        list = bar + 1;
    }
    return false;
}

bool davit_capability_has(const char *capability, const char *key, const char *value)
{
    const size_t n_key = strlen(key);

    for (const char *pair = capability; pair && *pair;) {
        const char *end = strchrnul(pair, ';');

        if ((size_t)(end - pair) > n_key && memcmp(pair, key, n_key) == 0 &&
            pair[n_key] == '=' && list_has(pair + n_key + 1, end, value))
            return true;
        pair = *end ? end + 1 : end;
    }
    return false;
}
