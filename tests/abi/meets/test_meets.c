/* SPDX-License-Identifier: Apache-2.0
 * Old meets new, all four pairings. Built twice: against today's headers (host 1.0), and with
 * LATER against those that later.sh makes (core/plugin of a host 1.1). Plugins: sources pinned to
 * sdk/abi/1.0, and a format of 1.1. Drafts, the 0.x kinds, must fit exactly. */
#include <string.h>

#include "plugin/policy.h"
#include "plugins/fixture.h"

/* A plugin that was loaded, and where it came from. */
typedef struct Loaded {
    DavitRegistry *registry;
    DavitComponent *component;
    const davit_format_iface *format;
    const davit_tokenizer_iface *tokenizer;
    void *self;
} Loaded;

static Loaded load(const char *file, const char *id)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path(file);
    Loaded x = {.registry = registry_over(path, report)};
    const void *iface = NULL;

    x.component = davit_registry_find(x.registry, id);
    if (!x.component)
        show_records(any_component(x.registry, id)->records);
    g_assert_nonnull(x.component);
    if (davit_component_use(x.component, &iface, &x.self, report) != DAVIT_OK) {
        show_records(report);
        g_test_fail();
    }
    g_assert_nonnull(iface);
    x.format = iface;
    x.tokenizer = iface;
    return x;
}

static int32_t keep_name(void *ctx, const davit_extent *extent)
{
    g_string_append_len(ctx, extent->name.ptr, (gssize)extent->name.len);
    return DAVIT_OK;
}

static int32_t keep_key(void *ctx, const davit_kv *kv)
{
    g_string_append_printf(ctx, " %.*s=%u", (int)kv->key.len, kv->key.ptr, kv->data[0]);
    return DAVIT_OK;
}

/* (owned) names that @x delivers for @src. */
static char *open_names(const Loaded *x, davit_source *src)
{
    GString *names = g_string_new(NULL);
    const davit_format_out out = {.struct_size = DAVIT_END(davit_format_out, shard),
                                  .ctx = names,
                                  .tensor = keep_name,
                                  .key = keep_key};
    void *reader = NULL;

    g_assert_cmpint(x->format->open(x->self, src, &out, &reader, NULL), ==, DAVIT_OK);
    x->format->close(x->self, reader);
    return g_string_free(names, FALSE);
}

/* ---- a plugin of 1.0 ---- */

static uint32_t probe(const Loaded *x, const char *head, davit_verdict *out,
                      const davit_sink *sink)
{
    const davit_probe_in in = {.struct_size = sizeof in,
                               .purposes = DAVIT_INSPECT,
                               .name = "x",
                               .head = (const uint8_t *)head,
                               .head_len = strlen(head),
                               .file_size = strlen(head)};

    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    g_assert_cmpint(davit_component_probe(x->component)(&in, out, sink), ==, DAVIT_OK);
    return out->verdict;
}

static void count(void *ctx, const davit_refusal *record)
{
    g_assert_cmpint(record->code, ==, DAVIT_R_VERSION_UNSUPPORTED);
    g_assert_cmpstr(record->found, ==, "2");
    ++*(int *)ctx;
}

static void format_of_1_0_works(void)
{
    Loaded x = load("old_format", "org.example.old.format");
    int refusals = 0;
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), &refusals, count};
    davit_verdict verdict;

    g_assert_cmpuint(probe(&x, "other", &verdict, &sink), ==, DAVIT_DECLINE);
    g_assert_cmpuint(probe(&x, "OLD1ab", &verdict, &sink), ==, DAVIT_ACCEPT);
    g_assert_cmpuint(verdict.score, ==, 800);
    g_assert_cmpuint(probe(&x, "OLD2ab", &verdict, &sink), ==, DAVIT_REFUSE);
    g_assert_cmpint(refusals, ==, 1);
#ifdef LATER
    /* what it does not know reads as absent, and it writes nothing there */
    g_assert_null(x.format->later_slot);
    g_assert_cmpuint(verdict.later_verdict, ==, 0);
#endif
    davit_registry_free(x.registry);
}

#ifndef LATER
#include "source/source.h"

/* Through the suites of today's host. */
static void format_of_1_0_reads_a_file(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    char *dir = scratch_new();
    g_autofree char *path = scratch_write(dir, "a.old", "OLD1ab", 6);
    Loaded x = load("old_format", "org.example.old.format");
    DavitSource *src = davit_source_open(path, report);

    g_assert_nonnull(src);
    g_autofree char *names = open_names(&x, (davit_source *)src);
    g_assert_cmpstr(names, ==, "old old.key=7");
    davit_source_free(src);
    davit_registry_free(x.registry);
    scratch_free(dir);
}
#endif

