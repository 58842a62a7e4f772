/* SPDX-License-Identifier: Apache-2.0
 * The tree of a parsed template, and the frames of names in it. Private to core/template.
 *
 * Nodes lie in the template's arena. A name is resolved at parse time to (hops, slot): how
 * many frames outward, and which slot there; rules as jinja2's idtracking.py.
 */
#ifndef DAVIT_TEMPLATE_AST_H
#define DAVIT_TEMPLATE_AST_H

#include "template/template.h"
#include "template/value.h"

typedef enum NodeKind {
    /* expressions */
    N_CONST,   /* value */
    N_NAME,    /* name, hops, slot; op = 1 when it is a target */
    N_NSREF,   /* name.attr as a target: name, hops, slot, text = attr */
    N_LIST,    /* list */
    N_TUPLE,   /* list */
    N_DICT,    /* list: key, value, key, value ... */
    N_ATTR,    /* a . name */
    N_ITEM,    /* a [ b ] */
    N_SLICE,   /* a [ b : c : d ], each may be NULL */
    N_CALL,    /* a ( list of N_ARG ) */
    N_ARG,     /* a; op = ARG_, name of a keyword */
    N_FILTER,  /* a | name ( list ); a NULL in filter blocks */
    N_TEST,    /* a is name ( list ) */
    N_NOT,     /* a */
    N_NEG,
    N_POS,
    N_BINARY,  /* a op b; op = OP_ */
    N_AND,
    N_OR,
    N_COMPARE, /* a, list of N_OPERAND */
    N_OPERAND, /* a; op = OP_ */
    N_CONCAT,  /* list */
    N_COND,    /* b if a else c (NULL) */
    N_UNKNOWN, /* name: what a constant is called that Python cannot write (fold.c) */
    /* statements */
    N_TEXT,       /* text */
    N_OUTPUT,     /* a */
    N_PRINT,      /* list */
    N_FOR,        /* a target, b iterable, c test; body, other; op = recursive */
    N_IF,         /* a test; body, other (an N_IF alone for elif) */
    N_SET,        /* a target, b value */
    N_SET_BLOCK,  /* a target, b filter or NULL; body */
    N_MACRO,      /* name; params; body */
    N_CALL_BLOCK, /* a N_CALL; params; body */
    N_FILTER_BLOCK, /* a N_FILTER; body */
    N_WITH,       /* list: target, value ...; body */
    N_BLOCK,      /* name; body; op = BLOCK_; frame has no parent; b the block before it */
    N_EXTENDS,    /* a the template's name */
    N_INCLUDE,    /* a the template's name; op = ignore missing */
    N_IMPORT,     /* a the template's name; list of names that would be set */
    N_GENERATION, /* body */
    N_BREAK,
    N_CONTINUE,
} NodeKind;

typedef enum NodeOp {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
} NodeOp;

enum { ARG_POSITIONAL, ARG_KEYWORD, ARG_STAR, ARG_STAR_STAR };

#define BLOCK_SCOPED   1u /* it sees the variables of where it stands */
#define BLOCK_REQUIRED 2u /* only a template that extends this one could fill it */

typedef struct Node Node;
typedef struct Frame Frame;

/* A list of nodes, linked by Node.next. */
typedef struct NodeList {
    Node *first, *last;
    uint32_t n;
} NodeList;

/* A parameter of a macro or call block. */
typedef struct Param {
    Str *name;
    Node *fallback; /* default expression or NULL */
    uint32_t slot;
} Param;

struct Node {
    uint8_t kind; /* NodeKind */
    uint8_t op;
    uint8_t extended;  /* N_FOR: its body uses `loop` */
    uint8_t height;    /* 1 + the highest child's, at most DAVIT_TEMPLATE_MAX_DEPTH */
    uint32_t at, end;  /* bytes of the source */
    uint32_t hops, slot;
    Node *next;
    Node *a, *b, *c, *d;
    Str *name; /* interned */
    Str *text;
    Value value;
    NodeList list;
    NodeList body, other;
    Param *params;
    uint32_t n_params;
    int32_t caller_slot, kwargs_slot, varargs_slot; /* macros: -1 = not used */
    Frame *frame;                                   /* of body */
    Frame *test_frame, *else_frame;                 /* N_FOR */
};

/* How a name starts when its frame is entered. */
typedef enum SymLoad {
    LOAD_PARAM,   /* set by who enters */
    LOAD_RESOLVE, /* from the context */
    LOAD_ALIAS,   /* copy of an outer frame's name */
    LOAD_MISSING,
} SymLoad;

typedef struct Sym {
    Str *name;
    SymLoad load;
    bool stored;
    uint32_t hops, slot; /* LOAD_ALIAS: from the parent frame on, filled when it is done */
} Sym;

struct Frame {
    Frame *parent;
    Sym *syms;
    uint32_t n, cap;
};

struct DavitTemplate {
    Arena arena;
    char *name;       /* owned: for records */
    const char *text; /* in the arena: the source, newlines as LF */
    size_t len;
    NodeList body;
    Node *blocks; /* the last N_BLOCK, the others behind it; NULL = none */
    Frame *root;
    Str **names; /* interned, hash table of n_slots */
    uint32_t n_names, n_name_slots, n_frames;
};

/* ---- parse errors: longjmp to davit_template_parse ---- */

typedef struct Parser Parser;

/* Never returns. @code: DAVIT_R_ number, @status its DAVIT_E_. */
G_NORETURN void tmpl_syntax(Parser *p, uint32_t at, uint32_t end, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
G_NORETURN void tmpl_syntax_unsupported(Parser *p, uint32_t at, uint32_t end,
                                        const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Line and column (1-based, in code points) of byte @at of @text. */
void tmpl_position(const char *text, size_t at, uint32_t *out_line, uint32_t *out_column);

/* Parse all statements into p->t->body (parser.c). */
void tmpl_parse_body(Parser *p);

/* Names to slots, macros' special names, unknown filters (symbols.c). */
void tmpl_resolve_names(Parser *p);

/* Constant expressions become constants, where jinja2 makes them so (fold.c). */
void tmpl_fold(Parser *p);

#endif
