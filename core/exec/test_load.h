/* SPDX-License-Identifier: Apache-2.0
 * Models for the tests of this folder, opened and planned through the real plugins.
 */
#ifndef DAVIT_EXEC_TEST_LOAD_H
#define DAVIT_EXEC_TEST_LOAD_H

#include "exec/exec.h"

#define MIB (1ull << 20)

typedef struct TestLoad {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitReport *report;
    DavitPlan *plan; /* NULL = refused */
    bool shared;     /* registry, checkpoint and settings are another's */
} TestLoad;

TestLoad test_load_open(const char *path, const DavitPlanOptions *options);
/* Another plan of an open model, which outlives it. */
TestLoad test_load_again(const TestLoad *open, const DavitPlanOptions *options);
void test_load_clear(TestLoad *load);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TestLoad, test_load_clear)

bool test_load_says(const DavitReport *report, uint32_t code);

/* (owned by test_model_remove) A directory with a llama of one layer whose embedding has @vocab
 * rows of 64, all zeros and sparse on disk. */
char *test_large_model(uint64_t vocab);
void test_model_remove(char *dir);

#endif
