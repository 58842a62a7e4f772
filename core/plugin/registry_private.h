/* SPDX-License-Identifier: Apache-2.0
 * What scanning (scan.c), shadowing (shadow.c) and loading (load.c, validate.c) keep with
 * the registry's files and components.
 */
#ifndef DAVIT_PLUGIN_REGISTRY_PRIVATE_H
#define DAVIT_PLUGIN_REGISTRY_PRIVATE_H

#include <sys/stat.h>

#include "plugin/cache.h"
#include "plugin/manifest.h"
#include "plugin/needed.h"
#include "plugin/prefs.h"
#include "plugin/registry.h"
#include "plugin/search.h"

struct DavitRegistry {
    bool in_helper; /* this process is the probe helper */
    bool allow_draft;
    char *helper;      /* program, NULL = none */
    unsigned step_s;   /* seconds for a step of it */
    DavitCache *cache; /* never NULL */
    DavitPrefs *prefs; /* never NULL */
    DavitLibraries *libraries;
    GPtrArray *dirs;                   /* char * */
    GPtrArray *files;                  /* DavitPluginFile, owned */
    GPtrArray *components;             /* DavitComponent, owned */
    GPtrArray *by_kind[DAVIT_N_KINDS]; /* DavitComponent, borrowed, candidate order */
    GPtrArray *created; /* DavitComponent with an instance, in order of creation */
    GPtrArray *started; /* DavitPluginFile, in order of start */
};

/* A file's private part. */
typedef struct DavitFileLoad {
    DavitRegistry *registry; /* (borrowed) */
    char *real;              /* real path: what dlopen gets */
    struct stat seen;        /* when it was scanned */
    int rank;                /* of its tier */
    bool is_builtin;
    char *sha256; /* that the sidecar asks for; NULL = any */
    DavitManifest *manifest; /* NULL if the file is refused before */
    GPtrArray *components;   /* DavitComponent of this file, borrowed */
    bool tried;              /* loading was tried; status says how it ended */
    int32_t status;
    davit_entry_v1_fn entry;
    davit_bundle bundle; /* copy, padded with zeros */
    void *bundle_ctx;    /* the plugin's, from start */
} DavitFileLoad;

/* A component's private part. */
typedef struct DavitComponentLoad {
    const DavitManifestComponent *manifest; /* (borrowed) the file's */
    bool has_desc;                          /* desc and iface are valid */
    davit_component desc;                   /* copy, padded with zeros */
    void *iface; /* copy of the kind's table, padded with zeros, owned */
    bool tried;  /* create was tried; status says how it ended */
    int32_t status;
    void *self; /* the plugin's instance */
} DavitComponentLoad;

/* OK, PARTIAL and REFUSES take part in selection. */
static inline bool davit_component_usable(const DavitComponent *component)
{
    return component->state == DAVIT_STATE_OK ||
           component->state == DAVIT_STATE_PARTIAL ||
           component->state == DAVIT_STATE_REFUSES;
}

/* (owned) A registry of one file that was named, without search path, cache and helper: for
 * the helper itself. */
DavitRegistry *davit_registry_single(const char *path, bool is_builtin);

#endif
