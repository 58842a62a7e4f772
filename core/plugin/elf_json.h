/* SPDX-License-Identifier: Apache-2.0
 * DavitElf to JSON and back, for the cache.
 */
#ifndef DAVIT_PLUGIN_ELF_JSON_H
#define DAVIT_PLUGIN_ELF_JSON_H

#include <jansson.h>

#include "plugin/elf.h"

/* (owned) NULL if a text is not UTF-8. */
json_t *davit_elf_to_json(const DavitElf *elf);
/* (owned) its notes borrow from @json; NULL for anything that davit_elf_to_json would not
 * write. */
DavitElf *davit_elf_from_json(const json_t *json);

#endif
