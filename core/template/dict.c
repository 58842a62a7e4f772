/* SPDX-License-Identifier: Apache-2.0
 * Dicts: in insertion order, keys equal as in Python (1, 1.0 and True are one key). */
#include "template/bigint.h"

#include <math.h>
#include <string.h>

static uint32_t mix(uint64_t h)
{
    h *= 0x9e3779b97f4a7c15ull;
    return (uint32_t)(h >> 32);
}

/* Whole numbers as the integer that they equal. */
static uint32_t hash_float(double f)
{
    if (f >= -9e18 && f <= 9e18 && floor(f) == f)
        return mix((uint64_t)(int64_t)f);
    return isfinite(f) ? mix((uint64_t)(int64_t)(fmod(f, 1e18) * 8)) : 7;
}

static uint32_t hash_int(int64_t i)
{
    return i >= -9000000000000000000 && i <= 9000000000000000000 ? mix((uint64_t)i)
                                                                 : hash_float((double)i);
}

static uint32_t hash_value(Vm *vm, Value v, uint32_t depth)
{
    uint32_t h = 2166136261u;

    tmpl_check_depth(vm, depth);
    switch (v.type) {
    case V_STR:
        for (uint32_t i = 0; i < v.s->n; i++)
            h = (h ^ (uint8_t)v.s->p[i]) * 16777619u;
        tmpl_step(vm, v.s->n / 64);
        return h;
    case V_BOOL:
    case V_INT:
        return hash_int(tmpl_integer(v));
    case V_BIG: /* a float that is equal is the nearest one */
        tmpl_step(vm, v.big->n / 16);
        return hash_float(tmpl_big_to_float(v));
    case V_FLOAT:
        return hash_float(v.f);
    case V_TUPLE:
        for (size_t i = 0; i < v.list->n; i++)
            h = h * 31 + hash_value(vm, v.list->items[i], depth + 1);
        return h;
    case V_NONE:
    case V_UNDEFINED:
        return v.type;
    case V_LIST:
    case V_DICT:
        tmpl_raise(vm, "TypeError: unhashable type: '%s'", tmpl_type_name(v));
    default:
        tmpl_unsupported(vm, "a %s as a key", tmpl_type_name(v));
    }
}

Dict *tmpl_dict_new(Vm *vm)
{
    return tmpl_new(&vm->arena, Dict);
}

static void put_index(Dict *dict, size_t entry)
{
    size_t at = dict->entries[entry].hash & (dict->n_index - 1);

    while (dict->index[at])
        at = (at + 1) & (dict->n_index - 1);
    dict->index[at] = (uint32_t)entry + 1;
}

static DictEntry *find(Vm *vm, const Dict *dict, Value key, uint32_t hash)
{
    if (!dict->index) {
        for (size_t i = 0; i < dict->n; i++)
            if (dict->entries[i].hash == hash && tmpl_equal(vm, dict->entries[i].key, key))
                return &dict->entries[i];
        return NULL;
    }
    size_t at = hash & (dict->n_index - 1);
    for (; dict->index[at]; at = (at + 1) & (dict->n_index - 1)) {
        DictEntry *entry = &dict->entries[dict->index[at] - 1];

        tmpl_step(vm, 1);
        if (entry->hash == hash && tmpl_equal(vm, entry->key, key))
            return entry;
    }
    return NULL;
}

static void grow(Vm *vm, Dict *dict)
{
    const size_t cap = MAX(dict->cap * 2, 4);
    DictEntry *entries = tmpl_new_n(&vm->arena, DictEntry, cap);

    if (dict->n)
        memcpy(entries, dict->entries, dict->n * sizeof *entries);
    dict->entries = entries;
    dict->cap = cap;
    if (cap <= 8)
        return;
    dict->n_index = cap * 4; /* a power of two, at most half full */
    dict->index = tmpl_new_n(&vm->arena, uint32_t, dict->n_index);
    for (size_t i = 0; i < dict->n; i++)
        put_index(dict, i);
}

void tmpl_dict_set(Vm *vm, Dict *dict, Value key, Value value)
{
    const uint32_t hash = hash_value(vm, key, 0);
    DictEntry *entry = find(vm, dict, key, hash);

    if (entry) {
        entry->value = value;
        return;
    }
    if (dict->n == dict->cap)
        grow(vm, dict);
    dict->entries[dict->n++] = (DictEntry){key, value, hash};
    if (dict->index)
        put_index(dict, dict->n - 1);
}

void tmpl_dict_set_text(Vm *vm, Dict *dict, const char *key, Value value)
{
    tmpl_dict_set(vm, dict, tmpl_text(&vm->arena, key), value);
}

Value *tmpl_dict_get(Vm *vm, const Dict *dict, Value key)
{
    DictEntry *entry = find(vm, dict, key, hash_value(vm, key, 0));

    return entry ? &entry->value : NULL;
}

Value *tmpl_dict_get_str(Vm *vm, const Dict *dict, Str *key)
{
    return tmpl_dict_get(vm, dict, tmpl_string(key));
}

Dict *tmpl_dict_copy(Vm *vm, const Dict *dict)
{
    Dict *copy = tmpl_dict_new(vm);

    for (size_t i = 0; i < dict->n; i++)
        tmpl_dict_set(vm, copy, dict->entries[i].key, dict->entries[i].value);
    return copy;
}
