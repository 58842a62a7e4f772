/* SPDX-License-Identifier: Apache-2.0
 * Members of JSON stages, checked.
 */
#include "tokenizer/node.h"

#include <string.h>

int32_t davit_node_invalid(const DavitNodePlace *place, const char *key,
                           const char *expected, const json_t *found)
{
    char *text = found ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    davit_report_add(
        place->report,
        &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "open",
                        .subject = davit_report_text(place->report, "%s: %s%s%s",
                                                     place->file, place->member,
                                                     key ? "." : "", key ? key : ""),
                        .expected = expected,
                        .found = text ? text : "absent",
                        .message = "the tokenizer file breaks its own rules"});
    free(text);
    return DAVIT_E_CORRUPT;
}

int32_t davit_node_unsupported(const DavitNodePlace *place, const char *key,
                               const char *expected, const char *found)
{
    return davit_report_add(
        place->report,
        &(DavitFinding){
            .code = DAVIT_R_TOKENIZER_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "open",
            .subject = davit_report_text(place->report, "%s: %s%s%s", place->file,
                                         place->member, key ? "." : "", key ? key : ""),
            .expected = expected,
            .found = found,
            .message =
                "this build does not know the tokenizer stage exactly, and a guess "
                "would give other ids"});
}

int32_t davit_node_text(const DavitNodePlace *place, const json_t *node, const char *key,
                        const char **out, size_t *out_len)
{
    const json_t *value = json_object_get(node, key);

    if (!json_is_string(value))
        return davit_node_invalid(place, key, "a string", value);
    *out = json_string_value(value);
    *out_len = json_string_length(value);
    return DAVIT_OK;
}

int32_t davit_node_bool(const DavitNodePlace *place, const json_t *node, const char *key,
                        bool *out)
{
    const json_t *value = json_object_get(node, key);

    if (!json_is_boolean(value))
        return davit_node_invalid(place, key, "true or false", value);
    *out = json_is_true(value);
    return DAVIT_OK;
}

int32_t davit_node_bool_or(const DavitNodePlace *place, const json_t *node,
                           const char *key, bool absent, bool *out)
{
    const json_t *value = json_object_get(node, key);

    *out = absent;
    if (!value || json_is_null(value))
        return DAVIT_OK;
    return davit_node_bool(place, node, key, out);
}

int32_t davit_node_count(const DavitNodePlace *place, const json_t *node, const char *key,
                         size_t *out)
{
    const json_t *value = json_object_get(node, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return davit_node_invalid(place, key, "a whole number, not negative", value);
    *out = (size_t)json_integer_value(value);
    return DAVIT_OK;
}

int32_t davit_node_pattern(const DavitNodePlace *place, const json_t *node,
                           const char **out, size_t *out_len)
{
    const json_t *pattern = json_object_get(node, "pattern");

    if (json_is_string(json_object_get(pattern, "Regex")))
        return davit_node_unsupported(
            place, "pattern.Regex", "a String pattern",
            json_string_value(json_object_get(pattern, "Regex")));
    if (!json_is_string(json_object_get(pattern, "String")))
        return davit_node_invalid(place, "pattern", "{\"String\": text}", pattern);
    return davit_node_text(place, pattern, "String", out, out_len);
}

const char *davit_node_type(const DavitNodePlace *place, const json_t *node)
{
    const json_t *type = json_object_get(node, "type");

    if (!json_is_string(type)) {
        davit_node_invalid(place, "type", "a string", json_is_object(node) ? type : node);
        return NULL;
    }
    return json_string_value(type);
}

int32_t davit_node_flatten(const DavitNodePlace *place, const json_t *node,
                           const char *parts_key, const json_t **out, size_t *out_n)
{
    /* Stages still to look at, the next one last. */
    const json_t *todo[DAVIT_TOK_MAX_STAGES];
    size_t n_todo = 0, n = 0;

    if (node && !json_is_null(node))
        todo[n_todo++] = node;
    while (n_todo > 0) {
        const json_t *at = todo[--n_todo], *parts;
        const char *type = davit_node_type(place, at);

        if (!type)
            return DAVIT_E_CORRUPT;
        if (strcmp(type, "Sequence") != 0) {
            if (n == DAVIT_TOK_MAX_STAGES)
                return davit_node_unsupported(place, NULL, "at most 64 stages", "more");
            out[n++] = at;
            continue;
        }
        parts = json_object_get(at, parts_key);
        if (!json_is_array(parts))
            return davit_node_invalid(place, parts_key, "a list", parts);
        if (json_array_size(parts) > DAVIT_TOK_MAX_STAGES - n_todo)
            return davit_node_unsupported(place, NULL, "at most 64 stages", "more");
        for (size_t i = json_array_size(parts); i > 0; i--)
            todo[n_todo++] = json_array_get(parts, i - 1);
    }
    *out_n = n;
    return DAVIT_OK;
}
