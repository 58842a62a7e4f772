/* SPDX-License-Identifier: Apache-2.0
 * Quantised layouts that davit knows by their tensors and does not read, or not in every
 * variant: refused by name, so that nobody is told "unknown". A plugin that reads one of them simply accepts it: a
 * refusal counts only where nobody accepts. */
#include <stdio.h>
#include <string.h>

#include <davit/help/records.h>
#include <davit/quant.h>

typedef struct known_part {
    const char *suffix; /* "*" after a prefix matches any rest; NULL = no further part */
    const char *dtypes; /* '|'-joined; NULL = any */
} known_part;

typedef struct known_layout {
    const char *name;
    known_part parts[3]; /* all must be there; others may be */
} known_layout;

#define F8 "f8_e4m3/1|f8_e5m2/1|f8_e4m3fnuz/1|f8_e5m2fnuz/1"

/* First match wins. Order: the more parts, the earlier. */
static const known_layout layouts[] = {
    {"GPTQ (act order)", {{"qweight", NULL}, {"scales", NULL}, {"g_idx", NULL}}},
    {"AWQ in llm-awq or GEMV-fast order", {{"qweight", "i16/1"}, {"scales", NULL}}},
    {"AWQ or GPTQ", {{"qweight", NULL}, {"scales", NULL}}},
    {"Marlin", {{"B", NULL}, {"s", NULL}}},
    {"compressed-tensors pack-quantized", {{"weight_packed", "i32/1"}, {"weight_scale", NULL}}},
    {"compressed-tensors NVFP4",
     {{"weight_packed", "u8/1"}, {"weight_scale", "f8_e4m3/1"}}},
    {"compressed-tensors MXFP4",
     {{"weight_packed", "u8/1"}, {"weight_scale", "u8/1|f8_e8m0/1"}}},
    {"ModelOpt NVFP4", {{"weight", "u8/1|f4/1"}, {"weight_scale", NULL}, {"weight_scale_2", NULL}}},
    {"FP8 with block scales", {{"weight", F8}, {"weight_scale_inv", NULL}}},
    {"FP8 with block scales", {{"", F8}, {"_scale_inv", NULL}}},
    {"MXFP8", {{"weight", F8}, {"weight_scale", "u8/1|f8_e8m0/1"}}},
    {"FP8 with tensor, channel or block scales", {{"weight", F8}, {"weight_scale", NULL}}},
    {"FP8 with stacked scales", {{"", F8}, {"_scale", NULL}}},
    {"DeepSeek FP4 experts", {{"weight", "i8/1"}, {"scale", "f8_e8m0/1"}}},
    {"FP8 with E8M0 scales", {{"weight", F8}, {"scale", NULL}}},
    {"compressed-tensors int-quantized", {{"weight", "i8/1"}, {"weight_scale", NULL}}},
    {"MXFP4 as in gpt-oss", {{"_blocks", "u8/1"}, {"_scales", "u8/1"}}},
    {"MXFP4 as in gpt-oss", {{"blocks", "u8/1"}, {"scales", "u8/1"}}},
    {"AQLM", {{"codebooks", NULL}, {"codes", NULL}}},
    {"QuIP#", {{"Qidxs", NULL}}},
    {"torchao", {{"qdata", NULL}}},
    {"EXL2", {{"q_weight", NULL}}},
    {"EXL3", {{"trellis", NULL}}},
    {"HQQ", {{"W_q", NULL}}},
    {"GGUF Q8_1 (made at run time only)", {{"*", "q8_1/1"}}},
    {"GGUF Q8_K (made at run time only)", {{"*", "q8_k/1"}}},
};

/* Weights of less than two bytes whose scales are absent, and scales without a weight in few bits. */
static const known_layout broken[] = {
    {"a weight without its scales", {{"qweight", NULL}}},
    {"a weight without its scales", {{"weight_packed", NULL}}},
    {"a weight without its scales", {{"*", F8 "|f8_e8m0/1|f4/1|f6_e2m3/1|f6_e3m2/1"}}},
    {"scales without a weight", {{"weight_scale*", NULL}}},
    {"scales without a weight", {{"scales", NULL}}},
};

/* What each of them lacks. */
static const char *const absent[] = {"scales", "weight_scale", "weight_scale_inv or weight_scale",
                                     "weight in FP8, U8 or I8, or weight_packed",
                                     "qweight or blocks"};

static int is_one_of(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *p = list; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (strncmp(p, word, n) == 0 && (p[n] == '|' || p[n] == '\0'))
            return 1;
    return 0;
}

