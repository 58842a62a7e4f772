/* SPDX-License-Identifier: Apache-2.0
 * Which check a record of another part belongs to. The record stays what it is; alike ones
 * (the same tensor of every layer) become one finding with a pattern. */
#include "doctor/doctor_private.h"

#include <string.h>

/* ---- whose is it ---- */

bool davit_takes_extension(DavitRegistry *registry, const char *who, const char *extension)
{
    const GPtrArray *all = davit_registry_components(registry);

    for (guint i = 0; who && i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);

        if (strcmp(c->id, who) == 0)
            return c->capability && davit_capability_has(c->capability, "ext", extension);
    }
    return false;
}

static bool is_gguf(const DavitDoctor *d, const DavitRecord *r)
{
    return davit_takes_extension(d->patient.registry, r->who, "gguf");
}

static const char *check_of_open(const DavitDoctor *d, const DavitRecord *r)
{
    switch (r->code) {
    case DAVIT_R_PICKLE_UNSAFE:
        return "D43";
    case DAVIT_R_SHARD_MISSING:
    case DAVIT_R_SHARD_MISMATCH:
    case DAVIT_R_TENSOR_DUPLICATE:
    case DAVIT_R_TENSOR_MISSING:
    case DAVIT_R_STRAY_TENSOR:
        return "D04";
    case DAVIT_R_STRAY_SHARD:
    case DAVIT_R_SOURCE_CHOSEN:
    case DAVIT_R_AMBIGUOUS:
    case DAVIT_R_FORMAT_UNSUPPORTED:
    case DAVIT_R_ALL_DECLINED:
    case DAVIT_R_NO_PLUGINS:
        return "D05";
    case DAVIT_R_FILE_TRUNCATED:
    case DAVIT_R_TENSOR_OUT_OF_FILE:
    case DAVIT_R_EMPTY_FILE:
    case DAVIT_R_LFS_POINTER:
        return is_gguf(d, r) ? "D03" : "D02";
    case DAVIT_R_IO_FAILED:
    case DAVIT_R_NOT_REGULAR:
        return "D38";
    case DAVIT_R_NOT_FOUND:
        return "D35";
    default:
        return is_gguf(d, r) ? "D03" : "D01";
    }
}

static bool speaks_of(const DavitRecord *r, const char *word)
{
    return (r->subject && strstr(r->subject, word)) ||
           (r->message && strstr(r->message, word));
}

static const char *check_of_settings(const DavitRecord *r)
{
    if (speaks_of(r, "rope") || speaks_of(r, "theta") || speaks_of(r, "max_position"))
        return "D20";
    if (speaks_of(r, "eos_token") || speaks_of(r, "bos_token") ||
        speaks_of(r, "generation_config"))
        return "D21";
    if (speaks_of(r, "quantization") || speaks_of(r, "compression"))
        return "D17";
    if (r->code == DAVIT_R_ALL_DECLINED || r->code == DAVIT_R_NO_PLUGINS ||
        r->code == DAVIT_R_CONFIG_UNSUPPORTED)
        return "D06";
    return "D10";
}

static const char *check_of_plan(const DavitRecord *r)
{
    switch (r->code) {
    case DAVIT_R_TENSOR_MISSING:
        return speaks_of(r, "output head") ? "D12" : "D07";
    case DAVIT_R_TENSOR_UNEXPECTED:
    case DAVIT_R_MAP_INCOMPLETE:
        return "D07";
    case DAVIT_R_IGNORED_BY_RULE:
        return speaks_of(r, "layers past the last") ? "D11" : "D07";
    case DAVIT_R_SHAPE_MISMATCH:
        return speaks_of(r, "embed") || speaks_of(r, "lm_head") ? "D14" : "D10";
    case DAVIT_R_QUANT_UNKNOWN:
    case DAVIT_R_QUANT_CONFIG_CONFLICT:
    case DAVIT_R_QUANT_CONFIG_MISSING:
    case DAVIT_R_QUANT_CONFIG_VALUE:
    case DAVIT_R_QUANT_TARGET_AMBIGUOUS:
    case DAVIT_R_QUANT_LAYOUT:
    case DAVIT_R_QUANT_ZERO_CONVENTION:
        return "D17";
    case DAVIT_R_QUANT_PARAMS:
    case DAVIT_R_QUANT_ORPHAN:
    case DAVIT_R_QUANT_DTYPE:
    case DAVIT_R_QUANT_SCALE_ARITY:
    case DAVIT_R_QUANT_SCALE_VALUE:
    case DAVIT_R_QUANT_INDEX_RANGE:
        return "D18";
    case DAVIT_R_AMBIGUOUS:
        return "D08";
    case DAVIT_R_HEAD_COMPARED:
        return "D12";
    case DAVIT_R_ASSUMED:
        return speaks_of(r, "tie_word") ? "D12" : check_of_settings(r);
    default:
        return check_of_settings(r);
    }
}

