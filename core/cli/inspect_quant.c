/* SPDX-License-Identifier: Apache-2.0
 * Groups of quantised modules: one per scheme, layout and companions. */
#include "cli/inspect_quant.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "config/config.h"
#include "plan/plan.h"

/* Modules with the same scheme, layout, width of codes, suffixes and dtypes. */
typedef struct Group {
    const DavitModule *first; /* (borrowed, the list of modules) */
    uint64_t n_modules, n_weights, n_bytes;
} Group;

static const char *suffix_of(const DavitModule *m, const davit_tensor_info *t)
{
    const char *rest = t->name + strlen(m->name);

    return *rest == '.' ? rest + 1 : rest;
}

/* (owned) "int8/1 8 weight:i8/1 weight_scale:bf16/1" */
static char *key_of(const DavitModule *m, const DavitCheckpoint *c)
{
    GString *key = g_string_new(m->desc->layout);

    g_string_append_printf(key, " %u", m->desc->codes.bits);
    for (size_t p = 0; p < m->n_parts; p++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, m->tensor[p]);

        g_string_append_printf(key, " %s:%s", suffix_of(m, t), t->dtype);
    }
    return g_string_free(key, FALSE);
}

static void add_module(GPtrArray *groups, GHashTable *by_key, const DavitModule *m,
                       const DavitCheckpoint *c)
{
    char *key = key_of(m, c);
    Group *g = g_hash_table_lookup(by_key, key);

    if (!g) {
        g = g_new0(Group, 1);
        g->first = m;
        g_ptr_array_add(groups, g);
        g_hash_table_insert(by_key, key, g);
    } else {
        g_free(key);
    }
    g->n_modules++;
    g->n_weights += m->desc->n_experts * m->desc->n_rows * m->desc->n_cols;
    for (size_t p = 0; p < m->n_parts; p++)
        g->n_bytes += davit_checkpoint_tensor(c, m->tensor[p])->n_bytes;
}

static json_t *group_json(const Group *g, const DavitCheckpoint *c)
{
    const DavitModule *m = g->first;
    json_t *tensors = json_array();

    for (size_t p = 0; p < m->n_parts; p++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, m->tensor[p]);

        json_array_append_new(tensors, json_pack("{s:o, s:s}", "suffix",
                                                 davit_json_text(suffix_of(m, t)), "dtype",
                                                 t->dtype));
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:o, s:o}", "plugin", m->quant->id,
                     "scheme", m->desc->scheme, "layout", m->desc->layout, "modules",
                     (json_int_t)g->n_modules, "weights", (json_int_t)g->n_weights, "bytes",
                     (json_int_t)g->n_bytes, "bits",
                     8.0 * (double)g->n_bytes / (double)g->n_weights, "first",
                     davit_json_text(m->name), "tensors", tensors);
}

/* The first of @n modules that no plugin reads, and what was said about it. */
static json_t *unread_json(const DavitModule *first, uint64_t n, const DavitReport *said)
{
    const DavitRecord *why = NULL;

    for (size_t i = 0; i < davit_report_count(said) && !why; i++) {
        const DavitRecord *r = davit_report_get(said, i);

        if (r->subject && g_str_has_prefix(r->subject, first->name))
            why = r;
    }
    return json_pack("{s:I, s:o, s:s?, s:o}", "modules", (json_int_t)n, "first",
                     davit_json_text(first->name), "code",
                     why ? davit_code_name(why->code) : NULL, "message",
                     why ? davit_json_text(why->message) : json_null());
}

json_t *davit_inspect_quant(DavitRegistry *registry, const DavitCheckpoint *c)
{
    g_autoptr(DavitReport) said = davit_report_new(); /* findings are doctor's and plan's matter */
    g_autoptr(DavitSettings) settings = davit_settings_open(c, said);
    g_autoptr(DavitModules) modules = davit_modules_find(registry, c, settings, 0, said);
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    json_t *list = json_array(), *unread = json_null();
    const DavitModule *first = NULL;
    uint64_t n_unread = 0;

    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];

        if (!m->quant) {
            first = first ? first : m;
            n_unread++;
        } else if (strcmp(m->desc->scheme, "dense/1") != 0) {
            add_module(groups, by_key, m, c);
        }
    }
    for (guint i = 0; i < groups->len; i++)
        json_array_append_new(list, group_json(g_ptr_array_index(groups, i), c));
    if (first)
        unread = unread_json(first, n_unread, said);
    return json_pack("{s:o, s:o}", "groups", list, "unread", unread);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void print_group(const json_t *g)
{
    const json_t *tensors = json_object_get(g, "tensors");

    printf("  %-16s %7.3f bits %5d modules ", text_of(g, "layout"),
           json_real_value(json_object_get(g, "bits")),
           (int)json_integer_value(json_object_get(g, "modules")));
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *t = json_array_get(tensors, i);
        const char *dtype = text_of(t, "dtype");

        printf("%s %s %.*s", i ? "," : "", davit_shown(text_of(t, "suffix")),
               (int)strcspn(dtype, "/"), dtype);
    }
    printf("\n");
}

void davit_inspect_quant_print(const json_t *quantised)
{
    const json_t *groups = json_object_get(quantised, "groups");
    const json_t *unread = json_object_get(quantised, "unread");

    if (json_array_size(groups))
        printf("quantised (layout, bits of a weight with its companions, modules, their tensors)\n");
    for (size_t i = 0; i < json_array_size(groups); i++)
        print_group(json_array_get(groups, i));
    if (json_is_object(unread))
        printf("not read: %d modules, the first is %s: %s\n",
               (int)json_integer_value(json_object_get(unread, "modules")),
               davit_shown(text_of(unread, "first")), davit_shown(text_of(unread, "message")));
}
