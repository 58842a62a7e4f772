/* SPDX-License-Identifier: Apache-2.0
 * Recursive-descent evaluation of integer expressions. One pass, no tree: the value is
 * computed while the text is read. The right side of && and || that cannot matter is
 * still read and its symbols still looked up, but its arithmetic is not judged. */
#include "config/expr.h"

#include <string.h>

#define MAX_DEPTH  200 /* nested parentheses, calls and unary signs */
#define MAX_SYMBOL 64  /* bytes of a symbol */
#define MAX_ARGS   2

typedef struct Parser {
    const char *text; /* whole expression, for messages */
    const char *at;   /* next byte */
    const DavitScope *scope;
    const char *subject;
    DavitReport *report;
    int32_t status; /* sticky: after the first error everything unwinds */
    bool live;      /* false: inside a branch that cannot matter */
} Parser;

/* Binary operators: precedence ascending, all left-associative. Longer spellings first.
 */
typedef enum Op {
    OP_OR,
    OP_AND,
    OP_EQ,
    OP_NE,
    OP_LE,
    OP_GE,
    OP_LT,
    OP_GT,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    N_OPS,
} Op;

static const struct {
    const char *text;
    int precedence;
} operators[N_OPS] = {
    [OP_OR] = {"||", 1}, [OP_AND] = {"&&", 2}, [OP_EQ] = {"==", 3}, [OP_NE] = {"!=", 3},
    [OP_LE] = {"<=", 4}, [OP_GE] = {">=", 4},  [OP_LT] = {"<", 4},  [OP_GT] = {">", 4},
    [OP_ADD] = {"+", 5}, [OP_SUB] = {"-", 5},  [OP_MUL] = {"*", 6}, [OP_DIV] = {"/", 6},
    [OP_MOD] = {"%", 6},
};

/* Record the first error; later ones are its echo. Returns 0 for use as a value. */
static int64_t fail(Parser *p, uint32_t code, const char *expected, const char *message)
{
    if (p->status == DAVIT_OK)
        p->status = davit_report_add(p->report, &(DavitFinding){.code = code,
                                                                .status = DAVIT_E_CORRUPT,
                                                                .stage = "config",
                                                                .subject = p->subject,
                                                                .expected = expected,
                                                                .found = p->text,
                                                                .message = message});
    return 0;
}

