/* SPDX-License-Identifier: Apache-2.0
 * The file as a whole, and what holds for a component of any kind. */
#include "check/suite.h"

#include <string.h>

#include "plugin/load.h"

/* ---- the file ---- */

void check_loads(Check *check)
{
    check->looked = true; /* it did: the suite begins with it */
    for (size_t i = 0; i < check->file->load->components->len; i++) {
        DavitComponent *c = g_ptr_array_index(check->file->load->components, i);

        if (davit_load_component(c))
            davit_report_append(check->report, c->records);
    }
}

void check_one_export(Check *check)
{
    check->looked = true;
    if (check->file->n_exports != 1)
        check_fail(check, check->file->bundle_id, "dynamic symbols", "1: davit_plugin_entry_v1",
             davit_report_text(check->report, "%zu", check->file->n_exports),
             "another library's symbol of the same name may take its place");
}

void check_no_side_effect(Check *check)
{
    const DavitReport *records = check->file->records;

    check->looked = true;
    for (size_t i = 0; i < davit_report_count(records); i++) {
        const DavitRecord *r = davit_report_get(records, i);

        if (r->code == DAVIT_R_SIDE_EFFECT)
            check_fail(check, check->file->bundle_id, r->subject, r->expected, r->found,
                 r->message);
    }
}

/* The same pointer from any host that a plugin may meet. */
void check_entry_pure(Check *check)
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
            check_fail(check, check->file->bundle_id, "davit_plugin_entry_v1",
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
            check_fail(check, c->id, "create", "success every time",
                 davit_report_text(check->report, "status %d at call %d", status, i + 1),
                 "an instance could be made once and not again");
            return;
        }
        desc->destroy(self);
    }
}

void check_create_destroy(Check *check)
{
    check_each(check, DAVIT_N_KINDS, create_often);
}

static void look_at_refusals(Check *check, DavitComponent *c)
{
    const davit_component *desc = &c->load->desc;

    for (size_t i = 0; desc->refuses && desc->refuses[i]; i++) {
        const davit_refusal *r = desc->refuses[i];
        const char *subject = davit_report_text(check->report, "refuses[%zu]", i);

        if (strcmp(davit_code_name(r->code), "unknown") == 0)
            check_fail(check, c->id, subject, "a code of davit/refusal.h",
                 davit_report_text(check->report, "%u", r->code), "an unknown code");
        if (!r->subject || !r->message || !r->hint)
            check_fail(check, c->id, subject, "subject, message and hint",
                 !r->subject   ? "no subject"
                 : !r->message ? "no message"
                               : "no hint",
                 "a refusal says what, why and what can be done");
    }
}

void check_refusals(Check *check)
{
    check_each(check, DAVIT_N_KINDS, look_at_refusals);
}
