/* SPDX-License-Identifier: Apache-2.0
 * A window of the last bytes is enough: a stop string can only begin inside it. */
#include "engine/stop.h"

#include <string.h>

struct DavitStop {
    char **strings; /* NULL-terminated */
    size_t longest;
    GString *held;  /* shown nothing of it yet */
};

DavitStop *davit_stop_new(const char *const *strings)
{
    DavitStop *stop = g_new0(DavitStop, 1);
    GPtrArray *list = g_ptr_array_new();
    for (size_t i = 0; strings && strings[i]; i++) {
        if (strings[i][0] == '\0')
            continue;
        g_ptr_array_add(list, g_strdup(strings[i]));
        stop->longest = MAX(stop->longest, strlen(strings[i]));
    }
    g_ptr_array_add(list, NULL);
    stop->strings = (char **)g_ptr_array_free(list, FALSE);
    stop->held = g_string_new(NULL);
    return stop;
}

void davit_stop_free(DavitStop *stop)
{
    if (!stop)
        return;
    g_strfreev(stop->strings);
    g_string_free(stop->held, TRUE);
    g_free(stop);
}

/* Offset of the earliest complete stop string in held, or -1. */
static gssize find_stop(const DavitStop *stop)
{
    gssize best = -1;
    for (char **s = stop->strings; *s; s++) {
        const char *at = memmem(stop->held->str, stop->held->len, *s, strlen(*s));
        if (at && (best < 0 || at - stop->held->str < best))
            best = at - stop->held->str;
    }
    return best;
}

/* Longest suffix of held that begins a stop string. */
static size_t pending(const DavitStop *stop)
{
    const size_t most = MIN(stop->held->len, stop->longest ? stop->longest - 1 : 0);
    for (size_t n = most; n > 0; n--)
        for (char **s = stop->strings; *s; s++)
            if (strlen(*s) > n &&
                memcmp(stop->held->str + stop->held->len - n, *s, n) == 0)
                return n;
    return 0;
}

bool davit_stop_push(DavitStop *stop, const char *text, size_t n, GString *out)
{
    g_string_append_len(stop->held, text, (gssize)n);
    const gssize at = find_stop(stop);
    if (at >= 0) {
        g_string_append_len(out, stop->held->str, at);
        g_string_truncate(stop->held, 0);
        return true;
    }
    const size_t shown = stop->held->len - pending(stop);
    g_string_append_len(out, stop->held->str, (gssize)shown);
    g_string_erase(stop->held, 0, (gssize)shown);
    return false;
}

void davit_stop_flush(DavitStop *stop, GString *out)
{
    g_string_append_len(out, stop->held->str, (gssize)stop->held->len);
    g_string_truncate(stop->held, 0);
}
