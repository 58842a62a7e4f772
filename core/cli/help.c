/* SPDX-License-Identifier: Apache-2.0
 * --help, man pages and shell completions, all from the command tables. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "engine/libdavit.h"

#define COLUMN 26 /* where the help text of a flag starts */

static void print_flag(const DavitFlag *f, FILE *to)
{
    g_autoptr(GString) left = g_string_new("  ");
    if (f->letter)
        g_string_append_printf(left, "-%c, ", f->letter);
    g_string_append_printf(left, "--%s", f->name);
    if (f->arg)
        g_string_append_printf(left, " %s", f->arg);
    fprintf(to, "%-*s", COLUMN, left->str);
    if (left->len >= COLUMN)
        fprintf(to, "\n%*s", COLUMN, "");
    fprintf(to, "%s", f->help);
    if (f->choices)
        fprintf(to, ": %s", f->choices);
    if (f->preset)
        fprintf(to, " (default %s)", f->preset);
    if (f->unbuilt)
        fprintf(to, " [not in this version]");
    fputc('\n', to);
}

void davit_help_overview(FILE *to)
{
    fprintf(to, "davit %s: loads language-model checkpoints through plugins and runs them\n\n"
                "usage: davit COMMAND [ARGUMENTS]\n\ncommands:\n",
            davit_version());
    for (const DavitCommand *const *c = davit_commands; *c; c++)
        fprintf(to, "  %-16s %s%s\n", (*c)->name, (*c)->summary,
                (*c)->run ? "" : " [not in this version]");
    fprintf(to, "\ndavit COMMAND --help describes a command. MODEL is a directory, a .gguf, a\n"
                ".safetensors file or its index, or org/name[@revision] in the hub's cache.\n\nexamples:\n"
                "  davit run model.gguf --prompt \"The capital of France is\"\n"
                "  davit inspect model-directory\n"
                "  davit plugin list\n");
}

void davit_help_command(const DavitCommand *c, FILE *to)
{
    fprintf(to, "usage: davit %s%s%s [FLAGS]\n\n%s\n", c->name, c->args ? " " : "",
            c->args ? c->args : "", c->description ? c->description : c->summary);
    if (!c->run)
        fprintf(to, "\nNot in this version.\n");
    if (c->flags && c->flags->name) {
        fprintf(to, "\nflags:\n");
        for (const DavitFlag *f = c->flags; f->name; f++)
            print_flag(f, to);
    }
    fprintf(to, "\ncommon flags:\n");
    for (const DavitFlag *f = davit_common_flags; f->name; f++)
        print_flag(f, to);
    if (c->examples) {
        fprintf(to, "\nexamples:\n");
        for (const char *const *e = c->examples; *e; e += 2)
            fprintf(to, "  %s\n      %s\n", e[0], e[1]);
    }
    fprintf(to, "\nexit codes: 0 done, 1 failed at run time, 2 usage, 3 refused, 4 malformed input,\n"
                "130 interrupted\n");
}

/* ---- man ---- */

/* troff: a leading dot or quote is a request, a backslash an escape, a dash a hyphen. */
static void print_troff(const char *text, FILE *to)
{
    bool line_start = true;
    for (const char *p = text; *p; p++) {
        if (line_start && (*p == '.' || *p == '\''))
            fputs("\\&", to);
        if (*p == '\\')
            fputs("\\e", to);
        else if (*p == '-')
            fputs("\\-", to);
        else
            fputc(*p, to);
        line_start = *p == '\n';
    }
}

static void man_flags(const DavitFlag *flags, FILE *to)
{
    for (const DavitFlag *f = flags; f && f->name; f++) {
        fputs(".TP\n.B ", to);
        if (f->letter) {
            fprintf(to, "\\-%c, ", f->letter);
        }
        fputs("\\-\\-", to);
        print_troff(f->name, to);
        if (f->arg)
            fprintf(to, " \\fI%s\\fP", f->arg);
        fputc('\n', to);
        print_troff(f->help, to);
        if (f->choices)
            fprintf(to, ": %s", f->choices);
        if (f->preset)
            fprintf(to, " (default %s)", f->preset);
        fprintf(to, "%s.\n", f->unbuilt ? "; not in this version" : "");
    }
}

