/* SPDX-License-Identifier: Apache-2.0
 * Where ranks meet. "fd=N": memory without a name that the first process made and its children
 * inherit. "NAME": a POSIX shared memory object that exists until all have come. Whoever enters
 * holds the entrance, one at a time; the first (nobody alive is in) lays the segment out afresh,
 * so that what a killed run left under a name is no obstacle. */
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <davit/help/records.h>

#define ENTRANCE   DAVIT_COMM_MAX_RANKS /* the byte that an entering rank locks */
#define PAGE       4096u
#define SPIN_TURNS 2000u
#define NAME_BYTES 64u

/* ---- locks ---- */

/* -1 and errno EAGAIN or EACCES: another process has it. */
static int lock_byte(int fd, uint64_t byte, short type)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};

    return fcntl(fd, F_SETLK, &lock);
}

static int is_locked(int fd, uint64_t byte)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};

    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int32_t shm_find_gone(const shm_group *g)
{
    for (uint64_t r = 0; r < g->size; r++)
        if (r != g->rank && atomic_load(&g->head->present[r]) && !is_locked(g->fd, r))
            return (int32_t)r;
    return -1;
}

static int anybody_in(int fd)
{
    for (uint64_t r = 0; r < DAVIT_COMM_MAX_RANKS; r++)
        if (is_locked(fd, r))
            return 1;
    return 0;
}

/* ---- records ---- */

static int32_t refuse(const davit_sink *sink, const davit_comm_open_in *in, int32_t status,
                      const char *expected, const char *found, const char *message)
{
    return davit_say(sink, status,
                     &(davit_refusal){.code = status == DAVIT_E_USAGE ? DAVIT_R_USAGE
                                                                      : DAVIT_R_RANK_LOST,
                                      .subject = in->address && *in->address ? in->address
                                                                             : "shm",
                                      .expected = expected,
                                      .found = found,
                                      .message = message});
}

static int32_t refuse_errno(const davit_sink *sink, const char *subject, const char *message)
{
    return davit_say(sink, DAVIT_E_IO,
                     &(davit_refusal){.code = DAVIT_R_IO_FAILED,
                                      .subject = subject,
                                      .found = strerror(errno),
                                      .message = message});
}

/* ---- addresses ---- */

int32_t shm_new_address(void *self, uint64_t size, char out[DAVIT_COMM_ADDRESS],
                        const davit_sink *sink)
{
    int fd;
    (void)self;
    (void)size;

    fd = memfd_create("davit-ranks", 0); /* inherited: the ranks are children */
    if (fd < 0)
        return refuse_errno(sink, "ranks", "no shared memory for the ranks");
    snprintf(out, DAVIT_COMM_ADDRESS, "fd=%d", fd);
    return DAVIT_OK;
}

static int name_is_plain(const char *name)
{
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-");

    return n > 0 && n <= NAME_BYTES && name[n] == '\0';
}

