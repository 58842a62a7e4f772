/* SPDX-License-Identifier: Apache-2.0
 * Instance of an architecture component: the host and its config suite, nothing else. */
#include <string.h>

#include <davit/help/graph.h>
#include <davit/help/records.h>

typedef struct arch_self {
    const davit_host *host;
    const davit_config_suite *config;
} arch_self;

int32_t davit_arch_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                          const davit_sink *sink)
{
    const davit_host *host = in->host;
    const davit_config_suite *config = host->suite(host->ctx, "config", 1, 0);
    arch_self *self;

    (void)bundle_ctx;
    if (!config || !DAVIT_HAS(config, davit_config_suite, is_gguf))
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_NEEDS_UNMET,
                                          .subject = in->component,
                                          .expected = "suite config 1.0",
                                          .message =
                                              "the host does not offer a suite that "
                                              "architectures need"});
    self = host->alloc(host->ctx, sizeof *self, sizeof(void *));
    if (!self)
        return davit_say(sink, DAVIT_E_IO,
                         &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY,
                                          .subject = in->component,
                                          .message = "memory could not be allocated"});
    self->host = host;
    self->config = config;
    *out_self = self;
    return DAVIT_OK;
}

void davit_arch_destroy(void *self)
{
    arch_self *arch = self;

    if (arch)
        arch->host->free(arch->host->ctx, arch);
}

const davit_config_suite *davit_arch_config(void *self)
{
    const arch_self *arch = self;

    return arch->config;
}

davit_graph davit_graph_open(void *self, const davit_build_suite *build, davit_builder *b)
{
    davit_graph g = {.build = build, .b = b, .get = davit_arch_config(self)};

    g.config = build->config(b);
    return g;
}

uint32_t davit_act_kind(const char *name)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } kinds[] = {
        {"silu", DAVIT_ACT_SILU},
        {"swish", DAVIT_ACT_SILU},
        {"gelu", DAVIT_ACT_GELU_ERF},
        {"gelu_new", DAVIT_ACT_GELU_TANH},
        {"gelu_pytorch_tanh", DAVIT_ACT_GELU_TANH},
        {"gelu_fast", DAVIT_ACT_GELU_TANH},
        {"relu", DAVIT_ACT_RELU},
        {"relu2", DAVIT_ACT_RELU2},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return DAVIT_ACT_NONE;
}
