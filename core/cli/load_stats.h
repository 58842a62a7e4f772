/* SPDX-License-Identifier: Apache-2.0
 * The load report of run and eval.
 */
#ifndef DAVIT_CLI_LOAD_STATS_H
#define DAVIT_CLI_LOAD_STATS_H

#include "cli/command.h"
#include "engine/libdavit.h"

/* (owned) The document's field "load": counters, phases, predicted against actual. Where a
 * number means what vllm.cpp's load statistics print, it is also there under that name:
 * host_copy_bytes, borrowed_bytes, device_upload_bytes. */
json_t *davit_load_stats_json(const davit_model_info *info, const davit_engine *engine);
/* One screen on stderr. */
void davit_load_stats_print(const davit_model_info *info, const davit_engine *engine);

#endif
