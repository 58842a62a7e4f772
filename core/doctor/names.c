/* SPDX-License-Identifier: Apache-2.0
 * Names of tensors: joined or split projections, holes among experts; and the name of the
 * architecture itself. */
#include <string.h>

#include "doctor/doctor_private.h"
#include "plan/coverage.h"
#include "plan/fits.h"

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

/* Class and model type that say the same name are hardly both misspelt: Mixtral is no typing
 * error for Mistral. */
static bool is_stated_twice(const DavitSettings *s, const char *name)
{
    const char *type = davit_settings_model_types(s)[0];
    g_autofree char *stem = stem_of(name);

    while (type && *type && *stem) {
        type += strspn(type, "_-");
        if (g_ascii_tolower(*stem) != g_ascii_tolower(*type))
            return false;
        memmove(stem, stem + 1, strlen(stem));
        type++;
    }
    return type && *type == '\0' && *stem == '\0' && type != name;
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
    near = is_stated_twice(d->patient.settings, name) ? NULL : nearest(names, name);
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

/* Tensors that do not fit the architecture of the settings, and fit another: the settings are
 * another model's, or were changed. */
static void check_other_fit(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;
    const DavitComponent *other;
    const davit_arch_iface *iface = NULL;
    const void *table = NULL;
    void *self = NULL;
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autofree char *names = NULL;

    if (p->plan || !p->checkpoint || p->is_part ||
        !davit_report_failed(davit_doctor_find(d, "D07")->findings))
        return;
    other = davit_plan_other_fit(p->registry, p->checkpoint, p->settings);
    if (!other || davit_component_use((DavitComponent *)(uintptr_t)other, &table, &self, aside))
        return;
    iface = table;
    names = g_strdup(iface->hf ? iface->hf : other->id);
    g_strdelimit(names, "|", ' ');
    davit_doctor_say(d, "D06",
                     &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                     .subject = first_name(p->settings),
                                     .expected = davit_doctor_text(d, "one of %s", names),
                                     .found = "an architecture that the tensors do not fit",
                                     .message = davit_doctor_text(
                                         d, "the tensors are those of another architecture, %s",
                                         other->id),
                                     .hint = "take config.json from where the weights came from"});
}

/* The architecture whose keys a GGUF has: "llama" of "llama.block_count". (owned) NULL if there is
 * none. */
static char *family_of_keys(const DavitCheckpoint *c)
{
    static const char end[] = ".block_count";
    const size_t n = sizeof end - 1;

    for (size_t i = 0; i < davit_checkpoint_n_keys(c); i++) {
        const davit_span key = davit_checkpoint_key(c, i)->key;
        const char *dot = key.len > n ? memchr(key.ptr, '.', key.len) : NULL;

        /* "clip.vision.block_count" is a part's, and no architecture's */
        if (dot && (size_t)(dot - key.ptr) == key.len - n && memcmp(dot, end, n) == 0)
            return g_strndup(key.ptr, key.len - n);
    }
    return NULL;
}

/* The settings of a GGUF lie under the architecture's name: under another's they are not found, and
 * defaults stand for them. */
static void check_keys(DavitDoctor *d)
{
    const char *arch = davit_settings_gguf_arch(d->patient.settings);
    g_autofree char *family =
        arch && d->patient.checkpoint ? family_of_keys(d->patient.checkpoint) : NULL;

    if (!family || strcmp(family, arch) == 0)
        return;
    davit_doctor_say(d, "D06",
                     &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                     .subject = "general.architecture",
                                     .expected = family,
                                     .found = arch,
                                     .message = "the file's settings are those of another "
                                                "architecture",
                                     .hint = "convert the model again; a file whose name alone was "
                                             "changed runs as what its keys say"});
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
    check_keys(d);
    check_other_fit(d);
    if (d->patient.plan)
        davit_doctor_fact(d, "D06", "%s, taken by %s", first_name(d->patient.settings),
                          d->patient.plan->arch->id);
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

bool davit_doctor_misses(const DavitDoctor *d, const char *tails)
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

/* Rows of the parts of a joined matrix, "q 192 | k 64 | v 64", where the config's sizes add up to
 * them; NULL = they do not. */
