/* SPDX-License-Identifier: Apache-2.0
 * A constructor that changes what belongs to the process. */
#include "toy.h"

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static void on_signal(int number)
{
    (void)number;
}

__attribute__((constructor)) static void change(void)
{
    umask(0);
    signal(SIGUSR2, on_signal);
    setlocale(LC_ALL, "C.UTF-8");
    if (chdir("/") != 0)
        abort();
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
}

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.side", "ext=toy", DAVIT_INSPECT, 50,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.side", "Side", "Example", "1.0.0", "MIT", &toy);
