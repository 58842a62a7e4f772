/* SPDX-License-Identifier: Apache-2.0
 * Components and files of plugins, for people and as JSON. */
#include "cli/plugin_show.h"
#include "plugin/cache.h"

#include <stdio.h>
#include <string.h>

const char *const davit_purpose_names[DAVIT_N_PURPOSES] = {"inspect", "map", "convert", "run"};

json_t *davit_show_purposes(uint64_t purposes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < DAVIT_N_PURPOSES; i++)
        if (purposes & (1u << i))
            json_array_append_new(list, json_string(davit_purpose_names[i]));
    return list;
}

json_t *davit_show_records(const DavitReport *report)
{
    json_t *list = json_array();
    for (size_t i = 0; report && i < davit_report_count(report); i++)
        json_array_append_new(list, davit_record_json(davit_report_get(report, i)));
    return list;
}

json_t *davit_show_strings(const GPtrArray *strings)
{
    json_t *list = json_array();
    for (guint i = 0; strings && i < strings->len; i++)
        json_array_append_new(list, davit_json_text(g_ptr_array_index(strings, i)));
    return list;
}

/* ---- reasons ---- */

static const DavitRecord *reason_in(const DavitReport *report, uint64_t purpose)
{
    const DavitRecord *error = davit_report_first_error(report, purpose);
    if (error)
        return error;
    return davit_report_count(report) ? davit_report_get(report, 0) : NULL;
}

const DavitRecord *davit_show_reason(const DavitComponent *c)
{
    const DavitRecord *r = reason_in(c->records, 0);
    if (c->state == DAVIT_STATE_OK && r && r->severity == DAVIT_NOTE)
        return NULL;
    /* a file's own refusal stands for all its components */
    if (!r || (c->state != DAVIT_STATE_OK && davit_report_failed(c->file->records)))
        r = reason_in(c->file->records, 0);
    return r;
}

const DavitRecord *davit_show_not_served(const DavitComponent *c, size_t index, bool *out_served)
{
    const uint64_t bit = 1u << index;
    const bool usable = c->state == DAVIT_STATE_OK || c->state == DAVIT_STATE_PARTIAL ||
                        c->state == DAVIT_STATE_REFUSES;
    *out_served = usable && (c->purposes & bit);
    if (*out_served)
        return NULL;
    if (!usable)
        return davit_show_reason(c);
    return davit_report_first_error(c->records, bit);
}

char *davit_show_note(const DavitRecord *r, size_t max)
{
    if (!r)
        return g_strdup("");
    g_autofree char *text =
        r->found && r->expected
            ? g_strdup_printf("R%u %s: need %s, found %s", r->code, davit_code_name(r->code),
                              r->expected, r->found)
        : r->found ? g_strdup_printf("R%u %s: %s", r->code, davit_code_name(r->code), r->found)
                   : g_strdup_printf("R%u %s: %s", r->code, davit_code_name(r->code), r->message);
    return davit_escape(text, strlen(text), max);
}

static json_t *not_served(const DavitComponent *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < DAVIT_N_PURPOSES; i++) {
        bool served;
        const DavitRecord *r = davit_show_not_served(c, i, &served);
        if (served)
            continue;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s}", "purpose", davit_purpose_names[i], "code",
                            r ? davit_code_name(r->code) : "not-claimed", "reason",
                            r ? r->message : "the component does not claim this purpose"));
    }
    return list;
}

/* ---- JSON ---- */

json_t *davit_show_component(const DavitComponent *c)
{
    g_autofree char *kind_abi = g_strdup_printf("%u.%u", c->kind_major, c->kind_minor);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:i, s:i, s:s, s:s, s:o}", "id",
        davit_json_text(c->id), "kind", davit_json_text(c->kind_name), "version",
        davit_json_text(c->version ? c->version : ""), "file", davit_json_text(c->file->path),
        "state", davit_state_name(c->state), "purposes", davit_show_purposes(c->purposes),
        "not_served", not_served(c), "capability",
        davit_json_text(c->capability ? c->capability : ""), "priority", (int)c->priority,
        "user_rank", (int)c->user_rank, "kind_abi", kind_abi, "from", c->file->tier, "records",
        davit_show_records(c->records));
    json_object_set_new(json, "conflict", c->conflict ? json_string(c->conflict) : json_null());
    return json;
}

