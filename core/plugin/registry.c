/* SPDX-License-Identifier: Apache-2.0
 * The registry: builds the lists once, then answers from them. */
#include "plugin/registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "plugin/helper.h"
#include "plugin/kinds.h"
#include "plugin/load.h"
#include "plugin/policy.h"
#include "plugin/scan.h"
#include "plugin/shadow.h"
#include "plugin/trust.h"

/* Loading touches state of the whole process, so one lock serves all registries. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

const char *davit_state_name(DavitState state)
{
    static const char *const names[] = {"ok",       "partial",  "refuses",    "refused",
                                        "shadowed", "disabled", "quarantined"};

    return names[state];
}

/* ---- building ---- */

static void file_free(void *p)
{
    DavitPluginFile *file = p;

    davit_manifest_free(file->load->manifest);
    g_ptr_array_unref(file->load->components);
    g_free(file->load->real);
    g_free(file->load->sha256);
    g_free(file->sidecar);
    g_free(file->load);
    davit_report_free(file->records);
    json_decref(file->probe);
    g_free(file->runpath);
    g_ptr_array_unref(file->needed);
    g_ptr_array_unref(file->exports);
    g_ptr_array_unref(file->aliases);
    g_free(file->build_id);
    g_free(file->path);
    g_free(file->tier);
    g_free(file->bundle_id);
    g_free(file->version);
    g_free(file->vendor);
    g_free(file->license);
    g_free(file->build_tag);
    g_free(file);
}

static void component_free(void *p)
{
    DavitComponent *c = p;

    g_free(c->load->iface);
    g_free(c->load);
    davit_report_free(c->records);
    g_free(c->conflict);
    g_free(c->id);
    g_free(c->kind_name);
    g_free(c->capability);
    g_free(c->version);
    g_clear_pointer(&c->derived, g_hash_table_unref);
    g_free(c);
}

static void add_real(GStrvBuilder *builder, const char *dir)
{
    char *real = realpath(dir, NULL);

    if (real)
        g_strv_builder_add(builder, real);
    free(real);
}

/* Real paths of the directories that the user trusts by name, here or in plugins.json. */
static GStrv real_dirs(const char *const *dirs, const DavitPrefs *prefs)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_autoptr(GPtrArray) more = davit_prefs_list(prefs, "trust");

    for (size_t i = 0; dirs && dirs[i] && !davit_trust_privileged(); i++)
        add_real(builder, dirs[i]);
    for (size_t i = 0; i < more->len; i++)
        add_real(builder, g_ptr_array_index(more, i));
    return g_strv_builder_end(builder);
}

/* A file's state follows from what became of its components. */
static void settle_file(DavitPluginFile *file)
{
    const GPtrArray *all = file->load->components;

    if (file->state != DAVIT_STATE_OK)
        return;
    file->state = DAVIT_STATE_REFUSED;
    for (size_t i = 0; i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);

        if (davit_component_usable(c)) {
            file->state = DAVIT_STATE_OK;
            return;
        }
        file->state = c->state;
    }
}

static int by_candidate_order(const void *pa, const void *pb)
{
    const DavitComponent *a = *(const DavitComponent *const *)pa;
    const DavitComponent *b = *(const DavitComponent *const *)pb;
    const int version = davit_version_compare(a->version, b->version);

    if (a->user_rank != b->user_rank)
        return a->user_rank > b->user_rank ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (version)
        return -version;
    if (a->file->load->rank != b->file->load->rank)
        return a->file->load->rank - b->file->load->rank;
    return strcmp(a->id, b->id);
}

static void index_kinds(DavitRegistry *registry)
{
    for (size_t i = 0; i < registry->components->len; i++) {
        DavitComponent *c = g_ptr_array_index(registry->components, i);

        if (c->known_kind && davit_component_usable(c))
            g_ptr_array_add(registry->by_kind[c->kind], c);
    }
    for (size_t i = 0; i < DAVIT_N_KINDS; i++)
        g_ptr_array_sort(registry->by_kind[i], by_candidate_order);
}

