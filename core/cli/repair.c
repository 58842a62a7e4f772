/* SPDX-License-Identifier: Apache-2.0
 * Values of the flags that plan, run and eval share. */
#include "cli/repair.h"

#include <string.h>

#include <davit/quant.h>

#include "plan/kv_scale.h"

const char *const davit_dtype_names[] = {"stored", "f32", "f16", "bf16", NULL};
const char *const davit_cache_names[] = {"auto", "use", "skip", NULL};
const char *const davit_access_names[] = {"auto", "borrow", "direct", "stream", NULL};
const char *const davit_layout_names[] = {"auto", "stored", "packed", NULL};
const char *const davit_activation_names[] = {"auto", "f32", "int8", NULL};

#define MIN_WINDOW (64ull << 10)
#define MAX_IO_THREADS 256u

bool davit_parse_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},          {"B", 1},          {"KiB", 1024},     {"MiB", 1048576},
                 {"GiB", 1 << 30}, {"TiB", 1099511627776.0},
                 {"KB", 1e3},      {"MB", 1e6},       {"GB", 1e9},       {"TB", 1e12}};
    const size_t n = strspn(text, "0123456789.");
    g_autofree char *digits = g_strndup(text, n);
    double x;
    if (n == 0 || !davit_parse_number(digits, &x))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        if (strcmp(text + n, units[i].name) != 0)
            continue;
        x *= units[i].bytes;
        if (!(x >= 0 && x < 9e18))
            return false;
        *out = (uint64_t)x;
        return true;
    }
    return false;
}

uint32_t davit_call_choice(const DavitCall *call, const char *flag, const char *const *names)
{
    const char *text = davit_call_text(call, flag);
    for (uint32_t i = 0; names[i]; i++)
        if (text && strcmp(text, names[i]) == 0)
            return i;
    return 0;
}

/* One "DEVICE=SIZE" of --memory. */
static bool parse_memory(const char *text, DavitMemoryOf *out)
{
    const char *equal = strchr(text, '=');
    if (!equal || equal == text || !davit_parse_bytes(equal + 1, &out->n_bytes) ||
        out->n_bytes == 0)
        return false;
    g_autofree char *name = g_strndup(text, (gsize)(equal - text));
    out->device = g_intern_string(name);
    return true;
}

/* (owned) DavitMemoryOf of all devices; what cannot be read is left out. */
static GArray *read_memories(const DavitCall *call)
{
    const char *text = davit_call_text(call, "memory");
    GArray *out = g_array_new(FALSE, TRUE, sizeof(DavitMemoryOf));
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    for (char **p = parts; *p; p++) {
        DavitMemoryOf one;
        if (parse_memory(*p, &one))
            g_array_append_val(out, one);
    }
    return out;
}

uint64_t davit_call_memory(const DavitCall *call)
{
    g_autoptr(GArray) all = read_memories(call);
    for (guint i = 0; i < all->len; i++)
        if (strcmp(g_array_index(all, DavitMemoryOf, i).device, "cpu") == 0)
            return g_array_index(all, DavitMemoryOf, i).n_bytes;
    return 0;
}

GArray *davit_call_memories(const DavitCall *call)
{
    GArray *all = read_memories(call);
    for (guint i = all->len; i-- > 0;)
        if (strcmp(g_array_index(all, DavitMemoryOf, i).device, "cpu") == 0)
            g_array_remove_index(all, i);
    return all;
}

static int check_memory(DavitCall *call)
{
    const char *text = davit_call_text(call, "memory");
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    g_autoptr(GArray) all = read_memories(call);
    for (char **p = parts; *p; p++) {
        DavitMemoryOf one;
        if (!parse_memory(*p, &one))
            return davit_call_usage(call, "--memory", "a budget is not DEVICE=SIZE",
                                    "write it like cpu=8GiB or cpu=8GiB,cuda:0=20GiB");
    }
    for (guint i = 0; i < all->len; i++) {
        const char *device = g_array_index(all, DavitMemoryOf, i).device;
        if (strcmp(device, "disk") == 0)
            return davit_call_usage(call, "--memory", "the disk has no budget",
                                    "what no device has room for stays in the model's own files");
        for (guint k = 0; k < i; k++)
            if (device == g_array_index(all, DavitMemoryOf, k).device)
                return davit_call_usage(call, "--memory", "a device is given twice", NULL);
    }
    return text && all->len == 0
               ? davit_call_usage(call, "--memory", "a budget is not DEVICE=SIZE",
                                  "write it like cpu=8GiB")
               : 0;
}

static int check_device_map(DavitCall *call)
{
    const char *map = davit_call_text(call, "device-map");
    if (map && !*map)
        return davit_call_usage(call, "--device-map", "the value is empty",
                                "give auto or a JSON file");
    if (map && strcmp(map, "auto") != 0 && davit_call_has(call, "device"))
        return davit_call_usage(call, "--device", "--device and a device map exclude each other",
                                "the map says where modules go");
    return 0;
}

const char *davit_call_device(const DavitCall *call)
{
    const char *device = davit_call_text(call, "device");
    if (davit_call_has(call, "device-map") && !davit_call_has(call, "device"))
        return NULL;
    return device && strcmp(device, "auto") == 0 ? NULL : device;
}

uint32_t davit_call_quant_allow(const DavitCall *call)
{
    static const struct {
        const char *flag, *value;
        uint32_t bit;
    } bits[] = {{"scale-dtype", "any", DAVIT_QUANT_ALLOW_SCALE_DTYPE},
                {"gptq-zeros", "v1", DAVIT_QUANT_ALLOW_ZEROS_V1},
                {"gptq-zeros", "v2", DAVIT_QUANT_ALLOW_ZEROS_V2},
                {"scale-grid", "padded", DAVIT_QUANT_ALLOW_PADDED_GRID}};
    uint32_t allow = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(bits); i++) {
        const char *value = davit_call_text(call, bits[i].flag);
        if (value && strcmp(value, bits[i].value) == 0)
            allow |= bits[i].bit;
    }
    return allow;
}

const char *davit_call_kv_dtype(const DavitCall *call)
{
    const char *name = davit_call_text(call, "kv-dtype");
    return !name                      ? NULL
           : strcmp(name, "f32") == 0 ? "f32/1"
           : strcmp(name, "fp8") == 0 ? DAVIT_KV_FP8
                                      : "f16/1";
}

int davit_call_check_loading(DavitCall *call)
{
    const char *window = davit_call_text(call, "window");
    uint64_t n = 0;
    if (davit_call_has(call, "tie") && davit_call_has(call, "no-tie"))
        return davit_call_usage(call, "--tie", "--tie and --no-tie exclude each other", NULL);
    if (window && !davit_parse_bytes(window, &n))
        return davit_call_usage(call, "--window", "the value is not a size",
                                "write it like 64MiB, 1.5GB or 67108864");
    if (window && n < MIN_WINDOW)
        return davit_call_usage(call, "--window", "the window is smaller than 64 KiB", NULL);
    if (davit_call_count(call, "io-threads") > MAX_IO_THREADS)
        return davit_call_usage(call, "--io-threads", "more than 256 threads", NULL);
    if (davit_call_has(call, "strip-prefix") && !*davit_call_text(call, "strip-prefix"))
        return davit_call_usage(call, "--strip-prefix", "the prefix is empty", NULL);
    g_autofree const char **ignore = davit_call_list(call, "ignore");
    for (const char **glob = ignore; glob && *glob; glob++)
        if (!**glob)
            return davit_call_usage(call, "--ignore", "the pattern is empty", NULL);
    const int code = check_memory(call);
    return code ? code : check_device_map(call);
}
