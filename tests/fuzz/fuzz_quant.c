/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a module: names, dtypes and shapes of its tensors, settings, payload. The linked quant
 * plugin is asked as the host asks it. What it accepts is decoded from buffers of exactly the tensors'
 * sizes, and held against itself: its codes, and boxes of it (quant_boxes.c). */
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <davit/help/quant.h>

#include "fuzz/fuzz.h"
#include "fuzz/quant_boxes.h"
#include "fuzz/quant_parts.h"
#include "plugin/registry.h"

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello, const davit_sink *sink);

typedef struct Fuzzed {
    FuzzModule module;
    davit_quant_part_in part[FUZZ_PARTS];
    const davit_quant_part_in *parts[FUZZ_PARTS];
    uint8_t *bytes[FUZZ_PARTS]; /* NULL = too large to hold */
} Fuzzed;

static void ignore(void *ctx, const davit_refusal *r)
{
    (void)ctx;
    g_assert_nonnull(r->message);
}

static const davit_sink sink = {DAVIT_END(davit_sink, refuse), NULL, ignore};

/* ---- the module ---- */

static void read_module(FuzzInput *in, Fuzzed *f)
{
    FuzzModule *m = &f->module;

    fuzz_module(in, m);
    for (uint32_t i = 0; i < m->n; i++) {
        const davit_tensor_info *t = &m->tensor[i];

        f->part[i] = (davit_quant_part_in){DAVIT_END(davit_quant_part_in, reserved), t->name, t,
                                           t->dtype, t->rank, 0};
        f->parts[i] = &f->part[i];
        f->bytes[i] = t->n_bytes <= 65536 ? malloc(t->n_bytes ? t->n_bytes : 1) : NULL;
    }
}

static const uint8_t *peek(void *ctx, uint64_t part, uint64_t *out_bytes)
{
    const Fuzzed *f = ctx;

    if (part >= f->module.n || !f->bytes[part])
        return NULL;
    *out_bytes = f->module.tensor[part].n_bytes;
    return f->bytes[part];
}

/* One of @texts, most often the first: nothing. */
static const char *choose(FuzzInput *in, const char *const *texts, size_t n)
{
    const uint8_t byte = fuzz_byte(in);

    return byte < n ? texts[byte] : NULL;
}

/* Nothing, what fits, or @least to 63. */
static int64_t number(FuzzInput *in, uint64_t plain, int64_t least)
{
    const uint8_t byte = fuzz_byte(in);

    return byte < 0x60 ? 0 : byte < 0xc0 ? (int64_t)plain : MAX((int64_t)(byte % 64), least);
}

/* What quant_config.c can say: mostly nothing, or what fits. */
static davit_quant_settings read_settings(FuzzInput *in, const FuzzModule *m)
{
    static const char *const methods[] = {NULL, "gptq", "awq", "fp8", "compressed-tensors",
                                          "modelopt", "bitsandbytes", "other"};
    static const char *const formats[] = {NULL, "gptq", "gptq_v2", "gptq_p", "pack", "marlin", "gemv",
                                          "nf4", "fp4", "nvfp4", "other"};
    static const char *const producers[] = {NULL, "0.9.0", "0.17.1", "0.13.0", "x"};
    static const char *const scales[] = {NULL, "ue8m0", "other"};
    const uint8_t has = fuzz_byte(in);
    davit_quant_settings s = {.struct_size = DAVIT_END(davit_quant_settings, ambiguous),
                              .source = has & 1 ? NULL : "fuzz"};

    s.method = choose(in, methods, G_N_ELEMENTS(methods));
    s.format = choose(in, formats, G_N_ELEMENTS(formats));
    s.producer = choose(in, producers, G_N_ELEMENTS(producers));
    s.scale_fmt = choose(in, scales, G_N_ELEMENTS(scales));
    s.bits = number(in, m->bits, 1);
    s.group = number(in, m->group, 1);
    if (has >= 0xe0)
        s.group = -1;
    s.block_rows = number(in, m->block, 1);
    if (s.block_rows) { /* the two come together */
        s.block_cols = number(in, m->block, 1);
        s.block_cols = s.block_cols ? s.block_cols : s.block_rows;
    }
    s.symmetric = fuzz_byte(in) % 3 - 1;
    s.act_order = has / 2 % 3 - 1;
    s.quantized = has / 8 % 3 - 1;
    s.allow = fuzz_byte(in) % 32;
    s.ambiguous = has >= 0xf0;
    return s;
}

/* ---- the plugin ---- */

typedef struct Plugin {
    const davit_quant_iface *iface;
    void *self;
} Plugin;

static Plugin plugin(void)
{
    static Plugin one;

    if (!one.iface) {
        const davit_component *c = davit_plugin_entry_v1(NULL, NULL)->components[0];
        const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                                    .host = davit_host_table(),
                                    .component = c->id};

        one.iface = c->iface;
        g_assert_cmpint(c->create ? c->create(NULL, &in, &one.self, &sink) : 0, ==, 0);
    }
    return one;
}

/* As plan/claim.c asks: by suffix, dtype and rank. */
static bool claims(const Plugin *p, const Fuzzed *f)
{
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    davit_quant_part_in part[FUZZ_PARTS];
    const davit_quant_part_in *parts[FUZZ_PARTS];
    const davit_quant_module signature = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                          .parts = parts,
                                          .n_parts = f->module.n};

    for (uint32_t i = 0; i < f->module.n; i++) {
        part[i] = f->part[i];
        part[i].info = NULL;
        parts[i] = &part[i];
    }
    return p->iface->claim(p->self, &signature, &verdict, &sink) == DAVIT_OK &&
           verdict.verdict == DAVIT_ACCEPT;
}

static void check(const Plugin *p, Fuzzed *f, FuzzInput *in)
{
    const davit_quant_settings settings = read_settings(in, &f->module);
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                       .name = "m",
                                       .parts = f->parts,
                                       .n_parts = f->module.n,
                                       .settings = &settings,
                                       .peek = peek,
                                       .peek_ctx = f};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    const uint8_t where[] = {fuzz_byte(in), fuzz_byte(in), fuzz_byte(in), fuzz_byte(in)};
    davit_quant_bytes parts[DAVIT_MAX_PARTS];

    for (uint32_t i = 0; i < f->module.n; i++)
        if (f->bytes[i])
            fuzz_payload(in, &f->module, &f->module.tensor[i], f->bytes[i]);
    if (p->iface->check(p->self, &module, &desc, &sink) != DAVIT_OK)
        return;
    for (uint32_t i = 0; i < desc.n_parts; i++) {
        g_assert_cmpuint(desc.parts[i].index, <, f->module.n);
        parts[i] = (davit_quant_bytes){f->bytes[desc.parts[i].index],
                                       f->module.tensor[desc.parts[i].index].n_bytes};
        if (!parts[i].ptr)
            return;
    }
    fuzz_boxes(p->iface, p->self, &desc, parts, where, &sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const Plugin p = plugin();
    FuzzInput in = {data, data + size};
    Fuzzed f;

    read_module(&in, &f);
    if (f.module.n && claims(&p, &f))
        check(&p, &f, &in);
    for (uint32_t i = 0; i < f.module.n; i++)
        free(f.bytes[i]);
    return 0;
}
