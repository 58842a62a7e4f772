/* SPDX-License-Identifier: Apache-2.0
 * Wrappers of training programs around the names of tensors: in front of all of them, and inside;
 * and names of another family. */
#include <string.h>

#include "doctor/doctor_private.h"

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
static const struct {
    const char *word, *message;
    bool merge; /* taking the word out is not enough */
} infixes[] = {
    {".base_layer.", "an adapter's wrapper is inside the names: the adapter was not merged",
     true},
    {"._orig_mod.", "a compiled module's wrapper is inside the names", false},
    {"._fsdp_wrapped_module.", "a sharded trainer's wrapper is inside the names", false},
    {"._checkpoint_wrapped_module.",
     "a wrapper that recomputes activations is inside the names", false},
};

/* Most times that @word stands in one name. */
static size_t count_infix(const DavitCheckpoint *c, const char *word)
{
    size_t most = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const char *at = davit_checkpoint_tensor(c, i)->name;
        size_t n = 0;

        while ((at = strstr(at, word)) != NULL) {
            at += strlen(word) - 1; /* its last dot may begin the next */
            n++;
        }
        most = MAX(most, n);
    }
    return most;
}

/* A rule takes one word out of a name: so many rules as the words that a name has. */
static const char *infix_hint(DavitDoctor *d, size_t w)
{
    const size_t n = count_infix(d->patient.checkpoint, infixes[w].word);
    g_autoptr(GString) rules = g_string_new(NULL);

    if (infixes[w].merge)
        return "merge the adapter where it was trained, and save again";
    for (size_t i = 0; i < MIN(n, 4); i++)
        g_string_append_printf(rules, "%s{\"from\": \"*%s*\", \"to\": \"*.*\"}", i ? ", " : "",
                               infixes[w].word);
    return davit_doctor_text(
        d, "--rename FILE with [%s], or save the model from inside the wrapper", rules->str);
}

static void check_infix(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;

    for (size_t w = 0; w < G_N_ELEMENTS(infixes); w++)
        for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
            const char *name = davit_checkpoint_tensor(c, i)->name;

            if (!strstr(name, infixes[w].word))
                continue;
            davit_doctor_say(d, "D08",
                             &(DavitFinding){.severity = DAVIT_NOTE,
                                             .status = d->patient.plan ? DAVIT_OK
                                                                       : DAVIT_E_MISMATCH,
                                             .subject = name,
                                             .expected = "names of the model's own "
                                                         "modules",
                                             .found = infixes[w].word,
                                             .message = infixes[w].message,
                                             .hint = infix_hint(d, w)});
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

/* A tensor of the first layer that is no norm, for examples. (borrowed) NULL if there is none. */
static const davit_tensor_info *layer_tensor(const DavitCheckpoint *c)
{
    const davit_tensor_info *any = NULL;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        if (davit_name_layer(t->name) != 0)
            continue;
        if (!strstr(t->name, "norm"))
            return t;
        any = any ? any : t;
    }
    return any;
}

static void say_other_family(DavitDoctor *d, const char *prefix, const davit_tensor_info *layer,
                             const char *expected)
{
    davit_doctor_say(d, "D08",
                     &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                     .subject = layer->name,
                                     .expected = expected,
                                     .found = layer->name + strlen(prefix),
                                     .message = "the names are another family's, or were "
                                                "changed on the way",
                                     .hint = "take the config of the model that the "
                                             "weights belong to, or rename the tensors "
                                             "(--rename)"});
}

