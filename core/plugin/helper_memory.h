/* SPDX-License-Identifier: Apache-2.0
 * What is remembered of a run of the probe helper: the JSON object "probe" of the cache, with
 * "outcome", "stage", "signal", "records" and so on (helper.c makes it).
 */
#ifndef DAVIT_PLUGIN_HELPER_MEMORY_H
#define DAVIT_PLUGIN_HELPER_MEMORY_H

#include "plugin/helper.h"

/* (borrowed, @probe) The text of @key, "" without one. */
const char *davit_probe_text(const json_t *probe, const char *key);
/* Does its outcome keep the file from being loaded? */
bool davit_probe_is_quarantine(const json_t *probe);
/* The record of an outcome that is no refusal of the plugin's own. */
int32_t davit_probe_report(const DavitPluginFile *file, const json_t *probe,
                           DavitReport *report);
/* The records that the helper sent, as they were. */
void davit_probe_records(const json_t *list, DavitReport *report);

#endif
