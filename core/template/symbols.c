/* SPDX-License-Identifier: Apache-2.0
 * The names of a frame. Source: jinja2 3.1.6 idtracking.py. */
#include "template/symbols.h"

#include <string.h>

#define MAX_WORK 50000000u /* look-ups; real templates need some thousands */

/* ---- frames ---- */

Frame *tmpl_frame_new(Parser *p, Frame *parent)
{
    Frame *frame = tmpl_new(p->arena, Frame);

    if (++p->t->n_frames > DAVIT_TEMPLATE_MAX_NAMES * 16)
        tmpl_syntax_unsupported(p, 0, 0, "more than %u blocks",
                                DAVIT_TEMPLATE_MAX_NAMES * 16);
    frame->parent = parent;
    return frame;
}

Sym *tmpl_sym_own(Parser *p, Frame *frame, const Str *name)
{
    p->work += frame->n + 1;
    if (p->work > MAX_WORK)
        tmpl_syntax_unsupported(p, 0, 0, "too many names in too many blocks");
    for (uint32_t i = 0; i < frame->n; i++)
        if (frame->syms[i].name == name)
            return &frame->syms[i];
    return NULL;
}

Sym *tmpl_sym_find(Parser *p, Frame *frame, const Str *name, uint32_t *out_hops)
{
    for (*out_hops = 0; frame; frame = frame->parent, ++*out_hops) {
        Sym *sym = tmpl_sym_own(p, frame, name);

        if (sym)
            return sym;
    }
    return NULL;
}

static Sym *define(Parser *p, Frame *frame, Str *name, SymLoad load)
{
    Sym *sym = tmpl_sym_own(p, frame, name);

    if (!sym) {
        if (frame->n == frame->cap) {
            const uint32_t cap = MAX(frame->cap * 2, 8);
            Sym *syms = tmpl_new_n(p->arena, Sym, cap);

            if (frame->n)
                memcpy(syms, frame->syms, frame->n * sizeof *syms);
            frame->syms = syms;
            frame->cap = cap;
        }
        sym = &frame->syms[frame->n++];
        *sym = (Sym){.name = name};
    }
    sym->load = load;
    return sym;
}

static void store(Parser *p, Frame *frame, Str *name)
{
    uint32_t hops;
    Sym *sym = tmpl_sym_own(p, frame, name);

    if (!sym)
        sym = define(p, frame, name,
                     frame->parent && tmpl_sym_find(p, frame->parent, name, &hops)
                         ? LOAD_ALIAS
                         : LOAD_MISSING);
    sym->stored = true;
}

static void load(Parser *p, Frame *frame, Str *name)
{
    uint32_t hops;

    if (!tmpl_sym_find(p, frame, name, &hops))
        define(p, frame, name, LOAD_RESOLVE);
}

void tmpl_sym_declare(Parser *p, Frame *frame, Str *name)
{
    define(p, frame, name, LOAD_PARAM)->stored = true;
}

/* ---- analysis ---- */

void tmpl_visit_list(Parser *p, Frame *frame, const NodeList *list)
{
    for (Node *node = list->first; node; node = node->next)
        tmpl_visit(p, frame, node);
}

static Frame copy_of(Parser *p, const Frame *frame)
{
    Frame copy = *frame;

    copy.syms = tmpl_new_n(p->arena, Sym, MAX(frame->n, 1));
    copy.cap = frame->n;
    if (frame->n)
        memcpy(copy.syms, frame->syms, frame->n * sizeof *frame->syms);
    p->work += frame->n;
    return copy;
}

/* What the branches did to copies of @frame becomes the frame's. */
static void merge(Parser *p, Frame *frame, const Frame *branches, size_t n)
{
    const Frame before = copy_of(p, frame);

    for (size_t b = 0; b < n; b++)
        for (uint32_t i = 0; i < branches[b].n; i++) {
            const Sym *from = &branches[b].syms[i];
            Sym *to = define(p, frame, from->name, from->load);

            to->stored |= from->stored;
        }
    for (uint32_t i = 0; i < frame->n; i++) {
        Sym *sym = &frame->syms[i];
        Frame old = before;
        const Sym *was = tmpl_sym_own(p, &old, sym->name);
        uint32_t hops;

        if (sym->stored && !(was && was->stored))
            sym->load = frame->parent && tmpl_sym_find(p, frame->parent, sym->name, &hops)
                            ? LOAD_ALIAS
                            : LOAD_RESOLVE;
    }
}