static const char *check_of_path(const DavitRecord *r)
{
    switch (r->code) {
    case DAVIT_R_HEADER_INVALID:
        return "D39";
    case DAVIT_R_NOT_FOUND: /* a link that leads to nothing, or no such model */
        return !r->found || !strchr(r->found, '/')  ? "D40"
               : strstr(r->found, "../blobs/") != NULL ? "D35"
                                                       : "D39";
    case DAVIT_R_SOURCE_CHOSEN:
        return "D40";
    default:
        return "D38";
    }
}

/* Does the subject begin with a file's name? */
static bool is_of_file(const DavitRecord *r, const char *name)
{
    return r->subject && g_str_has_prefix(r->subject, name);
}

static const char *check_of(const DavitDoctor *d, const DavitRecord *r)
{
    const char *stage = r->stage ? r->stage : "";

    if (r->code == DAVIT_R_LFS_POINTER || r->code == DAVIT_R_EMPTY_FILE)
        return is_gguf(d, r) ? "D03" : "D02";
    if (r->code == DAVIT_R_USER_DECISION)
        return "D08";
    if (strcmp(stage, "path") == 0)
        return check_of_path(r);
    if (strcmp(stage, "probe") == 0)
        return check_of_open(d, r);
    if (is_of_file(r, "tokenizer"))
        return "D14";
    if (is_of_file(r, "generation_config.json") || is_of_file(r, "chat_template"))
        return "D21";
    if (is_of_file(r, "config.json") || is_of_file(r, "params.json"))
        return check_of_settings(r);
    if (r->subject && g_str_has_suffix(r->subject, ".index.json"))
        return "D04";
    if (strcmp(stage, "tokenizer") == 0 || r->code == DAVIT_R_TOKENIZER_INVALID ||
        r->code == DAVIT_R_PRETOKENIZER_UNKNOWN || r->code == DAVIT_R_TOKENIZER_UNSUPPORTED)
        return "D14";
    if (strcmp(stage, "config") == 0)
        return check_of_settings(r);
    if (strcmp(stage, "plan") == 0 || strcmp(stage, "claim") == 0 ||
        strcmp(stage, "check") == 0)
        return check_of_plan(r);
    return check_of_open(d, r);
}

/* ---- alike ones ---- */

/* Records that differ in the numbers of their subject only. */
typedef struct Group {
    const DavitRecord *first; /* (borrowed) */
    char *pattern;            /* (owned) NULL = no subject */
    size_t n;
} Group;

static void group_clear(void *p)
{
    g_free(((Group *)p)->pattern);
}

static bool same_group(const Group *g, const DavitRecord *r, const char *pattern)
{
    return g->first->code == r->code && g->first->severity == r->severity &&
           g_strcmp0(g->pattern, pattern) == 0 &&
           (g_str_has_suffix(pattern, ".*") ||
            g_strcmp0(g->first->expected, r->expected) == 0);
}

/* Records of one cause, whatever tensors they are of: NULL, or what they are said to be of. */
static const char *common_subject(uint32_t code, const char *message)
{
    if (code == DAVIT_R_QUANT_CONFIG_CONFLICT)
        return "config.json: quantization_config";
    if (code == DAVIT_R_QUANT_UNKNOWN && message && strstr(message, "removed from GGUF"))
        return "types of tensors";
    return NULL;
}

/* What alike records have in common; of layers that are not stored at all everything.
 * (owned) */
