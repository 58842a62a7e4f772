/* SPDX-License-Identifier: Apache-2.0
 * davit why: every plugin asked about a model, what it said, and who was chosen. Each part is
 * asked even if one before it failed: an unknown architecture says nothing about the
 * tokenizer. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/plugin_show.h"
#include "config/config.h"
#include "engine/private.h"
#include "plan/plan.h"

static const char *const examples[] = {
    "davit why model/", "who takes this model, and why not others",
    "davit why model/ -v", "one line for each plugin that declines, too", NULL};

/* Those that decline for one reason share a line; up to NAMED are named. */
typedef struct Declined {
    GString *who;
    guint n;
    char *reason;
} Declined;

#define NAMED  2u
#define INDENT 15u /* of what does not fit the first line: behind the verdict */

typedef struct Why {
    DavitCall *call;
    DavitRegistry *registry;
    const char *kind;    /* whose lines are printed now */
    GPtrArray *declined; /* Declined */
} Why;

static void declined_free(void *p)
{
    Declined *d = p;
    g_string_free(d->who, TRUE);
    g_free(d->reason);
    g_free(d);
}

static void print_line(const char *verdict, const char *who, const char *subject,
                       const char *text)
{
    g_autofree char *line =
        g_strdup_printf("  %-11s  %s%s%s%s%s", verdict, davit_shown(who), subject ? "  " : "",
                        subject ? davit_shown(subject) : "", text && *text ? ": " : "",
                        text ? text : "");
    g_autofree char *wrapped = davit_wrap(line, davit_terminal_columns(STDOUT_FILENO), INDENT);
    printf("%s\n", wrapped);
}

static void add_declined(Why *why, const char *who, const char *reason)
{
    for (guint i = 0; i < why->declined->len; i++) {
        Declined *d = g_ptr_array_index(why->declined, i);
        if (strcmp(d->reason, reason) == 0) {
            if (strstr(d->who->str, who))
                return; /* asked about the folder and about a file of it */
            g_string_append_printf(d->who, ", %s", who);
            d->n++;
            return;
        }
    }
    Declined *d = g_new0(Declined, 1);
    d->who = g_string_new(who);
    d->n = 1;
    d->reason = g_strdup(reason);
    g_ptr_array_add(why->declined, d);
}

/* @score < 0 = none. */
static void say(Why *why, const char *who, const char *verdict, int score, const char *subject,
                const char *text)
{
    json_t *row = json_pack("{s:s, s:o, s:s, s:o, s:o}", "kind", why->kind, "who",
                            davit_json_text(who ? who : "core"), "verdict", verdict, "subject",
                            davit_json_text(subject ? subject : ""), "message",
                            davit_json_text(text ? text : ""));
    json_object_set_new(row, "score", score < 0 ? json_null() : json_integer(score));
    json_array_append_new(json_object_get(why->call->doc, "asked"), row);
    if (why->call->json)
        return;
    if (strcmp(verdict, "declines") == 0 && !why->call->verbose) {
        add_declined(why, who ? who : "core", text ? text : "");
        return;
    }
    g_autofree char *scored =
        score < 0 ? g_strdup(text ? text : "")
                  : g_strdup_printf("score %d%s%s", score, text && *text ? ", " : "",
                                    text ? text : "");
    print_line(verdict, who ? who : "core", subject, scored);
}

static void begin(Why *why, const char *kind)
{
    why->kind = kind;
    if (!why->call->json)
        printf("%s\n", kind);
}

/* Components of the kind that cannot be asked at all, and the lines of those that declined. */
static void end(Why *why, DavitKind kind)
{
    const GPtrArray *all = davit_registry_components(why->registry);
    for (guint i = 0; i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);
        if (!c->known_kind || c->kind != kind || c->state == DAVIT_STATE_OK ||
            c->state == DAVIT_STATE_PARTIAL || c->state == DAVIT_STATE_REFUSES)
            continue;
        g_autofree char *note = davit_show_note(davit_show_reason(c), 300);
        say(why, c->id, davit_state_name(c->state), -1, NULL, note);
    }
    for (guint i = 0; i < why->declined->len; i++) {
        const Declined *d = g_ptr_array_index(why->declined, i);
        g_autofree char *many = g_strdup_printf("%u plugins", d->n);
        print_line("declines", d->n > NAMED ? many : d->who->str, NULL, d->reason);
    }
    g_ptr_array_set_size(why->declined, 0);
}

/* The whole record is printed behind the lists, with what was found and what to do. */
static void say_record(Why *why, const DavitRecord *r)
{
    if (r->severity != DAVIT_NOTE)
        say(why, r->who, r->severity == DAVIT_ERROR ? "refuses" : "warns", -1, NULL, r->message);
}

static void say_records(Why *why, const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++)
        say_record(why, davit_report_get(report, i));
}

/* ---- formats ---- */

static const char *verdict_word(const DavitAsked *a)
{
    return a->chosen                    ? "chosen"
           : a->verdict == DAVIT_ACCEPT ? "accepts"
           : a->verdict == DAVIT_REFUSE ? "refuses"
                                        : "declines";
}

