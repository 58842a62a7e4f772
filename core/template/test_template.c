/* SPDX-License-Identifier: Apache-2.0
 * core/template against the goldens of jinja2, its limits, and where bytes came from. */
#include <string.h>

#include <jansson.h>

#include "template/template.h"

static json_t *goldens;

static const char *code_of(DavitReport *report)
{
    const DavitRecord *r = davit_report_first_error(report, 0);

    return r ? davit_code_name(r->code) : "none";
}

/* Render @text with the JSON members of @vars; NULL when it was refused. */
static char *render(const char *text, size_t len, const json_t *vars, DavitReport *report)
{
    g_autoptr(DavitTemplate) t = davit_template_parse(text, len, "test", report);
    DavitTemplateVar list[32];
    DavitTemplateArgs args = {.vars = list, .fixed_clock = true, .now = 1700000000};
    DavitRendered out = {0};
    const char *name;
    json_t *value;

    if (!t)
        return NULL;
    json_object_foreach((json_t *)(uintptr_t)vars, name, value)
    {
        g_assert_cmpuint(args.n_vars, <, G_N_ELEMENTS(list));
        list[args.n_vars++] = (DavitTemplateVar){.name = name,
                                                 .json = json_string_value(value),
                                                 .len = json_string_length(value),
                                                 .trusted = true,
                                                 .messages = strcmp(name, "messages") == 0};
    }
    if (davit_template_render(t, &args, &out, report))
        return NULL;
    char *copy = g_memdup2(out.text, out.len + 1);
    davit_rendered_clear(&out);
    return copy;
}

static void test_golden(gconstpointer data)
{
    const json_t *c = data, *vars = json_object_get(goldens, "vars");
    const json_t *text = json_object_get(c, "text");
    const json_t *template = json_object_get(c, "template");
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *out = render(json_string_value(template), json_string_length(template),
                                  vars, report);

    if (text) {
        g_assert_cmpstr(code_of(report), ==, "none");
        g_assert_cmpstr(out, ==, json_string_value(text));
        return;
    }
    g_assert_null(out);
    const DavitRecord *r = davit_report_first_error(report, 0);
    g_assert_nonnull(r);
    g_assert_nonnull(strstr(r->subject, "test, line "));
}

static void add_goldens(void)
{
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests", "golden", "templates",
                                             "templates.golden.json", NULL);
    const json_t *c;
    size_t i;

    goldens = json_load_file(path, JSON_ALLOW_NUL, NULL);
    g_assert_nonnull(goldens);
    json_array_foreach(json_object_get(goldens, "cases"), i, c)
    {
        g_autofree char *name =
            g_strconcat("/golden/", json_string_value(json_object_get(c, "name")), NULL);

        g_test_add_data_func(name, c, test_golden);
    }
}

/* ---- refusals ---- */

static const DavitRecord *refused(const char *text, DavitReport *report)
{
    g_autofree char *out = render(text, strlen(text), NULL, report);

    g_assert_null(out);
    return davit_report_first_error(report, 0);
}

static void test_position(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRecord *r = refused("é\n {{ x.y.z }}", report);

    g_assert_cmpstr(davit_code_name(r->code), ==, "template-raised");
    g_assert_cmpstr(r->subject, ==, "test, line 2, column 5");
    g_assert_cmpstr(r->found, ==, "x.y");
    g_assert_nonnull(strstr(r->message, "'x' is undefined"));
}

static void test_raise_keeps_the_words(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRecord *r = refused("{{ raise_exception('roles must alternate') }}", report);

    g_assert_cmpstr(davit_code_name(r->code), ==, "template-raised");
    g_assert_nonnull(strstr(r->message, "roles must alternate"));
    g_assert_cmpint(r->status, ==, DAVIT_E_UNSUPPORTED);
}

static void test_known_but_not_had(void)
{
    static const char *const texts[] = {
        "{% autoescape true %}{% endautoescape %}", "{{ 2 ** 70000 }}", "{{ lipsum() }}",
        "{% block a %}{{ super() }}{% endblock %}", "{{ self.a() }}{% block a %}{% endblock %}",
        "{{ '&lt;' | striptags }}", "{{ ('a' * 79) | pprint }}", "{{ {1: 2, 'a': 3} | pprint }}",
        "{{ [1, 2] | random }}", "{{ 'a' | wordwrap(wrapstring='b' | safe) }}",
        "{{ range }}", "{{ 1 / 10 ** 400 }}", "{{ [1] | map('int') }}", "{{ self }}"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(DavitReport) report = davit_report_new();

        g_assert_cmpstr(davit_code_name(refused(texts[i], report)->code), ==,
                        "template-unsupported");
    }
}

/* Python 3.11 refuses both, strchr finds a NUL in every text. */
static void test_nul_in_a_format(void)
{
    static const char *const texts[] = {"{{ '{:\\0d}'.format(1) }}", "{{ '{:\\0}'.format(1) }}"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const DavitRecord *r = refused(texts[i], report);

        g_assert_cmpstr(davit_code_name(r->code), ==, "template-raised");
        g_assert_nonnull(strstr(r->message, "Invalid format specifier"));
    }
}

