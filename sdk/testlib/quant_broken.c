/* SPDX-License-Identifier: Apache-2.0
 * A quant layout against modules that make no sense: sets of tensors that quantised files
 * have, with types, ranks, shapes and settings drawn at random. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

#define MAX_BYTES (1u << 20) /* of a module that is decoded */

/* Suffixes of the tensors of one module, as well-known layouts have them. */
static const char *const sets[] = {"weight",
                                   "qweight|qzeros|scales",
                                   "g_idx|qweight|qzeros|scales",
                                   "weight|weight_scale",
                                   "input_scale|weight|weight_scale|weight_scale_2",
                                   "weight|weight_scale_inv",
                                   "weight_packed|weight_scale|weight_shape",
                                   "weight_g_idx|weight_packed|weight_scale|weight_zero_point",
                                   "weight_global_scale|weight_packed|weight_scale",
                                   "blocks|scales",
                                   "SCB|weight",
                                   ""};

static const struct {
    const char *name;
    uint64_t bits; /* of an element */
} dtypes[] = {{"f32/1", 32},     {"f16/1", 16},     {"bf16/1", 16},    {"i32/1", 32},
              {"u8/1", 8},       {"i8/1", 8},       {"f8_e4m3/1", 8},  {"f8_e5m2/1", 8},
              {"f8_e8m0/1", 8},  {"f4/1", 4},       {"i64/1", 64},     {"i16/1", 16},
              {"org.nobody.odd/1", 8}};

#define MAX_KNOWN 32

/* What was accepted: most rounds begin there, or few would get past claim. */
typedef struct signature {
    uint64_t n_parts;
    char suffix[DAVIT_MAX_PARTS][64];
    char dtype[DAVIT_MAX_PARTS][80];
    uint32_t rank[DAVIT_MAX_PARTS];
    uint32_t block_elems[DAVIT_MAX_PARTS], block_bytes[DAVIT_MAX_PARTS];
} signature;

typedef struct broken {
    davit_test *t;
    const signature *from; /* (borrowed) NULL = nothing that is known */
    uint64_t sizes[2];     /* most axes have one of these, or a part of it */
    davit_quant_module in;
    davit_tensor_info info[DAVIT_MAX_PARTS];
    davit_quant_part_in part_in[DAVIT_MAX_PARTS];
    const davit_quant_part_in *list[DAVIT_MAX_PARTS];
    char suffix[DAVIT_MAX_PARTS][64];
    char name[DAVIT_MAX_PARTS][80];
    uint8_t *bytes[DAVIT_MAX_PARTS]; /* test_exact; NULL = too large to be there */
    davit_quant_settings settings;
    davit_quant_desc desc;
} broken;

/* ---- making ---- */

static uint64_t pick(davit_test *t, uint64_t n)
{
    return davit_test_between(t, 0, n - 1);
}

/* An axis: mostly one that may fit the others. */
static uint64_t some_axis(broken *b)
{
    static const uint64_t parts[] = {1, 1, 1, 2, 4, 8, 16, 32, 128};

    if (pick(b->t, 12) == 0)
        return test_odd_size(b->t);
    return b->sizes[pick(b->t, 2)] / parts[pick(b->t, sizeof parts / sizeof *parts)];
}

/* Values of the capability's @key, '|'-joined. (borrowed) *out_len 0 = none. */
static const char *claimed(const davit_test *t, const char *key, size_t *out_len)
{
    const char *at = davit_test_component(t)->capability;
    const size_t n = strlen(key);

    for (*out_len = 0; at && *at; at += strcspn(at, ";"), at += *at == ';')
        if (strncmp(at, key, n) == 0 && at[n] == '=') {
            *out_len = strcspn(at + n + 1, ";");
            return at + n + 1;
        }
    return "";
}

/* One of the '|'-joined words of @text into @out. */
static void one_word(davit_test *t, const char *text, size_t len, char *out, size_t cap)
{
    uint64_t n = 1, want;
    size_t word = 0;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '|';
    for (want = pick(t, n); want > 0; text++, len--)
        want -= *text == '|';
    while (word < len && text[word] != '|')
        word++;
    snprintf(out, cap, "%.*s", (int)word, text);
}

