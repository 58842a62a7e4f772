/* SPDX-License-Identifier: Apache-2.0
 * The tests of the conformance suite. They run in the helper, on a file that is loaded. */
#include "plugin/check.h"

#include <string.h>

#include "plugin/helper.h"
#include "plugin/load.h"
#include "plugin/running.h"

#define N_BYTES 4096
#define N_PIECES 512

typedef struct Check {
    DavitPluginFile *file;
    DavitReport *report;
    bool looked; /* at something; else the test is skipped */
} Check;

static void fail(Check *check, const char *who, const char *subject, const char *expected,
                 const char *found, const char *message)
{
    davit_report_add(check->report,
                     &(DavitFinding){.code = DAVIT_R_BAD_REPORT,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "check",
                                     .who = who,
                                     .subject = subject,
                                     .expected = expected,
                                     .found = found,
                                     .message = message,
                                     .hint = "mend the plugin; the rule is in the header "
                                             "of its kind in davit/"});
}

/* Each usable component of @kind (DAVIT_N_KINDS = any), its instance made. */
static void each(Check *check, DavitKind kind,
                 void (*look)(Check *check, DavitComponent *component))
{
    const GPtrArray *all = check->file->load->components;

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (!davit_component_usable(c) || (kind != DAVIT_N_KINDS && c->kind != kind) ||
            davit_load_component(c))
            continue;
        check->looked = true;
        look(check, c);
    }
}

static void fill_noise(uint8_t *bytes, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

/* ---- the file ---- */

static void loads(Check *check)
{
    check->looked = true; /* it did: the suite begins with it */
    for (size_t i = 0; i < check->file->load->components->len; i++) {
        DavitComponent *c = g_ptr_array_index(check->file->load->components, i);

        if (davit_load_component(c))
            davit_report_append(check->report, c->records);
    }
}

static void exports_the_entry_alone(Check *check)
{
    check->looked = true;
    if (check->file->n_exports != 1)
        fail(check, check->file->bundle_id, "dynamic symbols", "1: davit_plugin_entry_v1",
             davit_report_text(check->report, "%zu", check->file->n_exports),
             "another library's symbol of the same name may take its place");
}

static void leaves_the_process_alone(Check *check)
{
    const DavitReport *records = check->file->records;

    check->looked = true;
    for (size_t i = 0; i < davit_report_count(records); i++) {
        const DavitRecord *r = davit_report_get(records, i);

        if (r->code == DAVIT_R_SIDE_EFFECT)
            fail(check, check->file->bundle_id, r->subject, r->expected, r->found,
                 r->message);
    }
}

/* The same pointer from any host that a plugin may meet. */
static void entry_is_pure(Check *check)
{
    const uint32_t minors[] = {DAVIT_ABI_MINOR, DAVIT_ABI_MINOR, DAVIT_ABI_MINOR + 7, 1000};
    const davit_entry_v1_fn entry = check->file->load->entry;
    const davit_bundle *first = NULL;

    check->looked = true;
    for (size_t i = 0; i < G_N_ELEMENTS(minors); i++) {
        const davit_hello hello = {.struct_size = DAVIT_END(davit_hello, host_version),
                                   .abi_major = DAVIT_ABI_MAJOR,
                                   .abi_minor = minors[i],
                                   .flags = DAVIT_HELLO_IN_HELPER,
                                   .host_name = "another host",
                                   .host_version = "99.0.0"};
        g_autoptr(DavitReport) said = davit_report_new();
        const davit_bundle *bundle;
        DavitSink sink;

        davit_sink_init(&sink, said, check->file->bundle_id, "entry");
        bundle = entry(&hello, &sink.abi);
        if (i == 0)
            first = bundle;
        if (!bundle || bundle != first)
            fail(check, check->file->bundle_id, "davit_plugin_entry_v1",
                 "the same bundle every time", bundle ? "another pointer" : "NULL",
                 "the entry is pure: it returns static data, also to a newer host");
    }
}

/* ---- any component ---- */

static void create_often(Check *check, DavitComponent *c)
{
    const davit_component *desc = &c->load->desc;

    for (int i = 0; desc->create && i < 100; i++) {
        const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                                    .host = davit_host_table(),
                                    .component = c->id};
        void *self = NULL;
        DavitSink sink;
        int32_t status;

        davit_sink_init(&sink, check->report, c->id, "create");
        status = davit_sink_done(
            &sink, desc->create(c->file->load->bundle_ctx, &in, &self, &sink.abi));
        if (status < 0) {
            fail(check, c->id, "create", "success every time",
                 davit_report_text(check->report, "status %d at call %d", status, i + 1),
                 "an instance could be made once and not again");
            return;
        }
        desc->destroy(self);
    }
}

