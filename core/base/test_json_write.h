/* SPDX-License-Identifier: Apache-2.0
 * The writer's tests, part of test_json. */
#ifndef DAVIT_BASE_TEST_JSON_WRITE_H
#define DAVIT_BASE_TEST_JSON_WRITE_H

void test_json_write_add(void);

#endif
