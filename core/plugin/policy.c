/* SPDX-License-Identifier: Apache-2.0
 * Policy from the manifest. Shadowing between files is in shadow.c. */
#include "plugin/policy.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "plugin/kinds.h"
#include "plugin/trust.h"

static int32_t refuse(DavitReport *report, const DavitFinding *finding)
{
    DavitFinding f = *finding;

    f.status = DAVIT_E_UNSUPPORTED;
    f.stage = "policy";
    return davit_report_add(report, &f);
}

/* ---- the file ---- */

static const uint32_t host_minor = DAVIT_ABI_MINOR;

static int32_t check_abi(const DavitManifest *m, const char *path, DavitReport *report)
{
    const char *host = davit_report_text(report, "host ABI %d.%d (davit %s)",
                                         DAVIT_ABI_MAJOR, DAVIT_ABI_MINOR, DAVIT_VERSION);

    if (m->abi_major != DAVIT_ABI_MAJOR)
        return refuse(report, &(DavitFinding){
                                  .code = DAVIT_R_ABI_MAJOR,
                                  .subject = path,
                                  .expected = host,
                                  .found = davit_report_text(report, "built for %u.%u",
                                                             m->abi_major, m->abi_minor),
                                  .hint = "the plugin's author must rebuild it"});
    if (m->min_host_minor > host_minor)
        return refuse(report,
                      &(DavitFinding){
                          .code = DAVIT_R_HOST_TOO_OLD,
                          .subject = path,
                          .expected = davit_report_text(report, "host ABI >= %u.%u",
                                                        m->abi_major, m->min_host_minor),
                          .found = host,
                          .hint = "update davit, or ask the plugin's author for a "
                                  "build with a lower DAVIT_TARGET_MINOR"});
    if (m->max_host_minor < host_minor)
        return refuse(report,
                      &(DavitFinding){
                          .code = DAVIT_R_HOST_TOO_NEW,
                          .subject = path,
                          .expected = davit_report_text(report, "host ABI <= %u.%u",
                                                        m->abi_major, m->max_host_minor),
                          .found = host,
                          .hint = "ask the plugin's author for a newer build"});
    return DAVIT_OK;
}

char *davit_build_fact(const char *build_tag, const char *key)
{
    const size_t n = strlen(key);

    for (const char *fact = build_tag ? build_tag : ""; *fact;) {
        const size_t len = strcspn(fact, ";");

        if (len > n && strncmp(fact, key, n) == 0 && fact[n] == '=')
            return g_strndup(fact + n + 1, len - n - 1);
        fact += len + (fact[len] == ';');
    }
    return NULL;
}

/* Facts that cannot be mixed in one process; the others are only shown. */
static int32_t check_build(const DavitManifest *m, const char *path, DavitReport *report)
{
    static const char *const facts[] = {"arch", "bits", "sanitizer"};
    g_autofree char *fast_math = davit_build_fact(m->build, "fast_math");
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(facts); i++) {
        g_autofree char *theirs = davit_build_fact(m->build, facts[i]);
        g_autofree char *ours = davit_build_fact(DAVIT_BUILD_TAG, facts[i]);

        /* Absent = not stated; an object without sanitizer works in a host with one. */
        if (!theirs || strcmp(theirs, ours) == 0 || strcmp(theirs, "none") == 0)
            continue;
        status = refuse(
            report, &(DavitFinding){
                        .code = DAVIT_R_BUILD_FACT,
                        .subject = path,
                        .expected = davit_report_text(report, "%s=%s", facts[i], ours),
                        .found = davit_report_text(report, "%s=%s", facts[i], theirs),
                        .hint = "get or make the build that fits this davit"});
    }
    if (g_strcmp0(fast_math, "yes") == 0)
        davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_BUILD_FACT,
                                    .severity = DAVIT_WARNING,
                                    .stage = "policy",
                                    .subject = path,
                                    .expected = "fast_math=no",
                                    .found = "fast_math=yes",
                                    .message = "the plugin is built with "
                                               "-ffast-math: its numbers may differ"});
    return status;
}

/* The instructions that the file with the entry was built for: it runs before anybody asks. */
static int32_t check_cpu(const DavitManifest *m, const char *path, DavitReport *report)
{
    g_autofree char *level = davit_build_fact(m->build, "cpu");
    uint64_t needed = UINT64_MAX;

    if (!level || !davit_cpu_cap(level, &needed) || (needed & ~davit_cpu_features()) == 0)
        return DAVIT_OK; /* not stated, or a level of another architecture */
    return refuse(report,
                  &(DavitFinding){.code = DAVIT_R_CPU_UNSUPPORTED,
                                  .subject = path,
                                  .expected = davit_report_text(report, "a processor with %s",
                                                                level),
                                  .found = davit_cpu_level(),
                                  .message = "the whole plugin is built for instructions that "
                                             "this processor lacks",
                                  .hint = "get a build for a lower level; its author can keep "
                                          "fast code in files of their own"});
}

