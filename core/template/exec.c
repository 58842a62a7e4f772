/* SPDX-License-Identifier: Apache-2.0
 * Statements. */
#include "template/text.h"

#include <string.h>

/* ---- scopes ---- */

Scope *tmpl_scope_new(Vm *vm, Scope *parent, const Frame *frame)
{
    Scope *scope = tmpl_new(&vm->arena, Scope);

    *scope = (Scope){parent, frame, tmpl_new_n(&vm->arena, Value, MAX(frame->n, 1)),
                     parent ? parent->context : vm->context};
    return scope;
}

void tmpl_scope_enter(Vm *vm, Scope *scope)
{
    const Frame *frame = scope->frame;

    tmpl_step(vm, frame->n / 8);
    for (uint32_t i = 0; i < frame->n; i++) {
        const Sym *sym = &frame->syms[i];
        const Scope *from = scope->parent;
        const Value *v;

        switch (sym->load) {
        case LOAD_PARAM:
            break;
        case LOAD_RESOLVE:
            v = tmpl_dict_get_str(vm, scope->context, sym->name);
            scope->slots[i] = v ? *v : tmpl_missing();
            break;
        case LOAD_ALIAS:
            for (uint32_t hops = sym->hops; hops; hops--)
                from = from->parent;
            scope->slots[i] = from->slots[sym->slot];
            break;
        case LOAD_MISSING:
            scope->slots[i] = tmpl_missing();
            break;
        }
    }
}

static uint32_t slot_of(const Frame *frame, const Str *name)
{
    for (uint32_t i = 0; i < frame->n; i++)
        if (frame->syms[i].name == name)
            return i;
    g_assert_not_reached(); /* targets are parameters of their frame */
}

/* ---- output ---- */

static void check_output(Vm *vm)
{
    if (vm->out->n > vm->max_output)
        tmpl_limit(vm, "the output is longer than %" G_GUINT64_FORMAT " bytes",
                   vm->max_output);
}

static void output(Vm *vm, const Str *s)
{
    tmpl_sb_add_str(vm->out, s);
    tmpl_step(vm, s->n / 64);
    check_output(vm);
}

/* What a filter or call block gives is joined with the text round it: it must be text. */
static void output_joined(Vm *vm, Value v)
{
    if (v.type != V_STR)
        tmpl_raise(vm, "TypeError: sequence item: expected str instance, %s found",
                   tmpl_type_name(v));
    output(vm, v.s);
}

Str *tmpl_exec_caught(Vm *vm, Scope *scope, const NodeList *list)
{
    Sb caught = {.arena = &vm->arena}, *outer = vm->out;

    vm->out = &caught;
    tmpl_exec(vm, scope, list);
    vm->out = outer;
    return tmpl_sb_take(&caught);
}

/* ---- loops ---- */

/* Draws from what the loop is over, past the items that the test rejects. */
typedef struct Tested {
    Iter inner;
    const Node *node;
    Scope *scope; /* of the test */
} Tested;

static void assign_by_name(Vm *vm, Scope *scope, const Node *target, Value value)
{
    size_t i = 0;
    List *items;

    if (target->kind == N_NAME) {
        scope->slots[slot_of(scope->frame, target->name)] = value;
        return;
    }
    items = tmpl_to_list(vm, value);
    if (items->n != target->list.n)
        tmpl_raise(vm, "ValueError: %zu values to unpack into %u names", items->n,
                   target->list.n);
    for (const Node *item = target->list.first; item; item = item->next)
        assign_by_name(vm, scope, item, items->items[i++]);
}

static bool next_tested(Vm *vm, Iter *iter, Value *out)
{
    Tested *tested = iter->state;

    while (tmpl_next_value(vm, &tested->inner, out)) {
        assign_by_name(vm, tested->scope, tested->node->a, *out);
        if (tmpl_truth(vm, tmpl_eval(vm, tested->scope, tested->node->c)))
            return true;
    }
    return false;
}

