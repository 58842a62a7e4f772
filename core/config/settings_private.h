/* SPDX-License-Identifier: Apache-2.0
 * What DavitSettings holds. For the files of core/config and their tests only. */
#ifndef DAVIT_CONFIG_SETTINGS_PRIVATE_H
#define DAVIT_CONFIG_SETTINGS_PRIVATE_H

#include "config/config.h"

struct DavitSettings {
    char *subject;          /* file that speaks: "config.json", or the GGUF's name */
    json_t *wrapper;        /* (owned) config.json as it stands; NULL for a GGUF */
    json_t *json;           /* (owned) with nesting resolved; NULL for a GGUF */
    json_t *keys;           /* (owned) GGUF keys as one flat object; NULL otherwise */
    json_t *generation;     /* (owned) generation_config.json, or NULL */
    char *gguf_arch;        /* general.architecture, NULL if not GGUF */
    GPtrArray *hf_names;    /* char *, NULL-terminated */
    GPtrArray *model_types; /* char *, NULL-terminated; the wrapper's first */
    GArray *eos;            /* int32_t */
    int32_t bos;
    DavitGenerationDefaults sampling;
};

#define DAVIT_SETTINGS_LEVELS 4 /* levels of nesting that are read */

/* The text model's object inside @level, with its key (static), or NULL. */
const json_t *davit_settings_nested(const json_t *level, const char **out_key);

/* Settings of a GGUF whose keys are @keys (owned: taken), "llama.block_count": 2 ...
 * Arrays of strings and long arrays are not there. */
DavitSettings *davit_settings_from_keys(json_t *keys, const char *subject,
                                        DavitReport *report);

/* A value by its spellings: @json for config.json, @gguf for a GGUF (see
 * davit_config_row; either may be NULL). Aliases are looked up past nulls. Returns:
 * (borrowed) a value that is not null, or JSON null, or NULL if absent. *out_key (owned,
 * g_free) is the spelling found, or the first one. */
json_t *davit_settings_value(const DavitSettings *settings, const char *json,
                             const char *gguf, char **out_key);

/* Spelling by spelling: the same for one '|'-joined list in one object. @prefix
 * ("llama.") goes before every name without a leading '/'; NULL = JSON, where '.' nests.
 */
json_t *davit_settings_lookup(const json_t *object, const char *spellings,
                              const char *prefix, char **out_key);

#endif
