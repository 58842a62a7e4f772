/* SPDX-License-Identifier: Apache-2.0
 * The table is the program's own but for memory, suites that may be absent, and a length. */
#include "check/host.h"

#include <string.h>

#include "plugin/registry.h"

static const void *suite(void *ctx, const char *name, uint32_t major, uint32_t min_minor)
{
    const CheckHost *host = ctx;
    const davit_host *own = davit_host_table();

    return host->no_suites ? NULL : own->suite(own->ctx, name, major, min_minor);
}

static void log_nothing(void *ctx, uint32_t level, const char *component_id, const char *utf8)
{
    (void)ctx;
    (void)level;
    (void)component_id;
    (void)utf8;
}

static void *alloc(void *ctx, size_t n_bytes, size_t align)
{
    CheckHost *host = ctx;
    const davit_host *own = davit_host_table();
    void *p = NULL;

    g_mutex_lock(&host->lock);
    if (++host->n_allocs != host->fail_at)
        p = own->alloc(own->ctx, n_bytes, align);
    if (p) {
        memset(p, 0xa5, n_bytes); /* it is not zeroed */
        g_hash_table_add(host->live, p);
    }
    g_mutex_unlock(&host->lock);
    return p;
}

static void release(void *ctx, void *p)
{
    CheckHost *host = ctx;
    const davit_host *own = davit_host_table();
    bool is_ours;

    if (!p)
        return;
    g_mutex_lock(&host->lock);
    is_ours = g_hash_table_remove(host->live, p);
    host->n_foreign += !is_ours;
    g_mutex_unlock(&host->lock);
    if (is_ours)
        own->free(own->ctx, p);
}

static int32_t cancelled(void *ctx)
{
    (void)ctx;
    return 0;
}

void check_host_init(CheckHost *host)
{
    memset(host, 0, sizeof *host);
    memset(host->poison, 0xa5, sizeof host->poison);
    g_mutex_init(&host->lock);
    host->live = g_hash_table_new(NULL, NULL);
    host->table = (davit_host){.struct_size = DAVIT_END(davit_host, cancelled),
                               .abi_major = DAVIT_ABI_MAJOR,
                               .abi_minor = DAVIT_ABI_MINOR,
                               .ctx = host,
                               .suite = suite,
                               .log = log_nothing,
                               .alloc = alloc,
                               .free = release,
                               .cancelled = cancelled};
}

void check_host_clear(CheckHost *host)
{
    const davit_host *own = davit_host_table();
    GHashTableIter iter;
    gpointer p;

    g_hash_table_iter_init(&iter, host->live);
    while (g_hash_table_iter_next(&iter, &p, NULL))
        own->free(own->ctx, p);
    g_hash_table_unref(host->live);
    g_mutex_clear(&host->lock);
}
