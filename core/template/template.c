/* SPDX-License-Identifier: Apache-2.0
 * A template from its text to its output: the two places that errors jump to, and the
 * records they become. */
#include "template/template.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/ucd.h>

#include "base/json.h"
#include "template/parser.h"
#include "template/text.h"

#define PARSE_MEMORY   (256ull << 20)
#define FIRST_NAME_SLOTS 64u /* a power of two; at most half are taken */
#define DEFAULT_OUTPUT (64ull << 20)
#define DEFAULT_MEMORY (512ull << 20)
#define DEFAULT_STEPS  64000000ull

/* ---- errors ---- */

void tmpl_position(const char *text, size_t at, uint32_t *out_line, uint32_t *out_column)
{
    *out_line = *out_column = 1;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            ++*out_line;
            *out_column = 1;
        } else {
            *out_column += (text[i] & 0xc0) != 0x80;
        }
    }
}

static void report_at(DavitReport *report, const DavitTemplate *t, const DavitFinding *what,
                      uint32_t at, uint32_t end)
{
    DavitFinding finding = *what;
    uint32_t line, column;

    at = MIN(at, (uint32_t)t->len);
    end = MIN(MAX(end, at), (uint32_t)t->len);
    tmpl_position(t->text, at, &line, &column);
    finding.stage = "template";
    finding.subject = davit_report_text(report, "%s, line %u, column %u", t->name, line, column);
    if (end > at)
        finding.found =
            davit_report_text(report, "%.*s", (int)MIN(end - at, 150), t->text + at);
    else if (at == t->len)
        finding.found = "the end of the template";
    davit_report_add(report, &finding);
}

static void syntax_error(Parser *p, uint32_t at, uint32_t end, uint32_t code, int32_t status,
                         const char *format, va_list args)
{
    p->fail_at = at;
    p->fail_end = end;
    p->code = code;
    p->status = status;
    g_vsnprintf(p->message, sizeof p->message, format, args);
}

void tmpl_syntax(Parser *p, uint32_t at, uint32_t end, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    syntax_error(p, at, end, DAVIT_R_TEMPLATE_INVALID, DAVIT_E_CORRUPT, format, args);
    va_end(args);
    longjmp(p->fail, 1);
}

void tmpl_syntax_unsupported(Parser *p, uint32_t at, uint32_t end, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    syntax_error(p, at, end, DAVIT_R_TEMPLATE_UNSUPPORTED, DAVIT_E_UNSUPPORTED, format, args);
    va_end(args);
    longjmp(p->fail, 1);
}

static void run_error(Vm *vm, FailKind kind, const char *format, va_list args)
{
    vm->kind = kind;
    g_vsnprintf(vm->message, sizeof vm->message, format, args);
}

void tmpl_raise(Vm *vm, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    run_error(vm, FAIL_RAISED, format, args);
    va_end(args);
    longjmp(vm->fail, 1);
}

void tmpl_unsupported(Vm *vm, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    run_error(vm, FAIL_UNSUPPORTED, format, args);
    va_end(args);
    longjmp(vm->fail, 1);
}

void tmpl_limit(Vm *vm, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    run_error(vm, FAIL_LIMIT, format, args);
    va_end(args);
    longjmp(vm->fail, 1);
}

void tmpl_step(Vm *vm, uint64_t n)
{
    vm->steps += n;
    if (vm->steps > vm->max_steps)
        tmpl_limit(vm, "more than %" G_GUINT64_FORMAT " steps", vm->max_steps);
}

void tmpl_check_depth(Vm *vm, uint32_t depth)
{
    if (depth > DAVIT_TEMPLATE_MAX_DEPTH)
        tmpl_limit(vm, "a value nested more than %u deep", DAVIT_TEMPLATE_MAX_DEPTH);
}

/* ---- names ---- */

static uint32_t hash_name(const Str *s)
{
    uint32_t h = 2166136261u;

    for (uint32_t i = 0; i < s->n; i++)
        h = (h ^ (uint8_t)s->p[i]) * 16777619u;
    return h;
}

static Str **name_slot(const DavitTemplate *t, const Str *name)
{
    uint32_t at = hash_name(name) & (t->n_name_slots - 1);

    while (t->names[at] && !tmpl_str_equal(t->names[at], name))
        at = (at + 1) & (t->n_name_slots - 1);
    return &t->names[at];
}

/* Twice the slots. */
static void grow_names(DavitTemplate *t)
{
    Str **old = t->names;
    const uint32_t n_old = t->n_name_slots;

    t->names = tmpl_new_n(&t->arena, Str *, 2 * n_old);
    t->n_name_slots = 2 * n_old;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i])
            *name_slot(t, old[i]) = old[i];
}

