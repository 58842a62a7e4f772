/* SPDX-License-Identifier: Apache-2.0
 * davit_escape (report.h) into storage of the caller. */
#ifndef DAVIT_BASE_ESCAPE_H
#define DAVIT_BASE_ESCAPE_H

#include <stddef.h>

#define DAVIT_ESCAPE_REST 4u /* "..." and the NUL */

/* As davit_escape; @out has @max + DAVIT_ESCAPE_REST bytes. Returns: bytes before the NUL. */
size_t davit_escape_into(char *out, const char *text, size_t len, size_t max);

#endif
