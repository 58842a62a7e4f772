/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/speed.h"

#include <glib.h>

const DavitReadSpeed davit_read_speeds[DAVIT_READ_SPEEDS] = {
    {"page cache", 10},       {"NVMe disk, PCIe 4", 6},   {"NVMe disk, PCIe 3", 3},
    {"SATA disk", 0.5},       {"25 Gbit/s network", 3},   {"10 Gbit/s network", 1.2},
    {"1 Gbit/s network", 0.12}};

double davit_speed_seconds(uint64_t n, double gb_s)
{
    return (double)n / (gb_s * 1e9);
}

double davit_load_seconds(const DavitLoadBytes *b, double read_gb_s)
{
    const double read = davit_speed_seconds(b->read, read_gb_s);
    const double make = (davit_speed_seconds(b->copy, DAVIT_SPEED_COPY) +
                         davit_speed_seconds(b->pack, DAVIT_SPEED_PACK) +
                         davit_speed_seconds(b->decode, DAVIT_SPEED_DECODE)) /
                        MAX(b->n_threads, 1u);
    const double upload = davit_speed_seconds(b->upload, DAVIT_SPEED_UPLOAD);

    return MAX(MAX(read, make), upload);
}
