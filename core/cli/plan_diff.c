/* SPDX-License-Identifier: Apache-2.0
 * Two plan documents against each other. Where bytes lie in files is left out: another
 * revision of a model has other offsets and is the same plan otherwise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan.h"

static const char *const top_fields[] = {"arch", "format", "device", "runs", "layers",
                                         "vocabulary", "context", NULL};
static const char *const slot_fields[] = {
    "shape", "scheme",  "stored", "layout",     "device",         "kernels",    "access",
    "make",  "tied_to", "from",   "transforms", "borrowed_bytes", "read_bytes", "private_bytes",
    NULL};

static char *key_of(const json_t *slot)
{
    const json_t *layer = json_object_get(slot, "layer");
    return json_is_integer(layer)
               ? g_strdup_printf("%" JSON_INTEGER_FORMAT "/%s", json_integer_value(layer),
                                 json_string_value(json_object_get(slot, "slot")))
               : g_strdup_printf("/%s", json_string_value(json_object_get(slot, "slot")));
}

/* (owned) key -> slot (borrowed from the document) */
static GHashTable *index_slots(const json_t *document)
{
    GHashTable *index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    size_t i;
    json_t *slot;
    json_array_foreach(json_object_get(document, "slots"), i, slot)
    {
        g_hash_table_insert(index, key_of(slot), slot);
    }
    return index;
}

static char *dump(const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char *own = g_strdup(text ? text : "null");
    free(text);
    return own;
}

/* One change of one slot; equal ones of other layers join it. */
static void add_change(json_t *list, GHashTable *seen, const json_t *slot, const char *field,
                       json_t *from, json_t *to)
{
    g_autofree char *a = dump(from), *b = dump(to);
    const char *id = json_string_value(json_object_get(slot, "slot"));
    char *key = g_strdup_printf("%s|%s|%s|%s", id, field, a, b);
    json_t *entry = g_hash_table_lookup(seen, key);
    if (!entry) {
        entry = json_pack("{s:s, s:[], s:s, s:O?, s:O?}", "slot", id, "layers", "field", field,
                          "from", from, "to", to);
        g_hash_table_insert(seen, key, entry);
        json_array_append_new(list, entry);
    } else {
        g_free(key);
    }
    if (json_is_integer(json_object_get(slot, "layer")))
        json_array_append(json_object_get(entry, "layers"), json_object_get(slot, "layer"));
}

static void compare_slots(const json_t *a, GHashTable *other, GHashTable *seen, json_t *list)
{
    size_t i;
    json_t *slot;
    json_array_foreach(json_object_get(a, "slots"), i, slot)
    {
        g_autofree char *key = key_of(slot);
        const json_t *twin = g_hash_table_lookup(other, key);
        if (!twin)
            continue;
        for (size_t f = 0; slot_fields[f]; f++) {
            json_t *x = json_object_get(slot, slot_fields[f]);
            json_t *y = json_object_get(twin, slot_fields[f]);
            if (x && y && !json_equal(x, y))
                add_change(list, seen, slot, slot_fields[f], x, y);
        }
    }
}

/* Slots of @a that @other lacks, as changes of the field "slot". */
static void list_absent(const json_t *a, GHashTable *other, GHashTable *seen, bool added,
                        json_t *list)
{
    json_t *there = json_string("there"), *absent = json_string("absent");
    size_t i;
    json_t *slot;
    json_array_foreach(json_object_get(a, "slots"), i, slot)
    {
        g_autofree char *key = key_of(slot);
        if (!g_hash_table_contains(other, key))
            add_change(list, seen, slot, "slot", added ? absent : there,
                       added ? there : absent);
    }
    json_decref(there);
    json_decref(absent);
}

static void add_field(json_t *list, const char *field, json_t *x, json_t *y)
{
    if ((x || y) && !json_equal(x, y))
        json_array_append_new(list,
                              json_pack("{s:s, s:O?, s:O?}", "field", field, "from", x, "to", y));
}

static void compare_objects(const json_t *a, const json_t *b, const char *name, json_t *list)
{
    const char *key;
    json_t *x;
    json_object_foreach(json_object_get(a, name), key, x)
    {
        g_autofree char *field = g_strdup_printf("%s.%s", name, key);
        add_field(list, field, x, json_object_get(json_object_get(b, name), key));
    }
}

json_t *davit_plan_diff(const json_t *a, const json_t *b)
{
    json_t *fields = json_array(), *slots = json_array();
    g_autoptr(GHashTable) in_a = index_slots(a);
    g_autoptr(GHashTable) in_b = index_slots(b);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t f = 0; top_fields[f]; f++)
        add_field(fields, top_fields[f], json_object_get(a, top_fields[f]),
                  json_object_get(b, top_fields[f]));
    compare_objects(a, b, "totals", fields);
    compare_objects(a, b, "memory", fields);
    compare_slots(a, in_b, seen, slots);
    list_absent(a, in_b, seen, false, slots);
    list_absent(b, in_a, seen, true, slots);
    const bool equal = json_array_size(fields) == 0 && json_array_size(slots) == 0;
    return json_pack("{s:b, s:O?, s:O?, s:o, s:o}", "equal", equal, "hash_from",
                     json_object_get(a, "hash"), "hash_to", json_object_get(b, "hash"), "fields",
                     fields, "slots", slots);
}

/* ---- text ---- */

static char *layers_of(const json_t *entry)
{
    g_autoptr(GArray) layers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(entry, "layers"), i, n)
    {
        const uint64_t layer = (uint64_t)json_integer_value(n);
        g_array_append_val(layers, layer);
    }
    return davit_layers_text(layers);
}

void davit_plan_diff_print(const json_t *diff)
{
    size_t i;
    json_t *entry;
    if (json_is_true(json_object_get(diff, "equal"))) {
        printf("the plans are equal, where the bytes lie in files aside\n");
        return;
    }
    json_array_foreach(json_object_get(diff, "fields"), i, entry)
    {
        g_autofree char *from = dump(json_object_get(entry, "from"));
        g_autofree char *to = dump(json_object_get(entry, "to"));
        printf("%s: %s -> %s\n", json_string_value(json_object_get(entry, "field")),
               davit_shown(from), davit_shown(to));
    }
    json_array_foreach(json_object_get(diff, "slots"), i, entry)
    {
        g_autofree char *layers = layers_of(entry);
        g_autofree char *from = dump(json_object_get(entry, "from"));
        g_autofree char *to = dump(json_object_get(entry, "to"));
        printf("%s%s%s, %s: %s -> %s\n", json_string_value(json_object_get(entry, "slot")),
               *layers ? " of layers " : "", layers,
               json_string_value(json_object_get(entry, "field")), davit_shown(from),
               davit_shown(to));
    }
}
