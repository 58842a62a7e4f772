/* SPDX-License-Identifier: Apache-2.0
 * The steps of a normaliser at work, each from one text to another.
 */
#include "tokenizer/normalize_steps.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/normalize_text.h"
#include "tokenizer/origin.h"

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

/* What a step writes to, and the text that it reads. */
typedef struct Work {
    const char *in;
    GString *out;
    GArray *trace; /* origin.h; NULL = not wanted */
    bool *cut;
} Work;

static void keep(Work *work, const char *text, size_t n)
{
    g_string_append_len(work->out, text, (gssize)n);
    davit_trace_keep(work->trace, (size_t)(text - work->in), n);
}

/* What stands for a match has the place of its last character, so that a text does not start at its
 * start any more where several characters, or none, made way for its first. */
static bool moves_start(const Step *step, const char *match, size_t len)
{
    return step->content_len == 0 || davit_count_chars(match, len) > 1;
}

/* The step's content instead of what ends at @end. */
static void put(Work *work, const Step *step, const char *end)
{
    g_string_append_len(work->out, step->content, (gssize)step->content_len);
    davit_trace_put(work->trace, step->content_len, (uint32_t)(end - work->in) - 1);
}

#define FEW_BYTES 4u

/* One byte by one to FEW_BYTES others, without a trace: SentencePiece's spaces, of which a text has
 * one in six bytes. No branch depends on the text. */
static bool replace_byte(const Step *step, Work *work, size_t len)
{
    const char *text = work->in;
    const uint8_t pattern = (uint8_t)step->pattern[0];
    uint32_t content = 0;
    size_t n = 0;
    char *out;

    for (size_t i = 0; i < len; i++)
        n += (uint8_t)text[i] == pattern;
    if (n == 0)
        return false;
    memcpy(&content, step->content, step->content_len);
    g_string_set_size(work->out, len + n * (step->content_len - 1) + FEW_BYTES); /* all is written */
    out = work->out->str;
    for (size_t i = 0; i < len; i++) {
        const bool hit = (uint8_t)text[i] == pattern;
        const uint32_t bytes = hit ? content : GUINT32_TO_LE((uint8_t)text[i]);

        memcpy(out, &bytes, sizeof bytes);
        out += hit ? step->content_len : 1;
    }
    g_string_truncate(work->out, (gsize)(out - work->out->str));
    return true;
}

static bool replace(const Step *step, Work *work, size_t len)
{
    const char *text = work->in;
    const char *hit;

    if (!work->trace && step->pattern_len == 1 && step->content_len > 0 &&
        step->content_len <= FEW_BYTES)
        return replace_byte(step, work, len);
    hit = find_text(text, len, step->pattern, step->pattern_len);
    if (!hit)
        return false;
    *work->cut |= hit == text && moves_start(step, hit, step->pattern_len);
    for (; hit; hit = find_text(text, len, step->pattern, step->pattern_len)) {
        keep(work, text, (size_t)(hit - text));
        put(work, step, hit + step->pattern_len);
        len -= (size_t)(hit - text) + step->pattern_len;
        text = hit + step->pattern_len;
    }
    keep(work, text, len);
    return true;
}

/* Runs of two spaces and more. */
static bool replace_blanks(const Step *step, Work *work, size_t len)
{
    const char *text = work->in;
    const char *hit = find_text(text, len, "  ", 2);

    if (!hit)
        return false;
    *work->cut |= hit == text;
    for (; hit; hit = find_text(text, len, "  ", 2)) {
        const size_t at = (size_t)(hit - text);
        size_t end = at + 2;

        while (end < len && text[end] == ' ')
            end++;
        keep(work, text, at);
        put(work, step, text + end);
        text += end;
        len -= end;
    }
    keep(work, text, len);
    return true;
}

