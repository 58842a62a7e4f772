/* SPDX-License-Identifier: Apache-2.0
 * Asking quant plugins. Every component that may have a say (tools.h) is loaded and asked for a
 * new signature, in candidate order; the highest score wins, the earlier one at equal scores; a final refusal ends the
 * search. */
#include "plan/claim.h"

#include <string.h>

#include "plan/module.h"
#include "plan/module_view.h"
#include "plan/tools.h"
#include "plugin/running.h"

#define MAX_CHECKS 16 /* a layer has some ten kinds of modules */
#define MAX_TAKERS 8 /* plugins that accept one signature; real ones are two at most */

/* Who accepts a signature. */
typedef struct Taker {
    const DavitTool *tool; /* (borrowed) */
    uint64_t purposes;
    uint32_t score;
} Taker;

/* Answer for one signature. */
typedef struct Claim {
    size_t n_takers;
    Taker takers[MAX_TAKERS]; /* best first */
    DavitReport *refusals; /* (owned) records of plugins that know it and say no */
    uint64_t n_refused;    /* modules that were asked for and nobody takes */
    char *first_refused;   /* (owned) name of the first of them */
    /* (borrowed, plugin) last layout that a taker named, and the same interned */
    const char *raw_layout;
    const char *layout;
    const davit_quant_desc *desc; /* (borrowed, descs) last one; NULL = none */
} Claim;

/* The signature asked for last: most modules in a row have the same one. */
typedef struct LastSignature {
    Claim *claim; /* (borrowed, by_signature) NULL = none yet */
    size_t n_parts;
    const char *suffix[DAVIT_MAX_PARTS]; /* (borrowed, checkpoint) */
    const char *dtype[DAVIT_MAX_PARTS];
    uint32_t rank[DAVIT_MAX_PARTS];
} LastSignature;

/* An answer that holds for every module of its signature, shapes and sizes. */
typedef struct LastCheck {
    const DavitModule *module; /* (borrowed) lives as long as the claims */
    uint64_t purposes;
} LastCheck;

struct DavitClaims {
    const DavitCheckpoint *checkpoint;
    const GArray *quants;
    const davit_config *config;
    const DavitQuantConfig *quant_config;
    GPtrArray *descs;         /* (borrowed) davit_quant_desc (owned) */
    GHashTable *by_signature; /* text (owned) -> Claim (owned) */
    LastSignature last;
    LastCheck checks[MAX_CHECKS]; /* a ring */
    uint32_t n_checks;            /* that were put into it */
    uint32_t hit;                 /* the one that answered last */
};

static void claim_free(void *p)
{
    Claim *claim = p;

    davit_report_free(claim->refusals);
    g_free(claim->first_refused);
    g_free(claim);
}

DavitClaims *davit_claims_new(const DavitCheckpoint *checkpoint, const GArray *quants,
                              const davit_config *config,
                              const DavitQuantConfig *quant_config, GPtrArray *descs)
{
    DavitClaims *claims = g_new0(DavitClaims, 1);

    claims->checkpoint = checkpoint;
    claims->quants = quants;
    claims->config = config;
    claims->quant_config = quant_config;
    claims->descs = descs;
    claims->by_signature =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, claim_free);
    return claims;
}

void davit_claims_free(DavitClaims *claims)
{
    if (!claims)
        return;
    g_hash_table_unref(claims->by_signature);
    g_free(claims);
}

/* ---- claim ---- */

/* After those of the same score: the earlier candidate wins. */
static void add_taker(Claim *claim, Taker taker)
{
    size_t at = claim->n_takers;

    if (claim->n_takers == MAX_TAKERS)
        return;
    for (; at > 0 && claim->takers[at - 1].score < taker.score; at--)
        claim->takers[at] = claim->takers[at - 1];
    claim->takers[at] = taker;
    claim->n_takers++;
}

