/* SPDX-License-Identifier: Apache-2.0
 * D10: the number of key heads that a GGUF's settings state against the rows of its matrices. One
 * finding with the key and the number in place of two shapes. */
#include <string.h>

#include "doctor/doctor_private.h"

static const davit_kv *key_of(const DavitPatient *p, const char *tail)
{
    g_autofree char *key = g_strconcat(davit_settings_gguf_arch(p->settings), tail, NULL);

    return davit_checkpoint_find_key(p->checkpoint, key);
}

static bool number(const DavitPatient *p, const char *tail, int64_t *out)
{
    const davit_kv *kv = key_of(p, tail);

    return kv && !kv->is_array && davit_kv_i64(kv, 0, out);
}

static const davit_tensor_info *matrix(const DavitPatient *p, const char *tail)
{
    const davit_tensor_info *t = davit_find_tail(p->checkpoint, tail, -1);

    return t && t->rank == 2 && t->shape[0] <= INT64_MAX ? t : NULL;
}

static bool is_of_keys(const DavitRecord *r, const void *unused)
{
    (void)unused;
    return r->code == DAVIT_R_SHAPE_MISMATCH && r->subject &&
           (strstr(r->subject, "attn_k.") || strstr(r->subject, "attn_v."));
}

void davit_check_gguf_heads(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;
    const davit_tensor_info *q, *k, *v;
    int64_t heads, stated, width = 0, dim = 0, found;
    const davit_kv *key;

    if (p->plan || !p->checkpoint || !p->settings || !davit_settings_gguf_arch(p->settings))
        return;
    q = matrix(p, "attn_q.weight");
    k = matrix(p, "attn_k.weight");
    v = matrix(p, "attn_v.weight");
    if (!q || !k || !v || !number(p, ".attention.head_count", &heads) || heads <= 0)
        return;
    key = key_of(p, ".attention.head_count_kv");
    if (key && !number(p, ".attention.head_count_kv", &stated))
        return; /* one a layer, or no number */
    if (!key)
        stated = heads; /* the format's default */
    if (!number(p, ".attention.key_length", &dim) && number(p, ".embedding_length", &width))
        dim = width / heads;
    if (dim <= 0 || dim > INT32_MAX || heads > INT32_MAX || (int64_t)q->shape[0] != heads * dim ||
        k->shape[0] != v->shape[0] || (int64_t)k->shape[0] % dim != 0)
        return;
    found = (int64_t)k->shape[0] / dim;
    if (found == stated || found <= 0 || heads % found != 0)
        return;
    davit_doctor_drop(d, "D10", is_of_keys, NULL);
    davit_doctor_say(
        d, "D10",
        &(DavitFinding){
            .status = DAVIT_E_MISMATCH,
            .subject = davit_doctor_text(d, "%s.attention.head_count_kv",
                                         davit_settings_gguf_arch(p->settings)),
            .expected = davit_doctor_text(d, "%" PRId64 ": %" PRIu64 " rows of %s by %" PRId64 " a head",
                                          found, k->shape[0], k->name, dim),
            .found = davit_doctor_text(d, "%s%" PRId64, key ? "" : "absent, which means ", stated),
            .message = "the weights have another number of key heads than the settings state",
            .hint = davit_doctor_text(d, "set the key to %" PRId64 " (gguf's set-metadata does), or "
                                         "convert the model again", found)});
}
