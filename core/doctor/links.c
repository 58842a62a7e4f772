/* SPDX-License-Identifier: Apache-2.0
 * Links of the model's folder that lead to nothing: one finding, however many they are. What
 * opening said of each of them is dropped. */
#include <string.h>
#include <sys/stat.h>

#include "doctor/doctor_private.h"

#define SHOWN 4u

/* "../../blobs/4833eacf..." is enough of a hash to know it. (owned) */
static char *short_target(const char *target)
{
    const char *base = strrchr(target, '/');

    base = base ? base + 1 : target;
    return strlen(base) > 24 ? g_strdup_printf("%.*s%.12s...", (int)(base - target), target, base)
                             : g_strdup(target);
}

/* Names of links that lead to nothing. (owned, elements borrowed from the path) */
static GPtrArray *find_dangling(const DavitModelPath *path, GString *list, bool *blobs)
{
    GPtrArray *out = g_ptr_array_new();

    for (guint i = 0; i < path->names->len; i++) {
        char *name = g_ptr_array_index(path->names, i);
        g_autofree char *full = g_build_filename(path->dir, name, NULL);
        g_autofree char *target = NULL;
        g_autofree char *text = NULL;
        struct stat st;

        if (lstat(full, &st) != 0 || !S_ISLNK(st.st_mode) || stat(full, &st) == 0)
            continue;
        target = g_file_read_link(full, NULL);
        *blobs = *blobs || (target && strstr(target, "blobs/"));
        text = short_target(target ? target : "?");
        if (out->len < SHOWN)
            g_string_append_printf(list, "%s%s -> %s", out->len ? ", " : "", name, text);
        g_ptr_array_add(out, name);
    }
    if (out->len > SHOWN)
        g_string_append_printf(list, " and %u more", out->len - SHOWN);
    return out;
}

static bool is_of_link(const DavitRecord *r, const void *names)
{
    const GPtrArray *list = names;

    const bool absent = r->code == DAVIT_R_NOT_FOUND ||
                        (r->severity == DAVIT_NOTE && g_strcmp0(r->found, "absent") == 0);

    for (guint i = 0; absent && r->subject && i < list->len; i++)
        if (strcmp(r->subject, g_ptr_array_index(list, i)) == 0)
            return true;
    return false;
}

void davit_check_links(DavitDoctor *d)
{
    static const char *const ids[] = {"D14", "D35", "D38", "D39", "D40"};
    g_autoptr(GString) list = g_string_new(NULL);
    g_autoptr(GPtrArray) names = NULL;
    bool blobs = false;

    if (!d->patient.path.dir)
        return;
    names = find_dangling(&d->patient.path, list, &blobs);
    if (names->len == 0)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
        davit_doctor_drop(d, ids[i], is_of_link, names);
    davit_doctor_say(
        d, blobs ? "D35" : "D39",
        &(DavitFinding){
            .code = DAVIT_R_NOT_FOUND,
            .status = blobs ? DAVIT_E_CORRUPT : DAVIT_E_IO,
            .subject = names->len == 1 ? g_ptr_array_index(names, 0)
                                       : davit_doctor_text(d, "%u links", names->len),
            .expected = blobs ? "blobs of a hub cache at these places" : "a file at the link's end",
            .found = list->str,
            .message = blobs ? "links lead to nothing: a folder of a hub cache was copied with "
                               "its links and without its blobs, or the blobs are gone"
                             : "a link in the model's folder leads to nothing",
            .hint = blobs ? "copy the cache's folder with its links followed (cp -rL), or fetch "
                            "just these files"
                          : "fetch just these files, or bring back what the links lead to"});
}
