/* SPDX-License-Identifier: Apache-2.0
 * Names of tensors: a wrapper's prefix in front of all, joined or split projections,
 * holes among experts; and the name of the architecture itself. */
#include <string.h>

#include "doctor/doctor_private.h"
#include "plan/coverage.h"

/* ---- D06 ---- */

/* Every name that an architecture plugin states. (owned) */
static GPtrArray *known_names(DavitRegistry *registry)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(DavitReport) aside = davit_report_new();

    for (guint i = 0; i < list->len; i++) {
        const davit_arch_iface *iface;
        void *self;
        const void *table;

        if (davit_component_use(g_ptr_array_index(list, i), &table, &self, aside))
            continue;
        iface = table;
        const char *const texts[] = {iface->hf, iface->model_types, iface->gguf};
        for (size_t t = 0; t < G_N_ELEMENTS(texts); t++) {
            g_auto(GStrv) words = g_strsplit(texts[t] ? texts[t] : "", "|", -1);

            for (char **w = words; *w; w++)
                g_ptr_array_add(names, g_strdup(*w));
        }
    }
    return names;
}

/* (owned) @name without the words that most names end in: they are no likeness. */
static char *stem_of(const char *name)
{
    static const char *const ends[] = {"ForCausalLM", "ForConditionalGeneration"};

    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++)
        if (g_str_has_suffix(name, ends[i]))
            return g_strndup(name, strlen(name) - strlen(ends[i]));
    return g_strdup(name);
}

static const char *nearest(const GPtrArray *names, const char *name)
{
    g_autofree char *stem = stem_of(name);
    const char *best = NULL;
    size_t least = strlen(stem) / 3 + 1;

    for (guint i = 0; i < names->len; i++) {
        const char *other = g_ptr_array_index(names, i);
        g_autofree char *other_stem = stem_of(other);
        const size_t distance = davit_name_distance(stem, other_stem, least);

        if (distance < least) {
            least = distance;
            best = other;
        }
    }
    return best;
}

static const char *first_name(const DavitSettings *s)
{
    const char *const *names = davit_settings_hf_names(s);

    if (davit_settings_is_gguf(s))
        return davit_settings_gguf_arch(s);
    return names[0] ? names[0] : davit_settings_model_types(s)[0];
}

static void suggest_name(DavitDoctor *d)
{
    const DavitRecord *r =
        davit_report_first_error(davit_doctor_of(d, "D06")->findings, 0);
    const char *name = first_name(d->patient.settings);
    g_autoptr(GPtrArray) names = NULL;
    const char *near;

    if (!r || r->code != DAVIT_R_ALL_DECLINED)
        return;
    if (!name) {
        davit_doctor_say(d, "D06",
                         &(DavitFinding){.status = DAVIT_E_UNSUPPORTED,
                                         .subject = "config.json: model_type",
                                         .expected = "model_type, and architectures",
                                         .found = "neither",
                                         .message = "the config does not say what the "
                                                    "model is: the keys were lost",
                                         .hint = "restore both keys from the model's "
                                                 "origin"});
        return;
    }
    names = known_names(d->patient.registry);
    near = nearest(names, name);
    if (near)
        davit_doctor_say(d, "D06",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = name,
                                         .expected = near,
                                         .message = "the nearest name that an "
                                                    "architecture plugin states",
                                         .hint = "use it only if it is the same model "
                                                 "under a changed name"});
}

/* A converter may have written the wrong family. Only of families whose names are not
 * given to others' weights. */