/* Returns: true when the search ends here. */
static bool ask_one(DavitTool *tool, const davit_quant_module *signature, Claim *claim)
{
    const davit_quant_iface *iface;
    const size_t mark = davit_report_count(claim->refusals);
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    DavitRunning outside;
    DavitSink sink;
    int32_t status;

    if (!davit_tool_may_claim(tool, signature) || !davit_tool_load(tool))
        return false;
    iface = tool->iface;
    davit_sink_init(&sink, claim->refusals, tool->component->id, "claim");
    outside = davit_running_set(tool->component->id, "claim");
    status = iface->claim(tool->self, signature, &verdict, &sink.abi);
    davit_running_back(outside);
    if (status) {
        davit_sink_done(&sink, status < 0 ? status : DAVIT_E_UNSUPPORTED);
        return false;
    }
    if (verdict.verdict == DAVIT_REFUSE) {
        davit_sink_done(&sink, DAVIT_E_UNSUPPORTED);
        return (verdict.flags & DAVIT_REFUSAL_FINAL) != 0;
    }
    davit_report_truncate(claim->refusals, mark); /* remarks of who does not refuse */
    if (verdict.verdict == DAVIT_ACCEPT)
        add_taker(claim, (Taker){tool, verdict.purposes, verdict.score});
    return false;
}

static bool is_last(const LastSignature *last, const DavitModuleView *view)
{
    if (!last->claim || last->n_parts != view->module.n_parts)
        return false;
    for (size_t p = 0; p < last->n_parts; p++) {
        const davit_quant_part_in *part = &view->part[p];

        if (part->rank != last->rank[p] || part->dtype != last->dtype[p] ||
            strcmp(part->suffix, last->suffix[p]) != 0)
            return false;
    }
    return true;
}

static Claim *remember(LastSignature *last, const DavitModuleView *view, Claim *claim)
{
    last->claim = claim;
    last->n_parts = view->module.n_parts;
    for (size_t p = 0; p < last->n_parts; p++) {
        last->suffix[p] = view->part[p].suffix;
        last->dtype[p] = view->part[p].dtype;
        last->rank[p] = view->part[p].rank;
    }
    return claim;
}

/* Ask everybody. Returns: (owned) the answer. */
static Claim *ask_all(const DavitClaims *claims, const DavitModuleView *view)
{
    Claim *claim = g_new0(Claim, 1);
    davit_quant_part_in part[DAVIT_MAX_PARTS];
    const davit_quant_part_in *parts[DAVIT_MAX_PARTS];
    davit_quant_module signature = view->module;
    bool ended = false;

    claim->refusals = davit_report_new();
    for (size_t p = 0; p < view->module.n_parts; p++) {
        part[p] = view->part[p];
        part[p].info = NULL;
        parts[p] = &part[p];
    }
    signature.name = NULL;
    signature.parts = parts;
    for (guint i = 0; !ended && i < claims->quants->len; i++)
        ended = ask_one(&g_array_index(claims->quants, DavitTool, i), &signature, claim);
    if (ended)
        claim->n_takers = 0;
    return claim;
}

static Claim *find_claim(DavitClaims *claims, const DavitModuleView *view)
{
    g_autofree char *text = NULL;
    Claim *claim;

    if (is_last(&claims->last, view))
        return claims->last.claim;
    text = davit_module_view_signature(view);
    claim = g_hash_table_lookup(claims->by_signature, text);
    if (!claim) {
        claim = ask_all(claims, view);
        g_hash_table_insert(claims->by_signature, g_steal_pointer(&text), claim);
    }
    return remember(&claims->last, view, claim);
}

/* A plugin's refusal of a signature, now that it is known which module has it. */
static int32_t repeat_refusal(const DavitModule *module, const DavitRecord *r,
                              DavitReport *report)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = r->code,
                                            .status = r->code == DAVIT_R_TENSOR_MISSING
                                                          ? DAVIT_E_CORRUPT /* no other layout */
                                                          : r->status,
                                            .final = r->final,
                                            .stage = "plan",
                                            .who = r->who,
                                            .subject = module->name,
                                            .expected = r->expected,
                                            .found = r->found ? r->found : r->subject,
                                            .message = r->message,
                                            .hint = r->hint});
}

