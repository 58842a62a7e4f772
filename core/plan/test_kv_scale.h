/* SPDX-License-Identifier: Apache-2.0
 * Tests of plan/kv_scale.h, which run in test_quant. */
#ifndef DAVIT_PLAN_TEST_KV_SCALE_H
#define DAVIT_PLAN_TEST_KV_SCALE_H

void test_kv_scale_add(void);

#endif
