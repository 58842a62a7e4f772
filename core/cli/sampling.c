/* SPDX-License-Identifier: Apache-2.0
 * Which token of the likely ones: flags against what the model's files ask for. */
#include "cli/sampling.h"

#include <math.h>
#include <string.h>

void davit_sampling_from_flags(const DavitCall *call, davit_request_params *p)
{
    p->temperature = davit_call_number(call, "temperature");
    p->top_p = davit_call_number(call, "top-p");
    p->min_p = davit_call_number(call, "min-p");
    p->top_k = (int64_t)MIN(davit_call_count(call, "top-k"), INT32_MAX);
    p->repeat_penalty = davit_call_number(call, "repeat-penalty");
    p->presence_penalty = davit_call_number(call, "presence-penalty");
    p->seed = davit_call_count(call, "seed");
}

void davit_sampling_from_model(DavitCall *call, const davit_model *model,
                               davit_request_params *p)
{
    davit_model_sampling s = {.struct_size = sizeof s};
    davit_model_sampling_defaults(model, &s);
    if (strcmp(davit_call_text(call, "sampling"), "model") == 0) {
        if (!davit_call_has(call, "temperature"))
            p->temperature = isnan(s.temperature) ? 1 : s.temperature;
        if (!davit_call_has(call, "top-p") && !isnan(s.top_p))
            p->top_p = s.top_p;
        if (!davit_call_has(call, "top-k") && s.top_k >= 0)
            p->top_k = s.top_k;
        return;
    }
    if (s.do_sample && !davit_call_has(call, "temperature") && !davit_call_has(call, "sampling"))
        davit_report_add(call->report,
                         &(DavitFinding){.code = DAVIT_R_GENERATION_DEFAULTS,
                                         .severity = DAVIT_NOTE,
                                         .stage = "run",
                                         .subject = "generation_config.json",
                                         .message = "the model's files ask for sampling; the answer "
                                                    "is greedy",
                                         .hint = "--sampling model follows the files"});
}

int davit_sampling_check(DavitCall *call)
{
    const double top_p = davit_call_number(call, "top-p");
    const double min_p = davit_call_number(call, "min-p");
    if (davit_call_number(call, "temperature") < 0)
        return davit_call_usage(call, "--temperature", "the temperature is negative", NULL);
    if (!(top_p > 0 && top_p <= 1))
        return davit_call_usage(call, "--top-p", "the value is not in (0, 1]", NULL);
    if (!(min_p >= 0 && min_p <= 1))
        return davit_call_usage(call, "--min-p", "the value is not in [0, 1]", NULL);
    if (!(davit_call_number(call, "repeat-penalty") > 0))
        return davit_call_usage(call, "--repeat-penalty", "the value is not above 0", NULL);
    return 0;
}
