/* SPDX-License-Identifier: Apache-2.0
 * Names of stored tensors that the user changes: rules and prefixes.
 *
 * A rule is FROM and TO, each with the same number of '*'; a name that FROM matches as a whole
 * becomes TO with the texts that the stars stood for, in order. Rules run in order, each once
 * on what the rules before made. Nothing is guessed: what a rule did is kept and shown.
 */
#ifndef DAVIT_CHECKPOINT_RENAME_H
#define DAVIT_CHECKPOINT_RENAME_H

#include "checkpoint/checkpoint.h"

/* Read rules from JSON text: [{"from": "transformer.h.*", "to": "model.layers.*"}, ...] or
 * {"from": "to", ...}. @name names the text in records. Returns: (owned GPtrArray of
 * DavitRename) or NULL with every fault. */
GPtrArray *davit_renames_read(const char *name, const char *text, size_t n,
                              DavitReport *report);
/* (owned) A rule that takes @prefix away where a name starts with it. */
DavitRename *davit_rename_strip(const char *prefix);
void davit_rename_free(void *rename);

/* Apply @rules (DavitRename, taken over) to all names of @ckpt. Errors: two tensors get one
 * name; a warning for a rule that matches nothing. Not after anything has been asked of the
 * catalogue: borrowed tensors and indexes change. */
int32_t davit_checkpoint_rename(DavitCheckpoint *ckpt, GPtrArray *rules,
                                DavitReport *report);

/* What a command line asks for: strip @prefix (NULL = none), then the rules of the file
 * @path (NULL = none). */
int32_t davit_checkpoint_repair(DavitCheckpoint *ckpt, const char *prefix, const char *path,
                                DavitReport *report);

#endif
