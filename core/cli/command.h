/* SPDX-License-Identifier: Apache-2.0
 * Commands as tables: parsing, --help, man pages and completions all come from here.
 *
 * A command is one file with one DavitCommand; table.c lists them. A command function gets
 * parsed values, writes results to stdout (or into call->doc with --json) and returns an exit
 * code; findings go to call->report and are printed by main.c.
 */
#ifndef DAVIT_CLI_COMMAND_H
#define DAVIT_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/json_write.h"
#include "base/report.h"
#include "plugin/registry.h"

/* Exit codes, DESIGN of the command line: tests and users rely on them. */
#define DAVIT_EXIT_OK        0
#define DAVIT_EXIT_FAILED    1 /* I/O, memory, device */
#define DAVIT_EXIT_USAGE     2
#define DAVIT_EXIT_REFUSED   3 /* understood, not supported here */
#define DAVIT_EXIT_MALFORMED 4
#define DAVIT_EXIT_INTERRUPT 130

typedef enum DavitFlagType {
    DAVIT_FLAG_SWITCH, /* no value */
    DAVIT_FLAG_TEXT,
    DAVIT_FLAG_LIST,   /* may be given several times */
    DAVIT_FLAG_COUNT,  /* whole number >= 0 */
    DAVIT_FLAG_NUMBER, /* real number */
    DAVIT_FLAG_CHOICE, /* one of `choices` */
} DavitFlagType;

typedef struct DavitFlag {
    const char *name;    /* without "--"; NULL ends a table */
    char letter;         /* short form, 0 = none */
    DavitFlagType type;
    const char *arg;     /* name of the value in help, NULL for switches */
    const char *help;    /* one sentence without a full stop, starts in lower case */
    const char *choices; /* CHOICE: "a|b|c" */
    const char *preset;  /* default as text, shown in help; NULL = none */
    bool unbuilt;        /* documented, "not in this version": exit 2 when given */
} DavitFlag;

typedef struct DavitCall DavitCall;

typedef struct DavitCommand {
    const char *name;       /* "run"; sub-commands "plugin list" */
    const char *args;       /* "MODEL [TEXT]"; how many: min_args, max_args */
    unsigned min_args, max_args;
    const char *summary;    /* one line */
    const char *description;/* a few sentences for help and man page */
    const DavitFlag *flags; /* beyond the common ones */
    const char *const *examples; /* pairs: command line, what it does; NULL-terminated */
    int (*run)(DavitCall *call); /* NULL = not in this version */
} DavitCommand;

struct DavitCall {
    const DavitCommand *command;
    DavitReport *report; /* findings, printed at the end */
    bool json, quiet, verbose;
    char **args;         /* positional, NULL-terminated */
    unsigned n_args;
    char **plugin_paths; /* NULL-terminated, may be NULL */
    GHashTable *values;  /* flag name -> GPtrArray of char* (owned) */
    json_t *doc;         /* with --json: fields of the document; schema, ok and records are
                          * added by main.c */
    const char *part;    /* (static) field of doc whose value is text already; NULL = none */
    GString *part_text;  /* (owned) */
};

/* All commands, in help's order; the last has name NULL. */
extern const DavitCommand *const davit_commands[];
/* Flags that every command takes. */
extern const DavitFlag davit_common_flags[];

/* ---- values of flags ---- */

bool davit_call_has(const DavitCall *call, const char *flag);
/* Text of the flag, else its preset, else NULL. (borrowed) */
const char *davit_call_text(const DavitCall *call, const char *flag);
/* NULL-terminated list, NULL when not given. (borrowed array: g_free it, not the strings) */
const char **davit_call_list(const DavitCall *call, const char *flag);
/* Parsed when the command line was read, so these cannot fail. */
uint64_t davit_call_count(const DavitCall *call, const char *flag);
double davit_call_number(const DavitCall *call, const char *flag);

/* ---- parsing ---- */

/* Fill @call from argv after the command's words. Errors are USAGE records. */
int32_t davit_call_parse(DavitCall *call, int argc, char **argv);
void davit_call_clear(DavitCall *call);
/* Strict: the whole text, no overflow, no sign, no blanks. */
bool davit_parse_count(const char *text, uint64_t *out);
bool davit_parse_number(const char *text, double *out);
/* "1 2,3" -> ids; returns NULL with a record about @flag for anything else. (owned GArray of
 * int32_t) */
GArray *davit_parse_ids(const char *flag, const char *text, DavitReport *report);

/* ---- help ---- */

void davit_help_overview(FILE *to);
void davit_help_command(const DavitCommand *command, FILE *to);
void davit_help_man(const DavitCommand *command, FILE *to);      /* troff */
void davit_help_completion(const char *shell, FILE *to);         /* bash, zsh, fish */

/* ---- shared steps of commands ---- */

/* From now on a fatal signal names the plugin whose code was running. (fatal.c) */
void davit_fatal_install(void);

/* (owned) Registry over --plugin-path and the usual places; NULL after an error, such as a
 * plugin path that does not exist. */
DavitRegistry *davit_call_registry(DavitCall *call);
/* USAGE record + exit code in one. */
int davit_call_usage(DavitCall *call, const char *subject, const char *message,
                     const char *hint);
/* With --json: the value of field @key is written as text, now, because it is large. One field
 * a document. Returns: (owned, davit_json_writer_finish) where it goes. */
DavitJsonWriter *davit_call_begin_part(DavitCall *call, const char *key);
/* Exit code of what the report holds. */
int davit_call_exit(const DavitCall *call);
/* Print @text to stdout; false when stdout is closed. */
bool davit_out(const char *text, size_t n);
bool davit_out_part(const char *text, size_t n); /* the same, written when there is more of it */
/* (owned) @text as JSON string with invalid UTF-8 replaced. */
json_t *davit_json_text(const char *text);
json_t *davit_json_text_n(const char *text, size_t n); /* the same; it may hold NULs */
/* (borrowed, valid for the next fifteen calls) @text fit for a terminal: controls escaped. */
const char *davit_shown(const char *text);
/* Columns of the terminal at @fd (at least 40; 80 if it does not tell), 0 = none. */
size_t davit_terminal_columns(int fd);
/* (owned, g_free) @text with line ends and @indent blanks in place of blanks, so that no line is
 * longer than @columns; a word that alone is longer stays whole. 0 = as it is. */
char *davit_wrap(const char *text, size_t columns, size_t indent);
/* (owned, g_free) "1.2 GiB" */
char *davit_bytes_text(uint64_t n);

#endif
