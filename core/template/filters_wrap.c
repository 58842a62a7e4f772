/* SPDX-License-Identifier: Apache-2.0
 * The filter wordwrap. Source: jinja2 3.1.6 filters.py; Python 3.11 textwrap.py: where words
 * may be cut (wordsep_re) and how lines are filled (_wrap_chunks). */
#include "template/text.h"

#include <math.h>
#include <string.h>

#include <davit/help/ucd.h>

typedef struct Wrap {
    Vm *vm;
    int64_t width;
    bool fraction; /* the width is a float above 0 */
    bool break_long, hyphens, split_hyphens;
    const Str *join;
    Sb out;
    bool any; /* a line of the text is out */
    /* the paragraph */
    Str *line;
    const uint32_t *cps, *offsets;
    size_t n;
} Wrap;

/* The characters [start, end) of the paragraph, which go together. */
typedef struct Chunk {
    size_t start, end;
} Chunk;

/* ---- chunks ---- */

/* Of what textwrap takes for white space, all that stands inside a line. */
static bool is_blank(uint32_t cp)
{
    return cp == ' ' || cp == '\t';
}

static bool is_letter(uint32_t cp)
{
    const uint32_t bits = davit_ucd_bits(cp);

    return cp == '_' || ((bits & (DAVIT_UCD_L | DAVIT_UCD_N)) && !(bits & DAVIT_UCD_ND));
}

static bool is_word(uint32_t cp)
{
    return cp == '_' || (davit_ucd_bits(cp) & (DAVIT_UCD_L | DAVIT_UCD_N));
}

static bool letter_at(const Wrap *w, size_t at)
{
    return at < w->n && is_letter(w->cps[at]);
}

static bool hyphen_at(const Wrap *w, size_t at)
{
    return at < w->n && w->cps[at] == '-';
}

/* The end of two hyphens or more at @at between a word or its punctuation and a word; 0 = none. */
static size_t dashes(const Wrap *w, size_t at)
{
    size_t end = at;

    if (at == 0 || !hyphen_at(w, at) || !hyphen_at(w, at + 1))
        return 0;
    const uint32_t before = w->cps[at - 1];
    if (!is_word(before) && !(before < 0x80 && before && strchr("!\"'&.,?", (int)before)))
        return 0;
    while (hyphen_at(w, end))
        end++;
    return end < w->n && is_word(w->cps[end]) ? end : 0;
}

/* A word may be cut behind the hyphen at @at: "ab-cd", "a-b-cd", before "cd" or "c-d". */
static bool cuts(const Wrap *w, size_t at)
{
    if (!hyphen_at(w, at) || at < 2 || !letter_at(w, at - 1))
        return false;
    if (!letter_at(w, at - 2) && !(at >= 3 && hyphen_at(w, at - 2) && letter_at(w, at - 3)))
        return false;
    return letter_at(w, at + 1) &&
           (letter_at(w, at + 2) || (hyphen_at(w, at + 2) && letter_at(w, at + 3)));
}

static size_t chunk_end(const Wrap *w, size_t at)
{
    const bool blank = is_blank(w->cps[at]);
    size_t end = at + 1;

    if (blank || !w->split_hyphens) {
        while (end < w->n && is_blank(w->cps[end]) == blank)
            end++;
        return end;
    }
    if ((end = dashes(w, at)) > 0)
        return end;
    for (end = at + 1;; end++) {
        if (end >= w->n || is_blank(w->cps[end]))
            return end;
        if (cuts(w, end))
            return end + 1;
        if (dashes(w, end))
            return end;
    }
}

/* ---- lines ---- */

static void add_line(Wrap *w, size_t start, size_t end)
{
    if (w->any)
        tmpl_sb_add_str(&w->out, w->join);
    w->any = true;
    tmpl_sb_add_str(&w->out, tmpl_str_part(&w->vm->arena, w->line, w->offsets[start],
                                           w->offsets[end]));
}

/* str.strip() leaves nothing. */
static bool is_empty(const Wrap *w, size_t start, size_t end)
{
    while (start < end && tmpl_is_space(w->cps[start]))
        start++;
    return start == end;
}

/* How much of the long word at @chunk goes into @room characters. */
static size_t cut_long(const Wrap *w, const Chunk *chunk, size_t room)
{
    size_t last = 0;
    bool other = false;

    if (!w->hyphens)
        return room;
    for (size_t i = 0; i < room; i++) {
        if (!hyphen_at(w, chunk->start + i))
            other = true;
        else if (i > 0 && other)
            last = i + 1;
    }
    return last ? last : room;
}