/* ---- gates ---- */

static const char *const gate_names[] = {"path", "elf", "manifest", "policy", "helper", "load"};

/* The gate that speaks with record @r. */
static size_t gate_of(const DavitRecord *r)
{
    if (r->code <= DAVIT_R_WRONG_OWNER || (r->code == DAVIT_R_IO_FAILED))
        return 0;
    if (r->code <= DAVIT_R_TEXT_RELOCATIONS)
        return 1;
    if (g_strcmp0(r->stage, "manifest") == 0)
        return 2;
    if (g_strcmp0(r->stage, "policy") == 0)
        return 3;
    return g_strcmp0(r->stage, "probe-helper") == 0 ? 4 : 5;
}

static const char *gate_result(const DavitPluginFile *f, size_t gate)
{
    const DavitRecord *error = davit_report_first_error(f->records, 0);
    const char *outcome = json_string_value(json_object_get(f->probe, "outcome"));
    const size_t stopped = error ? gate_of(error) : G_N_ELEMENTS(gate_names);
    if (gate == stopped)
        return "refused";
    if (gate > stopped)
        return "not reached";
    if (gate < 4)
        return "passed";
    if (!outcome)
        return "not yet needed"; /* no code of it has run */
    return strcmp(outcome, "ok") == 0 ? "passed" : gate == 4 ? outcome : "not reached";
}

static json_t *gates(const DavitPluginFile *f)
{
    json_t *json = json_object();
    for (size_t i = 0; i < G_N_ELEMENTS(gate_names); i++)
        json_object_set_new(json, gate_names[i], json_string(gate_result(f, i)));
    return json;
}

static void add_text(json_t *json, const char *key, const char *text)
{
    json_object_set_new(json, key, text ? davit_json_text(text) : json_null());
}

static void add_full(json_t *json, const DavitPluginFile *f)
{
    add_text(json, "bundle", f->bundle_id);
    add_text(json, "version", f->version);
    add_text(json, "vendor", f->vendor);
    add_text(json, "license", f->license);
    add_text(json, "build", f->build_tag);
    add_text(json, "build_id", f->build_id);
    add_text(json, "runpath", f->runpath);
    add_text(json, "sidecar", f->sidecar);
    json_object_set_new(json, "abi",
                        json_pack("{s:I, s:I, s:I, s:i, s:i}", "built_major",
                                  (json_int_t)f->abi_major, "built_minor",
                                  (json_int_t)f->abi_minor, "min_host_minor",
                                  (json_int_t)f->min_host_minor, "host_major", DAVIT_ABI_MAJOR,
                                  "host_minor", DAVIT_ABI_MINOR));
    json_object_set_new(json, "exports", davit_show_strings(f->exports));
    json_object_set_new(json, "n_exports", json_integer((json_int_t)f->n_exports));
    json_object_set_new(json, "needed", davit_show_strings(f->needed));
    json_object_set_new(json, "aliases", davit_show_strings(f->aliases));
    json_object_set_new(json, "gates", gates(f));
    json_object_set(json, "probe", f->probe ? f->probe : json_null());
}

json_t *davit_show_file(const DavitPluginFile *f, bool full)
{
    json_t *json = json_pack("{s:o, s:s, s:b, s:s, s:o}", "path", davit_json_text(f->path), "state",
                             davit_state_name(f->state), "is_plugin", (int)f->is_plugin, "from",
                             f->tier, "records", davit_show_records(f->records));
    if (full)
        add_full(json, f);
    return json;
}

