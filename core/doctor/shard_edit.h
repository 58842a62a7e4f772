/* SPDX-License-Identifier: Apache-2.0
 * Edits of a safetensors file that a doctor's case asks for.
 */
#ifndef DAVIT_DOCTOR_SHARD_EDIT_H
#define DAVIT_DOCTOR_SHARD_EDIT_H

#include <jansson.h>

/* Writes @path again, its tensors one behind the other, after @edits in their order: objects with
 * "rename" or "drop", "copy", "turn", "fill" as test_doctor.c has them. Aborts the test where the
 * file is not what it should be. */
void shard_edit(const char *path, const json_t *edits);

#endif