static int32_t nobody_claims(const DavitModule *module, const DavitModuleView *view,
                             Claim *claim, DavitReport *report)
{
    const DavitRecord *refusal = davit_report_first_error(claim->refusals, 0);
    g_autofree char *parts = davit_module_view_parts(view);

    if (claim->n_refused++)
        return DAVIT_E_UNSUPPORTED; /* davit_claims_note_rest says how many there were */
    claim->first_refused = g_strdup(module->name);
    if (refusal)
        return repeat_refusal(module, refusal, report);
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_QUANT_UNKNOWN,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "plan",
                        .subject = module->name,
                        .expected = "tensors that a quant plugin of this build claims",
                        .found = parts,
                        .message = "no plugin reads this quantised layout",
                        .hint = "davit plugin list shows the layouts that are there"});
}

void davit_claims_note_rest(const DavitClaims *claims, DavitReport *report)
{
    GHashTableIter iter;
    gpointer text, value;

    g_hash_table_iter_init(&iter, claims->by_signature);
    while (g_hash_table_iter_next(&iter, &text, &value)) {
        const Claim *claim = value;

        if (claim->n_refused > 1)
            davit_report_add(
                report,
                &(DavitFinding){.code = DAVIT_R_QUANT_UNKNOWN,
                                .severity = DAVIT_NOTE,
                                .stage = "plan",
                                .subject = claim->first_refused,
                                .found = davit_report_text(report, "%" PRIu64 " modules",
                                                           claim->n_refused),
                                .message = "so many modules are stored in this way"});
    }
}

/* ---- check ---- */

static int32_t bad_desc(const DavitModule *module, const DavitTool *tool,
                        const char *what, DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){
                    .code = DAVIT_R_QUANT_PARAMS,
                    .status = DAVIT_E_UNSUPPORTED,
                    .stage = "plan",
                    .who = tool->component->id,
                    .subject = module->name,
                    .found = what,
                    .message = "the quant plugin's description does not fit the "
                               "stored tensors",
                    .hint = "this is a fault of the plugin; report it to its vendor"});
}

/* Numbers and widths that quant.h does not know. */
bool davit_codes_wrong(const davit_quant_codes *codes, uint64_t n_cols)
{
    static const uint32_t width[] = {0, 4, 8, 8, 4, 4, 4}; /* by DAVIT_CODE_, 0 = any */

    if (codes->bits > 8 || codes->kind >= G_N_ELEMENTS(width) ||
        codes->scale_type > DAVIT_SCALE_E4M3 || codes->zero_type > DAVIT_MIN_F16)
        return true;
    if (codes->n_cols && (!(codes->flags & DAVIT_CODES_MAP) || codes->group == 0 ||
                          codes->n_cols % codes->group || codes->n_cols < n_cols ||
                          codes->n_cols > UINT32_MAX))
        return true;
    return codes->bits && width[codes->kind] && width[codes->kind] != codes->bits;
}

/* What a plugin says must lie inside the file, whoever wrote it. NULL = it does. */
static const char *desc_fault(const DavitClaims *claims, const DavitModule *module,
                              const davit_quant_desc *desc)
{
    uint64_t rows, n;

    if (!desc->layout || !desc->scheme)
        return "no layout or scheme name";
    if (desc->n_experts == 0 || desc->n_rows == 0 || desc->n_cols == 0 ||
        desc->row_unit == 0)
        return "an axis or row unit of 0";
    if (desc->n_parts == 0 || desc->n_parts > DAVIT_MAX_PARTS)
        return "number of parts out of range";
    if (!(desc->forms & DAVIT_FORM_F32))
        return "no float32 form";
    if (davit_codes_wrong(&desc->codes, desc->n_cols))
        return "codes that do not exist";
    if (__builtin_mul_overflow(desc->n_experts, desc->n_rows, &rows) ||
        __builtin_mul_overflow(rows, desc->n_cols, &n) || n > UINT64_MAX / sizeof(float))
        return "size overflows";
    for (uint32_t p = 0; p < desc->n_parts; p++) {
        const davit_quant_part *part = &desc->parts[p];

        if (!part->role || part->index >= module->n_parts)
            return "part without role or tensor";
        if (__builtin_mul_overflow(rows, part->row_bytes, &n) ||
            n > davit_checkpoint_tensor(claims->checkpoint, module->tensor[part->index])
                    ->n_bytes)
            return "rows pass the end of a tensor";
    }
    return NULL;
}

