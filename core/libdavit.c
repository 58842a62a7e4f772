/* SPDX-License-Identifier: Apache-2.0
 * Anchor of the shared library: everything else comes from the static core. */
#include "base/report.h"

/* A translation unit may not be empty; the link keeps the whole archive. */
extern int davit_lib_anchor;
int davit_lib_anchor = 0;
