/* SPDX-License-Identifier: Apache-2.0
 * Left-over tensors and the rules that excuse them. Rules see only what no slot took. */
#include "plan/coverage.h"

#include <string.h>

/* "glob  reason"; '*' any text, '?' one character. For every architecture. */
static const char *const core_rules[] = {
    "*.rotary_emb.inv_freq  rotary table that is computed again",
    "rope.freqs  rotary table that is computed again",
    "*.attn.bias  causal mask saved by old GPT-2 code",
    "*.attn.masked_bias  mask value saved by old GPT-2 code",
    "*.attention.bias  causal mask saved by old GPT-NeoX code",
    "*.attention.masked_bias  mask value saved by old GPT-NeoX code",
    "*.self_attn.k_scale  scale of a KV cache of 8 bits: read with --kv-dtype fp8",
    "*.self_attn.v_scale  scale of a KV cache of 8 bits: read with --kv-dtype fp8",
    "*.self_attn.kv_scale  scale of a KV cache of 8 bits: read with --kv-dtype fp8",
    "*.self_attn.?_proj.?_scale  scale of a KV cache of 8 bits: read with --kv-dtype fp8",
    "*.self_attn.qkv_proj.?_scale  scale of a KV cache of 8 bits: read with --kv-dtype fp8",
    "*.self_attn.q_scale  scale of attention in 8 bits, which this build does not do",
    "*.self_attn.prob_scale  scale of attention in 8 bits, which this build does not do",
    "*.self_attn.attn.?_scale  scale of a KV cache of 8 bits: read with --kv-dtype fp8",
    "model.visual.*  vision tower; this build reads text only",
    "visual.*  vision tower; this build reads text only",
    "vision_tower.*  vision tower; this build reads text only",
    "model.vision_tower.*  vision tower; this build reads text only",
    "vision_model.*  vision tower; this build reads text only",
    "multi_modal_projector.*  vision projector; this build reads text only",
    "model.multi_modal_projector.*  vision projector; this build reads text only",
    "audio_tower.*  audio tower; this build reads text only",
    "model.audio_tower.*  audio tower; this build reads text only",
    "mtp.*  multi-token prediction head, not used",
    "model.mtp.*  multi-token prediction head, not used",
    NULL,
};

typedef struct Rule {
    char *glob;         /* (owned) NULL = layers past the last */
    GPatternSpec *spec; /* (owned) */
    char *reason;       /* (owned) */
    const char *by;     /* (static) whose rule it is */
    GArray *tensors;    /* (owned) uint32_t, NULL = none yet */
    uint64_t n_tensors;
    uint64_t n_bytes;
    int64_t last_layer; /* layers past the last: highest index, -1 = none */
    const char *first;  /* (borrowed, checkpoint) */
} Rule;

static void rule_clear(void *p)
{
    Rule *rule = p;

    g_free(rule->glob);
    g_free(rule->reason);
    g_clear_pointer(&rule->spec, g_pattern_spec_free);
    g_clear_pointer(&rule->tensors, g_array_unref);
}

/* ---- rules ---- */

static void add_rule(GArray *rules, const char *by, const char *text,
                     const char *fallback)
{
    const char *gap = strstr(text, "  ");
    Rule rule = {.by = by};

    rule.glob = gap ? g_strndup(text, (gsize)(gap - text)) : g_strdup(text);
    rule.reason = g_strstrip(g_strdup(gap ? gap : fallback));
    rule.spec = g_pattern_spec_new(rule.glob);
    g_array_append_val(rules, rule);
}

static GArray *collect_rules(const DavitDraft *draft)
{
    GArray *rules = g_array_new(FALSE, TRUE, sizeof(Rule));
    const char *const *of_arch = draft->plan->arch_iface->ignore;
    const char *const *of_user = draft->options->ignore;
    Rule past = {
        .last_layer = -1,
        .by = "core",
        .reason = g_strdup("layers past the last, multi-token prediction or leftovers")};

    g_array_set_clear_func(rules, rule_clear);
    g_array_append_val(rules, past);
    for (size_t i = 0; of_user && of_user[i]; i++)
        add_rule(rules, "user", of_user[i], "left out by --ignore");
    for (size_t i = 0; of_arch && of_arch[i]; i++)
        add_rule(rules, "arch", of_arch[i], "ignored by the architecture");
    for (size_t i = 0; core_rules[i]; i++)
        add_rule(rules, "core", core_rules[i], "");
    return rules;
}