/* Layers under another family's word, where the architecture wants "layers.". */
static void check_family_names(DavitDoctor *d, const char *prefix)
{
    const davit_tensor_info *layer = layer_tensor(d->patient.checkpoint);

    if (d->patient.plan || !layer || strstr(layer->name, "layers.") ||
        strstr(layer->name, "blk.") || !davit_doctor_misses(d, "q_proj.weight|gate_proj.weight"))
        return;
    say_other_family(d, prefix, layer, "layers.0. in front of a layer's names");
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

/* A word of the table within @prefix: told with those behind it. */
static bool holds_infix(const char *prefix)
{
    for (size_t w = 0; w < G_N_ELEMENTS(infixes); w++)
        if (strstr(prefix, infixes[w].word))
            return true;
    return false;
}

/* Behind @prefix, is there a matrix of layer 0 that the plan misses? Only then is taking the
 * prefix away a remedy. */
static bool layer_is_there(const DavitDoctor *d, const char *prefix)
{
    const DavitReport *f = davit_doctor_find(d, "D07")->findings;

    for (size_t i = 0; i < davit_report_count(f); i++) {
        const DavitRecord *r = davit_report_get(f, i);
        const char *at = r->subject ? strstr(r->subject, "layers.") : NULL;
        const char *tail = at ? strchr(at + strlen("layers."), '.') : NULL; /* behind 0 or {} */
        g_autofree char *name = tail ? g_strconcat(prefix, "layers.0", tail, NULL) : NULL;

        if (name && r->code == DAVIT_R_TENSOR_MISSING && !strstr(tail, "norm") &&
            davit_checkpoint_find(d->patient.checkpoint, name))
            return true;
    }
    return false;
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
    if (is_known_prefix(prefix) || holds_infix(prefix))
        return;
    if (!d->patient.plan && !is_found_by_plan(prefix) && strstr(layer_tensor(c)->name, "layers.") &&
        davit_doctor_misses(d, "q_proj.weight|gate_proj.weight") && !layer_is_there(d, prefix)) {
        say_other_family(d, prefix, layer_tensor(c), "names that the architecture's slots have");
        return;
    }
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

/* Does some name speak of a part for pictures or sound? */
static bool has_other_modality(const DavitCheckpoint *c)
{
    static const char *const words[] = {"vis",   "image", "patch_embed", "projector",
                                        "audio", "mm_",   "connector",   "merger"};

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++)
        for (size_t w = 0; w < G_N_ELEMENTS(words); w++)
            if (strstr(davit_checkpoint_tensor(c, i)->name, words[w]))
                return true;
    return false;
}

/* The config of a model with pictures or sound over weights of its text model alone. Under a
 * prefix of the wrapper's its own program finds them; without one it finds none. */
static void check_modalities(DavitDoctor *d)
{
    static const char *const keys[] = {"vision_config", "audio_config"};
    const json_t *text = json_object_get(d->patient.config, "text_config");
    const DavitCheckpoint *c = d->patient.checkpoint;
    const char *key = NULL, *type;
    g_autofree char *prefix = NULL;
    bool wrapped;

    for (size_t i = 0; i < G_N_ELEMENTS(keys) && !key; i++)
        if (json_is_object(json_object_get(d->patient.config, keys[i])))
            key = keys[i];
    if (!key || !json_is_object(text) || has_other_modality(c))
        return;
    prefix = find_prefix(c);
    wrapped = prefix && strstr(prefix, "language_model");
    type = json_string_value(json_object_get(text, "model_type"));
    davit_doctor_say(
        d, "D08",
        &(DavitFinding){
            .severity = wrapped ? DAVIT_NOTE : DAVIT_WARNING,
            .subject = davit_doctor_text(d, "config.json: %s", key),
            .expected = davit_doctor_text(d, "weights for it%s",
                                          wrapped ? "" : ", and language_model in the names of "
                                                         "the text model"),
            .found = davit_doctor_text(d, "a text model alone, under \"%s\"",
                                       prefix ? prefix : ""),
            .message = "the config is that of a model with pictures or sound, and the weights are "
                       "its text model only: davit reads the text model, programs that follow "
                       "the config find other names than they look for",
            .hint = davit_doctor_text(d, "make text_config the whole config.json (model_type %s, "
                                         "its class for text, dtype and token ids kept), or fetch "
                                         "the full checkpoint", type ? type : "of the text model")});
}

void davit_check_wrappers(DavitDoctor *doctor)
{
    check_prefix(doctor);
    check_modalities(doctor);
    move_head(doctor);
}
