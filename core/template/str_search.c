/* SPDX-License-Identifier: Apache-2.0
 * Searching, splitting, joining and replacing in str, as CPython 3. */
#include "template/str_search.h"

#include <string.h>

#include "template/text.h"

static Value part(Vm *vm, const Str *s, size_t start, size_t end)
{
    return tmpl_string(tmpl_str_part(&vm->arena, s, start, end));
}

static size_t back(const Str *s, size_t at)
{
    at--;
    while (at > 0 && (s->p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static bool space_at(const Str *s, size_t at, uint32_t *out_len)
{
    return tmpl_is_space(tmpl_str_cp(s, at, out_len));
}

static bool space_before(const Str *s, size_t at)
{
    uint32_t len;

    return space_at(s, back(s, at), &len);
}

/* ---- split ---- */

static List *split_blanks(Vm *vm, const Str *s, int64_t max)
{
    List *list = tmpl_list_new(&vm->arena, 0);
    size_t at = 0;
    uint32_t len;

    for (;;) {
        while (at < s->n && space_at(s, at, &len))
            at += len;
        if (at >= s->n)
            return list;
        size_t end = at;
        if (max >= 0 && (int64_t)list->n >= max)
            end = s->n;
        while (end < s->n && !space_at(s, end, &len))
            end += len;
        tmpl_list_add(&vm->arena, list, part(vm, s, at, end));
        at = end;
    }
}

static List *split_at(Vm *vm, const Str *s, const Str *sep, int64_t max)
{
    List *list = tmpl_list_new(&vm->arena, 0);
    size_t at = 0;

    while (max < 0 || (int64_t)list->n < max) {
        const int64_t hit = tmpl_str_find(s, sep, at);

        if (hit < 0)
            break;
        tmpl_list_add(&vm->arena, list, part(vm, s, at, (size_t)hit));
        at = (size_t)hit + sep->n;
    }
    tmpl_list_add(&vm->arena, list, part(vm, s, at, s->n));
    return list;
}

static void reverse_list(List *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        const Value v = list->items[i];

        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = v;
    }
}

static List *rsplit_blanks(Vm *vm, const Str *s, int64_t max)
{
    List *list = tmpl_list_new(&vm->arena, 0);
    size_t end = s->n;

    for (;;) {
        while (end > 0 && space_before(s, end))
            end = back(s, end);
        if (end == 0)
            break;
        size_t at = end;
        if (max >= 0 && (int64_t)list->n >= max)
            at = 0;
        while (at > 0 && !space_before(s, at))
            at = back(s, at);
        tmpl_list_add(&vm->arena, list, part(vm, s, at, end));
        end = at;
    }
    reverse_list(list);
    return list;
}

static List *rsplit_at(Vm *vm, const Str *s, const Str *sep, int64_t max)
{
    List *list = tmpl_list_new(&vm->arena, 0);
    size_t end = s->n, at = s->n;

    while ((max < 0 || (int64_t)list->n < max) && at >= sep->n) {
        at -= sep->n;
        if (memcmp(s->p + at, sep->p, sep->n) == 0) {
            tmpl_list_add(&vm->arena, list, part(vm, s, at + sep->n, end));
            end = at;
        } else {
            at += sep->n - 1;
        }
    }
    tmpl_list_add(&vm->arena, list, part(vm, s, 0, end));
    reverse_list(list);
    return list;
}

static Value split_either(Vm *vm, Str *s, const Args *args, bool right)
{
    Value bound[2];

    tmpl_bind(vm, args, right ? "rsplit()" : "split()", "sep? maxsplit?", bound);
    const int64_t max = bound[1].type == V_MISSING ? -1 : tmpl_need_int(vm, bound[1], "maxsplit");
    if (bound[0].type == V_MISSING || bound[0].type == V_NONE)
        return tmpl_list_value(right ? rsplit_blanks(vm, s, max) : split_blanks(vm, s, max));
    const Str *sep = tmpl_need_str(vm, bound[0], "the separator");
    if (sep->n == 0)
        tmpl_raise(vm, "ValueError: empty separator");
    return tmpl_list_value(right ? rsplit_at(vm, s, sep, max) : split_at(vm, s, sep, max));
}

Value tmpl_str_split(Vm *vm, Str *s, const Args *args)
{
    return split_either(vm, s, args, false);
}

Value tmpl_str_rsplit(Vm *vm, Str *s, const Args *args)
{
    return split_either(vm, s, args, true);
}

Value tmpl_str_splitlines(Vm *vm, Str *s, const Args *args)
{
    List *list = tmpl_list_new(&vm->arena, 0);
    Value keep;

    tmpl_bind(vm, args, "splitlines()", "keepends?", &keep);
    const int64_t kept = keep.type == V_MISSING ? 0 : tmpl_need_int(vm, keep, "keepends");
    if (kept > INT32_MAX || kept < INT32_MIN)
        tmpl_raise(vm, "OverflowError: Python int too large to convert to C int");
    const bool keepends = kept != 0;
    for (size_t at = 0; at < s->n;) {
        size_t end = at, next;
        uint32_t len = 0, cp = 0;

        while (end < s->n && !tmpl_is_line_end(cp = tmpl_str_cp(s, end, &len)))
            end += len;
        next = end < s->n ? end + len : end;
        if (end < s->n && cp == '\r' && next < s->n && s->p[next] == '\n')
            next++;
        tmpl_list_add(&vm->arena, list, part(vm, s, at, keepends ? next : end));
        at = next;
    }
    return tmpl_list_value(list);
}

static Value partition_either(Vm *vm, Str *s, const Args *args, bool right)
{
    Value sep_v;
    List *list = tmpl_list_new(&vm->arena, 3);

    tmpl_bind(vm, args, "partition()", "sep", &sep_v);
    tmpl_no_keywords(vm, args, "partition()");
    const Str *sep = tmpl_need_str(vm, sep_v, "the separator");
    if (sep->n == 0)
        tmpl_raise(vm, "ValueError: empty separator");
    const int64_t hit = right ? tmpl_str_find_last(s, sep) : tmpl_str_find(s, sep, 0);
    const size_t start = hit >= 0 ? (size_t)hit : right ? 0 : s->n;
    const size_t end = hit >= 0 ? start + sep->n : start;
    tmpl_list_add(&vm->arena, list, part(vm, s, 0, start));
    tmpl_list_add(&vm->arena, list, hit >= 0 ? sep_v : part(vm, s, 0, 0));
    tmpl_list_add(&vm->arena, list, part(vm, s, end, s->n));
    return tmpl_tuple_value(list);
}

Value tmpl_str_partition(Vm *vm, Str *s, const Args *args)
{
    return partition_either(vm, s, args, false);
}

Value tmpl_str_rpartition(Vm *vm, Str *s, const Args *args)
{
    return partition_either(vm, s, args, true);
}

/* ---- join, replace ---- */

Value tmpl_str_join(Vm *vm, Str *s, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value items, item;
    Iter iter;
    bool any = false;

    tmpl_bind(vm, args, "join()", "iterable", &items);
    tmpl_no_keywords(vm, args, "join()");
    tmpl_iter(vm, items, &iter);
    for (; tmpl_next_value(vm, &iter, &item); any = true) {
        if (item.type != V_STR)
            tmpl_raise(vm, "TypeError: sequence item: expected str instance, %s found",
                       tmpl_type_name(item));
        if (any)
            tmpl_sb_add_str(&out, s);
        tmpl_sb_add_str(&out, item.s);
        tmpl_step(vm, item.s->n / 64);
    }
    return tmpl_string(tmpl_sb_take(&out));
}

Value tmpl_str_replace(Vm *vm, Str *s, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value bound[3];
    size_t at = 0;
    uint32_t len;

    tmpl_bind(vm, args, "replace()", "old new count?", bound);
    if (tmpl_keyword(args, "old").type != V_MISSING || tmpl_keyword(args, "new").type != V_MISSING)
        tmpl_raise(vm, "TypeError: replace() takes old and new by position");
    const Str *old = tmpl_need_str(vm, bound[0], "the text to replace");
    const Str *new = tmpl_need_str(vm, bound[1], "the new text");
    int64_t left = bound[2].type == V_MISSING ? -1 : tmpl_need_int(vm, bound[2], "count");
    left = left < 0 ? INT64_MAX : left; /* all */
    while (left != 0) {
        const int64_t hit = tmpl_str_find(s, old, at);

        if (hit < 0)
            break;
        left--;
        tmpl_step(vm, 1);
        tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, at, (size_t)hit));
        tmpl_sb_add_str(&out, new);
        at = (size_t)hit + old->n;
        if (old->n)
            continue;
        if (at >= s->n)
            break; /* an empty text is found before each character and at the end */
        tmpl_str_cp(s, at, &len);
        tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, at, at + len));
        at += len;
    }
    tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, at, s->n));
    return tmpl_string(tmpl_sb_take(&out));
}

