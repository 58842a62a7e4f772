/* SPDX-License-Identifier: Apache-2.0
 * Checks of a quantised module's tensors. Every record names tensor, found and expected. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/quant.h>

static int is_one_of(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *p = list; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (strncmp(p, word, n) == 0 && (p[n] == '|' || p[n] == '\0'))
            return 1;
    return 0;
}

/* ---- records ---- */

int davit_q_fail(davit_q_check *c, int32_t status, uint32_t code, const char *subject,
                 const char *expected, const char *found, const char *message)
{
    davit_say(c->sink, status,
              &(davit_refusal){.code = code,
                               .subject = subject ? subject : c->module->name,
                               .expected = expected,
                               .found = found,
                               .message = message});
    if (c->status == 0)
        c->status = status;
    return 0;
}

int davit_q_fail_count(davit_q_check *c, int32_t status, uint32_t code, const char *subject,
                       const char *expected, uint64_t n, const char *what, const char *message)
{
    char found[96];

    snprintf(found, sizeof found, "%" PRIu64 " %s", n, what);
    return davit_q_fail(c, status, code, subject, expected, found, message);
}

void davit_q_warn(davit_q_check *c, uint32_t code, const char *subject, const char *found,
                  const char *message)
{
    davit_say(c->sink, 0,
              &(davit_refusal){.code = code,
                               .flags = DAVIT_REFUSAL_WARNING,
                               .subject = subject ? subject : c->module->name,
                               .found = found,
                               .message = message});
}

static void shape_text(char *out, size_t size, uint32_t rank, const uint64_t *dims)
{
    size_t n = (size_t)snprintf(out, size, "[");

    for (uint32_t i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%" PRIu64, i ? ", " : "", dims[i]);
    if (n < size)
        snprintf(out + n, size - n, "]");
}

/* ---- begin and end ---- */

void davit_q_begin(davit_q_check *c, const davit_quant_module *module, const char *scheme,
                   davit_quant_desc *out, const davit_sink *sink)
{
    const davit_quant_settings *s = davit_q_settings(module);

    *c = (davit_q_check){.module = module, .desc = out, .sink = sink};
    out->scheme = scheme;
    out->n_experts = 1;
    out->row_unit = 1;
    out->forms = DAVIT_FORM_F32 | DAVIT_FORM_CODES;
    if (s->ambiguous)
        davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_TARGET_AMBIGUOUS, NULL,
                     "one group of settings", s->source,
                     "two groups with different weights name this module equally well");
}

int32_t davit_q_end(davit_q_check *c)
{
    /* a check that stopped early has not asked for everything */
    for (uint64_t i = 0; c->status == 0 && i < c->module->n_parts; i++) {
        const davit_quant_part_in *part = c->module->parts[i];

        if (!(c->seen >> i & 1))
            davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_ORPHAN, part->info->name,
                         c->desc->layout, part->suffix,
                         "this layout has no such tensor, and it may change the weights");
    }
    return c->status;
}

const davit_quant_settings *davit_q_settings(const davit_quant_module *module)
{
    static const davit_quant_settings none = {.struct_size =
                                                  DAVIT_END(davit_quant_settings, ambiguous),
                                              .symmetric = -1,
                                              .act_order = -1,
                                              .quantized = -1};

    return module->settings ? module->settings : &none;
}

/* ---- parts ---- */

int davit_q_has(const davit_quant_module *module, const char *suffix, const char *dtypes)
{
    for (uint64_t i = 0; i < module->n_parts; i++)
        if (strcmp(module->parts[i]->suffix, suffix) == 0)
            return !dtypes || is_one_of(dtypes, module->parts[i]->dtype);
    return 0;
}

static uint64_t index_of(const davit_quant_module *module, const char *suffix)
{
    uint64_t i = 0;

    while (i < module->n_parts && strcmp(module->parts[i]->suffix, suffix) != 0)
        i++;
    return i;
}

const davit_tensor_info *davit_q_find(davit_q_check *c, const char *suffix)
{
    const uint64_t i = index_of(c->module, suffix);

    if (i == c->module->n_parts)
        return NULL;
    c->seen |= 1ull << i;
    return c->module->parts[i]->info;
}

const davit_tensor_info *davit_q_need(davit_q_check *c, const char *suffix,
                                      const char *dtypes)
{
    const davit_tensor_info *t = davit_q_find(c, suffix);
    char name[256];

    if (!t) {
        snprintf(name, sizeof name, "%s%s%s", c->module->name,
                 *suffix == '_' || !*suffix ? "" : ".", suffix);
        davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_TENSOR_MISSING, name, dtypes, "absent",
                     "a quantised module lacks a tensor that belongs to it");
        return NULL;
    }
    if (dtypes && !is_one_of(dtypes, t->dtype)) {
        davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_DTYPE, t->name, dtypes, t->dtype,
                     "a tensor of the quantised layout has a dtype that it cannot have");
        return NULL;
    }
    return t;
}

