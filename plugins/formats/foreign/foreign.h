/* SPDX-License-Identifier: Apache-2.0
 * What the files of this plugin share. Reading order: foreign.c, foreign_files.c,
 * foreign_dirs.c. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <davit/format.h>
#include <davit/help/records.h>

/* One thing that is recognised and not read. */
typedef struct foreign_kind {
    const char *found; /* its name */
    const char *message;
    const char *hint;
    uint32_t code;
} foreign_kind;

/* NULL if the first bytes are of no known foreign file. (static) */
const foreign_kind *foreign_file(const davit_probe_in *in);
/* The same for the names of a directory. */
const foreign_kind *foreign_directory(const davit_probe_in *in);

int foreign_ends_with(const char *name, const char *suffix);
int foreign_starts_with(const char *name, const char *prefix);

#endif
