/* SPDX-License-Identifier: Apache-2.0
 * Expressions. One function per kind where it needs more than a line, so that a level of
 * nesting costs little stack. */
#include "template/text.h"

#include <string.h>

/* ---- names ---- */

static Value *slot_at(Scope *scope, uint32_t hops, uint32_t slot)
{
    while (hops--)
        scope = scope->parent;
    return &scope->slots[slot];
}

static Value eval_name(Vm *vm, Scope *scope, const Node *node)
{
    const Value v = *slot_at(scope, node->hops, node->slot);

    if (v.type != V_MISSING)
        return v;
    return tmpl_undefined(vm, "'%.*s' is undefined", TMPL_SHOW(node->name));
}

static void set_attr(Vm *vm, Scope *scope, const Node *node, Value value)
{
    const Value of = *slot_at(scope, node->hops, node->slot);

    if (of.type != V_NAMESPACE)
        tmpl_raise(vm, "TemplateRuntimeError: cannot assign attribute on non-namespace object");
    if (node->text->n && node->text->p[0] == '_')
        tmpl_raise(vm, "SecurityError: chat templates cannot store underscore-prefixed "
                       "attributes on a namespace");
    tmpl_dict_set(vm, of.ns->dict, tmpl_string(node->text), value);
}

static void unpack(Vm *vm, Scope *scope, const Node *target, Value value)
{
    const List *items;
    size_t i = 0;

    if (value.type == V_LIST || value.type == V_TUPLE)
        items = value.list;
    else {
        Iter probe;

        if (!tmpl_try_iter(vm, value, &probe))
            tmpl_raise(vm, "TypeError: cannot unpack non-iterable %s object",
                       tmpl_type_name(value));
        items = tmpl_to_list(vm, value);
    }
    if (items->n != target->list.n)
        tmpl_raise(vm, "ValueError: %zu values to unpack into %u names", items->n,
                   target->list.n);
    for (const Node *item = target->list.first; item; item = item->next)
        tmpl_assign(vm, scope, item, items->items[i++]);
}

void tmpl_assign(Vm *vm, Scope *scope, const Node *target, Value value)
{
    if (target->kind == N_NAME)
        *slot_at(scope, target->hops, target->slot) = value;
    else if (target->kind == N_NSREF)
        set_attr(vm, scope, target, value);
    else
        unpack(vm, scope, target, value);
}

/* ---- literals and text ---- */

static Value eval_list(Vm *vm, Scope *scope, const Node *node)
{
    List *list = tmpl_list_new(&vm->arena, node->list.n);

    for (const Node *item = node->list.first; item; item = item->next)
        tmpl_list_add(&vm->arena, list, tmpl_eval(vm, scope, item));
    return (Value){.type = node->kind == N_LIST ? V_LIST : V_TUPLE, .list = list};
}

static Value eval_dict(Vm *vm, Scope *scope, const Node *node)
{
    Dict *dict = tmpl_dict_new(vm);

    for (const Node *key = node->list.first; key; key = key->next->next) {
        const Value k = tmpl_eval(vm, scope, key);

        tmpl_dict_set(vm, dict, k, tmpl_eval(vm, scope, key->next));
    }
    return tmpl_dict_value(dict);
}

static Value eval_concat(Vm *vm, Scope *scope, const Node *node)
{
    Sb out = {.arena = &vm->arena};

    for (const Node *item = node->list.first; item; item = item->next)
        tmpl_print(vm, &out, tmpl_eval(vm, scope, item));
    tmpl_step(vm, out.n / 64);
    return tmpl_string(tmpl_sb_take(&out));
}

/* ---- operators ---- */

static bool compare(Vm *vm, NodeOp op, Value a, Value b)
{
    switch (op) {
    case OP_EQ:
        return tmpl_equal(vm, a, b);
    case OP_NE:
        return !tmpl_equal(vm, a, b);
    case OP_IN:
        return tmpl_contains(vm, a, b);
    case OP_NOT_IN:
        return !tmpl_contains(vm, a, b);
    default:
        return tmpl_ordered(vm, op, a, b);
    }
}

static Value eval_compare(Vm *vm, Scope *scope, const Node *node)
{
    Value left = tmpl_eval(vm, scope, node->a);

    for (const Node *operand = node->list.first; operand; operand = operand->next) {
        const Value right = tmpl_eval(vm, scope, operand->a);

        if (!compare(vm, operand->op, left, right))
            return tmpl_bool(false);
        left = right;
    }
    return tmpl_bool(true);
}

static Value eval_slice(Vm *vm, Scope *scope, const Node *node)
{
    const Value of = tmpl_eval(vm, scope, node->a);
    const Value start = node->b ? tmpl_eval(vm, scope, node->b) : tmpl_missing();
    const Value stop = node->c ? tmpl_eval(vm, scope, node->c) : tmpl_missing();
    const Value step = node->d ? tmpl_eval(vm, scope, node->d) : tmpl_missing();

    vm->at = node;
    /* as environment.getitem, which takes the TypeError */
    if (vm->folding && !tmpl_can_slice(of, start, stop, step))
        return tmpl_undefined(vm, "%s object has no element slice", tmpl_type_name(of));
    return tmpl_slice(vm, of, start, stop, step);
}

