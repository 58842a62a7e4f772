/* SPDX-License-Identifier: Apache-2.0
 * Opted in to fields of a host that does not exist yet. */
#define DAVIT_TARGET_MINOR 7
#include "toy.h"

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.minor", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.minor", "Minor", "Example", "1.0.0", "MIT", &toy);
