/* SPDX-License-Identifier: Apache-2.0
 * Every use of a name gets its frame and slot; unknown filters and tests are refused.
 * Source: jinja2 3.1.6 compiler.py. */
#include "template/symbols.h"

#include <string.h>

#include "template/run.h"

static Str *interned(Parser *p, const char *text)
{
    const Str s = {.p = text, .n = (uint32_t)strlen(text)};

    return tmpl_intern(p, &s);
}

static void resolve(Parser *p, Frame *frame, Node *node);

static void resolve_list(Parser *p, Frame *frame, const NodeList *list)
{
    for (Node *node = list->first; node; node = node->next)
        resolve(p, frame, node);
}

/* Where a use of @name from @frame finds it; false when nobody defines it. */
static bool locate(Parser *p, Frame *frame, const Str *name, uint32_t *out_hops,
                   uint32_t *out_slot)
{
    const Sym *sym = tmpl_sym_find(p, frame, name, out_hops);

    if (!sym)
        return false;
    for (uint32_t i = 0; i < *out_hops; i++)
        frame = frame->parent;
    *out_slot = (uint32_t)(sym - frame->syms);
    return true;
}

/* The frame's names are complete: tell aliases where they copy from. */
static void finish(Parser *p, Frame *frame)
{
    for (uint32_t i = 0; i < frame->n; i++) {
        Sym *sym = &frame->syms[i];

        if (sym->load == LOAD_ALIAS)
            locate(p, frame->parent, sym->name, &sym->hops, &sym->slot);
    }
}

static void bind(Parser *p, Frame *frame, Node *node)
{
    if (!locate(p, frame, node->name, &node->hops, &node->slot))
        tmpl_syntax(p, node->at, node->end,
                    "the name is not known in the filter of a set block");
}

/* A block's own frame with its body: analyse, then resolve. */
static void own_body(Parser *p, Frame *frame, Node *node)
{
    const bool soft = p->soft;

    p->soft = false;
    finish(p, frame);
    resolve_list(p, frame, &node->body);
    p->soft = soft;
}

/* Does a scoped block stand inside @node? */
static bool has_scoped(const Parser *p, const Node *node)
{
    for (const Node *block = p->t->blocks; block; block = block->b)
        if ((block->op & BLOCK_SCOPED) && block->at > node->at && block->at < node->end)
            return true;
    return false;
}

static void resolve_for(Parser *p, Frame *frame, Node *node)
{
    const bool soft = p->soft;
    Str *loop = interned(p, "loop");

    resolve(p, frame, node->b);
    node->frame = tmpl_frame_new(p, frame);
    node->extended =
        node->op || tmpl_first_use(p, &node->body, loop) == 1 || has_scoped(p, node);
    if (node->extended)
        tmpl_sym_declare(p, node->frame, loop);
    tmpl_declare_target(p, node->frame, node->a);
    tmpl_visit_list(p, node->frame, &node->body);
    p->soft = false;
    finish(p, node->frame);
    resolve(p, node->frame, node->a);
    if (node->c) {
        node->test_frame = tmpl_frame_new(p, frame);
        tmpl_declare_target(p, node->test_frame, node->a);
        tmpl_visit(p, node->test_frame, node->c);
        finish(p, node->test_frame);
        resolve(p, node->test_frame, node->c);
    }
    resolve_list(p, node->frame, &node->body);
    if (node->other.n) {
        node->else_frame = tmpl_frame_new(p, frame);
        tmpl_visit_list(p, node->else_frame, &node->other);
        finish(p, node->else_frame);
        resolve_list(p, node->else_frame, &node->other);
    }
    p->soft = soft;
}

static int32_t slot_of(Parser *p, Frame *frame, Str *name)
{
    return (int32_t)(tmpl_sym_own(p, frame, name) - frame->syms);
}

static void resolve_macro(Parser *p, Frame *frame, Node *node)
{
    static const char *const specials[] = {"caller", "kwargs", "varargs"};
    Frame *inner = node->frame = tmpl_frame_new(p, frame);
    bool used[3] = {false}, given[3] = {false};

    for (uint32_t i = 0; i < node->n_params; i++)
        tmpl_sym_declare(p, inner, node->params[i].name);
    for (uint32_t i = 0; i < node->n_params; i++)
        tmpl_visit(p, inner, node->params[i].fallback);
    tmpl_visit_list(p, inner, &node->body);
    for (int k = 0; k < 3; k++) {
        Str *name = interned(p, specials[k]);

        used[k] = tmpl_first_use(p, &node->body, name) == 1;
        for (uint32_t i = 0; i < node->n_params; i++)
            if (node->params[i].name == name) {
                given[k] = true;
                if (k == 0 && used[k] && !node->params[i].fallback)
                    tmpl_syntax(p, node->at, node->end,
                                "the parameter caller must be omitted or have a default");
            }
        if (used[k] && !given[k])
            tmpl_sym_declare(p, inner, name);
    }
    for (uint32_t i = 0; i < node->n_params; i++)
        node->params[i].slot = (uint32_t)slot_of(p, inner, node->params[i].name);
    if (used[0])
        node->caller_slot = slot_of(p, inner, interned(p, "caller"));
    if (used[1] && !given[1])
        node->kwargs_slot = slot_of(p, inner, interned(p, "kwargs"));
    if (used[2] && !given[2])
        node->varargs_slot = slot_of(p, inner, interned(p, "varargs"));
    for (uint32_t i = 0; i < node->n_params; i++)
        if (node->params[i].fallback) {
            const bool soft = p->soft;

            p->soft = false;
            resolve(p, inner, node->params[i].fallback);
            p->soft = soft;
        }
    own_body(p, inner, node);
}

