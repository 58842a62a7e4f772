/* SPDX-License-Identifier: Apache-2.0
 * What the processor and the operating system offer together, as DAVIT_CPU_ bits of
 * davit/suites.h. A feature counts only if the system saves its registers (XCR0).
 *
 * DAVIT_CPU_LEVEL=scalar | x86-64-v2 | x86-64-v3 | avxvnni |
 * x86-64-v4 | avx512vnni caps the answer for tests
 * and support; it is read once. Any other value is an error of davit_cpu_check, and caps
 * to scalar so that a typing error never picks code that was meant to be switched off.
 */
#ifndef DAVIT_BASE_CPU_H
#define DAVIT_BASE_CPU_H

#include <stdint.h>

#include <davit/suites.h>

#include "base/report.h"

/* [any thread] */
uint64_t davit_cpu_features(void);

/* Level that davit_cpu_features covers whole: "scalar" "x86-64-v2" "x86-64-v3"
 * "x86-64-v4", or one of the two with vnni. (static) */
const char *davit_cpu_level(void);

/* Errors: DAVIT_E_USAGE if DAVIT_CPU_LEVEL is no level. */
int32_t davit_cpu_check(DavitReport *report);

/* @features without what lies above @level. Returns: false if @level is no level. */
bool davit_cpu_cap(const char *level, uint64_t *features);

/* The "cpu" suite handed to plugins. (static) */
const davit_cpu_suite *davit_cpu_suite_get(void);

#endif
