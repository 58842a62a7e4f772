/* SPDX-License-Identifier: Apache-2.0
 * A hub id as MODEL: org/name[@revision] found in the Hugging Face cache, without network
 * and without writing anything.
 *
 * Layout (huggingface_hub): ROOT/models--org--name/{refs/REVISION, snapshots/COMMIT}. ROOT
 * is HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else
 * XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. A revision of 40 hex
 * digits is a commit and needs no ref; without a revision it is "main".
 */
#ifndef DAVIT_SOURCE_HUB_CACHE_H
#define DAVIT_SOURCE_HUB_CACHE_H

#include "base/report.h"

/* Does @model have the form of a hub id? Says nothing about whether it is cached. */
bool davit_hub_is_id(const char *model);

/* (owned) root of the cache as the environment says; NULL without any home. */
char *davit_hub_root(void);

/* *out_dir (owned): the snapshot of @model. Errors: NOT_FOUND naming the exact path that
 * is absent and what is there instead, HEADER_INVALID for a ref that holds no commit. A
 * snapshot that was taken without a ref is a note. */
int32_t davit_hub_find(const char *model, char **out_dir, DavitReport *report);

/* Is anything of @model's repository in the cache? Reports nothing. */
bool davit_hub_has(const char *model);

/* One note per partial download (blobs/HASH.incomplete) of the cached repository that the
 * snapshot @dir belongs to; nothing for other directories. */
void davit_hub_note_partial(const char *dir, DavitReport *report);

/* (owned) models--org--name that a directory within a snapshot belongs to, by its real
 * path; NULL if it is none. */
char *davit_hub_repository(const char *real_dir);

/* (owned) "org/name" where @dir is a repository's folder of a hub cache, models--org--name, or its
 * snapshots; NULL if it is neither. */
char *davit_hub_id_of(const char *dir);

#endif
