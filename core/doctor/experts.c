/* SPDX-License-Identifier: Apache-2.0
 * D11: experts that are stored one by one ("experts.N."), against each other, their router and
 * the config. Needs names and shapes only: no architecture has to know the model. */
#include <string.h>

#include "doctor/doctor_private.h"

#define MAX_EXPERTS 65536u
#define MAX_LAYERS  1024
#define MAX_SAID    8u

/* The experts of one layer. */
typedef struct Layer {
    GByteArray *there; /* (owned) 1 = expert of this number is stored; NULL = none is */
    uint64_t router;   /* rows of the router, 0 = none is stored */
} Layer;

static void layer_clear(void *p)
{
    Layer *l = p;

    if (l->there)
        g_byte_array_unref(l->there);
}

static void mark(Layer *l, guint64 expert)
{
    l->there = l->there ? l->there : g_byte_array_new();
    if (expert >= l->there->len) {
        const guint before = l->there->len;

        g_byte_array_set_size(l->there, (guint)expert + 1);
        memset(l->there->data + before, 0, l->there->len - before);
    }
    l->there->data[expert] = 1;
}

/* "mlp.gate.weight", "block_sparse_moe.gate.weight", "mlp.router.weight": rows are experts. */
static bool is_router(const davit_tensor_info *t)
{
    return t->rank == 2 && (g_str_has_suffix(t->name, ".gate.weight") ||
                            g_str_has_suffix(t->name, ".router.weight"));
}

static GArray *collect(const DavitCheckpoint *c)
{
    GArray *layers = g_array_new(FALSE, TRUE, sizeof(Layer));

    g_array_set_clear_func(layers, layer_clear);
    g_array_set_size(layers, (guint)MIN(davit_count_layers(c), MAX_LAYERS));
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        const char *at = strstr(t->name, "experts.");
        const bool numbered = at && g_ascii_isdigit(at[8]);
        int64_t layer;
        guint64 expert;

        if (!numbered && !is_router(t))
            continue;
        layer = davit_name_layer(t->name);
        if (layer < 0 || layer >= (int64_t)layers->len)
            continue;
        if (!numbered) {
            g_array_index(layers, Layer, layer).router = t->shape[0];
            continue;
        }
        expert = g_ascii_strtoull(at + 8, NULL, 10);
        if (expert < MAX_EXPERTS)
            mark(&g_array_index(layers, Layer, layer), expert);
    }
    return layers;
}

/* Number of experts that the config states, by whatever key. (borrowed) NULL = it states none. */
static const char *stated_experts(const DavitPatient *p, int64_t *out)
{
    static const char *const no[] = {"per_tok", "shared", "group", "null", "hash", "used"};
    const json_t *config = p->settings ? davit_settings_json(p->settings) : p->config;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)config, key, value)
    {
        bool other = !strstr(key, "experts") || !json_is_integer(value) ||
                     (!g_str_has_prefix(key, "num_") && !g_str_has_prefix(key, "n_") &&
                      !g_str_has_prefix(key, "moe_num_"));

        for (size_t i = 0; !other && i < G_N_ELEMENTS(no); i++)
            other = strstr(key, no[i]) != NULL;
        if (other)
            continue;
        *out = json_integer_value(value);
        return key;
    }
    return NULL;
}

/* The number that every layer with experts has, 0 = they differ, or have holes, or the router of
 * one has another. */
static uint64_t common_count(const GArray *layers, bool *out_router)
{
    uint64_t n = 0;

    *out_router = false;
    for (guint i = 0; i < layers->len; i++) {
        const Layer *l = &g_array_index(layers, Layer, i);

        if (!l->there)
            continue;
        if (memchr(l->there->data, 0, l->there->len) || (n && n != l->there->len) ||
            (l->router && l->router != l->there->len))
            return 0;
        n = l->there->len;
        *out_router = *out_router || l->router;
    }
    return n;
}

static void say_config(DavitDoctor *d, const char *key, int64_t stated, uint64_t n, bool router)
{
    davit_doctor_say(
        d, "D11",
        &(DavitFinding){
            .status = DAVIT_E_MISMATCH,
            .subject = davit_doctor_text(d, "config.json: %s", key),
            .expected = davit_doctor_text(d, "%" PRIu64 ", experts of every layer%s", n,
                                          router ? " and rows of their routers" : ""),
            .found = davit_doctor_text(d, "%" PRId64, stated),
            .message = "the config states another number of experts than every layer has: it is "
                       "of another model, perhaps of the one that this was made from",
            .hint = davit_doctor_text(d, "set %s to %" PRIu64, key, n)});
}