/* Fills a line from chunk *at on; returns false when nothing of it is left to print. */
static bool fill_line(Wrap *w, Chunk *chunks, size_t n, size_t *at, Chunk *out)
{
    const size_t width = (size_t)w->width;
    size_t length = 0, last = chunks[*at].start; /* where the last piece of the line starts */
    bool any = false;

    out->start = out->end = last;
    while (*at < n && length + (chunks[*at].end - chunks[*at].start) <= width) {
        last = chunks[*at].start;
        out->end = chunks[*at].end;
        length += out->end - last;
        any = true;
        ++*at;
    }
    if (*at < n && chunks[*at].end - chunks[*at].start > width) {
        Chunk *chunk = &chunks[*at];

        if (w->break_long) {
            if (w->fraction && width > 0)
                tmpl_raise(w->vm, "TypeError: slice indices must be integers");
            last = chunk->start;
            chunk->start += cut_long(w, chunk, width ? width - length : 1);
            out->end = chunk->start;
            any = true;
        } else if (!any) {
            last = chunk->start;
            out->end = chunk->end;
            any = true;
            ++*at;
        }
    }
    if (any && is_empty(w, last, out->end)) {
        out->end = last;
        return last > out->start;
    }
    return any;
}

static void wrap_paragraph(Wrap *w)
{
    Chunk *chunks = tmpl_new_n(&w->vm->arena, Chunk, w->n + 1);
    size_t n = 0, at = 0, lines = 0;
    Chunk line;

    if (w->width <= 0 && !w->fraction)
        tmpl_raise(w->vm, "ValueError: invalid width %" G_GINT64_FORMAT " (must be > 0)", w->width);
    for (size_t i = 0; i < w->n; i = chunks[n++].end)
        chunks[n] = (Chunk){i, chunk_end(w, i)};
    while (at < n) {
        tmpl_step(w->vm, 1);
        if (lines && is_empty(w, chunks[at].start, chunks[at].end) && ++at == n)
            break;
        if (fill_line(w, chunks, n, &at, &line)) {
            add_line(w, line.start, line.end);
            lines++;
        }
    }
    if (lines == 0)
        add_line(w, 0, 0);
}

/* The paragraph [start, end) of bytes of @s. */
static void read_paragraph(Wrap *w, const Str *s, size_t start, size_t end)
{
    uint32_t *cps = tmpl_new_n(&w->vm->arena, uint32_t, end - start + 1);
    uint32_t *offsets = tmpl_new_n(&w->vm->arena, uint32_t, end - start + 1), len;

    w->line = tmpl_str_part(&w->vm->arena, s, start, end);
    w->line->markup = false;
    w->n = 0;
    tmpl_step(w->vm, (end - start) / 8);
    for (size_t at = 0; at < w->line->n; at += len) {
        offsets[w->n] = (uint32_t)at;
        cps[w->n++] = tmpl_str_cp(w->line, at, &len);
    }
    offsets[w->n] = w->line->n;
    w->cps = cps;
    w->offsets = offsets;
}

static void wrap_text(Wrap *w, const Str *s)
{
    uint32_t len;

    for (size_t start = 0, end; start < s->n; start = end + len) {
        for (end = start, len = 0; end < s->n; end += len) {
            const uint32_t cp = tmpl_str_cp(s, end, &len);

            if (!tmpl_is_line_end(cp))
                continue;
            len += cp == '\r' && end + 1 < s->n && s->p[end + 1] == '\n';
            break;
        }
        read_paragraph(w, s, start, end);
        wrap_paragraph(w);
        if (end >= s->n)
            break;
    }
}

/* Lengths are compared with a float as with the whole number below; 0.5 counts as 0 there, which
 * is not refused. */
static int64_t wrap_width(Wrap *w, Value v)
{
    if (v.type == V_MISSING)
        return 79;
    if (v.type != V_FLOAT)
        return tmpl_need_index(w->vm, v, "width");
    if (isnan(v.f))
        tmpl_unsupported(w->vm, "a width of nan");
    w->fraction = v.f > 0;
    return v.f >= 1e18 ? INT64_MAX : (int64_t)floor(MAX(v.f, -1));
}

static Value wordwrap(Vm *vm, Value value, const Args *args)
{
    Wrap w = {.vm = vm, .out = {.arena = &vm->arena}};
    Value bound[4];

    tmpl_bind(vm, args, "wordwrap", "width? break_long_words? wrapstring? break_on_hyphens?", bound);
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    const Str *s = tmpl_need_str(vm, value, "the value of wordwrap");
    w.join = bound[2].type == V_MISSING || bound[2].type == V_NONE
                 ? tmpl_str(&vm->arena, "\n", 1)
                 : tmpl_need_str(vm, bound[2], "wrapstring");
    if (w.join->markup)
        tmpl_unsupported(vm, "lines joined by escaped text (Markup)");
    if (s->n == 0)
        return tmpl_string(tmpl_sb_take(&w.out));
    w.width = wrap_width(&w, bound[0]);
    w.break_long = bound[1].type == V_MISSING || tmpl_truth(vm, bound[1]);
    w.hyphens = bound[3].type == V_MISSING || tmpl_truth(vm, bound[3]);
    w.split_hyphens = bound[3].type == V_MISSING || (bound[3].type == V_BOOL && bound[3].b);
    wrap_text(&w, s);
    return tmpl_string(tmpl_sb_take(&w.out));
}

const FilterRow tmpl_filters_wrap[] = {
    {"wordwrap", wordwrap},
    {NULL, NULL},
};
