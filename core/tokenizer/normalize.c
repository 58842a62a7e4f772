/* SPDX-License-Identifier: Apache-2.0
 * The `normalizer` member as steps; normalize_steps.c does them.
 */
#include "tokenizer/normalize_steps.h"

#include <string.h>

#include "base/text_flags.h"
#include "tokenizer/node.h"

static void clear_step(void *data)
{
    Step *step = data;

    g_free(step->pattern);
    g_free(step->content);
    davit_regex_free(step->regex);
    davit_charsmap_free(step->map);
    if (step->rules)
        davit_spm_rules_clear(step->rules);
    g_free(step->rules);
}

static DavitNormalizer *new_empty(void)
{
    DavitNormalizer *normalizer = g_new0(DavitNormalizer, 1);

    normalizer->steps = g_array_new(FALSE, FALSE, sizeof(Step));
    g_array_set_clear_func(normalizer->steps, clear_step);
    return normalizer;
}

void davit_normalizer_free(DavitNormalizer *normalizer)
{
    if (!normalizer)
        return;
    g_array_free(normalizer->steps, TRUE);
    g_free(normalizer);
}

bool davit_normalizer_is_empty(const DavitNormalizer *normalizer)
{
    return normalizer->steps->len == 0;
}

/* ---- reading ---- */

static int32_t read_regex(const DavitNodePlace *place, const char *regex, size_t len,
                          Step *out)
{
    uint64_t pair[2], next;

    if (len == 5 && memcmp(regex, " {2,}", 5) == 0) {
        out->kind = STEP_BLANKS;
        return DAVIT_OK;
    }
    out->kind = STEP_REGEX;
    out->regex = davit_regex_compile(regex, len, 0, "normalizer.pattern", place->report);
    if (!out->regex)
        return DAVIT_E_UNSUPPORTED;
    if (davit_regex_matches(out->regex, (davit_span){"", 0}, 0, pair, 1, &next) != 0)
        return davit_node_unsupported(place, "pattern.Regex",
                                      "a regex that does not match an empty text", regex);
    return DAVIT_OK;
}

static int32_t read_replace(const DavitNodePlace *place, const json_t *node, Step *out)
{
    const json_t *regex =
        json_object_get(json_object_get(node, "pattern"), "Regex");
    const char *pattern = json_string_value(regex), *content;
    int32_t status;

    if (pattern) {
        out->pattern_len = json_string_length(regex);
        status = read_regex(place, pattern, out->pattern_len, out);
    } else {
        out->kind = STEP_REPLACE;
        status = davit_node_pattern(place, node, &pattern, &out->pattern_len);
    }
    if (status == DAVIT_OK)
        status = davit_node_text(place, node, "content", &content, &out->content_len);
    if (status != DAVIT_OK)
        return status;
    if (out->pattern_len == 0)
        return davit_node_unsupported(place, "pattern", "a pattern that is not empty",
                                      "\"\"");
    out->pattern = g_memdup2(pattern, out->pattern_len + 1);
    out->content = g_memdup2(content, out->content_len + 1);
    return DAVIT_OK;
}

static int32_t read_precompiled(const DavitNodePlace *place, const json_t *node,
                                Step *out)
{
    const char *text, *why;
    size_t len, n;
    g_autofree uint8_t *bytes = NULL;
    g_autofree char *again = NULL;
    int32_t status = davit_node_text(place, node, "precompiled_charsmap", &text, &len);

    if (status != DAVIT_OK)
        return status;
    bytes = g_base64_decode(text, &n);
    again = g_base64_encode(bytes, n); /* GLib passes over what is not base64 */
    if (strlen(again) != len || memcmp(again, text, len) != 0) {
        davit_node_invalid(place, "precompiled_charsmap", "base64", NULL);
        return DAVIT_E_CORRUPT;
    }
    out->kind = STEP_PRECOMPILED;
    out->map = davit_charsmap_new(bytes, n, &why);
    if (!out->map)
        return davit_node_invalid(
            place, "precompiled_charsmap",
            davit_report_text(place->report, "a whole charsmap: %s", why), NULL);
    return DAVIT_OK;
}

static void add_step(DavitNormalizer *normalizer, Step step)
{
    g_array_append_val(normalizer->steps, step);
}

