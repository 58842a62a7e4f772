/* SPDX-License-Identifier: Apache-2.0
 * Mapped files that lose bytes while they are read.
 *
 * A page of a mapping whose file was cut raises SIGBUS. Where the program (or a caller that
 * asks for it) has installed the guard, such a page reads as zeros, the loss is counted, and
 * whoever works on mapped bytes asks davit_guard_losses afterwards and checks its sources.
 * The library installs nothing by itself.
 */
#ifndef DAVIT_SOURCE_GUARD_H
#define DAVIT_SOURCE_GUARD_H

#include <stddef.h>

/* Handle SIGBUS inside guarded ranges from now on; elsewhere it stays fatal. Idempotent. */
void davit_guard_install(void);

/* A range to guard, and the end of guarding (before it is unmapped). Ranges beyond the
 * table's 4096 are not guarded. [any thread] */
void davit_guard_add(const void *base, size_t n_bytes);
void davit_guard_remove(const void *base);

/* Pages lost so far in this process. [any thread] */
unsigned davit_guard_losses(void);

#endif
