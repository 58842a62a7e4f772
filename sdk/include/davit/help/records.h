/* SPDX-License-Identifier: Apache-2.0
 * Helpers for verdicts, refusal records and suites. Part of libdavit-sdk.a.
 */
#ifndef DAVIT_HELP_RECORDS_H
#define DAVIT_HELP_RECORDS_H

#include <davit/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each fills *out and returns DAVIT_OK, so that a probe reads `return davit_accept(...)`. */
int32_t davit_decline(davit_verdict *out);
int32_t davit_accept(davit_verdict *out, uint32_t score, uint64_t purposes);
/* @flags: 0 or DAVIT_REFUSAL_FINAL. The record must be in the sink already. */
int32_t davit_refuse(davit_verdict *out, uint64_t flags);

/* Put one record into @sink and return @status, so that a check reads
 *   return davit_say(sink, DAVIT_E_CORRUPT, &(davit_refusal){.code = ..., .message = ...});
 * struct_size is filled here. @sink may be NULL. */
int32_t davit_say(const davit_sink *sink, int32_t status, const davit_refusal *record);

/* Suite @name in @major.@minor or newer, for create:
 *   plugin->json = davit_need_suite(in, "json", 1, 0, sink);
 * Returns: the host's table (static), or NULL after a record that names the suite. */
const void *davit_need_suite(const davit_create_in *in, const char *name, uint32_t major,
                             uint32_t minor, const davit_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
