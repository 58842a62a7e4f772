/* SPDX-License-Identifier: Apache-2.0
 * Attributes by a text. Source: jinja2 3.1.6 filters.py, make_attrgetter. */
#include "template/getter.h"

static Value part_value(Vm *vm, const Str *all, size_t start, size_t end)
{
    Str *part = tmpl_str_part(&vm->arena, all, start, end);
    int64_t n = 0;
    bool digits = part->n > 0;

    for (size_t i = 0; i < part->n; i++) {
        if (part->p[i] & 0x80)
            tmpl_unsupported(vm, "an attribute with characters beyond ASCII");
        digits &= g_ascii_isdigit(part->p[i]);
    }
    if (!digits)
        return tmpl_string(part);
    if (part->n > 18)
        tmpl_unsupported(vm, "an attribute number of more than 18 digits");
    for (size_t i = 0; i < part->n; i++)
        n = n * 10 + (part->p[i] - '0');
    return tmpl_int(n);
}

Getter tmpl_getter_of(Vm *vm, Value attribute)
{
    Getter getter = {.fallback = tmpl_missing()};
    size_t start = 0;

    if (attribute.type == V_MISSING || attribute.type == V_NONE)
        return getter;
    if (attribute.type != V_STR) {
        getter.parts = tmpl_new(&vm->arena, Value);
        getter.parts[0] = attribute;
        getter.n = 1;
        return getter;
    }
    getter.parts = tmpl_new_n(&vm->arena, Value, attribute.s->n + 1);
    for (size_t at = 0; at <= attribute.s->n; at++)
        if (at == attribute.s->n || attribute.s->p[at] == '.') {
            getter.parts[getter.n++] = part_value(vm, attribute.s, start, at);
            start = at + 1;
        }
    return getter;
}

Value tmpl_get(Vm *vm, const Getter *getter, Value item)
{
    for (size_t i = 0; i < getter->n; i++) {
        item = tmpl_item(vm, item, getter->parts[i]);
        if (item.type == V_UNDEFINED && getter->fallback.type != V_MISSING &&
            getter->fallback.type != V_NONE)
            item = getter->fallback;
    }
    return getter->fold && item.type == V_STR ? tmpl_string(tmpl_lower(vm, item.s)) : item;
}
