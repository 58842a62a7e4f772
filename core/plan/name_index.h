/* SPDX-License-Identifier: Apache-2.0
 * Names to numbers, for tens of thousands of names that are looked up by a part of a longer
 * text: no copy is made to look one up.
 */
#ifndef DAVIT_PLAN_NAME_INDEX_H
#define DAVIT_PLAN_NAME_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct DavitNameIndex DavitNameIndex;

/* (owned) Room for @most names. */
DavitNameIndex *davit_name_index_new(size_t most);
void davit_name_index_free(DavitNameIndex *index); /* NULL is fine */

/* Number of the name of @len bytes at @name, -1 = not there. */
int64_t davit_name_index_find(const DavitNameIndex *index, const char *name, size_t len);
/* The same, and a name that is not there is added and numbered, from 0 on: *out_place is where
 * the caller puts its own NUL-terminated copy, which stays borrowed. NULL = it was there. At most
 * as many names as there is room for. */
uint32_t davit_name_index_put(DavitNameIndex *index, const char *name, size_t len,
                              const char ***out_place);

#endif
