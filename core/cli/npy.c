/* SPDX-License-Identifier: Apache-2.0
 * Output files: written under a temporary name beside the final one, then renamed, so that an
 * interrupted run leaves nothing half-done under its name. */
#include "cli/npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int32_t failed(const char *path, const char *what, DavitReport *report)
{
    return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                                    .status = DAVIT_E_IO,
                                                    .stage = "write",
                                                    .subject = path,
                                                    .found = g_strerror(errno),
                                                    .message = what});
}

/* Where a chain of links ends, so that the link stays and its target is replaced. (owned) */
static char *follow(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = g_strdup(real ? real : path);
    free(real);
    return copy;
}

int32_t davit_outfile_open(DavitOut *out, const char *path, DavitReport *report)
{
    struct stat st;
    *out = (DavitOut){.file = stdout};
    if (!path || strcmp(path, "-") == 0)
        return DAVIT_OK;
    out->path = follow(path);
    if (stat(out->path, &st) != 0 || S_ISREG(st.st_mode))
        out->temp = g_strdup_printf("%s.part-%ld", out->path, (long)getpid());
    out->file = fopen(out->temp ? out->temp : out->path, "wb");
    if (out->file)
        return DAVIT_OK;
    const int32_t status = failed(path, "the file could not be created", report);
    g_clear_pointer(&out->path, g_free);
    g_clear_pointer(&out->temp, g_free);
    return status;
}

int32_t davit_outfile_close(DavitOut *out, bool ok, DavitReport *report)
{
    int32_t status = DAVIT_OK;
    if (!out->path) {
        if (fflush(stdout) != 0 && ok)
            status = failed("stdout", "the result could not be written", report);
        return status;
    }
    ok = ok && !ferror(out->file);
    if (fclose(out->file) != 0 || !ok || (out->temp && rename(out->temp, out->path) != 0)) {
        if (!davit_report_failed(report))
            status = failed(out->path, "the file could not be written", report);
        if (out->temp)
            unlink(out->temp);
    }
    g_free(out->path);
    g_free(out->temp);
    *out = (DavitOut){0};
    return status;
}

bool davit_npy_header(FILE *file, const uint64_t *shape, uint32_t rank)
{
    g_autoptr(GString) text = g_string_new("{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (uint32_t i = 0; i < rank; i++)
        g_string_append_printf(text, "%" G_GUINT64_FORMAT ",%s", shape[i],
                               i + 1 < rank ? " " : "");
    g_string_append(text, "), }");
    /* magic 6, version 2, length 2, text, newline: a multiple of 64 */
    while ((10 + text->len + 1) % 64 != 0)
        g_string_append_c(text, ' ');
    g_string_append_c(text, '\n');
    const unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0,
                                    (unsigned char)(text->len & 255),
                                    (unsigned char)(text->len >> 8)};
    return fwrite(head, 1, sizeof head, file) == sizeof head &&
           fwrite(text->str, 1, text->len, file) == text->len;
}
