/* SPDX-License-Identifier: Apache-2.0
 * Little-endian reads, checked arithmetic, and the one way from shape to bytes.
 * Header only; needs no symbol. Integers of files are read with these, never through a
 * cast pointer; sizes of files are added and multiplied with these, never with + and *.
 */
#ifndef DAVIT_HELP_BYTES_H
#define DAVIT_HELP_BYTES_H

#include <stdint.h>

/* @p has at least 2, 4, 8 bytes; no alignment needed. */
static inline uint16_t davit_bytes_u16le(const uint8_t *p)
{
    return (uint16_t)(p[0] | (uint16_t)(p[1] << 8));
}

static inline uint32_t davit_bytes_u32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static inline uint64_t davit_bytes_u64le(const uint8_t *p)
{
    return (uint64_t)davit_bytes_u32le(p) | (uint64_t)davit_bytes_u32le(p + 4) << 32;
}

/* 1 and *out filled (which may be one of the operands), or 0 when 64 bits do not hold it.
 */
static inline int davit_bytes_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r = a + b;

    if (r < a)
        return 0;
    *out = r;
    return 1;
}

static inline int davit_bytes_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    /* no division where both are of 32 bits, as nearly all are */
    if ((a | b) >> 32 != 0 && a != 0 && b > UINT64_MAX / a)
        return 0;
    *out = a * b;
    return 1;
}

/* Next multiple of @align, a power of two that is not 0. */
static inline int davit_bytes_align(uint64_t n, uint64_t align, uint64_t *out)
{
    uint64_t r;

    if (!davit_bytes_add(n, align - 1, &r))
        return 0;
    *out = r & ~(align - 1);
    return 1;
}

/* Does [off, off + n) lie inside @size bytes? */
static inline int davit_bytes_inside(uint64_t off, uint64_t n, uint64_t size)
{
    return off <= size && n <= size - off;
}

#define DAVIT_SHAPE_OK       0
#define DAVIT_SHAPE_OVERFLOW 1 /* the product does not fit in 63 bits */
#define DAVIT_SHAPE_BLOCK    2 /* the last axis is not a whole number of blocks */

/* Elements and bytes of a tensor: @rank dimensions, outermost first, cut into blocks of
 * @block_elems elements (@block_bytes bytes each) along the last axis. Rank 0 is one
 * element. Both block numbers are at least 1. Returns: DAVIT_SHAPE_OK and *out_bytes
 * filled, or why not. */
static inline int davit_bytes_of_shape(const uint64_t *shape, uint32_t rank,
                                       uint64_t block_elems, uint64_t block_bytes,
                                       uint64_t *out_bytes)
{
    uint64_t last = rank ? shape[rank - 1] : 1;
    uint64_t n_elems = 1;
    uint64_t n_bytes;

    for (uint32_t i = 0; i < rank; i++)
        if (!davit_bytes_mul(n_elems, shape[i], &n_elems) || n_elems > INT64_MAX)
            return DAVIT_SHAPE_OVERFLOW;
    if (block_elems > 1) {
        if (last % block_elems != 0)
            return DAVIT_SHAPE_BLOCK;
        n_elems /= block_elems;
    }
    if (!davit_bytes_mul(n_elems, block_bytes, &n_bytes) ||
        n_bytes > INT64_MAX)
        return DAVIT_SHAPE_OVERFLOW;
    *out_bytes = n_bytes;
    return DAVIT_SHAPE_OK;
}

#endif
