/* SPDX-License-Identifier: Apache-2.0
 * D20: rotary frequencies that the weights hold ("rotary_emb.inv_freq", which older programs
 * saved) against the base that the config states or leaves to a default. A base that was lost
 * is silent everywhere else. */
#include <math.h>
#include <string.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

#define MAX_PAIRS 1024u   /* 4 KiB of float32 */
#define DEFAULT   10000.0 /* of every class that has inv_freq in its weights */
#define NEAR      0.02    /* bfloat16 has 2^-9 a value */

static double widen(const char *dtype, const uint8_t *at, size_t i)
{
    uint32_t bits = 0;
    float x;

    if (strcmp(dtype, "f32/1") == 0) {
        memcpy(&bits, at + 4 * i, 4);
    } else {
        memcpy(&bits, at + 2 * i, 2);
        bits <<= 16;
    }
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* Base of x[0..n): x[i] = x[0] * base^(-i/n) (Su et al. 2021, eq. 15). Frequencies that were scaled
 * by part (llama3, yarn) are no such row: false. */
static bool base_of(const double *x, size_t n, double *out)
{
    const double ratio = n > 1 && x[0] > 0 && x[n - 1] > 0 ? x[0] / x[n - 1] : 0;
    const double base = ratio > 1 ? pow(ratio, (double)n / (double)(n - 1)) : 0;

    if (n < 4 || base <= 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] / (x[0] * pow(base, -(double)i / (double)n)) - 1) < NEAR))
            return false;
    *out = base;
    return true;
}

static bool read_base(const DavitPatient *p, const davit_tensor_info *t, double *out)
{
    const bool wide = strcmp(t->dtype, "f32/1") == 0;
    const uint64_t n = t->rank == 1 ? t->shape[0] : 0;
    g_autoptr(DavitReport) aside = davit_report_new();
    uint8_t bytes[4 * MAX_PAIRS];
    double x[MAX_PAIRS];

    if ((!wide && strcmp(t->dtype, "bf16/1") != 0) || n == 0 || n > MAX_PAIRS ||
        davit_checkpoint_read(p->checkpoint, t->file, t->off, bytes, n * (wide ? 4 : 2), aside))
        return false;
    for (size_t i = 0; i < n; i++)
        x[i] = widen(t->dtype, bytes, i);
    return base_of(x, (size_t)n, out);
}

/* The base that the config states; false = none, or one for each layer type. */
static bool stated_base(const DavitPatient *p, double *out, bool *nested)
{
    static const char *const flat[] = {"rope_theta", "rotary_emb_base", "rope_base"};
    const json_t *part = davit_patient_value(p, "rope_parameters");
    const char *key;
    json_t *inner;

    for (size_t i = 0; i < G_N_ELEMENTS(flat); i++)
        if (davit_tree_number(davit_patient_value(p, flat[i]), out))
            return true;
    part = part ? part : davit_patient_value(p, "rope_scaling");
    if (davit_tree_number(json_object_get(part, "rope_theta"), out))
        return true;
    json_object_foreach((json_t *)(uintptr_t)part, key, inner)
    {
        *nested = *nested || json_is_object(inner);
    }
    return false;
}

/* Two digits, if that is what it is but for rounding: 500000 of 499998.7. */
static double rounded(double x)
{
    const double unit = pow(10, floor(log10(x)) - 1);
    const double r = floor(x / unit + 0.5) * unit;

    return fabs(r / x - 1) < NEAR / 4 ? r : floor(x + 0.5);
}

static bool is_about_theta(const DavitRecord *r, const void *unused)
{
    (void)unused;
    return r->code == DAVIT_CODE_DOCTOR(20) &&
           g_strcmp0(r->subject, "config.json: rope_theta") == 0;
}

void davit_check_rotary(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;
    const davit_tensor_info *t =
        p->checkpoint ? davit_find_tail(p->checkpoint, "inv_freq", -1) : NULL;
    double stored, stated = DEFAULT;
    bool nested = false, given;

    if (!t || !p->settings || davit_settings_is_gguf(p->settings) || strstr(t->name, "vis") ||
        !read_base(p, t, &stored))
        return;
    given = stated_base(p, &stated, &nested);
    if (nested || fabs(stored / stated - 1) < NEAR)
        return;
    davit_doctor_drop(d, "D20", is_about_theta, NULL);
    stored = rounded(stored);
    davit_doctor_say(
        d, "D20",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .status = given ? DAVIT_OK : DAVIT_E_MISMATCH,
            .subject = "config.json: rope_theta",
            .expected = davit_doctor_text(d, "%.0f, from the ratios within %s", stored, t->name),
            .found = given ? davit_doctor_text(d, "%.0f", stated)
                           : davit_doctor_text(d, "absent, so that %.0f is taken", stated),
            .message = given ? "the config states another rotary base than the one whose "
                               "frequencies the weights hold"
                             : "the rotary base was lost from the config: the weights hold the "
                               "frequencies of another one than the default; nothing else would "
                               "tell, and texts would go wrong",
            .hint = given ? davit_doctor_text(d, "set rope_theta to %.0f, unless the model was "
                                                 "trained on with the stated one", stored)
                          : davit_doctor_text(d, "set rope_theta to %.0f", stored)});
}
