/* SPDX-License-Identifier: Apache-2.0
 * A dense decoder with a setting of its own. Sound as it is; FAULT (CMakeLists.txt) breaks one
 * rule that the tables, the capability or odd settings show. */
#include <davit/help/decoder.h>
#include <davit/help/records.h>

enum { NONE, CLAIMS, DECLARES, SYMBOL, SYNTAX, DIVIDES };

static const davit_config_row odd_config[] = {
    DAVIT_CONFIG_SIZES("32000", "4096", "11008", "32", "32"),
    DAVIT_CONFIG_HEADS("nh", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("10000", "2048"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    DAVIT_CONFIG_WINDOW("0", "=0"),
    {"odd", "int", "odd_number", "odd_number", "1", NULL, FAULT == DIVIDES ? NULL : "1..100"},
    DAVIT_CONFIG_END,
};

static const davit_slot_row odd_slots[] = {
    DAVIT_SLOTS_ENDS,
    DAVIT_SLOTS_PRE_NORMS,
    DAVIT_SLOTS_ATTN,
    DAVIT_SLOTS_MLP(NULL),
    {"spare", "G", NULL, FAULT == SYMBOL ? "sizes" : FAULT == SYNTAX ? "H*(2" : "H", "spare", NULL,
     "rep", "norm", DAVIT_SLOT_OPTIONAL, 0},
    DAVIT_SLOTS_END,
};

static int32_t odd_check(void *self, const davit_config *config, const davit_sink *sink)
{
    const davit_config_suite *suite = davit_arch_config(self);

    if (suite && 100 % suite->integer(config, "odd", -1) != 0)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_CONFIG_UNSUPPORTED,
                                          .subject = "odd_number",
                                          .message = "it does not divide 100"});
    return DAVIT_OK;
}

static const davit_arch_iface odd_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = FAULT == DECLARES ? "OddForCausalLM|OtherForCausalLM" : "OddForCausalLM",
    .model_types = "odd",
    DAVIT_ARCH_TABLES(odd_config, odd_slots),
    .check = odd_check,
    .build = davit_decoder_build_plain,
};

DAVIT_COMPONENT(odd, DAVIT_KIND_ARCH, "org.example.check_arch." NAME, "hf=" CLAIMED_NAMES,
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy, .iface = &odd_arch);
DAVIT_PLUGIN("org.example.bundle.check_arch." NAME, NAME, "Example", "1.0.0", "MIT", &odd);