Str *tmpl_intern(Parser *p, const Str *s)
{
    Str **slot = name_slot(p->t, s);

    if (*slot)
        return *slot;
    if (p->t->n_names == DAVIT_TEMPLATE_MAX_NAMES)
        tmpl_syntax_unsupported(p, p->tok.at, p->tok.end, "more than %u different names",
                                DAVIT_TEMPLATE_MAX_NAMES);
    if (2 * (p->t->n_names + 1) > p->t->n_name_slots) {
        grow_names(p->t);
        slot = name_slot(p->t, s);
    }
    p->t->n_names++;
    *slot = tmpl_str(p->arena, s->p, s->n);
    return *slot;
}

/* ---- parse ---- */

/* The source as jinja sees it: LF for CR LF and CR, without one newline at its end. */
static void take_source(DavitTemplate *t, const char *text, size_t len)
{
    char *copy = tmpl_alloc(&t->arena, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n')
            continue;
        copy[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (n && copy[n - 1] == '\n')
        n--;
    copy[n] = '\0';
    t->text = copy;
    t->len = n;
}

static bool parse(Parser *p, const char *text, size_t len)
{
    DavitTemplate *t = p->t;

    t->arena.full = &p->fail;
    p->code = DAVIT_R_TEMPLATE_UNSUPPORTED;
    p->status = DAVIT_E_LIMIT;
    g_strlcpy(p->message, "the template needs too much memory", sizeof p->message);
    t->text = "";
    if (setjmp(p->fail))
        return false;
    t->n_name_slots = FIRST_NAME_SLOTS;
    t->names = tmpl_new_n(&t->arena, Str *, t->n_name_slots);
    take_source(t, text, len);
    p->src = t->text;
    p->n = (uint32_t)t->len;
    p->line_start = true;
    tmpl_parse_body(p);
    tmpl_resolve_names(p);
    tmpl_fold(p);
    return true;
}

static bool check_source(const char *text, size_t len, const char *name, DavitReport *report)
{
    const uint64_t bad = len > DAVIT_TEMPLATE_MAX_BYTES ? 0 : davit_ucd_check(text, len);

    if (len <= DAVIT_TEMPLATE_MAX_BYTES && bad == len)
        return true;
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_TEMPLATE_INVALID,
                        .status = len > DAVIT_TEMPLATE_MAX_BYTES ? DAVIT_E_LIMIT
                                                                          : DAVIT_E_CORRUPT,
                        .stage = "template",
                        .subject = name,
                        .expected = len > DAVIT_TEMPLATE_MAX_BYTES ? "at most 4 MiB" : "UTF-8",
                        .found = len > DAVIT_TEMPLATE_MAX_BYTES
                                     ? davit_report_text(report, "%zu bytes", len)
                                     : davit_report_text(report, "byte 0x%02x at offset %zu",
                                                         (unsigned)(uint8_t)text[bad],
                                                         (size_t)bad),
                        .message = "the chat template cannot be read"});
    return false;
}

DavitTemplate *davit_template_parse(const char *text, size_t len, const char *name,
                                    DavitReport *report)
{
    g_autoptr(DavitTemplate) t = NULL;
    g_autofree Parser *p = NULL;

    if (!check_source(text, len, name, report))
        return NULL;
    t = g_new0(DavitTemplate, 1);
    t->name = g_strdup(name);
    t->arena.limit = PARSE_MEMORY;
    p = g_new0(Parser, 1);
    p->t = t;
    p->arena = &t->arena;
    if (parse(p, text, len)) {
        t->arena.full = NULL;
        return g_steal_pointer(&t);
    }
    report_at(report, t,
              &(DavitFinding){.code = p->code,
                              .status = p->status,
                              .message = davit_report_text(report, "the chat template: %s",
                                                           p->message)},
              p->fail_at, p->fail_end);
    return NULL;
}

void davit_template_free(DavitTemplate *t)
{
    if (!t)
        return;
    tmpl_arena_clear(&t->arena);
    g_free(t->name);
    g_free(t);
}

const char *davit_template_text(const DavitTemplate *t, size_t *out_len)
{
    *out_len = t->len;
    return t->text;
}

bool davit_template_reads(const DavitTemplate *t, const char *name)
{
    const Str s = {.p = name, .n = (uint32_t)strlen(name)};

    return *name_slot(t, &s) != NULL;
}

/* ---- render ---- */

