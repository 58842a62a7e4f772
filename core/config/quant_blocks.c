/* SPDX-License-Identifier: Apache-2.0
 * Every block of config.json that speaks of quantisation: either key, at every level of
 * nesting. */
#include <string.h>

#include "config/settings_private.h"

static const char *const block_keys[] = {"quantization_config", "compression_config"};

const json_t *davit_settings_quantization(const DavitSettings *settings)
{
    for (size_t k = 0; k < G_N_ELEMENTS(block_keys); k++) {
        const json_t *block = json_object_get(settings->json, block_keys[k]);

        if (json_is_object(block))
            return block;
    }
    return NULL;
}

GPtrArray *davit_settings_quantizations(const DavitSettings *settings, GPtrArray *out_paths)
{
    const json_t *first = davit_settings_quantization(settings), *level = settings->wrapper;
    GPtrArray *blocks = g_ptr_array_new();
    g_autoptr(GString) path = g_string_new(NULL);

    for (int depth = 0; level && depth < DAVIT_SETTINGS_LEVELS; depth++) {
        const char *key = NULL;

        for (size_t k = 0; k < G_N_ELEMENTS(block_keys); k++) {
            json_t *block = json_object_get(level, block_keys[k]);
            const guint at = block == first ? 0 : blocks->len;

            if (!json_is_object(block))
                continue;
            g_ptr_array_insert(blocks, (gint)at, block);
            g_ptr_array_insert(out_paths, (gint)at,
                               g_strdup_printf("config.json: %s%s", path->str, block_keys[k]));
        }
        level = davit_settings_nested(level, &key);
        if (level)
            g_string_append_printf(path, "%s.", key);
    }
    return blocks;
}