static bool rule_takes(const DavitDraft *draft, const Rule *rule, const char *name)
{
    if (!rule->spec)
        return davit_match_layer(draft, name) >= (int64_t)draft->plan->n_layers;
    return g_pattern_spec_match_string(rule->spec, name);
}

static bool skipped_by_rule(const DavitDraft *draft, GArray *rules, uint32_t tensor)
{
    const davit_tensor_info *t =
        davit_checkpoint_tensor(draft->plan->checkpoint, tensor);

    for (guint r = 0; r < rules->len; r++) {
        Rule *rule = &g_array_index(rules, Rule, r);

        if (!rule_takes(draft, rule, t->name))
            continue;
        if (rule->n_tensors++ == 0) {
            rule->first = t->name;
            rule->tensors = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        }
        g_array_append_val(rule->tensors, tensor);
        rule->n_bytes += t->n_bytes;
        if (!rule->spec)
            rule->last_layer = MAX(rule->last_layer, davit_match_layer(draft, t->name));
        return true;
    }
    return false;
}

/* Layers past the last that the file says are for multi-token prediction. */
static int64_t n_draft_layers(const DavitPlan *plan)
{
    const char *arch = davit_settings_gguf_arch(plan->settings);
    g_autofree char *key = g_strconcat(arch ? arch : "", ".nextn_predict_layers", NULL);
    const davit_kv *kv = arch ? davit_checkpoint_find_key(plan->checkpoint, key) : NULL;
    int64_t n = json_integer_value(
        json_object_get(davit_settings_json(plan->settings), "num_nextn_predict_layers"));

    if (kv && !davit_kv_i64(kv, 0, &n))
        return 0;
    return CLAMP(n, 0, INT32_MAX);
}

static void note_rule(const DavitDraft *draft, const Rule *rule)
{
    DavitReport *report = draft->report;
    const int64_t n_layers = (int64_t)draft->plan->n_layers;
    const bool past = !rule->glob;
    const bool stated = past && rule->last_layer < n_layers + n_draft_layers(draft->plan);
    const char *what =
        davit_report_text(report, "%" PRIu64 " tensors, %" PRIu64 " bytes, first %s",
                          rule->n_tensors, rule->n_bytes, rule->first);
    DavitFinding finding = {
        .code = DAVIT_R_IGNORED_BY_RULE,
        .severity = DAVIT_NOTE,
        .stage = "plan",
        .subject = past ? rule->first : rule->glob,
        .found = what,
        .message = davit_report_text(report, "skipped by rule: %s", rule->reason)};

    if (past && !stated) {
        finding.severity = DAVIT_WARNING;
        finding.expected =
            davit_report_text(report, "%" PRId64 " layers, as configured", n_layers);
        finding.found = davit_report_text(report, "%" PRId64 " layers; past the last: %s",
                                          rule->last_layer + 1, what);
        finding.hint = "if the file is a whole model, its number of layers is wrong and "
                       "so is the text";
    }
    davit_report_add(report, &finding);
}

/* A rule of the user that left nothing out: no such names, or slots take them. */
static void warn_unused(const DavitDraft *draft, const Rule *rule)
{
    const DavitCheckpoint *c = draft->plan->checkpoint;
    uint64_t n = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++)
        n += g_pattern_spec_match_string(rule->spec, davit_checkpoint_tensor(c, i)->name);
    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_USER_DECISION,
            .severity = DAVIT_WARNING,
            .stage = "plan",
            .who = "user",
            .subject = rule->glob,
            .found = davit_report_text(draft->report, "%" PRIu64 " tensors of such names%s", n,
                                       n ? ", which the model needs" : ""),
            .message = "--ignore matches no tensor that is left over",
            .hint = n ? "what the model needs cannot be left out; leave the flag out" : NULL});
}

static void note_rules(const DavitDraft *draft, const GArray *rules)
{
    for (guint r = 0; r < rules->len; r++) {
        const Rule *rule = &g_array_index(rules, Rule, r);

        if (rule->n_tensors > 0)
            note_rule(draft, rule);
        else if (strcmp(rule->by, "user") == 0)
            warn_unused(draft, rule);
    }
}

