/* SPDX-License-Identifier: Apache-2.0
 * Several kinds in one file, with start, create and their opposites counted. */
#include <davit/tokenizer.h>

#include "toy.h"

static int n_started;
static int instance = 41;

static int32_t multi_start(const davit_host *host, void **out_ctx, const davit_sink *sink)
{
    (void)host;
    (void)sink;
    n_started++;
    *out_ctx = &n_started;
    return DAVIT_OK;
}

static void multi_quiesce(void *ctx)
{
    --*(int *)ctx;
}

static int32_t multi_create(void *ctx, const davit_create_in *in, void **out_self,
                            const davit_sink *sink)
{
    const davit_cpu_suite *cpu;

    cpu = in->host->suite(in->host->ctx, "cpu", 1, 0);
    if (*(int *)ctx != 1 || !cpu || in->host->suite(in->host->ctx, "nothing", 1, 0))
        return davit_say(sink, DAVIT_E_MISMATCH,
                         &(davit_refusal){.code = DAVIT_R_START_FAILED,
                                          .message = "start was not called once before"});
    instance++;
    *out_self = &instance;
    return DAVIT_OK;
}

static void multi_destroy(void *self)
{
    --*(int *)self;
}

static const davit_tok_shape *const shapes[] = {NULL};
static const davit_tokenizer_iface tokenizer = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes),
    .shapes = shapes,
};

DAVIT_COMPONENT(multi_format, DAVIT_KIND_FORMAT, "org.example.multi.format", "ext=multi",
                DAVIT_INSPECT, 40, .probe = toy_probe, .create = multi_create,
                .destroy = multi_destroy, .iface = &toy_format);
DAVIT_COMPONENT(multi_tok, DAVIT_KIND_TOKENIZER, "org.example.multi.tok", "pretok=none",
                DAVIT_CONVERT | DAVIT_RUN, 50, .iface = &tokenizer);
DAVIT_PLUGIN_START("org.example.bundle.multi", "Multi", "Example", "0.1.0", "MIT",
                   multi_start, multi_quiesce, &multi_format, &multi_tok);
