/* SPDX-License-Identifier: Apache-2.0
 * Constant folding, for what it changes: jinja2 works out constant expressions when it compiles,
 * and there a slice that cannot be is undefined instead of an error, what has no place in a
 * Python source (inf) becomes an unknown name, and some errors come before anything runs.
 * Source: jinja2 3.1.6 optimizer.py, nodes.py (as_const), compiler.py. */
#include "template/parser.h"

#include <math.h>

#include "template/bigint.h"
#include "template/text.h"

/* What folding may spend on a template. What is left is worked out at run time. */
#define FOLD_MEMORY (8u << 20)
#define FOLD_OUTPUT (1u << 20)
#define FOLD_STEPS  2000000u

/* ---- as_const ---- */

/* @node worked out; false when jinja2 could not. */
static bool as_const(Parser *p, Vm *vm, const Node *node, bool as_text, Value *out)
{
    bool done = false;

    vm->arena = *p->arena;
    vm->arena.full = &vm->full;
    vm->arena.limit = MIN(vm->limit, p->arena->limit);
    vm->depth = vm->calls = 0;
    if (setjmp(vm->full) == 0 && setjmp(vm->fail) == 0) {
        *out = tmpl_eval(vm, NULL, node);
        if (as_text)
            *out = tmpl_string(tmpl_to_str(vm, *out));
        done = true;
    }
    /* the blocks that were added stay the template's */
    p->arena->block = vm->arena.block;
    p->arena->used = vm->arena.used;
    p->arena->size = vm->arena.size;
    p->arena->total = vm->arena.total;
    return done;
}

/* Python can write it into a source and read the same value again. Lists may hold one list many
 * times, so what is gone through counts as steps of @vm; false where they are used up. */
static bool has_safe_repr(Vm *vm, Value v)
{
    if (vm->steps >= vm->max_steps)
        return false;
    vm->steps++;
    switch (v.type) {
    case V_NONE:
    case V_BOOL:
    case V_INT:
    case V_BIG:
    case V_FLOAT:
    case V_STR:
    case V_RANGE:
        return true;
    case V_LIST:
    case V_TUPLE:
        for (size_t i = 0; i < v.list->n; i++)
            if (!has_safe_repr(vm, v.list->items[i]))
                return false;
        return !v.list->group;
    case V_DICT:
        for (size_t i = 0; i < v.dict->n; i++)
            if (!has_safe_repr(vm, v.dict->entries[i].key) ||
                !has_safe_repr(vm, v.dict->entries[i].value))
                return false;
        return true;
    default:
        return false;
    }
}

/* The first float in @v that is written as a name. */
static bool find_name(Value v, double *out)
{
    bool found = v.type == V_FLOAT && !isfinite(v.f);

    if (found)
        *out = v.f;
    if (v.type == V_LIST || v.type == V_TUPLE)
        for (size_t i = 0; i < v.list->n && !found; i++)
            found = find_name(v.list->items[i], out);
    if (v.type == V_DICT)
        for (size_t i = 0; i < v.dict->n && !found; i++)
            found = find_name(v.dict->entries[i].key, out) ||
                    find_name(v.dict->entries[i].value, out);
    return found;
}

static void check_dict(Parser *p, Vm *vm, const Node *node)
{
    Value v;

    for (const Node *key = node->list.first; key; key = key->next->next)
        if (!as_const(p, vm, key, false, &v) || !as_const(p, vm, key->next, false, &v))
            return;
    if (!as_const(p, vm, node, false, &v) && vm->kind == FAIL_RAISED)
        tmpl_syntax(p, node->at, node->end, "%s", vm->message);
}

/* ---- the walk ---- */

static void fold(Parser *p, Vm *vm, Node *node, bool inside);

static void fold_list(Parser *p, Vm *vm, const NodeList *list, bool inside)
{
    for (Node *node = list->first; node; node = node->next)
        fold(p, vm, node, inside);
}

static void check_keywords(Parser *p, const Node *node)
{
    for (const Node *a = node->list.first; a; a = a->next)
        for (const Node *b = a->next; b && a->op == ARG_KEYWORD; b = b->next)
            if (b->op == ARG_KEYWORD && tmpl_str_equal(a->name, b->name))
                tmpl_syntax(p, b->at, b->end, "the keyword argument %.*s is repeated",
                            TMPL_SHOW(b->name));
}

