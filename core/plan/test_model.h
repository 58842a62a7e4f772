/* SPDX-License-Identifier: Apache-2.0
 * Tiny checkpoints for the tests of this folder: a directory with config.json and one
 * safetensors file of zeros, opened through the real plugins; and a small architecture
 * and kernels table of the tests' own.
 */
#ifndef DAVIT_PLAN_TEST_MODEL_H
#define DAVIT_PLAN_TEST_MODEL_H

#include "plan/draft.h"

typedef struct TestTensor {
    const char *name;
    const char *dtype; /* "F32" "BF16" ... as in safetensors */
    uint32_t rank;
    uint64_t shape[4];
} TestTensor;

typedef struct TestModel {
    char *dir;
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitReport *report; /* of everything done with the model */
    DavitToolbox tools;
    DavitPlanOptions options; /* purposes MAP | RUN, float32 activations */
} TestModel;

/* The checkpoint alone; NULL-named tensors are left out. Asserts that it opens. */
TestModel *test_model_new(const char *config, const TestTensor *tensors,
                          size_t n_tensors);
void test_model_free(TestModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TestModel, test_model_free)

/* Plan with the model's tools and options. */
DavitPlan *test_model_plan(TestModel *model);

/* First record with @code and, if not NULL, this subject. (borrowed) NULL if none. */
const DavitRecord *test_find(const TestModel *model, const char *code,
                             const char *subject);

/* A two-layer decoder: V 8, H 4, L 2, two heads of 2, I 6. (static) tensors in Hugging
 * Face names with prefix "model."; tests copy and change them. */
extern const TestTensor test_tiny[];
extern const size_t test_tiny_count;
extern const char *const test_tiny_config;
/* Its architecture ("test.arch"), whose forward reads every slot. */
extern const davit_arch_iface test_arch;
/* Kernels for the ops that the forward uses: take anything plain, do nothing. */
extern const davit_kernels_iface test_kernels;

/* Parts for kernels tables of a test's own. */
void test_run_nothing(const davit_call *call, uint32_t phase, uint64_t first,
                      uint64_t count, uint32_t worker, void *queue);
uint64_t test_state_size(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                         const davit_sink *sink); /* float32 and float16 */
#define TEST_ENTRY(op_, name_, layouts_, score_)                                         \
    {                                                                                    \
        .struct_size = DAVIT_END(davit_kernel_entry, run), .op = op_, .name = name_,     \
        .layouts = layouts_, .attr_size = sizeof(davit_attn_attr), .score = score_,      \
        .run = test_run_nothing                                                          \
    }

/* Replace the model's kernels, or add to them; @id NULL = none. */
void test_model_kernels(TestModel *model, const char *id,
                        const davit_kernels_iface *iface, bool append);

#endif