static void tokenizer_of_1_0_works(void)
{
    Loaded x = load("old_tokenizer", "org.example.old.tokenizer");
    const davit_tok_shape *shape = x.tokenizer->shapes[0];
    uint64_t ends[4];

    g_assert_cmpuint(shape->scan("a b", 3, 0, ends, 4), ==, 3);
    g_assert_cmpuint(ends[1], ==, 2 | DAVIT_TOK_DROP);
    davit_registry_free(x.registry);
}

/* ---- a plugin of 1.1 ---- */

static void format_of_1_1_works(void)
{
    Loaded x = load("later_easy", "org.example.later.easy");
    g_autofree char *names = open_names(&x, NULL);
    davit_verdict verdict;

    g_assert_cmpuint(probe(&x, "any", &verdict, NULL), ==, DAVIT_DECLINE);
#ifdef LATER
    g_assert_cmpstr(names, ==, "with");
    g_assert_cmpint(x.format->later_slot(x.self), ==, 42);
    g_assert_cmpuint(verdict.later_verdict, ==, 42);
#else
    g_assert_cmpstr(names, ==, "without");
#endif
    davit_registry_free(x.registry);
}

static void format_that_needs_1_1(void)
{
#ifdef LATER
    Loaded x = load("later_strict", "org.example.later.strict");
    g_autofree char *names = open_names(&x, NULL);

    g_assert_cmpstr(names, ==, "with");
    davit_registry_free(x.registry);
#else
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("later_strict");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);
    const DavitPluginFile *file = g_ptr_array_index(davit_registry_files(registry), 0);
    const DavitRecord *r = record_of(file->records, "host-too-old");

    g_assert_nonnull(r);
    g_assert_null(davit_registry_find(registry, "org.example.later.strict"));
    g_assert_cmpstr(r->expected, ==, "host ABI >= 1.1");
    g_assert_true(g_str_has_prefix(r->found, "host ABI 1.0 (davit "));
    g_assert_true(g_str_has_prefix(r->hint, "update davit"));
#endif
}

/* A plugin that says no host above 1.0 may take it. */
static void ceiling_of_1_0(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    char id[] = "org.example.ceiling", build[] = "";
    const DavitManifest m = {
        .id = id, .abi_major = DAVIT_ABI_MAJOR, .max_host_minor = 0, .build = build};
    const int32_t status = davit_policy_file(&m, false, "/p/x.so", report);

#ifdef LATER
    const DavitRecord *r = record_of(report, "host-too-new");

    g_assert_cmpint(status, ==, DAVIT_E_UNSUPPORTED);
    g_assert_nonnull(r);
    g_assert_cmpstr(r->expected, ==, "host ABI <= 1.0");
    g_assert_true(g_str_has_prefix(r->found, "host ABI 1.1 (davit "));
#else
    g_assert_cmpint(status, ==, DAVIT_OK);
    g_assert_cmpuint(davit_report_count(report), ==, 0);
#endif
}

/* ---- 0.x kinds ---- */

static void check_draft(const DavitRegistry *registry, const char *kind, const char *when,
                        const char *found, const char *hint)
{
    g_autofree char *id = g_strdup_printf("org.example.draft.%s.%s", kind, when);
    g_autofree char *number = g_strdup_printf("%s %s", kind, found);
    const DavitComponent *c = any_component(registry, id);
    const DavitRecord *r;

    g_assert_nonnull(c);
    g_assert_cmpint(c->state, ==, DAVIT_STATE_REFUSED);
    r = record_of(c->records, "kind-version");
    g_assert_nonnull(r);
    g_assert_cmpstr(r->found, ==, number);
    g_assert_true(g_str_has_prefix(r->expected, kind));
    g_assert_true(g_str_has_suffix(r->expected, "exactly"));
    g_assert_true(g_str_has_prefix(r->hint, hint));
}

/* Both numbers, and who must act. */
static void drafts_must_fit_exactly(void)
{
    static const char *const kinds[] = {"arch", "quant", "kernels", "comm"};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = fixture_path("drafts");
    g_autoptr(DavitRegistry) registry = registry_over(path, report);

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        check_draft(registry, kinds[i], "before", "0.0", "the plugin's author must rebuild");
        check_draft(registry, kinds[i], "after", "0.99", "update davit");
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/meets/ceiling_of_1_0", ceiling_of_1_0);
    g_test_add_func("/meets/format_of_1_0", format_of_1_0_works);
#ifndef LATER
    g_test_add_func("/meets/format_of_1_0_reads_a_file", format_of_1_0_reads_a_file);
#endif
    g_test_add_func("/meets/tokenizer_of_1_0", tokenizer_of_1_0_works);
    g_test_add_func("/meets/format_of_1_1", format_of_1_1_works);
    g_test_add_func("/meets/format_that_needs_1_1", format_that_needs_1_1);
    g_test_add_func("/meets/drafts", drafts_must_fit_exactly);
    return g_test_run();
}
