/* SPDX-License-Identifier: Apache-2.0
 * The dtype names that davit itself knows: scalars ("bf16/1") and GGUF blocks ("q4_k/1").
 * A format may bring names of its own; those have no entry here and only their block.
 * Facts: spec of the safetensors header and of ggml's type table, as each README says.
 */
#ifndef DAVIT_BASE_DTYPE_H
#define DAVIT_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

typedef enum DavitDtypeClass {
    DAVIT_DTYPE_FLOAT, /* plain floating point, 8 bits and up */
    DAVIT_DTYPE_INTEGER,
    DAVIT_DTYPE_BOOL,
    DAVIT_DTYPE_COMPLEX,
    DAVIT_DTYPE_PACKED, /* sub-byte floats: F4, F6 */
    DAVIT_DTYPE_BLOCK,  /* quantised blocks of GGUF */
} DavitDtypeClass;

typedef struct DavitDtype {
    const char *name;     /* "f32/1"; (static) */
    uint32_t block_elems; /* elements of a block along the last axis; 1 = plain */
    uint32_t block_bytes;
    DavitDtypeClass class_;
} DavitDtype;

/* (static) NULL for a name that davit does not know. */
const DavitDtype *davit_dtype_find(const char *name);
/* All of them, in listing order. (static) */
const DavitDtype *davit_dtype_all(size_t *out_n);

#endif