/* Ids belong to their owner, and davit's belong to its own directory. */
static int32_t check_id(const char *id, bool is_builtin, const char *path,
                        DavitReport *report)
{
    if (is_builtin || !g_str_has_prefix(id, DAVIT_RESERVED_PREFIX))
        return DAVIT_OK;
    return refuse(report,
                  &(DavitFinding){.code = DAVIT_R_DUPLICATE_ID,
                                  .subject = id,
                                  .expected = "an id of the author's own, reverse DNS",
                                  .found = path,
                                  .message = "ids that start with org.davit. belong to "
                                             "the plugins that davit ships",
                                  .hint = "claim the same capability under another id "
                                          "with a higher priority"});
}

int32_t davit_policy_file(const DavitManifest *manifest, bool is_builtin,
                          const char *path, DavitReport *report)
{
    int32_t status = check_abi(manifest, path, report);

    status = davit_worse(status, check_build(manifest, path, report));
    status = davit_worse(status, check_cpu(manifest, path, report));
    return davit_worse(status, check_id(manifest->id, is_builtin, path, report));
}

/* ---- the component ---- */

int32_t davit_policy_component(const DavitManifestComponent *component, bool is_builtin,
                               bool allow_draft, const char *path, DavitReport *report)
{
    DavitKind kind;

    if (check_id(component->id, is_builtin, path, report))
        return DAVIT_E_UNSUPPORTED;
    if (g_str_has_suffix(component->kind, "-draft") && !allow_draft)
        return refuse(report,
                      &(DavitFinding){.code = DAVIT_R_DRAFT,
                                      .subject = component->id,
                                      .expected = "a kind that is settled",
                                      .found = component->kind,
                                      .message = "the kind is a draft and may change "
                                                 "without notice",
                                      .hint = "--allow-draft takes it; the plugin's "
                                              "other components load without"});
    if (!davit_kind_find(component->kind, &kind))
        return refuse(
            report,
            &(DavitFinding){
                .code = DAVIT_R_KIND_UNKNOWN,
                .subject = component->id,
                .expected = "format, arch, quant, tokenizer, kernels or comm",
                .found = component->kind,
                .message = davit_report_text(report,
                                             "kind '%s' is not known to this "
                                             "host",
                                             component->kind),
                .hint = "update davit; the plugin's other components still load"});
    return davit_kind_check(kind, component->kind_major, component->kind_minor, 0,
                            component->id, "policy", report);
}

/* ---- the user's filters ---- */

/* The glob of comma-separated @list that takes @id, (owned); NULL = none. */
static char *match(const char *list, const char *id)
{
    g_auto(GStrv) globs = g_strsplit(list, ",", -1);

    for (size_t i = 0; globs[i]; i++) {
        if (fnmatch(g_strstrip(globs[i]), id, 0) == 0)
            return g_strdup(globs[i]);
    }
    return NULL;
}

static void note_disabled(const char *id, const char *variable, const char *value,
                          const char *message, const char *hint, DavitReport *report)
{
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_DISABLED,
                                             .stage = "policy",
                                             .subject = id,
                                             .found = davit_report_text(report, "%s=%s",
                                                                        variable, value),
                                             .message = message,
                                             .hint = hint});
}

/* ---- the lock file ---- */

int32_t davit_policy_lock(const char *id, const char *path, const DavitPrefs *prefs,
                          DavitReport *report)
{
    const char *sum = davit_prefs_lock(prefs, id);

    if (!sum || *sum)
        return DAVIT_OK;
    return refuse(report, &(DavitFinding){
                              .code = DAVIT_R_NOT_IN_LOCK,
                              .subject = path,
                              .expected = davit_report_text(report, "\"%s\" in %s", id,
                                                            prefs->lock_path),
                              .found = "no such entry",
                              .message = "a lock file names the plugins that may be "
                                         "loaded, and this is none of them",
                              .hint = "add its id and sha256 to the lock file, or remove "
                                      "the lock file"});
}

