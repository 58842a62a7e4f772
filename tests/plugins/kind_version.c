/* SPDX-License-Identifier: Apache-2.0
 * 0.x kinds must fit exactly, newer and older; a newer minor of a 1.x kind is fine. */
#include "toy.h"

#define NEWER_QUANT  "quant", 0, 9
#define OLDER_QUANT  "quant", 0, 0
#define NEWER_FORMAT "format", 1, 9
#define NEXT_FORMAT  "format", 2, 0
DAVIT_COMPONENT(newer_quant, NEWER_QUANT, "org.example.kv.newer", "method=x", DAVIT_RUN,
                50, .iface = &toy_format);
DAVIT_COMPONENT(older_quant, OLDER_QUANT, "org.example.kv.older", "method=x", DAVIT_RUN,
                50, .iface = &toy_format);
DAVIT_COMPONENT(newer_format, NEWER_FORMAT, "org.example.kv.format", "ext=toy",
                DAVIT_INSPECT, 50, .probe = toy_probe, .iface = &toy_format);
DAVIT_COMPONENT(next_format, NEXT_FORMAT, "org.example.kv.next", "ext=toy", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.kv", "Versions", "Example", "1.0.0", "MIT", &newer_quant,
             &older_quant, &newer_format, &next_format);
