/* SPDX-License-Identifier: Apache-2.0
 * org.davit.kernels.cpu: the table of entries and the plugin's door. Baseline code; no
 * instruction-set flags on this file. */
#include "cpu.h"

#include <stdlib.h>

#include "kv.h"
#include "layers.h"
#include "linear.h"
#include "pack_codes.h"

static const davit_kernel_entry *const entries[] = {
    &cpu_embed_scalar,
    &cpu_rmsnorm_scalar,
    &cpu_layernorm_scalar,
    &cpu_add_scalar,
    &cpu_scale_scalar,
    &cpu_softcap_scalar,
    &cpu_act_scalar,
    &cpu_glu_scalar,
    &cpu_rope_angles_scalar,
    &cpu_rope_scalar,
    &cpu_kv_append_scalar,
    &cpu_attn_scalar,
    &cpu_moe_route_scalar,
    &cpu_moe_route_once,
    &cpu_moe_ffn_scalar,
    &cpu_gather_rows_scalar,
    &cpu_add_avx2_entry,
    &cpu_scale_avx2_entry,
    &cpu_softcap_avx2_entry,
    &cpu_act_avx2_entry,
    &cpu_glu_avx2_entry,
    &cpu_rmsnorm_avx2_entry,
    &cpu_layernorm_avx2_entry,
    &cpu_rope_avx2_entry,
    &cpu_attn_avx2_entry,
    &cpu_kv_append_avx2_entry,
    &cpu_moe_ffn_avx2_entry,
    &cpu_moe_ffn_codes,
    &cpu_moe_ffn_codes_scalar,
    &cpu_moe_ffn_int8,
    &cpu_moe_ffn_vnni,
    &cpu_moe_ffn_vnni512,
    CPU_LINEAR_ENTRIES
    NULL,
};

static const davit_pack *const packs[] = {
    CPU_PACKS
    NULL,
};

static const davit_kernels_iface cpu_iface = {
    .struct_size = DAVIT_END(davit_kernels_iface, state_size),
    .device = "cpu",
    .entries = entries,
    .packs = packs,
    .state_size = cpu_state_size,
};

/* An instance only knows the processor: packs have no record of what they need, as entries have. */
static int32_t cpu_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                          const davit_sink *sink)
{
    const davit_host *host = in->host;
    const davit_cpu_suite *cpu = host ? host->suite(host->ctx, "cpu", 1, 0) : NULL;
    cpu_self *self = calloc(1, sizeof *self);
    (void)bundle_ctx;
    (void)sink;

    if (!self)
        return DAVIT_OK; /* packs without it are slower */
    self->features = cpu ? cpu->features(host->ctx) : 0;
    *out_self = self;
    return DAVIT_OK;
}

DAVIT_COMPONENT(cpu, DAVIT_KIND_KERNELS, "org.davit.kernels.cpu", "device=cpu",
                DAVIT_RUN | DAVIT_CONVERT, 50, .flags = DAVIT_COMPONENT_CONCURRENT,
                .create = cpu_create, .destroy = free, .iface = &cpu_iface);

DAVIT_PLUGIN("org.davit.kernels.cpu", "CPU kernels", "davit", "0.1.0", "Apache-2.0", &cpu);