static void start_loop(Vm *vm, Loop *loop, Scope *scope, const Node *node, Value iterable)
{
    vm->at = node;
    tmpl_iter(vm, iterable, &loop->iter);
    if (!node->c)
        return;
    Tested *tested = tmpl_new(&vm->arena, Tested);
    *tested = (Tested){loop->iter, node, tmpl_scope_new(vm, scope, node->test_frame)};
    tmpl_scope_enter(vm, tested->scope);
    loop->iter = (Iter){.next = next_tested, .state = tested};
}

Flow tmpl_exec_for(Vm *vm, Scope *scope, const Node *node, Value iterable, uint32_t depth0)
{
    Loop *loop = tmpl_new(&vm->arena, Loop);
    Scope *inner = tmpl_scope_new(vm, scope, node->frame);
    bool any = false;
    Value item;

    *loop = (Loop){.node = node, .scope = scope, .iterable = iterable, .index0 = -1,
                   .length = -1, .depth0 = depth0, .recursive = node->op};
    start_loop(vm, loop, scope, node, iterable);
    while (tmpl_loop_next(vm, loop, &item)) {
        tmpl_assign(vm, inner, node->a, item);
        if (node->extended)
            inner->slots[0] = (Value){.type = V_LOOP, .loop = loop};
        tmpl_scope_enter(vm, inner);
        const Flow flow = tmpl_exec(vm, inner, &node->body);
        any |= flow == FLOW_ON; /* jinja notes an item at the end of the body only */
        if (flow == FLOW_BREAK)
            break;
    }
    if (any || !node->other.n)
        return FLOW_ON;
    inner = tmpl_scope_new(vm, scope, node->else_frame);
    tmpl_scope_enter(vm, inner);
    return tmpl_exec(vm, inner, &node->other);
}

/* ---- blocks ---- */

static Flow exec_if(Vm *vm, Scope *scope, const Node *node)
{
    for (const Node *part = node; part; part = part->b) {
        if (!tmpl_truth(vm, tmpl_eval(vm, scope, part->a)))
            continue;
        return tmpl_exec(vm, scope, &part->body);
    }
    return tmpl_exec(vm, scope, &node->other);
}

static Scope *inner_scope(Vm *vm, Scope *scope, const Node *node)
{
    Scope *inner = tmpl_scope_new(vm, scope, node->frame);

    tmpl_scope_enter(vm, inner);
    return inner;
}

/* The filter @node on @text: its innermost value is NULL. */
static Value filter_text(Vm *vm, Scope *scope, const Node *node, Str *text)
{
    Value value = tmpl_string(text);
    FilterFn *fn = tmpl_filter_find(node->name);
    Args args;

    if (node->a)
        value = filter_text(vm, scope, node->a, text);
    vm->at = node;
    if (!fn)
        tmpl_raise(vm, "TemplateRuntimeError: no filter named '%.*s'", TMPL_SHOW(node->name));
    tmpl_args_of(vm, scope, &node->list, &args);
    vm->at = node;
    return fn(vm, value, &args);
}

/* Runs the body of a block and gives its output; *out_flow is not ON when it was left by
 * break or continue, and nothing more happens then. */
static Str *caught_body(Vm *vm, Scope *inner, const Node *node, Flow *out_flow)
{
    Sb caught = {.arena = &vm->arena}, *outer = vm->out;

    vm->out = &caught;
    *out_flow = tmpl_exec(vm, inner, &node->body);
    vm->out = outer;
    return tmpl_sb_take(&caught);
}

/* What is set outside all blocks is seen inside them. */
static void export_target(Vm *vm, const Scope *scope, const Node *target)
{
    if (!vm->t->blocks || scope != vm->root)
        return;
    if (target->kind == N_NAME || target->kind == N_MACRO)
        tmpl_dict_set(vm, vm->context, tmpl_string(target->name), scope->slots[target->slot]);
    for (const Node *item = target->list.first; item; item = item->next)
        export_target(vm, scope, item);
}

