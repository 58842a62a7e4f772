/* SPDX-License-Identifier: Apache-2.0
 * Writing .npy files (NumPy format version 1.0), float32 or raw bytes.
 */
#ifndef DAVIT_CLI_NPY_H
#define DAVIT_CLI_NPY_H

#include <stdio.h>

#include "cli/command.h"

/* A file that gets its final name only when it is whole. */
typedef struct DavitOut {
    FILE *file;
    char *path; /* final name, links followed; NULL = stdout */
    char *temp; /* name while it is written; NULL = written in place (a device, a pipe) */
} DavitOut;

/* Open @path, or stdout for "-" or NULL. What exists and is no regular file is written in
 * place; a link is followed. Errors: a record. */
int32_t davit_outfile_open(DavitOut *out, const char *path, DavitReport *report);
/* Close; on @ok give the file its name, else remove it. Returns a status. */
int32_t davit_outfile_close(DavitOut *out, bool ok, DavitReport *report);

/* Header of an array of little-endian float32 in C order. */
bool davit_npy_header(FILE *file, const uint64_t *shape, uint32_t rank);

#endif
