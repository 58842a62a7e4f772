/* SPDX-License-Identifier: Apache-2.0
 * Which variable a name means. jinja2 decides that when it compiles, frame by frame, before
 * it knows values; names are therefore resolved here in the same two steps: analyse a frame
 * (which names it defines and how they start), then give each use its frame and slot.
 * Source: jinja2 3.1.6 idtracking.py and compiler.py. */
#include "template/parser.h"

#include <string.h>

#include "template/run.h"

#define MAX_WORK 50000000u /* look-ups; real templates need some thousands */

/* ---- frames ---- */

static Frame *frame_new(Parser *p, Frame *parent)
{
    Frame *frame = tmpl_new(p->arena, Frame);

    if (++p->t->n_frames > DAVIT_TEMPLATE_MAX_NAMES * 16)
        tmpl_syntax_unsupported(p, 0, 0, "more than %u blocks",
                                DAVIT_TEMPLATE_MAX_NAMES * 16);
    frame->parent = parent;
    return frame;
}

static Sym *own(Parser *p, Frame *frame, const Str *name)
{
    p->work += frame->n + 1;
    if (p->work > MAX_WORK)
        tmpl_syntax_unsupported(p, 0, 0, "too many names in too many blocks");
    for (uint32_t i = 0; i < frame->n; i++)
        if (frame->syms[i].name == name)
            return &frame->syms[i];
    return NULL;
}

static Sym *find_ref(Parser *p, Frame *frame, const Str *name, uint32_t *out_hops)
{
    for (*out_hops = 0; frame; frame = frame->parent, ++*out_hops) {
        Sym *sym = own(p, frame, name);

        if (sym)
            return sym;
    }
    return NULL;
}

static Sym *define(Parser *p, Frame *frame, Str *name, SymLoad load)
{
    Sym *sym = own(p, frame, name);

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
    Sym *sym = own(p, frame, name);

    if (!sym)
        sym = define(p, frame, name,
                     frame->parent && find_ref(p, frame->parent, name, &hops)
                         ? LOAD_ALIAS
                         : LOAD_MISSING);
    sym->stored = true;
}

static void load(Parser *p, Frame *frame, Str *name)
{
    uint32_t hops;

    if (!find_ref(p, frame, name, &hops))
        define(p, frame, name, LOAD_RESOLVE);
}

static void declare(Parser *p, Frame *frame, Str *name)
{
    define(p, frame, name, LOAD_PARAM)->stored = true;
}

/* ---- analysis ---- */

static void visit(Parser *p, Frame *frame, Node *node);

static void visit_list(Parser *p, Frame *frame, const NodeList *list)
{
    for (Node *node = list->first; node; node = node->next)
        visit(p, frame, node);
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
        const Sym *was = own(p, &old, sym->name);
        uint32_t hops;

        if (sym->stored && !(was && was->stored))
            sym->load = frame->parent && find_ref(p, frame->parent, sym->name, &hops)
                            ? LOAD_ALIAS
                            : LOAD_RESOLVE;
    }
}

static void visit_if(Parser *p, Frame *frame, Node *node)
{
    Frame branches[3];

    visit(p, frame, node->a);
    branches[0] = copy_of(p, frame);
    visit_list(p, &branches[0], &node->body);
    branches[1] = copy_of(p, frame);
    for (Node *elif = node->b; elif; elif = elif->b) {
        Frame one[1];

        visit(p, &branches[1], elif->a);
        one[0] = copy_of(p, &branches[1]);
        visit_list(p, &one[0], &elif->body);
        merge(p, &branches[1], one, 1);
    }
    branches[2] = copy_of(p, frame);
    visit_list(p, &branches[2], &node->other);
    merge(p, frame, branches, 3);
}

static void visit(Parser *p, Frame *frame, Node *node)
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
        visit(p, frame, node->b);
        return;
    case N_IF:
        visit_if(p, frame, node);
        return;
    case N_SET:
        visit(p, frame, node->b);
        visit(p, frame, node->a);
        return;
    case N_MACRO:
        store(p, frame, node->name);
        return;
    case N_SET_BLOCK:
    case N_CALL_BLOCK:
    case N_FILTER_BLOCK:
        visit(p, frame, node->a);
        return;
    case N_WITH:
        for (Node *target = node->list.first; target; target = target->next->next)
            visit(p, frame, target->next);
        return;
    case N_COND: /* test first, as jinja's fields lie */
    default:
        visit(p, frame, node->a);
        visit(p, frame, node->b);
        visit(p, frame, node->c);
        visit(p, frame, node->d);
        visit_list(p, frame, &node->list);
    }
}

/* Names of a target as parameters of @frame. */
static void declare_target(Parser *p, Frame *frame, Node *target)
{
    if (target->kind == N_NAME)
        declare(p, frame, target->name);
    for (Node *item = target->list.first; item; item = item->next)
        declare_target(p, frame, item);
}

/* First use of @name in the order of jinja's fields: 0 none, 1 loaded, 2 stored. */
static int first_use(Parser *p, const Node *node, const Str *name);

