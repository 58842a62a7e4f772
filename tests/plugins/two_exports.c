/* SPDX-License-Identifier: Apache-2.0
 * Exports a helper beside the entry: it can clash with a name of the host or a library.
 */
#include "toy.h"

DAVIT_EXPORT int32_t helper(void);

int32_t helper(void)
{
    return DAVIT_OK;
}

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.exports", "ext=toy", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.exports", "Exports", "Example", "1.0.0", "MIT", &toy);