static void creates_and_destroys(Check *check)
{
    each(check, DAVIT_N_KINDS, create_often);
}

static void look_at_refusals(Check *check, DavitComponent *c)
{
    const davit_component *desc = &c->load->desc;

    for (size_t i = 0; desc->refuses && desc->refuses[i]; i++) {
        const davit_refusal *r = desc->refuses[i];
        const char *subject = davit_report_text(check->report, "refuses[%zu]", i);

        if (strcmp(davit_code_name(r->code), "unknown") == 0)
            fail(check, c->id, subject, "a code of davit/refusal.h",
                 davit_report_text(check->report, "%u", r->code), "an unknown code");
        if (!r->subject || !r->message || !r->hint)
            fail(check, c->id, subject, "subject, message and hint",
                 !r->subject   ? "no subject"
                 : !r->message ? "no message"
                               : "no hint",
                 "a refusal says what, why and what can be done");
    }
}

static void refusals_say_why(Check *check)
{
    each(check, DAVIT_N_KINDS, look_at_refusals);
}

/* ---- formats ---- */

/* One question; false after a finding. */
static bool ask(Check *check, DavitComponent *c, const davit_probe_in *in, const char *what,
                davit_verdict *out)
{
    g_autoptr(DavitReport) said = davit_report_new();
    DavitSink sink;
    int32_t status;

    *out = (davit_verdict){.struct_size = DAVIT_END(davit_verdict, flags), .verdict = 99};
    davit_sink_init(&sink, said, c->id, "probe");
    davit_running_set(c->id, "probe");
    status = c->load->desc.probe(in, out, &sink.abi);
    if (status < 0 || out->verdict > DAVIT_REFUSE || out->score > 1000) {
        fail(check, c->id, what, "DECLINE, ACCEPT with a score up to 1000, or REFUSE",
             davit_report_text(check->report, "status %d, verdict %u, score %u", status,
                               out->verdict, out->score),
             "a probe answers every input");
        return false;
    }
    if (out->verdict == DAVIT_REFUSE && sink.n_errors == 0) {
        fail(check, c->id, what, "a record with REFUSE", "none",
             "a refusal comes with its reason");
        return false;
    }
    return true;
}

/* Inputs that belong to nobody, asked twice. */
static void probe_strangers(Check *check, DavitComponent *c)
{
    g_autofree uint8_t *head = g_malloc0(N_BYTES);
    static const char *const names[] = {"README.md", "model.nobody", "notes.txt", NULL};
    char entry[256] = "";

    for (uint32_t round = 0; round < 12; round++) {
        const bool is_dir = round == 11;
        davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                             .purposes = DAVIT_INSPECT | DAVIT_RUN,
                             .name = "x.nobody",
                             .head = is_dir ? NULL : head,
                             .head_len = is_dir ? 0 : round < 8 ? round : N_BYTES,
                             .file_size = is_dir ? 0 : round < 8 ? round : 1u << 20,
                             .names = is_dir ? names : NULL,
                             .n_names = is_dir ? 3 : 0,
                             .out_entry = entry,
                             .out_entry_cap = sizeof entry};
        const char *what = is_dir ? "a directory of strange files"
                                  : davit_report_text(check->report, "%u bytes of noise",
                                                      (unsigned)in.head_len);
        davit_verdict first, second;

        fill_noise(head, N_BYTES, round + 1);
        if (!ask(check, c, &in, what, &first) || !ask(check, c, &in, what, &second))
            return;
        if (first.verdict != second.verdict || first.score != second.score)
            fail(check, c->id, what, "the same answer twice",
                 davit_report_text(check->report, "%u and %u", first.verdict,
                                   second.verdict),
                 "a probe keeps no state");
        if (first.verdict == DAVIT_ACCEPT && first.score >= 200)
            fail(check, c->id, what, "DECLINE, or a score below 200",
                 davit_report_text(check->report, "ACCEPT with score %u", first.score),
                 "the plugin takes what is not its own");
    }
}

static void formats_leave_strangers_alone(Check *check)
{
    each(check, DAVIT_KIND_ID_FORMAT, probe_strangers);
}

/* ---- tokenizers ---- */