/* What rules took, kept in the plan. */
static void keep_rules(DavitPlan *plan, const GArray *rules)
{
    plan->ignored = g_new0(DavitIgnored, MAX(rules->len, 1));
    for (guint r = 0; r < rules->len; r++) {
        Rule *rule = &g_array_index(rules, Rule, r);
        gsize n = 0;

        if (!rule->tensors)
            continue;
        plan->ignored[plan->n_ignored++] = (DavitIgnored){
            .rule = g_strdup(rule->glob ? rule->glob : "layers past the last"),
            .reason = g_strdup(rule->reason),
            .by = rule->by,
            .n_bytes = rule->n_bytes,
            .tensor = g_array_steal(rule->tensors, &n),
            .n_tensors = rule->n_tensors};
    }
}

/* ---- nearest name ---- */

size_t davit_name_distance(const char *a, const char *b, size_t limit)
{
    const size_t n = strlen(b);
    size_t row[257];

    if (n > 256 || strlen(a) > 256)
        return limit;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t left_up = row[0], least = i;

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t up = row[j];
            const size_t swap = left_up + (a[i - 1] != b[j - 1]);

            row[j] = MIN(MIN(up, row[j - 1]) + 1, swap);
            left_up = up;
            least = MIN(least, row[j]);
        }
        if (least >= limit)
            return limit;
    }
    return MIN(row[n], limit);
}

/* The missing name that @name may have been meant for. NULL if none is near. */
static const char *nearest_wanted(const DavitDraft *draft, const char *name)
{
    const char *best = NULL;
    size_t distance = strlen(name) / 5 + 1;

    for (guint i = 0; i < draft->wanted->len; i++) {
        const char *wanted = g_ptr_array_index(draft->wanted, i);
        const size_t d = davit_name_distance(name, wanted, distance);

        if (d < distance) {
            distance = d;
            best = wanted;
        }
    }
    return best;
}

/* ---- left over ---- */

/* Weights of an adapter, or of the module that it wraps: left out they take the tuning
 * with them. */
static bool is_adapter_part(const char *name)
{
    return strstr(name, ".lora_") || strstr(name, ".base_layer.");
}

static void report_unexpected(const DavitDraft *draft, const davit_tensor_info *t)
{
    const char *near = nearest_wanted(draft, t->name);
    const char *shape = davit_shape_text(draft->report, t->shape, t->rank);

    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_TENSOR_UNEXPECTED,
            .status = DAVIT_E_CORRUPT,
            .stage = "plan",
            .subject = t->name,
            .found = davit_report_text(draft->report, "%s %s", t->dtype, shape),
            .message = "no slot of the architecture and no rule takes this tensor",
            .hint = is_adapter_part(t->name)
                        ? "the adapter was not merged: merge it where it was trained, and "
                          "save again"
                    : near ? davit_report_text(draft->report,
                                             "a missing tensor is named %s", near)
                         : "--ignore GLOB leaves tensors out on purpose"});
}

static void report_rest(const DavitDraft *draft, uint64_t n)
{
    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_TENSOR_UNEXPECTED,
            .status = DAVIT_E_CORRUPT,
            .stage = "plan",
            .subject = "other tensors",
            .found = davit_report_text(draft->report, "%" PRIu64 " more tensors", n),
            .message = "more tensors are taken by no slot and no rule"});
}

/* Rows of a module that slots take, for modules that some slot cuts. */
static void check_cut_modules(DavitDraft *draft);
/* A quantisation block in the configuration of plain tensors. */
static void check_stale_block(const DavitDraft *draft);

void davit_coverage_check(DavitDraft *draft)
{
    const DavitCheckpoint *checkpoint = draft->plan->checkpoint;
    g_autoptr(GArray) rules = collect_rules(draft);
    uint64_t n_left = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(checkpoint); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(checkpoint, i);

        if (draft->consumed[i] || skipped_by_rule(draft, rules, (uint32_t)i))
            continue;
        if (n_left++ < DAVIT_MAX_SINGLE)
            report_unexpected(draft, t);
    }
    if (n_left > DAVIT_MAX_SINGLE)
        report_rest(draft, n_left - DAVIT_MAX_SINGLE);
    note_rules(draft, rules);
    keep_rules(draft->plan, rules);
    check_cut_modules(draft);
    check_stale_block(draft);
}

/* ---- quantisation that is stated and not stored ---- */

