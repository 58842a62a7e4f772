/* SPDX-License-Identifier: Apache-2.0
 * One verdict per file, from its first probe and from what the page cache holds of it. */
#include "exec/reader.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/cached.h"
#include "source/direct.h"

#define SMALL (64u << 10) /* below, alignment costs more bytes than the cache costs time */

typedef struct File {
    const DavitSource *source; /* (borrowed) */
    int fd;                    /* past the cache; -1 = none */
    atomic_bool off;           /* refused a read: not tried again */
} File;

struct DavitReader {
    const DavitCheckpoint *checkpoint;
    bool every_read; /* also small ones */
    size_t n_files;
    File *files;
};

/* A file of which the cache holds half or more is read through it: a cached byte costs about a
 * fifth of one that the disk gives. mincore says "all of it" of a file that this user may not
 * write, and then the cache is used too. */
static bool wanted(const DavitSource *source, DavitCacheChoice choice, DavitLoadStats *stats)
{
    uint64_t probed = 0, cached = 0;
    davit_source_cached(source, &probed, &cached);
    stats->probed_pages += probed;
    stats->cached_pages += cached;
    return choice == DAVIT_CACHE_SKIP || (choice == DAVIT_CACHE_AUTO && cached < probed - cached);
}

/* File systems that refused, so that a thousand shards are not asked one by one. */
static bool refused_before(const GArray *refused, const DavitSource *source, uint64_t *out_dev)
{
    struct stat st;
    if (davit_source_fd(source) < 0 || fstat(davit_source_fd(source), &st) != 0)
        return true;
    *out_dev = st.st_dev;
    for (guint i = 0; i < refused->len; i++)
        if (g_array_index(refused, uint64_t, i) == *out_dev)
            return true;
    return false;
}

static int open_past_cache(const DavitSource *source, DavitOpenDirect *open, GArray *refused,
                           DavitLoadStats *stats)
{
    uint64_t dev;
    if (davit_source_size(source) < 2 * DAVIT_DIRECT_ALIGN || refused_before(refused, source, &dev))
        return -1;
    const int fd = open(source);
    if (fd < 0) {
        g_array_append_val(refused, dev);
        stats->direct_refused++;
        return -1;
    }
    stats->beside_bytes += DAVIT_DIRECT_ALIGN; /* the probe's read */
    stats->direct_files++;
    return fd;
}

DavitReader *davit_reader_new(const DavitCheckpoint *checkpoint, DavitCacheChoice choice,
                              DavitOpenDirect *open, DavitLoadStats *stats)
{
    g_autoptr(GArray) refused = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    DavitReader *reader = g_new0(DavitReader, 1);
    reader->checkpoint = checkpoint;
    reader->every_read = choice == DAVIT_CACHE_SKIP;
    reader->n_files = davit_checkpoint_n_files(checkpoint);
    reader->files = g_new0(File, reader->n_files);
    for (size_t i = 0; i < reader->n_files; i++) {
        File *file = &reader->files[i];
        file->source = davit_checkpoint_file(checkpoint, i).source;
        file->fd = wanted(file->source, choice, stats)
                       ? open_past_cache(file->source, open ? open : davit_source_open_direct,
                                         refused, stats)
                       : -1;
    }
    return reader;
}

void davit_reader_free(DavitReader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->n_files; i++)
        if (reader->files[i].fd >= 0)
            close(reader->files[i].fd);
    g_free(reader->files);
    g_free(reader);
}

/* ---- reading ---- */

/* [from, to) of the file, both aligned, to @mem until @need bytes are there: the last page may
 * end with the file. False = the cache must help. */
static bool read_past_cache(File *file, uint64_t from, uint64_t to, uint64_t need, uint8_t *mem,
                            DavitLoadStats *stats)
{
    uint64_t got = 0;
    while (got < need) {
        const ssize_t n = pread(file->fd, mem + got, (size_t)MIN(to - from - got, 1ull << 30),
                                (off_t)(from + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EIO)
            atomic_store(&file->off, true);
        if (n > 0) {
            got += (uint64_t)n;
            stats->beside_bytes += (uint64_t)n;
        }
        /* the rest of a read that ended inside a block cannot be asked for */
        if (n <= 0 || (got < need && got % DAVIT_DIRECT_ALIGN != 0))
            return false;
    }
    return true;
}

int32_t davit_reader_stage(DavitReader *reader, uint32_t file, uint64_t off, uint64_t n_bytes,
                           uint8_t *mem, const uint8_t **out, DavitLoadStats *stats,
                           DavitReport *report)
{
    File *f = &reader->files[file];
    const uint64_t from = off / DAVIT_DIRECT_ALIGN * DAVIT_DIRECT_ALIGN;
    const uint64_t size = davit_source_size(f->source);
    *out = mem;
    /* offsets are the plan's, inside the file; one that is not is the buffered read's to tell */
    if (f->fd >= 0 && n_bytes > 0 && off <= size && n_bytes <= size - off &&
        (n_bytes >= SMALL || reader->every_read) && !atomic_load(&f->off)) {
        const uint64_t need = off - from + n_bytes;
        const uint64_t to = from + (need + DAVIT_DIRECT_ALIGN - 1) / DAVIT_DIRECT_ALIGN *
                                       DAVIT_DIRECT_ALIGN;
        if (read_past_cache(f, from, to, need, mem, stats)) {
            *out = mem + (off - from);
            stats->direct_bytes += n_bytes;
            stats->beside_bytes -= n_bytes;
            return DAVIT_OK;
        }
    }
    return davit_checkpoint_read(reader->checkpoint, file, off, mem, n_bytes, report);
}

int32_t davit_reader_read(DavitReader *reader, uint32_t file, uint64_t off, uint64_t n_bytes,
                          uint8_t *to, const DavitBounce *bounce, DavitLoadStats *stats,
                          DavitReport *report)
{
    if (reader->files[file].fd < 0 || bounce->n_bytes <= DAVIT_READ_SLACK)
        return davit_checkpoint_read(reader->checkpoint, file, off, to, n_bytes, report);
    const uint64_t step = bounce->n_bytes - DAVIT_READ_SLACK;
    for (uint64_t at = 0; at < n_bytes; at += step) {
        const uint64_t n = MIN(n_bytes - at, step);
        const uint8_t *from;
        const int32_t status = davit_reader_stage(reader, file, off + at, n, bounce->mem, &from,
                                                  stats, report);
        if (status)
            return status;
        memcpy(to + at, from, n);
    }
    return DAVIT_OK;
}