static const char *parts_of(DavitDoctor *d, const Join *join, uint64_t rows)
{
    int64_t heads, kv, dim, hidden, inner;

    if (join == &joins[1])
        return davit_patient_int(&d->patient, "intermediate_size", &inner) && inner > 0 &&
                       rows == 2 * (uint64_t)inner
                   ? davit_doctor_text(d, "gate %" PRId64 " | up %" PRId64, inner, inner)
                   : NULL;
    if (!davit_patient_int(&d->patient, "num_attention_heads", &heads) || heads <= 0 ||
        heads > INT32_MAX || !davit_patient_int(&d->patient, "hidden_size", &hidden))
        return NULL;
    if (!davit_patient_int(&d->patient, "num_key_value_heads", &kv))
        kv = heads;
    if (!davit_patient_int(&d->patient, "head_dim", &dim) || dim <= 0)
        dim = hidden / heads;
    if (kv <= 0 || kv > heads || dim <= 0 || dim > INT32_MAX ||
        rows != (uint64_t)(heads + 2 * kv) * (uint64_t)dim)
        return NULL;
    return davit_doctor_text(d, "q %" PRId64 " | k %" PRId64 " | v %" PRId64, heads * dim, kv * dim,
                             kv * dim);
}

/* Does it speak of a missing part, or of the joined tensor that no slot takes? @ctx: the Join. */
static bool is_of_join(const DavitRecord *r, const void *ctx)
{
    static const char *const names[][5] = {
        {".q_proj.", ".k_proj.", ".v_proj.", ".qkv_proj.", ".Wqkv."},
        {".gate_proj.", ".up_proj.", ".gate_up_proj.", ".gate_and_up_proj.", ".w12."}};
    const size_t which = ctx == &joins[1];

    for (size_t i = 0; r->subject && i < G_N_ELEMENTS(names[which]); i++)
        if (strstr(r->subject, names[which][i]))
            return true;
    return false;
}

static void say_join(DavitDoctor *d, const Join *join, const davit_tensor_info *t,
                     bool joined)
{
    const char *parts = joined && t->rank == 2 ? parts_of(d, join, t->shape[0]) : NULL;

    davit_doctor_say(
        d, "D09",
        &(DavitFinding){
            .status = DAVIT_E_MISMATCH,
            .subject = t->name,
            .expected = davit_doctor_text(d, "%s %s", join->what,
                                          joined ? "apart" : "in one tensor"),
            .found = davit_doctor_text(d, "%s, %" PRIu64 " rows%s%s", joined ? "in one tensor" : "apart",
                                       t->shape[0], parts ? " = " : "", parts ? parts : ""),
            .message = joined ? "projections are joined already, and this architecture "
                                "wants them apart"
                              : "projections are apart, and this architecture wants them "
                                "joined",
            .hint = parts ? davit_doctor_text(d, "cut the rows of each such weight and bias apart (%s) and "
                                                 "save them under the architecture's names", parts)
                          : NULL});
    if (parts)
        davit_doctor_drop(d, "D07", is_of_join, join);
}

static void check_joins(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;

    if (d->patient.plan)
        return; /* every slot is filled */
    for (size_t i = 0; i < G_N_ELEMENTS(joins); i++) {
        const davit_tensor_info *one = davit_find_tail(c, joins[i].joined, -1);
        const davit_tensor_info *part = davit_find_tail(c, joins[i].split, -1);

        if (one && !part && davit_doctor_misses(d, joins[i].split))
            say_join(d, &joins[i], one, true);
        if (part && !one && davit_doctor_misses(d, joins[i].joined))
            say_join(d, &joins[i], part, false);
    }
}

/* ---- D11 ---- */

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

/* Optional slots that a model lacks are no slots of it. */
static size_t count_present(const DavitPlan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_slots; i++)
        n += plan->slots[i].present;
    return n;
}

/* What refuses a model need not be its names: of a refused plan, too, it is known whether every
 * slot has its tensors. */
static void tell_slots(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;

    if (p->plan)
        davit_doctor_fact(d, "D07", "%zu slots, all filled", count_present(p->plan));
    else if (davit_report_count(davit_doctor_find(d, "D07")->findings) > 0)
        return;
    else if (davit_report_failed(davit_doctor_find(d, "D12")->findings))
        davit_doctor_skip(d, "D07", "an output head (D12)");
    else if (p->refused && p->refused->n_slots)
        davit_doctor_fact(d, "D07", "%zu slots, all have their tensors; what is wrong with them is "
                                    "told beside other checks", count_present(p->refused));
    else
        davit_doctor_skip(d, "D07", "an architecture and a config that can be read");
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
    davit_check_wrappers(doctor);
    check_joins(doctor);
    check_first_layer(doctor);
    davit_check_experts(doctor);
    tell_slots(doctor);
}
