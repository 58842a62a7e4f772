/* SPDX-License-Identifier: Apache-2.0
 * From the text of dlerror() to a record that names the cause.
 */
#ifndef DAVIT_PLUGIN_DL_ERROR_H
#define DAVIT_PLUGIN_DL_ERROR_H

#include "base/report.h"

/* @text as dlerror() gave it for @path; NULL = it gave none. Adds one of missing-dep,
 * undefined-symbol, static-tls, truncated, dlopen-failed. Returns: DAVIT_E_UNSUPPORTED.
 */
int32_t davit_dl_error(const char *path, const char *text, DavitReport *report);

#endif
