/* SPDX-License-Identifier: Apache-2.0
 * One row per field of a public struct; the rows are generated (scripts/abi-layout). */
#ifndef TESTS_ABI_LAYOUT_TABLES_H
#define TESTS_ABI_LAYOUT_TABLES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LayoutRow {
    const char *header; /* "davit/plugin.h" */
    const char *type;   /* "davit_bundle" */
    const char *field;
    size_t off;  /* bytes from the start of the struct */
    size_t size; /* bytes of the field */
} LayoutRow;

extern const LayoutRow layout_rows[]; /* by header, struct and field in source order */
extern const size_t n_layout_rows;

#ifdef __cplusplus
}
#endif
#endif