static void why_format(Why *why, const char *model)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GPtrArray) asked = davit_checkpoint_ask(why->registry, model, DAVIT_INSPECT, aside);
    begin(why, "format");
    for (guint i = 0; asked && i < asked->len; i++) {
        const DavitAsked *a = g_ptr_array_index(asked, i);
        const bool declined = a->verdict == DAVIT_DECLINE;
        g_autofree char *text = davit_report_count(a->records)
                                    ? davit_record_sentence(davit_report_get(a->records, 0))
                                    : declined ? g_strdup("does not know it") : g_strdup("");
        say(why, a->who, verdict_word(a), a->verdict == DAVIT_ACCEPT ? (int)a->score : -1,
            declined ? NULL : a->subject, text);
    }
    end(why, DAVIT_KIND_ID_FORMAT);
}

/* ---- architectures ---- */

/* @planned is what the plan said: no architecture, or several. */
static void why_arch(Why *why, const DavitSettings *settings, const DavitPlan *plan,
                     const DavitReport *planned)
{
    g_autoptr(DavitReport) said = davit_report_new();
    begin(why, "arch");
    for (size_t i = 0; !plan && i < davit_report_count(planned); i++) {
        const DavitRecord *r = davit_report_get(planned, i);
        if (r->code == DAVIT_R_ALL_DECLINED || r->code == DAVIT_R_AMBIGUOUS)
            say_record(why, r);
    }
    davit_plan_explain_archs(why->registry, settings, said);
    for (size_t i = 0; i < davit_report_count(said); i++) {
        const DavitRecord *r = davit_report_get(said, i);
        const bool chosen = plan && g_strcmp0(r->who, plan->arch->id) == 0;
        g_autofree char *text = NULL;
        if (r->severity != DAVIT_NOTE)
            continue; /* end() tells it: the component could not be used */
        if (r->code == DAVIT_R_ALL_DECLINED) {
            text = g_strdup_printf("does not name %s", r->subject ? r->subject : "it");
            say(why, r->who, "declines", -1, NULL, text);
        } else {
            say(why, r->who, chosen ? "chosen" : "accepts", -1, r->subject,
                chosen ? "" : r->message);
        }
    }
    end(why, DAVIT_KIND_ID_ARCH);
}

/* ---- quantised layouts ---- */

static void say_quant(Why *why, const DavitComponent *c, const DavitModules *modules)
{
    g_autoptr(GHashTable) layouts = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GString) names = g_string_new(NULL);
    guint n = 0;
    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];
        if (m->quant != c)
            continue;
        n++;
        if (m->desc->layout && g_hash_table_add(layouts, (gpointer)(uintptr_t)m->desc->layout))
            g_string_append_printf(names, "%s%s", names->len ? ", " : "", m->desc->layout);
    }
    g_autofree char *text = g_strdup_printf("%u of %zu modules", n, modules->len);
    say(why, c->id, n ? "chosen" : "declines", -1, n ? names->str : NULL,
        n ? text : "takes none of the modules");
}

/* Returns: every module is a plain tensor. */
static bool say_quants(Why *why, const DavitModules *modules)
{
    const GPtrArray *quants = davit_registry_kind(why->registry, DAVIT_KIND_ID_QUANT);
    bool all_plain = modules->len > 0;
    guint nobody = 0;
    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];
        nobody += !m->quant;
        all_plain = all_plain && m->quant && g_strcmp0(m->desc->scheme, "dense/1") == 0;
    }
    for (guint q = 0; q < quants->len; q++)
        say_quant(why, g_ptr_array_index(quants, q), modules);
    if (nobody) {
        g_autofree char *text = g_strdup_printf("%u modules are taken by nobody", nobody);
        say(why, "core", "refuses", -1, NULL, text);
    }
    return all_plain;
}

static void why_quant(Why *why, const DavitCheckpoint *c, const DavitSettings *settings)
{
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitModules) modules = davit_modules_find(why->registry, c, settings, 0, said);
    const json_t *block = davit_settings_quantization(settings);
    const char *method = json_string_value(json_object_get(block, "quant_method"));
    begin(why, "quant");
    if (modules && say_quants(why, modules) && block) {
        g_autofree char *text = g_strdup_printf(
            "stale quant_method %s ignored: every tensor is plain",
            method ? davit_shown(method) : "(not stated)");
        say(why, "core", "warns", -1, NULL, text);
    }
    say_records(why, said);
    end(why, DAVIT_KIND_ID_QUANT);
}

/* ---- tokenizers ---- */

/* @tokenizer NULL = @said tells why. */
static void why_tokenizer(Why *why, const DavitTokenizer *tokenizer, const DavitReport *said)
{
    const GPtrArray *all = davit_registry_kind(why->registry, DAVIT_KIND_ID_TOKENIZER);
    DavitTokenizerFacts facts = {0};
    begin(why, "tokenizer");
    if (tokenizer)
        davit_tokenizer_facts(tokenizer, &facts);
    for (guint i = 0; i < all->len; i++) {
        const DavitComponent *t = g_ptr_array_index(all, i);
        const bool chosen = g_strcmp0(t->id, facts.plugin) == 0;
        say(why, t->id, chosen ? "chosen" : "declines", -1, chosen ? facts.family : NULL,
            chosen ? facts.why : "claims other shapes");
    }
    if (!tokenizer)
        say_records(why, said);
    davit_report_append(why->call->report, said);
    end(why, DAVIT_KIND_ID_TOKENIZER);
}

