/* SPDX-License-Identifier: Apache-2.0
 * Reading a command line against a command's table. Every value is checked here, so that a
 * command never meets a bad one. (GOption cannot report all findings at once, nor tell a flag
 * of a later version from an unknown one.) */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

const DavitFlag davit_common_flags[] = {
    {"json", 0, DAVIT_FLAG_SWITCH, NULL, "print one JSON document on stdout", NULL, NULL, false},
    {"plugin-path", 0, DAVIT_FLAG_LIST, "PATH",
     "look for plugins in this directory or file first; may be repeated", NULL, NULL, false},
    {"trust-dir", 0, DAVIT_FLAG_LIST, "DIR",
     "load plugins from here although others may write to it; may be repeated", NULL, NULL, false},
    {"device", 0, DAVIT_FLAG_TEXT, "DEVICE", "where to compute: cpu, auto or a device's name",
     NULL, "cpu", false},
    {"threads", 0, DAVIT_FLAG_COUNT, "N", "worker threads, 0 = as many CPUs as are allowed", NULL,
     "0", false},
    {"quiet", 'q', DAVIT_FLAG_SWITCH, NULL, "print errors only", NULL, NULL, false},
    {"verbose", 'v', DAVIT_FLAG_SWITCH, NULL, "print more detail", NULL, NULL, false},
    {"help", 'h', DAVIT_FLAG_SWITCH, NULL, "show this help", NULL, NULL, false},
    {0},
};

static int32_t usage(DavitReport *report, const char *subject, const char *expected,
                     const char *found, const char *message, const char *hint)
{
    return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                                    .status = DAVIT_E_USAGE,
                                                    .stage = "options",
                                                    .subject = subject,
                                                    .expected = expected,
                                                    .found = found,
                                                    .message = message,
                                                    .hint = hint});
}

bool davit_parse_count(const char *text, uint64_t *out)
{
    if (!g_ascii_isdigit(text[0]))
        return false;
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (errno || *end != '\0')
        return false;
    *out = n;
    return true;
}

bool davit_parse_number(const char *text, double *out)
{
    if (!g_ascii_isdigit(text[0]) && text[0] != '-' && text[0] != '.')
        return false;
    char *end;
    errno = 0;
    const double x = g_ascii_strtod(text, &end);
    if (errno || *end != '\0' || end == text || !isfinite(x))
        return false;
    *out = x;
    return true;
}

GArray *davit_parse_ids(const char *flag, const char *text, DavitReport *report)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_auto(GStrv) words = g_strsplit_set(text, " ,\n\t", -1);
    for (char **w = words; *w; w++) {
        uint64_t n;
        if ((*w)[0] == '\0')
            continue;
        const bool number = strspn(*w, "0123456789") == strlen(*w);
        if (!davit_parse_count(*w, &n) || n > INT32_MAX) {
            usage(report, flag,
                  number ? "token ids, at most 2147483647 each"
                         : "token ids separated by spaces or commas",
                  *w, number ? "a token id is too high" : "a token id is not a whole number", NULL);
            return NULL;
        }
        const int32_t id = (int32_t)n;
        g_array_append_val(ids, id);
    }
    return g_steal_pointer(&ids);
}

/* ---- look-up ---- */

static const DavitFlag *find_in(const DavitFlag *flags, const char *name)
{
    for (; flags && flags->name; flags++)
        if (strcmp(flags->name, name) == 0)
            return flags;
    return NULL;
}

static const DavitFlag *find_flag(const DavitCommand *command, const char *name)
{
    const DavitFlag *flag = find_in(command->flags, name);
    return flag ? flag : find_in(davit_common_flags, name);
}

bool davit_call_has(const DavitCall *call, const char *flag)
{
    return g_hash_table_contains(call->values, flag);
}

const char *davit_call_text(const DavitCall *call, const char *flag)
{
    const GPtrArray *values = g_hash_table_lookup(call->values, flag);
    if (values)
        return g_ptr_array_index(values, values->len - 1);
    const DavitFlag *row = find_flag(call->command, flag);
    g_assert(row); /* a command asks for flags of its own table only */
    return row->preset;
}

const char **davit_call_list(const DavitCall *call, const char *flag)
{
    const GPtrArray *values = g_hash_table_lookup(call->values, flag);
    if (!values)
        return NULL;
    const char **list = g_new0(const char *, values->len + 1);
    for (guint i = 0; i < values->len; i++)
        list[i] = g_ptr_array_index(values, i);
    return list;
}

uint64_t davit_call_count(const DavitCall *call, const char *flag)
{
    uint64_t n = 0;
    const char *text = davit_call_text(call, flag);
    if (text)
        davit_parse_count(text, &n);
    return n;
}

double davit_call_number(const DavitCall *call, const char *flag)
{
    double x = 0;
    const char *text = davit_call_text(call, flag);
    if (text)
        davit_parse_number(text, &x);
    return x;
}

/* ---- checking ---- */

static bool in_choices(const char *choices, const char *value)
{
    g_auto(GStrv) list = g_strsplit(choices, "|", -1);
    return g_strv_contains((const char *const *)list, value);
}

static int32_t check_value(const DavitFlag *flag, const char *value, DavitReport *report)
{
    uint64_t n;
    double x;
    const char *name = davit_report_text(report, "--%s", flag->name);
    if (flag->unbuilt)
        return davit_report_add(report,
                                &(DavitFinding){.code = DAVIT_R_NOT_BUILT,
                                                .status = DAVIT_E_USAGE,
                                                .stage = "options",
                                                .subject = name,
                                                .message = "not in this version"});
    switch (flag->type) {
    case DAVIT_FLAG_COUNT:
        return davit_parse_count(value, &n)
                   ? DAVIT_OK
                   : usage(report, name, "a whole number, 0 or more", value,
                           "the value is not a number", NULL);
    case DAVIT_FLAG_NUMBER:
        return davit_parse_number(value, &x)
                   ? DAVIT_OK
                   : usage(report, name, "a number", value, "the value is not a number", NULL);
    case DAVIT_FLAG_CHOICE:
        return in_choices(flag->choices, value)
                   ? DAVIT_OK
                   : usage(report, name, flag->choices, value, "the value is not known", NULL);
    default:
        return DAVIT_OK;
    }
}