/* A file that the user named has no quiet way to fail. */
static void report_named(const DavitRegistry *registry, const GPtrArray *candidates,
                         DavitReport *report)
{
    for (size_t i = 0; i < candidates->len; i++) {
        const DavitCandidate *candidate = g_ptr_array_index(candidates, i);

        for (size_t j = 0; candidate->is_named && j < registry->files->len; j++) {
            const DavitPluginFile *file = g_ptr_array_index(registry->files, j);

            if (strcmp(file->path, candidate->path) == 0 &&
                davit_report_failed(file->records))
                davit_report_append(report, file->records);
        }
    }
}

/* A directory that the user named: that some of its files are not used is said once. */
static void report_option_dirs(const DavitRegistry *registry, const GPtrArray *candidates,
                               DavitReport *report)
{
    const DavitRecord *why = NULL;
    const DavitPluginFile *first = NULL;
    unsigned n = 0;

    for (size_t i = 0; i < candidates->len; i++) {
        const DavitCandidate *candidate = g_ptr_array_index(candidates, i);

        for (size_t j = 0; !candidate->is_named && j < registry->files->len; j++) {
            const DavitPluginFile *file = g_ptr_array_index(registry->files, j);

            if (strcmp(file->tier, "option") != 0 || strcmp(file->path, candidate->path) != 0 ||
                !davit_report_failed(file->records))
                continue;
            n++;
            if (!first) {
                first = file;
                why = davit_report_first_error(file->records, UINT64_MAX);
            }
        }
    }
    if (!why)
        return;
    davit_report_add(report,
                     &(DavitFinding){.code = why->code,
                                     .severity = DAVIT_WARNING,
                                     .stage = "search",
                                     .subject = first->path,
                                     .expected = why->expected,
                                     .found = why->found,
                                     .message = davit_report_text(
                                         report, "of --plugin-path %u file%s not used", n,
                                         n == 1 ? " is" : "s are, this one first,"),
                                     .hint = "davit plugin inspect FILE tells why"});
}

static void report_empty(const DavitRegistry *registry, DavitReport *report)
{
    g_autoptr(GString) dirs = g_string_new(NULL);

    for (size_t i = 0; i < DAVIT_N_KINDS; i++) {
        if (registry->by_kind[i]->len > 0)
            return;
    }
    for (size_t i = 0; i < registry->dirs->len; i++)
        g_string_append_printf(dirs, "%s%s", i ? ", " : "",
                               (const char *)g_ptr_array_index(registry->dirs, i));
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_NO_PLUGINS,
                                     .severity = DAVIT_WARNING,
                                     .stage = "search",
                                     .subject = "plugins",
                                     .expected = "at least one usable plugin",
                                     .found = dirs->len ? dirs->str : "no directory",
                                     .message = "no usable plugin in the directories "
                                                "that were searched",
                                     .hint = "davit opens nothing without plugins; see "
                                             "`davit plugin list`"});
}

static DavitRegistry *registry_new(void)
{
    DavitRegistry *registry = g_new0(DavitRegistry, 1);

    registry->dirs = g_ptr_array_new_with_free_func(g_free);
    registry->files = g_ptr_array_new_with_free_func(file_free);
    registry->components = g_ptr_array_new_with_free_func(component_free);
    registry->created = g_ptr_array_new();
    registry->started = g_ptr_array_new();
    registry->libraries = davit_libraries_new();
    for (size_t i = 0; i < DAVIT_N_KINDS; i++)
        registry->by_kind[i] = g_ptr_array_new();
    return registry;
}

/* A registry over named paths alone touches nothing else of the user's. */
static void open_stores(DavitRegistry *registry, const DavitRegistryOptions *options,
                        DavitReport *report)
{
    const bool bare = options->only_paths && !options->builtin_dir;

    registry->helper = options->helper ? *options->helper ? g_strdup(options->helper) : NULL
                                       : davit_helper_find(options->builtin_dir);
    registry->step_s = options->helper_step_s ? options->helper_step_s : DAVIT_HELPER_STEP_S;
    registry->cache =
        davit_cache_open(!options->cache_dir && bare ? "" : options->cache_dir,
                         registry->helper);
    if (!bare && !options->cache_dir)
        davit_cache_read_system(registry->cache, DAVIT_SYSTEM_CACHE);
    registry->prefs = davit_prefs_open(
        !options->config_dir && options->only_paths ? "" : options->config_dir, report);
    registry->allow_draft = options->allow_draft;
}