/* The object behind a name, made if it is not there; nobody else's. */
static int32_t open_named(shm_group *g, const davit_comm_open_in *in, const davit_sink *sink)
{
    struct stat st;

    if (!name_is_plain(in->address))
        return refuse(sink, in, DAVIT_E_USAGE, "up to 64 letters, digits, '.', '_', '-'; or fd=N",
                      in->address, "the ranks cannot meet under this name");
    snprintf(g->name, sizeof g->name, "/davit-%u-%s", (unsigned)geteuid(), in->address);
    g->fd = shm_open(g->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (g->fd < 0)
        return refuse_errno(sink, in->address, "shared memory of this name cannot be opened");
    if (fstat(g->fd, &st) || st.st_uid != geteuid() || (st.st_mode & 077))
        return refuse(sink, in, DAVIT_E_USAGE, "memory of this user that nobody else may open",
                      NULL, "shared memory of this name is not this user's alone");
    return DAVIT_OK;
}

static int32_t open_inherited(shm_group *g, const davit_comm_open_in *in, const davit_sink *sink)
{
    char *end;
    const long fd = strtol(in->address + 3, &end, 10);
    struct stat st;

    if (end == in->address + 3 || *end || fd < 3 || fd > INT32_MAX || fstat((int)fd, &st) ||
        !S_ISREG(st.st_mode) || st.st_nlink != 0 ||
        fcntl((int)fd, F_SETFD, FD_CLOEXEC)) /* not for what this process starts later */
        return refuse(sink, in, DAVIT_E_USAGE, "memory that davit made for its ranks", in->address,
                      "this file is not where ranks meet");
    g->fd = (int)fd;
    return DAVIT_OK;
}

/* ---- entering ---- */

static int time_is_up(const davit_comm_open_in *in, int64_t start)
{
    return shm_now_ms() - start > (int64_t)in->timeout_ms || (in->cancelled && in->cancelled(in->ctx));
}

static int32_t hold_entrance(const shm_group *g, const davit_comm_open_in *in, int64_t start,
                             const davit_sink *sink)
{
    const struct timespec pause = {.tv_nsec = 2000000l};

    while (lock_byte(g->fd, ENTRANCE, F_WRLCK)) {
        if (errno != EAGAIN && errno != EACCES)
            return refuse_errno(sink, in->address, "shared memory cannot be locked");
        if (time_is_up(in, start))
            return refuse(sink, in, DAVIT_E_IO, NULL, NULL,
                          "another rank holds the entrance for too long");
        nanosleep(&pause, NULL);
    }
    return DAVIT_OK;
}

/* The object, its entrance held, still under its name: the last to come takes the name away. */
static int32_t enter(shm_group *g, const davit_comm_open_in *in, int64_t start,
                     const davit_sink *sink)
{
    const int named = strncmp(in->address, "fd=", 3) != 0;

    for (;;) {
        struct stat st;
        int32_t status = named ? open_named(g, in, sink) : open_inherited(g, in, sink);

        if (!status)
            status = hold_entrance(g, in, start, sink);
        if (status || !named)
            return status;
        if (fstat(g->fd, &st) == 0 && st.st_nlink > 0)
            return DAVIT_OK;
        close(g->fd); /* of a run that is complete: ours is another */
        g->fd = -1;
    }
}

/* The first lays the segment out. What it could not have it leaves no name of. */
static int32_t make_segment(shm_group *g, const davit_sink *sink)
{
    char found[128];
    int failed = ftruncate(g->fd, 0) ? errno : posix_fallocate(g->fd, 0, (off_t)g->n_file);

    if (!failed)
        return DAVIT_OK;
    snprintf(found, sizeof found, "%llu KiB: %s", (unsigned long long)(g->n_file >> 10),
             strerror(failed));
    if (*g->name)
        shm_unlink(g->name);
    return davit_say(sink, DAVIT_E_IO,
                     &(davit_refusal){
                         .code = DAVIT_R_IO_FAILED,
                         .subject = *g->name ? "/dev/shm" : "ranks",
                         .found = found,
                         .message = "there is no shared memory for the ranks",
                         .hint = *g->name ? "make room in /dev/shm, or leave --comm out: ranks that "
                                            "davit starts itself meet elsewhere"
                                          : "raise the limit on memory or on file sizes (ulimit -f), "
                                            "or take fewer ranks"});
}

static int32_t map_segment(shm_group *g, const davit_comm_open_in *in, const davit_sink *sink)
{
    const uint64_t n_head = (sizeof(shm_head) + PAGE - 1) / PAGE * PAGE;
    const int first = !anybody_in(g->fd);
    struct stat st;
    void *base;

    g->n_mapped = g->n_file = n_head + 2 * g->size * SHM_BUFFER;
    if (first && make_segment(g, sink))
        return DAVIT_E_IO;
    if (fstat(g->fd, &st) || (uint64_t)st.st_size != g->n_file)
        return refuse(sink, in, DAVIT_E_USAGE, "the number of ranks that the others were given",
                      NULL, "the ranks disagree about how many they are");
    base = mmap(NULL, g->n_mapped, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
    if (base == MAP_FAILED)
        return refuse_errno(sink, in->address, "shared memory cannot be mapped");
    g->head = base;
    g->buffers = (uint8_t *)base + n_head;
    if (first) {
        g->head->size = g->size;
        g->head->magic = SHM_MAGIC;
    }
    if (g->head->magic != SHM_MAGIC || g->head->size != g->size)
        return refuse(sink, in, DAVIT_E_USAGE, "a segment of this version of davit", NULL,
                      "the ranks are not of one version");
    return DAVIT_OK;
}

static int32_t take_place(shm_group *g, const davit_comm_open_in *in, const davit_sink *sink)
{
    char found[48];

    if (lock_byte(g->fd, g->rank, F_WRLCK) || atomic_load(&g->head->present[g->rank])) {
        snprintf(found, sizeof found, "rank %u is there already", (unsigned)g->rank);
        return refuse(sink, in, DAVIT_E_USAGE, "every rank once", found,
                      "another rank has this place");
    }
    g->joined = 1;
    atomic_store(&g->head->present[g->rank], 1);
    if (atomic_fetch_add(&g->head->n_joined, 1) + 1 == g->size && *g->name)
        shm_unlink(g->name);
    shm_wake(&g->head->n_joined);
    return DAVIT_OK;
}

static int32_t wait_for_all(shm_group *g, const davit_comm_open_in *in, int64_t start,
                            const davit_sink *sink)
{
    uint32_t n;

    while ((n = atomic_load(&g->head->n_joined)) < g->size) {
        const int given_up = in->cancelled && in->cancelled(in->ctx);
        char expected[32], found[32];

        if (shm_wait_tick(g, &g->head->n_joined, n) == DAVIT_OK &&
            (atomic_load(&g->head->n_joined) == g->size || !time_is_up(in, start)))
            continue;
        snprintf(expected, sizeof expected, "%u ranks", (unsigned)g->size);
        snprintf(found, sizeof found, "%u", (unsigned)n);
        shm_fail(g, "the ranks did not come together", -1);
        if (*g->name)
            shm_unlink(g->name);
        return refuse(sink, in, DAVIT_E_IO, expected, found,
                      given_up ? "a rank has ended before all had come, or waiting was given up"
                               : "the ranks did not come together in time");
    }
    return DAVIT_OK;
}

static uint32_t spin_turns(uint64_t size)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && (uint64_t)CPU_COUNT(&set) >= size
               ? SPIN_TURNS
               : 0;
}

int32_t shm_open_group(void *self, const davit_comm_open_in *in, void **out_group,
                       const davit_sink *sink)
{
    const int64_t start = shm_now_ms();
    shm_group *g;
    int32_t status;
    (void)self;

    if (!in->address || in->size == 0 || in->size > DAVIT_COMM_MAX_RANKS || in->rank >= in->size)
        return refuse(sink, in, DAVIT_E_USAGE, "1 to 64 ranks, and one of them", NULL,
                      "rank and number of ranks do not fit");
    g = calloc(1, sizeof *g);
    if (!g)
        return refuse_errno(sink, "ranks", "no memory");
    g->rank = in->rank;
    g->size = in->size;
    g->fd = -1;
    g->gone = -1;
    g->cancelled = in->cancelled;
    g->ctx = in->ctx;
    g->spin_turns = spin_turns(in->size);
    status = enter(g, in, start, sink);
    if (!status)
        status = map_segment(g, in, sink);
    if (!status)
        status = take_place(g, in, sink);
    if (!status) {
        lock_byte(g->fd, ENTRANCE, F_UNLCK);
        status = wait_for_all(g, in, start, sink);
    }
    if (status)
        shm_close_group(g);
    else
        *out_group = g;
    return status;
}

void shm_close_group(void *group)
{
    shm_group *g = group;

    if (!g)
        return;
    if (g->joined)
        shm_fail(g, "this rank has left", (int32_t)g->rank);
    for (uint32_t w = 0; w < g->n_windows; w++)
        munmap(g->window[w].base, g->window[w].n_bytes);
    if (g->head)
        munmap(g->head, g->n_mapped);
    if (g->fd >= 0)
        close(g->fd); /* and with it all locks of this process */
    free(g);
}
