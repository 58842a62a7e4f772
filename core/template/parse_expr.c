/* SPDX-License-Identifier: Apache-2.0
 * Expressions, by descent; precedence as in jinja2's parser. */
#include "template/parser.h"

#include <string.h>

static Node *unary(Parser *p, bool with_filter);
static Node *primary(Parser *p, bool with_namespace);

static Node *binary(Parser *p, NodeKind kind, int op, Node *a, Node *b)
{
    Node *node = tmpl_node(p, kind, a->at);

    node->op = (uint8_t)op;
    node->a = tmpl_adopt(p, node, a);
    node->b = tmpl_adopt(p, node, b);
    return tmpl_close(p, node);
}

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

static Node *primary(Parser *p, bool with_namespace)
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

static Node *or_expr(Parser *p);

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
        Node *item = simple        ? primary(p, with_namespace)
                     : conditional ? tmpl_expression(p)
                                   : or_expr(p);
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
    if (node->kind != N_TUPLE && node->kind != N_LIST)
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
    } else if (!node->b) {
        tmpl_syntax_unsupported(p, of->at, p->tok.end, "an empty subscript");
    }
    if (tmpl_at_op(p, ','))
        tmpl_syntax_unsupported(p, of->at, p->tok.end, "a subscript with a comma");
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
    node->b = tmpl_adopt(p, node, primary(p, false));
    return tmpl_close(p, node);
}

static Node *postfix(Parser *p, Node *node)
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
        arg->a = tmpl_adopt(p, arg, postfix(p, primary(p, false)));
        tmpl_append(p, node, &node->list, tmpl_close(p, arg));
    }
    tmpl_close(p, node);
    if (!negated)
        return node;
    Node *not_node = tmpl_node(p, N_NOT, of->at);
    not_node->a = tmpl_adopt(p, not_node, node);
    return tmpl_close(p, not_node);
}

static Node *filter_expr(Parser *p, Node *node)
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

/* ---- operators ---- */

static Node *unary(Parser *p, bool with_filter)
{
    const uint32_t at = p->tok.at;
    Node *node;

    tmpl_enter(p);
    if (tmpl_at_op(p, '-') || tmpl_at_op(p, '+')) {
        node = tmpl_node(p, tmpl_at_op(p, '-') ? N_NEG : N_POS, at);
        tmpl_next(p);
        node->a = tmpl_adopt(p, node, unary(p, false));
        tmpl_close(p, node);
    } else {
        node = primary(p, false);
    }
    node = postfix(p, node);
    if (with_filter)
        node = filter_expr(p, node);
    tmpl_leave(p);
    return node;
}

static Node *power(Parser *p)
{
    Node *left = unary(p, true);

    while (tmpl_skip_op(p, TOK2('*', '*')))
        left = binary(p, N_BINARY, OP_POW, left, unary(p, true));
    return left;
}

static Node *product(Parser *p)
{
    Node *left = power(p);

    for (;;) {
        const int op = tmpl_at_op(p, '*')              ? OP_MUL
                       : tmpl_at_op(p, '/')            ? OP_DIV
                       : tmpl_at_op(p, TOK2('/', '/')) ? OP_FLOORDIV
                       : tmpl_at_op(p, '%')            ? OP_MOD
                                                       : -1;
        if (op < 0)
            return left;
        tmpl_next(p);
        left = binary(p, N_BINARY, op, left, power(p));
    }
}

static Node *concat(Parser *p)
{
    Node *first = product(p), *node;

    if (!tmpl_at_op(p, '~'))
        return first;
    node = tmpl_node(p, N_CONCAT, first->at);
    tmpl_append(p, node, &node->list, first);
    while (tmpl_skip_op(p, '~'))
        tmpl_append(p, node, &node->list, product(p));
    return tmpl_close(p, node);
}

static Node *sum(Parser *p)
{
    Node *left = concat(p);

    while (tmpl_at_op(p, '+') || tmpl_at_op(p, '-')) {
        const int op = tmpl_at_op(p, '+') ? OP_ADD : OP_SUB;

        tmpl_next(p);
        left = binary(p, N_BINARY, op, left, concat(p));
    }
    return left;
}

/* The comparison at the current token, skipped; -1 = none. */
static int compare_op(Parser *p)
{
    static const struct {
        uint32_t token;
        int op;
    } ops[] = {{TOK2('=', '='), OP_EQ}, {TOK2('!', '='), OP_NE}, {'<', OP_LT},
               {TOK2('<', '='), OP_LE}, {'>', OP_GT},            {TOK2('>', '='), OP_GE}};

    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++)
        if (tmpl_skip_op(p, ops[i].token))
            return ops[i].op;
    if (tmpl_skip_name(p, "in"))
        return OP_IN;
    if (tmpl_at_name(p, "not") && tmpl_look(p)->type == T_NAME &&
        tmpl_str_is(tmpl_look(p)->str, "in")) {
        tmpl_next(p);
        tmpl_next(p);
        return OP_NOT_IN;
    }
    return -1;
}

static Node *compare(Parser *p)
{
    Node *first = sum(p), *node = NULL;

    for (int op; (op = compare_op(p)) >= 0;) {
        Node *operand = tmpl_node(p, N_OPERAND, p->tok.at);

        if (!node) {
            node = tmpl_node(p, N_COMPARE, first->at);
            node->a = tmpl_adopt(p, node, first);
        }
        operand->op = (uint8_t)op;
        operand->a = tmpl_adopt(p, operand, sum(p));
        tmpl_append(p, node, &node->list, tmpl_close(p, operand));
    }
    return node ? tmpl_close(p, node) : first;
}

static Node *not_expr(Parser *p)
{
    Node *node;

    if (!tmpl_at_name(p, "not"))
        return compare(p);
    node = tmpl_node(p, N_NOT, p->tok.at);
    tmpl_enter(p);
    tmpl_next(p);
    node->a = tmpl_adopt(p, node, not_expr(p));
    tmpl_leave(p);
    return tmpl_close(p, node);
}

static Node *and_expr(Parser *p)
{
    Node *left = not_expr(p);

    while (tmpl_skip_name(p, "and"))
        left = binary(p, N_AND, 0, left, not_expr(p));
    return left;
}

static Node *or_expr(Parser *p)
{
    Node *left = and_expr(p);

    while (tmpl_skip_name(p, "or"))
        left = binary(p, N_OR, 0, left, and_expr(p));
    return left;
}

Node *tmpl_expression(Parser *p)
{
    Node *then;

    tmpl_enter(p);
    then = or_expr(p);
    while (tmpl_skip_name(p, "if")) {
        Node *node = tmpl_node(p, N_COND, then->at);

        node->b = tmpl_adopt(p, node, then);
        node->a = tmpl_adopt(p, node, or_expr(p));
        if (tmpl_skip_name(p, "else"))
            node->c = tmpl_adopt(p, node, tmpl_expression(p));
        then = tmpl_close(p, node);
    }
    tmpl_leave(p);
    return then;
}
