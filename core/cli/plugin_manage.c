/* SPDX-License-Identifier: Apache-2.0
 * davit plugin retry, clear-quarantine, rescan, disable, enable: what is remembered of plugins
 * and what the user decided about them. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/plugin_show.h"
#include "plugin/cache.h"

static const char *const retry_examples[] = {
    "davit plugin retry com.acme.pack", "run the probe helper on its file again, and remember",
    "davit plugin retry ./my-plugin.so", "the same for a file", NULL};
static const char *const clear_examples[] = {"davit plugin clear-quarantine",
                                             "forget every crash, so that all are tried again",
                                             NULL};
static const DavitFlag rescan_flags[] = {
    {"system", 0, DAVIT_FLAG_SWITCH, NULL,
     "remember in /var/cache/davit, for every user of this machine", NULL, NULL, false},
    {0},
};
static const char *const rescan_examples[] = {
    "davit plugin rescan", "look at every plugin now, so that later runs need not",
    "davit plugin rescan --system", "the same for all users, when a package is installed", NULL};
static const char *const disable_examples[] = {"davit plugin disable 'com.acme.*'",
                                               "switch components or bundles off by glob", NULL};
static const char *const enable_examples[] = {"davit plugin enable com.acme.pack",
                                              "switch it on again", NULL};

static const char *outcome_of(const DavitPluginFile *f)
{
    const char *outcome = json_string_value(json_object_get(f->probe, "outcome"));
    return outcome ? outcome : "not looked at";
}

static json_t *looked_at(DavitCall *call, const DavitPluginFile *f)
{
    const char *name = f->bundle_id ? f->bundle_id : f->path;
    if (!call->json)
        printf("%-14s  %s  (%s)\n", outcome_of(f), davit_shown(name), davit_shown(f->path));
    return json_pack("{s:o, s:o, s:s}", "bundle", davit_json_text(name), "path",
                     davit_json_text(f->path), "outcome", outcome_of(f));
}

static int no_such(DavitCall *call, const char *word)
{
    return davit_show_unknown(call, word);
}

static int retry(DavitCall *call)
{
    const char *word = call->args[0];
    g_autoptr(DavitRegistry) registry =
        davit_show_registry(call, davit_show_is_path(word) ? word : NULL);
    json_t *files = json_array();
    json_object_set_new(call->doc, "files", files);
    if (!registry)
        return davit_call_exit(call);
    DavitPluginFile *f = davit_show_find(registry, word);
    if (!f)
        return no_such(call, word);
    davit_registry_retry(registry, f, call->report);
    json_array_append_new(files, looked_at(call, f));
    return davit_call_exit(call);
}

/* Every file that got to the helper's gate: new ones, or all of them. */
static int rescan(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_show_registry(call, NULL);
    json_t *files = json_array();
    json_object_set_new(call->doc, "files", files);
    if (!registry)
        return davit_call_exit(call);
    const GPtrArray *all = davit_registry_files(registry);
    for (guint i = 0; i < all->len; i++) {
        DavitPluginFile *f = g_ptr_array_index(all, i);
        g_autoptr(DavitReport) said = davit_report_new();
        if (f->state != DAVIT_STATE_OK && f->state != DAVIT_STATE_QUARANTINED)
            continue;
        davit_registry_retry(registry, f, said);
        json_array_append_new(files, looked_at(call, f));
    }
    if (davit_registry_save(registry) || !davit_call_has(call, "system"))
        return DAVIT_EXIT_OK; /* a cache of one's own is a convenience */
    davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                   .status = DAVIT_E_IO,
                                                   .stage = "write",
                                                   .subject = DAVIT_SYSTEM_CACHE,
                                                   .expected = "a folder that can be written",
                                                   .message = "what was found is not remembered",
                                                   .hint = "run it as root"});
    return DAVIT_EXIT_FAILED;
}

/* What was to be forgotten is still there. */
static int not_forgotten(DavitCall *call, const char *path)
{
    davit_report_add(call->report,
                     &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                     .status = DAVIT_E_IO,
                                     .stage = "write",
                                     .subject = path,
                                     .expected = "a file that can be written",
                                     .message = "the plugins stay in quarantine: what is "
                                                "remembered of them could not be changed",
                                     .hint = "check the disk and the folder, or remove the file"});
    return davit_call_exit(call);
}

