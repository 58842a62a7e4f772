/* SPDX-License-Identifier: Apache-2.0
 * Tokens and nodes for both halves of the parser, and the statements. */
#include "template/parser.h"

#include <stdarg.h>
#include <string.h>

/* ---- tokens ---- */

void tmpl_next(Parser *p)
{
    p->last_end = p->tok.end;
    p->tok = p->has_ahead ? p->ahead : tmpl_lex(p);
    p->has_ahead = false;
}

const Token *tmpl_look(Parser *p)
{
    if (!p->has_ahead)
        p->ahead = tmpl_lex(p);
    p->has_ahead = true;
    return &p->ahead;
}

bool tmpl_at_name(const Parser *p, const char *name)
{
    return p->tok.type == T_NAME && tmpl_str_is(p->tok.str, name);
}

bool tmpl_at_op(const Parser *p, uint32_t op)
{
    return p->tok.type == T_OPERATOR && p->tok.op == op;
}

bool tmpl_skip_name(Parser *p, const char *name)
{
    if (!tmpl_at_name(p, name))
        return false;
    tmpl_next(p);
    return true;
}

bool tmpl_skip_op(Parser *p, uint32_t op)
{
    if (!tmpl_at_op(p, op))
        return false;
    tmpl_next(p);
    return true;
}

void tmpl_expect_op(Parser *p, uint32_t op)
{
    const char text[3] = {(char)(op > 255 ? op >> 8 : op), (char)(op > 255 ? op : 0), 0};

    if (!tmpl_skip_op(p, op))
        tmpl_syntax(p, p->tok.at, p->tok.end, "'%s' is expected here", text);
}

Str *tmpl_expect_name(Parser *p)
{
    Str *name;

    if (p->tok.type != T_NAME)
        tmpl_syntax(p, p->tok.at, p->tok.end, "a name is expected here");
    name = tmpl_intern(p, p->tok.str);
    tmpl_next(p);
    return name;
}

/* ---- nodes ---- */

Node *tmpl_node(Parser *p, NodeKind kind, uint32_t at)
{
    Node *node = tmpl_new(p->arena, Node);

    node->kind = (uint8_t)kind;
    node->at = node->end = at;
    node->height = 1;
    node->caller_slot = node->kwargs_slot = node->varargs_slot = -1;
    return node;
}

Node *tmpl_adopt(Parser *p, Node *parent, Node *child)
{
    if (!child)
        return NULL;
    if (child->height >= DAVIT_TEMPLATE_MAX_DEPTH)
        tmpl_syntax_unsupported(p, parent->at, p->tok.at, "nested more than %u deep",
                                DAVIT_TEMPLATE_MAX_DEPTH);
    parent->height = MAX(parent->height, (uint8_t)(child->height + 1));
    return child;
}

void tmpl_append(Parser *p, Node *parent, NodeList *list, Node *child)
{
    tmpl_adopt(p, parent, child);
    if (list->last)
        list->last->next = child;
    else
        list->first = child;
    list->last = child;
    list->n++;
}

Node *tmpl_close(Parser *p, Node *node)
{
    node->end = MAX(p->last_end, node->at);
    return node;
}

void tmpl_enter(Parser *p)
{
    if (++p->depth > DAVIT_TEMPLATE_MAX_DEPTH)
        tmpl_syntax_unsupported(p, p->tok.at, p->tok.end, "nested more than %u deep",
                                DAVIT_TEMPLATE_MAX_DEPTH);
}

void tmpl_leave(Parser *p)
{
    p->depth--;
}

/* ---- statements ---- */

static void statements(Parser *p, Node *parent, NodeList *list, const char *const *ends);

static void end_tag(Parser *p)
{
    if (p->tok.type != T_BLOCK_END)
        tmpl_syntax(p, p->tok.at, p->tok.end, "the end of the tag is expected here");
    tmpl_next(p);
}

/* The body of @node up to one of @ends, at whose name the parser then stands. */
static void body(Parser *p, Node *node, NodeList *list, const char *const *ends)
{
    tmpl_skip_op(p, ':');
    end_tag(p);
    statements(p, node, list, ends);
    if (p->tok.type == T_EOF)
        tmpl_syntax(p, node->at, node->at + 2, "the block has no {%% %s %%}", ends[0]);
}

/* A body with one possible end; steps over the end's name. */
static void whole_body(Parser *p, Node *node, const char *end)
{
    const char *const ends[] = {end, NULL};

    body(p, node, &node->body, ends);
    tmpl_next(p);
}