static int is_suffix(const char *pattern, const char *suffix)
{
    const size_t n = strlen(pattern);

    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, suffix, n - 1) == 0;
    return strcmp(pattern, suffix) == 0;
}

static const davit_quant_part_in *find_part(const davit_quant_module *m, const known_part *want)
{
    for (uint64_t i = 0; i < m->n_parts; i++)
        if (is_suffix(want->suffix, m->parts[i]->suffix) &&
            (!want->dtypes || is_one_of(want->dtypes, m->parts[i]->dtype)))
            return m->parts[i];
    return NULL;
}

/* The first layout of @table all of whose parts are there, or NULL. */
static const known_layout *find_layout(const known_layout *table, size_t n,
                                       const davit_quant_module *m)
{
    for (size_t i = 0; i < n; i++) {
        size_t p = 0;
        while (p < 3 && table[i].parts[p].suffix && find_part(m, &table[i].parts[p]))
            p++;
        if (p == 3 || !table[i].parts[p].suffix)
            return &table[i];
    }
    return NULL;
}

static int32_t say_no(const davit_quant_module *m, const known_layout *found, uint32_t code,
                      const char *message, const char *hint, davit_verdict *out,
                      const davit_sink *sink)
{
    const davit_quant_part_in *part = find_part(m, &found->parts[0]);

    davit_say(sink, 0,
              &(davit_refusal){
                  .code = code,
                  .subject = *part->suffix ? part->suffix : part->dtype,
                  .expected = "F32, F16, BF16, FP8, GPTQ, AWQ, compressed-tensors, NVFP4, MXFP4, bitsandbytes, or GGUF blocks",
                  .found = found->name,
                  .message = message,
                  .hint = hint,
              });
    return davit_refuse(out, 0);
}

/* What there is: "weight bf16/1, weight_scale f32/1". */
static void list_parts(const davit_quant_module *m, char *out, size_t size)
{
    size_t n = 0;

    for (uint64_t i = 0; i < m->n_parts && n < size; i++) {
        const int more = snprintf(out + n, size - n, "%s%s%s%s", n ? ", " : "", m->parts[i]->suffix,
                                  *m->parts[i]->suffix ? " " : "", m->parts[i]->dtype);

        n += more > 0 ? (size_t)more : 0;
    }
}

static int32_t say_broken(const davit_quant_module *m, const known_layout *found,
                          davit_verdict *out, const davit_sink *sink)
{
    const davit_quant_part_in *part = find_part(m, &found->parts[0]);
    char have[160] = "", text[200];

    list_parts(m, have, sizeof have);
    snprintf(text, sizeof text, "%s: %s", found->name, have);
    davit_say(sink, 0,
              &(davit_refusal){
                  .code = DAVIT_R_TENSOR_MISSING,
                  .subject = *part->suffix ? part->suffix : part->dtype,
                  .expected = absent[found - broken],
                  .found = text,
                  .message = "a quantised module lacks a tensor that belongs to it",
                  .hint = "a shard may be missing, or the conversion dropped it",
              });
    return davit_refuse(out, 0);
}

static int32_t known_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                           const davit_sink *sink)
{
    const known_layout *found;
    (void)self;

    found = find_layout(layouts, sizeof layouts / sizeof *layouts, signature);
    if (found)
        return say_no(signature, found, DAVIT_R_QUANT_UNKNOWN,
                      "this quantised layout is known, but this version does not read it",
                      "use a checkpoint in one of the layouts named above", out, sink);
    found = find_layout(broken, sizeof broken / sizeof *broken, signature);
    return found ? say_broken(signature, found, out, sink) : davit_decline(out);
}

/* claim never accepts, so that these are never reached; the table needs them. */
static int32_t known_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                           const davit_sink *sink)
{
    (void)self;
    (void)out;
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){
                         .code = DAVIT_R_QUANT_UNKNOWN,
                         .subject = module->name,
                         .message = "this plugin only names layouts, it reads none",
                     });
}

static void known_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    (void)self;
    (void)tile;
    (void)out;
}

static const davit_quant_iface known_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, decode),
    .claim = known_claim,
    .check = known_check,
    .decode = known_decode,
};

DAVIT_COMPONENT(known, DAVIT_KIND_QUANT, "org.davit.quant.known",
                "suffix=q_weight|trellis|W_q|Qidxs|codes|qdata", DAVIT_INSPECT, 0,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &known_quant);

DAVIT_PLUGIN("org.davit.quant.known", "Names of quantised layouts", "davit", "0.1.0",
             "Apache-2.0", &known);
