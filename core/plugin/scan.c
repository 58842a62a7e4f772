/* SPDX-License-Identifier: Apache-2.0
 * One file through path trust, ELF read, manifest and policy. */
#include "plugin/scan.h"

#include <string.h>

#include "plugin/elf.h"
#include "plugin/elf_json.h"
#include "plugin/helper.h"
#include "plugin/kinds.h"
#include "plugin/policy.h"
#include "plugin/sidecar.h"
#include "plugin/trust.h"

/* ---- a new file ---- */

static DavitPluginFile *file_new(DavitRegistry *registry, const DavitCandidate *candidate)
{
    DavitPluginFile *file = g_new0(DavitPluginFile, 1);

    file->path = g_strdup(candidate->path);
    file->tier = g_strdup(candidate->tier);
    file->state = DAVIT_STATE_REFUSED; /* until it has passed */
    file->is_plugin = true;            /* until it is known to be none */
    file->records = davit_report_new();
    file->needed = g_ptr_array_new_with_free_func(g_free);
    file->exports = g_ptr_array_new_with_free_func(g_free);
    file->aliases = g_ptr_array_new_with_free_func(g_free);
    file->load = g_new0(DavitFileLoad, 1);
    file->load->registry = registry;
    file->load->rank = candidate->rank;
    file->load->is_builtin = candidate->is_builtin;
    file->load->components = g_ptr_array_new();
    g_ptr_array_add(registry->files, file);
    return file;
}

/* The file already listed under another name, or NULL. */
static DavitPluginFile *find_same(const DavitRegistry *registry, const struct stat *st)
{
    for (size_t i = 0; i < registry->files->len; i++) {
        DavitPluginFile *file = g_ptr_array_index(registry->files, i);

        if (file->load->real && file->load->seen.st_dev == st->st_dev &&
            file->load->seen.st_ino == st->st_ino)
            return file;
    }
    return NULL;
}

/* ---- components ---- */

/* Refusals known without input become records, and take their purposes away. */
static void take_refusals(DavitComponent *c, const DavitManifestComponent *m)
{
    for (size_t i = 0; i < m->refusals->len; i++) {
        const DavitManifestRefusal *r = g_ptr_array_index(m->refusals, i);

        davit_report_add(c->records, &(DavitFinding){.code = r->code,
                                                     .status = DAVIT_E_UNSUPPORTED,
                                                     .purposes = r->purposes,
                                                     .stage = "manifest",
                                                     .who = c->id,
                                                     .subject = r->subject,
                                                     .message = r->message,
                                                     .hint = r->hint});
        c->purposes &= r->purposes ? ~r->purposes : 0;
    }
    if (m->refusals->len > 0)
        c->state = c->purposes ? DAVIT_STATE_PARTIAL : DAVIT_STATE_REFUSES;
}

/* Is @m not the only one of its id? None of them is taken then: which one is meant? */
static bool is_twice(const DavitManifest *manifest, const DavitManifestComponent *m)
{
    for (size_t i = 0; i < manifest->components->len; i++) {
        const DavitManifestComponent *other = g_ptr_array_index(manifest->components, i);

        if (other != m && strcmp(other->id, m->id) == 0)
            return true;
    }
    return false;
}

static int32_t refuse_twice(DavitComponent *c, const char *path)
{
    return davit_report_add(c->records,
                            &(DavitFinding){.code = DAVIT_R_DUPLICATE_ID,
                                            .status = DAVIT_E_UNSUPPORTED,
                                            .stage = "policy",
                                            .subject = c->id,
                                            .expected = "one component of this id",
                                            .found = path,
                                            .message = "the file holds two "
                                                       "components of one id",
                                            .hint = "the plugin's author must give "
                                                    "each an id of its own"});
}

