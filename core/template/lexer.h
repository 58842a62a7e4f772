/* SPDX-License-Identifier: Apache-2.0
 * Template source to tokens, with transformers' settings: trim_blocks, lstrip_blocks, one
 * trailing newline dropped. Private to core/template. Source: jinja2 3.1.6 lexer.py. */
#ifndef DAVIT_TEMPLATE_LEXER_H
#define DAVIT_TEMPLATE_LEXER_H

#include "template/ast.h"

typedef enum TokenType {
    T_EOF,
    T_DATA, /* str */
    T_VARIABLE_BEGIN,
    T_VARIABLE_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,    /* str */
    T_STRING,  /* str */
    T_INTEGER, /* value */
    T_FLOAT,   /* value */
    T_OPERATOR, /* op: the characters, 'a' or 'a' << 8 | 'b' */
} TokenType;

#define TOK2(a, b) ((uint32_t)(a) << 8 | (uint32_t)(b))

typedef struct Token {
    TokenType type;
    uint32_t op;
    uint32_t at, end; /* bytes of the source */
    Str *str;
    Value value;
} Token;

typedef enum LexState { LEX_DATA, LEX_VARIABLE, LEX_BLOCK } LexState;

#define LEX_MAX_BRACKETS 200

struct Parser {
    struct DavitTemplate *t;
    Arena *arena;
    /* lexer */
    const char *src;
    uint32_t n, pos;
    LexState state;
    bool line_start; /* the last token ended with a newline */
    char brackets[LEX_MAX_BRACKETS];
    uint32_t n_brackets;
    /* parser */
    Token tok, ahead;
    bool has_ahead;
    uint32_t depth;
    uint32_t for_depth;  /* open for statements */
    uint32_t loop_depth; /* loops that break would leave */
    uint32_t last_end; /* end of the token before tok */
    /* names */
    Frame *frame;
    bool soft;     /* inside a condition: unknown filters are errors when reached */
    uint64_t work; /* steps of name analysis, bounded */
    const Node *used; /* the name that tmpl_first_use found last */
    /* errors */
    jmp_buf fail;
    uint32_t code;
    int32_t status;
    char message[256];
    uint32_t fail_at, fail_end;
};

/* The next token. Errors: tmpl_syntax. */
Token tmpl_lex(Parser *p);

#endif
