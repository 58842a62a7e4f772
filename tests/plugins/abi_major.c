/* SPDX-License-Identifier: Apache-2.0
 * Built for the next ABI major. */
#include "toy.h"

#undef DAVIT_ABI_MAJOR
#define DAVIT_ABI_MAJOR 2
DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.major", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.major", "Major", "Example", "1.0.0", "MIT", &toy);
