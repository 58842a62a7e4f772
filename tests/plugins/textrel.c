/* SPDX-License-Identifier: Apache-2.0
 * An absolute address inside the code: the loader would have to write to it. */
#include "toy.h"

__asm__(".text\n.quad davit_plugin_entry_v1\n");

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.textrel", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.textrel", "Textrel", "Example", "1.0.0", "MIT", &toy);
