/* SPDX-License-Identifier: Apache-2.0
 * davit plugin inspect: one file and its components in full. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/plugin_show.h"

static const DavitFlag flags[] = {
    {"probe", 0, DAVIT_FLAG_SWITCH, NULL,
     "run the plugin: first in the probe helper, then here, to show its ops and needs", NULL,
     NULL, false},
    {"strict", 0, DAVIT_FLAG_SWITCH, NULL, "exit 3 when it is refused or in quarantine", NULL,
     NULL, false},
    {"allow-draft", 0, DAVIT_FLAG_SWITCH, NULL, "take components of draft kinds", NULL, NULL,
     false},
    {0},
};
static const char *const examples[] = {
    "davit plugin inspect org.davit.kernels.cpu --probe", "one component in full, with its ops",
    "davit plugin inspect ./my-plugin.so", "a file, and why it is not used", NULL};

/* ---- what only running code tells ---- */

static json_t *ops_of(const davit_kernels_iface *kernels)
{
    json_t *list = json_array();
    for (size_t e = 0; kernels->entries[e]; e++) {
        const davit_kernel_entry *entry = kernels->entries[e];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "op", entry->op, "entry",
                                              entry->name, "layouts",
                                              entry->layouts ? entry->layouts : "", "score",
                                              (json_int_t)entry->score));
    }
    return list;
}

/* Use @c through the ordinary door and add what its table says to @json. */
static void add_running(DavitComponent *c, json_t *json, DavitReport *said)
{
    const void *iface;
    void *self;
    if (davit_component_use(c, &iface, &self, said))
        return;
    const char *needs = davit_component_needs(c);
    json_object_set_new(json, "needs", needs ? davit_json_text(needs) : json_null());
    if (c->kind == DAVIT_KIND_ID_KERNELS)
        json_object_set_new(json, "ops", ops_of(iface));
}

/* ---- text ---- */

static void print_words(const char *title, const json_t *list)
{
    size_t i;
    json_t *word;
    printf("%-12s", title);
    json_array_foreach(list, i, word) printf(" %s", davit_shown(json_string_value(word)));
    printf("%s\n", json_array_size(list) ? "" : " none");
}

static void print_purposes(const DavitComponent *c)
{
    printf("purposes    ");
    for (size_t i = 0; i < DAVIT_N_PURPOSES; i++) {
        bool served;
        const DavitRecord *r = davit_show_not_served(c, i, &served);
        printf(" %s %s%s", davit_purpose_names[i],
               served ? "ok" : r ? davit_code_name(r->code) : "not claimed",
               i + 1 < DAVIT_N_PURPOSES ? "," : "\n");
    }
}

static void print_ops(const json_t *json)
{
    size_t i;
    json_t *op;
    const json_t *needs = json_object_get(json, "needs");
    if (needs)
        printf("needs        %s\n",
               json_is_string(needs) ? davit_shown(json_string_value(needs)) : "nothing");
    json_array_foreach(json_object_get(json, "ops"), i, op)
        printf("op           %-22s %-28s score %3d  %s\n",
               json_string_value(json_object_get(op, "op")),
               json_string_value(json_object_get(op, "entry")),
               (int)json_integer_value(json_object_get(op, "score")),
               json_string_value(json_object_get(op, "layouts")));
}

static void print_component(const DavitComponent *c, const json_t *json)
{
    printf("component    %s  (%s)   state: %s\n", davit_shown(c->id), davit_shown(c->kind_name),
           davit_state_name(c->state));
    printf("kind abi     %s %u.%u, priority %d", davit_shown(c->kind_name), c->kind_major,
           c->kind_minor, (int)c->priority);
    if (c->user_rank)
        printf(", your rank %d", (int)c->user_rank);
    printf("\nclaims       %s\n", c->capability ? davit_shown(c->capability) : "-");
    print_purposes(c);
    if (c->conflict)
        printf("conflict     %s\n", c->conflict);
    print_ops(json);
    davit_show_print(c->records);
}

static void print_probe(const json_t *probe)
{
    const char *output = json_string_value(json_object_get(probe, "output"));
    g_autoptr(GDateTime) at = probe ? g_date_time_new_from_unix_local(
                                          json_integer_value(json_object_get(probe, "time")))
                                    : NULL;
    g_autofree char *when = at ? g_date_time_format(at, "%Y-%m-%d %H:%M") : NULL;
    if (!probe) {
        printf("probe        not looked at yet: no code of it has run (--probe)\n");
        return;
    }
    printf("probe        %s, %s, last step %s, %.1f ms", when ? when : "?",
           json_string_value(json_object_get(probe, "outcome")),
           json_string_value(json_object_get(probe, "stage")),
           json_real_value(json_object_get(probe, "ms")));
    const char *name;
    json_t *ms;
    json_object_foreach(json_object_get(probe, "steps"), name, ms)
        printf(", %s %.1f", name, json_number_value(ms));
    printf("\nprinted      %s\n", output && *output ? output : "nothing");
}

