/* SPDX-License-Identifier: Apache-2.0
 * davit why: every plugin asked about a model, what it said, and who was chosen. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "config/config.h"
#include "engine/private.h"
#include "plan/plan.h"

static const char *const examples[] = {"davit why model/", "who takes this model, and why not others",
                                       NULL};

static void say(DavitCall *call, const char *kind, const char *who, const char *verdict,
                const char *subject, const char *text)
{
    json_t *asked = json_object_get(call->doc, "asked");
    json_array_append_new(asked, json_pack("{s:s, s:o, s:s, s:o, s:o}", "kind", kind, "who",
                                           davit_json_text(who ? who : "core"), "verdict", verdict,
                                           "subject", davit_json_text(subject ? subject : ""),
                                           "message", davit_json_text(text ? text : "")));
    if (!call->json)
        printf("%-9s  %-34s  %-8s  %s%s%s\n", kind, who ? who : "core", verdict,
               subject ? davit_shown(subject) : "", subject && text && *text ? ": " : "", text ? text : "");
}

static const char *verdict_word(const DavitAsked *a)
{
    return a->chosen                         ? "chosen"
           : a->verdict == DAVIT_ACCEPT      ? "accepts"
           : a->verdict == DAVIT_REFUSE      ? "refuses"
                                             : "declines";
}

static void why_format(DavitCall *call, DavitRegistry *registry)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GPtrArray) asked =
        davit_checkpoint_ask(registry, call->args[0], DAVIT_INSPECT, aside);
    for (guint i = 0; asked && i < asked->len; i++) {
        const DavitAsked *a = g_ptr_array_index(asked, i);
        g_autofree char *text = davit_report_count(a->records)
                                    ? davit_record_sentence(davit_report_get(a->records, 0))
                                    : g_strdup("");
        say(call, "format", a->who, verdict_word(a), a->subject, text);
    }
}

static void say_records(DavitCall *call, const char *kind, const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);
        g_autofree char *text = davit_record_sentence(r);
        say(call, kind, r->who, r->severity == DAVIT_ERROR ? "refuses" : "says", NULL, text);
    }
}

static void why_plan(DavitCall *call, DavitRegistry *registry, const DavitCheckpoint *c,
                     const DavitSettings *settings)
{
    g_autoptr(DavitReport) archs = davit_report_new();
    davit_plan_explain_archs(registry, settings, archs);
    say_records(call, "arch", archs);
    const DavitPlanOptions options = {.purposes = DAVIT_RUN};
    g_autoptr(DavitPlan) plan = davit_plan_make(registry, c, settings, &options, call->report);
    if (!plan)
        return;
    say(call, "arch", plan->arch->id, "chosen", NULL, "");
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t i = 0; i < plan->n_modules; i++)
        if (plan->modules[i].quant &&
            g_hash_table_add(seen, (gpointer)(uintptr_t)plan->modules[i].desc.layout))
            say(call, "quant", plan->modules[i].quant->id, "chosen", plan->modules[i].desc.layout,
                "");
    for (size_t i = 0; i < plan->program->n_instrs; i++) {
        const DavitInstr *instr = &plan->program->instrs[i];
        if (g_hash_table_add(seen, (gpointer)(uintptr_t)instr->entry->name))
            say(call, "kernels", instr->kernels->id, "chosen", instr->op, instr->entry->name);
    }
}

static void why_tokenizer(DavitCall *call, DavitRegistry *registry, const DavitCheckpoint *c)
{
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_of(c, registry, call->report);
    if (!tokenizer)
        return;
    DavitTokenizerFacts f;
    davit_tokenizer_facts(tokenizer, &f);
    say(call, "tokenizer", f.plugin, "chosen", f.family, f.why);
}

static int run(DavitCall *call)
{
    json_object_set_new(call->doc, "asked", json_array());
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    why_format(call, registry);
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(registry, call->args[0], DAVIT_INSPECT, call->report);
    if (!c)
        return davit_call_exit(call);
    g_autoptr(DavitSettings) settings = davit_settings_open(c, call->report);
    if (settings)
        why_plan(call, registry, c, settings);
    why_tokenizer(call, registry, c);
    return davit_call_exit(call);
}

const DavitCommand davit_command_why = {
    .name = "why",
    .args = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "every plugin asked about a model, its verdict and reason, and who was chosen",
    .examples = examples,
    .run = run,
};