/* ---- kernels ---- */

static void say_kernels(Why *why, const DavitComponent *c, const DavitProgram *program)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GString) names = g_string_new(NULL);
    guint n = 0;
    for (size_t i = 0; program && i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        if (instr->kernels != c)
            continue;
        n++;
        if (g_hash_table_add(seen, (gpointer)(uintptr_t)instr->entry->name))
            g_string_append_printf(names, "%s%s", names->len ? " " : "", instr->entry->name);
    }
    g_autofree char *ops = g_strdup_printf("%u of %zu ops", n, program ? program->n_instrs : 0);
    say(why, c->id, n ? "chosen" : "declines", -1, n ? ops : NULL,
        n         ? names->str
        : program ? "takes none of the ops, or another has a higher score (davit plugin ops)"
                  : "not asked: no program of ops");
}

static void why_kernels(Why *why, const DavitPlan *plan)
{
    const GPtrArray *all = davit_registry_kind(why->registry, DAVIT_KIND_ID_KERNELS);
    begin(why, "kernels");
    for (guint k = 0; k < all->len; k++)
        say_kernels(why, g_ptr_array_index(all, k), plan ? plan->program : NULL);
    end(why, DAVIT_KIND_ID_KERNELS);
}

/* ---- the command ---- */

static void why_model(Why *why, const DavitCheckpoint *c)
{
    DavitCall *call = why->call;
    g_autoptr(DavitSettings) settings = davit_settings_open(c, call->report);
    const DavitPlanOptions options = {.purposes = DAVIT_RUN};
    g_autoptr(DavitReport) planned = davit_report_new();
    g_autoptr(DavitPlan) plan = NULL;
    if (settings) {
        plan = davit_plan_make(why->registry, c, settings, &options, planned);
        davit_report_append(call->report, planned);
        why_arch(why, settings, plan, planned);
        why_quant(why, c, settings);
    }
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_of(c, why->registry, said);
    why_tokenizer(why, tokenizer, said);
    if (settings)
        why_kernels(why, plan);
}

/* A folder without weights may still hold parts that other commands take. */
static void why_parts(Why *why, const char *model)
{
    g_autoptr(DavitReport) said = davit_report_new();
    g_autofree char *config = g_build_filename(model, "config.json", NULL);
    const bool has_config = g_file_test(config, G_FILE_TEST_IS_REGULAR);
    const DavitRecord *first;
    g_autoptr(DavitTokenizer) tokenizer = NULL;
    if (!g_file_test(model, G_FILE_TEST_IS_DIR))
        return;
    tokenizer = davit_tokenizer_open(model, why->registry, said);
    first = davit_report_first_error(said, 0);
    const bool has_tokenizer = tokenizer || (first && first->code != DAVIT_R_NOT_FOUND &&
                                             first->code != DAVIT_R_ALL_DECLINED);
    DavitTokenizerFacts facts = {0};
    if (has_tokenizer)
        why_tokenizer(why, tokenizer, said);
    if (tokenizer)
        davit_tokenizer_facts(tokenizer, &facts);
    if (!has_config && !has_tokenizer)
        return;
    davit_report_add(
        why->call->report,
        &(DavitFinding){
            .code = DAVIT_R_ALL_DECLINED,
            .severity = DAVIT_NOTE,
            .stage = "probe",
            .subject = model,
            .found = davit_report_text(why->call->report, "%s%s%s",
                                       has_config ? "config.json" : "",
                                       has_config && has_tokenizer ? " and " : "",
                                       !has_tokenizer ? ""
                                       : facts.source ? facts.source
                                                      : "a tokenizer"),
            .message = "parts of a model without its weights",
            .hint = tokenizer ? "davit tokenize takes this directory as it is"
                    : has_config ? "davit estimate takes config.json alone"
                                 : NULL});
}

static int run(DavitCall *call)
{
    json_object_set_new(call->doc, "asked", json_array());
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    g_autoptr(GPtrArray) declined = g_ptr_array_new_with_free_func(declined_free);
    Why why = {.call = call, .registry = registry, .declined = declined};
    if (!registry)
        return davit_call_exit(call);
    why_format(&why, call->args[0]);
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(registry, call->args[0], DAVIT_INSPECT, call->report);
    if (c)
        why_model(&why, c);
    else
        why_parts(&why, call->args[0]);
    return davit_call_exit(call);
}

const DavitCommand davit_command_why = {
    .name = "why",
    .args = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "every plugin asked about a model, its verdict and reason, and who was chosen",
    .description = "Asks formats, architectures, quantised layouts, tokenizers and kernels, each even "
                   "if one before it\nfailed. What is refused follows in full on stderr: what was "
                   "found, what was expected, what to do.\nOf a folder without weights the tokenizer "
                   "is asked, and other parts are named.",
    .examples = examples,
    .run = run,
};
