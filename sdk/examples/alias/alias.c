/* SPDX-License-Identifier: Apache-2.0
 * An architecture that is Llama under another name: checkpoints of class AcmeForCausalLM. */
#include <davit/help/decoder.h>

static const davit_config_row acme_config[] = {
    DAVIT_CONFIG_SIZES("32000", "4096", "11008", "32", "32"),
    DAVIT_CONFIG_HEADS("nh", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("10000", "2048"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    DAVIT_CONFIG_WINDOW("0", "=0"),
    DAVIT_CONFIG_END,
};

static const davit_slot_row acme_slots[] = {
    DAVIT_SLOTS_ENDS, DAVIT_SLOTS_PRE_NORMS, DAVIT_SLOTS_ATTN, DAVIT_SLOTS_MLP(NULL),
    DAVIT_SLOTS_END,
};

static const davit_arch_iface acme_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "AcmeForCausalLM",
    .model_types = "acme",
    DAVIT_ARCH_TABLES(acme_config, acme_slots),
    .build = davit_decoder_build_plain,
};

DAVIT_COMPONENT(acme, DAVIT_KIND_ARCH, "org.example.arch.acme", "hf=AcmeForCausalLM",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy, .iface = &acme_arch);
DAVIT_PLUGIN("org.example.arch.acme", "Acme, an alias of Llama", "Example", "1.0.0", "Apache-2.0",
             &acme);
