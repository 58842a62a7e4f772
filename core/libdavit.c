/* SPDX-License-Identifier: Apache-2.0
 * Anchor of the shared library: a library needs one source of its own, everything else comes
 * from the static core, which is linked in whole. */
#include "engine/libdavit.h"

typedef int davit_library_is_linked_from_the_core;
