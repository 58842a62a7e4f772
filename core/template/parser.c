/* SPDX-License-Identifier: Apache-2.0
 * Statements. */
#include "template/parser.h"

#include <string.h>

#include "template/text.h"

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
    if (p->tok.type == T_EOF) {
        const char *end = ends[0]; /* the one that closes the block; others go on in it */
        uint32_t stop = node->at;

        for (size_t i = 1; ends[i]; i++)
            end = g_str_has_prefix(ends[i], "end") ? ends[i] : end;
        while (stop < p->n && p->src[stop] != '\n')
            stop++;
        tmpl_syntax(p, node->at, stop, "the block that begins here, or one inside "
                                         "it, has no {%% %s %%}", end);
    }
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
    Node *node = tmpl_node(p, N_PRINT, at);

    while (p->tok.type != T_BLOCK_END) {
        if (node->list.n)
            tmpl_expect_op(p, ',');
        tmpl_append(p, node, &node->list, tmpl_expression(p));
    }
    return node;
}

static Node *generation_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_GENERATION, at);

    node->params = tmpl_new_n(p->arena, Param, 1);
    function_body(p, node, "endgeneration");
    return node;
}

static Node *filter_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_FILTER_BLOCK, at);

    node->a = tmpl_adopt(p, node, tmpl_filters(p, NULL, true));
    whole_body(p, node, "endfilter");
    return node;
}

/* {% autoescape false %} is how things are; nothing here escapes by itself. */
static Node *autoescape_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_WITH, at);
    const Node *on = tmpl_expression(p);

    if (on->kind != N_CONST || on->value.type != V_BOOL || on->value.b)
        tmpl_syntax_unsupported(p, at, on->end, "autoescape that is not false");
    whole_body(p, node, "endautoescape");
    return node;
}

/* ---- statements about other templates ---- */

static void check_required(Parser *p, const Node *node)
{
    for (const Node *part = node->body.first; part; part = part->next) {
        uint32_t len;

        if (part->kind != N_TEXT)
            tmpl_syntax(p, part->at, part->end, "a required block holds blanks only");
        for (uint32_t i = 0; i < part->text->n; i += len)
            if (!tmpl_is_space(tmpl_str_cp(part->text, i, &len)))
                tmpl_syntax(p, part->at, part->end, "a required block holds blanks only");
    }
}

static Node *block_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_BLOCK, at);

    node->name = tmpl_expect_name(p);
    for (const Node *other = p->t->blocks; other; other = other->b)
        if (other->name == node->name)
            tmpl_syntax(p, at, p->last_end, "a block is defined twice");
    node->b = p->t->blocks;
    p->t->blocks = node;
    node->op = tmpl_skip_name(p, "scoped") ? BLOCK_SCOPED : 0;
    node->op |= tmpl_skip_name(p, "required") ? BLOCK_REQUIRED : 0;
    function_body(p, node, "endblock");
    if (node->op & BLOCK_REQUIRED)
        check_required(p, node);
    if (p->tok.type == T_NAME && tmpl_str_equal(p->tok.str, node->name))
        tmpl_next(p);
    return node;
}

/* "with context" or "without context", which change nothing here. */
static bool skip_context(Parser *p)
{
    if ((!tmpl_at_name(p, "with") && !tmpl_at_name(p, "without")) ||
        tmpl_look(p)->type != T_NAME || !tmpl_str_is(tmpl_look(p)->str, "context"))
        return false;
    tmpl_next(p);
    tmpl_next(p);
    return true;
}

static Node *include_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_INCLUDE, at);

    node->a = tmpl_adopt(p, node, tmpl_expression(p));
    if (tmpl_at_name(p, "ignore") && tmpl_look(p)->type == T_NAME &&
        tmpl_str_is(tmpl_look(p)->str, "missing")) {
        tmpl_next(p);
        tmpl_next(p);
        node->op = 1;
    }
    skip_context(p);
    return node;
}

/* A name that an import would set. */
static Node *imported_name(Parser *p)
{
    static const char *const constants[] = {"true", "false", "none", "True", "False", "None"};
    Node *target = tmpl_node(p, N_NAME, p->tok.at);

    target->name = tmpl_expect_name(p);
    target->op = 1;
    for (size_t i = 0; i < G_N_ELEMENTS(constants); i++)
        if (tmpl_str_is(target->name, constants[i]))
            tmpl_syntax(p, target->at, p->last_end, "this cannot be assigned to");
    return tmpl_close(p, target);
}

static Node *import_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_IMPORT, at);

    node->a = tmpl_adopt(p, node, tmpl_expression(p));
    if (!tmpl_skip_name(p, "as"))
        tmpl_syntax(p, p->tok.at, p->tok.end, "'as' is expected here");
    tmpl_append(p, node, &node->list, imported_name(p));
    skip_context(p);
    return node;
}

static Node *from_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_IMPORT, at);

    node->a = tmpl_adopt(p, node, tmpl_expression(p));
    if (!tmpl_skip_name(p, "import"))
        tmpl_syntax(p, p->tok.at, p->tok.end, "'import' is expected here");
    do {
        if (skip_context(p))
            return node;
        Node *target = imported_name(p);

        if (target->name->p[0] == '_')
            tmpl_syntax(p, target->at, target->end, "a name that begins with _ is private");
        if (tmpl_skip_name(p, "as"))
            target = imported_name(p);
        tmpl_append(p, node, &node->list, target);
    } while (!skip_context(p) && tmpl_skip_op(p, ','));
    return node;
}

static Node *extends_statement(Parser *p, uint32_t at)
{
    Node *node = tmpl_node(p, N_EXTENDS, at);

    node->a = tmpl_adopt(p, node, tmpl_expression(p));
    return node;
}

static Node *break_statement(Parser *p, uint32_t at)
{
    return jump_statement(p, N_BREAK, at);
}

static Node *continue_statement(Parser *p, uint32_t at)
{
    return jump_statement(p, N_CONTINUE, at);
}

static Node *statement(Parser *p)
{
    static const struct {
        const char *name;
        Node *(*parse)(Parser *p, uint32_t at);
    } rows[] = {
        {"for", for_statement},           {"if", if_statement},
        {"set", set_statement},           {"macro", macro_statement},
        {"call", call_statement},         {"with", with_statement},
        {"print", print_statement},       {"break", break_statement},
        {"continue", continue_statement}, {"generation", generation_statement},
        {"filter", filter_statement},     {"autoescape", autoescape_statement},
        {"block", block_statement},       {"extends", extends_statement},
        {"include", include_statement},   {"import", import_statement},
        {"from", from_statement},
    };
    const uint32_t at = p->tok.at;

    if (p->tok.type != T_NAME)
        tmpl_syntax(p, at, p->tok.end, "the name of a statement is expected here");
    const Token word = p->tok;
    tmpl_next(p);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (tmpl_str_is(word.str, rows[i].name))
            return rows[i].parse(p, at);
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
