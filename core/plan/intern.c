/* SPDX-License-Identifier: Apache-2.0
 * Interned names of ops, layouts and dtypes, compared by pointer. */
#include <string.h>

#include "plan/draft.h"

const char *davit_intern(const char *text)
{
    return text ? g_intern_string(text) : NULL;
}

bool davit_words_have(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *p = list; p && *p;) {
        const size_t len = strcspn(p, "|");

        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == '|');
    }
    return false;
}
