/* SPDX-License-Identifier: Apache-2.0
 * Verdicts, refusal records and suites for plugins. */
#include <davit/help/records.h>

#include <stdio.h>

static int32_t give(davit_verdict *out, uint32_t verdict, uint32_t score,
                    uint64_t purposes, uint64_t flags)
{
    out->verdict = verdict;
    out->score = score;
    out->purposes = purposes;
    out->flags = flags;
    return DAVIT_OK;
}

int32_t davit_decline(davit_verdict *out)
{
    return give(out, DAVIT_DECLINE, 0, 0, 0);
}

int32_t davit_accept(davit_verdict *out, uint32_t score, uint64_t purposes)
{
    return give(out, DAVIT_ACCEPT, score, purposes, 0);
}

int32_t davit_refuse(davit_verdict *out, uint64_t flags)
{
    return give(out, DAVIT_REFUSE, 0, 0, flags);
}

int32_t davit_say(const davit_sink *sink, int32_t status, const davit_refusal *record)
{
    if (sink && sink->refuse) {
        davit_refusal r = *record;
        r.struct_size = DAVIT_END(davit_refusal, url);
        sink->refuse(sink->ctx, &r);
    }
    return status;
}

const void *davit_need_suite(const davit_create_in *in, const char *name, uint32_t major,
                             uint32_t minor, const davit_sink *sink)
{
    const davit_host *host = in->host;
    const void *suite = host->suite(host->ctx, name, major, minor);
    char wanted[96];

    if (suite)
        return suite;
    snprintf(wanted, sizeof wanted, "suite %s %u.%u", name, (unsigned)major,
             (unsigned)minor);
    davit_say(sink, DAVIT_E_UNSUPPORTED,
              &(davit_refusal){.code = DAVIT_R_HOST_TOO_OLD,
                               .subject = in->component,
                               .expected = wanted,
                               .found = "no such suite in this host",
                               .message = "the host does not offer a suite that the "
                                          "component needs",
                               .hint = "update davit"});
    return NULL;
}
