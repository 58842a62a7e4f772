/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/manifest.h"

#include <string.h>

#include "plugin/registry.h"

#define BUNDLE                                                                           \
    "{\"schema\":\"davit-plugin/1\",\"id\":\"org.x\",\"name\":\"X\",\"vendor\":\"\","    \
    "\"version\":\"1.0.0\",\"license\":\"MIT\",\"abi_major\":1,\"abi_minor\":0,"         \
    "\"min_host_minor\":0,\"build\":\"arch=x86_64\"}"
#define COMPONENT                                                                        \
    "{\"id\":\"org.x.f\",\"kind\":\"format\",\"kind_abi\":\"1.0\",\"priority\":50,"      \
    "\"capability\":\"ext=x\",\"purposes\":\"DAVIT_INSPECT | DAVIT_MAP\"}"
#define REFUSAL                                                                          \
    "{\"id\":\"org.x.f\",\"purposes\":\"DAVIT_MAP\",\"code\":\"DAVIT_R_OP_MISSING\","    \
    "\"subject\":\"s\",\"message\":\"m\",\"hint\":\"h\"}"

typedef struct Note {
    uint32_t type;
    const char *text;
} Note;

/* Read notes up to the one with type 0. */
static DavitManifest *read_notes(const Note *notes, DavitReport *report)
{
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(DavitElfNote));

    for (; notes->type; notes++) {
        const DavitElfNote note = {notes->type, (uint32_t)strlen(notes->text),
                                   notes->text};

        g_array_append_val(list, note);
    }
    return davit_manifest_read(list, "x.so", report);
}

/* @notes are refused, and the first record is about @subject with @found. */
static void expect_bad(const Note *notes, const char *subject, const char *found)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRecord *r;

    g_assert_null(read_notes(notes, report));
    r = davit_report_get(report, 0);
    g_assert_cmpstr(davit_code_name(r->code), ==, "bad-manifest");
    g_assert_cmpint(r->status, ==, DAVIT_E_CORRUPT);
    g_assert_cmpstr(r->stage, ==, "manifest");
    g_assert_cmpstr(r->subject, ==, subject);
    if (found)
        g_assert_cmpstr(r->found, ==, found);
}

/* A component note with @text, beside a good bundle. */
static void expect_bad_component(const char *text, const char *field, const char *found)
{
    const Note notes[] = {{1, BUNDLE}, {2, text}, {0}};
    g_autofree char *subject = g_strdup_printf("x.so: component 0.%s", field);

    expect_bad(notes, subject, found);
}

