/* SPDX-License-Identifier: Apache-2.0
 * Names of tensors as patterns: layers, tails. */
#include "doctor/doctor_private.h"

#include <string.h>

char *davit_name_pattern(const char *name)
{
    GString *out = g_string_new(NULL);

    for (const char *p = name; *p;) {
        const bool starts = p == name || p[-1] == '.';
        size_t n = strspn(p, "0123456789");

        if (starts && n > 0 && (p[n] == '.' || p[n] == '\0')) {
            g_string_append(out, "{}");
            p += n;
        } else {
            g_string_append_c(out, *p++);
        }
    }
    return g_string_free(out, FALSE);
}

int64_t davit_name_layer(const char *name)
{
    static const char *const stems[] = {"layers.", "blk.", "h.", "block.", "blocks."};

    for (const char *p = name; p; p = strchr(p, '.')) {
        p += *p == '.';
        for (size_t s = 0; s < G_N_ELEMENTS(stems); s++) {
            const size_t n = strlen(stems[s]);

            if (strncmp(p, stems[s], n) == 0 && g_ascii_isdigit(p[n])) {
                const guint64 layer = g_ascii_strtoull(p + n, NULL, 10);

                return layer < 1000000 ? (int64_t)layer : -1;
            }
        }
    }
    return -1;
}

int64_t davit_count_layers(const DavitCheckpoint *checkpoint)
{
    int64_t n = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(checkpoint); i++)
        n = MAX(n, davit_name_layer(davit_checkpoint_tensor(checkpoint, i)->name) + 1);
    return n;
}

static bool has_tail(const char *name, const char *tail, size_t n_tail)
{
    const size_t n = strlen(name);

    return n >= n_tail && strncmp(name + n - n_tail, tail, n_tail) == 0 &&
           (n == n_tail || name[n - n_tail - 1] == '.');
}

const davit_tensor_info *davit_find_tail(const DavitCheckpoint *checkpoint,
                                         const char *tails, int64_t layer)
{
    for (const char *tail = tails; *tail;) {
        const size_t n = strcspn(tail, "|");

        for (size_t i = 0; i < davit_checkpoint_n_tensors(checkpoint); i++) {
            const davit_tensor_info *t = davit_checkpoint_tensor(checkpoint, i);

            if (has_tail(t->name, tail, n) &&
                (layer < 0 || davit_name_layer(t->name) == layer))
                return t;
        }
        tail += n + (tail[n] == '|');
    }
    return NULL;
}
