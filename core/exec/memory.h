/* SPDX-License-Identifier: Apache-2.0
 * Placement of a program's values in one block of memory, by the time they live.
 */
#ifndef DAVIT_EXEC_MEMORY_H
#define DAVIT_EXEC_MEMORY_H

#include "exec/exec.h"

/* Offsets of all values for @max_tokens tokens and @max_rows logit rows, each a multiple of
 * @align. Two values that live at the same time never overlap.
 * @out_off: (filled) [program->n_values]. Returns: bytes in all, 0 on overflow. */
uint64_t davit_memory_place(const DavitProgram *program, uint64_t max_tokens,
                            uint64_t max_rows, uint64_t align, uint64_t *out_off);

#endif