static int32_t read_bert(const DavitNodePlace *place, const json_t *node,
                         DavitNormalizer *out)
{
    bool clean, chinese, lower, strip;
    int32_t status = davit_node_bool(place, node, "clean_text", &clean);

    if (status == DAVIT_OK)
        status = davit_node_bool(place, node, "handle_chinese_chars", &chinese);
    if (status == DAVIT_OK)
        status = davit_node_bool(place, node, "lowercase", &lower);
    if (status == DAVIT_OK) /* null: as lowercase */
        status = davit_node_bool_or(place, node, "strip_accents", lower, &strip);
    if (status != DAVIT_OK)
        return status;
    if (clean)
        add_step(out, (Step){.kind = STEP_BERT_CLEAN});
    if (chinese)
        add_step(out, (Step){.kind = STEP_BERT_CHINESE});
    if (strip) {
        add_step(out, (Step){.kind = STEP_FORM, .form = DAVIT_FORM_NFD});
        add_step(out, (Step){.kind = STEP_DROP, .flag = DAVIT_TEXT_BERT_ACCENT});
    }
    if (lower)
        add_step(out, (Step){.kind = STEP_LOWERCASE});
    return DAVIT_OK;
}

/* Stages without members. */
static const struct {
    const char *type;
    Step step;
} bare[] = {
    {"NFC", {.kind = STEP_FORM, .form = DAVIT_FORM_NFC}},
    {"NFD", {.kind = STEP_FORM, .form = DAVIT_FORM_NFD}},
    {"NFKC", {.kind = STEP_FORM, .form = DAVIT_FORM_NFKC}},
    {"NFKD", {.kind = STEP_FORM, .form = DAVIT_FORM_NFKD}},
    {"StripAccents", {.kind = STEP_DROP, .flag = DAVIT_TEXT_MARK}},
    {"Lowercase", {.kind = STEP_LOWERCASE}},
    {"Nmt", {.kind = STEP_NMT}},
};

static int32_t read_own(const DavitNodePlace *place, const json_t *node,
                        const char *type, Step *out)
{
    const char *content;
    int32_t status;

    if (strcmp(type, "Replace") == 0)
        return read_replace(place, node, out);
    if (strcmp(type, "Precompiled") == 0)
        return read_precompiled(place, node, out);
    if (strcmp(type, "Strip") == 0) {
        out->kind = STEP_STRIP;
        status = davit_node_bool(place, node, "strip_left", &out->left);
        return status == DAVIT_OK
                   ? davit_node_bool(place, node, "strip_right", &out->right)
                   : status;
    }
    if (strcmp(type, "Prepend") == 0) {
        out->kind = STEP_PREPEND;
        status = davit_node_text(place, node, "prepend", &content, &out->content_len);
        if (status == DAVIT_OK && out->content_len == 0) /* Hugging Face's places go wrong */
            return davit_node_unsupported(place, "prepend", "a text that is not empty", "\"\"");
        if (status == DAVIT_OK)
            out->content = g_memdup2(content, out->content_len + 1);
        return status;
    }
    return davit_node_unsupported(
        place, "type",
        "Sequence, Replace, Prepend, Precompiled, BertNormalizer, NFC, NFD, NFKC, NFKD, "
        "StripAccents, Lowercase, Nmt or Strip",
        type);
}

static int32_t read_step(const DavitNodePlace *place, const json_t *node,
                         DavitNormalizer *out)
{
    const char *type = davit_node_type(place, node);
    Step step = {0};
    int32_t status;

    for (size_t i = 0; i < G_N_ELEMENTS(bare); i++) {
        if (strcmp(type, bare[i].type) == 0) {
            add_step(out, bare[i].step);
            return DAVIT_OK;
        }
    }
    if (strcmp(type, "BertNormalizer") == 0)
        return read_bert(place, node, out);
    status = read_own(place, node, type, &step);
    add_step(out, step); /* also on failure: the list frees it */
    return status;
}

DavitNormalizer *davit_normalizer_new(const json_t *node, const char *subject,
                                      DavitReport *report)
{
    g_autoptr(DavitNormalizer) normalizer = new_empty();
    const DavitNodePlace place = {subject, "normalizer", report};
    const json_t *stages[DAVIT_TOK_MAX_STAGES];
    size_t n;

    if (davit_node_flatten(&place, node, "normalizers", stages, &n) != DAVIT_OK)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (read_step(&place, stages[i], normalizer) != DAVIT_OK)
            return NULL;
    }
    return g_steal_pointer(&normalizer);
}

DavitNormalizer *davit_normalizer_spm(const DavitSpmRules *rules)
{
    DavitNormalizer *normalizer = new_empty();

    add_step(normalizer,
             (Step){.kind = STEP_SPM, .rules = g_memdup2(rules, sizeof *rules)});
    return normalizer;
}
