/* SPDX-License-Identifier: Apache-2.0
 * Python's text: classes and cases of characters, str(), repr(), json.dumps(). Private to
 * core/template. */
#ifndef DAVIT_TEMPLATE_TEXT_H
#define DAVIT_TEMPLATE_TEXT_H

#include "template/run.h"

bool tmpl_is_space(uint32_t cp);        /* str.isspace, \s */
bool tmpl_is_line_end(uint32_t cp);     /* str.splitlines */
bool tmpl_is_printable(uint32_t cp);    /* str.isprintable */

typedef enum TextCase { CASE_UPPER, CASE_LOWER, CASE_TITLE } TextCase;
/* Bytes [start, end) of @s in another case, appended. Full mappings, final sigma. */
void tmpl_add_cased(Sb *out, const Str *s, size_t start, size_t end, TextCase to);
bool tmpl_is_cased(uint32_t cp);
Str *tmpl_lower(Vm *vm, const Str *s);
Str *tmpl_upper(Vm *vm, const Str *s);
/* Without blanks (@chars NULL) or characters of the set @chars at its ends. */
Str *tmpl_strip(Vm *vm, Str *s, const Str *chars, bool left, bool right);
/* Markup's escape of & < > ' ". */
Str *tmpl_escape(Vm *vm, const Str *s);

/* str(v). Never another object than @v's own string when it is one. */
Str *tmpl_to_str(Vm *vm, Value v);
void tmpl_print(Vm *vm, Sb *out, Value v); /* str(v), appended */
void tmpl_repr(Vm *vm, Sb *out, Value v, uint32_t depth);
/* repr of a float into @out, at least 32 bytes. */
void tmpl_float_repr(double f, char *out);

typedef struct JsonStyle {
    bool ascii, sort_keys;
    bool has_indent;
    Str *indent;                 /* one level */
    Str *item_separator, *key_separator;
} JsonStyle;
void tmpl_to_json(Vm *vm, Sb *out, Value v, const JsonStyle *style, uint32_t depth);

#endif
