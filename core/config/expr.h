/* SPDX-License-Identifier: Apache-2.0
 * Integer expressions of slot and config tables: "nh*hd", "ceildiv(I, 128)", "i >=
 * dense".
 *
 * Grammar: integers, symbols, ( ), + - * / (exact), %, == != < <= > >=, && || !, calls of
 * ceildiv roundup min max. 64-bit, overflow-checked. Recursion is bounded by depth 200.
 */
#ifndef DAVIT_CONFIG_EXPR_H
#define DAVIT_CONFIG_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"

typedef struct DavitScope {
    /* Value of a symbol, false if there is none. */
    bool (*lookup)(void *ctx, const char *sym, int64_t *out);
    void *ctx;
} DavitScope;

/* Evaluate @text. Errors (one record, subject @subject): syntax, unknown symbol, division
 * by zero or not exact, overflow, depth. Returns a status. */
int32_t davit_expr_eval(const char *text, const DavitScope *scope, const char *subject,
                        int64_t *out, DavitReport *report);

/* Split "a, b(c,d), e" at top-level commas into expressions and evaluate each; at most
 * @cap. Returns the count, or a negative status. */
int32_t davit_expr_list(const char *text, const DavitScope *scope, const char *subject,
                        int64_t *out, size_t cap, DavitReport *report);

#endif