/* (owned) "gate_proj.weight, up_proj.weight": what an expert that is there is made of. */
static char *parts_of_expert(const DavitCheckpoint *c)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *stem = NULL;
    size_t n_stem = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const char *name = davit_checkpoint_tensor(c, i)->name;
        const char *at = strstr(name, "experts.");
        const char *end = at && g_ascii_isdigit(at[8]) ? strchr(at + 8, '.') : NULL;

        if (!end || (stem && (strncmp(name, stem, n_stem) != 0 || name[n_stem] != '.')))
            continue;
        stem = name;
        n_stem = (size_t)(end - name);
        if (out->len < 100)
            g_string_append_printf(out, "%s%s", out->len ? ", " : "", end + 1);
    }
    return g_strdup(out->str);
}

/* The lowest that is absent, -1 = none. */
static int64_t first_hole(const Layer *l, int64_t n, int64_t *n_there)
{
    int64_t hole = -1;

    *n_there = 0;
    for (int64_t e = 0; e < n; e++) {
        const bool is = e < (int64_t)l->there->len && l->there->data[e];

        *n_there += is;
        hole = !is && hole < 0 ? e : hole;
    }
    return hole;
}

/* Did the index promise what is not there? Then D04 has said it. */
static bool is_promised(DavitDoctor *d)
{
    const DavitReport *f = davit_doctor_of(d, "D04")->findings;

    for (size_t i = 0; i < davit_report_count(f); i++)
        if (davit_report_get(f, i)->code == DAVIT_R_TENSOR_MISSING)
            return true;
    return false;
}

static const char *hole_hint(DavitDoctor *d)
{
    if (is_promised(d))
        return "download the files again that the index names for them";
    if (davit_checkpoint_index(d->patient.checkpoint))
        return "the index does not list them either, so another download of these files will not "
               "bring them: ask the model's origin";
    return "the file does not list them, so they were lost before it was written: compare with "
           "the model's origin";
}

static void check_layer(DavitDoctor *d, const Layer *l, guint layer, int64_t stated,
                        const char *parts)
{
    const int64_t known = l->router ? (int64_t)MIN(l->router, MAX_EXPERTS) : stated;
    const int64_t n = MAX((int64_t)l->there->len, known);
    int64_t n_there = 0;
    const int64_t hole = first_hole(l, n, &n_there);

    if (hole < 0 && (known < 0 || n == known))
        return;
    davit_doctor_say(
        d, "D11",
        &(DavitFinding){
            .status = DAVIT_E_CORRUPT,
            .subject = davit_doctor_text(d, "layer %u: experts", layer),
            .expected = davit_doctor_text(d, "0 to %" PRId64 " without a hole%s",
                                          (known > 0 ? known : n) - 1,
                                          l->router ? ", one a row of the router" : ""),
            .found = hole >= 0 ? davit_doctor_text(d, "%" PRId64 " experts, number %" PRId64
                                                      " is absent: %s",
                                                   n_there, hole, parts)
                               : davit_doctor_text(d, "%" PRId64 " experts", n_there),
            .message = hole >= 0 ? "an expert of the layer is not stored"
                                 : "the layer has more experts than its router or the config says",
            .hint = hole >= 0 ? hole_hint(d) : NULL});
}

void davit_check_experts(DavitDoctor *d)
{
    g_autoptr(GArray) layers = collect(d->patient.checkpoint);
    g_autofree char *parts = NULL;
    int64_t stated = -1;
    const char *key = stated_experts(&d->patient, &stated);
    bool any = false, router = false;
    uint64_t common;
    const size_t before = davit_report_count(davit_doctor_of(d, "D11")->findings);

    for (guint i = 0; i < layers->len; i++)
        any = any || g_array_index(layers, Layer, i).there;
    davit_doctor_fact(d, "D11", "%u layers%s", layers->len, any ? ", experts by number" : "");
    if (!any)
        return;
    common = common_count(layers, &router);
    if (common && key && stated > 0 && (uint64_t)stated != common &&
        (router || (uint64_t)stated < common)) {
        say_config(d, key, stated, common, router);
        return;
    }
    parts = parts_of_expert(d->patient.checkpoint);
    for (guint i = 0; i < layers->len; i++)
        if (g_array_index(layers, Layer, i).there &&
            davit_report_count(davit_doctor_of(d, "D11")->findings) < before + MAX_SAID)
            check_layer(d, &g_array_index(layers, Layer, i), i, stated, parts);
}