static void set_type(broken *b, uint64_t i)
{
    const uint64_t n = sizeof dtypes / sizeof *dtypes, at = pick(b->t, n);
    size_t len;
    const char *layouts = claimed(b->t, "layout", &len);

    b->part_in[i].dtype = dtypes[at].name;
    b->info[i].block_elems = dtypes[at].bits == 4 ? 2 : 1;
    b->info[i].block_bytes = dtypes[at].bits == 4 ? 1 : (uint32_t)dtypes[at].bits / 8;
    if (len == 0 || pick(b->t, 2))
        return;
    /* a dtype that is a layout: blocks of a size that need not be right */
    one_word(b->t, layouts, len, b->name[i], 60);
    strcat(b->name[i], "/1");
    b->part_in[i].dtype = b->name[i];
    b->info[i].block_elems = pick(b->t, 2) ? 32 : 256;
    b->info[i].block_bytes = (uint32_t)(1 + pick(b->t, 300));
}

static void fill_part(broken *b, uint64_t i)
{
    davit_tensor_info *info = &b->info[i];

    *info = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes)};
    b->part_in[i] = (davit_quant_part_in){.struct_size = DAVIT_END(davit_quant_part_in, reserved),
                                          .suffix = b->suffix[i]};
    info->rank = pick(b->t, 8) ? 1 + (uint32_t)pick(b->t, 3) : (uint32_t)pick(b->t, 9);
    if (b->from) {
        b->part_in[i].dtype = b->from->dtype[i];
        info->block_elems = b->from->block_elems[i];
        info->block_bytes = b->from->block_bytes[i];
        info->rank = b->from->rank[i];
    }
    if (!b->from || pick(b->t, 40) == 0)
        set_type(b, i);
    info->name = b->suffix[i];
    info->dtype = b->part_in[i].dtype;
    for (uint32_t k = 0; k < info->rank; k++)
        info->shape[k] = some_axis(b);
    /* the core has no tensor whose bytes do not follow from its shape */
    if (davit_bytes_of_shape(info->shape, info->rank, info->block_elems, info->block_bytes,
                             &info->n_bytes)) {
        info->rank = 1;
        info->shape[0] = info->block_elems;
        info->n_bytes = info->block_bytes;
    }
    b->part_in[i].rank = info->rank;
    b->list[i] = &b->part_in[i];
}

static void fill_parts(broken *b)
{
    size_t len;
    const char *own = claimed(b->t, "suffix", &len);
    const char *set = sets[pick(b->t, sizeof sets / sizeof *sets)];
    uint64_t n = 0;

    if (b->from) {
        n = b->from->n_parts;
        memcpy(b->suffix, b->from->suffix, sizeof b->suffix);
    } else if (len && pick(b->t, 2)) {
        one_word(b->t, own, len, b->suffix[n++], sizeof *b->suffix);
    } else {
        do { /* one of six is left out */
            const size_t word = strcspn(set, "|");

            if (n == 0 || pick(b->t, 6))
                snprintf(b->suffix[n++], sizeof *b->suffix, "%.*s", (int)word, set);
            set += word + (set[word] == '|');
        } while (*set && n < DAVIT_MAX_PARTS);
    }
    for (uint64_t i = 0; i < n; i++)
        fill_part(b, i);
    b->in.n_parts = n;
}

static void fill_settings(broken *b)
{
    static const char *const methods[] = {NULL, "gptq", "awq", "fp8", "compressed-tensors",
                                          "modelopt", "mxfp4", "", "nonsense"};
    static const int64_t numbers[] = {0, -1, 1, 2, 3, 4, 8, 32, 64, 128, 1 << 20, INT64_MAX,
                                      INT64_MIN};
#define ANY(list) list[pick(b->t, sizeof list / sizeof *list)]
    b->settings = (davit_quant_settings){.struct_size = DAVIT_END(davit_quant_settings, ambiguous),
                                         .source = "config.json: quantization_config",
                                         .method = ANY(methods),
                                         .format = ANY(methods),
                                         .bits = ANY(numbers),
                                         .group = ANY(numbers),
                                         .block_rows = ANY(numbers),
                                         .block_cols = ANY(numbers),
                                         .symmetric = (int32_t)pick(b->t, 3) - 1,
                                         .act_order = (int32_t)pick(b->t, 3) - 1,
                                         .quantized = (int32_t)pick(b->t, 2),
                                         .allow = (uint32_t)pick(b->t, 32)};
#undef ANY
}

