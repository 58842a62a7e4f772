/* SPDX-License-Identifier: Apache-2.0
 * The machine under the model: memory and its limits, processors, file system, disk, page
 * cache. Reads /proc and /sys, and two blocks for the O_DIRECT probe. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "doctor/doctor_private.h"
#include "source/source.h"

/* ---- reading ---- */

/* (owned) first line of a file in /proc or /sys, NULL if absent. */
static char *first_line(const char *path)
{
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    return text;
}

/* A number in a file; UINT64_MAX for "max", absent and unreadable. */
static uint64_t number_in(const char *path)
{
    g_autofree char *line = first_line(path);

    return line && g_ascii_isdigit(line[0]) ? g_ascii_strtoull(line, NULL, 10)
                                            : UINT64_MAX;
}

static uint64_t meminfo(const char *key)
{
    g_autofree char *text = NULL;
    const char *at;

    if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL))
        return UINT64_MAX;
    at = strstr(text, key);
    return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) * 1024 : UINT64_MAX;
}

/* ---- D25: memory that this process may have ---- */

/* Tightest limit of this process's control group, either version. */
static uint64_t group_limit(void)
{
    g_autofree char *text = NULL;
    uint64_t limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    g_auto(GStrv) lines = NULL;

    limit = MIN(limit, number_in("/sys/fs/cgroup/memory.max"));
    if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
        return limit;
    lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l; l++) {
        const bool two = g_str_has_prefix(*l, "0::");
        const char *at = two ? *l + 3 : strstr(*l, ":memory:");
        g_autofree char *path = NULL;

        if (!at)
            continue;
        path = two ? g_strdup_printf("/sys/fs/cgroup%s/memory.max", at)
                   : g_strdup_printf("/sys/fs/cgroup/memory%s/memory.limit_in_bytes",
                                     at + strlen(":memory:"));
        limit = MIN(limit, number_in(path));
    }
    return limit;
}

static uint64_t check_limits(DavitDoctor *d)
{
    const uint64_t available = meminfo("MemAvailable:");
    const uint64_t group = group_limit();
    struct rlimit data = {RLIM_INFINITY, RLIM_INFINITY};
    g_autofree char *a = NULL;
    g_autofree char *b = NULL;
    uint64_t limit;

    getrlimit(RLIMIT_DATA, &data);
    limit = MIN(group, data.rlim_cur == RLIM_INFINITY ? UINT64_MAX : data.rlim_cur);
    if (available == UINT64_MAX) {
        davit_doctor_skip(d, "D25", "/proc/meminfo");
        return limit;
    }
    a = davit_doctor_bytes(available);
    if (limit >= (1ull << 60)) { /* version 1 says "none" with a huge number */
        davit_doctor_fact(d, "D25", "%s available, no limit below it", a);
        return available;
    }
    b = davit_doctor_bytes(limit);
    davit_doctor_fact(d, "D25", "%s available, limit %s", a, b);
    if (limit < available)
        davit_doctor_say(d, "D25",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = limit == group ? "control group"
                                                                   : "RLIMIT_DATA",
                                         .expected = davit_doctor_text(d, "%s of the "
                                                                          "machine", a),
                                         .found = b,
                                         .message = "a limit below the machine's memory "
                                                    "applies to this process"});
    return MIN(limit, available);
}

/* ---- D24 ---- */

static void check_memory(DavitDoctor *d, uint64_t room)
{
    const DavitPlan *plan = d->patient.plan;
    uint64_t stored, need;
    g_autofree char *needs = NULL;
    g_autofree char *has = NULL;
    g_autofree char *files = NULL;

    if (!d->patient.checkpoint) {
        davit_doctor_skip(d, "D24", "weights that open");
        return;
    }
    stored = davit_checkpoint_n_bytes(d->patient.checkpoint);
    need = plan ? MAX(plan->peak_bytes, stored) : stored;
    needs = davit_doctor_bytes(need);
    has = davit_doctor_bytes(room);
    files = davit_doctor_bytes(stored);
    davit_doctor_fact(d, "D24", "weights %s; %s may be used (davit estimate tells a "
                                "context's share)", files, has);
    if (need > room)
        davit_doctor_say(d, "D24",
                         &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                         .severity = DAVIT_WARNING,
                                         .subject = "memory",
                                         .expected = davit_doctor_text(d, "%s for the "
                                                                          "weights alone",
                                                                       needs),
                                         .found = has,
                                         .message = "the weights are larger than the "
                                                    "memory: they would be read from "
                                                    "disk again and again, or not at "
                                                    "all"});
}