static Flow exec_set_block(Vm *vm, Scope *scope, const Node *node)
{
    Scope *inner = inner_scope(vm, scope, node);
    Flow flow;
    Str *text = caught_body(vm, inner, node, &flow);
    Value value = tmpl_string(text);

    if (flow != FLOW_ON)
        return flow;
    if (node->b)
        value = filter_text(vm, inner, node->b, text);
    tmpl_assign(vm, scope, node->a, value);
    export_target(vm, scope, node->a);
    return FLOW_ON;
}

static Flow exec_filter_block(Vm *vm, Scope *scope, const Node *node)
{
    Scope *inner = inner_scope(vm, scope, node);
    Flow flow;
    Str *text = caught_body(vm, inner, node, &flow);

    if (flow == FLOW_ON)
        output_joined(vm, filter_text(vm, inner, node->a, text));
    return flow;
}

static Flow exec_with(Vm *vm, Scope *scope, const Node *node)
{
    Scope *inner = tmpl_scope_new(vm, scope, node->frame);

    tmpl_scope_enter(vm, inner);
    for (const Node *target = node->list.first; target; target = target->next->next)
        tmpl_assign(vm, inner, target, tmpl_eval(vm, scope, target->next));
    return tmpl_exec(vm, inner, &node->body);
}

/* {% generation %} is a call block whose callee only calls back. */
static void exec_generation(Vm *vm, Scope *scope, const Node *node)
{
    const Macro body = {node, scope};
    const Args none = {0};
    const Value text = tmpl_call_macro(vm, &body, &none);
    const size_t start = vm->out->n;

    output(vm, text.s);
    if (vm->out != vm->top) /* caught output has no place in the rendering yet */
        return;
    if (vm->n_spans == vm->cap_spans) {
        DavitOutputSpan *spans = tmpl_new_n(&vm->arena, DavitOutputSpan, vm->cap_spans * 2 + 16);

        if (vm->n_spans)
            memcpy(spans, vm->spans, vm->n_spans * sizeof *spans);
        vm->spans = spans;
        vm->cap_spans = vm->cap_spans * 2 + 16;
    }
    vm->spans[vm->n_spans++] = (DavitOutputSpan){start, vm->out->n};
}

static Value macro_value(Vm *vm, Scope *scope, const Node *node)
{
    Macro *macro = tmpl_new(&vm->arena, Macro);

    *macro = (Macro){node, scope};
    return (Value){.type = V_MACRO, .macro = macro};
}

static void exec_call_block(Vm *vm, Scope *scope, const Node *node)
{
    const Value callee = tmpl_eval(vm, scope, node->a->a);
    Args args, with;

    tmpl_args_of(vm, scope, &node->a->list, &args);
    with = args;
    with.names = tmpl_new_n(&vm->arena, Str *, args.n_named + 1);
    with.values = tmpl_new_n(&vm->arena, Value, args.n_named + 1);
    for (size_t i = 0; i < args.n_named; i++) {
        with.names[i] = args.names[i];
        with.values[i] = args.values[i];
    }
    with.names[args.n_named] = tmpl_str(&vm->arena, "caller", 6);
    with.values[args.n_named] = macro_value(vm, scope, node);
    with.n_named++;
    vm->at = node->a;
    output_joined(vm, tmpl_call(vm, callee, &with));
}

/* ---- several templates, of which there is only this one ---- */

/* The context of a scoped block: the variables of all scopes round it, inner ones first. */
static Dict *scoped_context(Vm *vm, const Scope *scope)
{
    Dict *context = tmpl_dict_copy(vm, scope->context);
    Dict *inner = tmpl_dict_new(vm);

    for (; scope; scope = scope->parent) {
        for (uint32_t i = 0; i < scope->frame->n; i++) {
            const Sym *sym = &scope->frame->syms[i];

            tmpl_step(vm, 1);
            if (!sym->stored || tmpl_dict_get_str(vm, inner, sym->name))
                continue;
            tmpl_dict_set(vm, inner, tmpl_string(sym->name), scope->slots[i]);
            if (scope->slots[i].type != V_MISSING)
                tmpl_dict_set(vm, context, tmpl_string(sym->name), scope->slots[i]);
        }
    }
    return context;
}

