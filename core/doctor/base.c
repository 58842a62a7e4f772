/* SPDX-License-Identifier: Apache-2.0
 * A model against the base that it was made from: settings, tokenizer, template, names
 * and shapes of tensors. A difference is a warning where it changes what the text means,
 * else a note: a fine-tuned model may differ on purpose. */
#include <string.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

#define MAX_SAID 12 /* findings of one kind */

/* Keys that say nothing about the mathematics. */
static bool is_idle(const char *key)
{
    static const char *const keys[] = {"transformers_version", "_name_or_path", "use_cache",
                                       "torch_dtype",          "dtype",         "auto_map",
                                       "initializer_range",    "architectures"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static const char *check_of_key(const char *key)
{
    if (strstr(key, "rope") || strstr(key, "rotary") || strstr(key, "position") ||
        strstr(key, "window"))
        return "D20";
    if (strstr(key, "token_id"))
        return "D21";
    if (strstr(key, "vocab"))
        return "D14";
    if (strstr(key, "tie"))
        return "D12";
    if (strstr(key, "quant") || strstr(key, "compression"))
        return "D17";
    return "D10";
}

static const char *shown(DavitDoctor *d, const json_t *value)
{
    g_autofree char *text = value ? davit_tree_text(value) : g_strdup("absent");

    return davit_doctor_text(d, "%s", text);
}

static void say_key(DavitDoctor *d, const char *key, const json_t *mine,
                    const json_t *base)
{
    davit_doctor_say(d, check_of_key(key),
                     &(DavitFinding){.severity = DAVIT_WARNING,
                                     .subject = davit_doctor_text(d, "config.json: %s",
                                                                  key),
                                     .expected = davit_doctor_text(d, "%s, as in the base",
                                                                   shown(d, base)),
                                     .found = shown(d, mine),
                                     .message = mine ? "the setting differs from the "
                                                       "base model's"
                                                     : "the base model's setting was "
                                                       "lost",
                                     .hint = "take the base model's value, unless it was "
                                             "changed on purpose"});
}

static bool is_empty(const json_t *value)
{
    return !value || json_is_null(value);
}

static void compare_settings(DavitDoctor *d, const json_t *mine, const json_t *base)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)base, key, value)
    {
        const json_t *own = json_object_get(mine, key);

        if (is_idle(key) || (is_empty(value) && is_empty(own)) || json_equal(value, own))
            continue;
        say_key(d, key, is_empty(own) ? NULL : own, is_empty(value) ? NULL : value);
    }
    json_object_foreach((json_t *)(uintptr_t)mine, key, value)
    {
        if (!is_idle(key) && !is_empty(value) && !json_object_get(base, key))
            davit_doctor_say(d, check_of_key(key),
                             &(DavitFinding){.severity = DAVIT_NOTE,
                                             .subject = davit_doctor_text(
                                                 d, "config.json: %s", key),
                                             .expected = "absent, as in the base",
                                             .found = shown(d, value),
                                             .message = "a setting that the base model "
                                                        "has not",
                                             .hint = "nothing, if it was added on "
                                                     "purpose"});
    }
}

/* ---- tokenizer and template ---- */

/* First id whose token differs, -1 = none below both ends. */
static int64_t first_other(const DavitTokenizer *a, const DavitTokenizer *b)
{
    const size_t n = MIN(davit_tokenizer_n_ids(a), davit_tokenizer_n_ids(b));

    for (size_t i = 0; i < n; i++) {
        size_t n_a = 0, n_b = 0;
        const char *x = davit_tokenizer_text(a, (int32_t)i, &n_a);
        const char *y = davit_tokenizer_text(b, (int32_t)i, &n_b);

        if (!x != !y || (x && (n_a != n_b || memcmp(x, y, n_a) != 0)))
            return (int64_t)i;
    }
    return -1;
}

/* (borrowed) text of a token; "a hole" if there is none. */
static const char *token(const DavitTokenizer *tokenizer, int64_t id)
{
    size_t n;
    const char *text = davit_tokenizer_text(tokenizer, (int32_t)id, &n);

    return text ? text : "a hole";
}

static void compare_words(DavitDoctor *d, const DavitPatient *base)
{
    const DavitTokenizer *a = d->patient.tokenizer, *b = base->tokenizer;
    const int64_t other = a && b ? first_other(a, b) : -1;

    if (other >= 0)
        davit_doctor_say(d, "D14",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = davit_doctor_text(
                                             d, "token %" PRId64, other),
                                         .expected = davit_doctor_text(
                                             d, "%s, as in the base", token(b, other)),
                                         .found = token(a, other),
                                         .message = "the vocabulary differs from the "
                                                    "base model's from this id on"});
    if (a && b && davit_tokenizer_n_ids(a) < davit_tokenizer_n_ids(b))
        davit_doctor_say(
            d, "D14",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = "tokenizer",
                            .expected = davit_doctor_text(d, "%zu ids",
                                                          davit_tokenizer_n_ids(b)),
                            .found = davit_doctor_text(d, "%zu", davit_tokenizer_n_ids(a)),
                            .message = "tokens of the base model are gone"});
    if (base->template && g_strcmp0(base->template, d->patient.template) != 0)
        davit_doctor_say(d, "D21",
                         &(DavitFinding){.severity = d->patient.template ? DAVIT_NOTE
                                                                         : DAVIT_WARNING,
                                         .subject = "chat template",
                                         .expected = "the base model's",
                                         .found = d->patient.template ? "another one"
                                                                      : "none",
                                         .message = "the chat template differs from the "
                                                    "base model's",
                                         .hint = "nothing, if the model was trained "
                                                 "with it"});
}

/* ---- tensors ---- */

static bool same_shape(const davit_tensor_info *a, const davit_tensor_info *b)
{
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

static void compare_tensors(DavitDoctor *d, const DavitCheckpoint *base)
{
    const DavitCheckpoint *mine = d->patient.checkpoint;
    const davit_tensor_info *first = NULL;
    size_t n_absent = 0, n_other = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(base); i++) {
        const davit_tensor_info *b = davit_checkpoint_tensor(base, i);
        const davit_tensor_info *m = davit_checkpoint_find(mine, b->name);

        if (!m) {
            first = first ? first : b;
            n_absent++;
        } else if (!same_shape(m, b) && n_other++ < MAX_SAID) {
            davit_doctor_say(d, "D10",
                             &(DavitFinding){.severity = DAVIT_WARNING,
                                             .subject = m->name,
                                             .expected = "the base model's shape",
                                             .found = "another shape",
                                             .message = "a tensor's shape differs from "
                                                        "the base model's"});
        }
    }
    if (n_absent > 0)
        davit_doctor_say(
            d, "D07",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = first->name,
                            .expected = "every tensor of the base model",
                            .found = davit_doctor_text(d, "%zu absent, this one first",
                                                       n_absent),
                            .message = "tensors of the base model are not in this one, or "
                                       "have other names"});
}

void davit_check_base(DavitDoctor *doctor, const DavitPatient *base)
{
    const json_t *mine =
        doctor->patient.settings ? davit_settings_json(doctor->patient.settings) : NULL;
    const json_t *other = base->settings ? davit_settings_json(base->settings) : NULL;

    if (mine && other)
        compare_settings(doctor, mine, other);
    compare_words(doctor, base);
    if (doctor->patient.checkpoint && base->checkpoint)
        compare_tensors(doctor, base->checkpoint);
}
