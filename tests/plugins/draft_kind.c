/* SPDX-License-Identifier: Apache-2.0
 * One component of a kind that is a draft, beside one of a settled kind. */
#include "toy.h"

#define DRAFT_KIND "vision-draft", 0, 1
DAVIT_COMPONENT(draft, DRAFT_KIND, "org.example.draft.vision", "x=y",
                DAVIT_INSPECT, 50, .iface = &toy_format);
DAVIT_COMPONENT(plain, DAVIT_KIND_FORMAT, "org.example.draft.format", "ext=toy",
                DAVIT_INSPECT, 50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.draft", "Draft", "Example", "1.0.0", "MIT", &draft, &plain);
