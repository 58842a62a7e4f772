/* SPDX-License-Identifier: Apache-2.0
 * davit_host: one table for every plugin of the process. */
#include "plugin/host.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/registry.h"

/* Atomic; set from a signal handler too. */
static int is_cancelled;

#define GETTER(name)                                                                     \
    static const void *name##_table(void)                                                \
    {                                                                                    \
        return davit_##name##_suite_get();                                               \
    }
GETTER(cpu)
GETTER(json)
GETTER(regex)
GETTER(io)
GETTER(tensor)
GETTER(config)
GETTER(build)

static const void *host_suite(void *ctx, const char *name, uint32_t major,
                              uint32_t min_minor)
{
    static const struct {
        const char *name;
        uint32_t major, minor;
        const void *(*get)(void);
    } suites[] = {
        {"cpu", 1, 0, cpu_table},       {"json", 1, 0, json_table},
        {"regex", 1, 0, regex_table},   {"io", 1, 0, io_table},
        {"tensor", 1, 0, tensor_table}, {"config", 1, 0, config_table},
        {"build", 0, 1, build_table}, /* follows the kind arch */
    };

    (void)ctx;
    for (size_t i = 0; name && i < G_N_ELEMENTS(suites); i++) {
        if (strcmp(suites[i].name, name) != 0 || suites[i].major != major)
            continue;
        if (major == 0 ? suites[i].minor == min_minor : suites[i].minor >= min_minor)
            return suites[i].get();
    }
    return NULL;
}

static void host_log(void *ctx, uint32_t level, const char *component_id,
                     const char *utf8)
{
    g_autofree char *text = davit_escape(utf8 ? utf8 : "", utf8 ? strlen(utf8) : 0, 1000);
    g_autofree char *who =
        davit_escape(component_id ? component_id : "plugin",
                     component_id ? strlen(component_id) : strlen("plugin"), 200);

    (void)ctx;
    /* INFO and DEBUG are silent until the program installs a handler (-v) */
    g_log("davit", level < 3 ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_DEBUG, "%s: %s", who, text);
}

static void *host_alloc(void *ctx, size_t n_bytes, size_t align)
{
    void *p = NULL;

    (void)ctx;
    if ((align & (align - 1)) || n_bytes > PTRDIFF_MAX)
        return NULL;
    return posix_memalign(&p, MAX(align, sizeof(void *)), MAX(n_bytes, 1)) == 0 ? p
                                                                                : NULL;
}

static void host_free(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

static int32_t host_cancelled(void *ctx)
{
    (void)ctx;
    return g_atomic_int_get(&is_cancelled) != 0;
}

void davit_host_set_cancelled(bool cancelled)
{
    g_atomic_int_set(&is_cancelled, cancelled);
}

const davit_host *davit_host_table(void)
{
    static const davit_host host = {
        .struct_size = DAVIT_END(davit_host, cancelled),
        .abi_major = DAVIT_ABI_MAJOR,
        .abi_minor = DAVIT_ABI_MINOR,
        .suite = host_suite,
        .log = host_log,
        .alloc = host_alloc,
        .free = host_free,
        .cancelled = host_cancelled,
    };

    return &host;
}