static void skip_space(Parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool take(Parser *p, char token)
{
    skip_space(p);
    if (*p->at != token)
        return false;
    p->at++;
    return true;
}

static bool is_name_byte(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* ---- arithmetic ---- */

static int64_t divide(Parser *p, int64_t a, int64_t b)
{
    if (b == 0)
        return fail(p, DAVIT_R_CONFIG_INVALID, "a divisor other than 0",
                    "division by zero in an expression of the architecture's table");
    if (b == -1 && a == INT64_MIN)
        return fail(p, DAVIT_R_CONFIG_INVALID, "a value within 64 bits", "overflow");
    if (a % b != 0)
        return fail(
            p, DAVIT_R_CONFIG_INVALID,
            davit_report_text(
                p->report, "%" G_GINT64_FORMAT " divisible by %" G_GINT64_FORMAT, a, b),
            "division leaves a remainder");
    return a / b;
}

static int64_t modulo(Parser *p, int64_t a, int64_t b)
{
    if (b <= 0 || a < 0)
        return fail(p, DAVIT_R_CONFIG_INVALID, "a >= 0 and b > 0 in a % b",
                    "remainder of or by a negative value or zero");
    return a % b;
}

static int64_t apply(Parser *p, Op op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool overflow = false;

    if (!p->live || p->status != DAVIT_OK)
        return 0;
    switch (op) {
    case OP_OR:
        return a != 0 || b != 0;
    case OP_AND:
        return a != 0 && b != 0;
    case OP_EQ:
        return a == b;
    case OP_NE:
        return a != b;
    case OP_LE:
        return a <= b;
    case OP_GE:
        return a >= b;
    case OP_LT:
        return a < b;
    case OP_GT:
        return a > b;
    case OP_ADD:
        overflow = __builtin_add_overflow(a, b, &r);
        break;
    case OP_SUB:
        overflow = __builtin_sub_overflow(a, b, &r);
        break;
    case OP_MUL:
        overflow = __builtin_mul_overflow(a, b, &r);
        break;
    case OP_DIV:
        return divide(p, a, b);
    case OP_MOD:
        return modulo(p, a, b);
    case N_OPS:
        break;
    }
    if (overflow)
        return fail(p, DAVIT_R_CONFIG_INVALID, "a value within 64 bits", "overflow");
    return r;
}

/* Smallest multiple of @unit that is not below @a, or how many units that is. */
static int64_t round_up(Parser *p, int64_t a, int64_t unit, bool count)
{
    int64_t n, r;

    if (unit <= 0 || a < 0)
        return fail(p, DAVIT_R_CONFIG_INVALID, "a >= 0 and b > 0",
                    "ceildiv or roundup of or by a negative value or zero");
    n = a / unit + (a % unit != 0);
    if (count)
        return n;
    if (__builtin_mul_overflow(n, unit, &r))
        return fail(p, DAVIT_R_CONFIG_INVALID, "a value within 64 bits", "overflow");
    return r;
}

static int64_t call(Parser *p, const char *name, const int64_t arg[MAX_ARGS])
{
    if (strcmp(name, "min") == 0)
        return MIN(arg[0], arg[1]);
    if (strcmp(name, "max") == 0)
        return MAX(arg[0], arg[1]);
    if (strcmp(name, "ceildiv") != 0 && strcmp(name, "roundup") != 0)
        return fail(p, DAVIT_R_CONFIG_INVALID, "ceildiv, roundup, min or max",
                    "no such function");
    if (!p->live || p->status != DAVIT_OK)
        return 0;
    return round_up(p, arg[0], arg[1], name[0] == 'c');
}

/* ---- grammar ---- */

static int64_t parse_binary(Parser *p, int lowest, int depth);

static int64_t parse_integer(Parser *p)
{
    int64_t v = 0;

    for (; *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
            __builtin_add_overflow(v, (int64_t)(*p->at - '0'), &v))
            return fail(p, DAVIT_R_CONFIG_INVALID, "an integer within 64 bits",
                        "overflow");
    if (is_name_byte(*p->at, false) || *p->at == '.')
        return fail(p, DAVIT_R_CONFIG_INVALID, "an integer", "expression does not parse");
    return v;
}

/* A symbol, or a call of two arguments. */
static int64_t parse_name(Parser *p, int depth)
{
    char name[MAX_SYMBOL] = "";
    int64_t arg[MAX_ARGS] = {0};
    size_t n = 0;
    int64_t v = 0;

    while (is_name_byte(p->at[n], n == 0))
        n++;
    if (n >= sizeof name)
        return fail(p, DAVIT_R_CONFIG_INVALID, "at most 63 bytes", "symbol is too long");
    memcpy(name, p->at, n);
    p->at += n;
    if (!take(p, '(')) {
        if (!p->scope->lookup(p->scope->ctx, name, &v))
            return fail(p, DAVIT_R_CONFIG_INVALID,
                        davit_report_text(p->report,
                                          "a symbol with an integer value, not %s", name),
                        "no such symbol in the architecture's table");
        return v;
    }
    arg[0] = parse_binary(p, 1, depth + 1);
    if (!take(p, ','))
        return fail(p, DAVIT_R_CONFIG_INVALID, "two arguments",
                    "expression does not parse");
    arg[1] = parse_binary(p, 1, depth + 1);
    if (!take(p, ')'))
        return fail(p, DAVIT_R_CONFIG_INVALID, ")", "expression does not parse");
    return call(p, name, arg);
}

static int64_t parse_unary(Parser *p,
                           int depth) /* NOLINT(misc-no-recursion): depth-bounded */
{
    int64_t v = 0;

    if (depth > MAX_DEPTH)
        return fail(p, DAVIT_R_CONFIG_INVALID, "at most 200 nested levels",
                    "expression is nested too deeply");
    skip_space(p);
    if (p->status != DAVIT_OK)
        return 0;
    if (*p->at == '!' && p->at[1] != '=') {
        p->at++;
        return parse_unary(p, depth + 1) == 0;
    }
    if (take(p, '-')) {
        v = parse_unary(p, depth + 1);
        return apply(p, OP_SUB, 0, v);
    }
    if (take(p, '(')) {
        v = parse_binary(p, 1, depth + 1);
        if (!take(p, ')'))
            return fail(p, DAVIT_R_CONFIG_INVALID, ")", "expression does not parse");
        return v;
    }
    if (*p->at >= '0' && *p->at <= '9')
        return parse_integer(p);
    if (is_name_byte(*p->at, true))
        return parse_name(p, depth);
    return fail(p, DAVIT_R_CONFIG_INVALID, "an integer, a symbol or (",
                "expression does not parse");
}

/* The operator at the cursor whose precedence is at least @lowest, or N_OPS. */
static Op take_operator(Parser *p, int lowest)
{
    skip_space(p);
    for (Op op = 0; op < N_OPS; op++) {
        const char *text = operators[op].text; /* one byte or two */

        if (*p->at != text[0] || (text[1] && p->at[1] != text[1]))
            continue;
        if (operators[op].precedence < lowest)
            return N_OPS;
        p->at += text[1] ? 2 : 1;
        return op;
    }
    return N_OPS;
}

/* Precedence climbing. @lowest is at most 7, so the C stack is bounded by depth alone.
 * NOLINTNEXTLINE(misc-no-recursion): depth-bounded */
static int64_t parse_binary(Parser *p, int lowest, int depth)
{
    int64_t left = parse_unary(p, depth);

    while (p->status == DAVIT_OK) {
        Op op = take_operator(p, lowest);
        bool live = p->live;
        int64_t right;

        if (op == N_OPS)
            break;
        if ((op == OP_AND && left == 0) || (op == OP_OR && left != 0))
            p->live = false;
        right = parse_binary(p, operators[op].precedence + 1, depth);
        p->live = live;
        left = apply(p, op, left, right);
    }
    return left;
}

/* One expression from the cursor on. */
static int64_t parse_one(Parser *p)
{
    int64_t v = parse_binary(p, 1, 0);

    skip_space(p);
    return v;
}

int32_t davit_expr_eval(const char *text, const DavitScope *scope, const char *subject,
                        int64_t *out, DavitReport *report)
{
    int64_t v = 0;
    int32_t n = davit_expr_list(text, scope, subject, &v, 1, report);

    if (n < 0)
        return n;
    *out = v;
    return DAVIT_OK;
}

int32_t davit_expr_list(const char *text, const DavitScope *scope, const char *subject,
                        int64_t *out, size_t cap, DavitReport *report)
{
    Parser p = {.text = text,
                .at = text,
                .scope = scope,
                .subject = subject,
                .report = report,
                .status = DAVIT_OK,
                .live = true};
    int32_t n = 0;

    do {
        int64_t v;

        if ((size_t)n >= cap) {
            fail(&p, DAVIT_R_CONFIG_INVALID,
                 davit_report_text(report, "at most %zu expressions", cap),
                 "expression does not parse");
            break;
        }
        v = parse_one(&p);
        if (p.status == DAVIT_OK)
            out[n++] = v;
    } while (p.status == DAVIT_OK && take(&p, ','));
    if (p.status == DAVIT_OK && *p.at != '\0')
        fail(&p, DAVIT_R_CONFIG_INVALID, "an operator or the end",
             "expression does not parse");
    return p.status == DAVIT_OK ? n : p.status;
}
