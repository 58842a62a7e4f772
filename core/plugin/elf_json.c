/* SPDX-License-Identifier: Apache-2.0
 * Fields keep their names; false flags are left out. */
#include "plugin/elf_json.h"

#include <string.h>

static json_t *strings_to_json(const GPtrArray *strings)
{
    json_t *list = json_array();

    for (size_t i = 0; i < strings->len; i++) {
        json_t *text = json_string(g_ptr_array_index(strings, i));

        if (!text) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, text);
    }
    return list;
}

static json_t *notes_to_json(const GArray *notes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < notes->len; i++) {
        const DavitElfNote *note = &g_array_index(notes, DavitElfNote, i);
        json_t *pair = json_pack("[I, o]", (json_int_t)note->type,
                                 json_stringn(note->text, note->n_text));

        if (!pair || memchr(note->text, '\0', note->n_text)) {
            json_decref(pair);
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, pair);
    }
    return list;
}

json_t *davit_elf_to_json(const DavitElf *elf)
{
    /* json_pack takes over all of them, or frees them when one is NULL */
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:I, s:I, s:s?, s:s?}", "notes",
                  notes_to_json(elf->notes), "needed", strings_to_json(elf->needed),
                  "exports", strings_to_json(elf->exports), "n_exports",
                  (json_int_t)elf->n_exports, "n_tls", (json_int_t)elf->n_tls, "runpath",
                  elf->runpath, "build_id", elf->build_id);

    if (json && elf->has_entry)
        json_object_set_new(json, "has_entry", json_true());
    if (json && elf->exec_stack)
        json_object_set_new(json, "exec_stack", json_true());
    if (json && elf->text_relocations)
        json_object_set_new(json, "text_relocations", json_true());
    if (json && elf->static_tls)
        json_object_set_new(json, "static_tls", json_true());
    return json;
}

/* ---- back ---- */

static bool strings_from_json(const json_t *list, GPtrArray *to)
{
    size_t i;
    json_t *text;

    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, text)
    {
        if (!json_is_string(text))
            return false;
        g_ptr_array_add(to, g_strdup(json_string_value(text)));
    }
    return true;
}

static bool notes_from_json(const json_t *list, GArray *to)
{
    size_t i;
    json_t *pair;

    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, pair)
    {
        const json_t *text = json_array_get(pair, 1);
        const DavitElfNote note = {
            .type = (uint32_t)json_integer_value(json_array_get(pair, 0)),
            .n_text = (uint32_t)json_string_length(text),
            .text = json_string_value(text)};

        if (!note.text)
            return false;
        g_array_append_val(to, note);
    }
    return true;
}

DavitElf *davit_elf_from_json(const json_t *json)
{
    g_autoptr(DavitElf) elf = g_new0(DavitElf, 1);

    elf->notes = g_array_new(FALSE, FALSE, sizeof(DavitElfNote));
    elf->needed = g_ptr_array_new_with_free_func(g_free);
    elf->exports = g_ptr_array_new_with_free_func(g_free);
    if (!notes_from_json(json_object_get(json, "notes"), elf->notes) ||
        !strings_from_json(json_object_get(json, "needed"), elf->needed) ||
        !strings_from_json(json_object_get(json, "exports"), elf->exports))
        return NULL;
    elf->n_exports = (size_t)json_integer_value(json_object_get(json, "n_exports"));
    elf->n_tls = (uint64_t)json_integer_value(json_object_get(json, "n_tls"));
    elf->runpath = g_strdup(json_string_value(json_object_get(json, "runpath")));
    elf->build_id = g_strdup(json_string_value(json_object_get(json, "build_id")));
    elf->has_entry = json_is_true(json_object_get(json, "has_entry"));
    elf->exec_stack = json_is_true(json_object_get(json, "exec_stack"));
    elf->text_relocations = json_is_true(json_object_get(json, "text_relocations"));
    elf->static_tls = json_is_true(json_object_get(json, "static_tls"));
    return g_steal_pointer(&elf);
}
