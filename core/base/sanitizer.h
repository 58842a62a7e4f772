/* SPDX-License-Identifier: Apache-2.0
 * Whether this was built with the address or the thread sanitizer: their own reports say more, their
 * memory is larger and their tests take longer.
 */
#ifndef DAVIT_BASE_SANITIZER_H
#define DAVIT_BASE_SANITIZER_H

#include <davit/plugin.h>

/* 0 or 1, known to the compiler; the build fact of plugins says which sanitizer. */
#define DAVIT_SANITIZED (DAVIT_BUILD_SANITIZER[0] != 'n')

#endif
