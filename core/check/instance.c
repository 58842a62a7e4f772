/* SPDX-License-Identifier: Apache-2.0
 * Instances that a test makes for itself, on hosts that watch, refuse memory or are strangers. */
#include "check/host.h"
#include "check/suite.h"

#define MAX_ALLOCS 500 /* a failure is tried at each of the first so many */

/* Make, use and destroy one instance on @host. Returns: create's status. */
static int32_t live_once(Check *check, DavitComponent *c, CheckHost *host, bool is_used)
{
    const davit_component *desc = &c->load->desc;
    const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                                .host = &host->table,
                                .component = c->id};
    g_autoptr(DavitReport) said = davit_report_new();
    void *self = NULL;
    int32_t status = DAVIT_OK;
    DavitSink sink;

    if (desc->create) {
        davit_sink_init(&sink, said, c->id, "create");
        check_step(check, "create");
        status = desc->create(c->file->load->bundle_ctx, &in, &self, &sink.abi);
        if (status < 0 && sink.n_errors == 0)
            check_fail(check, NULL, "create", "a record with the negative status", "none",
                       "a refusal comes with its reason");
        if (status < 0)
            return status;
    }
    if (is_used && c->kind == DAVIT_KIND_ID_FORMAT)
        check_read_files(check, c, self);
    if (desc->destroy) {
        check_step(check, "destroy");
        desc->destroy(self);
    }
    return status;
}

/* What is left after an instance is gone. @when for the message. */
static void look_at_rest(Check *check, const CheckHost *host, const char *when)
{
    const guint left = g_hash_table_size(host->live);

    if (left)
        check_fail(check, NULL, "davit_host.alloc", "everything given back",
                   davit_report_text(check->report, "%u blocks left %s", left, when),
                   "memory of the host is lost");
    if (host->n_foreign)
        check_fail(check, NULL, "davit_host.free", "memory of davit_host.alloc, once",
                   davit_report_text(check->report, "%" G_GUINT64_FORMAT " others %s",
                                     (guint64)host->n_foreign, when),
                   "memory is given to the wrong side, or twice");
}

/* ---- memory ---- */

static void count_memory(Check *check, DavitComponent *c)
{
    CheckHost host;

    check_host_init(&host);
    if (live_once(check, c, &host, true) < 0)
        check_fail(check, NULL, "create", "success, as the first time", "a refusal",
                   "an instance could be made once and not again");
    look_at_rest(check, &host, "after destroy");
    check_host_clear(&host);
}

void check_memory(Check *check)
{
    check_each(check, DAVIT_N_KINDS, count_memory);
}

static void refuse_memory(Check *check, DavitComponent *c)
{
    for (uint64_t n = 1; n <= MAX_ALLOCS && check->n_findings < CHECK_MAX_FINDINGS; n++) {
        const char *when = davit_report_text(check->report,
                                             "when allocation %" G_GUINT64_FORMAT " fails",
                                             (guint64)n);
        CheckHost host;
        bool was_reached;

        check_host_init(&host);
        host.fail_at = n;
        live_once(check, c, &host, true);
        look_at_rest(check, &host, when);
        was_reached = host.n_allocs >= n;
        check_host_clear(&host);
        if (!was_reached) /* it lived without */
            return;
    }
}

void check_memory_fails(Check *check)
{
    check_each(check, DAVIT_N_KINDS, refuse_memory);
}

/* ---- strangers ---- */

static void meet_strangers(Check *check, DavitComponent *c)
{
    for (int round = 0; round < 2; round++) {
        CheckHost host;

        check_host_init(&host);
        host.no_suites = round == 0;
        if (round == 1) { /* fields that this SDK does not know, and a later minor */
            host.table.struct_size += sizeof host.poison;
            host.table.abi_minor += 7;
        }
        if (live_once(check, c, &host, false) < 0 && round == 1)
            check_fail(check, NULL, "create", "an instance on a host of a later minor",
                       "a refusal", "fields are only ever appended to the host's table");
        look_at_rest(check, &host, "after create on a strange host");
        check_host_clear(&host);
    }
}

void check_strange_host(Check *check)
{
    check_each(check, DAVIT_N_KINDS, meet_strangers);
}
