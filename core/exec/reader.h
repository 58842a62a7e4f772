/* SPDX-License-Identifier: Apache-2.0
 * How the bytes of one load come in: through the page cache, or past it.
 *
 * Files that are not in the page cache are read past it (O_DIRECT) where the file system lets
 * us: filling the cache takes as much fresh memory as the weights themselves. Such a read
 * starts and ends at multiples of DAVIT_DIRECT_ALIGN, so it goes to a buffer with room for that.
 * One that fails, for whatever reason, is done again through the cache, which then says why.
 */
#ifndef DAVIT_EXEC_READER_H
#define DAVIT_EXEC_READER_H

#include "exec/exec.h"
#include "plan/piece.h"

typedef struct DavitReader DavitReader;

/* Descriptor that reads @source past the page cache, the reader's to close; -1 = cannot. */
typedef int DavitOpenDirect(const DavitSource *source);

/* For the files of @checkpoint; adds what was seen of the page cache to @stats. @open NULL =
 * davit_source_open_direct; tests have others. Returns: (owned). */
DavitReader *davit_reader_new(const DavitCheckpoint *checkpoint, DavitCacheChoice choice,
                              DavitOpenDirect *open, DavitLoadStats *stats);
void davit_reader_free(DavitReader *reader); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitReader, davit_reader_free)

/* @n_bytes of file @file at @off, somewhere in @mem, which is aligned to DAVIT_DIRECT_ALIGN and
 * DAVIT_READ_SLACK larger. *out = where they start. Adds to @stats what went past the cache.
 * Errors: as davit_source_read. [any thread] */
int32_t davit_reader_stage(DavitReader *reader, uint32_t file, uint64_t off, uint64_t n_bytes,
                           uint8_t *mem, const uint8_t **out, DavitLoadStats *stats,
                           DavitReport *report);

/* Aligned memory to read into first. */
typedef struct DavitBounce {
    uint8_t *mem;
    uint64_t n_bytes; /* too few = not used */
} DavitBounce;

/* The same to @to; past the cache it goes through @bounce. */
int32_t davit_reader_read(DavitReader *reader, uint32_t file, uint64_t off, uint64_t n_bytes,
                          uint8_t *to, const DavitBounce *bounce, DavitLoadStats *stats,
                          DavitReport *report);

#endif
