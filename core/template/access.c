/* SPDX-License-Identifier: Apache-2.0
 * x[key], x.name and slices, as the sandbox has them: brackets try the item first, a dot
 * the attribute. Python's attributes of each type are listed here, so that one which davit
 * does not have is refused when it is used, instead of being undefined. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "template/text.h"

/* ---- undefined ---- */

Value tmpl_undefined(Vm *vm, const char *format, ...)
{
    Undefined *undefined = tmpl_new(&vm->arena, Undefined);
    char text[200];
    va_list args;

    va_start(args, format);
    g_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    undefined->message = tmpl_str(&vm->arena, text, strlen(text) + 1)->p;
    return (Value){.type = V_UNDEFINED, .undefined = undefined};
}

void tmpl_raise_undefined(Vm *vm, Value v)
{
    const bool unsafe = v.undefined && v.undefined->unsafe;

    tmpl_raise(vm, "%s: %s", unsafe ? "SecurityError" : "UndefinedError",
               v.undefined ? v.undefined->message : "the value is undefined");
}

static Value unsafe(Vm *vm, Value of, const Str *name)
{
    Value v = tmpl_undefined(vm, "access to attribute '%.*s' of '%s' object is unsafe",
                             TMPL_SHOW(name), tmpl_type_name(of));

    v.undefined->unsafe = true;
    return v;
}

static Value no_attribute(Vm *vm, Value of, const Str *name)
{
    return tmpl_undefined(vm, "'%s object' has no attribute '%.*s'", tmpl_type_name(of),
                          TMPL_SHOW(name));
}

/* ---- attributes of types ---- */

