/* SPDX-License-Identifier: Apache-2.0
 * Its manifest says that the whole object was built for x86-64-v4. */
#include "toy.h"

#undef DAVIT_BUILD_TAG
#define DAVIT_BUILD_TAG                                                                   \
    "arch=" DAVIT_BUILD_ARCH ";bits=64;cc=" DAVIT_BUILD_CC ";sanitizer=none;cpu=x86-64-v4"
DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.cpu_fact", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.cpu_fact", "CPU fact", "Example", "1.0.0", "MIT", &toy);
