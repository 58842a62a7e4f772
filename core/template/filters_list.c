/* SPDX-License-Identifier: Apache-2.0
 * Filters on sequences and mappings; those that compare items are in filters_order.c. Those
 * that are generators in jinja are generators here: lazy, one pass. Source: jinja2 3.1.6
 * filters.py. */
#include "template/getter.h"

#include <string.h>

/* ---- map, select ---- */

/* State of map and its kin: their arguments, looked at when the first item is asked for. */
typedef struct Mapping {
    Args args;
    bool started, attr, negate;
    Iter iter;
    Getter getter;
    FilterFn *filter;
    TestFn *test;
    Args rest;
    const Node *at;
} Mapping;

static Args args_from(const Args *args, size_t from)
{
    Args rest = *args;

    from = MIN(from, args->n);
    rest.pos += from;
    rest.n -= from;
    return rest;
}

static void start_map(Vm *vm, Mapping *m)
{
    const Value attribute = tmpl_keyword(&m->args, "attribute");

    if (m->args.n == 0 && attribute.type != V_MISSING) {
        for (size_t i = 0; i < m->args.n_named; i++)
            if (!tmpl_str_is(m->args.names[i], "attribute") &&
                !tmpl_str_is(m->args.names[i], "default"))
                tmpl_raise(vm, "FilterArgumentError: unexpected keyword argument '%.*s'",
                           TMPL_SHOW(m->args.names[i]));
        m->getter = tmpl_getter_of(vm, attribute);
        m->getter.fallback = tmpl_keyword(&m->args, "default");
        return;
    }
    if (m->args.n == 0)
        tmpl_raise(vm, "FilterArgumentError: map requires a filter argument");
    const Str *name = tmpl_need_str(vm, m->args.pos[0], "the name of a filter");
    m->filter = tmpl_filter_find(name);
    if (!m->filter)
        tmpl_raise(vm, "TemplateRuntimeError: no filter named '%.*s'", TMPL_SHOW(name));
    m->rest = args_from(&m->args, 1);
}

static bool next_map(Vm *vm, Iter *iter, Value *out)
{
    Mapping *m = iter->state;
    const Node *at = vm->at;
    Value item;

    if (!m->started) {
        m->started = true;
        if (!tmpl_truth(vm, iter->source))
            return false;
        tmpl_iter(vm, iter->source, &m->iter);
        start_map(vm, m);
    }
    if (!m->iter.next || !tmpl_next_value(vm, &m->iter, &item))
        return false;
    vm->at = m->at;
    *out = m->filter ? m->filter(vm, item, &m->rest) : tmpl_get(vm, &m->getter, item);
    vm->at = at;
    return true;
}

static Value mapping(Vm *vm, bool (*next)(Vm *, Iter *, Value *), Value value,
                     const Args *args, bool attr, bool negate)
{
    Mapping *m = tmpl_new(&vm->arena, Mapping);

    *m = (Mapping){.args = *args, .attr = attr, .negate = negate, .at = vm->at};
    return tmpl_generator(vm, next, value, m);
}

static Value map(Vm *vm, Value value, const Args *args)
{
    return mapping(vm, next_map, value, args, false, false);
}

static void start_select(Vm *vm, Mapping *m)
{
    const size_t off = m->attr ? 1 : 0;

    if (m->attr && m->args.n == 0)
        tmpl_raise(vm, "FilterArgumentError: missing parameter for attribute name");
    if (m->attr)
        m->getter = tmpl_getter_of(vm, m->args.pos[0]);
    if (m->args.n <= off)
        return;
    const Str *name = tmpl_need_str(vm, m->args.pos[off], "the name of a test");
    m->test = tmpl_test_find(name);
    if (!m->test)
        tmpl_raise(vm, "TemplateRuntimeError: no test named '%.*s'", TMPL_SHOW(name));
    m->rest = args_from(&m->args, off + 1);
}

static bool next_select(Vm *vm, Iter *iter, Value *out)
{
    Mapping *m = iter->state;
    const Node *at = vm->at;

    if (!m->started) {
        m->started = true;
        if (!tmpl_truth(vm, iter->source))
            return false;
        start_select(vm, m);
        tmpl_iter(vm, iter->source, &m->iter);
    }
    while (m->iter.next && tmpl_next_value(vm, &m->iter, out)) {
        vm->at = m->at;
        const Value item = m->attr ? tmpl_get(vm, &m->getter, *out) : *out;
        const bool yes = m->test ? m->test(vm, item, &m->rest) : tmpl_truth(vm, item);
        vm->at = at;
        if (yes != m->negate)
            return true;
    }
    return false;
}

static Value select_filter(Vm *vm, Value value, const Args *args)
{
    return mapping(vm, next_select, value, args, false, false);
}

