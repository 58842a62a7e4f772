/* SPDX-License-Identifier: Apache-2.0
 * Filters that compare or add up items. Source: jinja2 3.1.6 filters.py. */
#include "template/getter.h"

/* Keys of sort: a list of the attributes that @attribute names, "a,b" two of them. */
static Value sort_key(Vm *vm, const Getter *getters, size_t n, Value item)
{
    List *key = tmpl_list_new(&vm->arena, n);

    for (size_t i = 0; i < n; i++)
        tmpl_list_add(&vm->arena, key, tmpl_get(vm, &getters[i], item));
    return tmpl_list_value(key);
}

static Getter *sort_getters(Vm *vm, Value attribute, bool fold, size_t *out_n)
{
    Getter *getters;
    size_t start = 0, n = 0;

    if (attribute.type != V_STR) {
        getters = tmpl_new(&vm->arena, Getter);
        getters[0] = tmpl_getter_of(vm, attribute);
        getters[0].fold = fold;
        *out_n = 1;
        return getters;
    }
    getters = tmpl_new_n(&vm->arena, Getter, attribute.s->n + 1);
    for (size_t at = 0; at <= attribute.s->n; at++)
        if (at == attribute.s->n || attribute.s->p[at] == ',') {
            getters[n] = tmpl_getter_of(
                vm, tmpl_string(tmpl_str_part(&vm->arena, attribute.s, start, at)));
            getters[n++].fold = fold;
            start = at + 1;
        }
    *out_n = n;
    return getters;
}

static List *items_of(Vm *vm, const Sorted *sorted, size_t n)
{
    List *list = tmpl_list_new(&vm->arena, n);

    for (size_t i = 0; i < n; i++)
        tmpl_list_add(&vm->arena, list, sorted[i].item);
    return list;
}

/* sorted() takes a C int. */
static bool is_reverse(Vm *vm, Value v)
{
    const int64_t i = v.type == V_MISSING ? 0 : tmpl_need_int(vm, v, "reverse");

    if (i > INT32_MAX || i < INT32_MIN)
        tmpl_raise(vm, "OverflowError: signed integer is greater than maximum");
    return i != 0;
}

static Value sort(Vm *vm, Value value, const Args *args)
{
    Value bound[3];
    size_t n;

    tmpl_bind(vm, args, "sort", "reverse? case_sensitive? attribute?", bound);
    const Getter *getters = sort_getters(vm, bound[2], !tmpl_truth(vm, bound[1]), &n);
    const List *all = tmpl_to_list(vm, value);
    Sorted *sorted = tmpl_new_n(&vm->arena, Sorted, all->n + 1);
    for (size_t i = 0; i < all->n; i++)
        sorted[i] = (Sorted){sort_key(vm, getters, n, all->items[i]), all->items[i]};
    tmpl_sort(vm, sorted, all->n, is_reverse(vm, bound[0]));
    return tmpl_list_value(items_of(vm, sorted, all->n));
}

static Value dictsort(Vm *vm, Value value, const Args *args)
{
    Value bound[3];
    bool by_value = false;

    tmpl_bind(vm, args, "dictsort", "case_sensitive? by? reverse?", bound);
    if (bound[1].type != V_MISSING) {
        by_value = bound[1].type == V_STR && tmpl_str_is(bound[1].s, "value");
        if (!by_value && !(bound[1].type == V_STR && tmpl_str_is(bound[1].s, "key")))
            tmpl_raise(vm, "FilterArgumentError: you can only sort by either \"key\" or "
                           "\"value\"");
    }
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    if (value.type != V_DICT)
        tmpl_raise(vm, "AttributeError: '%s' object has no attribute 'items'",
                   tmpl_type_name(value));
    const Dict *dict = value.dict;
    const Getter whole = {.fold = !tmpl_truth(vm, bound[0]), .fallback = tmpl_missing()};
    Sorted *sorted = tmpl_new_n(&vm->arena, Sorted, dict->n + 1);
    for (size_t i = 0; i < dict->n; i++) {
        const DictEntry *e = &dict->entries[i];

        sorted[i] = (Sorted){tmpl_get(vm, &whole, by_value ? e->value : e->key),
                             tmpl_pair(&vm->arena, e->key, e->value)};
    }
    tmpl_sort(vm, sorted, dict->n, is_reverse(vm, bound[2]));
    return tmpl_list_value(items_of(vm, sorted, dict->n));
}