/* ---- D26, D32, D33 ---- */

static void check_processors(DavitDoctor *d)
{
    cpu_set_t set;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int may = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    g_autofree char *quota = first_line("/sys/fs/cgroup/cpu.max");

    davit_doctor_fact(d, "D26", "%ld online, %d allowed, quota %s", online, may,
                      quota ? quota : "none");
    if (may > 0 && may < online)
        davit_doctor_say(d, "D26",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "processors",
                                         .expected = davit_doctor_text(d, "%ld", online),
                                         .found = davit_doctor_text(d, "%d", may),
                                         .message = "this process may use some of the "
                                                    "machine's processors only"});
}

static void check_nodes(DavitDoctor *d)
{
    g_autofree char *online = first_line("/sys/devices/system/node/online");

    if (online && strcmp(online, "0") != 0)
        davit_doctor_skip(d, "D32", "page placement on a machine of several nodes, "
                                    "which this version does not read");
    else
        davit_doctor_fact(d, "D32", "one memory node");
}

static void check_pinning(DavitDoctor *d)
{
    g_autofree char *thp = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
    struct rlimit lock = {0, 0};
    g_autofree char *bytes = NULL;

    getrlimit(RLIMIT_MEMLOCK, &lock);
    bytes = lock.rlim_cur == RLIM_INFINITY ? g_strdup("without limit")
                                           : davit_doctor_bytes(lock.rlim_cur);
    davit_doctor_fact(d, "D33", "lockable memory %s; huge pages %s", bytes,
                      thp ? thp : "unknown");
}

/* ---- D27, D28, D29, D30: where the files lie ---- */

static const char *fs_name(uint64_t type, bool *out_network)
{
    static const struct {
        uint64_t magic; /* statfs(2) */
        const char *name;
        bool network;
    } table[] = {{0xef53, "ext2/3/4", false},       {0x58465342, "xfs", false},
                 {0x9123683e, "btrfs", false},      {0x01021994, "tmpfs", false},
                 {0x794c7630, "overlay", false},    {0x2fc12fc1, "zfs", false},
                 {0x6969, "nfs", true},             {0xff534d42, "cifs", true},
                 {0xfe534d42, "smb2", true},        {0x0bd00bd0, "lustre", true},
                 {0x65735546, "fuse", true},        {0x01021997, "9p", true},
                 {0x00c36400, "ceph", true},        {0x47504653, "gpfs", true},
                 {0x6a656a63, "virtiofs", true}};

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (table[i].magic == type) {
            *out_network = table[i].network;
            return table[i].name;
        }
    *out_network = false;
    return "unknown";
}

static void check_fs(DavitDoctor *d, int fd)
{
    struct statfs fs;
    bool network = false;
    const char *name;

    if (fstatfs(fd, &fs) != 0) {
        davit_doctor_skip(d, "D27", "a file system that tells its type");
        return;
    }
    name = fs_name((uint64_t)(uint32_t)fs.f_type, &network);
    davit_doctor_fact(d, "D27", "%s", name);
    if (network)
        davit_doctor_say(d, "D27",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = d->patient.path.dir,
                                         .expected = "a local file system",
                                         .found = name,
                                         .message = "the files may lie on another "
                                                    "machine"});
}

static void check_direct(DavitDoctor *d, const DavitSource *source)
{
    const int fd = open(davit_source_path(source), O_RDONLY | O_DIRECT | O_CLOEXEC);
    void *buf = NULL;
    bool works = false;

    if (fd >= 0 && posix_memalign(&buf, 4096, 4096) == 0)
        works = pread(fd, buf, 4096, davit_source_size(source) >= 8192 ? 4096 : 0) > 0;
    davit_doctor_fact(d, "D28", works ? "a direct read works" : "not possible here (%s)",
                      g_strerror(errno));
    free(buf);
    if (fd >= 0)
        close(fd);
}

