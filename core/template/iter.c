/* SPDX-License-Identifier: Apache-2.0
 * Iteration: positions in values, generators (lazy, one pass, as Python's), and the loop
 * object, which looks one item ahead only when asked. */
#include "template/run.h"

#include <string.h>

/* ---- over values ---- */

static bool next_list(Vm *vm, Iter *iter, Value *out)
{
    (void)vm;
    if (iter->at >= iter->source.list->n)
        return false;
    *out = iter->source.list->items[iter->at++];
    return true;
}

static bool next_str(Vm *vm, Iter *iter, Value *out)
{
    Str *s = iter->source.s;
    uint32_t len;

    if (iter->at >= s->n)
        return false;
    tmpl_str_cp(s, iter->at, &len);
    *out = tmpl_string(tmpl_str_part(&vm->arena, s, iter->at, iter->at + len));
    out->s->markup = false;
    iter->at += len;
    return true;
}

static bool next_key(Vm *vm, Iter *iter, Value *out)
{
    (void)vm;
    if (iter->at >= iter->source.dict->n)
        return false;
    *out = iter->source.dict->entries[iter->at++].key;
    return true;
}

static bool next_view(Vm *vm, Iter *iter, Value *out)
{
    const View *view = iter->source.view;
    const DictEntry *entry;

    if (iter->at >= view->dict->n)
        return false;
    entry = &view->dict->entries[iter->at++];
    *out = view->kind == VIEW_KEYS     ? entry->key
           : view->kind == VIEW_VALUES ? entry->value
                                       : tmpl_pair(&vm->arena, entry->key, entry->value);
    return true;
}

static bool next_range(Vm *vm, Iter *iter, Value *out)
{
    (void)vm;
    if (iter->at >= iter->source.range->n)
        return false;
    *out = tmpl_range_at(iter->source.range, iter->at++);
    return true;
}

static bool next_nothing(Vm *vm, Iter *iter, Value *out)
{
    (void)vm;
    (void)iter;
    (void)out;
    return false;
}

/* A generator is shared: everybody draws from the one position. */
static bool next_shared(Vm *vm, Iter *iter, Value *out)
{
    return tmpl_next_value(vm, iter->source.iter, out);
}

static bool next_loop(Vm *vm, Iter *iter, Value *out)
{
    (void)iter;
    (void)out;
    tmpl_unsupported(vm, "iterating over the loop object itself");
}

bool tmpl_try_iter(Vm *vm, Value v, Iter *out)
{
    (void)vm;
    *out = (Iter){.source = v};
    switch (v.type) {
    case V_UNDEFINED:
        out->next = next_nothing;
        return true;
    case V_STR:
        out->next = next_str;
        return true;
    case V_LIST:
    case V_TUPLE:
        out->next = next_list;
        return true;
    case V_DICT:
        out->next = next_key;
        return true;
    case V_VIEW:
        out->next = next_view;
        return true;
    case V_RANGE:
        out->next = next_range;
        return true;
    case V_ITER:
        out->next = next_shared;
        return true;
    case V_LOOP:
        out->next = next_loop;
        return true;
    default:
        return false;
    }
}

void tmpl_iter(Vm *vm, Value v, Iter *out)
{
    if (!tmpl_try_iter(vm, v, out))
        tmpl_raise(vm, "TypeError: '%s' object is not iterable", tmpl_type_name(v));
}

bool tmpl_next_value(Vm *vm, Iter *iter, Value *out)
{
    tmpl_step(vm, 1);
    if (iter->ended)
        return false;
    /* generators can be stacked by a loop; each level here is one on the C stack */
    if (++vm->depth > MAX_EVALS)
        tmpl_limit(vm, "nested too deep");
    iter->ended = !iter->next(vm, iter, out);
    vm->depth--;
    return !iter->ended;
}

List *tmpl_to_list(Vm *vm, Value v)
{
    List *list = tmpl_list_new(&vm->arena, 0);
    Iter iter;
    Value item;

    tmpl_iter(vm, v, &iter);
    while (tmpl_next_value(vm, &iter, &item))
        tmpl_list_add(&vm->arena, list, item);
    return list;
}

Value tmpl_generator(Vm *vm, bool (*next)(Vm *, Iter *, Value *), Value source, void *state)
{
    Iter *iter = tmpl_new(&vm->arena, Iter);

    *iter = (Iter){.next = next, .source = source, .state = state};
    return (Value){.type = V_ITER, .iter = iter};
}

