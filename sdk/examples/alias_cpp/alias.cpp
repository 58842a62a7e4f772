// SPDX-License-Identifier: Apache-2.0
// The alias example in C++20: the ABI is C, its macros are designated initialisers that C++ has
// too. No exception may leave a function that davit calls.
#include <davit/help/decoder.h>

namespace
{

const davit_config_row acme_config[] = {
    DAVIT_CONFIG_SIZES("32000", "4096", "11008", "32", "32"),
    DAVIT_CONFIG_HEADS("nh", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("10000", "2048"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    DAVIT_CONFIG_WINDOW("0", "=0"),
    DAVIT_CONFIG_END,
};

const davit_slot_row acme_slots[] = {
    DAVIT_SLOTS_ENDS, DAVIT_SLOTS_PRE_NORMS, DAVIT_SLOTS_ATTN, DAVIT_SLOTS_MLP(nullptr),
    DAVIT_SLOTS_END,
};

const davit_arch_iface acme_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "AcmeForCausalLM",
    .model_types = "acme",
    .gguf = nullptr,
    DAVIT_ARCH_TABLES(acme_config, acme_slots),
    .ignore = nullptr,
    .check = nullptr,
    .build = davit_decoder_build_plain,
};

} // namespace

DAVIT_COMPONENT(acme, DAVIT_KIND_ARCH, "org.example.arch.acme", "hf=AcmeForCausalLM",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50, .flags = 0, .probe = nullptr,
                .create = davit_arch_create, .destroy = davit_arch_destroy, .refuses = nullptr,
                .iface = &acme_arch);
DAVIT_PLUGIN("org.example.arch.acme", "Acme in C++", "Example", "1.0.0", "Apache-2.0", &acme);
