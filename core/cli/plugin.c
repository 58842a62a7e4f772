/* SPDX-License-Identifier: Apache-2.0
 * davit plugin list. It reads manifests; no plugin code runs without --probe. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/plugin_show.h"

static const DavitFlag flags[] = {
    {"all", 'a', DAVIT_FLAG_SWITCH, NULL,
     "show disabled components and files that are not plugins, too", NULL, NULL, false},
    {"strict", 0, DAVIT_FLAG_SWITCH, NULL,
     "exit 3 when anything is refused, in quarantine or in conflict", NULL, NULL, false},
    {"probe", 0, DAVIT_FLAG_SWITCH, NULL,
     "run the probe helper on files that were not looked at yet", NULL, NULL, false},
    {"allow-draft", 0, DAVIT_FLAG_SWITCH, NULL, "take components of draft kinds", NULL, NULL,
     false},
    {0},
};
static const char *const examples[] = {"davit plugin list", "every component and its state",
                                       "davit plugin list --plugin-path ./build --json",
                                       "with a directory of your own, as JSON", NULL};

/* "imcr", a dash for a purpose that is not served. */
static void purposes_text(const DavitComponent *c, char out[DAVIT_N_PURPOSES + 1])
{
    for (size_t i = 0; i < DAVIT_N_PURPOSES; i++) {
        bool served;
        davit_show_not_served(c, i, &served);
        out[i] = served ? davit_purpose_names[i][0] : '-';
    }
    out[DAVIT_N_PURPOSES] = '\0';
}

static void print_row(const DavitComponent *c)
{
    char purposes[DAVIT_N_PURPOSES + 1];
    g_autofree char *abi = g_strdup_printf("%u.%u", c->kind_major, c->kind_minor);
    g_autofree char *note = davit_show_note(davit_show_reason(c), 200);
    purposes_text(c, purposes);
    printf("%-11s  %-9s  %-36s  %-8s  %-4s  %-4s  %3d  %-7s  %s%s%s\n", davit_state_name(c->state),
           davit_shown(c->kind_name), davit_shown(c->id),
           c->version ? davit_shown(c->version) : "-", abi, purposes, (int)c->priority,
           c->file->tier, note, c->conflict && *note ? "; " : "",
           c->conflict ? c->conflict : "");
}

/* Refused files have no rows of their own when no manifest could be read. */
static void print_files(const DavitCall *call, const GPtrArray *files)
{
    guint strangers = 0;
    for (guint i = 0; i < files->len; i++) {
        const DavitPluginFile *f = g_ptr_array_index(files, i);
        strangers += !f->is_plugin;
        if (!f->is_plugin && davit_call_has(call, "all"))
            printf("not a plugin: %s\n", davit_shown(f->path));
        for (size_t r = 0; f->is_plugin && r < davit_report_count(f->records); r++) {
            const DavitRecord *record = davit_report_get(f->records, r);
            g_autofree char *text = davit_record_sentence(record);
            printf("%s  %s: R%u %s: %s\n", davit_state_name(f->state), davit_shown(f->path),
                   record->code, davit_code_name(record->code), text);
        }
    }
    if (strangers && !davit_call_has(call, "all"))
        printf("%u files are not plugins (--all shows them)\n", strangers);
}

static void print_counts(const GPtrArray *components, const GPtrArray *files,
                         const GPtrArray *dirs)
{
    guint n[DAVIT_STATE_QUARANTINED + 1] = {0};
    for (guint i = 0; i < components->len; i++)
        n[((const DavitComponent *)g_ptr_array_index(components, i))->state]++;
    printf("%u components in %u files", components->len, files->len);
    const char *before = ": ";
    for (size_t s = 0; s < G_N_ELEMENTS(n); s++)
        if (n[s]) {
            printf("%s%u %s", before, n[s], davit_state_name((DavitState)s));
            before = ", ";
        }
    printf("; searched %u directories\n", dirs->len);
    for (guint i = 0; components->len == 0 && i < dirs->len; i++)
        printf("no plugins in %s\n", davit_shown(g_ptr_array_index(dirs, i)));
}