static Value reject(Vm *vm, Value value, const Args *args)
{
    return mapping(vm, next_select, value, args, false, true);
}

static Value selectattr(Vm *vm, Value value, const Args *args)
{
    return mapping(vm, next_select, value, args, true, false);
}

static Value rejectattr(Vm *vm, Value value, const Args *args)
{
    return mapping(vm, next_select, value, args, true, true);
}

/* ---- other generators ---- */

static bool next_item(Vm *vm, Iter *iter, Value *out)
{
    const Value v = iter->source;

    if (v.type == V_UNDEFINED)
        return false;
    if (v.type != V_DICT)
        tmpl_raise(vm, "TypeError: can only get item pairs from a mapping");
    if (iter->at >= v.dict->n)
        return false;
    const DictEntry *entry = &v.dict->entries[iter->at++];
    *out = tmpl_pair(&vm->arena, entry->key, entry->value);
    return true;
}

static Value items(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "items", "", NULL);
    return tmpl_generator(vm, next_item, value, NULL);
}

typedef struct Unique {
    Getter getter;
    Dict *seen;
    Iter iter;
} Unique;

static bool next_unique(Vm *vm, Iter *iter, Value *out)
{
    Unique *u = iter->state;

    if (!u->seen) {
        u->seen = tmpl_dict_new(vm);
        tmpl_iter(vm, iter->source, &u->iter);
    }
    while (tmpl_next_value(vm, &u->iter, out)) {
        const Value key = tmpl_get(vm, &u->getter, *out);

        if (tmpl_dict_get(vm, u->seen, key))
            continue;
        tmpl_dict_set(vm, u->seen, key, tmpl_none());
        return true;
    }
    return false;
}

static Value unique(Vm *vm, Value value, const Args *args)
{
    Unique *u = tmpl_new(&vm->arena, Unique);
    Value bound[2];

    tmpl_bind(vm, args, "unique", "case_sensitive? attribute?", bound);
    u->getter = tmpl_getter_of(vm, bound[1]);
    u->getter.fold = !tmpl_truth(vm, bound[0]);
    return tmpl_generator(vm, next_unique, value, u);
}

typedef struct Batch {
    Iter iter;
    bool started, done;
    Value size_arg;
    int64_t size;
    Value fill;
    List *line;
} Batch;

static bool next_batch(Vm *vm, Iter *iter, Value *out)
{
    Batch *b = iter->state;
    Value item;

    if (!b->started) {
        b->started = true;
        b->line = tmpl_list_new(&vm->arena, 0);
        tmpl_iter(vm, iter->source, &b->iter);
        b->size = tmpl_need_int(vm, b->size_arg, "linecount");
    }
    while (!b->done && tmpl_next_value(vm, &b->iter, &item)) {
        List *full = (int64_t)b->line->n == b->size ? b->line : NULL;

        if (full)
            b->line = tmpl_list_new(&vm->arena, 0);
        tmpl_list_add(&vm->arena, b->line, item);
        if (full) {
            *out = tmpl_list_value(full);
            return true;
        }
    }
    if (b->done || b->line->n == 0)
        return false;
    b->done = true;
    while (b->fill.type != V_MISSING && b->fill.type != V_NONE &&
           (int64_t)b->line->n < b->size) {
        tmpl_step(vm, 1);
        tmpl_list_add(&vm->arena, b->line, b->fill);
    }
    *out = tmpl_list_value(b->line);
    return true;
}

static Value batch(Vm *vm, Value value, const Args *args)
{
    Batch *b = tmpl_new(&vm->arena, Batch);
    Value bound[2];

    tmpl_bind(vm, args, "batch", "linecount fill_with?", bound);
    b->size_arg = bound[0];
    b->fill = bound[1];
    return tmpl_generator(vm, next_batch, value, b);
}

typedef struct Slices {
    List *all;
    Value n_arg;
    int64_t n, at;
    Value fill;
} Slices;

