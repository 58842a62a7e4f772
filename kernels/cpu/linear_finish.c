/* SPDX-License-Identifier: Apache-2.0
 * y = dot * out_scale + bias, added to y if ADD; each step rounded on its own. Baseline
 * code, built without contraction, so that every entry rounds alike.
 */
#include "linear_finish.h"

#include <string.h>

#include <davit/help/ref.h>

#include "cpu.h"

#define MAX_ROWS 8

/* @n_rows is a constant where it matters, so that the loops become vectors. */
static inline __attribute__((always_inline)) void
finish_rows(const davit_call *call, const float *dots, uint64_t stride, uint64_t token,
            uint64_t n_tokens, uint64_t row, uint64_t n_rows)
{
    const davit_linear_attr *a = call->attr;
    const float *given = davit_ref_weight_vector(call->weight[1]);
    const float scale = a->out_scale == 0.0f ? 1.0f : a->out_scale;
    const int add = (a->flags & DAVIT_LINEAR_ADD) != 0;
    float bias[MAX_ROWS] = {0}, v[MAX_ROWS];

    for (uint64_t r = 0; given && r < n_rows; r++)
        bias[r] = given[row + r];
    for (uint64_t t = token; t < token + n_tokens; t++, dots += stride) {
        float *y = cpu_out(call, 0, t) + row;

        for (uint64_t r = 0; r < n_rows; r++)
            v[r] = dots[r] * scale + bias[r];
        for (uint64_t r = 0; add && r < n_rows; r++)
            v[r] = y[r] + v[r];
        memcpy(y, v, n_rows * sizeof *v);
    }
}

void cpu_linear_finish(const davit_call *call, const float *dots, uint64_t stride,
                       uint64_t token, uint64_t n_tokens, uint64_t row, uint64_t n_rows)
{
    if (n_rows == 8)
        finish_rows(call, dots, stride, token, n_tokens, row, 8);
    else if (n_rows == 4)
        finish_rows(call, dots, stride, token, n_tokens, row, 4);
    else
        finish_rows(call, dots, stride, token, n_tokens, row, n_rows);
}
