/* SPDX-License-Identifier: Apache-2.0 */
#include "rival.h"

BenchRival *bench_rival_new(const char *layout, const uint8_t *rows, uint64_t n_rows,
                            uint64_t n_cols, const float *x, uint64_t n_tokens,
                            unsigned n_copies, unsigned n_threads, int repack)
{
    (void)layout, (void)rows, (void)n_rows, (void)n_cols, (void)x, (void)n_tokens;
    (void)n_copies, (void)n_threads, (void)repack;
    return NULL;
}

void bench_rival_run(BenchRival *rival)
{
    (void)rival;
}

const float *bench_rival_output(const BenchRival *rival)
{
    (void)rival;
    return NULL;
}

void bench_rival_free(BenchRival *rival)
{
    (void)rival;
}
