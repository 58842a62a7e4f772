/* SPDX-License-Identifier: Apache-2.0
 * How much of a file lies in the page cache, by looking at some pages.
 */
#ifndef DAVIT_SOURCE_CACHED_H
#define DAVIT_SOURCE_CACHED_H

#include "source/source.h"

/* Looks at up to 512 pages of @source, evenly spread, without reading any; adds what it saw.
 * A source that is no file adds nothing. */
void davit_source_cached(const DavitSource *source, uint64_t *probed, uint64_t *cached);

#endif
