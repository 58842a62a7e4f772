/* SPDX-License-Identifier: Apache-2.0
 * Calls a function that nobody has: MISSING is its name. */
#include "toy.h"

int32_t MISSING(void);

static int32_t undef_probe(const davit_probe_in *in, davit_verdict *out,
                           const davit_sink *sink)
{
    return MISSING() ? DAVIT_E_IO : toy_probe(in, out, sink);
}

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example." NAME, "ext=toy", DAVIT_INSPECT, 50,
                .probe = undef_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle." NAME, NAME, "Example", "1.0.0", "MIT", &toy);
