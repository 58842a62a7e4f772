/* SPDX-License-Identifier: Apache-2.0
 * Names into modules. A suffix is strong (it makes a module: "weight", "qweight") or weak (it
 * belongs to a module that a strong one has made, "scales"), so that an architecture may
 * have a parameter of its own that is called like a companion. */
#include "plan/suffix.h"

#include <string.h>

/* Suffixes that complete a module which one of strong_names has made. */
static const char *const weak_names[] = {"scale",  "scales", "scale_inv", "zeros", "qzeros",
                                         "g_idx",  "SCB",    "s",         "absmax", "quant_map",
                                         "blocks", "input_scale", "input_global_scale", NULL};
static const char *const strong_names[] = {"weight", "qweight", "weight_packed", "blocks",
                                           "B", NULL};

static bool has_tensor(const DavitCheckpoint *checkpoint, const char *base, size_t base_len,
                       const char *middle, const char *end)
{
    char name[1024];
    const int n = g_snprintf(name, sizeof name, "%.*s%s%s", (int)base_len, base, middle, end);

    /* longer names than the buffer have no companions, which refuses them later by name */
    return n > 0 && (size_t)n < sizeof name && davit_checkpoint_find(checkpoint, name);
}

static bool is_strong(const char *suffix, const GArray *quants)
{
    if (strcmp(suffix, "weight") == 0 || g_str_has_prefix(suffix, "weight_") ||
        strcmp(suffix, "qweight") == 0)
        return true;
    for (guint i = 0; quants && i < quants->len; i++) {
        const DavitComponent *c = g_array_index(quants, DavitTool, i).component;

        if (c->capability && davit_capability_has(c->capability, "suffix", suffix))
            return true;
    }
    return false;
}

static bool is_weak(const char *tensor, size_t base_len, const char *suffix,
                    const DavitCheckpoint *checkpoint)
{
    bool known = false;

    for (size_t i = 0; weak_names[i] && !known; i++)
        known = strcmp(weak_names[i], suffix) == 0;
    for (size_t i = 0; known && strong_names[i]; i++) {
        if (strcmp(strong_names[i], suffix) != 0 &&
            has_tensor(checkpoint, tensor, base_len, ".", strong_names[i]))
            return true;
    }
    /* blocks are a weight by themselves when scales lie beside them */
    return known && strcmp(suffix, "blocks") == 0 &&
           has_tensor(checkpoint, tensor, base_len, ".", "scales");
}

/* Companions joined with '_' to a tensor that is a module by itself: stacked experts. */
static size_t joined_len(const char *tensor, const DavitCheckpoint *checkpoint)
{
    static const struct {
        const char *end, *other;
    } pairs[] = {{"_blocks", "_scales"}, {"_scales", "_blocks"}, {"_scale_inv", ""}, {"_scale", ""}};
    const size_t len = strlen(tensor);

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        const size_t n = strlen(pairs[i].end);

        if (len > n && strcmp(tensor + len - n, pairs[i].end) == 0 &&
            has_tensor(checkpoint, tensor, len - n, "", pairs[i].other))
            return len - n;
    }
    return 0;
}

DavitSplit davit_suffix_split(const char *tensor, const DavitCheckpoint *checkpoint,
                              const GArray *quants)
{
    const char *dot = strrchr(tensor, '.');
    const char *inner = strstr(tensor, ".weight.");
    size_t len;

    /* bitsandbytes hangs its companions on the weight: "x.weight.absmax" */
    if (inner && inner > tensor &&
        has_tensor(checkpoint, tensor, (size_t)(inner - tensor), "", ".weight"))
        return (DavitSplit){(size_t)(inner - tensor), inner + 1};
    if (dot && dot > tensor && dot[1]) {
        len = (size_t)(dot - tensor);
        if (is_strong(dot + 1, quants) || is_weak(tensor, len, dot + 1, checkpoint))
            return (DavitSplit){len, dot + 1};
    }
    len = joined_len(tensor, checkpoint);
    if (len)
        return (DavitSplit){len, tensor + len};
    len = strlen(tensor);
    return (DavitSplit){len, tensor + len};
}
