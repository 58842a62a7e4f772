/* SPDX-License-Identifier: Apache-2.0
 * D04: shards that an index asks for and that are absent. Where other shards in the folder hold its
 * tensors the index is of another upload, and no download of the named files would mend that. */
#include <string.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

#define MAX_SHARDS 256u /* strangers that are opened */
#define MAX_LISTED 12u

static bool is_absent(const DavitRecord *r, const void *unused)
{
    (void)unused;
    return r->code == DAVIT_R_SHARD_MISSING;
}

/* (owned) weight_map of the folder's index; *out_name borrowed from the path. */
static json_t *read_map(const DavitPatient *p, const char **out_name)
{
    const GPtrArray *names = p->path.names;
    g_autoptr(DavitReport) aside = davit_report_new();

    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autoptr(GBytes) bytes = NULL;
        json_t *doc, *map;
        gsize n;

        if (!g_str_has_suffix(name, ".index.json") || !(bytes = davit_patient_read(p, name, aside)))
            continue;
        doc = json_loadb(g_bytes_get_data(bytes, &n), g_bytes_get_size(bytes), 0, NULL);
        map = json_incref(json_object_get(doc, "weight_map"));
        json_decref(doc);
        *out_name = name;
        if (json_is_object(map))
            return map;
        json_decref(map);
    }
    return NULL;
}

/* (owned) text of file names that the map asks for, as a set */
static GHashTable *files_of(json_t *map)
{
    GHashTable *set = g_hash_table_new(g_str_hash, g_str_equal);
    const char *key;
    json_t *value;

    json_object_foreach(map, key, value)
    {
        if (json_is_string(value))
            g_hash_table_add(set, (void *)(uintptr_t)json_string_value(value));
    }
    return set;
}

/* What shards that the index does not name hold. */
typedef struct Strangers {
    size_t n_files, n_held; /* of the index's tensors */
    GString *names;
} Strangers;

static void look_into(const DavitPatient *p, const char *name, json_t *map, Strangers *s)
{
    g_autofree char *full = g_build_filename(p->path.dir, name, NULL);
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitCheckpoint) c = davit_checkpoint_open(p->registry, full, DAVIT_INSPECT, aside);
    const size_t before = s->n_held;

    for (size_t i = 0; c && i < davit_checkpoint_n_tensors(c); i++)
        s->n_held += json_object_get(map, davit_checkpoint_tensor(c, i)->name) != NULL;
    if (s->n_held == before)
        return;
    if (s->n_files++ < 3)
        g_string_append_printf(s->names, "%s%s", s->names->len ? ", " : "", name);
}

static void say_other_index(DavitDoctor *d, const char *index, const Strangers *s, size_t n_all)
{
    davit_doctor_drop(d, "D04", is_absent, NULL);
    davit_doctor_say(
        d, "D04",
        &(DavitFinding){
            .code = DAVIT_R_SHARD_MISSING,
            .status = DAVIT_E_MISMATCH,
            .subject = index,
            .expected = "the index of the shards that are here",
            .found = davit_doctor_text(d, "other files by name; %zu shard%s here (%s%s) hold%s %zu of "
                                          "its %zu tensors", s->n_files, s->n_files == 1 ? "" : "s",
                                       s->names->str, s->n_files > 3 ? ", ..." : "",
                                       s->n_files == 1 ? "s" : "", s->n_held, n_all),
            .message = "the index is of another upload than the shards: none that it names is here, "
                       "and the ones that are here hold its tensors",
            .hint = davit_doctor_text(d, "take %s from the shards' revision, or move it away: davit "
                                         "reads the shards without it", index)});
}

static void say_absent(DavitDoctor *d, const char *index, size_t n, size_t n_files, bool any)
{
    const DavitReport *f = davit_doctor_find(d, "D04")->findings;
    g_autoptr(GString) list = g_string_new(NULL);
    size_t n_listed = 0;

    for (size_t i = 0; i < davit_report_count(f); i++) {
        const DavitRecord *r = davit_report_get(f, i);

        if (is_absent(r, NULL) && n_listed++ < MAX_LISTED)
            g_string_append_printf(list, "%s%s", list->len ? ", " : "", r->subject);
    }
    davit_doctor_drop(d, "D04", is_absent, NULL);
    davit_doctor_say(
        d, "D04",
        &(DavitFinding){
            .code = DAVIT_R_SHARD_MISSING,
            .status = DAVIT_E_MISMATCH,
            .subject = index,
            .expected = davit_doctor_text(d, "%zu files", n_files),
            .found = davit_doctor_text(d, "%zu of them absent: %s%s%s", n, list->str,
                                       n_listed > MAX_LISTED ? ", ..." : "",
                                       any ? "" : "; no other file here holds its tensors"),
            .message = "files of the model are not there",
            .hint = "download these files, of the revision that the index is of"});
}

void davit_check_absent_shards(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;
    const DavitReport *f = davit_doctor_find(d, "D04")->findings;
    Strangers s = {0};
    g_autoptr(GHashTable) files = NULL;
    const char *index = NULL;
    size_t n = 0, n_files;
    json_t *map;

    for (size_t i = 0; i < davit_report_count(f); i++)
        n += is_absent(davit_report_get(f, i), NULL);
    map = n && p->path.dir ? read_map(p, &index) : NULL;
    if (!map)
        return;
    s.names = g_string_new(NULL);
    files = files_of(map);
    n_files = g_hash_table_size(files);
    for (guint i = 0, n_seen = 0; i < p->path.names->len && n_seen < MAX_SHARDS; i++) {
        const char *name = g_ptr_array_index(p->path.names, i);

        if (!g_str_has_suffix(name, ".safetensors") || g_hash_table_contains(files, name))
            continue;
        n_seen++;
        look_into(p, name, map, &s);
    }
    if (n == n_files && s.n_held > 0 && s.n_held == json_object_size(map))
        say_other_index(d, index, &s, json_object_size(map));
    else if (n > 1)
        say_absent(d, index, n, n_files, s.n_held > 0);
    g_string_free(s.names, TRUE);
    json_decref(map);
}