static void settle(DavitRegistry *registry)
{
    davit_shadow(registry);
    for (size_t i = 0; i < registry->files->len; i++)
        settle_file(g_ptr_array_index(registry->files, i));
    index_kinds(registry);
    for (size_t i = 0; i < DAVIT_N_KINDS; i++)
        davit_shadow_conflicts(registry->by_kind[i]);
}

DavitRegistry *davit_registry_open(const DavitRegistryOptions *options,
                                   DavitReport *report)
{
    static const DavitRegistryOptions usual = {0};
    DavitRegistry *registry = registry_new();
    g_autoptr(GPtrArray) candidates = NULL;
    g_auto(GStrv) trusted = NULL;
    g_autoptr(DavitTrust) trust = NULL;

    if (!options)
        options = &usual;
    open_stores(registry, options, report);
    davit_cpu_check(report);
    trusted = real_dirs(options->trust_dirs, registry->prefs);
    trust = davit_trust_new((const char *const *)trusted);
    candidates = davit_search(options, registry->prefs, registry->dirs, report);
    for (size_t i = 0; i < candidates->len; i++)
        davit_scan_file(registry, g_ptr_array_index(candidates, i), trust);
    settle(registry);
    report_named(registry, candidates, report);
    report_option_dirs(registry, candidates, report);
    report_empty(registry, report);
    return registry;
}

DavitRegistry *davit_registry_single(const char *path, bool is_builtin)
{
    DavitRegistry *registry = registry_new();
    g_autofree char *dir = g_path_get_dirname(path);
    const char *trusted[] = {dir, NULL}; /* the parent has looked */
    g_autoptr(DavitTrust) trust = davit_trust_new(trusted);
    const DavitCandidate candidate = {.path = (char *)(uintptr_t)path,
                                      .tier = "option",
                                      .is_named = true,
                                      .is_builtin = is_builtin};
    g_autoptr(DavitReport) ignored = davit_report_new();

    registry->in_helper = true;
    registry->allow_draft = true;
    registry->cache = davit_cache_open("", NULL);
    registry->prefs = davit_prefs_open("", ignored);
    davit_scan_file(registry, &candidate, trust);
    settle(registry);
    return registry;
}

void davit_registry_free(DavitRegistry *registry)
{
    if (!registry)
        return;
    pthread_mutex_lock(&load_lock);
    davit_load_shutdown(registry);
    pthread_mutex_unlock(&load_lock);
    for (size_t i = 0; i < DAVIT_N_KINDS; i++)
        g_ptr_array_unref(registry->by_kind[i]);
    g_ptr_array_unref(registry->created);
    g_ptr_array_unref(registry->started);
    g_ptr_array_unref(registry->components);
    g_ptr_array_unref(registry->files);
    g_ptr_array_unref(registry->dirs);
    davit_cache_free(registry->cache);
    davit_prefs_free(registry->prefs);
    davit_libraries_free(registry->libraries);
    g_free(registry->helper);
    g_free(registry);
}

/* ---- answers ---- */

const GPtrArray *davit_registry_files(const DavitRegistry *registry)
{
    return registry->files;
}

const GPtrArray *davit_registry_components(const DavitRegistry *registry)
{
    return registry->components;
}

const GPtrArray *davit_registry_dirs(const DavitRegistry *registry)
{
    return registry->dirs;
}

const GPtrArray *davit_registry_kind(const DavitRegistry *registry, DavitKind kind)
{
    return registry->by_kind[kind];
}

DavitComponent *davit_registry_find(const DavitRegistry *registry, const char *id)
{
    for (size_t i = 0; i < registry->components->len; i++) {
        DavitComponent *c = g_ptr_array_index(registry->components, i);

        if (davit_component_usable(c) && strcmp(c->id, id) == 0)
            return c;
    }
    return NULL;
}

/* ---- what the user decides ---- */

int32_t davit_component_kernel_rank(const DavitComponent *component, const char *op,
                                    const char *entry)
{
    if (!component || !component->file || !component->file->load) /* a table under test */
        return 0;
    return davit_prefs_kernel_rank(component->file->load->registry->prefs, op,
                                   component->id, entry);
}

