/* SPDX-License-Identifier: Apache-2.0
 * Methods of everything but str, and the global functions. */
#include "template/bigint.h"
#include "template/text.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- methods ---- */

static Value view_of(Vm *vm, Dict *dict, ViewKind kind)
{
    View *view = tmpl_new(&vm->arena, View);

    *view = (View){kind, dict};
    return (Value){.type = V_VIEW, .view = view};
}

static Value dict_method(Vm *vm, Dict *dict, const Str *name, const Args *args)
{
    Value bound[2];

    if (tmpl_str_is(name, "get")) {
        tmpl_bind(vm, args, "get()", "key default?", bound);
        tmpl_no_keywords(vm, args, "get()");
        const Value *v = tmpl_dict_get(vm, dict, bound[0]);
        return v ? *v : bound[1].type == V_MISSING ? tmpl_none() : bound[1];
    }
    if (tmpl_str_is(name, "fromkeys"))
        tmpl_unsupported(vm, "the method fromkeys of a dict");
    tmpl_bind(vm, args, "the method", "", NULL);
    if (tmpl_str_is(name, "copy"))
        return tmpl_dict_value(tmpl_dict_copy(vm, dict));
    return view_of(vm, dict,
                   tmpl_str_is(name, "keys")     ? VIEW_KEYS
                   : tmpl_str_is(name, "values") ? VIEW_VALUES
                                                 : VIEW_ITEMS);
}

static Value find_in(Vm *vm, Value self, const Args *args)
{
    Value bound[3], item;
    Iter iter;
    const int64_t n = (int64_t)tmpl_length(vm, self);

    tmpl_bind(vm, args, "index()", "value start? stop?", bound);
    tmpl_no_keywords(vm, args, "index()");
    int64_t start = bound[1].type == V_MISSING ? 0 : tmpl_need_index(vm, bound[1], "start");
    int64_t stop = bound[2].type == V_MISSING ? n : tmpl_need_index(vm, bound[2], "stop");
    start = start < 0 ? MAX(start + n, 0) : start;
    stop = stop < 0 ? stop + n : stop;
    tmpl_iter(vm, self, &iter);
    for (int64_t i = 0; i < stop && tmpl_next_value(vm, &iter, &item); i++)
        if (i >= start && tmpl_equal(vm, item, bound[0]))
            return tmpl_int(i);
    tmpl_raise(vm, "ValueError: the value is not in the %s", tmpl_type_name(self));
}

static Value sequence_method(Vm *vm, Value self, const Str *name, const Args *args)
{
    Value value, item;
    Iter iter;
    int64_t n = 0;

    if (tmpl_str_is(name, "index"))
        return find_in(vm, self, args);
    if (tmpl_str_is(name, "copy")) {
        tmpl_bind(vm, args, "copy()", "", NULL);
        return tmpl_list_value(tmpl_to_list(vm, self));
    }
    tmpl_bind(vm, args, "count()", "value", &value);
    tmpl_no_keywords(vm, args, "count()");
    tmpl_iter(vm, self, &iter);
    while (tmpl_next_value(vm, &iter, &item))
        n += tmpl_equal(vm, item, value);
    return tmpl_int(n);
}

static Value loop_method(Vm *vm, Loop *loop, const Str *name, const Args *args)
{
    if (tmpl_str_is(name, "cycle")) {
        tmpl_no_keywords(vm, args, "cycle()");
        if (args->n == 0)
            tmpl_raise(vm, "TypeError: no items for cycling given");
        return args->pos[(uint64_t)loop->index0 % args->n];
    }
    if (!tmpl_str_is(name, "changed"))
        tmpl_unsupported(vm, "the method %.*s of the loop", TMPL_SHOW(name));
    List *list = tmpl_list_new(&vm->arena, args->n);
    for (size_t i = 0; i < args->n; i++)
        tmpl_list_add(&vm->arena, list, args->pos[i]);
    const Value now = tmpl_tuple_value(list);
    if (loop->changed.type != V_MISSING && tmpl_equal(vm, loop->changed, now))
        return tmpl_bool(false);
    loop->changed = now;
    return tmpl_bool(true);
}

