/* SPDX-License-Identifier: Apache-2.0
 * Arguments, and calling what can be called: macros, callers, loops, methods, globals. */
#include "template/bigint.h"
#include "template/text.h"

#include <string.h>

/* ---- arguments ---- */

static void add_keyword(Vm *vm, Args *args, Str *name, Value value, size_t cap)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (tmpl_str_equal(args->names[i], name) && vm->folding) {
            args->values[i] = value; /* the last one counts there */
            return;
        } else if (tmpl_str_equal(args->names[i], name))
            tmpl_raise(vm, "TypeError: got multiple values for keyword argument '%.*s'",
                       TMPL_SHOW(name));
    if (args->n_named == cap)
        tmpl_raise(vm, "TypeError: too many keyword arguments");
    args->names[args->n_named] = name;
    args->values[args->n_named++] = value;
}

static void spread_keywords(Vm *vm, Args *args, Value value, size_t *cap)
{
    if (value.type != V_DICT)
        tmpl_raise(vm, "TypeError: argument after ** must be a mapping, not %s",
                   tmpl_type_name(value));
    const size_t n = args->n_named + value.dict->n;
    Str **names = tmpl_new_n(&vm->arena, Str *, n + 1);
    Value *values = tmpl_new_n(&vm->arena, Value, n + 1);
    if (args->n_named) {
        memcpy(names, args->names, args->n_named * sizeof *names);
        memcpy(values, args->values, args->n_named * sizeof *values);
    }
    args->names = names;
    args->values = values;
    *cap = n;
    for (size_t i = 0; i < value.dict->n; i++) {
        if (value.dict->entries[i].key.type != V_STR)
            tmpl_raise(vm, "TypeError: keywords must be strings");
        add_keyword(vm, args, value.dict->entries[i].key.s, value.dict->entries[i].value, n);
    }
}

void tmpl_args_of(Vm *vm, Scope *scope, const NodeList *list, Args *out)
{
    List *pos;
    size_t cap = 0;

    *out = (Args){0};
    if (list->n == 0)
        return;
    pos = tmpl_list_new(&vm->arena, list->n);
    for (const Node *arg = list->first; arg; arg = arg->next)
        cap += arg->op == ARG_KEYWORD;
    out->names = tmpl_new_n(&vm->arena, Str *, cap + 1);
    out->values = tmpl_new_n(&vm->arena, Value, cap + 1);
    for (const Node *arg = list->first; arg; arg = arg->next) {
        const Value v = tmpl_eval(vm, scope, arg->a);

        if (arg->op == ARG_POSITIONAL) {
            tmpl_list_add(&vm->arena, pos, v);
        } else if (arg->op == ARG_KEYWORD) {
            add_keyword(vm, out, arg->name, v, cap);
        } else if (arg->op == ARG_STAR) {
            const List *more = tmpl_to_list(vm, v);

            for (size_t i = 0; i < more->n; i++)
                tmpl_list_add(&vm->arena, pos, more->items[i]);
        } else {
            spread_keywords(vm, out, v, &cap);
        }
    }
    out->pos = pos->items;
    out->n = pos->n;
}

Value tmpl_keyword(const Args *args, const char *name)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (tmpl_str_is(args->names[i], name))
            return args->values[i];
    return tmpl_missing();
}

void tmpl_no_keywords(Vm *vm, const Args *args, const char *what)
{
    if (args->n_named)
        tmpl_raise(vm, "TypeError: %s takes no keyword argument '%.*s'", what,
                   TMPL_SHOW(args->names[0]));
}

void tmpl_bind(Vm *vm, const Args *args, const char *what, const char *names, Value *out)
{
    size_t n = 0, named = 0;

    for (const char *at = names; *at; n++) {
        const size_t len = strcspn(at, " ?");
        const bool optional = at[len] == '?';

        out[n] = n < args->n ? args->pos[n] : tmpl_missing();
        for (size_t i = 0; i < args->n_named; i++) {
            if (args->names[i]->n != len || memcmp(args->names[i]->p, at, len) != 0)
                continue;
            named++;
            if (n < args->n)
                tmpl_raise(vm, "TypeError: %s got multiple values for argument '%.*s'", what,
                           (int)len, at);
            out[n] = args->values[i];
        }
        if (out[n].type == V_MISSING && !optional)
            tmpl_raise(vm, "TypeError: %s misses the argument '%.*s'", what, (int)len, at);
        at += len + optional;
        at += *at == ' ';
    }
    if (args->n > n || named < args->n_named)
        tmpl_raise(vm, "TypeError: %s got an argument too many or of an unknown name", what);
}

int64_t tmpl_need_int(Vm *vm, Value v, const char *what)
{
    if (v.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, v);
    if (!tmpl_is_integer(v))
        tmpl_raise(vm, "TypeError: %s must be an integer, not %s", what, tmpl_type_name(v));
    return tmpl_integer(v);
}

int64_t tmpl_need_index(Vm *vm, Value v, const char *what)
{
    if (v.type == V_BIG)
        return tmpl_is_negative(v) ? -INT64_MAX : INT64_MAX;
    return tmpl_need_int(vm, v, what);
}

Str *tmpl_need_str(Vm *vm, Value v, const char *what)
{
    if (v.type != V_STR)
        tmpl_raise(vm, "TypeError: %s must be str, not %s", what, tmpl_type_name(v));
    return v.s;
}

/* ---- macros ---- */

static void enter_call(Vm *vm)
{
    if (++vm->calls > DAVIT_TEMPLATE_MAX_DEPTH)
        tmpl_limit(vm, "calls nested more than %u deep", DAVIT_TEMPLATE_MAX_DEPTH);
}