/* ---- find ---- */

/* [start, end) arguments in code points to bytes; false when the range is empty the way
 * that finds nothing, not even an empty text. */
static bool byte_range(Vm *vm, Str *s, Value start_v, Value end_v, size_t *out_start,
                       size_t *out_end)
{
    const int64_t n = (int64_t)tmpl_str_chars(s);
    int64_t start = 0, end = n;

    if (start_v.type != V_MISSING && start_v.type != V_NONE)
        start = tmpl_need_index(vm, start_v, "start");
    if (end_v.type != V_MISSING && end_v.type != V_NONE)
        end = tmpl_need_index(vm, end_v, "end");
    start = start < 0 ? MAX(start + n, 0) : start;
    end = end < 0 ? MAX(end + n, 0) : MIN(end, n);
    if (start > end)
        return false;
    *out_start = tmpl_str_offset(s, (size_t)start);
    *out_end = tmpl_str_offset(s, (size_t)end);
    return true;
}

static int64_t chars_before(const Str *s, size_t at)
{
    Str head = {.p = s->p, .n = (uint32_t)at};

    return (int64_t)tmpl_str_chars(&head);
}

static Value find_either(Vm *vm, Str *s, const Args *args, bool right, bool must)
{
    Value bound[3];
    size_t start, end;
    int64_t hit = -1;

    tmpl_bind(vm, args, "find()", "sub start? end?", bound);
    tmpl_no_keywords(vm, args, "find()");
    const Str *needle = tmpl_need_str(vm, bound[0], "the text to find");
    if (byte_range(vm, s, bound[1], bound[2], &start, &end)) {
        const Str *in = tmpl_str_part(&vm->arena, s, start, end);

        hit = right ? tmpl_str_find_last(in, needle) : tmpl_str_find(in, needle, 0);
        if (hit >= 0)
            hit = chars_before(s, start + (size_t)hit);
    }
    if (hit < 0 && must)
        tmpl_raise(vm, "ValueError: substring not found");
    return tmpl_int(hit);
}