static bool next_reversed(Vm *vm, Iter *iter, Value *out)
{
    const Value v = iter->source;
    const uint64_t n = tmpl_length(vm, v);

    if (iter->at >= n)
        return false;
    const uint64_t at = n - 1 - iter->at++;
    if (v.type == V_DICT)
        *out = v.dict->entries[at].key;
    else if (v.type == V_VIEW) {
        Iter one = {.source = v, .at = at};

        next_view(vm, &one, out);
    } else
        *out = v.type == V_RANGE ? tmpl_range_at(v.range, at) : v.list->items[at];
    return true;
}

Value tmpl_reversed(Vm *vm, Value v)
{
    switch (v.type) {
    case V_LIST:
    case V_TUPLE:
    case V_DICT:
    case V_VIEW:
    case V_RANGE:
        return tmpl_generator(vm, next_reversed, v, NULL);
    case V_UNDEFINED:
        return tmpl_generator(vm, next_nothing, v, NULL);
    case V_STR: {
        List *chars = tmpl_to_list(vm, v);

        return tmpl_generator(vm, next_reversed, tmpl_list_value(chars), NULL);
    }
    default:
        return tmpl_missing();
    }
}

/* ---- the loop object ---- */

bool tmpl_loop_next(Vm *vm, Loop *loop, Value *out)
{
    if (loop->has_after) {
        *out = loop->after;
        loop->has_after = false;
    } else if (!tmpl_next_value(vm, &loop->iter, out)) {
        return false;
    }
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out;
    return true;
}

/* The item after the current one, V_MISSING at the end. */
static Value peek(Vm *vm, Loop *loop)
{
    if (!loop->has_after) {
        if (!tmpl_next_value(vm, &loop->iter, &loop->after))
            loop->after = tmpl_missing();
        loop->has_after = loop->after.type != V_MISSING;
    }
    return loop->has_after ? loop->after : tmpl_missing();
}

uint64_t tmpl_loop_length(Vm *vm, Loop *loop)
{
    if (loop->length >= 0)
        return (uint64_t)loop->length;
    if (!loop->node->c && tmpl_has_length(loop->iterable)) {
        loop->length = (int64_t)tmpl_length(vm, loop->iterable);
        return (uint64_t)loop->length;
    }
    /* what is left becomes a list, and the loop goes on over that */
    List *rest = tmpl_list_new(&vm->arena, 0);
    Value item;
    while (tmpl_next_value(vm, &loop->iter, &item))
        tmpl_list_add(&vm->arena, rest, item);
    tmpl_iter(vm, tmpl_list_value(rest), &loop->iter);
    loop->length = (int64_t)rest->n + loop->index0 + 1 + loop->has_after;
    return (uint64_t)loop->length;
}

Value tmpl_loop_attr(Vm *vm, Loop *loop, Str *name)
{
    Value v;

    if (tmpl_str_is(name, "index0"))
        return tmpl_int(loop->index0);
    if (tmpl_str_is(name, "index"))
        return tmpl_int(loop->index0 + 1);
    if (tmpl_str_is(name, "first"))
        return tmpl_bool(loop->index0 == 0);
    if (tmpl_str_is(name, "last"))
        return tmpl_bool(peek(vm, loop).type == V_MISSING);
    if (tmpl_str_is(name, "length"))
        return tmpl_int((int64_t)tmpl_loop_length(vm, loop));
    if (tmpl_str_is(name, "revindex0"))
        return tmpl_int((int64_t)tmpl_loop_length(vm, loop) - loop->index0 - 1);
    if (tmpl_str_is(name, "revindex"))
        return tmpl_int((int64_t)tmpl_loop_length(vm, loop) - loop->index0);
    if (tmpl_str_is(name, "depth"))
        return tmpl_int((int64_t)loop->depth0 + 1);
    if (tmpl_str_is(name, "depth0"))
        return tmpl_int(loop->depth0);
    if (tmpl_str_is(name, "previtem"))
        return loop->index0 <= 0 ? tmpl_undefined(vm, "there is no previous item")
                                 : loop->before;
    if (tmpl_str_is(name, "nextitem")) {
        v = peek(vm, loop);
        return v.type == V_MISSING ? tmpl_undefined(vm, "there is no next item") : v;
    }
    return tmpl_missing();
}
