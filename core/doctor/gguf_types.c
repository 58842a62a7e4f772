/* SPDX-License-Identifier: Apache-2.0
 * D03: types of a GGUF's settings. davit takes every number that fits; llama.cpp wants exactly
 * the type that the specification names (ggml docs, gguf.md: float32 and uint32) and refuses
 * the file otherwise. */
#include <string.h>

#include "doctor/doctor_private.h"

/* Settings under the architecture's name, and their type. */
static const struct {
    const char *tail;
    uint32_t type;
} rows[] = {
    {".rope.freq_base", DAVIT_KV_F32},
    {".rope.scaling.factor", DAVIT_KV_F32},
    {".attention.layer_norm_rms_epsilon", DAVIT_KV_F32},
    {".attention.layer_norm_epsilon", DAVIT_KV_F32},
    {".block_count", DAVIT_KV_U32},
    {".context_length", DAVIT_KV_U32},
    {".embedding_length", DAVIT_KV_U32},
    {".rope.dimension_count", DAVIT_KV_U32},
    {".expert_count", DAVIT_KV_U32},
    {".expert_used_count", DAVIT_KV_U32},
};

void davit_check_gguf_types(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;
    const char *arch = p->settings ? davit_settings_gguf_arch(p->settings) : NULL;
    g_autoptr(GString) list = g_string_new(NULL);
    uint32_t wanted = 0;
    size_t n = 0;

    for (size_t i = 0; p->checkpoint && arch && i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *key = g_strconcat(arch, rows[i].tail, NULL);
        const davit_kv *kv = davit_checkpoint_find_key(p->checkpoint, key);

        if (!kv || kv->is_array || kv->type == rows[i].type)
            continue;
        wanted = n++ ? wanted : rows[i].type;
        g_string_append_printf(list, "%s%s: %s", list->len ? ", " : "", key,
                               davit_kv_type_name(kv->type));
    }
    if (!n)
        return;
    davit_doctor_say(
        d, "D03",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = n == 1 ? "a setting" : davit_doctor_text(d, "%zu settings", n),
            .expected = davit_doctor_text(d, "%s, as the GGUF specification says",
                                          davit_kv_type_name(wanted)),
            .found = list->str,
            .message = "settings have another type than the specification names: davit takes "
                       "their values, llama.cpp refuses the file",
            .hint = "write these keys again with the right type; their values can stay"});
}
