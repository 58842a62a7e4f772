/* SPDX-License-Identifier: Apache-2.0
 * No fault: zero bytes lie between its notes, as sanitizers and linkers may put them. */
#include "toy.h"

#define GAP(name)                                                                        \
    static const uint32_t name[21]                                                       \
        __attribute__((used, section(".note.davit"), aligned(4))) = {0}

GAP(gap_before);
DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.padded", "ext=toy", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
GAP(gap_between);
DAVIT_PLUGIN("org.example.bundle.padded", "Padded", "Example", "1.0.0", "MIT", &toy);
GAP(gap_after);
