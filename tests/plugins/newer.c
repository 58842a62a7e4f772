/* SPDX-License-Identifier: Apache-2.0
 * The same component as good.c in a later version: one of them shadows the other. */
#include "toy.h"

DAVIT_COMPONENT(good, DAVIT_KIND_FORMAT, "org.example.good", "ext=toy",
                DAVIT_INSPECT | DAVIT_MAP, 60, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.good", "Good", "Example", "1.10.0", "Apache-2.0", &good);