static void test_not_utf8(void)
{
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_cmpstr(davit_code_name(refused("a\xff", report)->code), ==, "template-invalid");
}

/* ---- limits ---- */

/* @n times @open, then @mid, then @n times @close. */
static char *nested(const char *open, const char *mid, const char *close, size_t n)
{
    GString *s = g_string_new(NULL);

    for (size_t i = 0; i < n; i++)
        g_string_append(s, open);
    g_string_append(s, mid);
    for (size_t i = 0; i < n; i++)
        g_string_append(s, close);
    return g_string_free(s, FALSE);
}

static bool renders(const char *text)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *out = render(text, strlen(text), NULL, report);
    const DavitRecord *r = davit_report_first_error(report, 0);

    g_assert_true(out || r);
    return out != NULL;
}

/* Lists that hold one list thousands of times, three deep: billions of items in a few KiB. Found by
 * fuzzing: folding went through all of them, which no budget counted. */
static void test_shared_lists(void)
{
    g_assert_false(renders("{{ 62 * (2 * 62 * (4 * 62 * (2 / 208, -20) * 68, -20) * 68, -20) }}"));
    g_assert_true(renders("{% if false %}{{ (62 * (2 * 62 * (4 * 62 * (2, -20) * 68, -20) * 68, 1))"
                          "[0] | length }}{% endif %}"));
}

static void test_depth_of_nesting(void)
{
    g_autofree char *fits = nested("{% if true %}", "x", "{% endif %}", 190);
    g_autofree char *deep = nested("{% if true %}", "x", "{% endif %}", 201);
    g_autofree char *brackets = nested("(", "1", ")", 201);
    g_autofree char *parens = g_strdup_printf("{{ %s }}", brackets);
    g_autofree char *sum = nested("1 + ", "1", "", 5000);
    g_autofree char *chain = g_strdup_printf("{{ %s }}", sum);

    g_assert_true(renders(fits));
    g_assert_false(renders(deep));
    g_assert_false(renders(parens));
    g_assert_false(renders(chain)); /* a left-deep tree is deep, too */
}

static void test_depth_of_calls(void)
{
    static const char text[] = "{%% macro r(k) %%}{%% if k > 1 %%}{{ r(k - 1) }}{%% endif %%}"
                               "{%% endmacro %%}{{ r(%d) }}";
    g_autofree char *fits = g_strdup_printf(text, 200), *deep = g_strdup_printf(text, 201);

    g_assert_true(renders(fits));
    g_assert_false(renders(deep));
    g_assert_false(renders("{% macro r() %}{{ r() }}{% endmacro %}{{ r() }}"));
}

static void test_depth_of_values(void)
{
    static const char text[] = "{%% set ns = namespace(v=[]) %%}{%% for i in range(%d) %%}"
                               "{%% set ns.v = [ns.v] %%}{%% endfor %%}{{ ns.v %s }}";
    g_autofree char *fits = g_strdup_printf(text, 190, "| tojson");
    g_autofree char *deep = g_strdup_printf(text, 300, "| tojson");
    g_autofree char *equal = g_strdup_printf(text, 300, "== [ns.v]");
    g_autofree char *print = g_strdup_printf(text, 300, "");

    g_assert_true(renders(fits));
    g_assert_false(renders(deep));
    g_assert_false(renders(print));
    g_assert_false(renders("{% set ns = namespace(a=1) %}{% set ns.a = ns %}{{ ns }}"));
    renders(equal); /* unequal before it is deep; no crash */
}

/* @n names, each set and printed: the table of names grows. */
static char *many_names(size_t n)
{
    GString *s = g_string_new(NULL);

    for (size_t i = 0; i < n; i++)
        g_string_append_printf(s, "{%% set v%zu = %zu %%}{{ v%zu }} ", i, i, i);
    return g_string_free(s, FALSE);
}

static void test_number_of_names(void)
{
    g_autofree char *fits = many_names(1000), *many = many_names(5000);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *out = render(fits, strlen(fits), NULL, report);
    char *at = out;

    g_assert_nonnull(out);
    for (int i = 0; i < 1000; i++)
        g_assert_cmpint(strtol(at, &at, 10), ==, i);
    g_assert_false(renders(many));
}

static void test_budgets(void)
{
    static const char *const texts[] = {
        "{{ 'a' * 100000000000 }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
        "{% set ns = namespace(s='x' * 1000) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}"
        "{% endfor %}",
        "{% set ns = namespace(g=[]) %}{% for i in range(100000) %}"
        "{% set ns.g = ns.g | map('string') %}{% endfor %}{{ ns.g | list }}",
        "{{ '%9999999d' % 1 }}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitTemplate) t =
            davit_template_parse(texts[i], strlen(texts[i]), "test", report);
        const DavitTemplateArgs args = {
            .max_steps = 3000000, .max_memory = 32u << 20, .max_output = 1u << 20};
        DavitRendered out = {0};

        g_assert_nonnull(t);
        g_assert_cmpint(davit_template_render(t, &args, &out, report), ==, DAVIT_E_LIMIT);
    }
}

