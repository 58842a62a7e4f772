/* SPDX-License-Identifier: Apache-2.0
 * A golden checkpoint opened and run through libdavit, for test_golden.
 */
#ifndef TESTS_GOLDEN_RUN_MODEL_H
#define TESTS_GOLDEN_RUN_MODEL_H

#include <stdbool.h>

#include <glib.h>

#include "engine/libdavit.h"

/* How the work is cut; 0 is the library's default. @activations and @layout are DAVIT_LIB_ values. */
typedef struct Setup {
    unsigned n_threads, chunk, block_tokens, activations, layout;
} Setup;

typedef struct Matrix {
    float *x; /* [rows, cols], owned: g_free */
    size_t rows, cols;
} Matrix;

/* NULL if it does not load; @records tell why. */
davit_model *open_model(const char *path, const Setup *setup, davit_records **records);
/* The same; NULL fails the test with the records. */
davit_model *must_open(const char *path, const Setup *setup);
/* (owned) The errors in @records, a line each. */
char *records_text(const davit_records *records);
davit_engine *open_engine(davit_model *model, const Setup *setup);

/* Logits of every position of @ids (int32_t) in an engine of their own. */
Matrix run_logits(davit_model *model, const Setup *setup, const GArray *ids);
/* (owned) ids that @engine answers to @ids; *out_reused: tokens whose keys it had. */
GArray *ask(davit_engine *engine, const GArray *ids, davit_request_params params,
            uint64_t *out_reused);
/* (owned) @n greedy ids in an engine of their own. */
GArray *run_greedy(davit_model *model, const Setup *setup, const GArray *ids, size_t n,
                   bool ignore_eos);

#endif
