/* SPDX-License-Identifier: Apache-2.0
 * Verdicts and refusal records for plugins. */
#include <davit/help/records.h>

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
