/* SPDX-License-Identifier: Apache-2.0
 * What the files of the parser share: tokens, nodes. Private to core/template.
 * Source of the grammar: jinja2 3.1.6 parser.py. */
#ifndef DAVIT_TEMPLATE_PARSER_H
#define DAVIT_TEMPLATE_PARSER_H

#include "template/lexer.h"

void tmpl_next(Parser *p);           /* on to the next token */
const Token *tmpl_look(Parser *p);   /* the token after the current one */
bool tmpl_at_name(const Parser *p, const char *name);
bool tmpl_at_op(const Parser *p, uint32_t op);
bool tmpl_skip_name(Parser *p, const char *name);
bool tmpl_skip_op(Parser *p, uint32_t op);
void tmpl_expect_op(Parser *p, uint32_t op);
Str *tmpl_expect_name(Parser *p); /* interned */
Str *tmpl_intern(Parser *p, const Str *s);

Node *tmpl_node(Parser *p, NodeKind kind, uint32_t at);
/* Make @child (may be NULL) count for @parent's height; returns @child. */
Node *tmpl_adopt(Parser *p, Node *parent, Node *child);
void tmpl_append(Parser *p, Node *parent, NodeList *list, Node *child);
/* The node ends with the token before the current one. */
Node *tmpl_close(Parser *p, Node *node);
/* One level down: refuses the one past the limit. */
void tmpl_enter(Parser *p);
void tmpl_leave(Parser *p);

/* Expressions (parse_operators.c); tmpl_or_expr is one without "x if y". */
Node *tmpl_expression(Parser *p);
Node *tmpl_or_expr(Parser *p);
/* What operators stand between (parse_expr.c): a literal, a name, brackets; what follows it
 * with a dot or in brackets; filters, tests and calls behind all that. */
Node *tmpl_primary(Parser *p, bool with_namespace);
Node *tmpl_postfix(Parser *p, Node *node);
Node *tmpl_filter_expr(Parser *p, Node *node);
/* A tuple without brackets. @conditional: "x if y" is allowed; @stop: a name that ends it. */
Node *tmpl_tuple(Parser *p, bool conditional, const char *stop);
/* What can be assigned to; @namespace: also ns.attr. */
Node *tmpl_target(Parser *p, const char *stop, bool with_namespace);
/* Filters on @node (NULL in filter blocks, where the first has no '|' when @inline_first). */
Node *tmpl_filters(Parser *p, Node *node, bool inline_first);

#endif
