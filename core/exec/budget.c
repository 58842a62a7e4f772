/* SPDX-License-Identifier: Apache-2.0
 * Limits as the kernel states them. A limit that cannot be read does not bind. */
#include "exec/budget.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define NO_LIMIT UINT64_MAX

/* Number behind @key in a text like /proc/meminfo; *@out stays without one. */
static bool number_after(const char *text, const char *key, uint64_t scale, uint64_t *out)
{
    const char *at = strstr(text, key);
    guint64 n;
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    if (!g_ascii_isdigit(*at))
        return false;
    n = g_ascii_strtoull(at, NULL, 10);
    *out = n > NO_LIMIT / scale ? NO_LIMIT : n * scale;
    return true;
}

static bool number_in(const char *dir, const char *file, uint64_t *out)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL) || !g_ascii_isdigit(*text))
        return false; /* also "max" */
    *out = g_ascii_strtoull(text, NULL, 10);
    return true;
}

static void tighten(uint64_t n, const char *name, uint64_t *least, const char **limit)
{
    if (n >= *least)
        return;
    *least = n;
    *limit = name;
}

/* One directory of a memory controller; file pages that can be dropped count as free. */
static void look_at(const char *dir, const char *max, const char *current, const char *cached,
                    uint64_t *least, const char **limit)
{
    g_autofree char *stat_path = g_build_filename(dir, "memory.stat", NULL);
    g_autofree char *stat = NULL;
    uint64_t n_max, n_now, n_cached = 0;
    if (!number_in(dir, max, &n_max) || !number_in(dir, current, &n_now))
        return;
    if (g_file_get_contents(stat_path, &stat, NULL, NULL))
        number_after(stat, cached, 1, &n_cached);
    n_now -= MIN(n_now, n_cached);
    tighten(n_max > n_now ? n_max - n_now : 0, "the cgroup's memory limit", least, limit);
}

/* The cgroup at @path below @root and every one above it. */
static void walk_up(const char *root, const char *path, bool v2, uint64_t *least,
                    const char **limit)
{
    g_autofree char *dir = g_build_filename(root, path, NULL);
    while (g_str_has_prefix(dir, root)) {
        if (v2)
            look_at(dir, "memory.max", "memory.current", "inactive_file", least, limit);
        else
            look_at(dir, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                    least, limit);
        if (strlen(dir) <= strlen(root))
            break;
        char *up = g_path_get_dirname(dir);
        g_free(dir);
        dir = up;
    }
}

static void look_at_cgroups(uint64_t *least, const char **limit)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l; l++) {
        g_auto(GStrv) parts = g_strsplit(*l, ":", 3); /* id, controllers, path */
        if (g_strv_length(parts) != 3)
            continue;
        if (strcmp(parts[1], "") == 0)
            walk_up("/sys/fs/cgroup", parts[2], true, least, limit);
        g_auto(GStrv) controllers = g_strsplit(parts[1], ",", -1);
        if (g_strv_contains((const char *const *)controllers, "memory"))
            walk_up("/sys/fs/cgroup/memory", parts[2], false, least, limit);
    }
}

/* RLIMIT_DATA counts private writable memory, touched or not: VmData. */
static void look_at_rlimit(uint64_t *least, const char **limit)
{
    struct rlimit data;
    g_autofree char *text = NULL;
    uint64_t used = 0;
    if (getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur == RLIM_INFINITY)
        return;
    if (g_file_get_contents("/proc/self/status", &text, NULL, NULL))
        number_after(text, "VmData:", 1024, &used);
    tighten(data.rlim_cur > used ? data.rlim_cur - used : 0, "RLIMIT_DATA", least, limit);
}

uint64_t davit_budget_free(const char **out_limit)
{
    const char *limit = "none";
    uint64_t least = NO_LIMIT, n;
    g_autofree char *text = NULL;
    if (g_file_get_contents("/proc/meminfo", &text, NULL, NULL) &&
        number_after(text, "MemAvailable:", 1024, &n))
        tighten(n, "free memory", &least, &limit);
    look_at_cgroups(&least, &limit);
    look_at_rlimit(&least, &limit);
    if (out_limit)
        *out_limit = limit;
    return least;
}

/* The first slot that is past @room when slots take their memory in order. (borrowed) */
static const DavitSlot *first_past(const DavitPlan *plan, uint64_t room)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (plan->slots[i].device != DAVIT_ON_HOST)
            continue;
        sum += plan->slots[i].private_bytes;
        if (plan->slots[i].private_bytes && sum > room)
            return &plan->slots[i];
    }
    return NULL;
}

int32_t davit_budget_check(const DavitPlan *plan, DavitReport *report)
{
    const char *limit;
    const uint64_t have = davit_budget_free(&limit);
    /* tables were made with the plan; what lies on a device is not the host's */
    const uint64_t slots = plan->devices[DAVIT_ON_HOST].private_bytes;
    const uint64_t around = plan->window_bytes + plan->stack_bytes;
    const uint64_t need = slots + around;
    if (need <= have)
        return DAVIT_OK;
    const DavitSlot *slot = first_past(plan, have > around ? have - around : 0);
    const char *name = !slot ? "the load window"
                       : slot->layer < 0
                           ? slot->id
                           : davit_report_text(report, "%s of layer %" G_GINT64_FORMAT, slot->id,
                                               slot->layer);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_MEMORY_SHORT,
            .status = DAVIT_E_LIMIT,
            .stage = "load",
            .subject = name,
            .expected = davit_report_text(report,
                                          "%" G_GUINT64_FORMAT " bytes: weights %" G_GUINT64_FORMAT
                                          ", window %" G_GUINT64_FORMAT ", stacks %"
                                          G_GUINT64_FORMAT,
                                          need, slots, plan->window_bytes, plan->stack_bytes),
            .found = davit_report_text(report, "%" G_GUINT64_FORMAT " bytes, by %s", have, limit),
            .message = davit_report_text(report,
                                         "the model does not fit: %" G_GUINT64_FORMAT
                                         " bytes short; this is the first slot without room",
                                         need - have),
            .hint = "use --layout stored and --access borrow, which leave weights in the file, "
                    "or a smaller --window"});
}