static void print_list(const DavitCall *call, const DavitRegistry *registry)
{
    const GPtrArray *components = davit_registry_components(registry);
    guint hidden = 0;
    if (components->len)
        printf("%-11s  %-9s  %-36s  %-8s  %-4s  %-4s  %3s  %-7s  %s\n", "STATE", "KIND", "ID",
               "VERSION", "ABI", "FOR", "PRI", "FROM", "NOTE");
    for (guint i = 0; i < components->len; i++) {
        const DavitComponent *c = g_ptr_array_index(components, i);
        if (c->state == DAVIT_STATE_DISABLED && !davit_call_has(call, "all"))
            hidden++;
        else
            print_row(c);
    }
    print_files(call, davit_registry_files(registry));
    print_counts(components, davit_registry_files(registry), davit_registry_dirs(registry));
    if (hidden)
        printf("%u disabled components are hidden (--all shows them)\n", hidden);
    if (components->len)
        printf("FOR: inspect, map, convert, run; a dash is not served, --json says why\n");
}

/* Look at files that nobody has looked at; what it finds is in the next registry. */
static void probe_new(DavitRegistry *registry)
{
    const GPtrArray *files = davit_registry_files(registry);
    for (guint i = 0; i < files->len; i++) {
        DavitPluginFile *f = g_ptr_array_index(files, i);
        g_autoptr(DavitReport) said = davit_report_new();
        if (f->state == DAVIT_STATE_OK && !f->probe)
            davit_registry_retry(registry, f, said);
    }
}

static bool is_breach(const DavitComponent *c)
{
    return c->state == DAVIT_STATE_REFUSED || c->state == DAVIT_STATE_QUARANTINED || c->conflict;
}

static int list(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_show_registry(call, NULL);
    if (registry && davit_call_has(call, "probe")) {
        probe_new(registry);
        g_clear_pointer(&registry, davit_registry_free);
        registry = davit_show_registry(call, NULL);
    }
    if (!registry)
        return davit_call_exit(call);
    const GPtrArray *components = davit_registry_components(registry);
    const GPtrArray *files = davit_registry_files(registry);
    json_t *components_json = json_array(), *files_json = json_array();
    guint breaches = 0;
    for (guint i = 0; i < components->len; i++) {
        const DavitComponent *c = g_ptr_array_index(components, i);
        breaches += is_breach(c);
        if (call->json)
            json_array_append_new(components_json, davit_show_component(c));
    }
    for (guint i = 0; i < files->len; i++) {
        const DavitPluginFile *f = g_ptr_array_index(files, i);
        breaches += f->is_plugin && f->state == DAVIT_STATE_REFUSED;
        if (call->json && (f->is_plugin || davit_call_has(call, "all")))
            json_array_append_new(files_json, davit_show_file(f, false));
    }
    json_object_set_new(call->doc, "components", components_json);
    json_object_set_new(call->doc, "files", files_json);
    json_object_set_new(call->doc, "searched", davit_show_strings(davit_registry_dirs(registry)));
    if (!call->json)
        print_list(call, registry);
    return davit_call_has(call, "strict") && breaches ? DAVIT_EXIT_REFUSED : DAVIT_EXIT_OK;
}

const DavitCommand davit_command_plugin_list = {
    .name = "plugin list",
    .summary = "list every plugin component, its state and why it is not used",
    .description = "Reads manifests and what the probe helper remembers; no plugin code runs without "
                   "--probe.\nStates: ok; partial (refuses some purposes); refuses (of itself); refused "
                   "(by davit: the code says why);\nshadowed; disabled; quarantined (crashed or hung).",
    .flags = flags,
    .examples = examples,
    .run = list,
};