/* Are all modules that slots take, at least one, plain numbers? */
static bool all_plain(const DavitDraft *draft)
{
    size_t n = 0;

    for (guint i = 0; i < draft->slots->len; i++) {
        const DavitSlot *slot = &g_array_index(draft->slots, DavitSlot, i);

        n += slot->n_sources;
        for (size_t s = 0; s < slot->n_sources; s++) {
            const DavitModule *module = slot->sources[s].module;

            if (s > 0 && module->desc == slot->sources[s - 1].module->desc)
                continue;
            if (!module->quant || g_strcmp0(module->desc->scheme, "dense/1") != 0)
                return false;
        }
    }
    return n > 0;
}

static void check_stale_block(const DavitDraft *draft)
{
    const json_t *config = davit_settings_json(draft->plan->settings);
    const json_t *block = davit_settings_quantization(draft->plan->settings);
    const char *key = json_object_get(config, "quantization_config") == block
                          ? "quantization_config"
                          : "compression_config";
    const char *method = json_string_value(json_object_get(block, "quant_method"));

    /* a refused module is in no slot, and may be what the block speaks of */
    if (!block || davit_report_failed(draft->report) || !all_plain(draft))
        return;
    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_CONFIG_UNSUPPORTED,
            .severity = DAVIT_WARNING,
            .stage = "plan",
            .subject = davit_report_text(draft->report, "config.json: %s", key),
            .expected = "no such block beside plain tensors",
            .found = method ? davit_report_text(draft->report, "quant_method %s", method)
                            : "no quant_method",
            .message = davit_report_text(draft->report,
                                         "stale %s: ignored, because the stored tensors "
                                         "are plain",
                                         key),
            .hint = "take the block out of config.json, or take the quantised weights that it "
                    "speaks of"});
}

/* ---- rows of cut modules ---- */

typedef struct Cut {
    const DavitModule *module;
    uint64_t row, end, whole;
} Cut;

static int by_module_and_row(const void *a, const void *b)
{
    const Cut *x = a, *y = b;
    const int c = strcmp(x->module->name, y->module->name);

    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

static GArray *collect_cuts(const DavitDraft *draft)
{
    GArray *cuts = g_array_new(FALSE, FALSE, sizeof(Cut));

    for (guint i = 0; i < draft->slots->len; i++) {
        const DavitSlot *slot = &g_array_index(draft->slots, DavitSlot, i);
        const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;

        for (size_t s = 0; s < slot->n_sources; s++) {
            const DavitSlotSource *src = &slot->sources[s];
            const davit_quant_desc *d = src->module->desc;
            const uint8_t taken = draft->consumed[src->module->tensor[0]];
            Cut cut;

            /* refused: a slot asked for the rows and was told why not */
            if (taken & (DAVIT_TAKEN_WHOLE | DAVIT_TAKEN_REFUSED))
                continue;
            cut = (Cut){src->module, src->row, src->row + src->n_rows,
                        turned ? d->n_cols : d->n_rows};
            g_array_append_val(cuts, cut);
        }
    }
    g_array_sort(cuts, by_module_and_row);
    return cuts;
}

static void report_hole(DavitDraft *draft, const Cut *cut, uint64_t from, uint64_t to)
{
    davit_report_add(
        draft->report,
        &(DavitFinding){.code = DAVIT_R_TENSOR_UNEXPECTED,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "plan",
                        .subject = cut->module->name,
                        .found = davit_report_text(
                            draft->report, "rows %" PRIu64 " to %" PRIu64, from, to - 1),
                        .message = "rows of a fused tensor are taken by no slot",
                        .hint = "the configuration's sizes do not add up to the "
                                "tensor's rows"});
}

static void check_cut_modules(DavitDraft *draft)
{
    g_autoptr(GArray) cuts = collect_cuts(draft);
    uint64_t reached = 0;

    for (guint i = 0; i < cuts->len; i++) {
        const Cut *cut = &g_array_index(cuts, Cut, i);
        const Cut *next = i + 1 < cuts->len ? cut + 1 : NULL;

        if (i == 0 || cut[-1].module != cut->module)
            reached = 0;
        if (cut->row > reached)
            report_hole(draft, cut, reached, cut->row);
        reached = MAX(reached, cut->end);
        if ((!next || next->module != cut->module) && reached < cut->whole)
            report_hole(draft, cut, reached, cut->whole);
    }
}
