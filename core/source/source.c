/* SPDX-License-Identifier: Apache-2.0
 * Local files and byte strings as sources. Reading is pread; the mapping is made at the
 * first view and covers the whole file, so every view of a source shares one mapping. */
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <davit/help/bytes.h>

#include "source/guard.h"

struct davit_source {
    char *path; /* "" if from bytes */
    char *name;
    int fd;             /* -1 if from bytes */
    uint64_t n_bytes;   /* at open */
    struct stat opened; /* what fstat said at open */
    GMutex lock;        /* guards map */
    const uint8_t *map; /* whole file, NULL until the first view; or the given bytes */
};

static int32_t fail(DavitReport *report, uint32_t code, int32_t status,
                    const char *subject, const char *found, const char *message)
{
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = status,
                                                    .stage = "source",
                                                    .subject = subject,
                                                    .found = found,
                                                    .message = message});
}

static const char *file_type(mode_t mode)
{
    if (S_ISDIR(mode))
        return "directory";
    if (S_ISFIFO(mode))
        return "FIFO";
    if (S_ISSOCK(mode))
        return "socket";
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "device";
    return "special file";
}

/* Opens @source->path; false after a record. */
static bool open_file(DavitSource *source, DavitReport *report)
{
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (source->fd < 0) {
        const bool absent = errno == ENOENT || errno == ENOTDIR;

        fail(report, absent ? DAVIT_R_NOT_FOUND : DAVIT_R_IO_FAILED, DAVIT_E_IO,
             source->path, g_strerror(errno), "the file cannot be opened");
        return false;
    }
    if (fstat(source->fd, &source->opened) != 0) {
        fail(report, DAVIT_R_IO_FAILED, DAVIT_E_IO, source->path, g_strerror(errno),
             "the file cannot be examined");
        return false;
    }
    if (!S_ISREG(source->opened.st_mode)) {
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_NOT_REGULAR,
                                         .status = DAVIT_E_UNSUPPORTED,
                                         .stage = "source",
                                         .subject = source->path,
                                         .expected = "regular file",
                                         .found = file_type(source->opened.st_mode),
                                         .message = "only regular files are read"});
        return false;
    }
    source->n_bytes = (uint64_t)source->opened.st_size;
    return true;
}

DavitSource *davit_source_open(const char *path, DavitReport *report)
{
    g_autoptr(DavitSource) source = g_new0(DavitSource, 1);

    g_mutex_init(&source->lock);
    source->path = g_strdup(path);
    source->name = g_path_get_basename(path);
    if (!open_file(source, report))
        return NULL;
    return g_steal_pointer(&source);
}

DavitSource *davit_source_from_bytes(const char *name, const uint8_t *data,
                                     uint64_t n_bytes)
{
    DavitSource *source = g_new0(DavitSource, 1);

    g_mutex_init(&source->lock);
    source->path = g_strdup("");
    source->name = g_strdup(name);
    source->fd = -1;
    source->n_bytes = n_bytes;
    source->map = data;
    return source;
}

void davit_source_free(DavitSource *source)
{
    if (!source)
        return;
    if (source->fd >= 0) {
        if (source->map) {
            davit_guard_remove(source->map);
            munmap((void *)(uintptr_t)source->map, (size_t)source->n_bytes);
        }
        close(source->fd);
    }
    g_mutex_clear(&source->lock);
    g_free(source->path);
    g_free(source->name);
    g_free(source);
}

uint64_t davit_source_size(const DavitSource *source)
{
    return source->n_bytes;
}

const char *davit_source_name(const DavitSource *source)
{
    return source->name;
}

const char *davit_source_path(const DavitSource *source)
{
    return source->path;
}

int davit_source_fd(const DavitSource *source)
{
    return source->fd;
}

/* ---- checks ---- */

/* Once is enough: after it has changed every look at it says so. */
static bool is_told(const DavitSource *source, const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);

        if (r->code == DAVIT_R_FILE_CHANGED && g_strcmp0(r->subject, source->name) == 0)
            return true;
    }
    return false;
}

int32_t davit_source_check(const DavitSource *source, DavitReport *report)
{
    struct stat now;

    if (source->fd < 0)
        return DAVIT_OK;
    if (fstat(source->fd, &now) != 0)
        return fail(report, DAVIT_R_IO_FAILED, DAVIT_E_IO, source->name,
                    g_strerror(errno), "the file cannot be examined");
    if (now.st_size == source->opened.st_size &&
        now.st_mtim.tv_sec == source->opened.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == source->opened.st_mtim.tv_nsec)
        return DAVIT_OK;
    if (is_told(source, report))
        return DAVIT_E_IO;
    if (now.st_size != source->opened.st_size)
        return davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_FILE_CHANGED,
                            .status = DAVIT_E_IO,
                            .stage = "source",
                            .subject = source->name,
                            .expected = davit_report_text(report, "%" PRIu64 " bytes",
                                                          source->n_bytes),
                            .found = davit_report_text(report, "%" PRIu64 " bytes",
                                                       (uint64_t)now.st_size),
                            .message = "the file's size changed after it was opened"});
    return fail(report, DAVIT_R_FILE_CHANGED, DAVIT_E_IO, source->name, "another time of writing",
                "the file was written to after it was opened");
}

