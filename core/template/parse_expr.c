/* SPDX-License-Identifier: Apache-2.0
 * What operators stand between: literals, names, calls, subscripts, filters, tests. */
#include "template/parser.h"

#include <string.h>

/* ---- literals ---- */

static Node *list(Parser *p)
{
    Node *node = tmpl_node(p, N_LIST, p->tok.at);

    tmpl_expect_op(p, '[');
    while (!tmpl_at_op(p, ']')) {
        if (node->list.n)
            tmpl_expect_op(p, ',');
        if (tmpl_at_op(p, ']'))
            break;
        tmpl_append(p, node, &node->list, tmpl_expression(p));
    }
    tmpl_expect_op(p, ']');
    return tmpl_close(p, node);
}

static Node *dict(Parser *p)
{
    Node *node = tmpl_node(p, N_DICT, p->tok.at);

    tmpl_expect_op(p, '{');
    while (!tmpl_at_op(p, '}')) {
        if (node->list.n)
            tmpl_expect_op(p, ',');
        if (tmpl_at_op(p, '}'))
            break;
        tmpl_append(p, node, &node->list, tmpl_expression(p));
        tmpl_expect_op(p, ':');
        tmpl_append(p, node, &node->list, tmpl_expression(p));
    }
    tmpl_expect_op(p, '}');
    return tmpl_close(p, node);
}

static Node *string(Parser *p)
{
    Node *node = tmpl_node(p, N_CONST, p->tok.at);
    Sb text = {.arena = p->arena};

    for (; p->tok.type == T_STRING; tmpl_next(p))
        tmpl_sb_add_str(&text, p->tok.str);
    node->value = tmpl_string(tmpl_sb_take(&text));
    return tmpl_close(p, node);
}

static Node *name(Parser *p, bool with_namespace)
{
    const Token token = p->tok;
    Node *node = tmpl_node(p, N_CONST, token.at);

    tmpl_next(p);
    if (tmpl_str_is(token.str, "true") || tmpl_str_is(token.str, "True"))
        node->value = tmpl_bool(true);
    else if (tmpl_str_is(token.str, "false") || tmpl_str_is(token.str, "False"))
        node->value = tmpl_bool(false);
    else if (tmpl_str_is(token.str, "none") || tmpl_str_is(token.str, "None"))
        node->value = tmpl_none();
    else {
        node->kind = N_NAME;
        node->name = tmpl_intern(p, token.str);
        if (with_namespace && tmpl_skip_op(p, '.')) {
            node->kind = N_NSREF;
            node->text = tmpl_expect_name(p);
        }
    }
    return tmpl_close(p, node);
}

static Node *parse_tuple(Parser *p, bool simple, bool conditional, const char *stop,
                         bool brackets, bool with_namespace);

Node *tmpl_primary(Parser *p, bool with_namespace)
{
    Node *node;

    switch (p->tok.type) {
    case T_NAME:
        return name(p, with_namespace);
    case T_STRING:
        return string(p);
    case T_INTEGER:
    case T_FLOAT:
        node = tmpl_node(p, N_CONST, p->tok.at);
        node->value = p->tok.value;
        tmpl_next(p);
        return tmpl_close(p, node);
    default:
        break;
    }
    if (tmpl_at_op(p, '[') || tmpl_at_op(p, '{') || tmpl_at_op(p, '(')) {
        tmpl_enter(p);
        if (tmpl_at_op(p, '[')) {
            node = list(p);
        } else if (tmpl_at_op(p, '{')) {
            node = dict(p);
        } else {
            tmpl_next(p);
            node = parse_tuple(p, false, true, NULL, true, false);
            tmpl_expect_op(p, ')');
        }
        tmpl_leave(p);
        return node;
    }
    tmpl_syntax(p, p->tok.at, p->tok.end, "an expression is expected here");
}

/* ---- tuples and targets ---- */

static bool tuple_ends(const Parser *p, const char *stop)
{
    return p->tok.type == T_VARIABLE_END || p->tok.type == T_BLOCK_END ||
           tmpl_at_op(p, ')') || (stop && tmpl_at_name(p, stop));
}

