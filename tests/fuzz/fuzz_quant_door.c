/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a quantised checkpoint, through the core: tensors of up to three modules from a
 * format of this program's own, and the quantisation settings as JSON. Every quant plugin comes from
 * the registry and is asked as a plan asks; what is claimed and checked is decoded. */
#include <stdlib.h>
#include <string.h>

#include <davit/format.h>

#include "checkpoint/checkpoint_private.h"
#include "fuzz/fuzz.h"
#include "fuzz/quant_json.h"
#include "plan/module.h"
#include "plan/tools.h"

#define MOST_TENSORS (3 * FUZZ_PARTS)
#define MOST_BYTES   8192 /* of all tensors */
#define MOST_VALUES  512  /* decoded of one module */

static const char *const modules[] = {"model.layers.0.self_attn.q_proj",
                                      "model.layers.0.mlp.experts.3.up_proj",
                                      "model.layers.0.mlp.experts.gate_up_proj"};

/* What the format gives next. */
typedef struct Given {
    davit_extent extent[MOST_TENSORS];
    const davit_tensor_info *tensor[MOST_TENSORS]; /* what it was made of, and of which module */
    uint32_t module[MOST_TENSORS];
    char name[MOST_TENSORS][80];
    uint32_t n;
    uint64_t n_bytes;
} Given;

static Given given;

/* ---- the format ---- */

static int32_t give(void *self, davit_source *src, const davit_format_out *out,
                    void **out_reader, const davit_sink *sink)
{
    int32_t status = DAVIT_OK;

    (void)self;
    (void)src;
    (void)sink;
    for (uint32_t i = 0; i < given.n && !status; i++)
        status = out->tensor(out->ctx, &given.extent[i]);
    if (!status)
        *out_reader = NULL;
    return status;
}

static void end(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static int32_t take_all(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    (void)in;
    (void)sink;
    out->verdict = DAVIT_ACCEPT;
    out->score = 1000;
    out->purposes = DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT;
    return DAVIT_OK;
}

static GArray *formats(void)
{
    static const davit_format_iface iface = {
        .struct_size = DAVIT_END(davit_format_iface, close), .open = give, .close = end};
    static GArray *one;

    if (!one) {
        const DavitFormat format = {
            .id = "fuzz", .capability = "ext=fuzz", .probe = take_all, .iface = &iface};

        one = g_array_new(FALSE, FALSE, sizeof format);
        g_array_append_val(one, format);
    }
    return one;
}

static const GArray *quants(void)
{
    static GArray *all;

    if (!all) {
        g_autoptr(DavitReport) report = davit_report_new();
        const char *const paths[] = {DAVIT_PLUGIN_DIR, NULL};
        const DavitRegistryOptions options = {
            .plugin_paths = paths, .builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true};

        all = davit_tools_quants(davit_registry_open(&options, report));
        g_assert_cmpuint(all->len, >=, 10);
    }
    return all;
}

/* ---- from bytes ---- */

/* A part of a module: "m.suffix", "m_suffix" or "m". */
static void add_tensor(const char *module, const davit_tensor_info *t)
{
    char *name = given.name[given.n];
    const bool joined = t->name[0] == '_' || t->name[0] == '\0';
    const int n = g_snprintf(name, sizeof given.name[0], "%s%s%s", module, joined ? "" : ".",
                             t->name);
    davit_extent *e = &given.extent[given.n++];

    *e = (davit_extent){.struct_size = DAVIT_END(davit_extent, block_bytes),
                        .name = {name, (uint64_t)n},
                        .dtype = t->dtype,
                        .rank = t->rank,
                        .off = given.n_bytes,
                        .n_bytes = t->n_bytes,
                        .block_elems = t->block_elems,
                        .block_bytes = t->block_bytes};
    memcpy(e->shape, t->shape, sizeof e->shape);
    given.n_bytes += t->n_bytes;
}

/* Tensors of one to three modules, and what each is. */
static void read_modules(FuzzInput *in, FuzzModule *out)
{
    const uint8_t many = fuzz_byte(in);
    const uint32_t n = many < 0xc0 ? 1 : many < 0xf0 ? 2 : G_N_ELEMENTS(modules);

    given = (Given){0};
    for (uint32_t m = 0; m < n; m++) {
        fuzz_module(in, &out[m]);
        for (uint32_t i = 0; i < out[m].n; i++) {
            const davit_tensor_info *t = &out[m].tensor[i];

            if (t->n_bytes > MOST_BYTES - given.n_bytes)
                continue;
            given.module[given.n] = m;
            given.tensor[given.n] = t;
            add_tensor(modules[(many + m) % G_N_ELEMENTS(modules)], t);
        }
    }
}

/* (owned, free) Bytes of all tensors and one more, as no file is empty. */
static uint8_t *make_payload(const FuzzInput *in, const FuzzModule *m)
{
    uint8_t *payload = malloc(given.n_bytes + 1);

    payload[given.n_bytes] = 0;
    for (uint32_t i = 0; i < given.n; i++)
        fuzz_payload(in, &m[given.module[i]], given.tensor[i], payload + given.extent[i].off);
    return payload;
}

/* ---- use ---- */

static void decode(const DavitModule *m, const DavitCheckpoint *ckpt, DavitReport *report)
{
    const davit_quant_desc *d = m->desc;
    float *values;
    uint64_t rows;

    g_assert_true(d->n_experts && d->n_rows && d->n_cols);
    if (d->n_cols > MOST_VALUES)
        return;
    rows = MIN(d->n_rows, MOST_VALUES / d->n_cols);
    values = malloc(rows * d->n_cols * sizeof *values);
    davit_module_decode(m, ckpt, d->n_experts - 1, d->n_rows - rows, rows, values, report);
    free(values);
}

/* Every module of @ckpt under the settings of @block. */
static void use(const DavitCheckpoint *ckpt, const json_t *block, bool beside,
                DavitReport *report)
{
    g_autoptr(DavitQuantConfig) config =
        beside ? davit_quant_config_parse(NULL, block, "quantize_config.json", report)
               : davit_quant_config_parse(block, block, "hf_quant_config.json", report);
    g_autoptr(DavitModuleTable) table =
        davit_module_table_new(ckpt, quants(), NULL, config);

    for (size_t i = 0; i < davit_module_table_count(table); i++) {
        DavitModule *m = davit_module_table_at(table, i);

        if (davit_module_table_need(table, m, report) == DAVIT_OK)
            decode(m, ckpt, report);
        else
            g_assert_cmpuint(davit_report_count(report), >, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitCheckpoint *ckpt;
    FuzzInput in = {data, data + size};
    FuzzModule m[G_N_ELEMENTS(modules)];
    const bool beside = fuzz_byte(&in) & 1;
    uint8_t *payload;
    json_t *block;

    read_modules(&in, m);
    block = fuzz_settings(&in);
    payload = make_payload(&in, m);
    ckpt = davit_checkpoint_open_source(
        formats(), davit_source_from_bytes("m.fuzz", payload, given.n_bytes + 1),
        DAVIT_INSPECT | DAVIT_CONVERT, report);
    if (ckpt)
        use(ckpt, block, beside, report);
    else
        g_assert_true(davit_report_failed(report));
    json_decref(block);
    davit_checkpoint_free(ckpt);
    free(payload);
    return 0;
}