static Value cycler_method(Vm *vm, Cycler *cycler, const Str *name, const Args *args)
{
    Value v;

    tmpl_bind(vm, args, "the method", "", NULL);
    if (tmpl_str_is(name, "reset")) {
        cycler->at = 0;
        return tmpl_none();
    }
    v = cycler->items->items[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->items->n;
    return v;
}

/* Of numbers, those that need nothing; V_MISSING = not had here. */
static Value number_method(Vm *vm, Value self, const Str *name, const Args *args)
{
    const bool whole = self.type != V_FLOAT;
    Sb bits = {.arena = &vm->arena};
    int64_t ones = 0;

    if (tmpl_str_is(name, "conjugate")) {
        tmpl_bind(vm, args, "conjugate()", "", NULL);
        return whole ? tmpl_binary(vm, OP_ADD, self, tmpl_int(0)) : self;
    }
    if (!whole && tmpl_str_is(name, "is_integer")) {
        tmpl_bind(vm, args, "is_integer()", "", NULL);
        return tmpl_bool(isfinite(self.f) && floor(self.f) == self.f);
    }
    if (!whole || !(tmpl_str_is(name, "bit_length") || tmpl_str_is(name, "bit_count")))
        return tmpl_missing();
    tmpl_bind(vm, args, "the method", "", NULL);
    tmpl_big_digits(vm, &bits, self, 2, false);
    for (size_t i = 0; i < bits.n; i++)
        ones += bits.p[i] == '1';
    return tmpl_int(tmpl_str_is(name, "bit_count") ? ones : ones ? (int64_t)bits.n : 0);
}

Value tmpl_call_method(Vm *vm, const Method *method, const Args *args)
{
    const Value self = method->self;
    const Str *name = method->name;
    Value v;

    switch (self.type) {
    case V_STR:
        v = tmpl_str_method(vm, self.s, name, args);
        if (v.type != V_MISSING)
            return v;
        break;
    case V_BOOL:
    case V_INT:
    case V_BIG:
    case V_FLOAT:
        v = number_method(vm, self, name, args);
        if (v.type != V_MISSING)
            return v;
        break;
    case V_DICT:
        return dict_method(vm, self.dict, name, args);
    case V_LIST:
    case V_TUPLE:
    case V_RANGE:
        return sequence_method(vm, self, name, args);
    case V_LOOP:
        return loop_method(vm, self.loop, name, args);
    case V_CYCLER:
        return cycler_method(vm, self.cycler, name, args);
    default:
        break;
    }
    tmpl_unsupported(vm, "the method %.*s of a %s", TMPL_SHOW(name), tmpl_type_name(self));
}

/* ---- globals ---- */

#define MAX_RANGE 100000u /* of jinja's sandbox */

static Value range(Vm *vm, const Args *args)
{
    Range *range = tmpl_new(&vm->arena, Range);

    tmpl_no_keywords(vm, args, "range()");
    if (args->n < 1 || args->n > 3)
        tmpl_raise(vm, "TypeError: range expected 1 to 3 arguments, got %zu", args->n);
    for (size_t i = 0; i < args->n; i++)
        if (args->pos[i].type == V_BIG)
            tmpl_unsupported(vm, "a range of integers beyond 64 bits");
    *range = (Range){0, tmpl_need_int(vm, args->pos[0], "an argument of range"), 1, 0};
    if (args->n > 1) {
        range->start = range->stop;
        range->stop = tmpl_need_int(vm, args->pos[1], "an argument of range");
    }
    if (args->n > 2)
        range->step = tmpl_need_int(vm, args->pos[2], "an argument of range");
    if (range->step == 0)
        tmpl_raise(vm, "ValueError: range() arg 3 must not be zero");
    const uint64_t step =
        range->step > 0 ? (uint64_t)range->step : (uint64_t)0 - (uint64_t)range->step;
    const int64_t low = range->step > 0 ? range->start : range->stop;
    const int64_t high = range->step > 0 ? range->stop : range->start;
    if (low < high)
        range->n = ((uint64_t)high - (uint64_t)low - 1) / step + 1;
    if (range->n > MAX_RANGE)
        tmpl_raise(vm, "OverflowError: Range too big. The sandbox blocks ranges larger than "
                       "MAX_RANGE (%u)",
                   MAX_RANGE);
    return (Value){.type = V_RANGE, .range = range};
}

/* dict(mapping or pairs, **keywords). */
static Dict *make_dict(Vm *vm, const Args *args)
{
    Dict *dict = tmpl_dict_new(vm);
    Value item;
    Iter iter;

    if (args->n > 1)
        tmpl_raise(vm, "TypeError: dict expected at most 1 argument, got %zu", args->n);
    if (args->n && args->pos[0].type == V_DICT) {
        dict = tmpl_dict_copy(vm, args->pos[0].dict);
    } else if (args->n) {
        if (args->pos[0].type == V_UNDEFINED)
            tmpl_unsupported(vm, "dict() of an undefined value");
        tmpl_iter(vm, args->pos[0], &iter);
        while (tmpl_next_value(vm, &iter, &item)) {
            const List *pair = tmpl_to_list(vm, item);

            if (pair->n != 2)
                tmpl_raise(vm, "ValueError: dictionary update sequence element has length "
                               "%zu; 2 is required",
                           pair->n);
            tmpl_dict_set(vm, dict, pair->items[0], pair->items[1]);
        }
    }
    for (size_t i = 0; i < args->n_named; i++)
        tmpl_dict_set(vm, dict, tmpl_string(args->names[i]), args->values[i]);
    return dict;
}

static Value dict(Vm *vm, const Args *args)
{
    return tmpl_dict_value(make_dict(vm, args));
}

static Value namespace(Vm *vm, const Args *args)
{
    Namespace *ns = tmpl_new(&vm->arena, Namespace);

    ns->dict = make_dict(vm, args);
    for (size_t i = 0; i < ns->dict->n; i++) {
        const Value key = ns->dict->entries[i].key;

        if (key.type == V_STR && key.s->n && key.s->p[0] == '_')
            tmpl_raise(vm, "SecurityError: chat templates cannot store underscore-prefixed "
                           "attributes on a namespace");
    }
    return (Value){.type = V_NAMESPACE, .ns = ns};
}

static Value raise_exception(Vm *vm, const Args *args)
{
    Value message;

    tmpl_bind(vm, args, "raise_exception()", "message", &message);
    const Str *s = tmpl_to_str(vm, message);
    tmpl_raise(vm, "%.*s", (int)MIN(s->n, 900), s->p);
}

static Value strftime_now(Vm *vm, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value format;
    struct timespec now = {.tv_sec = (time_t)vm->now};

    tmpl_bind(vm, args, "strftime_now()", "format", &format);
    if (!vm->fixed_clock)
        clock_gettime(CLOCK_REALTIME, &now);
    tmpl_strftime(vm, &out, tmpl_need_str(vm, format, "the format"), now.tv_sec,
                  vm->fixed_clock, (uint32_t)(now.tv_nsec / 1000));
    return tmpl_string(tmpl_sb_take(&out));
}

static Value cycler(Vm *vm, const Args *args)
{
    Cycler *cycler = tmpl_new(&vm->arena, Cycler);

    tmpl_no_keywords(vm, args, "cycler()");
    if (args->n == 0)
        tmpl_raise(vm, "RuntimeError: at least one item has to be provided");
    cycler->items = tmpl_list_new(&vm->arena, args->n);
    for (size_t i = 0; i < args->n; i++)
        tmpl_list_add(&vm->arena, cycler->items, args->pos[i]);
    return (Value){.type = V_CYCLER, .cycler = cycler};
}

static Value joiner(Vm *vm, const Args *args)
{
    Joiner *joiner = tmpl_new(&vm->arena, Joiner);

    tmpl_bind(vm, args, "joiner()", "sep?", &joiner->separator);
    if (joiner->separator.type == V_MISSING)
        joiner->separator = tmpl_text(&vm->arena, ", ");
    return (Value){.type = V_JOINER, .joiner = joiner};
}

static Value lipsum(Vm *vm, const Args *args)
{
    (void)args;
    tmpl_unsupported(vm, "lipsum(), which is random");
}

const Builtin tmpl_builtins[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", namespace},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"cycler", cycler},
    {"joiner", joiner},
    {"lipsum", lipsum},
    {NULL, NULL},
};
