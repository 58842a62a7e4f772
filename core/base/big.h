/* SPDX-License-Identifier: Apache-2.0
 * Memory for hash tables of megabytes: on huge pages where the system has them, since
 * every lookup is another page.
 */
#ifndef DAVIT_BASE_BIG_H
#define DAVIT_BASE_BIG_H

#include <stddef.h>

/* Returns: (owned, davit_big_free) @n items of @size bytes, all zero, or NULL. Pages that
 * are never touched are never made. */
void *davit_big_zeroed(size_t n, size_t size);
void davit_big_free(void *p); /* NULL is fine */

#endif
