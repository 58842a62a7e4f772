/* SPDX-License-Identifier: Apache-2.0
 * One declaration: a header is put before it by -include. */
extern int nothing;