const char *davit_registry_cache_path(const DavitRegistry *registry)
{
    return davit_cache_path(registry->cache);
}

bool davit_registry_save(DavitRegistry *registry)
{
    return davit_cache_flush(registry->cache);
}

const char *davit_registry_config_path(const DavitRegistry *registry)
{
    return registry->prefs->user_path;
}

bool davit_registry_is_disabled(const DavitRegistry *registry, const char *id)
{
    return davit_prefs_disabled(registry->prefs, id, &(const char *){NULL}) != NULL;
}

int32_t davit_registry_disable(DavitRegistry *registry, const char *id, bool disabled,
                               DavitReport *report)
{
    return davit_prefs_set_disabled(registry->prefs, id, disabled, report);
}

int32_t davit_registry_rank_kernels(DavitRegistry *registry, const char *op,
                                    json_t *ranks, DavitReport *report)
{
    return davit_prefs_set_kernel_ranks(registry->prefs, op, ranks, report);
}

void davit_registry_forget(DavitRegistry *registry, DavitPluginFile *file)
{
    json_decref(file->probe);
    file->probe = NULL;
    if (file->load->real)
        davit_cache_put(registry->cache, file->load->real, &file->load->seen, "probe",
                        NULL);
}

json_t *davit_registry_forget_failures(DavitRegistry *registry)
{
    return davit_cache_forget_failures(registry->cache);
}

int32_t davit_registry_retry(DavitRegistry *registry, DavitPluginFile *file,
                             DavitReport *report)
{
    int32_t status;

    if (!file->load->manifest ||
        (file->state == DAVIT_STATE_REFUSED && !file->probe)) {
        davit_report_append(report, file->records);
        return DAVIT_E_UNSUPPORTED;
    }
    if (!registry->helper)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                    .status = DAVIT_E_IO,
                                    .stage = "probe-helper",
                                    .subject = "davit-probe",
                                    .expected = "the helper program beside libdavit",
                                    .message = "there is no probe helper to look with",
                                    .hint = "install davit as a whole"});
    pthread_mutex_lock(&load_lock);
    status = davit_helper_probe_again(file, report);
    pthread_mutex_unlock(&load_lock);
    return status;
}

/* Why @c cannot be used: the file's errors, then its own; never nothing. */
static void explain(const DavitComponent *c, int32_t status, DavitReport *report)
{
    const size_t before = davit_report_count(report);

    if (davit_report_failed(c->file->records))
        davit_report_append(report, c->file->records);
    davit_report_append(report, c->records);
    for (size_t i = before; i < davit_report_count(report); i++) {
        if (davit_report_get(report, i)->severity == DAVIT_ERROR)
            return;
    }
    davit_report_add(report, &(DavitFinding){.code = c->state == DAVIT_STATE_DISABLED
                                                         ? DAVIT_R_DISABLED
                                                     : c->state == DAVIT_STATE_QUARANTINED
                                                         ? DAVIT_R_QUARANTINED
                                                     : c->state == DAVIT_STATE_SHADOWED
                                                         ? DAVIT_R_SHADOWED
                                                         : DAVIT_R_START_FAILED,
                                             .status = status,
                                             .stage = "load",
                                             .subject = c->id,
                                             .found = davit_state_name(c->state),
                                             .message = "the component cannot be used"});
}

int32_t davit_component_use(DavitComponent *component, const void **out_iface,
                            void **out_self, DavitReport *report)
{
    int32_t status;

    pthread_mutex_lock(&load_lock);
    status = davit_load_component(component);
    pthread_mutex_unlock(&load_lock);
    if (status) {
        explain(component, status, report);
        return status;
    }
    *out_iface = component->load->iface;
    *out_self = component->load->self;
    return DAVIT_OK;
}

DavitProbeFn davit_component_probe(DavitComponent *component)
{
    return component->load->has_desc ? component->load->desc.probe : NULL;
}

const char *davit_component_needs(const DavitComponent *component)
{
    return component->load->has_desc ? component->load->desc.needs : NULL;
}
