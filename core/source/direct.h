/* SPDX-License-Identifier: Apache-2.0
 * A second descriptor of a file, for reads that go past the page cache.
 */
#ifndef DAVIT_SOURCE_DIRECT_H
#define DAVIT_SOURCE_DIRECT_H

#include "source/source.h"

/* Such reads start, end and lie in memory at multiples of this: at least the block of every
 * disk and file system that davit was tried on. */
#define DAVIT_DIRECT_ALIGN 4096u

/* Opens the very file of @source with O_DIRECT and reads one block at a non-zero offset: some
 * file systems open what they cannot read. Returns: a descriptor for the caller to close, or
 * -1: no file, a file of less than two blocks, another file under that name by now, refused. */
int davit_source_open_direct(const DavitSource *source);

#endif