static Node *for_statement(Parser *p, uint32_t at)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    static const char *const last[] = {"endfor", NULL};
    Node *node = tmpl_node(p, N_FOR, at);

    p->for_depth++;
    node->a = tmpl_adopt(p, node, tmpl_target(p, "in", false));
    if (!tmpl_skip_name(p, "in"))
        tmpl_syntax(p, p->tok.at, p->tok.end, "'in' is expected here");
    node->b = tmpl_adopt(p, node, tmpl_tuple(p, false, "recursive"));
    if (tmpl_skip_name(p, "if"))
        node->c = tmpl_adopt(p, node, tmpl_expression(p));
    node->op = tmpl_skip_name(p, "recursive");
    const uint32_t outer = p->loop_depth;
    p->loop_depth = node->op ? 1 : outer + 1;
    body(p, node, &node->body, ends);
    p->loop_depth = node->op ? 0 : outer;
    const bool has_else = tmpl_at_name(p, "else");
    tmpl_next(p);
    if (has_else) {
        body(p, node, &node->other, last);
        tmpl_next(p);
    }
    p->loop_depth = outer;
    p->for_depth--;
    return node;
}

static Node *if_statement(Parser *p, uint32_t at)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const last[] = {"endif", NULL};
    Node *first = tmpl_node(p, N_IF, at), *node = first;

    for (;;) {
        node->a = tmpl_adopt(p, node, tmpl_tuple(p, false, NULL));
        body(p, node, &node->body, ends);
        tmpl_adopt(p, first, node == first ? NULL : node); /* a chain is no nesting */
        if (tmpl_skip_name(p, "elif")) {
            Node *next = tmpl_node(p, N_IF, p->tok.at);

            node->b = next;
            node = next;
            continue;
        }
        if (tmpl_skip_name(p, "else"))
            body(p, first, &first->other, last);
        tmpl_next(p);
        return first;
    }
}

static Node *set_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_SET, at);

    node->a = tmpl_adopt(p, node, tmpl_target(p, NULL, true));
    if (tmpl_skip_op(p, '=')) {
        node->b = tmpl_adopt(p, node, tmpl_tuple(p, true, NULL));
        return node;
    }
    node->kind = N_SET_BLOCK;
    node->b = tmpl_adopt(p, node, tmpl_filters(p, NULL, false));
    whole_body(p, node, "endset");
    return node;
}

/* "(" name = default, ... ")" */
static void signature(Parser *p, Node *node)
{
    Param params[256];

    tmpl_expect_op(p, '(');
    while (!tmpl_at_op(p, ')')) {
        if (node->n_params)
            tmpl_expect_op(p, ',');
        if (node->n_params == G_N_ELEMENTS(params))
            tmpl_syntax_unsupported(p, p->tok.at, p->tok.end, "more than %zu parameters",
                                    G_N_ELEMENTS(params));
        Param *param = &params[node->n_params];
        *param = (Param){.name = tmpl_expect_name(p)};
        if (tmpl_skip_op(p, '='))
            param->fallback = tmpl_adopt(p, node, tmpl_expression(p));
        else if (node->n_params && params[node->n_params - 1].fallback)
            tmpl_syntax(p, p->last_end, p->tok.end, "a parameter without default follows "
                                                    "one with a default");
        for (uint32_t i = 0; i < node->n_params; i++)
            if (params[i].name == param->name)
                tmpl_syntax(p, p->last_end, p->tok.end, "a parameter is named twice");
        node->n_params++;
    }
    tmpl_expect_op(p, ')');
    node->params = tmpl_new_n(p->arena, Param, MAX(node->n_params, 1));
    if (node->n_params)
        memcpy(node->params, params, node->n_params * sizeof *params);
}

/* A body that is a function of its own: break does not leave it. */
static void function_body(Parser *p, Node *node, const char *end)
{
    const uint32_t loops = p->loop_depth;

    p->loop_depth = 0;
    whole_body(p, node, end);
    p->loop_depth = loops;
}

static Node *macro_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_MACRO, at);

    node->name = tmpl_expect_name(p);
    signature(p, node);
    function_body(p, node, "endmacro");
    return node;
}

static Node *call_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_CALL_BLOCK, at);

    if (tmpl_at_op(p, '('))
        signature(p, node);
    node->a = tmpl_adopt(p, node, tmpl_expression(p));
    if (node->a->kind != N_CALL)
        tmpl_syntax(p, node->a->at, node->a->end, "a call is expected here");
    function_body(p, node, "endcall");
    return node;
}

