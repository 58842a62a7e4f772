/* SPDX-License-Identifier: Apache-2.0
 * Values of the flags that plan, run and eval share. */
#include "cli/repair.h"

#include <string.h>

#include <davit/quant.h>

const char *const davit_dtype_names[] = {"stored", "f32", "f16", "bf16", NULL};
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

uint64_t davit_call_memory(const DavitCall *call)
{
    const char *text = davit_call_text(call, "memory");
    uint64_t n = 0;
    if (text && g_str_has_prefix(text, "cpu="))
        davit_parse_bytes(text + 4, &n);
    return n;
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
    if (davit_call_has(call, "memory") && davit_call_memory(call) == 0)
        return davit_call_usage(call, "--memory", "the budget is not cpu=SIZE",
                                "write it like cpu=8GiB; other devices are not in this version");
    if (davit_call_count(call, "io-threads") > MAX_IO_THREADS)
        return davit_call_usage(call, "--io-threads", "more than 256 threads", NULL);
    if (davit_call_has(call, "strip-prefix") && !*davit_call_text(call, "strip-prefix"))
        return davit_call_usage(call, "--strip-prefix", "the prefix is empty", NULL);
    return 0;
}