int davit_q_shape(davit_q_check *c, const davit_tensor_info *t, uint32_t rank,
                  const uint64_t *dims)
{
    char want[128], have[128];

    if (!t)
        return 0;
    if (t->rank == rank && memcmp(t->shape, dims, rank * sizeof *dims) == 0)
        return 1;
    shape_text(want, sizeof want, rank, dims);
    shape_text(have, sizeof have, t->rank, t->shape);
    return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, t->name, want, have,
                        "a tensor of the quantised layout does not fit the others");
}

const uint8_t *davit_q_peek(davit_q_check *c, const char *suffix, uint64_t *out_bytes)
{
    const uint64_t i = index_of(c->module, suffix);

    return c->module->peek && i < c->module->n_parts
               ? c->module->peek(c->module->peek_ctx, i, out_bytes)
               : NULL;
}

int davit_q_one_number(davit_q_check *c, const davit_tensor_info *t)
{
    const int any =
        (davit_q_settings(c->module)->allow & DAVIT_QUANT_ALLOW_SCALE_DTYPE) != 0;
    char have[128];

    if (!t)
        return 0;
    if (t->rank > 0 && davit_q_product(t, 0, t->rank) != 1) {
        shape_text(have, sizeof have, t->rank, t->shape);
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_SCALE_ARITY, t->name,
                            "one number", have, "a scale that is one number has several");
    }
    if (strcmp(t->dtype, "f32/1") == 0 ||
        (any && is_one_of("bf16/1|f16/1", t->dtype)))
        return 1;
    return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_DTYPE, t->name, "f32/1", t->dtype,
                        "a scale that is one number is stored in F32");
}

void davit_q_activations(davit_q_check *c)
{
    static const char *const suffixes[] = {
        "input_scale",      "input_global_scale", "activation_scale", "_activation_scale",
        "input_zero_point", "output_scale",       "q_scale",          "prob_scale",
        NULL};

    davit_q_find(c, "k_scale"); /* of keys and values, which may have one for each head: the host's */
    davit_q_find(c, "v_scale");

    for (size_t i = 0; suffixes[i]; i++) {
        const davit_tensor_info *t = davit_q_find(c, suffixes[i]);
        uint64_t n_bytes;
        const uint8_t *bytes;
        float value;

        if (!t || strcmp(suffixes[i], "input_zero_point") == 0 || !davit_q_one_number(c, t))
            continue;
        bytes = davit_q_peek(c, suffixes[i], &n_bytes);
        if (!bytes)
            continue;
        value = davit_q_scale(bytes, (uint32_t)davit_q_scale_type(t->dtype), 0);
        if (!isfinite(value) || value <= 0)
            davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_SCALE_VALUE, t->name,
                         "a finite number above 0", isnan(value) ? "NaN" : "0 or less, or infinity",
                         "a scale of activations cannot be this");
    }
}

int davit_q_column_scale(davit_q_check *c, const davit_tensor_info **out)
{
    static const char suffix[] = "pre_quant_scale";
    const uint64_t n = c->desc->n_cols;
    const davit_tensor_info *t = davit_q_find(c, suffix);
    uint64_t n_bytes = 0;
    const uint8_t *p;

    *out = NULL;
    if (!t || !davit_q_need(c, suffix, "f32/1|bf16/1|f16/1") || !davit_q_shape(c, t, 1, &n))
        return 0;
    p = davit_q_peek(c, suffix, &n_bytes);
    for (uint64_t i = 0; p && i < n; i++)
        if (!isfinite(davit_q_scale(p, (uint32_t)davit_q_scale_type(t->dtype), i)))
            return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_SCALE_VALUE, t->name,
                                "finite factors", "NaN or infinity",
                                "a factor of the activations cannot be this");
    *out = t;
    return 1;
}

uint64_t davit_q_product(const davit_tensor_info *t, uint32_t first, uint32_t last)
{
    uint64_t n = 1;

    for (uint32_t i = first; i < last; i++)
        if (__builtin_mul_overflow(n, t->shape[i], &n) || n > INT64_MAX)
            return 0;
    return n;
}

void davit_q_part(davit_q_check *c, const char *role, const davit_tensor_info *t,
                  uint64_t row_bytes)
{
    for (uint64_t i = 0; t && i < c->module->n_parts; i++) {
        if (c->module->parts[i]->info != t || c->desc->n_parts == DAVIT_MAX_PARTS)
            continue;
        c->desc->parts[c->desc->n_parts++] =
            (davit_quant_part){.struct_size = DAVIT_END(davit_quant_part, row_bytes),
                               .role = role,
                               .index = i,
                               .row_bytes = row_bytes};
    }
}

void davit_q_agree(davit_q_check *c, const char *key, int64_t stated, int64_t found)
{
    const davit_quant_settings *s = davit_q_settings(c->module);
    char want[160], have[64];

    if (stated == 0 || stated == found)
        return;
    snprintf(want, sizeof want, "%s %" PRId64 " as in %s", key, stated,
             s->source ? s->source : "the configuration");
    snprintf(have, sizeof have, "%" PRId64, found);
    davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_CONFIG_CONFLICT, NULL, want, have,
                 "the tensors contradict the quantisation settings");
}
