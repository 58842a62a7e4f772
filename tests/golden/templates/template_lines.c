/* SPDX-License-Identifier: Apache-2.0
 * Templates by the line, for compare_random.py and for trying one out:
 *
 *   {"template": "...", "vars": {NAME: JSON text}, "prepare": bool}
 *
 * in, {"text": "..."} or {"error": sentence, "code": name} out. "prepare" treats messages as
 * davit template does. The clock stands at 1700000000. Built on demand only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "template/template.h"

#define MAX_VARS 64

static void render(const DavitTemplate *template, const json_t *in, json_t *out,
                   DavitReport *report)
{
    DavitTemplateVar vars[MAX_VARS];
    DavitTemplateArgs args = {.vars = vars, .fixed_clock = true, .now = 1700000000};
    DavitRendered rendered = {0};
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(in, "vars"), name, value)
    {
        const bool messages = strcmp(name, "messages") == 0;

        if (args.n_vars == MAX_VARS)
            break;
        vars[args.n_vars++] =
            (DavitTemplateVar){.name = name,
                               .json = json_string_value(value),
                               .len = json_string_length(value),
                               .trusted = !messages,
                               .messages = messages && json_is_true(json_object_get(in, "prepare"))};
    }
    if (davit_template_render(template, &args, &rendered, report) == DAVIT_OK)
        json_object_set_new(out, "text", json_stringn(rendered.text, rendered.len));
    davit_rendered_clear(&rendered);
}

static void answer(const json_t *in)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const json_t *text = json_object_get(in, "template");
    json_t *out = json_object();
    g_autoptr(DavitTemplate) template = davit_template_parse(
        json_string_value(text), json_string_length(text), "template", report);
    const DavitRecord *error;

    if (template)
        render(template, in, out, report);
    error = davit_report_first_error(report, 0);
    if (error) {
        g_autofree char *sentence = davit_record_sentence(error);

        json_object_set_new(out, "error", json_string(sentence));
        json_object_set_new(out, "code", json_string(davit_code_name(error->code)));
    }
    json_dumpf(out, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    fflush(stdout);
    json_decref(out);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_t *in = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);

        if (!json_is_string(json_object_get(in, "template")))
            return 2;
        answer(in);
        json_decref(in);
    }
    free(line);
    return 0;
}
