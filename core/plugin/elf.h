/* SPDX-License-Identifier: Apache-2.0
 * Gate 2: what a shared object says about itself, read from its bytes without loading it.
 *
 * Everything is found through program headers and PT_DYNAMIC (section headers may be
 * stripped). Only objects of this host's class and byte order are read. Every offset is
 * checked against the file before it is followed: the loader itself dies of SIGBUS on a
 * truncated file.
 */
#ifndef DAVIT_PLUGIN_ELF_H
#define DAVIT_PLUGIN_ELF_H

#include "base/report.h"

#define DAVIT_ENTRY_SYMBOL "davit_plugin_entry_v1"

/* A note with owner "DAVIT". */
typedef struct DavitElfNote {
    uint32_t type;    /* DAVIT_NOTE_ */
    uint32_t n_text;  /* bytes, trailing NULs not counted */
    const char *text; /* (borrowed) inside the bytes that were read; not terminated */
} DavitElfNote;

typedef struct DavitElf {
    GArray *notes;      /* DavitElfNote, in file order */
    GPtrArray *needed;  /* char *: DT_NEEDED */
    GPtrArray *exports; /* char *: defined dynamic symbols, the first 256 */
    size_t n_exports;   /* all of them */
    bool has_entry;     /* DAVIT_ENTRY_SYMBOL is one of them */
    bool exec_stack;    /* PT_GNU_STACK is executable, or absent */
    bool text_relocations;
    bool static_tls; /* DF_STATIC_TLS */
    uint64_t n_tls;  /* bytes of PT_TLS in memory; 0 = none */
    char *runpath;   /* RUNPATH, else RPATH; NULL = none */
    char *build_id;  /* lower hex; NULL = none */
} DavitElf;

/* Read @len bytes. @subject names the file in records.
 * Returns: (owned) what was found, its notes borrowing from @bytes; or NULL.
 * Errors: DAVIT_E_CORRUPT truncated, not-elf; DAVIT_E_UNSUPPORTED wrong-class,
 * wrong-machine. */
DavitElf *davit_elf_read(const uint8_t *bytes, size_t len, const char *subject,
                         DavitReport *report);
void davit_elf_free(DavitElf *elf); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitElf, davit_elf_free)

/* What would harm the process if it were loaded: exec-stack, text-relocations,
 * static-tls, bad-runpath; all findings. Returns: DAVIT_OK or DAVIT_E_UNSUPPORTED. */
int32_t davit_elf_check(const DavitElf *elf, const char *subject, DavitReport *report);

#endif
