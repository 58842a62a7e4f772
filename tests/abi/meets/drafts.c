/* SPDX-License-Identifier: Apache-2.0
 * The 0.x kinds in a minor before and after the host's: all refused. */
#include <davit/plugin.h>

static const uint64_t table = sizeof table; /* never looked at */

#define BEFORE(kind) #kind, 0, 0
#define AFTER(kind)  #kind, 0, 99
#define DRAFT(kind)                                                                       \
    DAVIT_COMPONENT(kind##_before, BEFORE(kind), "org.example.draft." #kind ".before", "x=y",\
                    DAVIT_RUN, 50, .iface = &table);                                      \
    DAVIT_COMPONENT(kind##_after, AFTER(kind), "org.example.draft." #kind ".after", "x=y",\
                    DAVIT_RUN, 50, .iface = &table)

DRAFT(arch);
DRAFT(quant);
DRAFT(kernels);
DRAFT(comm);
DAVIT_PLUGIN("org.example.draft", "Drafts", "Example", "1.0.0", "Apache-2.0", &arch_before,
             &arch_after, &quant_before, &quant_after, &kernels_before, &kernels_after,
             &comm_before, &comm_after);
