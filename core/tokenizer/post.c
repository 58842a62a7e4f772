/* SPDX-License-Identifier: Apache-2.0
 * Every known post-processor puts ids around the text, so a chain of them is one prefix
 * and one suffix. The `pair` form is not read: davit encodes one text at a time.
 */
#include "tokenizer/post.h"

#include <string.h>

#include "tokenizer/node.h"

static void append_id(DavitIds *ids, int64_t id)
{
    if (davit_ids_reserve(ids, 1))
        ids->ids[ids->n++] = (int32_t)id;
}

void davit_post_clear(DavitPost *post)
{
    davit_ids_clear(&post->prefix);
    davit_ids_clear(&post->suffix);
}

static bool is_id(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= DAVIT_TOK_MAX_ID;
}

/* Append the ids of special token @name of a template. */
static int32_t append_special(const DavitNodePlace *place, const json_t *node,
                              const char *name, DavitIds *out)
{
    const json_t *entry = json_object_get(json_object_get(node, "special_tokens"), name);
    const json_t *ids = json_object_get(entry, "ids");

    if (!json_is_array(ids))
        return davit_node_invalid(place, "special_tokens",
                                  "an entry for every special token "
                                  "of the template",
                                  entry);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        if (!is_id(json_array_get(ids, i)))
            return davit_node_invalid(place, "special_tokens", "token ids", ids);
        append_id(out, json_integer_value(json_array_get(ids, i)));
    }
    return DAVIT_OK;
}

static int32_t read_template(const DavitNodePlace *place, const json_t *node,
                             DavitPost *out)
{
    const json_t *single = json_object_get(node, "single");
    bool seen = false;

    if (!json_is_array(single))
        return davit_node_invalid(place, "single", "a list", single);
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *item = json_array_get(single, i);
        const json_t *special = json_object_get(item, "SpecialToken");
        const json_t *sequence = json_object_get(item, "Sequence");
        const json_t *id = json_object_get(special ? special : sequence, "id");

        if (!json_is_string(id))
            return davit_node_invalid(place, "single",
                                      "SpecialToken or Sequence with an id", item);
        if (special) {
            int32_t status = append_special(place, node, json_string_value(id),
                                            seen ? &out->suffix : &out->prefix);
            if (status != DAVIT_OK)
                return status;
        } else if (seen || strcmp(json_string_value(id), "A") != 0) {
            return davit_node_unsupported(place, "single", "the text once, as sequence A",
                                          json_string_value(id));
        } else {
            seen = true;
        }
    }
    if (!seen)
        return davit_node_unsupported(place, "single", "the text once, as sequence A",
                                      "none");
    return DAVIT_OK;
}

/* ["[SEP]", 102] of Bert and Roberta. */
static int32_t read_pair(const DavitNodePlace *place, const json_t *node, const char *key,
                         DavitIds *out)
{
    const json_t *pair = json_object_get(node, key);

    if (json_array_size(pair) != 2 || !is_id(json_array_get(pair, 1)))
        return davit_node_invalid(place, key, "a text and its id", pair);
    append_id(out, json_integer_value(json_array_get(pair, 1)));
    return DAVIT_OK;
}

static int32_t read_stage(const DavitNodePlace *place, const json_t *node, DavitPost *out)
{
    const char *type = davit_node_type(place, node);
    int32_t status;

    if (strcmp(type, "ByteLevel") == 0)
        return DAVIT_OK; /* trims offsets only */
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(place, node, out);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        status = read_pair(place, node, "cls", &out->prefix);
        return status == DAVIT_OK ? read_pair(place, node, "sep", &out->suffix) : status;
    }
    return davit_node_unsupported(
        place, "type",
        "Sequence, ByteLevel, TemplateProcessing, BertProcessing or RobertaProcessing",
        type);
}

/* A later stage wraps what the earlier ones made. */
static void wrap(DavitPost *whole, const DavitPost *outer)
{
    DavitIds prefix = {0};

    for (size_t i = 0; i < outer->prefix.n; i++)
        append_id(&prefix, outer->prefix.ids[i]);
    for (size_t i = 0; i < whole->prefix.n; i++)
        append_id(&prefix, whole->prefix.ids[i]);
    davit_ids_clear(&whole->prefix);
    whole->prefix = prefix;
    for (size_t i = 0; i < outer->suffix.n; i++)
        append_id(&whole->suffix, outer->suffix.ids[i]);
}

/* Behind a template each of its pieces is a text of its own, and a stage that follows goes round every
 * one of them: tokenizers, processors/template.rs and bert.rs. */
static bool is_apart(const json_t *stage)
{
    return json_array_size(json_object_get(stage, "single")) > 1 &&
           strcmp(json_string_value(json_object_get(stage, "type")), "TemplateProcessing") == 0;
}

int32_t davit_post_init(DavitPost *out, const json_t *node, const char *subject,
                        DavitReport *report)
{
    const DavitNodePlace place = {subject, "post_processor", report};
    const json_t *stages[DAVIT_TOK_MAX_STAGES];
    size_t n;
    int32_t status = davit_node_flatten(&place, node, "processors", stages, &n);

    bool apart = false;

    for (size_t i = 0; status == DAVIT_OK && i < n; i++) {
        DavitPost stage = {0};

        status = read_stage(&place, stages[i], &stage);
        if (status == DAVIT_OK && apart && stage.prefix.n + stage.suffix.n > 0)
            status = davit_node_unsupported(
                &place, "processors", "nothing that adds tokens behind a TemplateProcessing",
                davit_node_type(&place, stages[i]));
        apart = apart || is_apart(stages[i]);
        if (status == DAVIT_OK)
            wrap(out, &stage);
        davit_post_clear(&stage);
    }
    return status;
}