static void visit_if(Parser *p, Frame *frame, Node *node)
{
    Frame branches[3];

    tmpl_visit(p, frame, node->a);
    branches[0] = copy_of(p, frame);
    tmpl_visit_list(p, &branches[0], &node->body);
    branches[1] = copy_of(p, frame);
    for (Node *elif = node->b; elif; elif = elif->b) {
        Frame one[1];

        tmpl_visit(p, &branches[1], elif->a);
        one[0] = copy_of(p, &branches[1]);
        tmpl_visit_list(p, &one[0], &elif->body);
        merge(p, &branches[1], one, 1);
    }
    branches[2] = copy_of(p, frame);
    tmpl_visit_list(p, &branches[2], &node->other);
    merge(p, frame, branches, 3);
}

void tmpl_visit(Parser *p, Frame *frame, Node *node)
{
    if (!node)
        return;
    switch (node->kind) {
    case N_NAME:
        (node->op ? store : load)(p, frame, node->name);
        return;
    case N_NSREF:
        load(p, frame, node->name);
        return;
    case N_FOR:
        tmpl_visit(p, frame, node->b);
        return;
    case N_IF:
        visit_if(p, frame, node);
        return;
    case N_SET:
        tmpl_visit(p, frame, node->b);
        tmpl_visit(p, frame, node->a);
        return;
    case N_MACRO:
        store(p, frame, node->name);
        return;
    case N_BLOCK:
        return; /* a frame without a parent */
    case N_SET_BLOCK:
    case N_CALL_BLOCK:
    case N_FILTER_BLOCK:
        tmpl_visit(p, frame, node->a);
        return;
    case N_WITH:
        for (Node *target = node->list.first; target; target = target->next->next)
            tmpl_visit(p, frame, target->next);
        return;
    case N_COND: /* test first, as jinja's fields lie */
    default:
        tmpl_visit(p, frame, node->a);
        tmpl_visit(p, frame, node->b);
        tmpl_visit(p, frame, node->c);
        tmpl_visit(p, frame, node->d);
        tmpl_visit_list(p, frame, &node->list);
    }
}

void tmpl_declare_target(Parser *p, Frame *frame, Node *target)
{
    if (target->kind == N_NAME)
        tmpl_sym_declare(p, frame, target->name);
    for (Node *item = target->list.first; item; item = item->next)
        tmpl_declare_target(p, frame, item);
}

/* First use of @name in the order of jinja's fields: 0 none, 1 loaded, 2 stored. */
static int first_use(Parser *p, const Node *node, const Str *name);

int tmpl_first_use(Parser *p, const NodeList *list, const Str *name)
{
    int use = 0;

    for (const Node *node = list->first; node && !use; node = node->next)
        use = first_use(p, node, name);
    return use;
}

static int first_use(Parser *p, const Node *node, const Str *name)
{
    int use = 0;

    if (!node)
        return 0;
    if (++p->work > MAX_WORK)
        tmpl_syntax_unsupported(p, 0, 0, "too many names in too many blocks");
    if (node->kind == N_NAME) {
        p->used = node->name == name ? node : p->used;
        return node->name != name ? 0 : node->op ? 2 : 1;
    }
    if (node->kind == N_BLOCK)
        return 0;
    if (node->kind == N_CALL_BLOCK)
        use = first_use(p, node->a, name);
    for (uint32_t i = 0; i < node->n_params && !use; i++)
        use = node->params[i].name == name ? 2 : 0;
    for (uint32_t i = 0; i < node->n_params && !use; i++)
        use = first_use(p, node->params[i].fallback, name);
    use = use ? use : first_use(p, node->a, name);
    if (node->kind == N_IF) {
        use = use ? use : tmpl_first_use(p, &node->body, name);
        for (const Node *elif = node->b; elif && !use; elif = elif->b) {
            use = first_use(p, elif->a, name);
            use = use ? use : tmpl_first_use(p, &elif->body, name);
        }
        return use ? use : tmpl_first_use(p, &node->other, name);
    }
    use = use ? use : first_use(p, node->b, name);
    if (node->kind != N_FOR)
        use = use ? use : first_use(p, node->c, name);
    use = use ? use : first_use(p, node->d, name);
    use = use ? use : tmpl_first_use(p, &node->list, name);
    use = use ? use : tmpl_first_use(p, &node->body, name);
    use = use ? use : tmpl_first_use(p, &node->other, name);
    return use || node->kind != N_FOR ? use : first_use(p, node->c, name);
}