static void check_disk(DavitDoctor *d, int fd)
{
    struct stat st;
    g_autofree char *base = NULL;
    g_autofree char *whole = NULL;
    g_autofree char *part = NULL;
    uint64_t rotates;
    char *real;
    bool is_virtual;

    if (fstat(fd, &st) != 0 || major(st.st_dev) == 0) {
        davit_doctor_skip(d, "D29", "a block device below the files");
        return;
    }
    base = g_strdup_printf("/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
    whole = g_build_filename(base, "queue", "rotational", NULL);
    part = g_build_filename(base, "..", "queue", "rotational", NULL);
    rotates = MIN(number_in(whole), number_in(part));
    if (rotates == UINT64_MAX) {
        davit_doctor_skip(d, "D29", "a block device below the files");
        return;
    }
    /* a virtual disk says that it turns, whatever lies behind it */
    real = realpath(base, NULL);
    is_virtual = real && strstr(real, "virtio");
    free(real);
    davit_doctor_fact(d, "D29", "%s",
                      is_virtual ? "a virtual disk"
                      : rotates  ? "rotational"
                                 : "not rotational");
    if (rotates && !is_virtual)
        davit_doctor_say(d, "D29",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = base,
                                         .found = "rotational",
                                         .message = "the disk says that it turns; reads "
                                                    "out of order are slow"});
}

#define WINDOW_PAGES 16u
#define ALL_PAGES    16384u /* that are asked about, of all files together */

/* Pages of @source that are in memory, and all that were asked about: a large file is
 * sampled in windows at equal distances. */
static bool count_pages(const DavitSource *source, uint64_t budget, uint64_t *in,
                        uint64_t *all)
{
    const uint64_t n = davit_source_size(source);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t windows = n / page / WINDOW_PAGES + 1;
    const uint64_t asked = MIN(windows, MAX(budget / WINDOW_PAGES, 1u));
    unsigned char vec[WINDOW_PAGES];
    g_autoptr(DavitReport) aside = davit_report_new();
    const uint8_t *bytes;

    if (n == 0 || davit_source_view(source, 0, n, &bytes, aside) ||
        (uintptr_t)bytes % page != 0)
        return false;
    for (uint64_t w = 0; w < asked; w++) {
        const uint64_t off = w * (windows / asked) * WINDOW_PAGES * page;
        const uint64_t len = off < n ? MIN(WINDOW_PAGES * page, n - off) : 0;
        const uint64_t pages = (len + page - 1) / page;

        /* mincore takes the address without const and changes nothing */
        if (len && mincore((void *)(uintptr_t)(bytes + off), (size_t)len, vec) != 0)
            return false;
        for (uint64_t i = 0; i < pages; i++)
            *in += vec[i] & 1;
        *all += pages;
    }
    return true;
}

static void check_cached(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const size_t n = davit_checkpoint_n_files(c);
    uint64_t in = 0, all = 0;

    for (size_t i = 0; i < n; i++)
        if (!count_pages(davit_checkpoint_file(c, i).source, ALL_PAGES / n, &in, &all)) {
            davit_doctor_skip(d, "D30", "files that can be mapped");
            return;
        }
    davit_doctor_fact(d, "D30", "%.0f %% of the files are in memory",
                      100.0 * (double)in / (double)MAX(all, 1u));
}

void davit_check_machine(DavitDoctor *doctor)
{
    const DavitCheckpoint *c = doctor->patient.checkpoint;
    const DavitSource *first =
        c && davit_checkpoint_n_files(c) ? davit_checkpoint_file(c, 0).source : NULL;

    check_memory(doctor, check_limits(doctor));
    check_processors(doctor);
    check_nodes(doctor);
    check_pinning(doctor);
    if (!first || davit_source_fd(first) < 0) {
        static const char *const ids[] = {"D27", "D28", "D29", "D30"};

        for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
            davit_doctor_skip(doctor, ids[i], "weights that open");
        return;
    }
    check_fs(doctor, davit_source_fd(first));
    check_direct(doctor, first);
    check_disk(doctor, davit_source_fd(first));
    check_cached(doctor);
}