static Value eval_cond(Vm *vm, Scope *scope, const Node *node)
{
    if (tmpl_truth(vm, tmpl_eval(vm, scope, node->a)))
        return tmpl_eval(vm, scope, node->b);
    if (node->c)
        return tmpl_eval(vm, scope, node->c);
    if (vm->folding)
        tmpl_unsupported(vm, "no constant");
    return tmpl_undefined(vm, "the inline if-expression evaluated to false and no else "
                              "section was defined");
}

/* ---- calls ---- */

static Value eval_call(Vm *vm, Scope *scope, const Node *node)
{
    const Value callee = tmpl_eval(vm, scope, node->a);
    Args args;

    tmpl_args_of(vm, scope, &node->list, &args);
    vm->at = node;
    return tmpl_call(vm, callee, &args);
}

/* Filters that jinja2 gives the context, and which are therefore not worked out before there is one. */
static bool wants_context(const Str *name)
{
    static const char *const names[] = {"map", "select", "reject", "selectattr", "rejectattr", "random"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (tmpl_str_is(name, names[i]))
            return true;
    return false;
}

static Value eval_filter(Vm *vm, Scope *scope, const Node *node)
{
    FilterFn *fn = tmpl_filter_find(node->name);
    Value value;
    Args args;

    vm->at = node;
    if (vm->folding && (!node->a || wants_context(node->name))) /* no value: of a block */
        tmpl_unsupported(vm, "no constant");
    if (!fn)
        tmpl_raise(vm, "TemplateRuntimeError: no filter named '%.*s'", TMPL_SHOW(node->name));
    value = tmpl_eval(vm, scope, node->a);
    tmpl_args_of(vm, scope, &node->list, &args);
    vm->at = node;
    return fn(vm, value, &args);
}

static Value eval_test(Vm *vm, Scope *scope, const Node *node)
{
    TestFn *fn = tmpl_test_find(node->name);
    Value value;
    Args args;

    vm->at = node;
    if (!fn)
        tmpl_raise(vm, "TemplateRuntimeError: no test named '%.*s'", TMPL_SHOW(node->name));
    value = tmpl_eval(vm, scope, node->a);
    tmpl_args_of(vm, scope, &node->list, &args);
    vm->at = node;
    return tmpl_bool(fn(vm, value, &args));
}

static Value eval_binary(Vm *vm, Scope *scope, const Node *node)
{
    const Value a = tmpl_eval(vm, scope, node->a);
    const Value b = tmpl_eval(vm, scope, node->b);

    vm->at = node;
    return tmpl_binary(vm, node->op, a, b);
}

static Value eval_item(Vm *vm, Scope *scope, const Node *node)
{
    const Value of = tmpl_eval(vm, scope, node->a);
    const Value key = tmpl_eval(vm, scope, node->b);

    vm->at = node;
    return tmpl_item(vm, of, key);
}

static Value eval_attr(Vm *vm, Scope *scope, const Node *node)
{
    const Value of = tmpl_eval(vm, scope, node->a);

    vm->at = node;
    return tmpl_attr(vm, of, node->name);
}

static Value eval_logic(Vm *vm, Scope *scope, const Node *node)
{
    const Value a = tmpl_eval(vm, scope, node->a);

    return tmpl_truth(vm, a) == (node->kind == N_AND) ? tmpl_eval(vm, scope, node->b) : a;
}

static Value eval_kind(Vm *vm, Scope *scope, const Node *node)
{
    if (vm->folding && (node->kind == N_NAME || node->kind == N_CALL))
        tmpl_unsupported(vm, "no constant");
    switch (node->kind) {
    case N_CONST:
        return node->value;
    case N_UNKNOWN:
        tmpl_raise(vm, "NameError: name '%.*s' is not defined", TMPL_SHOW(node->name));
    case N_NAME:
        return eval_name(vm, scope, node);
    case N_LIST:
    case N_TUPLE:
        return eval_list(vm, scope, node);
    case N_DICT:
        return eval_dict(vm, scope, node);
    case N_ATTR:
        return eval_attr(vm, scope, node);
    case N_ITEM:
        return eval_item(vm, scope, node);
    case N_SLICE:
        return eval_slice(vm, scope, node);
    case N_CALL:
        return eval_call(vm, scope, node);
    case N_FILTER:
        return eval_filter(vm, scope, node);
    case N_TEST:
        return eval_test(vm, scope, node);
    case N_NOT:
        return tmpl_bool(!tmpl_truth(vm, tmpl_eval(vm, scope, node->a)));
    case N_NEG:
    case N_POS:
        return tmpl_negate(vm, tmpl_eval(vm, scope, node->a), node->kind == N_NEG);
    case N_BINARY:
        return eval_binary(vm, scope, node);
    case N_AND:
    case N_OR:
        return eval_logic(vm, scope, node);
    case N_COMPARE:
        return eval_compare(vm, scope, node);
    case N_CONCAT:
        return eval_concat(vm, scope, node);
    case N_COND:
        return eval_cond(vm, scope, node);
    default:
        g_assert_not_reached(); /* the parser makes no other expression */
    }
}

Value tmpl_eval(Vm *vm, Scope *scope, const Node *node)
{
    const Node *outer = vm->at;
    Value v;

    tmpl_step(vm, 1);
    if (++vm->depth > MAX_EVALS)
        tmpl_limit(vm, "nested too deep");
    vm->at = node;
    v = eval_kind(vm, scope, node);
    vm->at = outer;
    vm->depth--;
    return v;
}