static int32_t take_value(DavitCall *call, const DavitFlag *flag, const char *value)
{
    const int32_t status = check_value(flag, value, call->report);
    if (status)
        return status;
    GPtrArray *values = g_hash_table_lookup(call->values, flag->name);
    if (!values) {
        values = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(call->values, (gpointer)(uintptr_t)flag->name, values);
    } else if (flag->type != DAVIT_FLAG_LIST && flag->type != DAVIT_FLAG_SWITCH) {
        return usage(call->report, davit_report_text(call->report, "--%s", flag->name), NULL,
                     value, "the flag is given twice", NULL);
    }
    g_ptr_array_add(values, g_strdup(value));
    return DAVIT_OK;
}

/* Closest flag name by shared prefix, for the hint. */
static const char *nearest(const DavitCommand *command, const char *name)
{
    const char *best = NULL;
    size_t most = 2; /* less than three letters in common is no hint */
    const DavitFlag *tables[] = {command->flags, davit_common_flags};
    for (size_t t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const DavitFlag *f = tables[t]; f && f->name; f++) {
            size_t n = 0;
            while (f->name[n] && f->name[n] == name[n])
                n++;
            if (n > most) {
                most = n;
                best = f->name;
            }
        }
    return best;
}

static int32_t unknown_flag(DavitCall *call, const char *arg)
{
    const char *like = nearest(call->command, arg + strspn(arg, "-"));
    return usage(call->report, arg, NULL, NULL, "there is no such flag",
                 like ? davit_report_text(call->report, "did you mean --%s?", like)
                      : davit_report_text(call->report, "davit %s --help lists the flags",
                                          call->command->name));
}

static const DavitFlag *find_letter(const DavitCommand *command, char letter)
{
    const DavitFlag *tables[] = {command->flags, davit_common_flags};
    for (size_t t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const DavitFlag *f = tables[t]; f && f->name; f++)
            if (f->letter == letter)
                return f;
    return NULL;
}

/* One flag at argv[*at]; moves *at past its value. */
static int32_t read_flag(DavitCall *call, int argc, char **argv, int *at)
{
    const char *arg = argv[*at];
    const DavitFlag *flag;
    const char *value = NULL;
    if (arg[1] == '-') {
        const char *eq = strchr(arg, '=');
        g_autofree char *name =
            eq ? g_strndup(arg + 2, (gsize)(eq - arg - 2)) : g_strdup(arg + 2);
        flag = find_flag(call->command, name);
        value = eq ? eq + 1 : NULL;
    } else {
        flag = arg[2] == '\0' ? find_letter(call->command, arg[1]) : NULL;
    }
    if (!flag)
        return unknown_flag(call, arg);
    if (flag->type == DAVIT_FLAG_SWITCH)
        return value ? usage(call->report, arg, NULL, NULL, "the flag takes no value", NULL)
                     : take_value(call, flag, "");
    if (!value) {
        if (*at + 1 >= argc)
            return usage(call->report, arg, flag->arg, NULL, "the flag needs a value", NULL);
        value = argv[++*at];
    }
    return take_value(call, flag, value);
}

static int32_t check_args(DavitCall *call)
{
    const DavitCommand *c = call->command;
    if (call->n_args >= c->min_args && call->n_args <= c->max_args)
        return DAVIT_OK;
    const bool many = call->n_args > c->max_args;
    return usage(call->report, c->name, c->args ? c->args : "no arguments",
                 many ? call->args[c->max_args] : NULL,
                 many ? "there is an argument too many" : "an argument is missing",
                 davit_report_text(call->report, "davit %s --help shows the usage%s", c->name,
                                   many && c->max_args > 1
                                       ? "; words that are one argument go in quotes" : ""));
}

int32_t davit_call_parse(DavitCall *call, int argc, char **argv)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    int32_t status = DAVIT_OK;
    bool flags_end = false;
    call->values = g_hash_table_new_full(g_str_hash, g_str_equal, NULL,
                                         (GDestroyNotify)g_ptr_array_unref);
    for (int i = 0; i < argc; i++) {
        if (!flags_end && strcmp(argv[i], "--") == 0) {
            flags_end = true;
        } else if (!flags_end && argv[i][0] == '-' && argv[i][1] != '\0') {
            const int32_t one = read_flag(call, argc, argv, &i);
            status = status ? status : one;
        } else {
            g_ptr_array_add(args, g_strdup(argv[i]));
        }
    }
    call->n_args = args->len;
    g_ptr_array_add(args, NULL);
    call->args = (char **)g_ptr_array_free(g_steal_pointer(&args), FALSE);
    call->json = davit_call_has(call, "json");
    call->quiet = davit_call_has(call, "quiet");
    call->verbose = davit_call_has(call, "verbose");
    if (status || davit_call_has(call, "help"))
        return status;
    return check_args(call);
}

void davit_call_clear(DavitCall *call)
{
    g_strfreev(call->args);
    if (call->values)
        g_hash_table_unref(call->values);
    json_decref(call->doc);
    if (call->part_text)
        g_string_free(call->part_text, TRUE);
    davit_report_free(call->report);
    *call = (DavitCall){0};
}
