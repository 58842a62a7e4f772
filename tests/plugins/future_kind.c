/* SPDX-License-Identifier: Apache-2.0
 * A kind that this host does not know, beside a component that it does. */
#include "toy.h"

#define FUTURE_KIND "vision-encoder", 1, 0
DAVIT_COMPONENT(future, FUTURE_KIND, "org.example.future.vision", "hf=Eye", DAVIT_RUN, 50,
                .iface = &toy_format);
DAVIT_COMPONENT(present, DAVIT_KIND_FORMAT, "org.example.future.format", "ext=toy",
                DAVIT_INSPECT, 50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.future", "Future", "Example", "1.0.0", "MIT", &future,
             &present);