/* What is a constant by now: how does it stand in Python's source? */
static void check_constant(Parser *p, Vm *vm, Node *node)
{
    const Node big = *node;
    double f = 0;
    Value v;

    if (find_name(node->value, &f)) {
        node->kind = N_UNKNOWN;
        node->name = tmpl_str(p->arena, isnan(f) ? "nan" : "inf", 3);
    } else if (node->value.type == V_BIG && !as_const(p, vm, &big, true, &v) &&
               vm->kind == FAIL_RAISED) {
        tmpl_syntax(p, node->at, node->end, "%s", vm->message);
    }
}

/* The expressions that jinja2's compiler gives to its optimizer, and with them all inside. */
static bool is_optimized(const Node *node)
{
    switch (node->kind) {
    case N_ATTR:
    case N_ITEM:
    case N_SLICE:
    case N_CALL:
    case N_FILTER:
    case N_TEST:
    case N_NOT:
    case N_NEG:
    case N_POS:
    case N_BINARY:
    case N_AND:
    case N_OR:
    case N_COMPARE:
    case N_CONCAT:
    case N_COND:
        return true;
    default:
        return false;
    }
}

static bool is_literal(const Node *node)
{
    return node->kind == N_LIST || node->kind == N_TUPLE || node->kind == N_DICT;
}

static void fold_children(Parser *p, Vm *vm, Node *node, bool inside)
{
    fold(p, vm, node->a, inside);
    fold(p, vm, node->b, inside);
    fold(p, vm, node->c, inside);
    fold(p, vm, node->d, inside);
    fold_list(p, vm, &node->list, inside);
}

static void fold(Parser *p, Vm *vm, Node *node, bool inside)
{
    Value v;

    if (!node || node->kind == N_NAME || node->kind == N_NSREF || node->kind == N_UNKNOWN)
        return;
    inside |= is_optimized(node);
    fold_children(p, vm, node, inside);
    if (inside && node->kind == N_DICT)
        check_dict(p, vm, node);
    if (inside && (is_optimized(node) || is_literal(node)) && as_const(p, vm, node, false, &v) &&
        has_safe_repr(vm, v)) {
        node->kind = N_CONST;
        node->value = v;
    }
    if (node->kind == N_CALL || node->kind == N_FILTER || node->kind == N_TEST)
        check_keywords(p, node);
}

/* Constants that were folded into larger ones are looked at only there. */
static void settle(Parser *p, Vm *vm, Node *node)
{
    if (!node)
        return;
    if (node->kind == N_CONST) {
        check_constant(p, vm, node);
        return;
    }
    settle(p, vm, node->a);
    settle(p, vm, node->b);
    settle(p, vm, node->c);
    settle(p, vm, node->d);
    for (Node *item = node->list.first; item; item = item->next)
        settle(p, vm, item);
}

static void expression(Parser *p, Vm *vm, Node *node)
{
    fold(p, vm, node, false);
    settle(p, vm, node);
}

/* What is printed is text when it is compiled, if it can be. */
static void output(Parser *p, Vm *vm, Node *node)
{
    Value v;

    if (as_const(p, vm, node, true, &v)) {
        node->kind = N_CONST;
        node->value = v;
        return;
    }
    expression(p, vm, node);
}

static void statements(Parser *p, Vm *vm, const NodeList *list);

static void statement(Parser *p, Vm *vm, Node *node)
{
    switch (node->kind) {
    case N_OUTPUT:
        output(p, vm, node->a);
        return;
    case N_PRINT:
        for (Node *item = node->list.first; item; item = item->next)
            output(p, vm, item);
        return;
    case N_IF:
        for (Node *part = node; part; part = part->b) {
            expression(p, vm, part->a);
            statements(p, vm, &part->body);
        }
        statements(p, vm, &node->other);
        return;
    case N_BLOCK: /* b is another block */
    case N_TEXT:
        break;
    default:
        expression(p, vm, node->a);
        expression(p, vm, node->b);
        expression(p, vm, node->c);
        for (Node *item = node->list.first; item; item = item->next)
            expression(p, vm, item);
        for (uint32_t i = 0; i < node->n_params; i++)
            expression(p, vm, node->params[i].fallback);
    }
    statements(p, vm, &node->body);
    statements(p, vm, &node->other);
}

static void statements(Parser *p, Vm *vm, const NodeList *list)
{
    for (Node *node = list->first; node; node = node->next)
        statement(p, vm, node);
}

void tmpl_fold(Parser *p)
{
    Vm *vm = tmpl_new(p->arena, Vm);

    *vm = (Vm){.t = p->t,
               .folding = true,
               .max_steps = FOLD_STEPS,
               .max_output = FOLD_OUTPUT,
               .limit = p->arena->total + FOLD_MEMORY};
    statements(p, vm, &p->t->body);
}
