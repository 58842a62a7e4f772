/* SPDX-License-Identifier: Apache-2.0
 * A stranger that uses one of davit's ids. */
#include "toy.h"

DAVIT_COMPONENT(stranger, DAVIT_KIND_FORMAT, "org.davit.format.gguf", "ext=gguf",
                DAVIT_INSPECT, 100, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.reserved", "Reserved", "Example", "1.0.0", "MIT",
             &stranger);
