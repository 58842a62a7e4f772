/* SPDX-License-Identifier: Apache-2.0
 * Filters that Python's library stands behind: pprint (pprint.pformat) and random
 * (random.choice). Source: jinja2 3.1.6 filters.py. wordwrap is in filters_wrap.c. */
#include "template/text.h"

#include <string.h>

/* ---- pprint ---- */

#define PPRINT_WIDTH 80 /* of pformat */

static Value by_key(Vm *vm, Value value, uint32_t depth);

/* The dict with its keys in order, as pformat has it; only texts are ordered here. */
static Value sorted_dict(Vm *vm, const Dict *dict, uint32_t depth)
{
    Sorted *sorted = tmpl_new_n(&vm->arena, Sorted, dict->n + 1);
    Dict *out = tmpl_dict_new(vm);

    for (size_t i = 0; i < dict->n; i++) {
        if (dict->entries[i].key.type != V_STR && dict->n > 1)
            tmpl_unsupported(vm, "pprint of a mapping whose keys are not all texts");
        sorted[i] = (Sorted){dict->entries[i].key, dict->entries[i].value};
    }
    tmpl_sort(vm, sorted, dict->n, false);
    for (size_t i = 0; i < dict->n; i++)
        tmpl_dict_set(vm, out, sorted[i].key, by_key(vm, sorted[i].item, depth + 1));
    return (Value){.type = V_DICT, .dict = out};
}

static Value by_key(Vm *vm, Value value, uint32_t depth)
{
    List *list;

    tmpl_check_depth(vm, depth);
    if (value.type == V_DICT)
        return sorted_dict(vm, value.dict, depth);
    if ((value.type != V_LIST && value.type != V_TUPLE) || value.list->group)
        return value;
    list = tmpl_list_new(&vm->arena, value.list->n);
    for (size_t i = 0; i < value.list->n; i++)
        tmpl_list_add(&vm->arena, list, by_key(vm, value.list->items[i], depth + 1));
    return (Value){.type = value.type, .list = list};
}

static Value pprint(Vm *vm, Value value, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Str *text;

    tmpl_bind(vm, args, "pprint", "", NULL);
    tmpl_repr(vm, &out, by_key(vm, value, 0), 0);
    text = tmpl_sb_take(&out);
    /* what pformat breaks into lines: other things stay one line of any length */
    if (tmpl_str_chars(text) > PPRINT_WIDTH &&
        (value.type == V_STR || value.type == V_LIST || value.type == V_TUPLE ||
         value.type == V_DICT))
        tmpl_unsupported(vm, "pprint of more than a line of 80 characters");
    return tmpl_string(text);
}

/* ---- random ---- */

/* Where there is a choice the prompt would be another each time, so it is not made. */
static Value random_filter(Vm *vm, Value value, const Args *args)
{
    uint64_t n;

    tmpl_bind(vm, args, "random", "", NULL);
    n = tmpl_length(vm, value);
    if (n == 0)
        return tmpl_undefined(vm, "No random item, sequence was empty.");
    if (n > 1 || value.type == V_DICT)
        tmpl_unsupported(vm, "a random choice, which would make another prompt each time");
    return tmpl_item(vm, value, tmpl_int(0));
}

const FilterRow tmpl_filters_python[] = {
    {"pprint", pprint},
    {"random", random_filter},
    {NULL, NULL},
};