/* What keyword arguments are left when the parameters took theirs. */
typedef struct Rest {
    const Args *args;
    bool *taken;
} Rest;

static Value take_keyword(Rest *rest, const Str *name)
{
    for (size_t i = 0; i < rest->args->n_named; i++)
        if (!rest->taken[i] && tmpl_str_equal(rest->args->names[i], name)) {
            rest->taken[i] = true;
            return rest->args->values[i];
        }
    return tmpl_missing();
}

static void take_rest(Vm *vm, const Node *def, Scope *scope, Rest *rest)
{
    const Args *args = rest->args;
    Dict *kwargs = def->kwargs_slot >= 0 ? tmpl_dict_new(vm) : NULL;

    for (size_t i = 0; i < args->n_named; i++) {
        if (rest->taken[i])
            continue;
        if (!kwargs)
            tmpl_raise(vm, "TypeError: the macro takes no keyword argument '%.*s'",
                       TMPL_SHOW(args->names[i]));
        tmpl_dict_set(vm, kwargs, tmpl_string(args->names[i]), args->values[i]);
    }
    if (kwargs)
        scope->slots[def->kwargs_slot] = tmpl_dict_value(kwargs);
    if (def->varargs_slot >= 0) {
        List *more = tmpl_list_new(&vm->arena, 0);

        for (size_t i = def->n_params; i < args->n; i++)
            tmpl_list_add(&vm->arena, more, args->pos[i]);
        scope->slots[def->varargs_slot] = tmpl_tuple_value(more);
    } else if (args->n > def->n_params) {
        tmpl_raise(vm, "TypeError: the macro takes not more than %u argument(s)",
                   def->n_params);
    }
}

/* Parameters, in the order of jinja's Macro.__call__. */
static void bind_macro(Vm *vm, const Node *def, Scope *scope, const Args *args)
{
    const Str caller = {.p = "caller", .n = 6};
    Rest rest = {args, tmpl_new_n(&vm->arena, bool, args->n_named + 1)};
    bool found_caller = false;

    for (uint32_t i = 0; i < def->n_params; i++) {
        const bool is_caller = tmpl_str_is(def->params[i].name, "caller");

        if (i < args->n) {
            scope->slots[def->params[i].slot] = args->pos[i];
            found_caller |= is_caller && args->n >= def->n_params;
            continue;
        }
        found_caller |= is_caller;
        scope->slots[def->params[i].slot] = take_keyword(&rest, def->params[i].name);
    }
    if (def->caller_slot >= 0 && !found_caller) {
        const Value v = take_keyword(&rest, &caller);

        scope->slots[def->caller_slot] =
            v.type == V_MISSING || v.type == V_NONE ? tmpl_undefined(vm, "no caller defined")
                                                    : v;
    }
    take_rest(vm, def, scope, &rest);
}

Value tmpl_call_macro(Vm *vm, const Macro *macro, const Args *args)
{
    const Node *def = macro->def, *at = vm->at;
    Scope *scope = tmpl_scope_new(vm, macro->closure, def->frame);
    Str *text;

    enter_call(vm);
    bind_macro(vm, def, scope, args);
    tmpl_scope_enter(vm, scope);
    for (uint32_t i = 0; i < def->n_params; i++) {
        Value *slot = &scope->slots[def->params[i].slot];

        if (slot->type != V_MISSING)
            continue;
        *slot = def->params[i].fallback
                    ? tmpl_eval(vm, scope, def->params[i].fallback)
                    : tmpl_undefined(vm, "parameter '%.*s' was not provided",
                                     TMPL_SHOW(def->params[i].name));
    }
    text = tmpl_exec_caught(vm, scope, &def->body);
    vm->calls--;
    vm->at = at;
    return tmpl_string(text);
}

/* ---- loops ---- */

Value tmpl_recurse(Vm *vm, Scope *scope, const Node *node, Value iterable, uint32_t depth0)
{
    Sb caught = {.arena = &vm->arena}, *outer = vm->out;
    const Node *at = vm->at;

    enter_call(vm);
    vm->out = &caught;
    tmpl_exec_for(vm, scope, node, iterable, depth0);
    vm->out = outer;
    vm->at = at;
    vm->calls--;
    return tmpl_string(tmpl_sb_take(&caught));
}

static Value call_loop(Vm *vm, Loop *loop, const Args *args)
{
    Value iterable;

    tmpl_bind(vm, args, "loop()", "iterable", &iterable);
    if (!loop->recursive)
        tmpl_raise(vm, "TypeError: the loop must have the 'recursive' marker to be called "
                       "recursively");
    return tmpl_recurse(vm, loop->scope, loop->node, iterable, loop->depth0 + 1);
}

/* ---- the call ---- */

Value tmpl_call(Vm *vm, Value callee, const Args *args)
{
    switch (callee.type) {
    case V_MACRO:
        return tmpl_call_macro(vm, callee.macro, args);
    case V_METHOD:
        return tmpl_call_method(vm, callee.method, args);
    case V_BUILTIN:
        return callee.builtin->fn(vm, args);
    case V_LOOP:
        return call_loop(vm, callee.loop, args);
    case V_JOINER:
        if (args->n || args->n_named)
            tmpl_raise(vm, "TypeError: a joiner takes no arguments");
        if (callee.joiner->used)
            return callee.joiner->separator;
        callee.joiner->used = true;
        return tmpl_text(&vm->arena, "");
    case V_UNDEFINED:
        tmpl_raise_undefined(vm, callee);
    default:
        tmpl_raise(vm, "TypeError: '%s' object is not callable", tmpl_type_name(callee));
    }
}
