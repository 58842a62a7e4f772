/* SPDX-License-Identifier: Apache-2.0
 * Shadowing. Files come in search order, so "earlier" is the order of the list. */
#include "plugin/shadow.h"

#include <string.h>

#include "base/cpu.h"
#include "plugin/policy.h"

static void shadow_component(DavitComponent *loser, const char *by, const char *why)
{
    loser->state = DAVIT_STATE_SHADOWED;
    davit_report_add(
        loser->records,
        &(DavitFinding){.code = DAVIT_R_SHADOWED,
                        .stage = "policy",
                        .subject = loser->id,
                        .found = davit_report_text(loser->records, "%s (%s)", by, why),
                        .expected = "one file for an id",
                        .message = "another file provides this component",
                        .hint = "`davit plugin disable` the other's id, or remove the file "
                                "that is not wanted"});
}

/* ---- copies of one build ---- */

static bool same_build(const DavitPluginFile *a, const DavitPluginFile *b)
{
    return a->build_id && g_strcmp0(a->build_id, b->build_id) == 0 && a->bundle_id &&
           g_strcmp0(a->bundle_id, b->bundle_id) == 0 &&
           g_strcmp0(a->version, b->version) == 0;
}

static void shadow_file(DavitPluginFile *copy, const DavitPluginFile *first, const char *why)
{
    const GPtrArray *components = copy->load->components;

    for (size_t i = 0; i < components->len; i++) {
        DavitComponent *c = g_ptr_array_index(components, i);

        if (davit_component_usable(c))
            shadow_component(c, first->path, why);
    }
    copy->state = DAVIT_STATE_SHADOWED;
}

static void shadow_builds(DavitRegistry *registry)
{
    const GPtrArray *files = registry->files;

    for (size_t i = 0; i < files->len; i++) {
        DavitPluginFile *file = g_ptr_array_index(files, i);

        for (size_t j = 0; j < i && file->state == DAVIT_STATE_OK; j++) {
            const DavitPluginFile *first = g_ptr_array_index(files, j);

            if (first->state == DAVIT_STATE_OK && same_build(file, first))
                shadow_file(file, first, "same build");
        }
    }
}

/* ---- one plugin for several processors ---- */

/* Level in the file's name, "x86-64-v3" of "acme.x86-64-v3.so", and its bits; NULL = none.
 * (borrowed) until @file goes; *out_len is the level's length. */
static const char *level_of(const DavitPluginFile *file, size_t *out_len, uint64_t *out_bits)
{
    const char *name = strrchr(file->path, '/') + 1;
    const char *dot = strchr(name, '.');

    while (dot) { /* a name may have dots of its own */
        const size_t n = strlen(dot + 1);

        *out_bits = UINT64_MAX;
        if (n > 3 && strcmp(dot + 1 + n - 3, ".so") == 0) {
            g_autofree char *level = g_strndup(dot + 1, n - 3);

            if (davit_cpu_cap(level, out_bits)) {
                *out_len = n - 3;
                return dot + 1;
            }
        }
        dot = strchr(dot + 1, '.');
    }
    *out_bits = 0;
    *out_len = 0;
    return NULL;
}

/* Is @b, another file, @a for another processor: the same name but for the level? */
static bool are_variants(const DavitPluginFile *a, const DavitPluginFile *b)
{
    uint64_t bits;
    size_t n_a, n_b, stem_a, stem_b;
    const char *level_a = level_of(a, &n_a, &bits);
    const char *level_b = level_of(b, &n_b, &bits);

    if (a == b || (!level_a && !level_b) || g_strcmp0(a->bundle_id, b->bundle_id) != 0 ||
        g_strcmp0(a->version, b->version) != 0)
        return false;
    stem_a = level_a ? (size_t)(level_a - a->path) - 1 : strlen(a->path) - strlen(".so");
    stem_b = level_b ? (size_t)(level_b - b->path) - 1 : strlen(b->path) - strlen(".so");
    return stem_a == stem_b && strncmp(a->path, b->path, stem_a) == 0;
}

static bool fits_here(const DavitPluginFile *file, uint64_t *out_bits)
{
    size_t n;

    level_of(file, &n, out_bits);
    return file->state == DAVIT_STATE_OK && (*out_bits & ~davit_cpu_features()) == 0;
}

/* The highest level that this processor has among @file and its variants; NULL = none. */
static const DavitPluginFile *best_variant(const DavitRegistry *registry,
                                           const DavitPluginFile *file)
{
    const DavitPluginFile *best = NULL;
    uint64_t bits;
    int most = 0;

    for (size_t i = 0; i < registry->files->len; i++) {
        const DavitPluginFile *other = g_ptr_array_index(registry->files, i);

        if ((other != file && !are_variants(file, other)) || !fits_here(other, &bits))
            continue;
        if (!best || __builtin_popcountll(bits) > most) {
            best = other;
            most = __builtin_popcountll(bits);
        }
    }
    return best;
}