/* Ends of all pieces of @text from @from on; false after a finding. */
static bool scan_all(Check *check, DavitComponent *c, const davit_tok_shape *shape,
                     const char *text, uint64_t n, uint64_t from, uint64_t cap, GArray *ends)
{
    uint64_t out[N_PIECES];

    while (from < n) {
        const uint64_t got = shape->scan(text, n, from, out, cap);

        if (got > cap || (got < cap && (got == 0 || (out[got - 1] & ~DAVIT_TOK_DROP) != n))) {
            fail(check, c->id, shape->name, "ends up to the last byte",
                 davit_report_text(check->report, "%" G_GUINT64_FORMAT " ends", (guint64)got),
                 "fewer ends than asked for mean the end of the text");
            return false;
        }
        for (uint64_t i = 0; i < got; i++) {
            const uint64_t end = out[i] & ~DAVIT_TOK_DROP;

            if (end <= from || end > n) {
                fail(check, c->id, shape->name, "ascending ends inside the text",
                     davit_report_text(check->report,
                                       "%" G_GUINT64_FORMAT " after %" G_GUINT64_FORMAT,
                                       (guint64)end, (guint64)from),
                     "an end does not lie after the one before it");
                return false;
            }
            from = end;
            g_array_append_val(ends, out[i]);
        }
    }
    return true;
}

static bool same_ends(const GArray *a, const GArray *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len * sizeof(uint64_t)) == 0;
}

static void scan_shape(Check *check, DavitComponent *c, const davit_tok_shape *shape,
                       const char *text)
{
    const uint64_t caps[] = {1, 7, N_PIECES};
    const uint64_t n = strlen(text);
    g_autoptr(GArray) whole = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    if (!scan_all(check, c, shape, text, n, 0, N_PIECES, whole))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(caps); i++) {
        g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));

        if (!scan_all(check, c, shape, text, n, 0, caps[i], ends))
            return;
        if (!same_ends(whole, ends))
            fail(check, c->id, shape->name, "the same pieces however many are asked for",
                 davit_report_text(check->report, "%u pieces, then %u", whole->len,
                                   ends->len),
                 "a scan goes on where the last one ended");
    }
}

static void look_at_shapes(Check *check, DavitComponent *c)
{
    static const char *const texts[] = {
        "a", " ", "  two  blanks\n\n\ttab", "I'll don't WE'VE 12345 1,000.50 x=y;",
        "\xe4\xbd\xa0\xe5\xa5\xbd \xc3\xa4\xc3\xb6 \xf0\x9f\x99\x82\xf0\x9f\x8f\xbd e\xcc\x81",
        "\r\n\r\n...!!!???   \xc2\xa0\xe3\x80\x80 end "};
    const davit_tokenizer_iface *iface = c->load->iface;

    if (!iface->shapes[0])
        fail(check, c->id, "shapes", "at least one", "none", "the component claims nothing");
    for (size_t k = 0; iface->shapes[k]; k++) {
        davit_tok_shape shape = {0};
        json_t *tree;

        memcpy(&shape, iface->shapes[k], MIN(iface->shapes[k]->struct_size, sizeof shape));
        tree = shape.pre_tokenizer ? json_loads(shape.pre_tokenizer, JSON_DECODE_ANY, NULL)
                                   : NULL;
        if (!shape.name || (shape.pre_tokenizer && !tree))
            fail(check, c->id, "shapes", "a name and JSON text",
                 !shape.name ? "no name" : "text that is no JSON", "a shape is not readable");
        if (shape.gguf_pre && !shape.gguf_facts)
            fail(check, c->id, shape.name, "gguf_facts beside gguf_pre", "none",
                 "the facts that GGUF omits are required with its names");
        json_decref(tree);
        for (size_t t = 0; shape.scan && shape.name && t < G_N_ELEMENTS(texts); t++)
            scan_shape(check, c, &shape, texts[t]);
    }
}

static void shapes_are_scanned_in_order(Check *check)
{
    each(check, DAVIT_KIND_ID_TOKENIZER, look_at_shapes);
}

/* ---- quantised layouts ---- */

static void claim_nonsense(Check *check, DavitComponent *c)
{
    const davit_quant_iface *iface = c->load->iface;
    const davit_tensor_info info = {.struct_size = DAVIT_END(davit_tensor_info, file),
                                    .name = "block.nonsense_7",
                                    .dtype = "org.example.never/1",
                                    .rank = 5};
    const davit_quant_part_in part = {
        .struct_size = DAVIT_END(davit_quant_part_in, reserved),
        .suffix = "nonsense_7",
        .info = &info,
        .dtype = info.dtype,
        .rank = info.rank};
    const davit_quant_part_in *parts[] = {&part};
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, want_rank),
                                       .name = "block",
                                       .parts = parts,
                                       .n_parts = 1};
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    g_autoptr(DavitReport) said = davit_report_new();
    DavitSink sink;
    int32_t status;

    davit_sink_init(&sink, said, c->id, "claim");
    davit_running_set(c->id, "claim");
    status = iface->claim(c->load->self, &module, &verdict, &sink.abi);
    if (status < 0 || verdict.verdict != DAVIT_DECLINE)
        fail(check, c->id, "a module of unknown parts", "DECLINE",
             davit_report_text(check->report, "status %d, verdict %u", status,
                               verdict.verdict),
             "a quant plugin leaves what it does not know");
}

