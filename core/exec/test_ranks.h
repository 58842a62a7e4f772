/* SPDX-License-Identifier: Apache-2.0
 * Tests of one golden model (its folder is the data) for several ranks.
 */
#ifndef DAVIT_EXEC_TEST_RANKS_H
#define DAVIT_EXEC_TEST_RANKS_H

/* Ranks load what their plans say, by every access; together they hold the stored matrices. */
void test_ranks_hold_the_whole(const void *path);

/* Plans for 2, 3, 4 and 8 ranks: no byte of a weight is taken twice or by nobody; or they are refused
 * with the counts that work, which do, and no others. */
void test_ranks_share_every_byte(const void *path);

#endif
