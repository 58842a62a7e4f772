/* SPDX-License-Identifier: Apache-2.0
 * From the MODEL argument to files: a directory, one file and the directory it lies in,
 * or a cached hub id (hub_cache.h). A path that is there comes before a hub id. URLs are
 * not here.
 */
#ifndef DAVIT_SOURCE_PATH_H
#define DAVIT_SOURCE_PATH_H

#include "base/report.h"

#define DAVIT_MAX_DIR_ENTRIES 65536u /* names of one model directory */

typedef struct DavitModelPath {
    char *dir;        /* directory of the model, as given (no realpath) */
    char *entry;      /* file name inside dir, NULL = MODEL is a directory */
    GPtrArray *names; /* char *: sorted names in dir without "." files; never NULL */
} DavitModelPath;

/* Errors: NOT_FOUND, NOT_REGULAR, IO_FAILED, and DAVIT_E_LIMIT for too many names. */
int32_t davit_model_path_init(DavitModelPath *path, const char *model,
                              DavitReport *report);
void davit_model_path_clear(DavitModelPath *path);

bool davit_model_path_has(const DavitModelPath *path, const char *name);

/* Path of @name beside the model: *out_path (owned). A name with path parts is refused,
 * and so is a link that leads out of the directory (or out of the hub cache folder that a
 * snapshot belongs to), except for the file that the user named. Errors: NOT_FOUND,
 * HEADER_INVALID. */
int32_t davit_model_path_join(const DavitModelPath *path, const char *name,
                              char **out_path, DavitReport *report);

/* A shard's name: prefix-00001-of-00004.ext. Both numbers from the name. */
typedef struct DavitShardName {
    size_t n_prefix; /* bytes before "-00001" */
    uint32_t no;     /* 1-based */
    uint32_t count;
    const char *ext; /* (borrowed from the name) with the dot */
} DavitShardName;

bool davit_shard_name_parse(const char *name, DavitShardName *out);

#endif