static void print_file(const DavitPluginFile *f, const json_t *json)
{
    const char *name;
    json_t *result;
    printf("file         %s  (%s)   state: %s\n", davit_shown(f->path), f->tier,
           davit_state_name(f->state));
    if (f->bundle_id)
        printf("bundle       %s %s, %s, %s\n"
               "abi          built %u.%u, needs host minor >= %u, host is %d.%d\n"
               "build        %s\n",
               davit_shown(f->bundle_id), f->version ? davit_shown(f->version) : "-",
               f->vendor ? davit_shown(f->vendor) : "-",
               f->license ? davit_shown(f->license) : "-", f->abi_major, f->abi_minor,
               f->min_host_minor, DAVIT_ABI_MAJOR, DAVIT_ABI_MINOR,
               f->build_tag ? davit_shown(f->build_tag) : "-");
    printf("build id     %s\n", f->build_id ? f->build_id : "none");
    printf("manifest     %s%s%s\n", !f->bundle_id ? "none" : f->has_notes ? "in the file" : "beside the file",
           f->sidecar ? ", " : "", f->sidecar ? davit_shown(f->sidecar) : "");
    print_words("exports", json_object_get(json, "exports"));
    if (f->n_exports > 1)
        printf("             %zu symbols are exported, the entry alone should be: others may "
               "take their place\n",
               f->n_exports);
    print_words("libraries", json_object_get(json, "needed"));
    if (f->aliases->len)
        print_words("also as", json_object_get(json, "aliases"));
    printf("gates       ");
    json_object_foreach(json_object_get(json, "gates"), name, result)
        printf(" %s: %s;", name, json_string_value(result));
    printf("\n");
    print_probe(f->probe);
    davit_show_print(f->records);
}

/* ---- the command ---- */

/* Every component of @f; those of @word's id in other files too, so that shadowing shows. */
static json_t *show_components(DavitCall *call, DavitRegistry *registry, const DavitPluginFile *f,
                               const char *word)
{
    const GPtrArray *components = davit_registry_components(registry);
    json_t *list = json_array();
    for (guint i = 0; i < components->len; i++) {
        DavitComponent *c = g_ptr_array_index(components, i);
        g_autoptr(DavitReport) said = davit_report_new();
        if (c->file != f && strcmp(c->id, word) != 0)
            continue;
        json_t *extra = json_object();
        if (davit_call_has(call, "probe") && c->file == f)
            add_running(c, extra, said);
        json_t *json = davit_show_component(c); /* after it ran: its state may have changed */
        json_object_update(json, extra);
        json_decref(extra);
        json_array_append_new(list, json);
        if (!call->json)
            print_component(c, json);
        if (!call->json && c->file != f)
            printf("file         %s  (%s)\n", davit_shown(c->file->path), c->file->tier);
    }
    return list;
}

static int inspect(DavitCall *call)
{
    const char *word = call->args[0];
    g_autoptr(DavitRegistry) registry =
        davit_show_registry(call, davit_show_is_path(word) ? word : NULL);
    if (!registry)
        return davit_call_exit(call);
    DavitPluginFile *f = davit_show_find(registry, word);
    json_t *files = json_array();
    json_object_set_new(call->doc, "files", files);
    if (!f) {
        json_object_set_new(call->doc, "components", json_array());
        return davit_show_unknown(call, word);
    }
    json_object_set_new(call->doc, "components", show_components(call, registry, f, word));
    json_t *json = davit_show_file(f, true);
    json_array_append_new(files, json);
    if (!call->json)
        print_file(f, json);
    const bool bad = f->state == DAVIT_STATE_REFUSED || f->state == DAVIT_STATE_QUARANTINED;
    return davit_call_has(call, "strict") && bad ? DAVIT_EXIT_REFUSED : DAVIT_EXIT_OK;
}

const DavitCommand davit_command_plugin_inspect = {
    .name = "plugin inspect",
    .args = "ID|FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "show one plugin in full",
    .description = "Manifest, ABI numbers, build facts, exported symbols, gates passed and the "
                   "result of the probe helper. No code of the plugin runs without --probe.",
    .flags = flags,
    .examples = examples,
    .run = inspect,
};
