/* SPDX-License-Identifier: Apache-2.0
 * What the quantisation settings claim, against the modules: their method (D17), GPTQ's zeros (D17),
 * modules that a list leaves out (D19). Lists and spellings are read as plan and run read them. */
#include <string.h>

#include <davit/quant.h>

#include "doctor/doctor_private.h"
#include "plan/draft.h"
#include "plan/quant_config.h"

/* ---- D17: the method ---- */

/* Schemes that a method's writers store, '|'-joined. */
static const struct {
    const char *method, *schemes;
} methods[] = {
    {"gptq", "gptq/1"},
    {"awq", "awq/1"},
    {"fp8", "fp8/1|mxfp4/1"},
    {"fbgemm_fp8", "fp8/1"},
    {"compressed-tensors", "compressed-tensors/1|fp8/1|nvfp4/1|mxfp4/1"},
    {"modelopt", "modelopt/1|compressed-tensors/1|fp8/1|nvfp4/1|mxfp4/1"},
    {"mxfp4", "mxfp4/1"},
    {"bitsandbytes", "bitsandbytes/1"},
};

/* A method that stores @scheme, NULL if it is none of ours: a stranger's plugin may know it. */
static const char *method_of(const char *scheme)
{
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
        if (davit_words_have(methods[i].schemes, scheme))
            return methods[i].method;
    return NULL;
}

static bool stores(const char *method, const char *scheme)
{
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
        if (strcmp(methods[i].method, method) == 0 &&
            davit_words_have(methods[i].schemes, scheme))
            return true;
    return false;
}

/* No module is of the stated method, and one is of another. */
static void check_method(DavitDoctor *d, const char *method, const char *source)
{
    const DavitPlan *plan = d->patient.plan;
    const DavitModule *other = NULL;

    for (size_t i = 0; plan && method && i < plan->modules->len; i++) {
        const DavitModule *m = &plan->modules->at[i];
        const char *scheme = m->quant && m->desc ? m->desc->scheme : NULL;

        if (!scheme || !method_of(scheme))
            continue;
        if (stores(method, scheme))
            return;
        other = other ? other : m;
    }
    if (other)
        davit_doctor_say(
            d, "D17",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = davit_doctor_text(d, "%s: quant_method", source),
                .expected = method_of(other->desc->scheme),
                .found = davit_doctor_text(d, "%s; %s is %s", method, other->name,
                                           other->desc->layout),
                .message = "no module is stored as the block says; davit goes by the tensors, programs "
                           "that believe the block refuse the model or answer noise",
                .hint = "restore the block from the origin of these weights"});
}

/* ---- D17: zeros of GPTQ ---- */

/* In a symmetric file every zero is the middle: stored less one by version 1, as it is by 2. */
#define MOST_ZEROS 65536u

/* The one byte that all of @t's consist of; -1 = they differ, or it is too long or unreadable. */
static int only_byte(const DavitCheckpoint *c, const davit_tensor_info *t)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autofree uint8_t *bytes = NULL;

    if (t->n_bytes == 0 || t->n_bytes > MOST_ZEROS)
        return -1;
    bytes = g_malloc(t->n_bytes);
    if (davit_checkpoint_read(c, t->file, t->off, bytes, t->n_bytes, aside))
        return -1;
    for (uint64_t i = 1; i < t->n_bytes; i++)
        if (bytes[i] != bytes[0])
            return -1;
    return bytes[0];
}