/* @file is not for this processor and nothing stands in for it. */
static void refuse_level(DavitPluginFile *file)
{
    const GPtrArray *components = file->load->components;
    size_t n;
    uint64_t bits;
    const char *level = level_of(file, &n, &bits);

    davit_report_add(file->records,
                     &(DavitFinding){.code = DAVIT_R_CPU_UNSUPPORTED,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "policy",
                                     .subject = file->path,
                                     .expected = davit_report_text(file->records, "%.*s",
                                                                   (int)n, level),
                                     .found = davit_cpu_level(),
                                     .message = "the file is for another processor, as its "
                                                "name says",
                                     .hint = "install the plugin's file without a level in "
                                             "its name beside it"});
    file->state = DAVIT_STATE_REFUSED;
    for (size_t i = 0; i < components->len; i++) {
        DavitComponent *c = g_ptr_array_index(components, i);

        if (davit_component_usable(c))
            c->state = DAVIT_STATE_REFUSED;
    }
}

/* Decided from names and this processor's bits: no variant is opened to be asked. */
static void choose_variants(DavitRegistry *registry)
{
    for (size_t i = 0; i < registry->files->len; i++) {
        DavitPluginFile *file = g_ptr_array_index(registry->files, i);
        const DavitPluginFile *best;
        uint64_t bits;
        const bool fits = fits_here(file, &bits);

        if (file->state != DAVIT_STATE_OK)
            continue;
        best = best_variant(registry, file);
        if (best && best != file)
            shadow_file(file, best, fits ? "a variant for more of this processor"
                                         : "the variant for this processor");
        else if (!best && !fits)
            refuse_level(file);
    }
}

/* ---- equal ids ---- */

/* Why @a wins over @b, which comes later in the list; NULL if @b wins. */
static const char *wins(const DavitComponent *a, const DavitComponent *b)
{
    int order;

    if (a->file->load->rank != b->file->load->rank)
        return "earlier tier";
    order = davit_version_compare(a->version, b->version);
    if (order == 0)
        return "earlier file name";
    return order > 0 ? "higher version" : NULL;
}

static void shadow_ids(DavitRegistry *registry)
{
    g_autoptr(GHashTable) winners = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; i < registry->components->len; i++) {
        DavitComponent *c = g_ptr_array_index(registry->components, i);
        DavitComponent *before;
        const char *why;

        if (!davit_component_usable(c))
            continue;
        before = g_hash_table_lookup(winners, c->id);
        why = before ? wins(before, c) : NULL;
        if (why) {
            shadow_component(c, before->file->path, why);
            continue;
        }
        if (before)
            shadow_component(before, c->file->path, "higher version");
        g_hash_table_replace(winners, c->id, c);
    }
}

/* ---- equal claims ---- */

/* Keys of a capability whose values only one component of the kind should claim. */
static const char *const claim_keys[DAVIT_N_KINDS][3] = {
    [DAVIT_KIND_ID_FORMAT] = {"magic", "ext"},
    [DAVIT_KIND_ID_ARCH] = {"hf", "gguf", "model_type"},
    [DAVIT_KIND_ID_QUANT] = {"layout", "method"},
    [DAVIT_KIND_ID_TOKENIZER] = {"family", "shape"},
};

/* (owned) "hf=X" that both capabilities hold, or NULL. */
static char *common_claim(const DavitComponent *a, const DavitComponent *b)
{
    for (size_t k = 0; k < 3 && claim_keys[a->kind][k]; k++) {
        const char *key = claim_keys[a->kind][k];
        g_autofree char *values = davit_build_fact(a->capability, key);
        g_auto(GStrv) parts = g_strsplit(values ? values : "", "|", -1);

        for (size_t i = 0; parts[i]; i++) {
            if (*parts[i] && davit_capability_has(b->capability, key, parts[i]))
                return g_strdup_printf("%s=%s", key, parts[i]);
        }
    }
    return NULL;
}

static void note_conflict(DavitComponent *c, size_t place, size_t n, const char *claim,
                          const char *other)
{
    g_free(c->conflict);
    c->conflict = g_strdup_printf("%zu of %zu for %s, %s %s", place, n, claim,
                                  place == 1 ? "before" : "after", other);
}

void davit_shadow_conflicts(const GPtrArray *components)
{
    for (size_t i = 0; i < components->len; i++) {
        DavitComponent *c = g_ptr_array_index(components, i);
        g_autofree char *claim = NULL;
        const char *other = NULL;
        size_t place = 1, n = 1;

        for (size_t j = 0; j < components->len; j++) {
            const DavitComponent *rival = g_ptr_array_index(components, j);
            g_autofree char *common = i == j ? NULL : common_claim(c, rival);

            if (!common)
                continue;
            n++;
            place += j < i;
            if (!other || j < i)
                other = rival->id;
            if (!claim)
                claim = g_steal_pointer(&common);
        }
        if (n > 1)
            note_conflict(c, place, n, claim, other);
    }
}

void davit_shadow(DavitRegistry *registry)
{
    choose_variants(registry);
    shadow_builds(registry);
    shadow_ids(registry);
}