static void check_family(DavitDoctor *d)
{
    static const char *const families[] = {"gemma", "falcon", "mamba", "starcoder", "gpt2"};
    const char *arch = davit_settings_gguf_arch(d->patient.settings);
    const davit_kv *kv =
        arch ? davit_checkpoint_find_key(d->patient.checkpoint, "general.name") : NULL;
    davit_span span;
    g_autofree char *text = NULL;
    g_autofree char *name = NULL;

    if (!kv || !davit_kv_text(kv, &span))
        return;
    text = g_strndup(span.ptr, span.len);
    name = g_ascii_strdown(text, -1);
    for (size_t i = 0; i < G_N_ELEMENTS(families) && !strstr(name, "distill"); i++)
        if (strstr(name, families[i]) && !strstr(arch, families[i]))
            davit_doctor_say(d, "D06",
                             &(DavitFinding){.severity = d->patient.plan ? DAVIT_NOTE
                                                                         : DAVIT_WARNING,
                                             .subject = "general.architecture",
                                             .expected = families[i],
                                             .found = arch,
                                             .message = davit_doctor_text(
                                                 d, "the file's name (%s) speaks of "
                                                    "another family than its "
                                                    "architecture key", text),
                                             .hint = "convert the model again with a "
                                                     "converter that knows it"});
}

static void check_architecture(DavitDoctor *d)
{
    const json_t *map = json_object_get(d->patient.config, "auto_map");

    if (json_is_object(map))
        davit_doctor_say(d, "D06",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "config.json: auto_map",
                                         .found = "code of the model's own",
                                         .message = "the model brings Python code for "
                                                    "other programs; davit never runs "
                                                    "code from a model's folder",
                                         .hint = "nothing; a plugin gives davit the "
                                                 "architecture"});
    if (!d->patient.settings) {
        davit_doctor_skip(d, "D06", "a config that can be read");
        return;
    }
    suggest_name(d);
    check_family(d);
    if (d->patient.plan)
        davit_doctor_fact(d, "D06", "%s, taken by %s", first_name(d->patient.settings),
                          d->patient.plan->arch->id);
}

/* ---- D08 ---- */

/* Does a finding of D07 speak of a missing tensor with one of @tails? */
static bool misses(const DavitDoctor *d, const char *tails);

/* Beginnings of names behind the prefix that every text model's layers have. */
static const char *const roots[] = {"layers.0.", "h.0.", "blk.0.", "block.0."};
/* Prefixes that are usual; slots are looked for under these and a few more. */
static const char *const known_prefixes[] = {
    "",       "model.",       "language_model.model.", "model.language_model.",
    "blk.",   "transformer.", "language_model.",       "thinker.model.",
    "model.text_model."};

static bool is_known_prefix(const char *prefix)
{
    for (size_t i = 0; i < G_N_ELEMENTS(known_prefixes); i++)
        if (strcmp(prefix, known_prefixes[i]) == 0)
            return true;
    return false;
}

/* A wrapper's prefix that the plan strips by itself (plan/match.c). */
static bool is_found_by_plan(const char *prefix)
{
    static const char *const list[] = {"base_model.model.model.", "base_model.model.",
                                       "model.model."};

    for (size_t i = 0; i < G_N_ELEMENTS(list); i++)
        if (strcmp(prefix, list[i]) == 0)
            return true;
    return false;
}

/* (owned) what stands before the first layer's names, NULL if no name looks like one. */
static char *find_prefix(const DavitCheckpoint *c)
{
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const char *name = davit_checkpoint_tensor(c, i)->name;

        for (size_t r = 0; r < G_N_ELEMENTS(roots); r++) {
            const char *at = strstr(name, roots[r]);

            if (at && (at == name || at[-1] == '.') && !strstr(name, "vis"))
                return g_strndup(name, (gsize)(at - name));
        }
    }
    return NULL;
}

/* The part of a prefix that a wrapper added. (borrowed length within @prefix) */
static size_t wrapper_length(const char *prefix)
{
    size_t best = strlen(prefix);

    for (size_t i = 0; i < G_N_ELEMENTS(known_prefixes); i++)
        if (known_prefixes[i][0] && g_str_has_suffix(prefix, known_prefixes[i]))
            best = MIN(best, strlen(prefix) - strlen(known_prefixes[i]));
    return best;
}

