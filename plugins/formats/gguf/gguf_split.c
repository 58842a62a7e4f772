/* SPDX-License-Identifier: Apache-2.0
 * Split files, PREFIX-00001-of-00003.gguf: the keys of one file against its own name.
 * That the set as a whole is complete is settled by the core. */
#include "gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Longest file name of Linux, with its NUL. */
#define MAX_FILE_NAME 256

static int read_five(const char *p, int64_t *out)
{
    int64_t n = 0;

    for (int i = 0; i < 5; i++) {
        if (p[i] < '0' || p[i] > '9')
            return 0;
        n = n * 10 + (p[i] - '0');
    }
    *out = n;
    return 1;
}

/* Bytes of the prefix, or -1 if @name is no shard name. */
static int64_t parse_name(const char *name, int64_t *out_no, int64_t *out_count)
{
    const size_t n = strlen(name);
    const size_t n_tail = strlen("-00001-of-00003.gguf");
    const char *tail = name + n - n_tail;

    if (n <= n_tail || n >= MAX_FILE_NAME || strcmp(tail + 15, ".gguf") != 0)
        return -1;
    if (tail[0] != '-' || memcmp(tail + 6, "-of-", 4) != 0)
        return -1;
    if (!read_five(tail + 1, out_no) || !read_five(tail + 10, out_count))
        return -1;
    return (int64_t)(n - n_tail);
}

static int32_t disagree(gguf_open *o, int64_t no, int64_t count)
{
    char found[64];

    if (o->split_count < 0)
        snprintf(found, sizeof found, "no split keys");
    else
        snprintf(found, sizeof found, "split.no %" PRId64 ", split.count %" PRId64,
                 o->split_no, o->split_count);
    char expected[96];
    if (no < 0)
        snprintf(expected, sizeof expected,
                 "a name PREFIX-%05" PRId64 "-of-%05" PRId64 ".gguf", o->split_no + 1,
                 o->split_count);
    else
        snprintf(expected, sizeof expected, "split.no %" PRId64 ", split.count %" PRId64,
                 no - 1, count);
    return gguf_find(
        o, (davit_span){NULL, 0}, DAVIT_E_MISMATCH,
        &(davit_refusal){.code = DAVIT_R_SHARD_MISMATCH,
                         .expected = expected,
                         .found = found,
                         .message = "the file's name and its split keys disagree",
                         .hint = "give the file the name it was written with"});
}

static int32_t give_files(gguf_open *o, size_t n_prefix)
{
    char file[MAX_FILE_NAME + 32];

    for (int64_t i = 1; i <= o->split_count; i++) {
        snprintf(file, sizeof file, "%.*s-%05" PRId64 "-of-%05" PRId64 ".gguf",
                 (int)n_prefix, o->name, i, o->split_count);
        const davit_shard_ref ref = {.struct_size = DAVIT_END(davit_shard_ref, tensor),
                                     .file = {file, strlen(file)}};
        const int32_t status = o->out->shard(o->out->ctx, &ref);

        if (status)
            return status;
    }
    return DAVIT_OK;
}

int32_t gguf_check_split(gguf_open *o)
{
    int64_t no = -1;
    int64_t count = -1;
    const int64_t n_prefix = parse_name(o->name, &no, &count);

    if (o->split_count <= 1) {
        /* A whole file may be called anything, but not "1 of 3". */
        return count > 1 ? disagree(o, no, count) : DAVIT_OK;
    }
    if (n_prefix < 0 || count != o->split_count || no != o->split_no + 1)
        return disagree(o, no, count);
    return give_files(o, (size_t)n_prefix);
}
