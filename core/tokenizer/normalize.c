/* SPDX-License-Identifier: Apache-2.0
 * Normaliser steps, each from one text to another.
 */
#include "tokenizer/normalize.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "base/regex.h"
#include "base/text_flags.h"
#include "base/unicode.h"
#include "tokenizer/node.h"
#include "tokenizer/normalize_text.h"

typedef enum StepKind {
    STEP_REPLACE,
    STEP_REGEX,  /* Replace of a regex */
    STEP_BLANKS, /* Replace of the regex " {2,}" */
    STEP_PREPEND,
    STEP_FORM,
    STEP_LOWERCASE,
    STEP_STRIP,
    STEP_DROP, /* characters with a flag */
    STEP_NMT,
    STEP_BERT_CLEAN,
    STEP_BERT_CHINESE,
    STEP_PRECOMPILED,
    STEP_SPM,
} StepKind;

typedef struct Step {
    StepKind kind;
    char *pattern, *content; /* owned; Replace both, Prepend content */
    size_t pattern_len, content_len;
    bool left, right;     /* Strip */
    DavitForm form;       /* Form */
    uint32_t flag;        /* Drop */
    DavitRegex *regex;    /* owned; Regex */
    DavitCharsmap *map;   /* owned; Precompiled */
    DavitSpmRules *rules; /* owned; Spm */
} Step;

struct DavitNormalizer {
    GArray *steps; /* Step; a BertNormalizer is several */
};

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

/* ---- the steps ---- */

static const char *find_text(const char *text, size_t len, const char *want,
                             size_t want_len)
{
    while (len >= want_len) {
        const char *hit = memchr(text, want[0], len - want_len + 1);

        if (!hit || memcmp(hit, want, want_len) == 0)
            return hit;
        len -= (size_t)(hit - text) + 1;
        text = hit + 1;
    }
    return NULL;
}

static bool replace(const Step *step, const char *text, size_t len, GString *out,
                    bool *cut)
{
    const char *hit = find_text(text, len, step->pattern, step->pattern_len);

    if (!hit)
        return false;
    *cut |= hit == text && step->content_len == 0;
    for (; hit; hit = find_text(text, len, step->pattern, step->pattern_len)) {
        g_string_append_len(out, text, hit - text);
        g_string_append_len(out, step->content, (gssize)step->content_len);
        len -= (size_t)(hit - text) + step->pattern_len;
        text = hit + step->pattern_len;
    }
    g_string_append_len(out, text, (gssize)len);
    return true;
}

/* Runs of two spaces and more. */
static bool replace_blanks(const Step *step, const char *text, size_t len, GString *out)
{
    const char *hit = find_text(text, len, "  ", 2);

    if (!hit)
        return false;
    for (; hit; hit = find_text(text, len, "  ", 2)) {
        const size_t at = (size_t)(hit - text);
        size_t end = at + 2;

        while (end < len && text[end] == ' ')
            end++;
        g_string_append_len(out, text, (gssize)at);
        g_string_append_len(out, step->content, (gssize)step->content_len);
        text += end;
        len -= end;
    }
    g_string_append_len(out, text, (gssize)len);
    return true;
}

/* Returns: 1 replaced, 0 no match, -1 a limit of the engine. */
static int replace_regex(const Step *step, const char *text, size_t len, GString *out,
                         bool *cut)
{
    uint64_t pairs[64], from = 0, done = 0;
    bool any = false;

    while (from < len) {
        const int64_t n =
            davit_regex_matches(step->regex, (davit_span){text, len}, from, pairs,
                                G_N_ELEMENTS(pairs) / 2, &from);

        if (n < 0)
            return -1;
        for (int64_t i = 0; i < n; i++) {
            g_string_append_len(out, text + done, (gssize)(pairs[2 * i] - done));
            g_string_append_len(out, step->content, (gssize)step->content_len);
            *cut |= step->content_len == 0 && pairs[2 * i] == 0;
            done = pairs[2 * i + 1];
            any = true;
        }
        if (n == 0)
            break;
    }
    if (any)
        g_string_append_len(out, text + done, (gssize)(len - done));
    return any;
}

/* Narrow [*text, *len) by white space at the ends asked for. True if the start moved. */
static bool strip(const Step *step, const char **text, size_t *len)
{
    size_t start = 0, end = *len;
    uint32_t n;

    while (step->left && davit_ucd_at(*text, end, start, &n) & DAVIT_UCD_SPACE)
        start += n;
    while (step->right && end > start) {
        const size_t at = (size_t)davit_ucd_back(*text, end);

        if (!(davit_ucd_at(*text, end, at, &n) & DAVIT_UCD_SPACE))
            break;
        end = at;
    }
    *text += start;
    *len = end - start;
    return start > 0;
}

/* One step into @out, which is empty. Returns: 1 changed, 0 the text did not change (or was
 * only narrowed), -1 a limit. */
static int apply(const Step *step, const char **text, size_t *len, GString *out, bool *cut)
{
    const char *in = *text;
    const size_t n = *len;

    switch (step->kind) {
    case STEP_REPLACE:
        return replace(step, in, n, out, cut);
    case STEP_REGEX:
        return replace_regex(step, in, n, out, cut);
    case STEP_BLANKS:
        return replace_blanks(step, in, n, out);
    case STEP_PREPEND:
        if (n == 0)
            return 0;
        g_string_append_len(out, step->content, (gssize)step->content_len);
        g_string_append_len(out, in, (gssize)n);
        return 1;
    case STEP_FORM:
        if (davit_form_is_plain(step->form, in, n))
            return 0;
        davit_form_append(step->form, out, in, n);
        return 1;
    case STEP_LOWERCASE:
        davit_lower_append(out, in, n);
        return 1;
    case STEP_STRIP:
        *cut |= strip(step, text, len);
        return 0;
    case STEP_DROP:
        *cut |= davit_drop_append(out, in, n, step->flag);
        return 1;
    case STEP_NMT:
        *cut |= davit_nmt_append(out, in, n);
        return 1;
    case STEP_BERT_CLEAN:
        *cut |= davit_bert_clean_append(out, in, n);
        return 1;
    case STEP_BERT_CHINESE:
        davit_bert_chinese_append(out, in, n);
        return 1;
    case STEP_PRECOMPILED:
        davit_charsmap_append(step->map, in, n, out);
        return 1;
    case STEP_SPM:
        davit_spm_append(step->rules, in, n, out);
        return 1;
    }
    g_assert_not_reached();
}

const char *davit_normalize(const DavitNormalizer *normalizer,
                            DavitNormalScratch *scratch, const char *text, size_t len,
                            size_t *out_len, bool *out_cut)
{
    GString *next = scratch->a, *spare = scratch->b;

    *out_cut = false;
    for (guint i = 0; i < normalizer->steps->len; i++) {
        int changed;

        g_string_truncate(next, 0);
        changed = apply(&g_array_index(normalizer->steps, Step, i), &text, &len, next,
                        out_cut);
        if (changed < 0)
            return NULL;
        if (changed == 0)
            continue;
        text = next->str;
        len = next->len;
        /* The text is in one buffer now; the next step writes to the other. */
        GString *swap = next;
        next = spare;
        spare = swap;
    }
    *out_len = len;
    return text;
}
