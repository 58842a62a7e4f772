/* SPDX-License-Identifier: Apache-2.0
 * A manifest note that a program of the author's own wrote, wrongly. */
#include "toy.h"

DAVIT_NOTE_I(broken, DAVIT_NOTE_COMPONENT, "{\"id\":\"org.example.broken\",");
DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.json", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.json", "Json", "Example", "1.0.0", "MIT", &toy);