static int first_in_list(Parser *p, const NodeList *list, const Str *name)
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
    if (node->kind == N_NAME)
        return node->name != name ? 0 : node->op ? 2 : 1;
    if (node->kind == N_CALL_BLOCK)
        use = first_use(p, node->a, name);
    for (uint32_t i = 0; i < node->n_params && !use; i++)
        use = node->params[i].name == name ? 2 : 0;
    for (uint32_t i = 0; i < node->n_params && !use; i++)
        use = first_use(p, node->params[i].fallback, name);
    use = use ? use : first_use(p, node->a, name);
    if (node->kind == N_IF) {
        use = use ? use : first_in_list(p, &node->body, name);
        for (const Node *elif = node->b; elif && !use; elif = elif->b) {
            use = first_use(p, elif->a, name);
            use = use ? use : first_in_list(p, &elif->body, name);
        }
        return use ? use : first_in_list(p, &node->other, name);
    }
    use = use ? use : first_use(p, node->b, name);
    if (node->kind != N_FOR)
        use = use ? use : first_use(p, node->c, name);
    use = use ? use : first_use(p, node->d, name);
    use = use ? use : first_in_list(p, &node->list, name);
    use = use ? use : first_in_list(p, &node->body, name);
    use = use ? use : first_in_list(p, &node->other, name);
    return use || node->kind != N_FOR ? use : first_use(p, node->c, name);
}

static Str *interned(Parser *p, const char *text)
{
    const Str s = {.p = text, .n = (uint32_t)strlen(text)};

    return tmpl_intern(p, &s);
}

/* ---- resolution ---- */

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
    const Sym *sym = find_ref(p, frame, name, out_hops);

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

static void resolve_for(Parser *p, Frame *frame, Node *node)
{
    const bool soft = p->soft;
    Str *loop = interned(p, "loop");

    resolve(p, frame, node->b);
    node->frame = frame_new(p, frame);
    node->extended = node->op || first_in_list(p, &node->body, loop) == 1;
    if (node->extended)
        declare(p, node->frame, loop);
    declare_target(p, node->frame, node->a);
    visit_list(p, node->frame, &node->body);
    p->soft = false;
    finish(p, node->frame);
    resolve(p, node->frame, node->a);
    if (node->c) {
        node->test_frame = frame_new(p, frame);
        declare_target(p, node->test_frame, node->a);
        visit(p, node->test_frame, node->c);
        finish(p, node->test_frame);
        resolve(p, node->test_frame, node->c);
    }
    resolve_list(p, node->frame, &node->body);
    if (node->other.n) {
        node->else_frame = frame_new(p, frame);
        visit_list(p, node->else_frame, &node->other);
        finish(p, node->else_frame);
        resolve_list(p, node->else_frame, &node->other);
    }
    p->soft = soft;
}

static int32_t slot_of(Parser *p, Frame *frame, Str *name)
{
    return (int32_t)(own(p, frame, name) - frame->syms);
}

static void resolve_macro(Parser *p, Frame *frame, Node *node)
{
    static const char *const specials[] = {"caller", "kwargs", "varargs"};
    Frame *inner = node->frame = frame_new(p, frame);
    bool used[3] = {false}, given[3] = {false};

    for (uint32_t i = 0; i < node->n_params; i++)
        declare(p, inner, node->params[i].name);
    for (uint32_t i = 0; i < node->n_params; i++)
        visit(p, inner, node->params[i].fallback);
    visit_list(p, inner, &node->body);
    for (int k = 0; k < 3; k++) {
        Str *name = interned(p, specials[k]);

        used[k] = first_in_list(p, &node->body, name) == 1;
        for (uint32_t i = 0; i < node->n_params; i++)
            if (node->params[i].name == name) {
                given[k] = true;
                if (k == 0 && used[k] && !node->params[i].fallback)
                    tmpl_syntax(p, node->at, node->end,
                                "the parameter caller must be omitted or have a default");
            }
        if (used[k] && !given[k])
            declare(p, inner, name);
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

static void resolve_with(Parser *p, Frame *frame, Node *node)
{
    node->frame = frame_new(p, frame);
    for (Node *target = node->list.first; target; target = target->next->next) {
        resolve(p, frame, target->next);
        declare_target(p, node->frame, target);
    }
    visit_list(p, node->frame, &node->body);
    finish(p, node->frame);
    for (Node *target = node->list.first; target; target = target->next->next)
        resolve(p, node->frame, target);
    own_body(p, node->frame, node);
}

/* Bodies whose output is caught: {% filter %} and {% set %}. */
static void resolve_caught(Parser *p, Frame *frame, Node *node, Node *filter)
{
    const bool soft = p->soft;

    node->frame = frame_new(p, frame);
    visit_list(p, node->frame, &node->body);
    if (node->kind == N_FILTER_BLOCK)
        visit(p, node->frame, filter);
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
    p->t->root = frame_new(p, NULL);
    visit_list(p, p->t->root, &p->t->body);
    finish(p, p->t->root);
    resolve_list(p, p->t->root, &p->t->body);
}