/* `self` and `super` are what a template that extends another needs. */
static void refuse_name(Parser *p, const NodeList *body, const char *text)
{
    if (tmpl_first_use(p, body, interned(p, text)) == 1)
        tmpl_syntax_unsupported(p, p->used->at, p->used->end,
                                "the name %s, which means the template's blocks", text);
}

static void resolve_block(Parser *p, Node *node)
{
    refuse_name(p, &node->body, "self");
    refuse_name(p, &node->body, "super");
    node->frame = tmpl_frame_new(p, NULL);
    tmpl_visit_list(p, node->frame, &node->body);
    own_body(p, node->frame, node);
}

static void resolve_with(Parser *p, Frame *frame, Node *node)
{
    node->frame = tmpl_frame_new(p, frame);
    for (Node *target = node->list.first; target; target = target->next->next) {
        resolve(p, frame, target->next);
        tmpl_declare_target(p, node->frame, target);
    }
    tmpl_visit_list(p, node->frame, &node->body);
    finish(p, node->frame);
    for (Node *target = node->list.first; target; target = target->next->next)
        resolve(p, node->frame, target);
    own_body(p, node->frame, node);
}

/* Bodies whose output is caught: {% filter %} and {% set %}. */
static void resolve_caught(Parser *p, Frame *frame, Node *node, Node *filter)
{
    const bool soft = p->soft;

    node->frame = tmpl_frame_new(p, frame);
    tmpl_visit_list(p, node->frame, &node->body);
    if (node->kind == N_FILTER_BLOCK)
        tmpl_visit(p, node->frame, filter);
    own_body(p, node->frame, node);
    p->soft = false;
    resolve(p, node->frame, filter);
    p->soft = soft;
}

static void check_known(Parser *p, const Node *node)
{
    const bool filter = node->kind == N_FILTER;

    if (p->soft || (filter ? tmpl_filter_find(node->name) != NULL
                           : tmpl_test_find(node->name) != NULL))
        return;
    tmpl_syntax_unsupported(p, node->at, node->end, "there is no %s named %.*s",
                            filter ? "filter" : "test", (int)MIN(node->name->n, 60),
                            node->name->p);
}

static void resolve_if(Parser *p, Frame *frame, Node *node)
{
    const bool soft = p->soft;

    p->soft = true;
    for (Node *part = node; part; part = part->b) {
        resolve(p, frame, part->a);
        resolve_list(p, frame, &part->body);
    }
    resolve_list(p, frame, &node->other);
    p->soft = soft;
}

static void resolve_children(Parser *p, Frame *frame, Node *node)
{
    const bool soft = p->soft;

    p->soft |= node->kind == N_COND;
    resolve(p, frame, node->a);
    resolve(p, frame, node->b);
    resolve(p, frame, node->c);
    resolve(p, frame, node->d);
    resolve_list(p, frame, &node->list);
    p->soft = soft;
}

static void resolve(Parser *p, Frame *frame, Node *node)
{
    if (!node)
        return;
    switch (node->kind) {
    case N_NAME:
    case N_NSREF:
        bind(p, frame, node);
        return;
    case N_FOR:
        resolve_for(p, frame, node);
        return;
    case N_IF:
        resolve_if(p, frame, node);
        return;
    case N_MACRO:
        node->slot = (uint32_t)slot_of(p, frame, node->name);
        resolve_macro(p, frame, node);
        return;
    case N_CALL_BLOCK:
        resolve(p, frame, node->a);
        resolve_macro(p, frame, node);
        return;
    case N_GENERATION:
        resolve_macro(p, frame, node);
        return;
    case N_WITH:
        resolve_with(p, frame, node);
        return;
    case N_BLOCK:
        resolve_block(p, node);
        return;
    case N_EXTENDS:
        if (frame->parent || frame != p->t->root)
            tmpl_syntax(p, node->at, node->end, "extends outside the top level");
        break;
    case N_SET_BLOCK:
        resolve(p, frame, node->a);
        resolve_caught(p, frame, node, node->b);
        return;
    case N_FILTER_BLOCK:
        resolve_caught(p, frame, node, node->a);
        return;
    case N_FILTER:
    case N_TEST:
        check_known(p, node);
        break;
    default:
        break;
    }
    resolve_children(p, frame, node);
}

void tmpl_resolve_names(Parser *p)
{
    refuse_name(p, &p->t->body, "self");
    p->t->root = tmpl_frame_new(p, NULL);
    tmpl_visit_list(p, p->t->root, &p->t->body);
    finish(p, p->t->root);
    resolve_list(p, p->t->root, &p->t->body);
}