/* Returns: 1 replaced, 0 no match, -1 a limit of the engine. */
static int replace_regex(const Step *step, Work *work, size_t len)
{
    const char *text = work->in;
    uint64_t pairs[64], from = 0, done = 0;
    bool any = false;

    while (from < len) {
        const int64_t n =
            davit_regex_matches(step->regex, (davit_span){text, len}, from, pairs,
                                G_N_ELEMENTS(pairs) / 2, &from);

        if (n < 0)
            return -1;
        for (int64_t i = 0; i < n; i++) {
            keep(work, text + done, pairs[2 * i] - done);
            put(work, step, text + pairs[2 * i + 1]);
            *work->cut |= pairs[2 * i] == 0 && moves_start(step, text, pairs[2 * i + 1]);
            done = pairs[2 * i + 1];
            any = true;
        }
        if (n == 0)
            break;
    }
    if (any)
        keep(work, text + done, len - done);
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

/* A step that looks at each character alone. */
static void apply_chars(const Step *step, Work *work, const char *text, size_t len)
{
    switch (step->kind) {
    case STEP_LOWERCASE:
        davit_lower_append(work->out, text, len);
        return;
    case STEP_DROP:
        *work->cut |= davit_drop_append(work->out, text, len, step->flag);
        return;
    case STEP_NMT:
        *work->cut |= davit_nmt_append(work->out, text, len);
        return;
    case STEP_BERT_CLEAN:
        *work->cut |= davit_bert_clean_append(work->out, text, len);
        return;
    case STEP_BERT_CHINESE:
        davit_bert_chinese_append(work->out, text, len);
        return;
    default:
        g_assert_not_reached();
    }
}

/* The same with a trace: what becomes of a character has its origin. */
static void trace_chars(const Step *step, Work *work, size_t len)
{
    bool cut = false, *outer = work->cut;
    uint32_t n;

    for (size_t off = 0; off < len; off += n) {
        const size_t before = work->out->len;

        davit_ucd_decode(work->in, len, off, &n);
        work->cut = off == 0 ? outer : &cut; /* only the first character counts */
        apply_chars(step, work, work->in + off, n);
        if (work->out->len - before == n && memcmp(work->out->str + before, work->in + off, n) == 0)
            davit_trace_keep(work->trace, off, n);
        else
            davit_trace_put(work->trace, work->out->len - before, (uint32_t)off);
    }
    work->cut = outer;
}

/* Steps that say how characters changed. */
static void apply_changes(const Step *step, Work *work, size_t len)
{
    g_autoptr(GArray) changes =
        work->trace ? g_array_new(FALSE, FALSE, sizeof(int32_t)) : NULL;

    if (step->kind == STEP_FORM)
        davit_form_append_changes(step->form, work->out, work->in, len, changes);
    else
        davit_charsmap_append(step->map, work->in, len, work->out, changes);
    if (changes)
        davit_trace_changes(work->trace, work->in, len, work->out->str, work->out->len,
                            changes);
}

/* One step into work->out, which is empty. Returns: 1 changed, 0 the text did not change (or was
 * only narrowed), -1 a limit. */
static int apply(const Step *step, Work *work, const char **text, size_t *len)
{
    const size_t n = *len;

    switch (step->kind) {
    case STEP_REPLACE:
        return replace(step, work, n);
    case STEP_REGEX:
        return replace_regex(step, work, n);
    case STEP_BLANKS:
        return replace_blanks(step, work, n);
    case STEP_PREPEND:
        if (n == 0)
            return 0;
        put(work, step, work->in + 1);
        keep(work, work->in, n);
        return 1;
    case STEP_FORM:
        if (davit_form_is_plain(step->form, work->in, n))
            return 0;
        apply_changes(step, work, n);
        return 1;
    case STEP_PRECOMPILED:
        apply_changes(step, work, n);
        return 1;
    case STEP_STRIP:
        *work->cut |= strip(step, text, len);
        return 0;
    case STEP_SPM: /* its rules are another library's: without a trace */
        davit_spm_append(step->rules, work->in, n, work->out);
        return 1;
    default:
        if (work->trace)
            trace_chars(step, work, n);
        else
            apply_chars(step, work, work->in, n);
        return 1;
    }
}

const char *davit_normalize(const DavitNormalizer *normalizer,
                            DavitNormalScratch *scratch, const char *text, size_t len,
                            size_t *out_len, bool *out_cut)
{
    g_autoptr(GArray) trace =
        scratch->origin ? g_array_new(FALSE, FALSE, sizeof(uint32_t)) : NULL;
    GString *next = scratch->a, *spare = scratch->b;

    *out_cut = false;
    if (trace)
        davit_origin_start(scratch->origin, len);
    for (guint i = 0; i < normalizer->steps->len; i++) {
        const char *before = text;
        Work work = {text, next, trace, out_cut};
        int changed;

        g_string_truncate(next, 0);
        if (trace)
            g_array_set_size(trace, 0);
        changed = apply(&g_array_index(normalizer->steps, Step, i), &work, &text, &len);
        if (changed < 0)
            return NULL;
        if (changed == 0 && trace)
            davit_origin_narrow(scratch->origin, (size_t)(text - before), len);
        if (changed == 0)
            continue;
        if (trace)
            davit_origin_follow(scratch->origin, trace, before);
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
