/* SPDX-License-Identifier: Apache-2.0
 * The builder behind an architecture's forward: what the "build" suite writes into.
 */
#ifndef DAVIT_PLAN_BUILD_H
#define DAVIT_PLAN_BUILD_H

#include "plan/program.h"

/* Let the draft's architecture record entry @entry. draft->plan has config and slots.
 * Returns: (owned) a finished program, or NULL with records. Slots that the program reads
 * are marked used. */
DavitProgram *davit_program_build(DavitDraft *draft, const char *entry);

#endif
