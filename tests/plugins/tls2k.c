/* SPDX-License-Identifier: Apache-2.0
 * More static thread-local storage than the loader keeps. */
#include "toy.h"

static __thread volatile char big[2048] __attribute__((tls_model("initial-exec")));

static int32_t tls_probe(const davit_probe_in *in, davit_verdict *out,
                         const davit_sink *sink)
{
    big[in->head_len % sizeof big]++;
    return toy_probe(in, out, sink);
}

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.tls", "ext=toy", DAVIT_INSPECT, 50,
                .probe = tls_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.tls", "Tls", "Example", "1.0.0", "MIT", &toy);
