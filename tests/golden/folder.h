/* SPDX-License-Identifier: Apache-2.0
 * A scratch copy of a golden folder with one thing changed.
 */
#ifndef TESTS_GOLDEN_FOLDER_H
#define TESTS_GOLDEN_FOLDER_H

#include <glib.h>
#include <jansson.h>

/* (owned, folder_free) Copy of @dir with links followed, in a fresh temporary directory. */
char *folder_copy(const char *dir);
/* Remove the directory and free the string. */
void folder_free(char *path);

/* Apply a twin, refusal or spelling of golden.json to the copy: "config" replaces config.json,
 * "patch" is a JSON merge patch of it (RFC 7396), "file" and "edits" change bytes of a file. */
void folder_change(const char *path, const json_t *change);

#endif
