/* SPDX-License-Identifier: Apache-2.0
 * What is remembered of plugin files between runs: the facts of gates 2 and 3 and the result
 * of the probe helper, in <cache directory>/plugins-1-<arch>.json.
 *
 * It saves work and decides nothing: loading validates again. A file is the same while
 * device, inode, size, mtime and ctime (both to the nanosecond) are; everything is forgotten
 * when davit, its ABI, the C library or the helper program changes. What does not parse, or
 * belongs to somebody else, is as if it were not there. Not used by privileged processes.
 *
 * Writing: merged under a lock file with what others wrote meanwhile, to a temporary file,
 * synced, renamed. A directory that cannot be written is no error.
 */
#ifndef DAVIT_PLUGIN_CACHE_H
#define DAVIT_PLUGIN_CACHE_H

#include <stdbool.h>
#include <sys/stat.h>

#include <jansson.h>

typedef struct DavitCache DavitCache;

/* @dir: NULL = $XDG_CACHE_HOME/davit, "" = nothing is remembered. @helper: path of the helper
 * program, part of the key; NULL = none. Never NULL. */
DavitCache *davit_cache_open(const char *dir, const char *helper);
/* Answer from the system's file in @dir too, where the own one has nothing: facts of files, and
 * helpers that were content. Root's, or nobody else could have written it; written by `davit
 * plugin rescan --system`. */
#define DAVIT_SYSTEM_CACHE "/var/cache/davit"
void davit_cache_read_system(DavitCache *cache, const char *dir);
/* Writes what changed. NULL is fine. */
void davit_cache_free(DavitCache *cache);

/* (borrowed, until the next put) member @part ("elf" "probe") of the file with real path
 * @real as it was when @st was taken; NULL = not known. */
json_t *davit_cache_get(const DavitCache *cache, const char *real, const struct stat *st,
                        const char *part);
/* @value is taken over; NULL forgets the part. */
void davit_cache_put(DavitCache *cache, const char *real, const struct stat *st,
                     const char *part, json_t *value);
/* Forget each "probe" of a file that is still the same and neither "ok" nor "refused" by a gate,
 * wherever it lies. Returns: (owned) array of {"path", "outcome"}. */
json_t *davit_cache_forget_failures(DavitCache *cache);
/* Write now if something changed; false if it could not be written. */
bool davit_cache_flush(DavitCache *cache);
/* (borrowed) path of the file, NULL when nothing is remembered. */
const char *davit_cache_path(const DavitCache *cache);

#endif