static Node *parse_tuple(Parser *p, bool simple, bool conditional, const char *stop,
                         bool brackets, bool with_namespace)
{
    Node *tuple = tmpl_node(p, N_TUPLE, p->tok.at);
    Node *first = NULL;
    bool is_tuple = false;

    for (;;) {
        if (is_tuple)
            tmpl_expect_op(p, ',');
        if (tuple_ends(p, stop))
            break;
        Node *item = simple        ? tmpl_primary(p, with_namespace)
                     : conditional ? tmpl_expression(p)
                                   : tmpl_or_expr(p);
        if (!first && !tmpl_at_op(p, ','))
            return item;
        first = first ? first : item;
        tmpl_append(p, tuple, &tuple->list, item);
        if (!tmpl_at_op(p, ','))
            break;
        is_tuple = true;
    }
    if (!is_tuple && !brackets)
        tmpl_syntax(p, p->tok.at, p->tok.end, "an expression is expected here");
    return tmpl_close(p, tuple);
}

Node *tmpl_tuple(Parser *p, bool conditional, const char *stop)
{
    return parse_tuple(p, false, conditional, stop, false, false);
}

/* Marks names as targets; refuses what cannot be assigned to. */
static void make_target(Parser *p, Node *node)
{
    if (node->kind == N_NAME) {
        if (p->for_depth > 0 && tmpl_str_is(node->name, "loop"))
            tmpl_syntax(p, node->at, node->end, "loop cannot be assigned to inside a loop");
        node->op = 1;
        return;
    }
    if (node->kind == N_NSREF)
        return;
    if (node->kind != N_TUPLE)
        tmpl_syntax(p, node->at, node->end, "this cannot be assigned to");
    for (Node *item = node->list.first; item; item = item->next)
        make_target(p, item);
}

Node *tmpl_target(Parser *p, const char *stop, bool with_namespace)
{
    Node *node = parse_tuple(p, true, true, stop, false, with_namespace);

    make_target(p, node);
    return node;
}

/* ---- calls, subscripts, filters, tests ---- */

static void call_argument(Parser *p, Node *call, uint32_t *state)
{
    Node *arg = tmpl_node(p, N_ARG, p->tok.at);

    arg->op = ARG_POSITIONAL;
    if (tmpl_skip_op(p, '*'))
        arg->op = ARG_STAR;
    else if (tmpl_skip_op(p, TOK2('*', '*')))
        arg->op = ARG_STAR_STAR;
    else if (p->tok.type == T_NAME && tmpl_look(p)->type == T_OPERATOR &&
             tmpl_look(p)->op == '=') {
        arg->op = ARG_KEYWORD;
        arg->name = tmpl_expect_name(p);
        tmpl_next(p);
    }
    const bool star = *state & (1u << ARG_STAR), double_star = *state & (1u << ARG_STAR_STAR);
    const bool keyword = *state & (1u << ARG_KEYWORD);
    if ((arg->op == ARG_POSITIONAL && (star || double_star || keyword)) ||
        (arg->op == ARG_STAR && (star || double_star)) || (arg->op >= ARG_KEYWORD && double_star))
        tmpl_syntax(p, arg->at, p->tok.end, "the order of the arguments is not allowed");
    *state |= 1u << arg->op;
    arg->a = tmpl_adopt(p, arg, tmpl_expression(p));
    tmpl_append(p, call, &call->list, tmpl_close(p, arg));
}

/* "(" arguments ")" into node->list. */
static void call_arguments(Parser *p, Node *call)
{
    uint32_t state = 0;

    tmpl_enter(p);
    tmpl_expect_op(p, '(');
    while (!tmpl_at_op(p, ')')) {
        if (call->list.n) {
            tmpl_expect_op(p, ',');
            if (tmpl_at_op(p, ')'))
                break;
        }
        call_argument(p, call, &state);
    }
    tmpl_expect_op(p, ')');
    tmpl_leave(p);
}

static Node *call(Parser *p, Node *callee)
{
    Node *node = tmpl_node(p, N_CALL, callee->at);

    node->a = tmpl_adopt(p, node, callee);
    call_arguments(p, node);
    return tmpl_close(p, node);
}

static Node *slice_part(Parser *p, Node *node)
{
    if (tmpl_at_op(p, ':') || tmpl_at_op(p, ']') || tmpl_at_op(p, ','))
        return NULL;
    return tmpl_adopt(p, node, tmpl_expression(p));
}

/* a[], a[b, c]: the key is a tuple. @first may be NULL. */
static Node *tuple_key(Parser *p, Node *first)
{
    Node *key = tmpl_node(p, N_TUPLE, first ? first->at : p->tok.at);

    if (first)
        tmpl_append(p, key, &key->list, first);
    while (tmpl_skip_op(p, ','))
        tmpl_append(p, key, &key->list, tmpl_expression(p));
    return tmpl_close(p, key);
}