/* Words that a wrapper puts inside the names of modules. */
static void check_infix(DavitDoctor *d)
{
    static const struct {
        const char *word, *message, *hint;
    } table[] = {{".base_layer.", "an adapter's wrapper is inside the names: the adapter was "
                                  "not merged",
                  "merge the adapter where it was trained, and save again"},
                 {"._orig_mod.", "a compiled module's wrapper is inside the names",
                  "save the model from inside the wrapper"},
                 {"._fsdp_wrapped_module.", "a sharded trainer's wrapper is inside the names",
                  "save the model from inside the wrapper"},
                 {"._checkpoint_wrapped_module.", "a wrapper that recomputes activations is "
                                                  "inside the names",
                  "save the model from inside the wrapper"}};
    const DavitCheckpoint *c = d->patient.checkpoint;

    for (size_t w = 0; w < G_N_ELEMENTS(table); w++)
        for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
            const char *name = davit_checkpoint_tensor(c, i)->name;

            if (!strstr(name, table[w].word))
                continue;
            davit_doctor_say(d, "D08",
                             &(DavitFinding){.severity = DAVIT_NOTE,
                                             .status = d->patient.plan ? DAVIT_OK
                                                                       : DAVIT_E_MISMATCH,
                                             .subject = name,
                                             .expected = "names of the model's own "
                                                         "modules",
                                             .found = table[w].word,
                                             .message = table[w].message,
                                             .hint = table[w].hint});
            break;
        }
}

static bool has_infix(const DavitCheckpoint *c, const char *word)
{
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++)
        if (strstr(davit_checkpoint_tensor(c, i)->name, word))
            return true;
    return false;
}

/* Layers under another family's word, where the architecture wants "layers.". */
static void check_family_names(DavitDoctor *d, const char *prefix)
{
    const davit_tensor_info *layer = NULL;
    const DavitCheckpoint *c = d->patient.checkpoint;

    for (size_t i = 0; !layer && i < davit_checkpoint_n_tensors(c); i++)
        if (davit_name_layer(davit_checkpoint_tensor(c, i)->name) == 0)
            layer = davit_checkpoint_tensor(c, i);
    if (d->patient.plan || !layer || strstr(layer->name, "layers.") ||
        strstr(layer->name, "blk.") || !misses(d, "q_proj.weight|gate_proj.weight"))
        return;
    davit_doctor_say(d, "D08",
                     &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                     .subject = layer->name,
                                     .expected = "layers.0. in front of a layer's names",
                                     .found = layer->name + strlen(prefix),
                                     .message = "the names are another family's, or were "
                                                "changed on the way",
                                     .hint = "take the config of the model that the "
                                             "weights belong to, or rename the tensors"});
}

/* Where all names are wrong the missing head is one more of them, and --tie no remedy. */
static void move_head(DavitDoctor *d)
{
    DavitReport *head = davit_doctor_of(d, "D12")->findings;

    if (!davit_report_failed(davit_doctor_of(d, "D08")->findings))
        return;
    davit_report_append(davit_doctor_of(d, "D07")->findings, head);
    davit_report_truncate(head, 0);
}

static void check_prefix(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    g_autofree char *prefix = find_prefix(c);
    const size_t n = davit_checkpoint_n_tensors(c);
    size_t n_wrapper, n_with = 0;

    if (!prefix) {
        davit_doctor_skip(d, "D08", "tensors of layers");
        return;
    }
    davit_doctor_fact(d, "D08", "layers lie under \"%s\"", prefix);
    check_infix(d);
    check_family_names(d, prefix);
    if (is_known_prefix(prefix))
        return;
    n_wrapper = wrapper_length(prefix);
    for (size_t i = 0; i < n; i++)
        n_with += strncmp(davit_checkpoint_tensor(c, i)->name, prefix, n_wrapper) == 0;
    /* where the plan found its way all the same it is a curiosity */
    davit_doctor_say(
        d, "D08",
        &(DavitFinding){
            .severity = DAVIT_NOTE,
            .status = d->patient.plan || is_found_by_plan(prefix) ? DAVIT_OK
                                                                  : DAVIT_E_MISMATCH,
            .subject = davit_doctor_text(d, "%.*s", (int)n_wrapper, prefix),
            .expected = "names that begin with the model's own words",
            .found = davit_doctor_text(d, "%zu of %zu tensors begin so", n_with, n),
            .message = "a wrapper of the training program is in front of the names",
            .hint = has_infix(c, ".base_layer.")
                        ? "taking it off alone repairs nothing while .base_layer. is inside "
                          "the names: merge the adapter, and save again"
                        : davit_doctor_text(d, "--strip-prefix '%.*s', or save the model from "
                                         "inside the wrapper",
                                      (int)n_wrapper, prefix)});
}

