/* SPDX-License-Identifier: Apache-2.0
 * Any JSON as the quantisation settings of a checkpoint: alone, beside the weights, and in two
 * places that may contradict each other; the answer for some modules. */
#include "fuzz/fuzz.h"
#include "fuzz/quant_json.h"
#include "plan/quant_config.h"

static const char *const modules[] = {"lm_head", "model.layers.11.mlp.experts.3.up_proj",
                                      "model.layers.0.self_attn.q_proj", ""};

static void ask(const DavitQuantConfig *config)
{
    davit_quant_settings s = {.struct_size = DAVIT_END(davit_quant_settings, ambiguous)};

    for (size_t i = 0; i < G_N_ELEMENTS(modules); i++) {
        g_assert_true(davit_quant_config_for(config, modules[i], &s) == (config != NULL));
        if (config)
            g_assert_true(s.bits >= 0 && s.group >= -1);
    }
}

/* One file's settings, or those of two; @place says which. */
static DavitQuantConfig *parse(const json_t *block, const json_t *other, uint8_t place,
                               DavitReport *report)
{
    static const char *const files[] = {"hf_quant_config.json", "quantize_config.json",
                                        "quant_config.json"};
    const char *file = files[place % G_N_ELEMENTS(files)];

    if (place & 0x40)
        return davit_quant_config_parse(NULL, block, file, report);
    return davit_quant_config_parse(block, place & 0x20 ? other : NULL, file, report);
}

/* Text, whose last byte is the place and whose key "file" the other file; or choices. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitQuantConfig) config = NULL;
    FuzzInput in = {data, data + size};
    const bool text = size && data[0] == '{';
    const uint8_t place = text ? data[size - 1] : fuzz_byte(&in);
    json_t *block = fuzz_settings(&in);
    json_t *other = text ? json_incref(json_object_get(block, "file")) : fuzz_settings(&in);

    config = parse(block, other, place, report);
    g_assert_true((config != NULL) == json_is_object(block) || !config || other);
    ask(config);
    json_decref(block);
    json_decref(other);
    return 0;
}
