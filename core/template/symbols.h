/* SPDX-License-Identifier: Apache-2.0
 * Which variable a name means. jinja2 decides that when it compiles, frame by frame, before
 * it knows values; names are therefore resolved here in the same two steps: analyse a frame
 * (which names it defines and how they start; symbols.c), then give each use its frame and
 * slot (resolve.c). Private to core/template. */
#ifndef DAVIT_TEMPLATE_SYMBOLS_H
#define DAVIT_TEMPLATE_SYMBOLS_H

#include "template/parser.h"

Frame *tmpl_frame_new(Parser *p, Frame *parent);

/* The frame's own entry of @name, or NULL. */
Sym *tmpl_sym_own(Parser *p, Frame *frame, const Str *name);
/* The same in @frame or a frame round it, *out_hops outward. */
Sym *tmpl_sym_find(Parser *p, Frame *frame, const Str *name, uint32_t *out_hops);
/* @name, and all names of a target, as parameters of @frame. */
void tmpl_sym_declare(Parser *p, Frame *frame, Str *name);
void tmpl_declare_target(Parser *p, Frame *frame, Node *target);

/* Note in @frame what @node loads and stores, but not what frames of its own do. */
void tmpl_visit(Parser *p, Frame *frame, Node *node);
void tmpl_visit_list(Parser *p, Frame *frame, const NodeList *list);

/* First use of @name in the order of jinja's fields: 0 none, 1 loaded (p->used is it), 2 stored. */
int tmpl_first_use(Parser *p, const NodeList *list, const Str *name);

#endif