static Node *with_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_WITH, at);
    const uint32_t for_depth = p->for_depth;

    while (p->tok.type != T_BLOCK_END) {
        if (node->list.n)
            tmpl_expect_op(p, ',');
        p->for_depth = 0;
        tmpl_append(p, node, &node->list, tmpl_target(p, NULL, false));
        p->for_depth = for_depth;
        tmpl_expect_op(p, '=');
        tmpl_append(p, node, &node->list, tmpl_expression(p));
    }
    whole_body(p, node, "endwith");
    return node;
}

static Node *jump_statement(Parser *p, NodeKind kind, uint32_t at)
{
    if (p->loop_depth == 0)
        tmpl_syntax(p, at, p->tok.at, "break or continue outside a loop");
    return tmpl_node(p, kind, at);
}

static Node *print_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_OUTPUT, at);

    if (p->tok.type == T_BLOCK_END)
        tmpl_syntax_unsupported(p, at, p->tok.end, "print without an expression");
    node->a = tmpl_adopt(p, node, tmpl_expression(p));
    if (tmpl_at_op(p, ','))
        tmpl_syntax_unsupported(p, at, p->tok.end, "print with several expressions");
    return node;
}

static Node *statement(Parser *p)
{
    static const char *const other[] = {"block",  "extends", "include", "import",
                                        "from",   "autoescape", NULL};
    const uint32_t at = p->tok.at;
    Node *node;

    if (p->tok.type != T_NAME)
        tmpl_syntax(p, at, p->tok.end, "the name of a statement is expected here");
    const Token word = p->tok;
    tmpl_next(p);
    if (tmpl_str_is(word.str, "for"))
        return for_statement(p, at);
    if (tmpl_str_is(word.str, "if"))
        return if_statement(p, at);
    if (tmpl_str_is(word.str, "set"))
        return set_statement(p, at);
    if (tmpl_str_is(word.str, "macro"))
        return macro_statement(p, at);
    if (tmpl_str_is(word.str, "call"))
        return call_statement(p, at);
    if (tmpl_str_is(word.str, "with"))
        return with_statement(p, at);
    if (tmpl_str_is(word.str, "print"))
        return print_statement(p, at);
    if (tmpl_str_is(word.str, "break"))
        return jump_statement(p, N_BREAK, at);
    if (tmpl_str_is(word.str, "continue"))
        return jump_statement(p, N_CONTINUE, at);
    if (tmpl_str_is(word.str, "generation")) {
        node = tmpl_node(p, N_GENERATION, at);
        node->params = tmpl_new_n(p->arena, Param, 1);
        function_body(p, node, "endgeneration");
        return node;
    }
    if (tmpl_str_is(word.str, "filter")) {
        node = tmpl_node(p, N_FILTER_BLOCK, at);
        node->a = tmpl_adopt(p, node, tmpl_filters(p, NULL, true));
        whole_body(p, node, "endfilter");
        return node;
    }
    for (size_t i = 0; other[i]; i++)
        if (tmpl_str_is(word.str, other[i]))
            tmpl_syntax_unsupported(p, at, word.end, "the statement %s", other[i]);
    tmpl_syntax(p, at, word.end, "there is no such statement");
}

static bool at_end(const Parser *p, const char *const *ends)
{
    for (size_t i = 0; ends && ends[i]; i++)
        if (tmpl_at_name(p, ends[i]))
            return true;
    return false;
}

/* Statements and text up to one of @ends or the end of the source. */
static void statements(Parser *p, Node *parent, NodeList *list, const char *const *ends)
{
    tmpl_enter(p);
    while (p->tok.type != T_EOF) {
        Node *node = tmpl_node(p, N_TEXT, p->tok.at);

        if (p->tok.type == T_DATA) {
            node->text = p->tok.str;
            tmpl_next(p);
            tmpl_close(p, node);
        } else if (p->tok.type == T_VARIABLE_BEGIN) {
            tmpl_next(p);
            node->kind = N_OUTPUT;
            node->a = tmpl_adopt(p, node, tmpl_tuple(p, true, NULL));
            if (p->tok.type != T_VARIABLE_END)
                tmpl_syntax(p, p->tok.at, p->tok.end, "'}}' is expected here");
            tmpl_next(p);
            tmpl_close(p, node);
        } else {
            const uint32_t at = p->tok.at;

            tmpl_next(p);
            if (at_end(p, ends))
                break;
            node = statement(p);
            node->at = at;
            end_tag(p);
            tmpl_close(p, node);
        }
        tmpl_append(p, parent, list, node);
    }
    tmpl_leave(p);
}

void tmpl_parse_body(Parser *p)
{
    Node *all = tmpl_node(p, N_WITH, 0);

    tmpl_next(p);
    p->last_end = 0;
    statements(p, all, &all->body, NULL);
    p->t->body = all->body;
}
