/* SPDX-License-Identifier: Apache-2.0
 * Normaliser steps, each from one text to another.
 */
#include "tokenizer/normalize.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "base/unicode.h"
#include "tokenizer/node.h"

typedef enum StepKind {
    STEP_REPLACE,
    STEP_PREPEND,
    STEP_NFC,
    STEP_LOWERCASE,
    STEP_STRIP,
} StepKind;

typedef struct Step {
    StepKind kind;
    char *pattern, *content; /* owned; Replace both, Prepend content */
    size_t pattern_len, content_len;
    bool left, right; /* Strip */
} Step;

struct DavitNormalizer {
    Step steps[DAVIT_TOK_MAX_STAGES];
    size_t n;
};

void davit_normalizer_free(DavitNormalizer *normalizer)
{
    if (!normalizer)
        return;
    for (size_t i = 0; i < normalizer->n; i++) {
        g_free(normalizer->steps[i].pattern);
        g_free(normalizer->steps[i].content);
    }
    g_free(normalizer);
}

bool davit_normalizer_is_empty(const DavitNormalizer *normalizer)
{
    return normalizer->n == 0;
}

static int32_t read_replace(const DavitNodePlace *place, const json_t *node, Step *out)
{
    const char *pattern, *content;
    int32_t status = davit_node_pattern(place, node, &pattern, &out->pattern_len);

    if (status == DAVIT_OK)
        status = davit_node_text(place, node, "content", &content, &out->content_len);
    if (status != DAVIT_OK)
        return status;
    if (out->pattern_len == 0)
        return davit_node_unsupported(place, "pattern", "a pattern that is not empty",
                                      "\"\"");
    out->kind = STEP_REPLACE;
    out->pattern = g_memdup2(pattern, out->pattern_len + 1);
    out->content = g_memdup2(content, out->content_len + 1);
    return DAVIT_OK;
}

static int32_t read_step(const DavitNodePlace *place, const json_t *node, Step *out)
{
    const char *type = davit_node_type(place, node);
    const char *content;
    int32_t status = DAVIT_OK;

    if (strcmp(type, "Replace") == 0)
        return read_replace(place, node, out);
    if (strcmp(type, "NFC") == 0) {
        out->kind = STEP_NFC;
    } else if (strcmp(type, "Lowercase") == 0) {
        out->kind = STEP_LOWERCASE;
    } else if (strcmp(type, "Strip") == 0) {
        out->kind = STEP_STRIP;
        status = davit_node_bool(place, node, "strip_left", &out->left);
        if (status == DAVIT_OK)
            status = davit_node_bool(place, node, "strip_right", &out->right);
    } else if (strcmp(type, "Prepend") == 0) {
        out->kind = STEP_PREPEND;
        status = davit_node_text(place, node, "prepend", &content, &out->content_len);
        if (status == DAVIT_OK)
            out->content = g_memdup2(content, out->content_len + 1);
    } else {
        return davit_node_unsupported(
            place, "type", "Sequence, Replace, Prepend, NFC, Lowercase or Strip", type);
    }
    return status;
}

DavitNormalizer *davit_normalizer_new(const json_t *node, const char *subject,
                                      DavitReport *report)
{
    g_autoptr(DavitNormalizer) normalizer = g_new0(DavitNormalizer, 1);
    const DavitNodePlace place = {subject, "normalizer", report};
    const json_t *stages[DAVIT_TOK_MAX_STAGES];
    size_t n;

    if (davit_node_flatten(&place, node, "normalizers", stages, &n) != DAVIT_OK)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (read_step(&place, stages[i], &normalizer->steps[i]) != DAVIT_OK)
            return NULL;
        normalizer->n++;
    }
    return g_steal_pointer(&normalizer);
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

static bool replace(const Step *step, const char *text, size_t len, GString *out)
{
    const char *hit = find_text(text, len, step->pattern, step->pattern_len);

    if (!hit)
        return false;
    g_string_truncate(out, 0);
    for (; hit; hit = find_text(text, len, step->pattern, step->pattern_len)) {
        g_string_append_len(out, text, hit - text);
        g_string_append_len(out, step->content, (gssize)step->content_len);
        len -= (size_t)(hit - text) + step->pattern_len;
        text = hit + step->pattern_len;
    }
    g_string_append_len(out, text, (gssize)len);
    return true;
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

/* One step into @out. Returns: false if the text did not change (or was only narrowed).
 */
static bool apply(const Step *step, const char **text, size_t *len, GString *out,
                  bool *cut)
{
    switch (step->kind) {
    case STEP_REPLACE:
        return replace(step, *text, *len, out);
    case STEP_PREPEND:
        if (*len == 0)
            return false;
        g_string_truncate(out, 0);
        g_string_append_len(out, step->content, (gssize)step->content_len);
        g_string_append_len(out, *text, (gssize)*len);
        return true;
    case STEP_NFC:
        if (davit_nfc_is_plain(*text, *len))
            return false;
        g_string_truncate(out, 0);
        davit_nfc_append(out, *text, *len);
        return true;
    case STEP_LOWERCASE:
        g_string_truncate(out, 0);
        davit_lower_append(out, *text, *len);
        return true;
    case STEP_STRIP:
        *cut |= strip(step, text, len);
        return false;
    }
    g_assert_not_reached();
}

const char *davit_normalize(const DavitNormalizer *normalizer,
                            DavitNormalScratch *scratch, const char *text, size_t len,
                            size_t *out_len, bool *out_cut)
{
    GString *next = scratch->a, *spare = scratch->b;

    *out_cut = false;
    for (size_t i = 0; i < normalizer->n; i++) {
        if (!apply(&normalizer->steps[i], &text, &len, next, out_cut))
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
