/* SPDX-License-Identifier: Apache-2.0
 * Variables of the context: JSON to values. A conversation is prepared as transformers
 * 5.24 does it before rendering: keys that are null are dropped, and what a message says
 * of its reasoning is found under every name that templates read. */
#include "template/bigint.h"

#include <string.h>

#include "base/json.h"

typedef struct Source {
    Vm *vm;
    DavitJsonReader *reader;
    const DavitTemplateVar *var;
    DavitReport *report;
    bool failed;
} Source;

static bool next_event(Source *s, davit_json_event *e)
{
    *e = (davit_json_event){.struct_size = sizeof *e};
    if (!s->failed && davit_json_next(s->reader, e) != DAVIT_OK)
        s->failed = true;
    return !s->failed;
}

static Str *input_str(const Source *s, davit_span text)
{
    Str *str = tmpl_str(&s->vm->arena, text.ptr, text.len);

    if (!s->var->trusted && text.len) {
        uint8_t *taint = tmpl_alloc(&s->vm->arena, text.len);

        str->taint = memset(taint, 1, text.len);
    }
    return str;
}

static Value read_value(Source *s, const davit_json_event *e, uint32_t depth);

static Value read_array(Source *s, uint32_t depth)
{
    List *list = tmpl_list_new(&s->vm->arena, 0);
    davit_json_event e;

    while (next_event(s, &e) && e.type != DAVIT_JSON_ARRAY_END)
        tmpl_list_add(&s->vm->arena, list, read_value(s, &e, depth + 1));
    return tmpl_list_value(list);
}

static Value read_object(Source *s, uint32_t depth)
{
    Dict *dict = tmpl_dict_new(s->vm);
    davit_json_event e;

    while (next_event(s, &e) && e.type != DAVIT_JSON_OBJECT_END) {
        const Value key = tmpl_string(input_str(s, e.text));

        if (!next_event(s, &e))
            break;
        tmpl_dict_set(s->vm, dict, key, read_value(s, &e, depth + 1));
    }
    return tmpl_dict_value(dict);
}

/* What findings call @var. */
static const char *source_of(const DavitTemplateVar *var)
{
    return var->source ? var->source : var->name;
}

static Value read_number(Source *s, const davit_json_event *e)
{
    const char *digits = e->text.ptr;
    uint64_t n = e->text.len;
    Value v;

    if (e->type == DAVIT_JSON_INT)
        return tmpl_int(e->i64);
    for (uint64_t i = 0; i < e->text.len; i++)
        if (strchr(".eEnN", e->text.ptr[i]))
            return tmpl_float(e->f64);
    const bool minus = n && *digits == '-';
    v = tmpl_big_parse(&s->vm->arena, digits + minus, n - minus, 10, minus);
    if (v.type != V_MISSING)
        return v;
    s->failed = true;
    davit_report_add(s->report,
                     &(DavitFinding){.code = DAVIT_R_TEMPLATE_UNSUPPORTED,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "template",
                                     .subject = source_of(s->var),
                                     .expected = davit_report_text(s->report, "integers of at most %u digits", BIG_MAX_DIGITS),
                                     .found = davit_report_text(s->report, "%.*s",
                                                                (int)MIN(e->text.len, 60),
                                                                e->text.ptr),
                                     .message = "an integer of the input is too large"});
    return tmpl_none();
}

static Value read_value(Source *s, const davit_json_event *e, uint32_t depth)
{
    tmpl_check_depth(s->vm, depth);
    switch (e->type) {
    case DAVIT_JSON_OBJECT:
        return read_object(s, depth);
    case DAVIT_JSON_ARRAY:
        return read_array(s, depth);
    case DAVIT_JSON_STRING:
        return tmpl_string(input_str(s, e->text));
    case DAVIT_JSON_INT:
    case DAVIT_JSON_REAL:
        return read_number(s, e);
    case DAVIT_JSON_TRUE:
    case DAVIT_JSON_FALSE:
        return tmpl_bool(e->type == DAVIT_JSON_TRUE);
    default:
        return tmpl_none();
    }
}

/* ---- conversations ---- */

static const char *const reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

static Value reasoning_of(Vm *vm, const Dict *message)
{
    for (size_t i = 0; i < G_N_ELEMENTS(reasoning_names); i++) {
        const Value key = tmpl_text(&vm->arena, reasoning_names[i]);
        const Value *v = tmpl_dict_get(vm, message, key);

        if (v)
            return *v;
    }
    return tmpl_missing();
}

static Value prepare_message(Vm *vm, const Dict *message)
{
    Dict *plain = tmpl_dict_new(vm), *out;
    Value reasoning;

    for (size_t i = 0; i < message->n; i++)
        if (message->entries[i].value.type != V_NONE)
            tmpl_dict_set(vm, plain, message->entries[i].key, message->entries[i].value);
    reasoning = reasoning_of(vm, plain);
    if (reasoning.type == V_MISSING)
        return tmpl_dict_value(plain);
    out = tmpl_dict_new(vm);
    tmpl_dict_set_text(vm, out, "thinking", reasoning);
    for (size_t i = 0; i < plain->n; i++)
        tmpl_dict_set(vm, out, plain->entries[i].key, plain->entries[i].value);
    tmpl_dict_set_text(vm, out, "reasoning_content", reasoning);
    return tmpl_dict_value(out);
}

static bool prepare(Source *s, Value *value)
{
    const bool is_list = value->type == V_LIST;
    List *out = tmpl_list_new(&s->vm->arena, 0);

    for (size_t i = 0; is_list && i < value->list->n; i++) {
        if (value->list->items[i].type != V_DICT)
            break;
        tmpl_list_add(&s->vm->arena, out, prepare_message(s->vm, value->list->items[i].dict));
    }
    if (is_list && out->n == value->list->n) {
        *value = tmpl_list_value(out);
        return true;
    }
    davit_report_add(s->report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                                .status = DAVIT_E_USAGE,
                                                .stage = "template",
                                                .subject = source_of(s->var),
                                                .expected = "a JSON array of objects",
                                                .message = "this is no list of messages"});
    return false;
}

bool tmpl_from_json(Vm *vm, const DavitTemplateVar *var, DavitReport *report, Value *out)
{
    Source s = {vm, vm->reader, var, report, false};
    davit_json_event e;

    s.reader = vm->reader = davit_json_open(var->json, var->len, DAVIT_JSON_PYTHON, source_of(var),
                                            report);
    if (!s.reader)
        return false;
    if (next_event(&s, &e))
        *out = read_value(&s, &e, 0);
    if (!s.failed && next_event(&s, &e) && e.type != DAVIT_JSON_DONE)
        s.failed = true;
    davit_json_close(vm->reader);
    vm->reader = NULL;
    return !s.failed && (!var->messages || prepare(&s, out));
}