static bool next_slice(Vm *vm, Iter *iter, Value *out)
{
    Slices *s = iter->state;

    if (!s->all) {
        s->all = tmpl_to_list(vm, iter->source);
        s->n = tmpl_need_int(vm, s->n_arg, "slices");
        if (s->n == 0)
            tmpl_raise(vm, "ZeroDivisionError: integer division or modulo by zero");
    }
    if (s->at >= s->n)
        return false;
    const int64_t each = (int64_t)s->all->n / s->n, extra = (int64_t)s->all->n % s->n;
    const int64_t start = s->at * each + MIN(s->at, extra);
    const int64_t count = each + (s->at < extra);
    List *part = tmpl_list_new(&vm->arena, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        tmpl_list_add(&vm->arena, part, s->all->items[start + i]);
    if (s->fill.type != V_MISSING && s->fill.type != V_NONE && s->at >= extra)
        tmpl_list_add(&vm->arena, part, s->fill);
    s->at++;
    *out = tmpl_list_value(part);
    return true;
}

static Value slice(Vm *vm, Value value, const Args *args)
{
    Slices *s = tmpl_new(&vm->arena, Slices);
    Value bound[2];

    tmpl_bind(vm, args, "slice", "slices fill_with?", bound);
    s->n_arg = bound[0];
    s->fill = bound[1];
    return tmpl_generator(vm, next_slice, value, s);
}

/* ---- one value ---- */

static Value length(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "length", "", NULL);
    return tmpl_int((int64_t)tmpl_length(vm, value));
}

static Value first(Vm *vm, Value value, const Args *args)
{
    Iter iter;
    Value v;

    tmpl_bind(vm, args, "first", "", NULL);
    tmpl_iter(vm, value, &iter);
    return tmpl_next_value(vm, &iter, &v)
               ? v
               : tmpl_undefined(vm, "no first item, sequence was empty");
}

static Value last(Vm *vm, Value value, const Args *args)
{
    Value v;

    tmpl_bind(vm, args, "last", "", NULL);
    if (value.type == V_NAMESPACE || value.type == V_LOOP)
        tmpl_raise(vm, "TypeError: '%s' object is not reversible", tmpl_type_name(value));
    value = tmpl_reversed(vm, value);
    if (value.type == V_MISSING)
        tmpl_raise(vm, "TypeError: the object is not reversible");
    return tmpl_next_value(vm, value.iter, &v)
               ? v
               : tmpl_undefined(vm, "no last item, sequence was empty");
}

static Value list(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "list", "", NULL);
    return tmpl_list_value(tmpl_to_list(vm, value));
}

static Value reverse(Vm *vm, Value value, const Args *args)
{
    Value v;

    tmpl_bind(vm, args, "reverse", "", NULL);
    if (value.type == V_STR)
        return tmpl_slice(vm, value, tmpl_missing(), tmpl_missing(), tmpl_int(-1));
    v = tmpl_reversed(vm, value);
    if (v.type != V_MISSING)
        return v;
    return tmpl_slice(vm, tmpl_list_value(tmpl_to_list(vm, value)), tmpl_missing(),
                      tmpl_missing(), tmpl_int(-1));
}

static Value join(Vm *vm, Value value, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value bound[2], item;
    Getter getter;
    Iter iter;
    bool any = false;

    tmpl_bind(vm, args, "join", "d? attribute?", bound);
    getter = tmpl_getter_of(vm, bound[1]);
    tmpl_iter(vm, value, &iter);
    while (tmpl_next_value(vm, &iter, &item)) {
        if (any && bound[0].type != V_MISSING)
            tmpl_print(vm, &out, bound[0]);
        tmpl_print(vm, &out, tmpl_get(vm, &getter, item));
        any = true;
    }
    return tmpl_string(tmpl_sb_take(&out));
}

static Value default_filter(Vm *vm, Value value, const Args *args)
{
    Value bound[2];

    tmpl_bind(vm, args, "default", "default_value? boolean?", bound);
    if (value.type != V_UNDEFINED && !(tmpl_truth(vm, bound[1]) && !tmpl_truth(vm, value)))
        return value;
    return bound[0].type == V_MISSING ? tmpl_text(&vm->arena, "") : bound[0];
}

static Value attr(Vm *vm, Value value, const Args *args)
{
    Value name;

    tmpl_bind(vm, args, "attr", "name", &name);
    Str *s = tmpl_need_str(vm, name, "the name of an attribute");
    if (value.type == V_UNDEFINED)
        return tmpl_attr(vm, value, s);
    const bool has = value.type == V_NAMESPACE
                         ? tmpl_dict_get_str(vm, value.ns->dict, s) != NULL ||
                               tmpl_attr_state(value, s) != ATTR_NONE
                         : tmpl_attr_state(value, s) != ATTR_NONE;
    return has ? tmpl_attr(vm, value, s)
               : tmpl_undefined(vm, "'%s object' has no attribute '%.*s'",
                                tmpl_type_name(value), TMPL_SHOW(s));
}

const FilterRow tmpl_filters_list[] = {
    {"length", length},
    {"count", length},
    {"first", first},
    {"last", last},
    {"list", list},
    {"reverse", reverse},
    {"join", join},
    {"default", default_filter},
    {"d", default_filter},
    {"attr", attr},
    {"map", map},
    {"select", select_filter},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
    {"items", items},
    {"unique", unique},
    {"batch", batch},
    {"slice", slice},
    {NULL, NULL},
};
