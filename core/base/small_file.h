/* SPDX-License-Identifier: Apache-2.0
 * A small file, read whole: settings and the like, on paths that anybody may have put anything
 * on. Only a regular file is read: a FIFO would wait for a writer, a device would never end. */
#ifndef DAVIT_BASE_SMALL_FILE_H
#define DAVIT_BASE_SMALL_FILE_H

#include <stddef.h>

#include <glib.h>

/* Returns: (owned) the bytes of @path and a NUL after them, their number in *out_len. NULL with
 * *error of G_FILE_ERROR: NOENT and NOTDIR if there is none, INVAL if it is no regular file,
 * FAILED if it is longer than @max bytes, else as the system says. */
char *davit_small_file_read(const char *path, size_t max, size_t *out_len, GError **error);

#endif