/* The range lies inside the file, or a record. */
static int32_t check_range(const DavitSource *source, uint64_t off, uint64_t n_bytes,
                           DavitReport *report)
{
    if (davit_bytes_inside(off, n_bytes, source->n_bytes))
        return DAVIT_OK;
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_TENSOR_OUT_OF_FILE,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "source",
                        .subject = source->name,
                        .expected = davit_report_text(report, "at most %" PRIu64 " bytes",
                                                      source->n_bytes),
                        .found = davit_report_text(
                            report, "%" PRIu64 " bytes at %" PRIu64, n_bytes, off),
                        .message = "a read would pass the end of the file"});
}

/* ---- reading ---- */

int32_t davit_source_read(const DavitSource *source, uint64_t off, void *buf,
                          uint64_t n_bytes, DavitReport *report)
{
    uint8_t *to = buf;
    const int32_t status = check_range(source, off, n_bytes, report);

    if (status)
        return status;
    if (source->fd < 0) {
        if (n_bytes)
            memcpy(buf, source->map + off, (size_t)n_bytes);
        return DAVIT_OK;
    }
    while (n_bytes > 0) {
        /* 1 GiB at a time: Linux moves at most 2^31 - 4096 bytes in one call. */
        const size_t want = (size_t)MIN(n_bytes, (uint64_t)1 << 30);
        const ssize_t got = pread(source->fd, to, want, (off_t)off);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(report, DAVIT_R_IO_FAILED, DAVIT_E_IO, source->name,
                        g_strerror(errno), "a read failed");
        if (got == 0)
            return fail(report, DAVIT_R_FILE_CHANGED, DAVIT_E_IO, source->name,
                        davit_report_text(report, "%" PRIu64 " bytes", (uint64_t)off),
                        "the file was cut after it was opened");
        to += got;
        off += (uint64_t)got;
        n_bytes -= (uint64_t)got;
    }
    return DAVIT_OK;
}

/* The whole file mapped, once. Views are handed out of a const source; only the cached
 * mapping behind the lock changes. */
static const uint8_t *map_file(const DavitSource *source)
{
    DavitSource *self = (DavitSource *)(uintptr_t)source;
    const uint8_t *map;

    g_mutex_lock(&self->lock);
    if (!self->map && self->n_bytes > 0 && self->n_bytes <= SIZE_MAX) {
        void *p = mmap(NULL, (size_t)self->n_bytes, PROT_READ, MAP_SHARED, self->fd, 0);

        if (p != MAP_FAILED) {
            self->map = p;
            davit_guard_add(p, (size_t)self->n_bytes);
        }
    }
    map = self->map;
    g_mutex_unlock(&self->lock);
    return map;
}

int32_t davit_source_view(const DavitSource *source, uint64_t off, uint64_t n_bytes,
                          const uint8_t **out_bytes, DavitReport *report)
{
    static const uint8_t nothing[1];
    int32_t status = check_range(source, off, n_bytes, report);
    const uint8_t *map;

    if (!status && source->fd >= 0)
        status = davit_source_check(source, report);
    if (status)
        return status;
    if (n_bytes == 0) {
        *out_bytes = nothing;
        return DAVIT_OK;
    }
    map = source->fd < 0 ? source->map : map_file(source);
    if (!map)
        return fail(report, DAVIT_R_IO_FAILED, DAVIT_E_IO, source->name,
                    g_strerror(errno), "the file cannot be mapped");
    *out_bytes = map + off;
    return DAVIT_OK;
}

void davit_source_want(const DavitSource *source, uint64_t off, uint64_t n_bytes)
{
    if (source->fd >= 0)
        (void)posix_fadvise(source->fd, (off_t)off, (off_t)n_bytes, POSIX_FADV_WILLNEED);
}

void davit_source_drop(const DavitSource *source, uint64_t off, uint64_t n_bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t first = (off + page - 1) / page * page;
    const uint64_t end = (off + n_bytes) / page * page;

    if (source->fd < 0 || !source->map || end <= first)
        return;
    madvise((void *)(uintptr_t)(source->map + first), (size_t)(end - first), MADV_DONTNEED);
}

/* ---- the "io" suite ---- */

/* Hands the records of @from to a plugin's sink. */
static int32_t forward(const DavitReport *from, const davit_sink *sink, int32_t status)
{
    for (size_t i = 0; sink && i < davit_report_count(from); i++) {
        const DavitRecord *r = davit_report_get(from, i);
        const davit_refusal out = {.struct_size = DAVIT_END(davit_refusal, url),
                                   .code = r->code,
                                   .subject = r->subject,
                                   .expected = r->expected,
                                   .found = r->found,
                                   .message = r->message,
                                   .hint = r->hint};

        sink->refuse(sink->ctx, &out);
    }
    return status;
}

static int32_t io_read(const davit_source *source, uint64_t off, void *buf,
                       uint64_t n_bytes, const davit_sink *sink)
{
    g_autoptr(DavitReport) report = davit_report_new();

    return forward(report, sink, davit_source_read(source, off, buf, n_bytes, report));
}

static int32_t io_view(const davit_source *source, uint64_t off, uint64_t n_bytes,
                       const uint8_t **out_bytes, const davit_sink *sink)
{
    g_autoptr(DavitReport) report = davit_report_new();

    return forward(report, sink,
                   davit_source_view(source, off, n_bytes, out_bytes, report));
}

const davit_io_suite *davit_io_suite_get(void)
{
    static const davit_io_suite suite = {
        .struct_size = DAVIT_END(davit_io_suite, view),
        .size = davit_source_size,
        .name = davit_source_name,
        .read = io_read,
        .view = io_view,
    };

    return &suite;
}
