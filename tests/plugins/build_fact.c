/* SPDX-License-Identifier: Apache-2.0
 * Its manifest says another processor (and -ffast-math, which only warns). */
#include "toy.h"

#undef DAVIT_BUILD_TAG
#define DAVIT_BUILD_TAG "arch=vax;bits=64;cc=pcc-1.0;fast_math=yes;sanitizer=none"
DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.fact", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.fact", "Fact", "Example", "1.0.0", "MIT", &toy);
