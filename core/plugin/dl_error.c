/* SPDX-License-Identifier: Apache-2.0
 * The loader has no error codes; what it says is matched by its sentences (glibc). What
 * is not recognised is shown as it is. */
#include "plugin/dl_error.h"

#include <string.h>

static int32_t refuse(DavitReport *report, uint32_t code, const char *subject,
                      const char *found, const char *message, const char *hint)
{
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = DAVIT_E_UNSUPPORTED,
                                                    .stage = "dlopen",
                                                    .subject = subject,
                                                    .found = found,
                                                    .message = message,
                                                    .hint = hint});
}

/* (owned) text between @from and the first byte of @stops after it. */
static char *word_after(const char *from, const char *stops)
{
    return g_strndup(from, strcspn(from, stops));
}

static int32_t undefined_symbol(const char *path, const char *name, DavitReport *report)
{
    const char *hint =
        "link the library that has the symbol, and build with -Wl,-z,defs so "
        "that the linker finds this";
    const char *message = "a symbol that the plugin needs is provided by nobody";

    if (g_str_has_prefix(name, "davit_")) {
        message =
            "the plugin expects the core to export this; plugins get what they need from "
            "the host's suites";
        hint =
            "take it from a suite of davit_host, link libdavit-sdk.a for the helpers of "
            "davit/help, and build with -Wl,-z,defs";
    } else if (g_str_has_prefix(name, "__asan") || g_str_has_prefix(name, "__ubsan") ||
               g_str_has_prefix(name, "__tsan")) {
        message = "the plugin is built with a sanitizer and this davit is not";
        hint = "build the plugin without -fsanitize";
    }
    return refuse(report, DAVIT_R_UNDEFINED_SYMBOL, name, path, message, hint);
}

static int32_t missing_dep(const char *path, const char *name, DavitReport *report)
{
    return refuse(report, DAVIT_R_MISSING_DEP, name,
                  davit_report_text(report, "not found, needed by %s", path),
                  "a library that the plugin needs is not on this machine",
                  "install it, or have the plugin open it itself when it is used");
}

int32_t davit_dl_error(const char *path, const char *text, DavitReport *report)
{
    static const char undefined[] = "undefined symbol: ";
    static const char no_open[] = ": cannot open shared object file";
    static const char version[] = ": version `";
    const char *at;

    if (!text)
        text = "no reason given";
    at = strstr(text, undefined);
    if (at) {
        g_autofree char *name = word_after(at + strlen(undefined), " ,\t\n(");

        return undefined_symbol(path, name, report);
    }
    at = strstr(text, no_open);
    if (at) {
        g_autofree char *name = g_strndup(text, (gsize)(at - text));

        if (strcmp(name, path) != 0)
            return missing_dep(path, name, report);
    }
    at = strstr(text, version);
    if (at && strstr(at, "not found")) {
        g_autofree char *name = word_after(at + strlen(version), "'");

        return refuse(report, DAVIT_R_MISSING_DEP, name, text,
                      "the plugin is built for a newer library than this machine has",
                      "get a build for an older system, or update the library");
    }
    if (strstr(text, "static TLS block"))
        return refuse(report, DAVIT_R_STATIC_TLS, path, text,
                      "the loader has no static thread-local storage left",
                      "compile the plugin without -ftls-model=initial-exec");
    return refuse(report, DAVIT_R_DLOPEN_FAILED, path, text,
                  "the dynamic loader refused the file",
                  "the loader's own words say why; a rebuild with the SDK's options helps "
                  "most often");
}
