/* SPDX-License-Identifier: Apache-2.0
 * The host's side of davit_host: suites by name, memory, the cancel flag.
 *
 * Each suite's table comes from its module. The getters are declared here and not
 * included from there, so that core/plugin depends on no module above it.
 */
#ifndef DAVIT_PLUGIN_HOST_H
#define DAVIT_PLUGIN_HOST_H

#include <stdbool.h>

#include <davit/arch.h>
#include <davit/suites.h>

const davit_cpu_suite *davit_cpu_suite_get(void);       /* core/base/cpu.c */
const davit_json_suite *davit_json_suite_get(void);     /* core/base/json.c */
const davit_regex_suite *davit_regex_suite_get(void);   /* core/base/regex.c */
const davit_io_suite *davit_io_suite_get(void);         /* core/source */
const davit_tensor_suite *davit_tensor_suite_get(void); /* core/checkpoint */
const davit_config_suite *davit_config_suite_get(void); /* core/config */
const davit_build_suite *davit_build_suite_get(void);   /* core/plan */

/* What davit_host.cancelled answers from now on. [any thread, also a signal handler] */
void davit_host_set_cancelled(bool cancelled);

#endif
