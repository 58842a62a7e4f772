/* SPDX-License-Identifier: Apache-2.0
 * The view of a file that elf.c (program headers, notes) and elf_dynamic.c (PT_DYNAMIC,
 * symbols) share. */
#ifndef DAVIT_PLUGIN_ELF_INTERNAL_H
#define DAVIT_PLUGIN_ELF_INTERNAL_H

#include <elf.h>

#include "plugin/elf.h"

typedef struct ElfView {
    const uint8_t *bytes; /* [len] (borrowed) */
    size_t len;
    Elf64_Phdr *phdrs; /* [n_phdrs] checked: every PT_LOAD lies inside the file */
    size_t n_phdrs;
    const char *subject;
    DavitReport *report;
} ElfView;

/* One record with DAVIT_E_CORRUPT; returns that status. Texts may be NULL. */
int32_t elf_bad(const ElfView *view, uint32_t code, const char *expected,
                const char *found, const char *message);

/* Fill @elf from PT_DYNAMIC. Errors: DAVIT_E_CORRUPT with a record. */
int32_t elf_read_dynamic(const ElfView *view, DavitElf *elf);

#endif
