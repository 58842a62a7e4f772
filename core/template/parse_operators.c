/* SPDX-License-Identifier: Apache-2.0
 * Operators, by descent; precedence as in jinja2's parser. */
#include "template/parser.h"

static Node *binary(Parser *p, NodeKind kind, int op, Node *a, Node *b)
{
    Node *node = tmpl_node(p, kind, a->at);

    node->op = (uint8_t)op;
    node->a = tmpl_adopt(p, node, a);
    node->b = tmpl_adopt(p, node, b);
    return tmpl_close(p, node);
}

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
        node = tmpl_primary(p, false);
    }
    node = tmpl_postfix(p, node);
    if (with_filter)
        node = tmpl_filter_expr(p, node);
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

Node *tmpl_or_expr(Parser *p)
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
    then = tmpl_or_expr(p);
    while (tmpl_skip_name(p, "if")) {
        Node *node = tmpl_node(p, N_COND, then->at);

        node->b = tmpl_adopt(p, node, then);
        node->a = tmpl_adopt(p, node, tmpl_or_expr(p));
        if (tmpl_skip_name(p, "else"))
            node->c = tmpl_adopt(p, node, tmpl_expression(p));
        then = tmpl_close(p, node);
    }
    tmpl_leave(p);
    return then;
}
