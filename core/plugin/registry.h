/* SPDX-License-Identifier: Apache-2.0
 * The plugin registry: finds shared objects, walks them through the gates, hands out
 * components in a total order. Listing reads manifests only; code runs when a component
 * is first used (davit_component_use).
 *
 * Gates: 1 path trust (trust.c), 2 static ELF read (elf.c), 3 manifest (manifest.c), 4
 * policy (policy.c, prefs.c, needed.c, shadow.c), 5 probe helper (helper.c), 6 load between
 * two snapshots (load.c, process_state.c), 7 entry and validation (validate.c), 8 start and
 * create (load.c). cache.c remembers 2, 3 and 5.
 *
 * Threads: open and free on one thread; everything else any thread (loading is locked).
 */
#ifndef DAVIT_PLUGIN_REGISTRY_H
#define DAVIT_PLUGIN_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <davit/arch.h>
#include <davit/format.h>
#include <davit/kernels.h>
#include <davit/quant.h>
#include <davit/tokenizer.h>

#include "base/report.h"

typedef enum DavitKind {
    DAVIT_KIND_ID_FORMAT,
    DAVIT_KIND_ID_ARCH,
    DAVIT_KIND_ID_QUANT,
    DAVIT_KIND_ID_TOKENIZER,
    DAVIT_KIND_ID_KERNELS,
    DAVIT_KIND_ID_COMM,
    DAVIT_N_KINDS,
} DavitKind;

typedef enum DavitState {
    DAVIT_STATE_OK,
    DAVIT_STATE_PARTIAL, /* some purposes refused (manifest refusals) */
    DAVIT_STATE_REFUSES, /* healthy component whose job is to refuse */
    DAVIT_STATE_REFUSED, /* not loadable here: see records */
    DAVIT_STATE_SHADOWED,
    DAVIT_STATE_DISABLED,
    DAVIT_STATE_QUARANTINED, /* failed in the probe helper and has not changed since */
} DavitState;
const char *davit_state_name(DavitState state);

/* Where plugins are looked for; zero-initialised = the usual places. */
typedef struct DavitRegistryOptions {
    const char *const *plugin_paths; /* --plugin-path directories or files,
                                        NULL-terminated; may be NULL */
    const char *const *
        trust_dirs; /* --trust-dir: modes and owners below are not checked; may be NULL */
    const char *builtin_dir; /* davit's own plugins; NULL = <directory of
                              * libdavit>/davit/plugins-1. Only files in it may use ids
                              * that start with org.davit. */
    bool only_paths; /* look at plugin_paths, and at builtin_dir if it is not NULL (tests)
                      */
    bool allow_draft; /* --allow-draft: components of kinds that end with -draft */
    const char *cache_dir;  /* NULL = $XDG_CACHE_HOME/davit over the system's, with only_paths and without
                             * builtin_dir nothing; "" = nothing is remembered */
    const char *config_dir; /* NULL = the usual places, with only_paths none; "" = none */
    const char *helper;     /* program of gate 5; NULL = beside davit's own plugins; "" =
                             * none: files are loaded here at first sight */
    unsigned helper_step_s;  /* seconds for a step in the helper; 0 = DAVIT_HELPER_STEP_S */
} DavitRegistryOptions;

typedef struct DavitRegistry DavitRegistry;

/* One file that was looked at. All fields borrowed from the registry. */
typedef struct DavitPluginFile {
    char *path; /* absolute */
    char *tier; /* "option" "env" "config" "user" "local" "builtin" */
    DavitState state;
    char *bundle_id, *version, *vendor, *license,
        *build_tag; /* from the manifest; NULL if none */
    uint32_t abi_major, abi_minor, min_host_minor;
    bool is_plugin; /* false: a sound library with neither manifest nor entry; counted
                       only */
    DavitReport *records; /* why it is refused, warnings */
    GPtrArray *needed;    /* char *: DT_NEEDED names */
    GPtrArray *exports;   /* char *: defined dynamic symbols, the first 256 */
    char *build_id;       /* lower hex; NULL = none */
    size_t n_exports;     /* all of them; 1 is right */
    char *runpath;        /* NULL = none */
    bool has_notes;       /* the manifest is in the file, not beside it */
    char *sidecar;        /* path of what stands beside it, sidecar.h; NULL = none */
    GPtrArray *aliases;   /* char *: other paths of the same file (device and inode) */
    json_t *probe; /* (owned) what the probe helper found, now or in an earlier run:
                    * {"outcome","stage","who","signal","exit","time","count","ms","output",
                    * "records","steps"}; NULL = it has not looked. See helper.h */
    struct DavitFileLoad *load; /* what scanning and loading made; private */
} DavitPluginFile;

