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
/* Add a name that is not there yet. @name stays borrowed, NUL-terminated. At most as many as
 * there is room for. */
void davit_name_index_add(DavitNameIndex *index, const char *name, uint32_t number);

#endif
