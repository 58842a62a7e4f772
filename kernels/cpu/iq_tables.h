/* SPDX-License-Identifier: Apache-2.0
 * Codebooks of GGUF's IQ1, IQ2 and IQ3 with a byte for each element, so that a point is one load.
 * Made from the SDK's (davit/help/iq.h, 2 or 4 bits for an element) when the plugin is opened and
 * not written afterwards. Element i of a point is byte i, the lowest first.
 */
#ifndef CPU_IQ_TABLES_H
#define CPU_IQ_TABLES_H

#include <stdint.h>

typedef struct cpu_iq_tables {
    uint64_t iq2_xxs[256], iq2_xs[512], iq2_s[1024]; /* 8, 25 or 43 */
    uint64_t iq1[2048];                              /* -8, 0 or 8: eighths */
    uint32_t iq3_xxs[256];                           /* 4 to 62 */
    uint32_t iq3_s[512];                             /* 1 to 15 */
} cpu_iq_tables;

extern cpu_iq_tables cpu_iq;

#endif
