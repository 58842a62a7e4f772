/* SPDX-License-Identifier: Apache-2.0
 * DavitSource: the bytes of one file, by positional reads or through a lazy mapping.
 *
 * Regular files only, opened without blocking. The size is fixed at open; a file that has
 * changed since is refused at the next read or view (DAVIT_R_FILE_CHANGED). Also the "io"
 * suite. Threads: open and free on one, everything else on any.
 */
#ifndef DAVIT_SOURCE_SOURCE_H
#define DAVIT_SOURCE_SOURCE_H

#include <davit/suites.h>

#include "base/report.h"

typedef struct davit_source DavitSource;

/* Returns: (owned) or NULL with a record: NOT_FOUND, NOT_REGULAR, IO_FAILED. */
DavitSource *davit_source_open(const char *path, DavitReport *report);
/* (owned) @data is borrowed until free. For tests, fuzzing and bytes already fetched. */
DavitSource *davit_source_from_bytes(const char *name, const uint8_t *data,
                                     uint64_t n_bytes);
void davit_source_free(DavitSource *source); /* NULL is fine; unmaps */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitSource, davit_source_free)

uint64_t davit_source_size(const DavitSource *source);
const char *davit_source_name(const DavitSource *source); /* (borrowed) last path part */
const char *
davit_source_path(const DavitSource *source); /* (borrowed) "" if from bytes */
/* Descriptor for executors that read themselves; -1 if from bytes. Do not close. */
int davit_source_fd(const DavitSource *source);

/* Exactly @n_bytes at @off. Errors: TENSOR_OUT_OF_FILE past the end, FILE_CHANGED,
 * IO_FAILED. */
int32_t davit_source_read(const DavitSource *source, uint64_t off, void *buf,
                          uint64_t n_bytes, DavitReport *report);
/* The same range in memory, valid while @source lives. A page may still be lost under the
 * mapping when somebody cuts the file: whoever keeps views calls davit_source_check. */
int32_t davit_source_view(const DavitSource *source, uint64_t off, uint64_t n_bytes,
                          const uint8_t **out_bytes, DavitReport *report);
/* Read this range, and no more, to the page cache while the caller goes on: a first touch of a
 * mapping alone reads megabytes around it, as much as the disk's read-ahead is. A hint. */
void davit_source_want(const DavitSource *source, uint64_t off, uint64_t n_bytes);
/* Give back the whole pages of a range that views may have touched: the mapping keeps, the pages
 * come again from the file. Nothing happens where there is no mapping. */
void davit_source_drop(const DavitSource *source, uint64_t off, uint64_t n_bytes);
/* Is the file still the one that was opened (size, time of change)? */
int32_t davit_source_check(const DavitSource *source, DavitReport *report);

/* The "io" suite's table. (static) */
const davit_io_suite *davit_io_suite_get(void);

#endif