/* ---- where bytes came from ---- */

static void check_untrusted(const char *text, const char *json, const char *shown,
                            const char *mask)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTemplate) t = davit_template_parse(text, strlen(text), "test", report);
    const DavitTemplateVar vars[] = {
        {.name = "c", .json = json, .len = strlen(json)},
        {.name = "safe", .json = "\"ok\"", .len = 4, .trusted = true}};
    const DavitTemplateArgs args = {.vars = vars, .n_vars = 2};
    DavitRendered out = {0};

    g_assert_nonnull(t);
    g_assert_cmpint(davit_template_render(t, &args, &out, report), ==, 0);
    g_assert_cmpstr(out.text, ==, shown);
    g_assert_cmpuint(out.len, ==, strlen(mask));
    for (size_t i = 0; i < out.len; i++)
        g_assert_cmpint(out.untrusted[i], ==, mask[i] == '1');
    davit_rendered_clear(&out);
}

static void test_untrusted_bytes(void)
{
    check_untrusted("<{{ c }}>{{ safe }}", "\"ab\"", "<ab>ok", "011000");
    check_untrusted("{{ '[' + c + ']' }}", "\"ab\"", "[ab]", "0110");
    check_untrusted("{{ c | upper | trim }}{{ c[1:] }}", "\" ab\"", "ABab", "1111");
    check_untrusted("{{ c | replace('a', '<>') }}", "\"xay\"", "x<>y", "1001");
    check_untrusted("{{ c.split(',') | join('-') }}", "\"a,b\"", "a-b", "101");
    check_untrusted("{{ c | tojson }}", "{\"k\": \"v\\n\"}", "{\"k\": \"v\\n\"}", "001000011100");
    check_untrusted("{{ [c] }}", "\"q\"", "['q']", "00100");
    check_untrusted("{{ '%s|' | format(c) }}{{ '{}'.format(c) }}", "\"q\"", "q|q", "101");
    check_untrusted("{% set x %}a{{ c }}{% endset %}{{ x }}", "\"q\"", "aq", "01");
    check_untrusted("{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(c) }}", "\"q\"", "<q>", "010");
    check_untrusted("{% for k, v in c.items() %}{{ k }}={{ v }}{% endfor %}", "{\"k\": \"v\"}",
                    "k=v", "101");
    check_untrusted("{% filter indent(2, true) %}{{ c }}{% endfilter %}", "\"a\\nb\"", "  a\n  b",
                    "0010001");
}

static void test_generation_spans(void)
{
    static const char text[] = "a{% generation %}bc{% endgeneration %}d"
                               "{% generation %}e{% endgeneration %}";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTemplate) t = davit_template_parse(text, sizeof text - 1, "test", report);
    const DavitTemplateArgs args = {0};
    DavitRendered out = {0};

    g_assert_cmpint(davit_template_render(t, &args, &out, report), ==, 0);
    g_assert_cmpuint(out.n_generation, ==, 2);
    g_assert_cmpuint(out.generation[0].start, ==, 1);
    g_assert_cmpuint(out.generation[0].end, ==, 3);
    g_assert_cmpuint(out.generation[1].start, ==, 4);
    davit_rendered_clear(&out);
}

static void test_variables(void)
{
    g_autofree char *long_number = g_strnfill(4301, '9'); /* Python's int() takes 4,300 digits */
    const char *const bad[] = {"", "{", "[1,]", long_number, "{\"a\":1,\"a\":2}"};
    g_autoptr(DavitReport) parse = davit_report_new();
    g_autoptr(DavitTemplate) t = davit_template_parse("{{ v }}", 7, "test", parse);

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        const DavitTemplateVar var = {.name = "v", .json = bad[i], .len = strlen(bad[i])};
        const DavitTemplateArgs args = {.vars = &var, .n_vars = 1};
        DavitRendered out = {0};

        g_assert_cmpint(davit_template_render(t, &args, &out, report), <, 0);
        g_assert_true(davit_report_failed(report));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_goldens();
    g_test_add_func("/refuse/position", test_position);
    g_test_add_func("/refuse/raise_keeps_the_words", test_raise_keeps_the_words);
    g_test_add_func("/refuse/known_but_not_had", test_known_but_not_had);
    g_test_add_func("/refuse/nul_in_a_format", test_nul_in_a_format);
    g_test_add_func("/refuse/not_utf8", test_not_utf8);
    g_test_add_func("/limit/depth_of_nesting", test_depth_of_nesting);
    g_test_add_func("/limit/depth_of_calls", test_depth_of_calls);
    g_test_add_func("/limit/depth_of_values", test_depth_of_values);
    g_test_add_func("/limit/number_of_names", test_number_of_names);
    g_test_add_func("/limit/shared_lists", test_shared_lists);
    g_test_add_func("/limit/budgets", test_budgets);
    g_test_add_func("/origin/untrusted_bytes", test_untrusted_bytes);
    g_test_add_func("/origin/generation_spans", test_generation_spans);
    g_test_add_func("/input/variables", test_variables);
    const int failed = g_test_run();
    json_decref(goldens);
    return failed;
}