static char *pattern_of(const DavitRecord *r, int64_t n_layers)
{
    const char *at = r->subject ? strstr(r->subject, "layers.") : NULL;
    const char *common = common_subject(r->code, r->message);

    if (common && r->severity == DAVIT_ERROR)
        return g_strdup(common);
    at = r->subject && !at ? strstr(r->subject, "blk.") : at;
    if (at && r->code == DAVIT_R_TENSOR_MISSING && n_layers > 0 &&
        davit_name_layer(r->subject) >= n_layers)
        return g_strdup_printf("%.*s{}.*", (int)(strchr(at, '.') + 1 - r->subject),
                               r->subject);
    return r->subject ? davit_name_pattern(r->subject) : NULL;
}

static void add_to_groups(GArray *groups, const DavitRecord *r, int64_t n_layers)
{
    g_autofree char *pattern = pattern_of(r, n_layers);
    Group group = {.first = r, .n = 1};

    for (guint i = 0; pattern && i < groups->len; i++) {
        Group *g = &g_array_index(groups, Group, i);

        if (same_group(g, r, pattern)) {
            g->n++;
            return;
        }
    }
    group.pattern = g_steal_pointer(&pattern);
    g_array_append_val(groups, group);
}

/* What a record of another part cannot know. NULL: nothing better. */
static const char *better_hint(DavitDoctor *doctor, const DavitRecord *r)
{
    const char *of = r->subject ? r->subject : "";

    if (r->code == DAVIT_R_IGNORED_BY_RULE && strstr(of, "inv_freq"))
        return "nothing to do: computed again from rope_theta";
    if (r->code == DAVIT_R_TENSOR_UNEXPECTED &&
        (strstr(of, ".lora_") || strstr(of, ".base_layer.")))
        return "part of an adapter that was not merged: merge it where it was trained, and "
               "save again; left out, the training is lost";
    if (r->code == DAVIT_R_QUANT_CONFIG_CONFLICT && r->expected && r->found &&
        strstr(r->expected, " as in ") && g_ascii_isdigit(r->found[0]))
        return davit_doctor_text(doctor, "set %.*s to %s in the block, as the tensors have it, or "
                                         "restore the block from the model's origin",
                                 (int)strcspn(r->expected, " "), r->expected, r->found);
    return NULL;
}

static void say_group(DavitDoctor *doctor, const Group *g)
{
    const DavitRecord *r = g->first;
    const char *hint = better_hint(doctor, r);
    const DavitFinding finding = {
        .code = r->code,
        .severity = r->severity,
        .status = r->status,
        .purposes = r->purposes,
        .stage = r->stage,
        .who = r->who,
        .subject = g->n > 1 ? g->pattern : r->subject,
        .expected = r->expected,
        .found = g->n > 1 ? davit_doctor_text(doctor, "%zu times; first %s%s%s", g->n,
                                              r->subject, r->found ? ": " : "",
                                              r->found ? r->found : "")
                          : r->found,
        .message = r->message,
        .hint = hint ? hint : r->hint};

    davit_doctor_say(doctor, check_of(doctor, r), &finding);
}

/* Defaults of settings that a file may well omit are no finding; those that make text
 * wrong when they were lost are looked at by their own checks, and so are pickles and
 * adapters beside the weights. */
static bool is_idle(const DavitDoctor *d, const DavitRecord *r)
{
    if (r->severity != DAVIT_NOTE)
        return false;
    if (r->code == DAVIT_R_STRAY_SHARD)
        return g_strcmp0(r->stage, "hub") == 0 ||
               davit_takes_extension(d->patient.registry, r->who, "pkl") ||
               (r->subject && g_str_has_prefix(r->subject, "adapter_model"));
    return r->code == DAVIT_R_ASSUMED || r->code == DAVIT_R_ALL_DECLINED;
}

void davit_doctor_sort(DavitDoctor *doctor, const DavitReport *said)
{
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(Group));
    const DavitCheckpoint *c = doctor->patient.checkpoint;
    const int64_t n_layers = c ? davit_count_layers(c) : 0;

    g_array_set_clear_func(groups, group_clear);
    for (size_t i = 0; i < davit_report_count(said); i++) {
        const DavitRecord *r = davit_report_get(said, i);

        if (!is_idle(doctor, r))
            add_to_groups(groups, r, n_layers);
    }
    for (guint i = 0; i < groups->len; i++)
        say_group(doctor, &g_array_index(groups, Group, i));
}