static Value groupby(Vm *vm, Value value, const Args *args)
{
    Value bound[3];
    List *out = tmpl_list_new(&vm->arena, 0), *group = NULL;

    tmpl_bind(vm, args, "groupby", "attribute default? case_sensitive?", bound);
    Getter getter = tmpl_getter_of(vm, bound[0]);
    getter.fallback = bound[1];
    Getter shown = getter;
    getter.fold = !tmpl_truth(vm, bound[2]);
    const List *all = tmpl_to_list(vm, value);
    Sorted *sorted = tmpl_new_n(&vm->arena, Sorted, all->n + 1);
    for (size_t i = 0; i < all->n; i++)
        sorted[i] = (Sorted){tmpl_get(vm, &getter, all->items[i]), all->items[i]};
    tmpl_sort(vm, sorted, all->n, false);
    for (size_t i = 0; i < all->n; i++) {
        if (i == 0 || !tmpl_equal(vm, sorted[i - 1].key, sorted[i].key)) {
            group = tmpl_list_new(&vm->arena, 0);
            Value pair = tmpl_pair(&vm->arena, tmpl_get(vm, &shown, sorted[i].item),
                                   tmpl_list_value(group));
            pair.list->group = true;
            tmpl_list_add(&vm->arena, out, pair);
        }
        tmpl_list_add(&vm->arena, group, sorted[i].item);
    }
    return tmpl_list_value(out);
}

static Value extreme(Vm *vm, Value value, const Args *args, NodeOp op, const char *what)
{
    Value bound[2], best, best_key, item;
    Iter iter;

    tmpl_bind(vm, args, what, "case_sensitive? attribute?", bound);
    Getter getter = tmpl_getter_of(vm, bound[1]);
    getter.fold = !tmpl_truth(vm, bound[0]);
    tmpl_iter(vm, value, &iter);
    if (!tmpl_next_value(vm, &iter, &best))
        return tmpl_undefined(vm, "no aggregated item, sequence was empty");
    best_key = tmpl_get(vm, &getter, best);
    while (tmpl_next_value(vm, &iter, &item)) {
        const Value key = tmpl_get(vm, &getter, item);

        if (tmpl_ordered(vm, op, key, best_key)) {
            best = item;
            best_key = key;
        }
    }
    return best;
}

static Value min_filter(Vm *vm, Value value, const Args *args)
{
    return extreme(vm, value, args, OP_LT, "min");
}

static Value max_filter(Vm *vm, Value value, const Args *args)
{
    return extreme(vm, value, args, OP_GT, "max");
}

static Value sum(Vm *vm, Value value, const Args *args)
{
    Value bound[2], item, total;
    Iter iter;

    tmpl_bind(vm, args, "sum", "attribute? start?", bound);
    const Getter getter = tmpl_getter_of(vm, bound[0]);
    total = bound[1].type == V_MISSING ? tmpl_int(0) : bound[1];
    if (total.type == V_STR)
        tmpl_raise(vm, "TypeError: sum() can't sum strings [use ''.join(seq) instead]");
    tmpl_iter(vm, value, &iter);
    while (tmpl_next_value(vm, &iter, &item))
        total = tmpl_binary(vm, OP_ADD, total, tmpl_get(vm, &getter, item));
    return total;
}

const FilterRow tmpl_filters_order[] = {
    {"sort", sort},
    {"dictsort", dictsort},
    {"groupby", groupby},
    {"min", min_filter},
    {"max", max_filter},
    {"sum", sum},
    {NULL, NULL},
};
