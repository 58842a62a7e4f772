/* SPDX-License-Identifier: Apache-2.0
 * Small JSON documents (config.json, generation_config.json) as Jansson trees, in the
 * dialect that Python writes. Jansson holds no non-finite number, so NaN and Infinity
 * become what transformers 5 writes for them: {"__float__": "Infinity"}.
 */
#ifndef DAVIT_CONFIG_TREE_H
#define DAVIT_CONFIG_TREE_H

#include "base/report.h"

#define DAVIT_TREE_MAX_BYTES                                                             \
    (64ull << 20) /* of one document; real ones are below 1 MiB */

/* Returns: (owned) the tree of @text, whose top is an object, or NULL with records
 * (DAVIT_R_JSON_INVALID, DAVIT_R_CONFIG_INVALID when the top is something else). */
json_t *davit_tree_parse(const char *text, size_t len, const char *subject,
                         DavitReport *report);

/* Is @value a number (in either spelling of the non-finite ones)? *out filled if so. */
bool davit_tree_number(const json_t *value, double *out);

/* (owned) a real, or the object that stands for a non-finite one. */
json_t *davit_tree_real(double v);

/* Value at @path ("a.b") of an object; NULL if absent. (borrowed from @object) */
json_t *davit_tree_get(const json_t *object, const char *path, size_t path_len);

/* (owned, g_free) @value in one line for messages; long ones are cut by the report. */
char *davit_tree_text(const json_t *value);

#endif
