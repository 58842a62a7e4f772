/* SPDX-License-Identifier: Apache-2.0
 * Two components of one id in one file. */
#include "toy.h"

DAVIT_COMPONENT(first, DAVIT_KIND_FORMAT, "org.example.twice", "ext=one", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
DAVIT_COMPONENT(second, DAVIT_KIND_FORMAT, "org.example.twice", "ext=two", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.twice", "Twice", "Example", "1.0.0", "MIT", &first,
             &second);
