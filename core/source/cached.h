/* SPDX-License-Identifier: Apache-2.0
 * How much of a file lies in the page cache, by looking at some pages.
 */
#ifndef DAVIT_SOURCE_CACHED_H
#define DAVIT_SOURCE_CACHED_H

#include "source/source.h"

/* Looks at up to 512 pages of @source, evenly spread, without reading any; adds what it saw.
 * A source that is no file adds nothing. */
void davit_source_cached(const DavitSource *source, uint64_t *probed, uint64_t *cached);

/* Looks at up to 16 pages of a range. Returns: true if the page cache had all of them; false also
 * for a source that is no file. */
bool davit_source_range_cached(const DavitSource *source, uint64_t off, uint64_t n_bytes);

#endif
