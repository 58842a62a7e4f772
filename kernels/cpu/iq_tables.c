/* SPDX-License-Identifier: Apache-2.0
 * Fills cpu_iq. Baseline code. */
#include "iq_tables.h"

#include <davit/help/iq.h>

cpu_iq_tables cpu_iq;

/* Eight elements of two bits, through @values. */
static uint64_t eight(uint32_t point, const int8_t *values)
{
    uint64_t bytes = 0;

    for (int i = 0; i < 8; i++)
        bytes |= (uint64_t)(uint8_t)values[point >> 2 * i & 3] << 8 * i;
    return bytes;
}

static uint32_t four(uint32_t point, const int8_t *values)
{
    uint32_t bytes = 0;

    for (int i = 0; i < 4; i++)
        bytes |= (uint32_t)(uint8_t)values[point >> 4 * i & 7] << 8 * i;
    return bytes;
}

__attribute__((constructor)) static void fill(void)
{
    static const int8_t iq2[] = {8, 25, 43, 0}, iq1[] = {-8, 0, 8, 16};
    static const int8_t iq3_xxs[] = {4, 12, 20, 28, 36, 44, 52, 62};
    static const int8_t iq3_s[] = {1, 3, 5, 7, 9, 11, 13, 15};

    for (int i = 0; i < 256; i++) {
        cpu_iq.iq2_xxs[i] = eight(davit_iq2_xxs_grid[i], iq2);
        cpu_iq.iq3_xxs[i] = four(davit_iq3_xxs_grid[i], iq3_xxs);
    }
    for (int i = 0; i < 512; i++) {
        cpu_iq.iq2_xs[i] = eight(davit_iq2_xs_grid[i], iq2);
        cpu_iq.iq3_s[i] = four(davit_iq3_s_grid[i], iq3_s);
    }
    for (int i = 0; i < 1024; i++)
        cpu_iq.iq2_s[i] = eight(davit_iq2_s_grid[i], iq2);
    for (int i = 0; i < 2048; i++)
        cpu_iq.iq1[i] = eight(davit_iq1_grid[i], iq1);
}
