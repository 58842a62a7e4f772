/* SPDX-License-Identifier: Apache-2.0
 * No fault at all. */
#include "toy.h"

DAVIT_COMPONENT(good, DAVIT_KIND_FORMAT, "org.example.good",
                "ext=toy|toys;magic=@0:544f59", DAVIT_INSPECT | DAVIT_MAP, 60,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.good", "Good", "Example", "1.2.3", "Apache-2.0", &good);