/* (owned) @text with its first @from replaced by @to. */
static char *with(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    g_assert_nonnull(at);
    return g_strdup_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void good_notes_are_read_in_any_order(void)
{
    const Note orders[][4] = {
        {{1, BUNDLE}, {2, COMPONENT}, {3, REFUSAL}, {0}},
        {{3, REFUSAL}, {2, COMPONENT}, {1, BUNDLE}, {0}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitManifest) m = read_notes(orders[i], report);
        const DavitManifestComponent *c;
        const DavitManifestRefusal *r;

        g_assert_nonnull(m);
        g_assert_cmpstr(m->id, ==, "org.x");
        g_assert_cmpuint(m->max_host_minor, ==, UINT32_MAX);
        c = g_ptr_array_index(m->components, 0);
        g_assert_cmpstr(c->kind, ==, "format");
        g_assert_cmpuint(c->kind_major, ==, 1);
        g_assert_cmpuint(c->purposes, ==, DAVIT_INSPECT | DAVIT_MAP);
        r = g_ptr_array_index(c->refusals, 0);
        g_assert_cmpuint(r->code, ==, DAVIT_R_OP_MISSING);
        g_assert_cmpuint(r->purposes, ==, DAVIT_MAP);
        g_assert_cmpstr(r->hint, ==, "h");
    }
}

static void unknown_members_and_notes_are_skipped(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *more = with(BUNDLE, "{", "{\"future\":[1,{}],\"max_host_minor\":4,");
    const Note notes[] = {{1, more}, {2, COMPONENT}, {9, "not even JSON"}, {0}};
    g_autoptr(DavitManifest) m = read_notes(notes, report);

    g_assert_nonnull(m);
    g_assert_cmpuint(m->max_host_minor, ==, 4);
}

static void absent_notes_are_named(void)
{
    const Note no_bundle[] = {{2, COMPONENT}, {0}};
    const Note no_component[] = {{1, BUNDLE}, {0}};
    const Note two_bundles[] = {{1, BUNDLE}, {1, BUNDLE}, {2, COMPONENT}, {0}};
    const Note nameless_and_bundle[] = {{1, "{}"}, {1, BUNDLE}, {2, COMPONENT}, {0}};
    const Note nothing[] = {{0}};

    expect_bad(no_bundle, "x.so", "none");
    expect_bad(no_component, "x.so", "none");
    expect_bad(two_bundles, "x.so", "several");
    expect_bad(nameless_and_bundle, "x.so: bundle 0.schema", "no such member");
    expect_bad(nothing, "x.so", "none");
}

static void broken_json_is_refused(void)
{
    expect_bad_component("{\"id\":\"a\",", "json", NULL);
    expect_bad_component("[1]", "json", "another value");
    expect_bad_component("", "json", NULL);
    expect_bad_component("{\"id\":\"a\",\"id\":\"b\"}", "json", NULL); /* duplicate key */
    expect_bad_component("{\"id\":\"\xff\"}", "json", NULL);
    expect_bad_component("{\"id\":\"a\\u0000b\"}", "json", NULL);
}

static void wrong_members_are_named(void)
{
    static const struct {
        const char *from, *to, *field, *found;
    } cases[] = {
        {"\"id\":\"org.x.f\",", "", "id", "no such member"},
        {"\"id\":\"org.x.f\"", "\"id\":7", "id", "another type"},
        {"\"id\":\"org.x.f\"", "\"id\":\"\"", "id", "\"\""},
        {"\"kind\":\"format\"", "\"kind\":null", "kind", "another type"},
        {"\"priority\":50", "\"priority\":101", "priority", "101"},
        {"\"priority\":50", "\"priority\":-1", "priority", "-1"},
        {"\"priority\":50", "\"priority\":1.5", "priority", "another type"},
        {"\"1.0\"", "\"1\"", "kind_abi", "1"},
        {"\"1.0\"", "\"1.x\"", "kind_abi", "1.x"},
        {"\"1.0\"", "\"-1.0\"", "kind_abi", "-1.0"},
        {"\"1.0\"", "\"1.99999999999999999999\"", "kind_abi", NULL},
        {"DAVIT_INSPECT | DAVIT_MAP", "MY_PURPOSES", "purposes", "MY_PURPOSES"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = with(COMPONENT, cases[i].from, cases[i].to);

        expect_bad_component(text, cases[i].field, cases[i].found);
    }
}

static void refusal_without_component_is_refused(void)
{
    g_autofree char *text = with(REFUSAL, "org.x.f", "org.x.other");
    const Note notes[] = {{1, BUNDLE}, {2, COMPONENT}, {3, text}, {0}};

    expect_bad(notes, "x.so: refusal 0.id", "org.x.other");
}

static void large_manifest_is_refused(void)
{
    g_autofree char *padding = g_strnfill(DAVIT_MAX_MANIFEST, ' ');
    const Note notes[] = {{1, BUNDLE}, {2, COMPONENT}, {9, padding}, {0}};

    expect_bad(notes, "x.so", NULL);
}

static void all_findings_are_reported(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const Note notes[] = {{1, "{}"}, {2, "{}"}, {0}};

    g_assert_null(read_notes(notes, report));
    g_assert_cmpuint(davit_report_count(report), ==, 16);
}

static void purposes_are_read_as_c_text(void)
{
    uint64_t p = 0;

    g_assert_true(davit_purposes_parse("DAVIT_INSPECT|DAVIT_RUN", &p));
    g_assert_cmpuint(p, ==, 9);
    g_assert_true(davit_purposes_parse("(1u | 2u)", &p));
    g_assert_cmpuint(p, ==, 3);
    g_assert_true(davit_purposes_parse("0", &p));
    g_assert_cmpuint(p, ==, 0);
    g_assert_true(
        davit_purposes_parse("DAVIT_RUN | DAVIT_TRAIN", &p)); /* a newer SDK's */
    g_assert_cmpuint(p, ==, 8);
    g_assert_false(davit_purposes_parse("", &p));
    g_assert_false(davit_purposes_parse("DAVIT_RUN |", &p));
    g_assert_false(davit_purposes_parse("12x", &p));
}

static void codes_are_read_as_c_text(void)
{
    g_assert_cmpuint(davit_code_parse("DAVIT_R_PICKLE_UNSAFE"), ==, 301);
    g_assert_cmpuint(davit_code_parse("405"), ==, 405);
    g_assert_cmpuint(davit_code_parse("DAVIT_R_FROM_THE_FUTURE"), ==, 0);
    g_assert_cmpuint(davit_code_parse(""), ==, 0);
}

static void capabilities_match_whole_words(void)
{
    const char *cap = "hf=LlamaForCausalLM|MistralForCausalLM;gguf=llama;x=";

    g_assert_true(davit_capability_has(cap, "hf", "MistralForCausalLM"));
    g_assert_true(davit_capability_has(cap, "hf", "LlamaForCausalLM"));
    g_assert_true(davit_capability_has(cap, "gguf", "llama"));
    g_assert_false(davit_capability_has(cap, "hf", "Llama"));
    g_assert_false(davit_capability_has(cap, "f", "LlamaForCausalLM"));
    g_assert_false(davit_capability_has(cap, "gguf", "LLAMA"));
    g_assert_false(davit_capability_has(cap, "gguf", "llama;x="));
    g_assert_false(davit_capability_has(cap, "x", "y"));
    g_assert_false(davit_capability_has("", "x", "y"));
    g_assert_false(davit_capability_has(NULL, "x", "y"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/manifest/good", good_notes_are_read_in_any_order);
    g_test_add_func("/manifest/unknown_members", unknown_members_and_notes_are_skipped);
    g_test_add_func("/manifest/absent_notes", absent_notes_are_named);
    g_test_add_func("/manifest/broken_json", broken_json_is_refused);
    g_test_add_func("/manifest/wrong_members", wrong_members_are_named);
    g_test_add_func("/manifest/refusal_without_component",
                    refusal_without_component_is_refused);
    g_test_add_func("/manifest/too_large", large_manifest_is_refused);
    g_test_add_func("/manifest/all_findings", all_findings_are_reported);
    g_test_add_func("/manifest/purposes", purposes_are_read_as_c_text);
    g_test_add_func("/manifest/codes", codes_are_read_as_c_text);
    g_test_add_func("/manifest/capabilities", capabilities_match_whole_words);
    return g_test_run();
}