/* One component of a file. Opaque parts in registry_private.h. */
typedef struct DavitComponent {
    char *id, *kind_name, *capability, *version;
    DavitKind kind; /* valid when known_kind */
    bool known_kind;
    uint32_t kind_major, kind_minor;
    int32_t priority;
    uint64_t purposes; /* what it can ever serve, less its manifest refusals */
    DavitState state;
    DavitReport *records; /* manifest refusals, shadowing, load errors */
    int32_t user_rank;    /* from the user's ranks; 0 = none */
    char *conflict;       /* "1 of 2 for hf=X, before ID"; NULL = nobody else claims it */
    DavitPluginFile *file;
    struct DavitComponentLoad *load; /* what loading made; private */
    GHashTable *derived; /* of davit_component_derive; NULL = nothing yet; private */
} DavitComponent;

/* Never NULL: a registry without any plugin is an empty one. Findings about directories
 * go to @report; findings about files stay with the files. */
DavitRegistry *davit_registry_open(const DavitRegistryOptions *options,
                                   DavitReport *report);
/* Destroys instances, quiesces bundles in reverse start order; never dlcloses. */
void davit_registry_free(DavitRegistry *registry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitRegistry, davit_registry_free)

/* Everything that was seen, in listing order. (borrowed, element types as named) */
const GPtrArray *
davit_registry_files(const DavitRegistry *registry); /* DavitPluginFile */
const GPtrArray *
davit_registry_components(const DavitRegistry *registry); /* DavitComponent */
/* Directories searched, in order. (borrowed, char *) */
const GPtrArray *davit_registry_dirs(const DavitRegistry *registry);

/* Usable components of @kind in candidate order: the user's rank (high first), priority (high
 * first), version (high first), tier, id. (borrowed, DavitComponent) */
const GPtrArray *davit_registry_kind(const DavitRegistry *registry, DavitKind kind);
/* The user's rank of a kernel entry for @op, above every score; 0 = none. */
int32_t davit_component_kernel_rank(const DavitComponent *component, const char *op,
                                    const char *entry);
/* (borrowed) the cache file, NULL if nothing is remembered. */
const char *davit_registry_cache_path(const DavitRegistry *registry);
/* Write what is remembered now; false if it could not be. */
bool davit_registry_save(DavitRegistry *registry);
/* Run the probe helper on @file, whatever is remembered, and remember the result.
 * Returns: what it answered; DAVIT_E_USAGE with a record if the file did not get so far. */
int32_t davit_registry_retry(DavitRegistry *registry, DavitPluginFile *file,
                             DavitReport *report);
/* Forget what the helper found about @file. */
void davit_registry_forget(DavitRegistry *registry, DavitPluginFile *file);
/* Forget every crash, hang and early exit, also of files that this search did not find.
 * Returns: (owned) array of {"path", "outcome"}. */
json_t *davit_registry_forget_failures(DavitRegistry *registry);
/* Is @id, or a glob that fits it, in a list of disabled ids? */
bool davit_registry_is_disabled(const DavitRegistry *registry, const char *id);
/* The user's list of disabled ids; see prefs.h. */
int32_t davit_registry_disable(DavitRegistry *registry, const char *id, bool disabled,
                               DavitReport *report);
/* The user's ranks for @op, {"component:entry": rank}; @ranks is taken over. */
int32_t davit_registry_rank_kernels(DavitRegistry *registry, const char *op,
                                    json_t *ranks, DavitReport *report);
/* (borrowed) the user's own plugins.json, NULL if there is none for this process. */
const char *davit_registry_config_path(const DavitRegistry *registry);
/* NULL if there is no such id among usable components. */
DavitComponent *davit_registry_find(const DavitRegistry *registry, const char *id);

/* Load if needed (gates 5 to 8) and create the instance. On success *out_iface is a copy
 * of the kind's table, padded with zeros to this host's size and with required slots
 * checked: const davit_format_iface *f; void *self; if (davit_component_use(c, (const
 * void **)&f, &self, report)) return ...; Both borrowed from the registry. Fails with the
 * component's records copied to @report. */
int32_t davit_component_use(DavitComponent *component, const void **out_iface,
                            void **out_self, DavitReport *report);
/* probe slot of a format component after use; NULL if it has none. */
typedef int32_t (*DavitProbeFn)(const davit_probe_in *in, davit_verdict *out,
                                const davit_sink *sink);
DavitProbeFn davit_component_probe(DavitComponent *component);

/* (borrowed from the registry) what @make gives for @key, an address inside the loaded plugin:
 * made when it is first asked for, freed by @destroy with the registry. What plugins say never
 * changes, so who reads it need not do so again. A component has one @make and @destroy, which
 * do not call this. [any thread] */
void *davit_component_derive(DavitComponent *component, const void *key,
                             void *(*make)(const void *key), GDestroyNotify destroy);

/* (borrowed) needs of the descriptor, after use; NULL = none. */
const char *davit_component_needs(const DavitComponent *component);

/* Does "key=a|b|c" of @capability list @value? Exact, case-sensitive. */
bool davit_capability_has(const char *capability, const char *key, const char *value);

/* The host table handed to plugins; suites are looked up in core/plugin/host.c. */
const davit_host *davit_host_table(void);

#endif