static bool add_variables(Vm *vm, const DavitTemplateArgs *args, DavitReport *report)
{
    vm->context = tmpl_dict_new(vm);
    for (const Builtin *b = tmpl_builtins; b->name; b++)
        tmpl_dict_set_text(vm, vm->context, b->name,
                           (Value){.type = V_BUILTIN, .builtin = b});
    for (size_t i = 0; i < args->n_vars; i++) {
        Value v = tmpl_none();

        if (!tmpl_from_json(vm, &args->vars[i], report, &v))
            return false;
        tmpl_dict_set_text(vm, vm->context, args->vars[i].name, v);
    }
    return true;
}

/* False when the machine failed, *out_input false when a variable did. */
static bool run(Vm *vm, const DavitTemplateArgs *args, DavitReport *report, bool *out_input)
{
    vm->kind = FAIL_LIMIT;
    g_strlcpy(vm->message, "the values need too much memory", sizeof vm->message);
    vm->arena.full = &vm->fail;
    if (setjmp(vm->fail))
        return false;
    *out_input = add_variables(vm, args, report);
    if (!*out_input)
        return true;
    vm->top = vm->out = tmpl_new(&vm->arena, Sb);
    vm->out->arena = &vm->arena;
    vm->root = tmpl_scope_new(vm, NULL, vm->t->root);
    tmpl_scope_enter(vm, vm->root);
    tmpl_exec(vm, vm->root, &vm->t->body);
    return true;
}

static int32_t report_failure(const Vm *vm, DavitReport *report)
{
    static const uint32_t codes[] = {DAVIT_R_TEMPLATE_RAISED, DAVIT_R_TEMPLATE_UNSUPPORTED,
                                     DAVIT_R_TEMPLATE_UNSUPPORTED};
    static const char *const leads[] = {"the chat template failed: ",
                                        "the chat template needs what davit does not have: ",
                                        "the chat template passed a limit: "};
    const int32_t status = vm->kind == FAIL_LIMIT ? DAVIT_E_LIMIT : DAVIT_E_UNSUPPORTED;

    report_at(report, vm->t,
              &(DavitFinding){.code = codes[vm->kind],
                              .status = status,
                              .message = davit_report_text(report, "%s%s", leads[vm->kind],
                                                           vm->message)},
              vm->at ? vm->at->at : 0, vm->at ? vm->at->end : 0);
    return status;
}

static int32_t take_output(const Vm *vm, DavitRendered *out, DavitReport *report)
{
    const Sb *sb = vm->top;

    *out = (DavitRendered){.text = g_try_malloc(sb->n + 1),
                           .len = sb->n,
                           .untrusted = g_try_malloc0(sb->n + 1),
                           .generation = g_try_new(DavitOutputSpan, vm->n_spans + 1),
                           .n_generation = vm->n_spans};
    if (!out->text || !out->untrusted || !out->generation) {
        davit_rendered_clear(out);
        return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                        .status = DAVIT_E_LIMIT,
                                                        .stage = "template",
                                                        .subject = vm->t->name,
                                                        .message = "no memory for the output"});
    }
    if (sb->n)
        memcpy(out->text, sb->p, sb->n);
    out->text[sb->n] = '\0';
    if (sb->taint)
        memcpy(out->untrusted, sb->taint, sb->n);
    if (vm->n_spans)
        memcpy(out->generation, vm->spans, vm->n_spans * sizeof *vm->spans);
    return DAVIT_OK;
}

int32_t davit_template_render(const DavitTemplate *t, const DavitTemplateArgs *args,
                              DavitRendered *out, DavitReport *report)
{
    g_autofree Vm *vm = g_new0(Vm, 1);
    bool input = true;
    int32_t status;

    vm->t = t;
    vm->arena.limit = args->max_memory ? args->max_memory : DEFAULT_MEMORY;
    vm->max_output = args->max_output ? args->max_output : DEFAULT_OUTPUT;
    vm->max_steps = args->max_steps ? args->max_steps : DEFAULT_STEPS;
    vm->fixed_clock = args->fixed_clock;
    vm->now = args->now;
    if (!run(vm, args, report, &input))
        status = report_failure(vm, report);
    else if (!input)
        status = davit_report_first_error(report, 0)->status;
    else
        status = take_output(vm, out, report);
    davit_json_close(vm->reader);
    tmpl_arena_clear(&vm->arena);
    return status;
}

void davit_rendered_clear(DavitRendered *rendered)
{
    g_free(rendered->text);
    g_free(rendered->untrusted);
    g_free(rendered->generation);
    *rendered = (DavitRendered){0};
}
