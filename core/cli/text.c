/* SPDX-License-Identifier: Apache-2.0
 * Small pieces that several commands print or open. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"

DavitRegistry *davit_call_registry(DavitCall *call)
{
    g_autofree const char **paths = davit_call_list(call, "plugin-path");
    g_autofree const char **trusted = davit_call_list(call, "trust-dir");
    const DavitRegistryOptions where = {.plugin_paths = paths, .trust_dirs = trusted,
                                        .allow_draft = davit_call_has(call, "allow-draft")};
    DavitRegistry *registry = davit_registry_open(&where, call->report);
    if (davit_report_failed(call->report))
        g_clear_pointer(&registry, davit_registry_free);
    return registry;
}

json_t *davit_json_text(const char *text)
{
    return davit_json_text_n(text, strlen(text));
}

json_t *davit_json_text_n(const char *text, size_t n)
{
    json_t *as_is = json_stringn(text, n);
    if (as_is)
        return as_is;
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)n); /* a NUL becomes U+FFFD, too */
    return json_string(valid);
}

const char *davit_shown(const char *text)
{
    static char *kept[16]; /* the program prints from one thread */
    static unsigned at;
    at = (at + 1) % G_N_ELEMENTS(kept);
    g_free(kept[at]);
    kept[at] = davit_escape(text, strlen(text), 4096);
    return kept[at];
}

size_t davit_terminal_columns(int fd)
{
    struct winsize size = {0};
    if (!isatty(fd))
        return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return MAX(size.ws_col, 40);
}

char *davit_wrap(const char *text, size_t columns, size_t indent)
{
    GString *out = g_string_new(NULL);
    size_t at = 0; /* columns of the current line */
    for (const char *word = text; *word;) {
        const size_t blanks = strspn(word, " ");
        const size_t n = strcspn(word + blanks, " ");
        const size_t width = (size_t)g_utf8_strlen(word + blanks, (gssize)n);
        if (columns && at > indent && at + blanks + width > columns) {
            g_string_append_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else {
            g_string_append_len(out, word, (gssize)blanks);
            at += blanks;
        }
        g_string_append_len(out, word + blanks, (gssize)n);
        at += width;
        word += blanks + n;
    }
    return g_string_free(out, FALSE);
}

char *davit_bytes_text(uint64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)n;
    size_t u = 0;
    while (x >= 1024 && u + 1 < G_N_ELEMENTS(units)) {
        x /= 1024;
        u++;
    }
    return u == 0 ? g_strdup_printf("%" G_GUINT64_FORMAT " bytes", n)
                  : g_strdup_printf("%.1f %s", x, units[u]);
}
