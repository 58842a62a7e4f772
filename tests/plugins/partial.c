/* SPDX-License-Identifier: Apache-2.0
 * Refusals known without input: one component refuses to run, one refuses everything. */
#include "toy.h"

DAVIT_REFUSES(no_run, "org.example.partial", DAVIT_RUN, DAVIT_R_FORWARD_ABSENT,
              "ToyForCausalLM", "the weight map is complete, the forward is absent",
              "inspect and plan work");
static const davit_refusal *const some[] = {&no_run, NULL};
DAVIT_COMPONENT(partial, DAVIT_KIND_FORMAT, "org.example.partial", "ext=part",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_RUN, 50, .probe = toy_probe,
                .refuses = some, .iface = &toy_format);

DAVIT_REFUSES(no_pickle, "org.example.refuses", DAVIT_INSPECT | DAVIT_MAP,
              DAVIT_R_PICKLE_UNSAFE, "*.bin", "pickle can run code",
              "convert to safetensors");
static const davit_refusal *const all[] = {&no_pickle, NULL};
DAVIT_COMPONENT(refuses, DAVIT_KIND_FORMAT, "org.example.refuses", "ext=bin",
                DAVIT_INSPECT | DAVIT_MAP, 50, .flags = DAVIT_COMPONENT_FINAL_REFUSER,
                .probe = toy_probe, .refuses = all, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.partial", "Partial", "Example", "1.0.0", "MIT", &partial,
             &refuses);
