/* SPDX-License-Identifier: Apache-2.0
 * Names into modules. A suffix is strong (it makes a module: "weight", "qweight") or weak
 * (it belongs to a module that a strong one has made, "scales"), so that an architecture
 * may have a parameter of its own that is called like a companion. */
#include "plan/suffix.h"

#include <string.h>

/* Suffixes that make a module by themselves; so does everything that begins with
 * "weight_". */
static const char *const strong_names[] = {"weight",  "qweight", "q_weight",
                                           "trellis", "W_q",     NULL};

/* Suffixes that belong to a module when the tensor named beside them is there too. */
static const struct {
    const char *suffix, *with; /* @with '|'-joined */
} weak_names[] = {
    {"B", "s"},
    {"blocks", "scales"},
    {"scales", "qweight|blocks|weight"},
    {"s", "B"},
    {"scale", "weight|W_q"},
    {"scale_inv", "weight"},
    {"zeros", "qweight|weight"},
    {"zero", "W_q"},
    {"qzeros", "qweight"},
    {"g_idx", "qweight|weight_packed"},
    {"SCB", "weight"},
    {"input_scale", "weight|weight_packed|qweight"},
    {"input_global_scale", "weight|weight_packed"},
    {"input_zero_point", "weight|weight_packed"},
    {"activation_scale", "weight"},
    {"_activation_scale", "weight"},
    {"output_scale", "weight|weight_packed|qweight"},
    {"pre_quant_scale", "weight"},
    {"q_scale", "q_weight"},
    {"q_scale_max", "q_weight"},
    {"q_groups", "q_weight"},
    {"q_group_map", "q_weight"},
    {"q_invperm", "q_weight"},
    {"q_perm", "q_weight"},
    {"suh", "trellis"},
    {"svh", "trellis"},
    {"mcg", "trellis"},
    {"mul1", "trellis"},
};

static bool has_tensor(const DavitCheckpoint *checkpoint, const char *base,
                       size_t base_len, const char *middle, const char *end)
{
    char name[1024];
    const int n =
        g_snprintf(name, sizeof name, "%.*s%s%s", (int)base_len, base, middle, end);

    /* longer names than the buffer have no companions, which refuses them later by name
     */
    return n > 0 && (size_t)n < sizeof name && davit_checkpoint_find(checkpoint, name);
}

static bool is_strong(const char *suffix, const GArray *quants)
{
    if (g_str_has_prefix(suffix, "weight_"))
        return true;
    for (size_t i = 0; strong_names[i]; i++) {
        if (strcmp(strong_names[i], suffix) == 0)
            return true;
    }
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
    for (size_t i = 0; i < G_N_ELEMENTS(weak_names); i++) {
        if (strcmp(weak_names[i].suffix, suffix) != 0)
            continue;
        for (const char *p = weak_names[i].with; *p;) {
            const size_t n = strcspn(p, "|");
            char with[32];

            g_strlcpy(with, p, MIN(n + 1, sizeof with));
            if (has_tensor(checkpoint, tensor, base_len, ".", with))
                return true;
            p += n + (p[n] == '|');
        }
    }
    return false;
}

/* Companions joined with '_' to a tensor that is a module by itself: stacked experts. */
static size_t joined_len(const char *tensor, const DavitCheckpoint *checkpoint)
{
    static const struct {
        const char *end, *other;
    } pairs[] = {{"_blocks", "_scales"},
                 {"_scales", "_blocks"},
                 {"_scale_inv", ""},
                 {"_scales_inv", ""},
                 {"_scale", ""}};
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