/* @desc is what @taker says of @module: keep it, if it can be true. */
static int32_t accept(const DavitClaims *claims, Claim *claim, const Taker *taker,
                      DavitModule *module, davit_quant_desc *desc, DavitReport *report)
{
    const char *fault = desc_fault(claims, module, desc);

    if (fault)
        return bad_desc(module, taker->tool, fault, report);
    if (claim->raw_layout != desc->layout) {
        claim->raw_layout = desc->layout;
        claim->layout = davit_intern(desc->layout);
    }
    desc->layout = claim->layout;
    module->quant = taker->tool->component;
    module->iface = taker->tool->iface;
    module->self = taker->tool->self;
    if (!claim->desc || memcmp(claim->desc, desc, sizeof *desc) != 0) {
        davit_quant_desc *kept = g_memdup2(desc, sizeof *desc);

        g_ptr_array_add(claims->descs, kept);
        claim->desc = kept;
    }
    module->desc = claim->desc;
    return DAVIT_OK;
}

static bool same_shape(const davit_tensor_info *a, const davit_tensor_info *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->n_bytes != b->n_bytes)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* Has @module what that of @last has, but for names and places? */
static bool is_alike(const DavitClaims *claims, const LastCheck *last,
                     const DavitModule *module)
{
    const davit_tensor_info *all = davit_checkpoint_tensor(claims->checkpoint, 0);
    const DavitModule *other = last->module;

    if (other->n_parts != module->n_parts)
        return false;
    for (size_t p = 0; p < module->n_parts; p++) {
        const davit_tensor_info *a = &all[module->tensor[p]], *b = &all[other->tensor[p]];

        if (!same_shape(a, b) ||
            strcmp(a->name + module->name_len, b->name + other->name_len) != 0)
            return false;
    }
    return true;
}

/* The check that @module is like, tried from the one that answered last. NULL = none. What settings
 * say of a module goes by its name, so with them every one is asked for. */
static const LastCheck *find_check(DavitClaims *claims, const DavitModule *module)
{
    const uint32_t n = claims->quant_config ? 0 : MIN(claims->n_checks, MAX_CHECKS);

    for (uint32_t i = 0, at = claims->hit; i < n; i++, at = at ? at - 1 : n - 1) {
        if (!is_alike(claims, &claims->checks[at], module))
            continue;
        claims->hit = at;
        return &claims->checks[at];
    }
    return NULL;
}

static int32_t answer_as(const LastCheck *check, DavitModule *module, uint64_t *out_purposes)
{
    module->quant = check->module->quant;
    module->iface = check->module->iface;
    module->self = check->module->self;
    module->desc = check->module->desc;
    *out_purposes = check->purposes;
    return DAVIT_OK;
}

static void keep_check(DavitClaims *claims, LastCheck check)
{
    claims->hit = claims->n_checks++ % MAX_CHECKS;
    claims->checks[claims->hit] = check;
}

int32_t davit_claims_ask(DavitClaims *claims, DavitModule *module, uint64_t *out_purposes,
                         DavitReport *report)
{
    const LastCheck *check = find_check(claims, module);
    DavitModuleView view;
    Claim *claim;

    if (check)
        return answer_as(check, module, out_purposes);
    davit_module_view_init(&view, claims->checkpoint, claims->config, module);
    claim = find_claim(claims, &view);
    davit_module_view_for_check(&view, claims->quant_config, module, report);
    for (size_t i = 0; i < claim->n_takers; i++) {
        const Taker *taker = &claim->takers[i];
        const davit_quant_iface *iface = taker->tool->iface;
        const size_t mark = davit_report_count(report);
        davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
        DavitSink sink;
        int32_t status;

        davit_sink_init(&sink, report, taker->tool->component->id, "plan");
        status = iface->check(taker->tool->self, &view.module, &desc, &sink.abi);
        if (status == DAVIT_QUANT_OTHER) {
            davit_report_truncate(report, mark);
            continue;
        }
        status = davit_sink_done(&sink, status);
        *out_purposes = taker->purposes;
        if (!status)
            status = accept(claims, claim, taker, module, &desc, report);
        if (!status && !view.peeked && davit_report_count(report) == mark)
            keep_check(claims, (LastCheck){module, taker->purposes});
        return status;
    }
    return nobody_claims(module, &view, claim, report);
}
