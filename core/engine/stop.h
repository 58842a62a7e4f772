/* SPDX-License-Identifier: Apache-2.0
 * Stop strings over streamed text: what may be shown, and where the text ends.
 *
 * Text is held back only while it could still become a stop string.
 */
#ifndef DAVIT_ENGINE_STOP_H
#define DAVIT_ENGINE_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

typedef struct DavitStop DavitStop;

/* @strings: NULL-terminated, copied; NULL or empty list = never stops. Empty strings are
 * ignored. */
DavitStop *davit_stop_new(const char *const *strings);
void davit_stop_free(DavitStop *stop);

/* Add @n bytes; appends to @out what is now certain to be shown. Returns true when a stop
 * string is complete: @out then holds the text before it and nothing may be added. */
bool davit_stop_push(DavitStop *stop, const char *text, size_t n, GString *out);
/* No more text: append what was held back. */
void davit_stop_flush(DavitStop *stop, GString *out);

#endif