/* Files that were named once, or lie where this call does not search. */
static void clear_elsewhere(DavitCall *call, DavitRegistry *registry, json_t *files)
{
    json_t *others = davit_registry_forget_failures(registry);
    for (size_t i = 0; i < json_array_size(others); i++) {
        json_t *one = json_array_get(others, i);
        const char *path = json_string_value(json_object_get(one, "path"));
        if (!call->json)
            printf("%-14s  %s\n", json_string_value(json_object_get(one, "outcome")),
                   davit_shown(path));
        json_object_set_new(one, "bundle", davit_json_text(path));
        json_array_append(files, one);
    }
    json_decref(others);
}

static int clear_quarantine(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_show_registry(call, NULL);
    json_t *files = json_array();
    json_object_set_new(call->doc, "files", files);
    if (!registry)
        return davit_call_exit(call);
    const GPtrArray *all = davit_registry_files(registry);
    for (guint i = 0; i < all->len; i++) {
        DavitPluginFile *f = g_ptr_array_index(all, i);
        if (f->state != DAVIT_STATE_QUARANTINED)
            continue;
        json_array_append_new(files, looked_at(call, f));
        davit_registry_forget(registry, f);
    }
    clear_elsewhere(call, registry, files);
    if (!davit_registry_save(registry))
        return not_forgotten(call, davit_registry_cache_path(registry));
    if (!call->json)
        printf("%zu files leave quarantine\n", json_array_size(files));
    return DAVIT_EXIT_OK;
}

/* ---- the disabled list ---- */

static guint count_matches(const DavitRegistry *registry, const char *glob)
{
    const GPtrArray *all = davit_registry_components(registry);
    guint n = 0;
    for (guint i = 0; i < all->len; i++) {
        const DavitComponent *c = g_ptr_array_index(all, i);
        n += g_pattern_match_simple(glob, c->id) ||
             (c->file->bundle_id && g_pattern_match_simple(glob, c->file->bundle_id));
    }
    return n;
}

static int set_disabled(DavitCall *call, bool disabled)
{
    const char *id = call->args[0];
    g_autoptr(DavitRegistry) registry = davit_show_registry(call, NULL);
    if (!registry)
        return davit_call_exit(call);
    const guint n = count_matches(registry, id);
    if (davit_show_is_path(id))
        return davit_call_usage(call, id, "an id is wanted, not a file",
                                "davit plugin list shows the ids");
    if (n == 0 && (disabled || !davit_registry_is_disabled(registry, id)))
        return davit_call_usage(call, id, "no component or bundle has this id",
                                "davit plugin list shows the ids");
    if (davit_registry_disable(registry, id, disabled, call->report))
        return davit_call_exit(call);
    json_object_set_new(call->doc, "id", davit_json_text(id));
    json_object_set_new(call->doc, "disabled", json_boolean(disabled));
    json_object_set_new(call->doc, "components", json_integer(n));
    if (!call->json)
        printf("%s is %s: %u components; written to %s\n", davit_shown(id),
               disabled ? "disabled" : "enabled", n,
               davit_shown(davit_registry_config_path(registry)));
    return DAVIT_EXIT_OK;
}

static int disable(DavitCall *call)
{
    return set_disabled(call, true);
}

static int enable(DavitCall *call)
{
    return set_disabled(call, false);
}

const DavitCommand davit_command_plugin_retry = {
    .name = "plugin retry",
    .args = "ID|FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "run the probe helper on a plugin again, and remember what it finds",
    .examples = retry_examples,
    .run = retry,
};

const DavitCommand davit_command_plugin_rescan = {
    .name = "plugin rescan",
    .summary = "run the probe helper on every plugin, as an installation may do once",
    .flags = rescan_flags,
    .examples = rescan_examples,
    .run = rescan,
};

const DavitCommand davit_command_plugin_clear = {
    .name = "plugin clear-quarantine",
    .summary = "forget which plugins crashed, so that they are tried again",
    .examples = clear_examples,
    .run = clear_quarantine,
};

const DavitCommand davit_command_plugin_disable = {
    .name = "plugin disable",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .summary = "leave a component or bundle unused from now on",
    .description = "The id, or a glob of ids, goes to the list of plugins.json in "
                   "$XDG_CONFIG_HOME/davit.",
    .examples = disable_examples,
    .run = disable,
};

const DavitCommand davit_command_plugin_enable = {
    .name = "plugin enable",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .summary = "use a component or bundle again that was disabled",
    .examples = enable_examples,
    .run = enable,
};