static void quants_leave_strangers_alone(Check *check)
{
    each(check, DAVIT_KIND_ID_QUANT, claim_nonsense);
}

/* ---- kernels ---- */

static void look_at_entries(Check *check, DavitComponent *c)
{
    const davit_kernels_iface *iface = c->load->iface;
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t e = 0; iface->entries[e]; e++) {
        const davit_kernel_entry *entry = iface->entries[e];
        const char *subject = davit_report_text(check->report, "entry %zu", e);

        if (!entry->op || !entry->name || !entry->run)
            fail(check, c->id, subject, "op, name and run",
                 !entry->op ? "no op" : !entry->name ? "no name" : "no run",
                 "an entry lacks what it is called by");
        else if (!g_hash_table_add(names, (gpointer)(uintptr_t)entry->name))
            fail(check, c->id, entry->name, "one entry of a name", "two",
                 "the user's ranks and `plugin ops` go by the name");
        else if (entry->score > 1000)
            fail(check, c->id, entry->name, "a score of at most 1000",
                 davit_report_text(check->report, "%u", entry->score),
                 "the score is out of range");
    }
}

static void entries_are_complete(Check *check)
{
    each(check, DAVIT_KIND_ID_KERNELS, look_at_entries);
}

/* ---- architectures ---- */

static void look_at_arch(Check *check, DavitComponent *c)
{
    const davit_arch_iface *iface = c->load->iface;

    if (!iface->hf && !iface->model_types && !iface->gguf)
        fail(check, c->id, "hf, model_types, gguf", "at least one name", "none",
             "no model can ask for it");
    if ((c->purposes & DAVIT_RUN) && !iface->build)
        fail(check, c->id, "build", "a function, with DAVIT_RUN among the purposes", "NULL",
             "what cannot run must not claim it: DAVIT_REFUSES says forward-absent");
}

static void architectures_name_their_models(Check *check)
{
    each(check, DAVIT_KIND_ID_ARCH, look_at_arch);
}

/* ---- the list ---- */

static const struct {
    const char *name, *what;
    void (*run)(Check *check);
} tests[] = {
    {"loads", "every component passes all gates and an instance is made", loads},
    {"one_export", "the entry is the only exported symbol", exports_the_entry_alone},
    {"no_side_effect", "loading and start leave the process as it was",
     leaves_the_process_alone},
    {"entry_pure", "the entry gives one pointer, to older and newer hosts alike",
     entry_is_pure},
    {"create_destroy", "instances come and go a hundred times", creates_and_destroys},
    {"refusals", "static refusals have a known code, subject, message and hint",
     refusals_say_why},
    {"format_probe", "noise and strange directories are declined, twice alike",
     formats_leave_strangers_alone},
    {"tokenizer_scan", "pieces ascend, cover the text, and do not depend on the batch",
     shapes_are_scanned_in_order},
    {"quant_claim", "modules of unknown parts are declined", quants_leave_strangers_alone},
    {"kernel_entries", "entries have op, name, run, and names of their own",
     entries_are_complete},
    {"arch_names", "architectures name models, and build where they claim run",
     architectures_name_their_models},
};

bool davit_check_run(size_t index, DavitPluginFile *file, DavitReport *report,
                     bool *out_skipped)
{
    Check check = {.file = file, .report = report};

    if (index >= G_N_ELEMENTS(tests))
        return false;
    davit_running_set(file->bundle_id, tests[index].name);
    tests[index].run(&check);
    *out_skipped = !check.looked;
    return true;
}

static void result_free(void *p)
{
    DavitCheckResult *r = p;

    davit_report_free(r->records);
    g_free(r);
}

GPtrArray *davit_check_file(DavitRegistry *registry, DavitPluginFile *file,
                            DavitReport *report)
{
    GPtrArray *results;

    if (!registry->helper) {
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                                 .status = DAVIT_E_IO,
                                                 .stage = "probe-helper",
                                                 .subject = "davit-probe",
                                                 .expected = "the helper beside libdavit",
                                                 .found = "nothing",
                                                 .message = "there is no probe helper to "
                                                            "run the tests in",
                                                 .hint = "install davit as a whole"});
        return NULL;
    }
    results = g_ptr_array_new_with_free_func(result_free);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        DavitCheckResult *r = g_new0(DavitCheckResult, 1);

        r->test = tests[i].name;
        r->what = tests[i].what;
        r->records = davit_report_new();
        if (i == 0 || !davit_report_failed(
                          ((DavitCheckResult *)g_ptr_array_index(results, 0))->records))
            davit_helper_test(file, i, r->records, &r->skipped);
        else
            r->skipped = true; /* what does not load cannot be tested further */
        r->passed = !davit_report_failed(r->records);
        g_ptr_array_add(results, r);
    }
    return results;
}