/* Run finds it when it reads the weights; here the first tensor of zeros tells. */
static void check_zeros(DavitDoctor *d, const DavitQuantConfig *config)
{
    static const struct {
        int64_t bits;
        int v1, v2; /* byte of words whose fields are all in the middle */
    } middles[] = {{2, 0x55, 0xaa}, {4, 0x77, 0x88}, {8, 0x7f, 0x80}};
    const uint32_t decided = DAVIT_QUANT_ALLOW_ZEROS_V1 | DAVIT_QUANT_ALLOW_ZEROS_V2;
    const davit_tensor_info *t = davit_find_tail(d->patient.checkpoint, "qzeros", -1);
    g_autofree char *module = t ? g_strndup(t->name, strlen(t->name) - strlen(".qzeros")) : NULL;
    davit_quant_settings s;
    bool v2;
    int byte;

    if (!t || !g_str_has_suffix(t->name, ".qzeros") ||
        !davit_quant_config_for(config, module, &s) || g_strcmp0(s.method, "gptq") != 0 ||
        s.symmetric != 1 || (d->options->quant_allow & decided))
        return;
    v2 = g_strcmp0(s.format, "gptq_v2") == 0;
    byte = only_byte(d->patient.checkpoint, t);
    for (size_t i = 0; i < G_N_ELEMENTS(middles); i++) {
        const int wrong = v2 ? middles[i].v1 : middles[i].v2;

        if (middles[i].bits != s.bits || byte != wrong)
            continue;
        davit_doctor_say(
            d, "D17",
            &(DavitFinding){
                .code = DAVIT_R_QUANT_ZERO_CONVENTION,
                .status = DAVIT_E_MISMATCH,
                .subject = t->name,
                .expected = davit_doctor_text(d, "bytes %02x, as version %d stores the middle",
                                              v2 ? middles[i].v2 : middles[i].v1, v2 ? 2 : 1),
                .found = davit_doctor_text(d, "bytes %02x, as version %d does", byte, v2 ? 1 : 2),
                .message = "the stored zeros contradict checkpoint_format: every weight would be off "
                           "by one step",
                .hint = davit_doctor_text(d, "set checkpoint_format to %s in the block, or run with "
                                             "--gptq-zeros %s",
                                          v2 ? "gptq" : "gptq_v2", v2 ? "v1" : "v2")});
    }
}

/* ---- D19 ---- */

#define MOST_TOLD 8u

/* Length of the module's name in that of one of its strong companions; 0 = it is none. */
static size_t module_len(const char *tensor)
{
    static const char *const tails[] = {".weight_packed",    ".qweight", ".weight_scale_inv",
                                        ".weight_scale",     "_blocks",  ".weight.absmax",
                                        ".SCB"};

    for (size_t i = 0; i < G_N_ELEMENTS(tails); i++)
        if (g_str_has_suffix(tensor, tails[i]))
            return strlen(tensor) - strlen(tails[i]);
    return 0;
}

static void check_left_out(DavitDoctor *d, const DavitQuantConfig *config)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    g_autofree char *last = NULL;
    size_t n = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c) && n < MOST_TOLD; i++) {
        const char *name = davit_checkpoint_tensor(c, i)->name;
        const size_t len = module_len(name);
        g_autofree char *module = len ? g_strndup(name, len) : NULL;

        if (!module || g_strcmp0(module, last) == 0 || !davit_quant_config_ignores(config, module))
            continue;
        n++;
        davit_doctor_say(d, "D19",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = name,
                                         .expected = "a plain module, as config.json "
                                                     "lists it",
                                         .found = "a quantised one",
                                         .message = "a module is listed as left out "
                                                    "of quantisation and is "
                                                    "quantised all the same"});
        g_free(last);
        last = g_steal_pointer(&module);
    }
}

void davit_check_quant_claims(DavitDoctor *doctor)
{
    const DavitPatient *p = &doctor->patient;
    g_autoptr(DavitReport) aside = davit_report_new(); /* the plan has told what is wrong with it */
    g_autoptr(DavitQuantConfig) config = NULL;
    davit_quant_settings said;

    if (!p->checkpoint || !p->settings)
        return;
    config = davit_quant_config_new(p->settings, p->checkpoint, doctor->options->quant_allow, aside);
    if (!davit_quant_config_for(config, "", &said))
        return;
    if (davit_report_count(davit_doctor_of(doctor, "D17")->findings) == 0)
        check_method(doctor, said.method, said.source);
    check_zeros(doctor, config);
    check_left_out(doctor, config);
}
