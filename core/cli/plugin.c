/* SPDX-License-Identifier: Apache-2.0
 * davit plugin list and inspect. Listing reads manifests; no plugin code runs. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

static const DavitFlag list_flags[] = {
    {"all", 'a', DAVIT_FLAG_SWITCH, NULL, "show files that are not plugins, too", NULL, NULL,
     false},
    {"strict", 0, DAVIT_FLAG_SWITCH, NULL, "exit 3 when any component is refused", NULL, NULL,
     false},
    {0},
};
static const char *const list_examples[] = {"davit plugin list", "every component and its state",
                                            "davit plugin list --plugin-path ./build --json",
                                            "with a directory of your own, as JSON", NULL};
static const char *const inspect_examples[] = {
    "davit plugin inspect org.davit.kernels.cpu", "one component in full",
    "davit plugin inspect ./my-plugin.so", "a file, and why it is not used", NULL};

static json_t *purposes_json(uint64_t purposes)
{
    static const char *const names[] = {"inspect", "map", "convert", "run"};
    json_t *list = json_array();
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (purposes & (1u << i))
            json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *records_json(const DavitReport *report)
{
    json_t *list = json_array();
    for (size_t i = 0; report && i < davit_report_count(report); i++)
        json_array_append_new(list, davit_record_json(davit_report_get(report, i)));
    return list;
}

static json_t *strings_json(const GPtrArray *strings)
{
    json_t *list = json_array();
    for (guint i = 0; strings && i < strings->len; i++)
        json_array_append_new(list, davit_json_text(g_ptr_array_index(strings, i)));
    return list;
}

static json_t *component_json(const DavitComponent *c)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:i, s:s, s:o}", "id",
                     davit_json_text(c->id), "kind", davit_json_text(c->kind_name), "version",
                     davit_json_text(c->version ? c->version : ""), "file",
                     davit_json_text(c->file->path), "state", davit_state_name(c->state),
                     "purposes", purposes_json(c->purposes), "capability",
                     davit_json_text(c->capability ? c->capability : ""), "priority",
                     (int)c->priority, "from", c->file->tier, "records",
                     records_json(c->records));
}

static json_t *file_json(const DavitPluginFile *f)
{
    return json_pack("{s:o, s:s, s:b, s:s, s:o}", "path", davit_json_text(f->path), "state",
                     davit_state_name(f->state), "is_plugin", (int)f->is_plugin, "from", f->tier,
                     "records", records_json(f->records));
}

/* ---- list ---- */

/* Why the component is not used, or its first remark; a file's own refusal stands for all its
 * components. */
static const char *first_note(const DavitComponent *c)
{
    if (c->records && davit_report_count(c->records))
        return davit_report_get(c->records, 0)->message;
    if (c->state == DAVIT_STATE_REFUSED && davit_report_count(c->file->records))
        return davit_report_get(c->file->records, 0)->message;
    return "";
}

static void print_row(const DavitComponent *c)
{
    g_autofree char *abi = g_strdup_printf("%u.%u", c->kind_major, c->kind_minor);
    printf("%-9s  %-9s  %-34s  %-8s  %-4s  %3d  %-8s  %s\n", davit_state_name(c->state),
           c->kind_name, c->id, c->version ? c->version : "-", abi, (int)c->priority,
           c->file->tier, first_note(c));
}

static void print_files(DavitCall *call, const GPtrArray *files)
{
    guint strangers = 0;
    for (guint i = 0; i < files->len; i++) {
        const DavitPluginFile *f = g_ptr_array_index(files, i);
        strangers += !f->is_plugin;
        if (!f->is_plugin && !davit_call_has(call, "all"))
            continue;
        if (!f->is_plugin)
            printf("not a plugin: %s\n", davit_shown(f->path));
        for (size_t r = 0; f->is_plugin && r < davit_report_count(f->records); r++) {
            g_autofree char *text = davit_record_sentence(davit_report_get(f->records, r));
            printf("%s  %s: %s\n", davit_state_name(f->state), davit_shown(f->path), text);
        }
    }
    if (strangers && !davit_call_has(call, "all"))
        printf("%u files are not plugins (--all shows them)\n", strangers);
}

static int list(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    const GPtrArray *components = davit_registry_components(registry);
    const GPtrArray *files = davit_registry_files(registry);
    const GPtrArray *dirs = davit_registry_dirs(registry);
    json_t *components_json = json_array(), *files_json = json_array();
    guint refused = 0;
    for (guint i = 0; i < components->len; i++) {
        const DavitComponent *c = g_ptr_array_index(components, i);
        refused += c->state == DAVIT_STATE_REFUSED;
        json_array_append_new(components_json, component_json(c));
    }
    for (guint i = 0; i < files->len; i++) {
        const DavitPluginFile *f = g_ptr_array_index(files, i);
        refused += f->state == DAVIT_STATE_REFUSED;
        if (f->is_plugin || davit_call_has(call, "all"))
            json_array_append_new(files_json, file_json(f));
    }
    json_object_set_new(call->doc, "components", components_json);
    json_object_set_new(call->doc, "files", files_json);
    json_object_set_new(call->doc, "searched", strings_json(dirs));
    if (!call->json) {
        if (components->len)
            printf("%-9s  %-9s  %-34s  %-8s  %-4s  %3s  %-8s  %s\n", "STATE", "KIND", "ID",
                   "VERSION", "ABI", "PRI", "FROM", "NOTE");
        for (guint i = 0; i < components->len; i++)
            print_row(g_ptr_array_index(components, i));
        print_files(call, files);
        printf("%u components in %u files; searched %u directories\n", components->len,
               files->len, dirs->len);
        for (guint i = 0; components->len == 0 && i < dirs->len; i++)
            printf("no plugins in %s\n", davit_shown(g_ptr_array_index(dirs, i)));
    }
    return davit_call_has(call, "strict") && refused ? DAVIT_EXIT_REFUSED : DAVIT_EXIT_OK;
}