static Node *subscript(Parser *p, Node *of)
{
    Node *node = tmpl_node(p, N_ITEM, of->at);

    tmpl_enter(p);
    tmpl_expect_op(p, '[');
    node->a = tmpl_adopt(p, node, of);
    node->b = slice_part(p, node);
    if (tmpl_at_op(p, ':')) {
        node->kind = N_SLICE;
        tmpl_next(p);
        node->c = slice_part(p, node);
        if (tmpl_skip_op(p, ':'))
            node->d = slice_part(p, node);
    } else if (!node->b || tmpl_at_op(p, ',')) {
        node->b = tmpl_adopt(p, node, tuple_key(p, node->b));
    }
    tmpl_expect_op(p, ']');
    tmpl_leave(p);
    return tmpl_close(p, node);
}

static Node *attribute(Parser *p, Node *of)
{
    Node *node = tmpl_node(p, N_ATTR, of->at);

    tmpl_next(p);
    node->a = tmpl_adopt(p, node, of);
    if (p->tok.type == T_NAME) {
        node->name = tmpl_expect_name(p);
        return tmpl_close(p, node);
    }
    if (p->tok.type != T_INTEGER)
        tmpl_syntax(p, p->tok.at, p->tok.end, "a name or a number is expected behind the dot");
    node->kind = N_ITEM;
    node->b = tmpl_adopt(p, node, tmpl_primary(p, false));
    return tmpl_close(p, node);
}

Node *tmpl_postfix(Parser *p, Node *node)
{
    for (;;) {
        if (tmpl_at_op(p, '.'))
            node = attribute(p, node);
        else if (tmpl_at_op(p, '['))
            node = subscript(p, node);
        else if (tmpl_at_op(p, '('))
            node = call(p, node);
        else
            return node;
    }
}

/* name or dotted.name, interned. */
static Str *dotted(Parser *p)
{
    Str *name = tmpl_expect_name(p);
    Sb all = {.arena = p->arena};

    tmpl_sb_add_str(&all, name);
    while (tmpl_skip_op(p, '.')) {
        tmpl_sb_add_c(&all, '.');
        tmpl_sb_add_str(&all, tmpl_expect_name(p));
    }
    return all.n == name->n ? name : tmpl_intern(p, tmpl_sb_take(&all));
}

Node *tmpl_filters(Parser *p, Node *node, bool inline_first)
{
    while (inline_first || tmpl_at_op(p, '|')) {
        Node *filter = tmpl_node(p, N_FILTER, node ? node->at : p->tok.at);

        if (!inline_first)
            tmpl_next(p);
        inline_first = false;
        filter->name = dotted(p);
        filter->a = tmpl_adopt(p, filter, node);
        if (tmpl_at_op(p, '('))
            call_arguments(p, filter);
        node = tmpl_close(p, filter);
    }
    return node;
}

static bool starts_test_argument(const Parser *p)
{
    switch (p->tok.type) {
    case T_NAME:
        return !tmpl_at_name(p, "else") && !tmpl_at_name(p, "or") && !tmpl_at_name(p, "and");
    case T_STRING:
    case T_INTEGER:
    case T_FLOAT:
        return true;
    default:
        return tmpl_at_op(p, '[') || tmpl_at_op(p, '{');
    }
}

static Node *test(Parser *p, Node *of)
{
    Node *node = tmpl_node(p, N_TEST, of->at);
    bool negated;

    tmpl_next(p);
    negated = tmpl_skip_name(p, "not");
    node->name = dotted(p);
    node->a = tmpl_adopt(p, node, of);
    if (tmpl_at_op(p, '(')) {
        call_arguments(p, node);
    } else if (starts_test_argument(p)) {
        Node *arg = tmpl_node(p, N_ARG, p->tok.at);

        if (tmpl_at_name(p, "is"))
            tmpl_syntax(p, p->tok.at, p->tok.end, "tests cannot be chained with is");
        arg->a = tmpl_adopt(p, arg, tmpl_postfix(p, tmpl_primary(p, false)));
        tmpl_append(p, node, &node->list, tmpl_close(p, arg));
    }
    tmpl_close(p, node);
    if (!negated)
        return node;
    Node *not_node = tmpl_node(p, N_NOT, of->at);
    not_node->a = tmpl_adopt(p, not_node, node);
    return tmpl_close(p, not_node);
}

Node *tmpl_filter_expr(Parser *p, Node *node)
{
    for (;;) {
        if (tmpl_at_op(p, '|'))
            node = tmpl_filters(p, node, false);
        else if (tmpl_at_name(p, "is"))
            node = test(p, node);
        else if (tmpl_at_op(p, '('))
            node = call(p, node);
        else
            return node;
    }
}