static const uint8_t *peek(void *ctx, uint64_t part, uint64_t *out_bytes)
{
    broken *b = ctx;

    if (part >= b->in.n_parts || !b->bytes[part] ||
        b->info[part].n_bytes > DAVIT_QUANT_PEEK)
        return NULL;
    *out_bytes = b->info[part].n_bytes;
    return b->bytes[part];
}

/* Payload for the tensors that are small enough: noise, or zeros, or one byte repeated. */
static void fill_bytes(broken *b)
{
    for (uint64_t i = 0; i < b->in.n_parts; i++) {
        const uint64_t n = b->info[i].n_bytes, kind = pick(b->t, 3);
        uint8_t *noise;

        if (n > MAX_BYTES)
            continue;
        noise = test_alloc(n);
        for (uint64_t k = 0; kind && k < n; k++)
            noise[k] = kind == 1 ? (uint8_t)davit_test_random(b->t) : 0x3c;
        b->bytes[i] = test_exact(noise, n);
        free(noise);
    }
}

/* ---- asking ---- */

/* Is one of the '|'-joined words of @list @word? */
static int has_word(const char *list, size_t len, const char *word)
{
    const size_t n = strlen(word);

    for (size_t at = 0, end; at < len; at = end + 1) {
        for (end = at; end < len && list[end] != '|'; end++)
            ;
        if (end - at == n && memcmp(list + at, word, n) == 0)
            return 1;
    }
    return 0;
}

/* davit does not ask about modules without the parts that the capability names. */
static int is_asked(const broken *b)
{
    size_t len;
    const char *parts = claimed(b->t, "part", &len);

    for (uint64_t i = 0; len && i < b->in.n_parts; i++)
        if (has_word(parts, len, b->in.parts[i]->suffix) ||
            has_word(parts, len, b->in.parts[i]->dtype))
            return 1;
    return len == 0;
}

static int claims(broken *b)
{
    const davit_quant_iface *q = davit_test_iface(b->t);
    davit_verdict v = {.struct_size = DAVIT_END(davit_verdict, flags)};
    const uint64_t before = b->t->records.n;
    const int32_t status = q->claim(davit_test_self(b->t), &b->in, &v, &b->t->sink);

    test_expect(b->t, v.verdict <= DAVIT_REFUSE && v.score <= 1000, "claim: verdict out of range");
    test_expect(b->t, v.verdict != DAVIT_REFUSE || b->t->records.n > before,
                "claim refuses without a record");
    test_expect(b->t, v.verdict == DAVIT_DECLINE || is_asked(b),
                "claim takes a module without any of the capability's parts: it would not be asked");
    return status == DAVIT_OK && v.verdict == DAVIT_ACCEPT;
}

static int passes_check(broken *b)
{
    const davit_quant_iface *q = davit_test_iface(b->t);
    const uint64_t before = b->t->records.n;
    int32_t status;

    for (uint64_t i = 0; i < b->in.n_parts; i++)
        b->part_in[i].info = &b->info[i];
    b->in.name = "module";
    b->in.want_rank = pick(b->t, 4);
    b->in.settings = pick(b->t, 2) ? &b->settings : NULL;
    b->in.peek = peek;
    b->in.peek_ctx = b;
    memset(&b->desc, 0, sizeof b->desc);
    b->desc.struct_size = DAVIT_END(davit_quant_desc, codes);
    status = q->check(davit_test_self(b->t), &b->in, &b->desc, &b->t->sink);
    test_expect(b->t, status >= 0 || b->t->records.n > before,
                "check fails with %d and no record", (int)status);
    return status == DAVIT_OK;
}

