/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a quantised checkpoint, through the core: tensors of up to three modules from a
 * format of this program's own, behind them the quantisation settings as JSON. Every quant plugin
 * comes from the registry and is asked as a plan asks; what is claimed and checked is decoded. */
#include <stdlib.h>
#include <string.h>

#include <davit/format.h>

#include "checkpoint/checkpoint_private.h"
#include "fuzz/fuzz.h"
#include "fuzz/quant_parts.h"
#include "plan/module.h"
#include "plan/tools.h"

#define MOST_TENSORS 8
#define MOST_BYTES   32768 /* of all tensors */
#define MOST_VALUES  4096  /* decoded of one module */

static const char *const modules[] = {"model.layers.0.self_attn.q_proj",
                                      "model.layers.0.mlp.experts.3.up_proj",
                                      "model.layers.0.mlp.experts.gate_up_proj"};

/* What the format gives next. */
typedef struct Given {
    davit_extent extent[MOST_TENSORS];
    char name[MOST_TENSORS][80];
    uint32_t n;
    uint64_t n_bytes;
    const davit_extent *state; /* the one that holds JSON, NULL = none */
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

    if (strstr(t->name, "quant_state"))
        given.state = e;
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

static void read_tensors(FuzzInput *in)
{
    const uint32_t n = 1 + fuzz_byte(in) % MOST_TENSORS;
    const uint8_t layout = fuzz_byte(in);
    uint32_t part[G_N_ELEMENTS(modules)] = {0};
    davit_tensor_info t;

    given = (Given){0};
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t where = fuzz_byte(in);
        const uint32_t m = where < 0xc0 ? 0 : where % G_N_ELEMENTS(modules);

        if (part[m] < FUZZ_PARTS && fuzz_part(in, layout, part[m]++, &t) &&
            t.n_bytes <= MOST_BYTES - given.n_bytes)
            add_tensor(modules[m], &t);
    }
}

/* (owned, free) Bytes of all tensors and one more, as no file is empty. A tensor of JSON has the
 * same text as the settings, with blanks behind it. */
static uint8_t *make_payload(const FuzzInput *in)
{
    const size_t n = (size_t)(in->end - in->at);
    uint8_t *payload = malloc(given.n_bytes + 1);

    fuzz_fill(in, payload, given.n_bytes + 1);
    if (given.state && given.state->n_bytes > n)
        memset(payload + given.state->off, ' ', given.state->n_bytes);
    if (given.state && n > 0)
        memcpy(payload + given.state->off, in->at, MIN(n, given.state->n_bytes));
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
    const bool beside = fuzz_byte(&in) & 1;
    uint8_t *payload;
    json_error_t error;
    json_t *block;

    read_tensors(&in);
    payload = make_payload(&in);
    ckpt = davit_checkpoint_open_source(
        formats(), davit_source_from_bytes("m.fuzz", payload, given.n_bytes + 1),
        DAVIT_INSPECT | DAVIT_CONVERT, report);
    block = json_loadb((const char *)in.at, (size_t)(in.end - in.at), JSON_DISABLE_EOF_CHECK,
                       &error);
    if (ckpt)
        use(ckpt, block, beside, report);
    else
        g_assert_true(davit_report_failed(report));
    json_decref(block);
    davit_checkpoint_free(ckpt);
    free(payload);
    return 0;
}