/* ---- D09 ---- */

typedef struct Join {
    const char *joined; /* tails, '|'-joined */
    const char *split;  /* one of the parts */
    const char *what;
} Join;

static const Join joins[] = {
    {"qkv_proj.weight|query_key_value.weight|c_attn.weight|Wqkv.weight|W_pack.weight|"
     "in_proj_qkv.weight|wqkv.weight|attn_qkv.weight",
     "q_proj.weight|attn_q.weight|wq.weight", "query, key and value"},
    {"gate_up_proj.weight|gate_up_proj|w12.weight|dense_h_to_4h.weight|gate_and_up_proj.weight",
     "gate_proj.weight|ffn_gate.weight|w1.weight", "gate and up"},
};

static bool misses(const DavitDoctor *d, const char *tails)
{
    const DavitReport *f = davit_doctor_find(d, "D07")->findings;
    g_auto(GStrv) words = g_strsplit(tails, "|", -1);

    for (size_t i = 0; i < davit_report_count(f); i++) {
        const DavitRecord *r = davit_report_get(f, i);

        for (char **w = words; r->code == DAVIT_R_TENSOR_MISSING && r->subject && *w; w++)
            if (g_str_has_suffix(r->subject, *w))
                return true;
    }
    return false;
}

static void say_join(DavitDoctor *d, const Join *join, const davit_tensor_info *t,
                     bool joined)
{
    davit_doctor_say(
        d, "D09",
        &(DavitFinding){
            .status = DAVIT_E_MISMATCH,
            .subject = t->name,
            .expected = davit_doctor_text(d, "%s %s", join->what,
                                          joined ? "apart" : "in one tensor"),
            .found = davit_doctor_text(
                d, "%s, %" PRIu64 " rows", joined ? "in one tensor" : "apart", t->shape[0]),
            .message = joined ? "projections are joined already, and this architecture "
                                "wants them apart"
                              : "projections are apart, and this architecture wants them "
                                "joined"});
}

static void check_joins(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;

    if (d->patient.plan)
        return; /* every slot is filled */
    for (size_t i = 0; i < G_N_ELEMENTS(joins); i++) {
        const davit_tensor_info *one = davit_find_tail(c, joins[i].joined, -1);
        const davit_tensor_info *part = davit_find_tail(c, joins[i].split, -1);

        if (one && !part && misses(d, joins[i].split))
            say_join(d, &joins[i], one, true);
        if (part && !one && misses(d, joins[i].joined))
            say_join(d, &joins[i], part, false);
    }
}

/* ---- D11 ---- */

#define MAX_EXPERTS 65536

/* Experts of one layer by "experts.N." names: which are there. (owned) bytes. */
static GByteArray *experts_of(const DavitCheckpoint *c, int64_t layer)
{
    GByteArray *there = g_byte_array_new();

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const char *name = davit_checkpoint_tensor(c, i)->name;
        const char *at = strstr(name, "experts.");
        guint64 e;

        if (!at || !g_ascii_isdigit(at[8]) || davit_name_layer(name) != layer)
            continue;
        e = g_ascii_strtoull(at + 8, NULL, 10);
        if (e >= MAX_EXPERTS)
            continue;
        if (e >= there->len) {
            const guint before = there->len;

            g_byte_array_set_size(there, (guint)e + 1);
            memset(there->data + before, 0, there->len - before);
        }
        there->data[e] = 1;
    }
    return there;
}

