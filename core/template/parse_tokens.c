/* SPDX-License-Identifier: Apache-2.0
 * Tokens and nodes for the files of the parser. */
#include "template/parser.h"

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