/* Whole matrix of every expert, into memory of exactly its size. */
static void decode_all(broken *b, const davit_quant_bytes *parts)
{
    const davit_quant_iface *q = davit_test_iface(b->t);
    const davit_quant_desc *d = &b->desc;
    uint64_t n = 0;

    if (!davit_bytes_mul(d->n_rows, d->n_cols, &n) || n > MAX_BYTES || d->n_experts > 64)
        return;
    for (uint64_t e = 0; e < d->n_experts; e++) {
        const davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                                       .desc = d,
                                       .parts = parts,
                                       .expert = e,
                                       .n_rows = d->n_rows,
                                       .n_cols = d->n_cols};
        davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                               .form = DAVIT_FORM_F32,
                               .stride = d->n_cols};
        float *nothing = test_alloc(n * sizeof *nothing);
        uint8_t *to = test_exact(nothing, n * sizeof *nothing);

        out.values = (float *)(void *)to;
        if (!q->verify || q->verify(davit_test_self(b->t), &tile, &b->t->sink) == DAVIT_OK)
            q->decode(davit_test_self(b->t), &tile, &out);
        test_exact_free(to, n * sizeof *nothing);
        free(nothing);
    }
}

static void use(broken *b)
{
    davit_quant_bytes parts[DAVIT_MAX_PARTS] = {{0}};
    const davit_quant_desc *d = &b->desc;
    int is_whole = 1;

    if (!test_expect(b->t, d->n_parts >= 1 && d->n_parts <= DAVIT_MAX_PARTS && d->layout &&
                               d->scheme && d->n_experts && d->n_rows && d->n_cols &&
                               d->row_unit && (d->forms & DAVIT_FORM_F32),
                     "check passes a module and describes none"))
        return;
    for (uint32_t i = 0; i < d->n_parts; i++) {
        const uint64_t at = d->parts[i].index;

        if (!test_expect(b->t, d->parts[i].role && at < b->in.n_parts,
                         "part %u has no role or names no tensor", (unsigned)i))
            return;
        is_whole = is_whole && b->bytes[at];
        parts[i] = (davit_quant_bytes){b->bytes[at], b->info[at].n_bytes};
    }
    if (is_whole) {
        decode_all(b, parts);
        if (d->n_experts <= 64)
            test_quant_cuts(b->t, d, parts, NULL, 2);
    }
}

static void remember(const broken *b, signature *to)
{
    to->n_parts = b->in.n_parts;
    memcpy(to->suffix, b->suffix, sizeof to->suffix);
    for (uint64_t i = 0; i < to->n_parts; i++) {
        snprintf(to->dtype[i], sizeof *to->dtype, "%s", b->part_in[i].dtype);
        to->rank[i] = b->part_in[i].rank;
        to->block_elems[i] = b->info[i].block_elems;
        to->block_bytes[i] = b->info[i].block_bytes;
    }
}

void davit_test_quant_broken(davit_test *t, uint64_t rounds)
{
    signature *known = test_alloc(MAX_KNOWN * sizeof *known);
    uint64_t n_known = 0;

    for (uint64_t r = 0; r < rounds; r++) {
        broken *b = test_alloc(sizeof *b);

        davit_test_forget(t);
        test_round(t);
        b->t = t;
        b->in = (davit_quant_module){.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                     .parts = b->list};
        b->from = n_known && pick(t, 4) ? &known[pick(t, n_known)] : NULL;
        b->sizes[0] = 1 + pick(t, 300);
        b->sizes[1] = 128 << pick(t, 3);
        fill_parts(b);
        fill_settings(b);
        if (claims(b)) {
            if (!b->from && n_known < MAX_KNOWN)
                remember(b, &known[n_known++]);
            fill_bytes(b);
            if (passes_check(b))
                use(b);
        }
        for (uint64_t i = 0; i < DAVIT_MAX_PARTS; i++)
            if (b->bytes[i])
                test_exact_free(b->bytes[i], b->info[i].n_bytes);
        free(b);
    }
    free(known);
    davit_test_forget(t);
}