static void check_experts_of(DavitDoctor *d, int64_t layer, int64_t stated)
{
    g_autoptr(GByteArray) there = experts_of(d->patient.checkpoint, layer);
    const int64_t n = MAX((int64_t)there->len, stated);
    int64_t n_there = 0, hole = -1;

    for (int64_t e = 0; e < n; e++) {
        const bool is = e < (int64_t)there->len && there->data[e];

        n_there += is;
        hole = !is && hole < 0 ? e : hole;
    }
    if (there->len == 0 || (hole < 0 && (stated < 0 || n == stated)))
        return;
    davit_doctor_say(
        d, "D11",
        &(DavitFinding){
            .status = DAVIT_E_CORRUPT,
            .subject = davit_doctor_text(d, "layer %" PRId64 ": experts", layer),
            .expected = davit_doctor_text(d, "0 to %" PRId64 " without a hole",
                                          (stated > 0 ? stated : n) - 1),
            .found = hole >= 0
                         ? davit_doctor_text(d, "%" PRId64 " experts, number %" PRId64
                                                " is absent",
                                             n_there, hole)
                         : davit_doctor_text(d, "%" PRId64 " experts", n_there),
            .message = "the layer's experts do not number as the config says"});
}

/* Layers must begin at 0; a file that begins later lacks the first, or counts from 1. */
static void check_first_layer(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    int64_t least = INT64_MAX, most = -1;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const int64_t layer = davit_name_layer(davit_checkpoint_tensor(c, i)->name);

        least = layer >= 0 ? MIN(least, layer) : least;
        most = MAX(most, layer);
    }
    if (most < 0 || least == 0)
        return;
    davit_doctor_say(d, "D11",
                     &(DavitFinding){.severity = DAVIT_WARNING,
                                     .status = d->patient.plan ? DAVIT_OK
                                                               : DAVIT_E_MISMATCH,
                                     .subject = "layers",
                                     .expected = "numbers from 0",
                                     .found = davit_doctor_text(
                                         d, "%" PRId64 " to %" PRId64, least, most),
                                     .message = "the file's layers do not begin at 0: they "
                                                "are counted from another number, or the "
                                                "first are missing",
                                     .hint = "rename the tensors, or fetch the missing "
                                             "files"});
}

static void check_experts(DavitDoctor *d)
{
    static const char *const keys[] = {"num_experts", "num_local_experts",
                                       "n_routed_experts", "moe_num_experts"};
    const int64_t n_layers = MIN(davit_count_layers(d->patient.checkpoint), 1024);
    int64_t stated = -1;
    bool any = false;

    for (size_t k = 0; k < G_N_ELEMENTS(keys); k++)
        if (davit_patient_int(&d->patient, keys[k], &stated))
            break;
    for (size_t i = 0; !any && i < davit_checkpoint_n_tensors(d->patient.checkpoint); i++)
        any = strstr(davit_checkpoint_tensor(d->patient.checkpoint, i)->name, "experts.");
    for (int64_t layer = 0; any && layer < n_layers; layer++)
        check_experts_of(d, layer, stated);
    davit_doctor_fact(d, "D11", "%" PRId64 " layers%s", n_layers,
                      any ? ", experts by number" : "");
}

void davit_check_names(DavitDoctor *doctor)
{
    check_architecture(doctor);
    if (!doctor->patient.checkpoint || doctor->patient.is_part) {
        static const char *const ids[] = {"D07", "D08", "D09", "D11"};

        for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
            davit_doctor_skip(doctor, ids[i],
                              doctor->patient.is_part
                                  ? "the whole set: name its folder or its index"
                                  : "weights that open");
        return;
    }
    check_prefix(doctor);
    move_head(doctor);
    check_joins(doctor);
    check_first_layer(doctor);
    check_experts(doctor);
    if (doctor->patient.plan)
        davit_doctor_fact(doctor, "D07", "%zu slots, all filled",
                          doctor->patient.plan->n_slots);
    else if (davit_report_count(davit_doctor_find(doctor, "D07")->findings) == 0)
        davit_doctor_skip(doctor, "D07", "a config and an architecture that fit");
}
