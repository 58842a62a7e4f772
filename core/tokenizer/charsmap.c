/* SPDX-License-Identifier: Apache-2.0
 * Reading a charsmap and the two ways of applying it.
 */
#include "tokenizer/charsmap.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "base/cluster.h"
#include "tokenizer/normalize_text.h"

#define MARK "\xe2\x96\x81" /* U+2581 */

struct DavitCharsmap {
    uint32_t *units;
    size_t n_units;
    char *texts; /* NUL behind the last */
    size_t texts_len;
    uint8_t ascii[128]; /* 1: some text of the map begins with it */
};

void davit_charsmap_free(DavitCharsmap *map)
{
    if (!map)
        return;
    g_free(map->units);
    g_free(map->texts);
    g_free(map);
}

/* ---- units ---- */

static bool ends_text(uint32_t unit)
{
    return unit >> 8 & 1;
}

static uint32_t label_of(uint32_t unit)
{
    return unit & (1u << 31 | 0xff);
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* ---- reading ---- */

/* A node on the way of the walk below. */
typedef struct Step {
    uint32_t base, label;
} Step;

/* Is the replacement at @unit a text? */
static bool has_text(const DavitCharsmap *map, uint32_t unit)
{
    const uint32_t at = unit & ~(1u << 31);

    return at <= map->texts_len && ((uint8_t)map->texts[at] & 0xc0) != 0x80;
}

/* The child of step->base by step->label: 1 and *out, 0 = none, -1 = malformed. */
static int child_of(const DavitCharsmap *map, const Step *step, uint32_t *out)
{
    const uint32_t at = step->base ^ step->label;
    uint32_t unit;

    if (at >= map->n_units)
        return -1;
    unit = map->units[at];
    if (label_of(unit) != step->label)
        return 0;
    *out = at ^ offset_of(unit);
    if (*out >= map->n_units || (ends_text(unit) && !has_text(map, map->units[*out])))
        return -1;
    return 1;
}

/* A node is higher than its child. */
static void raise_to(uint16_t *height, uint16_t child)
{
    if (*height <= child)
        *height = (uint16_t)(child + 1);
}

/* Walk all paths, each node once. Returns: NULL, or what is wrong. */
static const char *walk(const DavitCharsmap *map)
{
    g_autofree uint8_t *seen = g_new0(uint8_t, map->n_units); /* 1 on the path, 2 done */
    g_autofree uint16_t *height = g_new0(uint16_t, map->n_units);
    g_autoptr(GArray) path = g_array_new(FALSE, FALSE, sizeof(Step));
    Step step = {offset_of(map->units[0]), 1};

    if (step.base >= map->n_units)
        return "the array leads out of itself";
    seen[step.base] = 1;
    g_array_append_val(path, step);
    while (path->len > 0) {
        Step *top = &g_array_index(path, Step, path->len - 1);
        uint32_t child = 0;
        int found;

        if (top->label > 255) {
            const Step done = *top;

            seen[done.base] = 2;
            g_array_set_size(path, path->len - 1);
            if (path->len > 0) {
                const uint32_t above = g_array_index(path, Step, path->len - 1).base;

                raise_to(&height[above], height[done.base]);
                if (height[above] > DAVIT_CHARSMAP_MAX_KEY)
                    return "a text is longer than 256 bytes";
            }
            continue;
        }
        found = child_of(map, top, &child);
        if (found < 0)
            return "the array leads out of itself, or to no text";
        if (found > 0 && seen[child] == 1)
            return "the array has a loop";
        if (found > 0 && seen[child] == 2) {
            raise_to(&height[top->base], height[child]);
            if (height[top->base] > DAVIT_CHARSMAP_MAX_KEY)
                return "a text is longer than 256 bytes";
        }
        top->label++;
        if (found > 0 && seen[child] == 0) {
            step = (Step){child, 1};
            seen[child] = 1;
            g_array_append_val(path, step);
        }
    }
    return NULL;
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

DavitCharsmap *davit_charsmap_new(const uint8_t *bytes, size_t len, const char **out_why)
{
    g_autoptr(DavitCharsmap) map = NULL;
    size_t array_len;

    *out_why = NULL;
    if (len > DAVIT_CHARSMAP_MAX)
        *out_why = "it is longer than 16 MiB";
    else if (len < 8)
        *out_why = "it is cut";
    if (*out_why)
        return NULL;
    array_len = read_u32(bytes);
    if (array_len > len - 4 || array_len % 4 != 0 || array_len == 0) {
        *out_why = "the array is longer than the map, empty, or no whole units";
        return NULL;
    }
    map = g_new0(DavitCharsmap, 1);
    map->n_units = array_len / 4;
    map->units = g_new(uint32_t, map->n_units);
    for (size_t i = 0; i < map->n_units; i++)
        map->units[i] = read_u32(bytes + 4 + 4 * i);
    map->texts_len = len - 4 - array_len;
    map->texts = g_malloc(map->texts_len + 1);
    memcpy(map->texts, bytes + 4 + array_len, map->texts_len);
    map->texts[map->texts_len] = '\0';
    if (davit_ucd_check(map->texts, map->texts_len) != map->texts_len)
        *out_why = "the replacements are not UTF-8";
    else
        *out_why = walk(map);
    if (*out_why)
        return NULL;
    for (uint32_t c = 1; c < 128; c++) {
        const Step step = {offset_of(map->units[0]), c};
        uint32_t child;

        map->ascii[c] = child_of(map, &step, &child) > 0;
    }
    return g_steal_pointer(&map);
}

/* ---- lookup ---- */

/* The replacement of the shortest (@longest: longest) text of the map that begins @text, or
 * NULL; *out_used its bytes. */
static const char *find(const DavitCharsmap *map, const char *text, size_t len,
                        bool longest, size_t *out_used)
{
    uint32_t base = offset_of(map->units[0]);
    const char *best = NULL;

    for (size_t i = 0; i < len && text[i] != '\0'; i++) {
        const uint32_t byte = (uint8_t)text[i];
        const uint32_t at = base ^ byte, unit = map->units[at];

        if (label_of(unit) != byte)
            break;
        base = at ^ offset_of(unit);
        if (ends_text(unit)) {
            best = map->texts + (map->units[base] & ~(1u << 31));
            *out_used = i + 1;
            if (!longest)
                break;
        }
    }
    return best;
}

/* ---- Hugging Face ---- */

/* @to stands for the @used bytes at @from: the characters that it has more are put in, those
 * that it has less go with the last one. */
static void note_replaced(GArray *changes, const char *from, size_t used, const char *to)
{
    const int32_t n = (int32_t)g_utf8_strlen(to, -1);
    const int32_t more = n - (int32_t)davit_count_chars(from, used);

    for (int32_t i = 0; i < n; i++) {
        const int32_t change = n - i <= more;

        g_array_append_val(changes, change);
    }
    if (more < 0 && changes->len > 0)
        g_array_index(changes, int32_t, changes->len - 1) += more;
}

static void note_kept(GArray *changes, const char *text, size_t len)
{
    const int32_t none = 0;

    for (size_t i = 0; changes && i < len; i++)
        if ((text[i] & 0xc0) != 0x80)
            g_array_append_val(changes, none);
}

static void append_chars(const DavitCharsmap *map, const char *text, size_t len,
                         GString *out, GArray *changes)
{
    size_t used;
    uint32_t n;

    for (size_t at = 0; at < len; at += n) {
        const char *to;

        davit_ucd_decode(text, len, at, &n);
        to = find(map, text + at, n, false, &used);
        if (to && changes)
            note_replaced(changes, text + at, n, to);
        else
            note_kept(changes, text + at, n);
        if (to)
            g_string_append(out, to);
        else
            g_string_append_len(out, text + at, (gssize)n);
    }
}

/* Characters from @at that are clusters of their own and that no text begins with. */
static size_t plain_run(const DavitCharsmap *map, const char *text, size_t len, size_t at)
{
    while (at < len && (uint8_t)text[at] < 0x80 && !map->ascii[(uint8_t)text[at]] &&
           (at + 1 == len || ((uint8_t)text[at + 1] < 0x80 && text[at] != '\r')))
        at++;
    return at;
}

void davit_charsmap_append(const DavitCharsmap *map, const char *text, size_t len,
                           GString *out, GArray *changes)
{
    for (size_t at = 0; at < len;) {
        const size_t plain = plain_run(map, text, len, at);
        const char *to = NULL;
        size_t end, used;

        g_string_append_len(out, text + at, (gssize)(plain - at));
        note_kept(changes, text + at, plain - at);
        at = plain;
        if (at == len)
            return;
        end = davit_cluster_end(text, len, at);
        if (end - at < 6)
            to = find(map, text + at, end - at, false, &used);
        if (to && changes)
            note_replaced(changes, text + at, end - at, to);
        if (to)
            g_string_append(out, to);
        else
            append_chars(map, text + at, end - at, out, changes);
        at = end;
    }
}

/* ---- sentencepiece ---- */

void davit_spm_rules_clear(DavitSpmRules *rules)
{
    davit_charsmap_free(rules->map);
    davit_pieces_clear(&rules->user);
}

/* What the start of @text becomes, *out_used bytes of it. */
static davit_span prefix(const DavitSpmRules *rules, const char *text, size_t len,
                         size_t *out_used)
{
    const char *to = NULL;
    uint32_t n;

    if (rules->user.units &&
        davit_pieces_longest(&rules->user, text, len, out_used) >= 0)
        return (davit_span){text, *out_used};
    if (rules->map)
        to = find(rules->map, text, len, true, out_used);
    if (to)
        return (davit_span){to, strlen(to)};
    davit_ucd_decode(text, len, 0, &n);
    *out_used = n;
    return (davit_span){text, n};
}

static void append_part(davit_span part, GString *out)
{
    for (uint64_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == ' ')
            g_string_append(out, MARK);
        else
            g_string_append_c(out, part.ptr[i]);
    }
}

static void strip_end(size_t from, GString *out)
{
    const size_t n = strlen(MARK);

    while (out->len - from >= n && memcmp(out->str + out->len - n, MARK, n) == 0)
        g_string_truncate(out, out->len - n);
}

void davit_spm_append(const DavitSpmRules *rules, const char *text, size_t len,
                      GString *out)
{
    const size_t from = out->len;
    bool after_space = rules->strip_spaces;
    size_t at = 0, used;

    while (rules->strip_spaces && at < len) {
        const davit_span part = prefix(rules, text + at, len - at, &used);

        if (part.len != 1 || part.ptr[0] != ' ')
            break;
        at += used;
    }
    if (at == len)
        return;
    if (rules->dummy_prefix)
        g_string_append(out, MARK);
    for (; at < len; at += used) {
        davit_span part = prefix(rules, text + at, len - at, &used);

        while (after_space && part.len > 0 && part.ptr[0] == ' ') {
            part.ptr++;
            part.len--;
        }
        append_part(part, out);
        if (part.len > 0)
            after_space = rules->strip_spaces && part.ptr[part.len - 1] == ' ';
    }
    if (rules->strip_spaces)
        strip_end(from, out);
}