void davit_show_print(const DavitReport *report)
{
    for (size_t i = 0; report && i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);
        printf("R%u %s   stage: %s   said by: %s%s\n", r->code, davit_code_name(r->code),
               r->stage ? r->stage : "-", r->who ? r->who : "core",
               r->severity == DAVIT_ERROR ? "" : r->severity == DAVIT_WARNING ? "   (warning)"
                                                                              : "   (note)");
        const char *const rows[][2] = {{"subject", r->subject}, {"expected", r->expected},
                                       {"found", r->found},     {"message", r->message},
                                       {"hint", r->hint}};
        for (size_t k = 0; k < G_N_ELEMENTS(rows); k++)
            if (rows[k][1])
                printf("  %-10s %s\n", rows[k][0], rows[k][1]);
    }
}

/* ---- finding ---- */

int davit_show_unknown(DavitCall *call, const char *word)
{
    return davit_call_usage(call, word, "there is no such component or plugin file",
                            g_file_test(word, G_FILE_TEST_IS_DIR)
                                ? "this is a directory: name the .so file in it"
                                : "davit plugin list shows the ids");
}

bool davit_show_is_path(const char *word)
{
    return strchr(word, '/') || g_str_has_suffix(word, ".so");
}

DavitRegistry *davit_show_registry(DavitCall *call, const char *file)
{
    g_autofree const char **paths = davit_call_list(call, "plugin-path");
    g_autofree const char **trusted = davit_call_list(call, "trust-dir");
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(DavitReport) said = davit_report_new();
    g_autofree char *absolute = file ? g_canonicalize_filename(file, NULL) : NULL;
    for (size_t i = 0; paths && paths[i]; i++)
        g_ptr_array_add(all, (gpointer)(uintptr_t)paths[i]);
    if (file)
        g_ptr_array_add(all, absolute);
    g_ptr_array_add(all, NULL);
    const DavitRegistryOptions where = {.plugin_paths = (const char *const *)all->pdata,
                                        .trust_dirs = trusted,
                                        .cache_dir = davit_call_has(call, "system")
                                                         ? DAVIT_SYSTEM_CACHE
                                                         : NULL,
                                        .allow_draft = davit_call_has(call, "allow-draft")};
    DavitRegistry *registry = davit_registry_open(&where, said);
    /* what is wrong with the file itself is what the command shows */
    for (size_t i = 0; i < davit_report_count(said); i++) {
        const DavitRecord *r = davit_report_get(said, i);
        if (file && g_strcmp0(r->stage, "search") != 0)
            continue;
        davit_report_add(call->report, &(DavitFinding){.code = r->code,
                                                       .severity = r->severity,
                                                       .status = r->status,
                                                       .stage = r->stage,
                                                       .who = r->who,
                                                       .subject = r->subject,
                                                       .expected = r->expected,
                                                       .found = r->found,
                                                       .message = r->message,
                                                       .hint = r->hint});
    }
    if (davit_report_failed(call->report))
        g_clear_pointer(&registry, davit_registry_free);
    return registry;
}

static bool file_is(const DavitPluginFile *f, const char *word, const char *absolute)
{
    if (strcmp(f->path, absolute) == 0 || g_strcmp0(f->bundle_id, word) == 0)
        return true;
    for (guint i = 0; i < f->aliases->len; i++)
        if (strcmp(g_ptr_array_index(f->aliases, i), absolute) == 0)
            return true;
    return false;
}

DavitPluginFile *davit_show_find(const DavitRegistry *registry, const char *word)
{
    const GPtrArray *files = davit_registry_files(registry);
    const GPtrArray *components = davit_registry_components(registry);
    g_autofree char *absolute = g_canonicalize_filename(word, NULL);
    DavitPluginFile *shadowed = NULL;
    for (guint i = 0; i < files->len; i++) {
        DavitPluginFile *f = g_ptr_array_index(files, i);
        if (file_is(f, word, absolute))
            return f;
    }
    for (guint i = 0; i < components->len; i++) {
        const DavitComponent *c = g_ptr_array_index(components, i);
        if (strcmp(c->id, word) != 0)
            continue;
        if (c->state != DAVIT_STATE_SHADOWED)
            return c->file;
        shadowed = c->file;
    }
    return shadowed;
}