static bool in_words(const char *words, const Str *name)
{
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, " ");

        if (n == name->n && memcmp(at, name->p, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

#define LIST_CHANGES "append clear extend insert pop remove reverse sort"
#define DICT_CHANGES "clear pop popitem setdefault update"
#define INT_NAMES                                                                        \
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag "       \
    "numerator real to_bytes"

static const char *attr_words(uint8_t type)
{
    switch (type) {
    case V_STR:
        return "capitalize casefold center count encode endswith expandtabs find format "
               "format_map index isalnum isalpha isascii isdecimal isdigit isidentifier "
               "islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
               "maketrans partition removeprefix removesuffix replace rfind rindex rjust "
               "rpartition rsplit rstrip split splitlines startswith strip swapcase title "
               "translate upper zfill";
    case V_LIST:
        return "copy count index";
    case V_TUPLE:
        return "count index";
    case V_DICT:
        return "copy fromkeys get items keys values";
    case V_BOOL:
    case V_INT:
    case V_BIG:
        return INT_NAMES;
    case V_FLOAT:
        return "as_integer_ratio conjugate fromhex hex imag is_integer real";
    case V_RANGE:
        return "count index start step stop";
    case V_VIEW:
        return "isdisjoint mapping";
    case V_ITER:
        return "close send throw gi_running gi_yieldfrom gi_suspended";
    case V_MACRO:
        return "arguments caller catch_kwargs catch_varargs explicit_caller name";
    case V_LOOP:
        return "changed cycle depth depth0 first index index0 last length nextitem previtem "
               "revindex revindex0";
    case V_CYCLER:
        return "current items next pos reset";
    case V_JOINER:
        return "sep used";
    default:
        return "";
    }
}

AttrState tmpl_attr_state(Value v, const Str *name)
{
    if (name->n >= 4 && memcmp(name->p, "__", 2) == 0 &&
        memcmp(name->p + name->n - 2, "__", 2) == 0)
        return ATTR_UNSAFE;
    if ((v.type == V_LIST && in_words(LIST_CHANGES, name)) ||
        (v.type == V_DICT && in_words(DICT_CHANGES, name)) ||
        (v.type == V_ITER && in_words("gi_frame gi_code", name)))
        return ATTR_UNSAFE;
    if (v.type == V_STR && v.s->markup && in_words("escape striptags unescape", name))
        return ATTR_SAFE;
    if (v.type == V_TUPLE && v.list->group && in_words("grouper list", name))
        return ATTR_SAFE;
    return in_words(attr_words(v.type), name) ? ATTR_SAFE : ATTR_NONE;
}

static Value macro_attr(Vm *vm, const Macro *macro, const Str *name)
{
    const Node *def = macro->def;

    if (tmpl_str_is(name, "name"))
        return def->name ? tmpl_string(tmpl_str(&vm->arena, def->name->p, def->name->n))
                         : tmpl_none();
    if (tmpl_str_is(name, "arguments")) {
        List *list = tmpl_list_new(&vm->arena, def->n_params);

        for (uint32_t i = 0; i < def->n_params; i++)
            tmpl_list_add(&vm->arena, list,
                          tmpl_string(tmpl_str(&vm->arena, def->params[i].name->p,
                                               def->params[i].name->n)));
        return tmpl_tuple_value(list);
    }
    if (tmpl_str_is(name, "catch_kwargs"))
        return tmpl_bool(def->kwargs_slot >= 0);
    if (tmpl_str_is(name, "catch_varargs"))
        return tmpl_bool(def->varargs_slot >= 0);
    if (tmpl_str_is(name, "caller"))
        return tmpl_bool(def->caller_slot >= 0);
    tmpl_unsupported(vm, "the attribute %.*s of a macro", TMPL_SHOW(name));
}

static bool is_number_attr(Value v, const Str *name, Value *out)
{
    if (tmpl_str_is(name, "real") || tmpl_str_is(name, "numerator"))
        *out = v.type == V_BOOL ? tmpl_int(v.b) : v;
    else if (tmpl_str_is(name, "imag"))
        *out = v.type == V_FLOAT ? tmpl_float(0) : tmpl_int(0);
    else if (tmpl_str_is(name, "denominator"))
        *out = tmpl_int(1);
    else
        return false;
    return true;
}

/* An attribute that tmpl_attr_state calls safe. */
static Value safe_attr(Vm *vm, Value of, Str *name)
{
    Method *method;
    Value v;

    if (tmpl_is_number(of) && is_number_attr(of, name, &v))
        return v;
    if (of.type == V_RANGE && tmpl_str_is(name, "start"))
        return tmpl_int(of.range->start);
    if (of.type == V_RANGE && tmpl_str_is(name, "stop"))
        return tmpl_int(of.range->stop);
    if (of.type == V_RANGE && tmpl_str_is(name, "step"))
        return tmpl_int(of.range->step);
    if (of.type == V_TUPLE && tmpl_str_is(name, "grouper"))
        return of.list->items[0];
    if (of.type == V_TUPLE && tmpl_str_is(name, "list"))
        return of.list->items[1];
    if (of.type == V_MACRO)
        return macro_attr(vm, of.macro, name);
    if (of.type == V_LOOP) {
        v = tmpl_loop_attr(vm, of.loop, name);
        if (v.type != V_MISSING)
            return v;
    }
    if (of.type == V_CYCLER && tmpl_str_is(name, "current"))
        return of.cycler->items->items[of.cycler->at];
    if (of.type == V_CYCLER && tmpl_str_is(name, "items"))
        return tmpl_tuple_value(of.cycler->items);
    if (of.type == V_CYCLER && tmpl_str_is(name, "pos"))
        return tmpl_int((int64_t)of.cycler->at);
    if (of.type == V_JOINER)
        return tmpl_str_is(name, "sep") ? of.joiner->separator : tmpl_bool(of.joiner->used);
    if (of.type == V_VIEW && tmpl_str_is(name, "mapping"))
        tmpl_unsupported(vm, "the attribute mapping of a dict view");
    method = tmpl_new(&vm->arena, Method);
    *method = (Method){of, name};
    return (Value){.type = V_METHOD, .method = method};
}

/* getattr(of, name): false when there is none. */
static bool get_attr(Vm *vm, Value of, Str *name, Value *out)
{
    const AttrState state = tmpl_attr_state(of, name);

    if (of.type == V_NAMESPACE && state == ATTR_NONE) {
        const Value *v = tmpl_dict_get_str(vm, of.ns->dict, name);

        if (v)
            *out = *v;
        return v != NULL;
    }
    if (state == ATTR_NONE) {
        if (of.type == V_METHOD || of.type == V_BUILTIN || of.type == V_JOINER)
            tmpl_unsupported(vm, "an attribute of a %s", tmpl_type_name(of));
        return false;
    }
    *out = state == ATTR_UNSAFE ? unsafe(vm, of, name) : safe_attr(vm, of, name);
    return true;
}

/* ---- items ---- */

Value tmpl_range_at(const Range *range, uint64_t index)
{
    return tmpl_int((int64_t)((uint64_t)range->start + index * (uint64_t)range->step));
}

static Value str_at(Vm *vm, Str *s, uint64_t index)
{
    const size_t start = tmpl_str_offset(s, index);
    uint32_t len;

    tmpl_str_cp(s, start, &len);
    tmpl_step(vm, tmpl_str_chars(s) == s->n ? 0 : start / 16);
    return tmpl_string(tmpl_str_part(&vm->arena, s, start, start + len));
}

/* of[key] of Python: false where it raises TypeError or LookupError. */
static bool get_item(Vm *vm, Value of, Value key, Value *out)
{
    if (of.type == V_DICT) {
        if (key.type == V_LIST || key.type == V_DICT)
            return false; /* unhashable */
        const Value *v = tmpl_dict_get(vm, of.dict, key);

        if (v)
            *out = *v;
        return v != NULL;
    }
    if (of.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, of);
    if (!tmpl_is_integer(key) || (of.type != V_STR && of.type != V_LIST &&
                                  of.type != V_TUPLE && of.type != V_RANGE))
        return false;
    const uint64_t n = tmpl_length(vm, of);
    int64_t index = tmpl_integer(key);
    if (index < 0)
        index += (int64_t)n;
    if (index < 0 || (uint64_t)index >= n)
        return false;
    *out = of.type == V_STR     ? str_at(vm, of.s, (uint64_t)index)
           : of.type == V_RANGE ? tmpl_range_at(of.range, (uint64_t)index)
                                : of.list->items[index];
    return true;
}

Value tmpl_item(Vm *vm, Value of, Value key)
{
    Value v;
    Sb text = {.arena = &vm->arena};

    if (get_item(vm, of, key, &v))
        return v;
    if (key.type == V_STR)
        return get_attr(vm, of, key.s, &v) ? v : no_attribute(vm, of, key.s);
    tmpl_repr(vm, &text, key, 0);
    return tmpl_undefined(vm, "%s object has no element %.*s", tmpl_type_name(of),
                          (int)MIN(text.n, 60), text.p);
}

/* Attributes that jinja's Undefined has: the sandbox forbids them all, so that they are undefined
 * too, where any other attribute of an undefined value is an error. */
#define UNDEFINED_NAMES                                                                 \
    "__add__ __aiter__ __bool__ __call__ __class__ __complex__ __delattr__ __dir__ "    \
    "__div__ __doc__ __eq__ __float__ __floordiv__ __format__ __ge__ __getattr__ "      \
    "__getattribute__ __getitem__ __getstate__ __gt__ __hash__ __init__ "               \
    "__init_subclass__ __int__ __iter__ __le__ __len__ __lt__ __mod__ __module__ "      \
    "__mul__ __ne__ __neg__ __new__ __pos__ __pow__ __radd__ __rdiv__ __reduce__ "      \
    "__reduce_ex__ __repr__ __rfloordiv__ __rmod__ __rmul__ __rpow__ __rsub__ "         \
    "__rtruediv__ __setattr__ __sizeof__ __slots__ __str__ __sub__ __subclasshook__ "   \
    "__truediv__ _fail_with_undefined_error _undefined_exception _undefined_hint "      \
    "_undefined_message _undefined_name _undefined_obj"

Value tmpl_attr(Vm *vm, Value of, Str *name)
{
    Value v;

    if (of.type == V_UNDEFINED && in_words(UNDEFINED_NAMES, name))
        return unsafe(vm, of, name);
    if (of.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, of);
    if (get_attr(vm, of, name, &v) || get_item(vm, of, tmpl_string(name), &v))
        return v;
    return no_attribute(vm, of, name);
}

/* ---- slices ---- */

static bool slice_index(Vm *vm, Value v, int64_t *out)
{
    if (v.type == V_MISSING || v.type == V_NONE)
        return false;
    if (!tmpl_is_integral(v))
        tmpl_raise(vm, "TypeError: slice indices must be integers or None or have an "
                       "__index__ method");
    *out = tmpl_need_index(vm, v, "a slice index");
    return true;
}

/* Where a bound lies for length @n: Python's PySlice_AdjustIndices. */
static int64_t adjust(int64_t i, int64_t n, int64_t step)
{
    if (i < 0) {
        i += n;
        return i < 0 ? (step < 0 ? -1 : 0) : i;
    }
    return i >= n ? (step < 0 ? n - 1 : n) : i;
}

static Value slice_str(Vm *vm, Str *s, int64_t start, int64_t step, uint64_t count)
{
    Sb out = {.arena = &vm->arena};
    Str *part;

    if (count == 0)
        return tmpl_string(tmpl_str_part(&vm->arena, s, 0, 0));
    if (step == 1) {
        const size_t from = tmpl_str_offset(s, (size_t)start);

        tmpl_step(vm, s->n / 64);
        return tmpl_string(
            tmpl_str_part(&vm->arena, s, from, tmpl_str_offset(s, (size_t)start + count)));
    }
    const size_t n = tmpl_str_chars(s);
    uint32_t *offsets = tmpl_new_n(&vm->arena, uint32_t, n + 1), len;
    size_t k = 0;
    tmpl_step(vm, n / 4);
    for (size_t at = 0; at < s->n; at += len) {
        tmpl_str_cp(s, at, &len);
        offsets[k++] = (uint32_t)at;
    }
    offsets[k] = s->n;
    for (uint64_t i = 0; i < count; i++, start += step)
        tmpl_sb_add(&out, s->p + offsets[start], s->taint ? s->taint + offsets[start] : NULL,
                    offsets[start + 1] - offsets[start]);
    part = tmpl_sb_take(&out);
    part->markup = s->markup;
    return tmpl_string(part);
}

static Value slice_range(Vm *vm, const Range *range, int64_t start, int64_t stop, int64_t step,
                         uint64_t count)
{
    Range *part = tmpl_new(&vm->arena, Range);

    *part = (Range){range->start + start * range->step, range->start + stop * range->step,
                    range->step * step, count};
    return (Value){.type = V_RANGE, .range = part};
}

static bool is_slice_index(Value v)
{
    return v.type == V_MISSING || v.type == V_NONE || tmpl_is_integral(v);
}

bool tmpl_can_slice(Value of, Value start, Value stop, Value step)
{
    return of.type == V_UNDEFINED ||
           ((of.type == V_STR || of.type == V_LIST || of.type == V_TUPLE || of.type == V_RANGE) &&
            is_slice_index(start) && is_slice_index(stop) && is_slice_index(step));
}

Value tmpl_slice(Vm *vm, Value of, Value start_v, Value stop_v, Value step_v)
{
    int64_t step = 1, start = 0, stop = 0;

    if (of.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, of);
    if (of.type != V_STR && of.type != V_LIST && of.type != V_TUPLE && of.type != V_RANGE)
        tmpl_raise(vm, "TypeError: a %s cannot be sliced", tmpl_type_name(of));
    if (slice_index(vm, step_v, &step) && step == 0)
        tmpl_raise(vm, "ValueError: slice step cannot be zero");
    const int64_t n = (int64_t)tmpl_length(vm, of);
    start = slice_index(vm, start_v, &start) ? adjust(start, n, step) : step < 0 ? n - 1 : 0;
    stop = slice_index(vm, stop_v, &stop) ? adjust(stop, n, step) : step < 0 ? -1 : n;
    uint64_t count = 0;
    if (step > 0 && start < stop)
        count = (uint64_t)(stop - start - 1) / (uint64_t)step + 1;
    else if (step < 0 && start > stop)
        count = (uint64_t)(start - stop - 1) / ((uint64_t)0 - (uint64_t)step) + 1;
    if (of.type == V_STR)
        return slice_str(vm, of.s, start, step, count);
    if (of.type == V_RANGE)
        return slice_range(vm, of.range, start, stop, step, count);
    List *list = tmpl_list_new(&vm->arena, count);
    tmpl_step(vm, count);
    for (uint64_t i = 0; i < count; i++)
        tmpl_list_add(&vm->arena, list,
                      of.list->items[(uint64_t)start + i * (uint64_t)step]);
    return (Value){.type = of.type, .list = list};
}