Value tmpl_str_find_method(Vm *vm, Str *s, const Args *args)
{
    return find_either(vm, s, args, false, false);
}

Value tmpl_str_rfind(Vm *vm, Str *s, const Args *args)
{
    return find_either(vm, s, args, true, false);
}

Value tmpl_str_index(Vm *vm, Str *s, const Args *args)
{
    return find_either(vm, s, args, false, true);
}

Value tmpl_str_rindex(Vm *vm, Str *s, const Args *args)
{
    return find_either(vm, s, args, true, true);
}

Value tmpl_str_count(Vm *vm, Str *s, const Args *args)
{
    Value bound[3];
    size_t start, end, at = 0;
    int64_t n = 0, hit;

    tmpl_bind(vm, args, "count()", "sub start? end?", bound);
    tmpl_no_keywords(vm, args, "count()");
    const Str *needle = tmpl_need_str(vm, bound[0], "the text to count");
    if (!byte_range(vm, s, bound[1], bound[2], &start, &end))
        return tmpl_int(0);
    Str *in = tmpl_str_part(&vm->arena, s, start, end);
    if (needle->n == 0)
        return tmpl_int((int64_t)tmpl_str_chars(in) + 1);
    while ((hit = tmpl_str_find(in, needle, at)) >= 0) {
        n++;
        at = (size_t)hit + needle->n;
    }
    return tmpl_int(n);
}

/* ---- start and end ---- */

static bool has_end(const Str *s, const Str *what, bool at_end)
{
    return what->n <= s->n &&
           memcmp(s->p + (at_end ? s->n - what->n : 0), what->p, what->n) == 0;
}

static Value ends_either(Vm *vm, Str *s, const Args *args, bool at_end)
{
    Value bound[3];
    size_t start, end;

    tmpl_bind(vm, args, at_end ? "endswith()" : "startswith()", "prefix start? end?", bound);
    tmpl_no_keywords(vm, args, at_end ? "endswith()" : "startswith()");
    if (bound[0].type != V_STR && bound[0].type != V_TUPLE)
        tmpl_raise(vm, "TypeError: the first argument must be str or a tuple of str, not %s",
                   tmpl_type_name(bound[0]));
    if (!byte_range(vm, s, bound[1], bound[2], &start, &end))
        return tmpl_bool(false);
    const Str *in = tmpl_str_part(&vm->arena, s, start, end);
    if (bound[0].type == V_STR)
        return tmpl_bool(has_end(in, bound[0].s, at_end));
    for (size_t i = 0; i < bound[0].list->n; i++)
        if (has_end(in, tmpl_need_str(vm, bound[0].list->items[i], "each of the tuple"),
                    at_end))
            return tmpl_bool(true);
    return tmpl_bool(false);
}

Value tmpl_str_startswith(Vm *vm, Str *s, const Args *args)
{
    return ends_either(vm, s, args, false);
}

Value tmpl_str_endswith(Vm *vm, Str *s, const Args *args)
{
    return ends_either(vm, s, args, true);
}

static Value remove_either(Vm *vm, Str *s, const Args *args, bool at_end)
{
    Value what;

    tmpl_bind(vm, args, "removeprefix()", "prefix", &what);
    tmpl_no_keywords(vm, args, "removeprefix()");
    const Str *cut = tmpl_need_str(vm, what, "the text to remove");
    if (cut->n == 0 || !has_end(s, cut, at_end))
        return tmpl_string(s);
    return at_end ? part(vm, s, 0, s->n - cut->n) : part(vm, s, cut->n, s->n);
}

Value tmpl_str_removeprefix(Vm *vm, Str *s, const Args *args)
{
    return remove_either(vm, s, args, false);
}

Value tmpl_str_removesuffix(Vm *vm, Str *s, const Args *args)
{
    return remove_either(vm, s, args, true);
}

Value tmpl_str_format(Vm *vm, Str *s, const Args *args)
{
    return tmpl_brace_format(vm, s, args);
}
