/* SPDX-License-Identifier: Apache-2.0
 * How long a load takes, from bytes that are known and speeds that are stated: nominal ones of
 * whole classes of hardware, or the user's own. Nothing is measured here; doctor --deep measures
 * a disk.
 */
#ifndef DAVIT_PLAN_SPEED_H
#define DAVIT_PLAN_SPEED_H

#include <stdint.h>

/* Where a model's bytes may come from. */
typedef struct DavitReadSpeed {
    const char *from; /* "NVMe disk, PCIe 3" */
    double gb_s;      /* nominal, 1e9 bytes a second */
} DavitReadSpeed;

#define DAVIT_READ_SPEEDS 7
extern const DavitReadSpeed davit_read_speeds[DAVIT_READ_SPEEDS]; /* fastest of a kind first */
#define DAVIT_READ_CACHED 0 /* of davit_read_speeds: the page cache */
#define DAVIT_READ_DISK   2 /* a disk of which nothing is known: not the fastest of its kind */

/* Bytes written by one thread in a second, nominal, 1e9: stored bytes, packed ones, decoded ones;
 * and over the bus to a device. */
#define DAVIT_SPEED_COPY   4.0
#define DAVIT_SPEED_PACK   1.0
#define DAVIT_SPEED_DECODE 2.0
#define DAVIT_SPEED_UPLOAD 12.0

/* What a load moves. */
typedef struct DavitLoadBytes {
    uint64_t read;                  /* from files, into memory of the program */
    uint64_t copy, pack, decode;    /* written by threads that make weights */
    uint64_t upload;                /* to a device */
    unsigned n_threads;             /* that read and make, 0 counts as 1 */
} DavitLoadBytes;

/* Seconds for @n bytes at @gb_s, 0 where nothing moves. @gb_s > 0. */
double davit_speed_seconds(uint64_t n, double gb_s);
/* Seconds of a load: reading and making go on at the same time, so the slower of them, and the
 * upload when it is slower still. @read_gb_s > 0. */
double davit_load_seconds(const DavitLoadBytes *bytes, double read_gb_s);

#endif