int32_t davit_policy_hash(const char *want, const char *path, const char *by,
                          DavitReport *report)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GMappedFile) map = NULL;
    g_autoptr(GBytes) bytes = NULL;
    g_autofree char *have = NULL;

    if (!want)
        return DAVIT_OK;
    map = g_mapped_file_new(path, FALSE, &error);
    if (!map)
        return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                        .status = DAVIT_E_IO,
                                                        .stage = "policy",
                                                        .subject = path,
                                                        .expected = "a readable file",
                                                        .found = error->message});
    bytes = g_mapped_file_get_bytes(map);
    have = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, bytes);
    if (g_ascii_strcasecmp(have, want) == 0)
        return DAVIT_OK;
    return refuse(report,
                  &(DavitFinding){.code = DAVIT_R_HASH_MISMATCH,
                                  .subject = path,
                                  .expected = davit_report_text(report, "sha256 %s", want),
                                  .found = davit_report_text(report, "sha256 %s", have),
                                  .message = davit_report_text(
                                      report, "the file is not the one that %s names", by),
                                  .hint = "put the right file there, or correct the sum"});
}

/* ---- enabled? ---- */

static bool prefs_enabled(const char *id, const DavitPrefs *prefs, DavitReport *report)
{
    const char *path;
    const char *glob = davit_prefs_disabled(prefs, id, &path);

    if (glob)
        note_disabled(id, path, glob, "switched off in a configuration file",
                      "`davit plugin enable ID` switches it on", report);
    return glob == NULL;
}

bool davit_policy_enabled(const char *id, const DavitPrefs *prefs, DavitReport *report)
{
    const bool look = !davit_trust_privileged();
    const char *disable = look ? getenv("DAVIT_PLUGINS_DISABLE") : NULL;
    const char *select = look ? getenv("DAVIT_PLUGINS_SELECT") : NULL;
    g_autofree char *hit = disable && *disable ? match(disable, id) : NULL;

    if (!prefs_enabled(id, prefs, report))
        return false;
    if (hit) {
        note_disabled(id, "DAVIT_PLUGINS_DISABLE", disable,
                      "switched off by the environment", "unset the variable", report);
        return false;
    }
    if (select && *select) {
        g_autofree char *chosen = match(select, id);

        if (!chosen) {
            note_disabled(id, "DAVIT_PLUGINS_SELECT", select,
                          "not among the components that the environment selects",
                          "unset the variable", report);
            return false;
        }
    }
    return true;
}

/* ---- versions ---- */

/* Compare one dot-separated identifier: numbers by value, numbers before text. */
static int compare_identifier(const char *a, const char *b)
{
    char *end_a, *end_b;
    const guint64 x = g_ascii_strtoull(a, &end_a, 10);
    const guint64 y = g_ascii_strtoull(b, &end_b, 10);
    const bool num_a = *a && !*end_a;
    const bool num_b = *b && !*end_b;

    if (num_a && num_b)
        return x < y ? -1 : x > y;
    if (num_a != num_b)
        return num_a ? -1 : 1;
    return strcmp(a, b);
}

static int compare_dotted(const char *a, const char *b)
{
    g_auto(GStrv) as = g_strsplit(a, ".", -1);
    g_auto(GStrv) bs = g_strsplit(b, ".", -1);

    for (size_t i = 0; as[i] || bs[i]; i++) {
        int order;

        if (!as[i] || !bs[i])
            return as[i] ? 1 : -1;
        order = compare_identifier(as[i], bs[i]);
        if (order)
            return order;
    }
    return 0;
}

/* MAJOR.MINOR.PATCH of @text and, in *out_pre, what follows '-' (NULL if nothing does);
 * build metadata after '+' does not count. (both owned) */
static char *split_version(const char *text, char **out_pre)
{
    char *core = g_strdup(text);
    char *plus = strchr(core, '+');
    char *dash;

    if (plus)
        *plus = '\0';
    dash = strchr(core, '-');
    *out_pre = dash ? g_strdup(dash + 1) : NULL;
    if (dash)
        *dash = '\0';
    return core;
}

int davit_version_compare(const char *a, const char *b)
{
    g_autofree char *pre_a = NULL;
    g_autofree char *pre_b = NULL;
    g_autofree char *core_a = split_version(a ? a : "", &pre_a);
    g_autofree char *core_b = split_version(b ? b : "", &pre_b);
    const bool is_a = g_ascii_isdigit(core_a[0]);
    const bool is_b = g_ascii_isdigit(core_b[0]);
    const int order = is_a == is_b ? compare_dotted(core_a, core_b) : is_a ? 1 : -1;

    if (order || (!pre_a && !pre_b))
        return order;
    if (!pre_a || !pre_b) /* a release comes after its candidates */
        return pre_a ? -1 : 1;
    return compare_dotted(pre_a, pre_b);
}