static void exec_block(Vm *vm, const Scope *scope, const Node *node)
{
    Scope *inner;

    if (node->op & BLOCK_REQUIRED)
        tmpl_raise(vm, "TemplateRuntimeError: required block '%.*s' not found",
                   TMPL_SHOW(node->name));
    inner = tmpl_scope_new(vm, NULL, node->frame);
    inner->context = node->op & BLOCK_SCOPED ? scoped_context(vm, scope) : scope->context;
    tmpl_scope_enter(vm, inner);
    tmpl_exec(vm, inner, &node->body);
}

/* extends, include, import: transformers' environment has nothing to load from. */
static void exec_other_template(Vm *vm, Scope *scope, const Node *node)
{
    const Value name = tmpl_eval(vm, scope, node->a);

    vm->at = node;
    if (node->kind == N_INCLUDE && name.type != V_STR && name.type != V_UNDEFINED &&
        !tmpl_truth(vm, name)) {
        if (node->op)
            return; /* a list without names has nothing missing */
        tmpl_raise(vm, "TemplatesNotFound: tried to select from an empty list of templates");
    }
    tmpl_raise(vm, "TypeError: no loader for this environment specified");
}

static void exec_print(Vm *vm, Scope *scope, const Node *node)
{
    for (const Node *item = node->list.first; item; item = item->next) {
        tmpl_print(vm, vm->out, tmpl_eval(vm, scope, item));
        check_output(vm);
    }
}

static Flow exec_for(Vm *vm, Scope *scope, const Node *node)
{
    const Value iterable = tmpl_eval(vm, scope, node->b);

    if (!node->op)
        return tmpl_exec_for(vm, scope, node, iterable, 0);
    output(vm, tmpl_recurse(vm, scope, node, iterable, 0).s);
    return FLOW_ON;
}

static Flow exec_one(Vm *vm, Scope *scope, const Node *node)
{
    switch (node->kind) {
    case N_TEXT:
        output(vm, node->text);
        return FLOW_ON;
    case N_OUTPUT:
        tmpl_print(vm, vm->out, tmpl_eval(vm, scope, node->a));
        check_output(vm);
        return FLOW_ON;
    case N_PRINT:
        exec_print(vm, scope, node);
        return FLOW_ON;
    case N_FOR:
        return exec_for(vm, scope, node);
    case N_IF:
        return exec_if(vm, scope, node);
    case N_SET:
        tmpl_assign(vm, scope, node->a, tmpl_eval(vm, scope, node->b));
        export_target(vm, scope, node->a);
        return FLOW_ON;
    case N_SET_BLOCK:
        return exec_set_block(vm, scope, node);
    case N_MACRO:
        scope->slots[node->slot] = macro_value(vm, scope, node);
        export_target(vm, scope, node);
        return FLOW_ON;
    case N_CALL_BLOCK:
        exec_call_block(vm, scope, node);
        return FLOW_ON;
    case N_FILTER_BLOCK:
        return exec_filter_block(vm, scope, node);
    case N_WITH:
        return exec_with(vm, scope, node);
    case N_GENERATION:
        exec_generation(vm, scope, node);
        return FLOW_ON;
    case N_BLOCK:
        exec_block(vm, scope, node);
        return FLOW_ON;
    case N_EXTENDS:
    case N_INCLUDE:
    case N_IMPORT:
        exec_other_template(vm, scope, node);
        return FLOW_ON;
    case N_BREAK:
        return FLOW_BREAK;
    default:
        return FLOW_CONTINUE;
    }
}

Flow tmpl_exec(Vm *vm, Scope *scope, const NodeList *list)
{
    Flow flow = FLOW_ON;

    if (++vm->depth > MAX_EVALS)
        tmpl_limit(vm, "nested too deep");
    for (const Node *node = list->first; node && flow == FLOW_ON; node = node->next) {
        tmpl_step(vm, 1);
        vm->at = node;
        flow = exec_one(vm, scope, node);
    }
    vm->depth--;
    return flow;
}
