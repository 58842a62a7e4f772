/* SPDX-License-Identifier: Apache-2.0
 * Which entries of a list cover a module, without a look at each: entries without special signs
 * are found by the names under which they could be written. */
#include <string.h>

#include "plan/quant_config_private.h"

static const char wrapper[] = "language_model.";

void davit_quant_list_clear(DavitQuantList *list)
{
    if (list->patterns)
        g_array_unref(list->patterns);
    if (list->plain)
        g_hash_table_unref(list->plain);
    if (list->rest)
        g_array_unref(list->rest);
    *list = (DavitQuantList){0};
}

void davit_quant_list_index(DavitQuantList *list)
{
    list->plain = g_hash_table_new(g_str_hash, g_str_equal);
    list->rest = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < list->patterns->len; i++) {
        const char *text = davit_name_pattern_plain(
            g_array_index(list->patterns, DavitQuantPattern, i).pattern);

        if (text && !g_hash_table_contains(list->plain, text))
            g_hash_table_insert(list->plain, (char *)(uintptr_t)text, GUINT_TO_POINTER(i + 1));
        else
            g_array_append_val(list->rest, i);
    }
}

/* One find. */
typedef struct Search {
    const DavitQuantList *list;
    const char *module;
    DavitQuantHit hit;
    void *ctx;
    bool stopped;
} Search;

static void look_at(Search *s, guint index)
{
    const DavitQuantPattern *p = &g_array_index(s->list->patterns, DavitQuantPattern, index);
    int rank;

    if (!s->stopped && davit_name_pattern_has(p->pattern, s->module, &rank))
        s->stopped = s->hit(p, rank, s->ctx);
}

/* @name and all that it lies in. Whether the entry really covers the module is for its own
 * dialect to say. */
static void look_up(Search *s, const char *name)
{
    g_autofree char *part = g_strdup(name);

    for (char *end = part + strlen(part); end && !s->stopped; end = strrchr(part, '.')) {
        guint found;

        *end = '\0';
        found = GPOINTER_TO_UINT(g_hash_table_lookup(s->list->plain, part));
        if (found)
            look_at(s, found - 1);
    }
}

/* The names under which an entry may know @module: with and without the wrapper. */
static void look_up_all(Search *s, const char *module)
{
    const char *at = strstr(module, wrapper);
    g_autofree char *other = NULL, *inner = NULL;

    look_up(s, module);
    if (at) {
        other = g_strdup_printf("%.*s%s", (int)(at - module), module, at + sizeof wrapper - 1);
        look_up(s, other);
        return;
    }
    other = g_strconcat(wrapper, module, NULL);
    look_up(s, other);
    if (!g_str_has_prefix(module, "model."))
        return;
    inner = g_strconcat("model.", wrapper, module + strlen("model."), NULL);
    look_up(s, inner);
}

void davit_quant_list_find(const DavitQuantList *list, const char *module, DavitQuantHit hit,
                           void *ctx)
{
    Search s = {.list = list, .module = module, .hit = hit, .ctx = ctx};

    if (g_hash_table_size(list->plain) > 0)
        look_up_all(&s, module);
    for (guint i = 0; i < list->rest->len && !s.stopped; i++)
        look_at(&s, g_array_index(list->rest, guint, i));
}