void davit_help_man(const DavitCommand *c, FILE *to)
{
    g_autofree char *page = c ? g_strdup_printf("davit-%s", c->name) : g_strdup("davit");
    g_strdelimit(page, " ", '-');
    g_autofree char *title = g_ascii_strup(page, -1);
    fprintf(to, ".TH %s 1 \"\" \"davit %s\" \"davit\"\n.SH NAME\n", title, davit_version());
    print_troff(page, to);
    fputs(" \\- ", to);
    print_troff(c ? c->summary : "load language\\-model checkpoints through plugins and run them",
                to);
    fputs("\n.SH SYNOPSIS\n.B davit ", to);
    fprintf(to, "%s\n", c ? c->name : "COMMAND");
    if (c && c->args)
        fprintf(to, "\\fI%s\\fP\n", c->args);
    fputs("[FLAGS]\n.SH DESCRIPTION\n", to);
    if (c) {
        print_troff(c->description ? c->description : c->summary, to);
        fputs("\n.SH OPTIONS\n", to);
        man_flags(c->flags, to);
        man_flags(davit_common_flags, to);
        if (c->examples) {
            fputs(".SH EXAMPLES\n", to);
            for (const char *const *e = c->examples; *e; e += 2) {
                fputs(".TP\n.B ", to);
                print_troff(e[0], to);
                fputc('\n', to);
                print_troff(e[1], to);
                fputc('\n', to);
            }
        }
    } else {
        for (const DavitCommand *const *k = davit_commands; *k; k++) {
            fprintf(to, ".TP\n.B %s\n", (*k)->name);
            print_troff((*k)->summary, to);
            fputc('\n', to);
        }
    }
    fputs(".SH EXIT STATUS\n0 done; 1 failed at run time (I/O, memory, device); 2 usage; 3 refused\n"
          "(understood, not supported here); 4 malformed or inconsistent input; 130 interrupted.\n"
          ".SH ENVIRONMENT\n.B DAVIT_PLUGIN_PATH\nabsolute plugin directories, separated by colons.\n"
          ".br\n.B DAVIT_CPU_LEVEL\ncaps the processor level: scalar, x86\\-64\\-v2, x86\\-64\\-v3,\n"
          "avxvnni, x86\\-64\\-v4, avx512vnni.\n",
          to);
}

/* ---- completion ---- */

static void words_of(const DavitCommand *c, FILE *to)
{
    for (const DavitFlag *f = c->flags; f && f->name; f++)
        fprintf(to, " --%s", f->name);
    for (const DavitFlag *f = davit_common_flags; f->name; f++)
        fprintf(to, " --%s", f->name);
}

static void complete_bash(FILE *to)
{
    fputs("_davit() {\n    local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} words=\n"
          "    [ \"$cmd\" = plugin ] && cmd=\"plugin ${COMP_WORDS[2]}\"\n    case $cmd in\n",
          to);
    for (const DavitCommand *const *c = davit_commands; *c; c++) {
        fprintf(to, "    \"%s\") words='", (*c)->name);
        words_of(*c, to);
        fputs("' ;;\n", to);
    }
    fputs("    esac\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '", to);
    for (const DavitCommand *const *c = davit_commands; *c; c++)
        if (!strchr((*c)->name, ' '))
            fprintf(to, "%s ", (*c)->name);
    fputs("plugin' -- \"$cur\"))\n"
          "    elif [ \"$COMP_CWORD\" = 2 ] && [ \"${COMP_WORDS[1]}\" = plugin ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          to);
    for (const DavitCommand *const *c = davit_commands; *c; c++)
        if (strncmp((*c)->name, "plugin ", 7) == 0)
            fprintf(to, "%s ", (*c)->name + 7);
    fputs("' -- \"$cur\"))\n    elif [[ $cur == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    else\n"
          "        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\n"
          "complete -o filenames -F _davit davit\n",
          to);
}

/* Single quotes in help text would end a quoted word of the shell. */
static void print_quoted(const char *text, FILE *to)
{
    for (const char *p = text; *p; p++)
        if (*p == '\'')
            fputs("'\\''", to);
        else
            fputc(*p, to);
}

static void complete_zsh(FILE *to)
{
    fputs("#compdef davit\n_davit() {\n    local -a words\n    if (( CURRENT == 2 )); then\n"
          "        words=(\n",
          to);
    for (const DavitCommand *const *c = davit_commands; *c; c++)
        if (!strchr((*c)->name, ' ')) {
            fprintf(to, "            '%s:", (*c)->name);
            print_quoted((*c)->summary, to);
            fputs("'\n", to);
        }
    fputs("            'plugin:list and inspect plugins'\n        )\n"
          "        _describe command words\n        return\n    fi\n"
          "    local cmd=$words[2]\n    case ${(j: :)${(s: :)BUFFER}[2,3]} in\n",
          to);
    for (const DavitCommand *const *c = davit_commands; *c; c++) {
        fprintf(to, "    '%s'*) compadd --", (*c)->name);
        words_of(*c, to);
        fputs(" ;;\n", to);
    }
    fputs("    esac\n    _files\n}\n_davit \"$@\"\n", to);
}

static void complete_fish(FILE *to)
{
    for (const DavitCommand *const *c = davit_commands; *c; c++) {
        const bool sub = strchr((*c)->name, ' ') != NULL;
        if (!sub) {
            fprintf(to, "complete -c davit -n __fish_use_subcommand -a %s -d '", (*c)->name);
            print_quoted((*c)->summary, to);
            fputs("'\n", to);
        }
        for (const DavitFlag *f = (*c)->flags; f && f->name; f++) {
            fprintf(to, "complete -c davit -n '__fish_seen_subcommand_from %s' -l %s -d '",
                    sub ? (*c)->name + 7 : (*c)->name, f->name);
            print_quoted(f->help, to);
            fputs("'\n", to);
        }
    }
    for (const DavitFlag *f = davit_common_flags; f->name; f++) {
        fprintf(to, "complete -c davit -l %s -d '", f->name);
        print_quoted(f->help, to);
        fputs("'\n", to);
    }
}

void davit_help_completion(const char *shell, FILE *to)
{
    if (strcmp(shell, "zsh") == 0)
        complete_zsh(to);
    else if (strcmp(shell, "fish") == 0)
        complete_fish(to);
    else
        complete_bash(to);
}
