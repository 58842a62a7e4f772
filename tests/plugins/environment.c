/* SPDX-License-Identifier: Apache-2.0
 * Components that lack something of the machine, one each; they say so in create. */
#include "toy.h"

#define LACKS(sym, id_, code_, subject_, expected_, found_)                              \
    static int32_t sym##_create(void *ctx, const davit_create_in *in, void **out_self,   \
                                const davit_sink *sink)                                  \
    {                                                                                    \
        (void)ctx;                                                                       \
        (void)in;                                                                        \
        (void)out_self;                                                                  \
        return davit_say(sink, DAVIT_E_UNSUPPORTED,                                      \
                         &(davit_refusal){.code = code_,                                 \
                                          .flags = DAVIT_REFUSAL_ENVIRONMENT,            \
                                          .subject = subject_,                           \
                                          .expected = expected_,                         \
                                          .found = found_,                               \
                                          .message = "the machine lacks what it needs",  \
                                          .hint = "use another machine"});               \
    }                                                                                    \
    DAVIT_COMPONENT(sym, DAVIT_KIND_FORMAT, id_, "ext=toy", DAVIT_INSPECT, 50,           \
                    .probe = toy_probe, .create = sym##_create, .destroy = forget,       \
                    .iface = &toy_format)

static void forget(void *self)
{
    (void)self;
}

LACKS(cpu, "org.example.environment.cpu", DAVIT_R_CPU_UNSUPPORTED, "processor", "amx", "none");
LACKS(driver, "org.example.environment.driver", DAVIT_R_DRIVER_TOO_OLD, "driver", ">= 12.4",
      "12.2");
LACKS(device, "org.example.environment.device", DAVIT_R_DEVICE_ARCH, "device", "sm_90",
      "sm_75");
LACKS(lost, "org.example.environment.lost", DAVIT_R_DEVICE_LOST, "device", "an answer",
      "none");
DAVIT_PLUGIN("org.example.bundle.environment", "Environment", "Example", "1.0.0", "MIT", &cpu,
             &driver, &device, &lost);