static void add_component(DavitRegistry *registry, DavitPluginFile *file,
                          const DavitManifestComponent *m)
{
    DavitComponent *c = g_new0(DavitComponent, 1);

    c->id = g_strdup(m->id);
    c->kind_name = g_strdup(m->kind);
    c->capability = g_strdup(m->capability);
    c->version = g_strdup(file->version);
    c->known_kind = davit_kind_find(m->kind, &c->kind);
    c->kind_major = m->kind_major;
    c->kind_minor = m->kind_minor;
    c->priority = m->priority;
    c->user_rank = davit_prefs_rank(registry->prefs, m->id);
    c->purposes = m->purposes;
    c->state = DAVIT_STATE_OK;
    c->records = davit_report_new();
    c->file = file;
    c->load = g_new0(DavitComponentLoad, 1);
    c->load->manifest = m;
    g_ptr_array_add(registry->components, c);
    g_ptr_array_add(file->load->components, c);

    take_refusals(c, m);
    if (!davit_policy_enabled(c->id, registry->prefs, c->records) ||
        (file->bundle_id && strcmp(file->bundle_id, c->id) != 0 &&
         !davit_policy_enabled(file->bundle_id, registry->prefs, c->records)))
        c->state = DAVIT_STATE_DISABLED;
    else if (file->state == DAVIT_STATE_REFUSED ||
             davit_policy_component(m, file->load->is_builtin, registry->allow_draft,
                                    file->path, c->records) ||
             (is_twice(file->load->manifest, m) && refuse_twice(c, file->path)))
        c->state = DAVIT_STATE_REFUSED;
}

/* ---- the gates ---- */

static int32_t refuse_file(DavitPluginFile *file, uint32_t code, const char *expected,
                           const char *found, const char *message, const char *hint)
{
    return davit_report_add(file->records, &(DavitFinding){.code = code,
                                                           .status = DAVIT_E_UNSUPPORTED,
                                                           .stage = "manifest",
                                                           .subject = file->path,
                                                           .expected = expected,
                                                           .found = found,
                                                           .message = message,
                                                           .hint = hint});
}

/* Steal the lists of @elf that are shown. */
static void keep_facts(DavitPluginFile *file, DavitElf *elf)
{
    g_ptr_array_unref(file->needed);
    g_ptr_array_unref(file->exports);
    file->needed = g_ptr_array_ref(elf->needed);
    file->exports = g_ptr_array_ref(elf->exports);
    file->n_exports = elf->n_exports;
    file->runpath = g_strdup(elf->runpath);
    file->build_id = g_strdup(elf->build_id);
}

static void keep_manifest(DavitPluginFile *file, DavitManifest *m)
{
    file->bundle_id = g_strdup(m->id);
    file->version = g_strdup(m->version);
    file->vendor = g_strdup(m->vendor);
    file->license = g_strdup(m->license);
    file->build_tag = g_strdup(m->build);
    file->abi_major = m->abi_major;
    file->abi_minor = m->abi_minor;
    file->min_host_minor = m->min_host_minor;
    file->load->manifest = m;
}

/* Gate 3, on the bytes of gate 2, or on what stands beside the file. Returns: (owned) NULL if
 * there is no usable manifest. */
static DavitManifest *read_manifest(DavitPluginFile *file, const DavitElf *elf,
                                    const DavitSidecar *sidecar, bool is_named)
{
    if (!elf->has_entry && elf->notes->len == 0 && !is_named) {
        file->is_plugin = false;
        return NULL;
    }
    if (!elf->has_entry) {
        refuse_file(
            file, DAVIT_R_NO_ENTRY, "the symbol " DAVIT_ENTRY_SYMBOL,
            elf->notes->len ? "a manifest, but no such symbol" : "no plugin at all", NULL,
            "DAVIT_PLUGIN writes the function; give it default visibility when linking");
        return NULL;
    }
    if (elf->notes->len == 0 && sidecar && sidecar->notes->len > 0)
        return davit_manifest_read(sidecar->notes, sidecar->path, file->records);
    if (elf->notes->len == 0) {
        refuse_file(
            file, DAVIT_R_NO_MANIFEST, "notes with the owner DAVIT", "none", NULL,
            "write the descriptors with DAVIT_COMPONENT and DAVIT_PLUGIN, which write "
            "the manifest too");
        return NULL;
    }
    return davit_manifest_read(elf->notes, file->path, file->records);
}

