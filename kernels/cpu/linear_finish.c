/* SPDX-License-Identifier: Apache-2.0
 * y = dot * out_scale + bias, added to y if ADD; each step rounded on its own. Baseline
 * code, built without contraction, so that every entry rounds alike.
 */
#include "linear_finish.h"

#include <davit/help/ref.h>

#include "cpu.h"

void cpu_linear_finish(const davit_call *call, const float *dots, uint64_t stride,
                       uint64_t token, uint64_t n_tokens, uint64_t row, uint64_t n_rows)
{
    const davit_linear_attr *a = call->attr;
    const float *bias = davit_ref_weight_vector(call->weight[1]);
    const float scale = a->out_scale == 0.0f ? 1.0f : a->out_scale;

    for (uint64_t t = token; t < token + n_tokens; t++, dots += stride) {
        float *y = cpu_out(call, 0, t) + row;

        for (uint64_t r = 0; r < n_rows; r++) {
            const float v = dots[r] * scale + (bias ? bias[row + r] : 0.0f);

            y[r] = a->flags & DAVIT_LINEAR_ADD ? y[r] + v : v;
        }
    }
}