/* ---- inspect ---- */

static void print_records(const DavitReport *report)
{
    for (size_t i = 0; report && i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);
        printf("%s   stage: %s   said by: %s\n", davit_code_name(r->code),
               r->stage ? r->stage : "-", r->who ? r->who : "core");
        const char *const rows[][2] = {{"subject", r->subject},   {"expected", r->expected},
                                       {"found", r->found},       {"message", r->message},
                                       {"hint", r->hint}};
        for (size_t k = 0; k < G_N_ELEMENTS(rows); k++)
            if (rows[k][1])
                printf("  %-10s %s\n", rows[k][0], rows[k][1]);
    }
}

static void print_file(const DavitPluginFile *f)
{
    printf("file         %s  (%s)\n", davit_shown(f->path), f->tier);
    if (f->bundle_id)
        printf("bundle       %s %s, %s, %s\n"
               "abi          built %u.%u, needs host minor >= %u, host is %d.%d\n"
               "build        %s\n",
               f->bundle_id, f->version ? f->version : "-", f->vendor ? f->vendor : "-",
               f->license ? f->license : "-", f->abi_major, f->abi_minor, f->min_host_minor,
               DAVIT_ABI_MAJOR, DAVIT_ABI_MINOR, f->build_tag ? f->build_tag : "-");
    printf("exports     ");
    for (guint i = 0; f->exports && i < f->exports->len; i++)
        printf(" %s", (const char *)g_ptr_array_index(f->exports, i));
    printf("\nneeds       ");
    for (guint i = 0; f->needed && i < f->needed->len; i++)
        printf(" %s", (const char *)g_ptr_array_index(f->needed, i));
    printf("\n");
    print_records(f->records);
}

static void print_component(const DavitComponent *c)
{
    json_t *purposes = purposes_json(c->purposes);
    printf("component    %s  (%s)   state: %s\n"
           "kind abi     %s %u.%u, priority %d\n"
           "claims       %s\npurposes    ",
           c->id, c->kind_name, davit_state_name(c->state), c->kind_name, c->kind_major,
           c->kind_minor, (int)c->priority, c->capability ? c->capability : "-");
    size_t at;
    json_t *name;
    json_array_foreach(purposes, at, name) printf(" %s", json_string_value(name));
    json_decref(purposes);
    printf("\n");
    print_records(c->records);
}

/* Does @f answer to the word on the command line: its path, or its bundle's id? */
static bool file_is(const DavitPluginFile *f, const char *word)
{
    g_autofree char *absolute = g_canonicalize_filename(word, NULL);
    return strcmp(f->path, absolute) == 0 || g_strcmp0(f->bundle_id, word) == 0;
}

static int inspect(DavitCall *call)
{
    const char *word = call->args[0];
    const bool is_file = strchr(word, '/') || g_str_has_suffix(word, ".so");
    g_autofree const char **paths = davit_call_list(call, "plugin-path");
    const char *one[] = {word, NULL};
    g_autofree const char **trusted = davit_call_list(call, "trust-dir");
    const DavitRegistryOptions where = {.plugin_paths = is_file ? one : paths,
                                        .trust_dirs = trusted,
                                        .only_paths = is_file};
    g_autoptr(DavitRegistry) registry = davit_registry_open(&where, call->report);
    if (davit_report_failed(call->report))
        return davit_call_exit(call);
    const GPtrArray *components = davit_registry_components(registry);
    const GPtrArray *files = davit_registry_files(registry);
    json_t *components_json = json_array(), *files_json = json_array();
    for (guint i = 0; i < files->len; i++) {
        const DavitPluginFile *f = g_ptr_array_index(files, i);
        bool hit = is_file || file_is(f, word);
        for (guint k = 0; k < components->len; k++) {
            DavitComponent *c = g_ptr_array_index(components, k);
            if (c->file != f || !(hit || strcmp(c->id, word) == 0))
                continue;
            hit = true;
            json_array_append_new(components_json, component_json(c));
            if (!call->json)
                print_component(c);
        }
        if (!hit)
            continue;
        json_t *file = file_json(f);
        json_object_set_new(file, "exports", strings_json(f->exports));
        json_object_set_new(file, "needed", strings_json(f->needed));
        json_object_set_new(file, "build", davit_json_text(f->build_tag ? f->build_tag : ""));
        json_array_append_new(files_json, file);
        if (!call->json)
            print_file(f);
    }
    const bool found = json_array_size(files_json) > 0;
    json_object_set_new(call->doc, "components", components_json);
    json_object_set_new(call->doc, "files", files_json);
    return found ? DAVIT_EXIT_OK
                 : davit_call_usage(call, word, "there is no such component or plugin file",
                                    "davit plugin list shows the ids");
}

const DavitCommand davit_command_plugin_list = {
    .name = "plugin list",
    .summary = "list every plugin component, its state and why it is not used",
    .flags = list_flags,
    .examples = list_examples,
    .run = list,
};

const DavitCommand davit_command_plugin_inspect = {
    .name = "plugin inspect",
    .args = "ID|FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "show one plugin in full",
    .examples = inspect_examples,
    .run = inspect,
};