/* What the sidecar decides of the components, and for later of the file. */
static void take_sidecar(DavitPluginFile *file, const DavitSidecar *sidecar)
{
    const GPtrArray *all = file->load->components;

    if (!sidecar)
        return;
    file->sidecar = g_strdup(sidecar->path);
    file->load->sha256 = g_strdup(davit_sidecar_sha256(sidecar));
    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        davit_sidecar_priority(sidecar, &c->priority);
        if (!davit_sidecar_disables(sidecar) || !davit_component_usable(c))
            continue;
        c->state = DAVIT_STATE_DISABLED;
        davit_report_add(c->records,
                         &(DavitFinding){.code = DAVIT_R_DISABLED,
                                         .stage = "policy",
                                         .subject = c->id,
                                         .found = sidecar->path,
                                         .message = "switched off by the file beside the plugin",
                                         .hint = "take \"disabled\" out of that file"});
    }
}

/* Gates 3 and 4 on what gate 2 found. Nothing kept points into @elf's texts. */
static void judge_file(DavitRegistry *registry, DavitPluginFile *file, DavitElf *elf,
                       DavitTrust *trust, bool is_named)
{
    const bool is_builtin = file->load->is_builtin;
    g_autoptr(DavitSidecar) sidecar = NULL;
    int32_t status = DAVIT_OK;
    DavitManifest *m;

    keep_facts(file, elf);
    file->has_notes = elf->notes->len > 0;
    if (elf->has_entry && !is_builtin)
        sidecar = davit_sidecar_read(file->load->real, trust, &status, file->records);
    if (status)
        return;
    m = read_manifest(file, elf, sidecar, is_named);
    if (!m)
        return;
    keep_manifest(file, m);
    status = elf->notes->len ? davit_sidecar_check_settings(sidecar, file->records) : DAVIT_OK;
    status = davit_worse(status, davit_elf_check(elf, file->path, file->records));
    status = davit_worse(status, davit_policy_file(m, is_builtin, file->path, file->records));
    status = davit_worse(status, davit_needed_check(registry->libraries, elf->needed, elf->runpath,
                                            file->path, file->records));
    if (!is_builtin)
        status = davit_worse(status, davit_policy_lock(m->id, file->path, registry->prefs,
                                               file->records));
    if (status == DAVIT_OK)
        file->state = DAVIT_STATE_OK;
    for (size_t i = 0; i < m->components->len; i++)
        add_component(registry, file, g_ptr_array_index(m->components, i));
    take_sidecar(file, sidecar);
    davit_helper_recall(file);
}

/* Gate 2 from the cache, else from the file. */
static void read_file(DavitRegistry *registry, DavitPluginFile *file,
                      DavitTrust *trust, bool is_named)
{
    DavitFileLoad *load = file->load;
    const json_t *known = davit_cache_get(registry->cache, load->real, &load->seen, "elf");
    g_autoptr(DavitElf) elf = known ? davit_elf_from_json(known) : NULL;
    g_autoptr(GMappedFile) map = NULL;
    g_autoptr(GError) error = NULL;
    json_t *json;

    if (elf) {
        judge_file(registry, file, elf, trust, is_named);
        return;
    }
    map = g_mapped_file_new(load->real, FALSE, &error);
    if (!map) {
        refuse_file(file, DAVIT_R_IO_FAILED, "a file that can be read", error->message,
                    NULL, "make it readable, or remove it");
        return;
    }
    elf = davit_elf_read((const uint8_t *)g_mapped_file_get_contents(map),
                         g_mapped_file_get_length(map), file->path, file->records);
    if (!elf)
        return;
    json = davit_elf_to_json(elf);
    judge_file(registry, file, elf, trust, is_named);
    if (json)
        davit_cache_put(registry->cache, load->real, &load->seen, "elf", json);
}

void davit_scan_file(DavitRegistry *registry, const DavitCandidate *candidate, DavitTrust *trust)
{
    g_autoptr(DavitReport) records = davit_report_new();
    g_autofree char *real = NULL;
    struct stat st;
    DavitPluginFile *file;

    if (davit_trust_check(trust, candidate->path, &real, &st, records)) {
        file = file_new(registry, candidate);
        davit_report_append(file->records, records);
        return;
    }
    file = find_same(registry, &st);
    if (file) {
        if (strcmp(file->path, candidate->path) != 0)
            g_ptr_array_add(file->aliases, g_strdup(candidate->path));
        return;
    }
    file = file_new(registry, candidate);
    file->load->real = g_steal_pointer(&real);
    file->load->seen = st;
    read_file(registry, file, trust, candidate->is_named);
}
