/* SPDX-License-Identifier: Apache-2.0
 * Extended grapheme clusters (Unicode Standard Annex 29).
 */
#ifndef DAVIT_BASE_CLUSTER_H
#define DAVIT_BASE_CLUSTER_H

#include <stddef.h>

/* End of the cluster that begins at @from < @len; @from is a boundary. Pairs of regional
 * indicators are not joined: the one user looks only at clusters below 6 bytes. */
size_t davit_cluster_end(const char *text, size_t len, size_t from);

#endif
