/* SPDX-License-Identifier: Apache-2.0
 * Is this file or directory safetensors? For a directory: which file is the entry. */
#include "safetensors.h"

#include <stdio.h>
#include <string.h>

#include <davit/help/bytes.h>

#define ALL (DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN)

/* ---- files ---- */

/* Text where the length field should be: a Git LFS pointer, a web page. Others know
 * better. */
static int is_text(const davit_probe_in *in)
{
    for (uint64_t i = 0; i < 8 && i < in->head_len; i++)
        if (in->head[i] < 0x20 || in->head[i] > 0x7e)
            return 0;
    return in->head_len > 0;
}

static int32_t probe_file(const davit_probe_in *in, davit_verdict *out,
                          const davit_sink *sink)
{
    const int named = st_ends_with(in->name, ".safetensors");
    int plausible;

    (void)sink;
    if (st_ends_with(in->name, ".safetensors.index.json"))
        return davit_accept(out, 900, ALL);
    plausible = in->head_len >= 9 && in->head[8] == '{' &&
                davit_bytes_u64le(in->head) <= ST_MAX_HEADER;
    if (plausible)
        return davit_accept(out, named ? 900 : 700, ALL);
    if (!named || is_text(in))
        return davit_decline(out);
    /* By name only: open will say what is wrong, unless another format knows the bytes.
     */
    return davit_accept(out, 100, ALL);
}

/* ---- directories ---- */

/* Bytes of @name before "-00001-of-00002.safetensors" or ".safetensors". */
static size_t set_length(const char *name)
{
    const size_t n = strlen(name) - strlen(".safetensors");
    const size_t n_tail = strlen("-00001-of-00002");

    if (n > n_tail && name[n - n_tail] == '-' && memcmp(name + n - 9, "-of-", 4) == 0)
        return n - n_tail;
    return n;
}

static int same_set(const char *a, const char *b)
{
    const size_t n = set_length(a);

    return n == set_length(b) && memcmp(a, b, n) == 0;
}

static int is_adapter(const char *name)
{
    return strncmp(name, "adapter_", 8) == 0;
}

/* Original layout that some repositories ship beside the Hugging Face one. */
static int is_consolidated(const char *name)
{
    return strncmp(name, "consolidated", 12) == 0;
}

typedef int (*name_filter)(const char *name);

static int is_main(const char *name)
{
    return !is_adapter(name) && !is_consolidated(name);
}

/* First file of the one set that @take lets through. *out_other: first file of a second
 * set, NULL if there is none. */
static const char *find_set(const davit_probe_in *in, const char *suffix,
                            name_filter take, const char **out_other)
{
    const char *first = NULL;

    *out_other = NULL;
    for (uint64_t i = 0; i < in->n_names; i++) {
        const char *name = in->names[i];

        if (!st_ends_with(name, suffix) || !take(name))
            continue;
        if (!first)
            first = name;
        else if (!*out_other &&
                 (strcmp(suffix, ".safetensors") != 0 || !same_set(first, name)))
            *out_other = name;
    }
    return first;
}

static const char *find_name(const davit_probe_in *in, const char *wanted)
{
    for (uint64_t i = 0; i < in->n_names; i++)
        if (strcmp(in->names[i], wanted) == 0)
            return in->names[i];
    return NULL;
}

static int32_t refuse_two(const davit_probe_in *in, const char *a, const char *b,
                          davit_verdict *out, const davit_sink *sink)
{
    char found[512];

    snprintf(found, sizeof found, "%.200s and %.200s", a, b);
    davit_say(sink, DAVIT_E_UNSUPPORTED,
              &(davit_refusal){.code = DAVIT_R_AMBIGUOUS,
                               .subject = in->name,
                               .expected = "one set of weights, or an index",
                               .found = found,
                               .message = "the directory holds several sets of weights",
                               .hint = "name the file, or move one set away"});
    return davit_refuse(out, 0);
}

static int32_t accept_entry(const davit_probe_in *in, const char *entry, uint32_t score,
                            uint64_t purposes, davit_verdict *out)
{
    const size_t n = strlen(entry);

    if (n + 1 > in->out_entry_cap)
        return davit_decline(out);
    memcpy(in->out_entry, entry, n + 1);
    return davit_accept(out, score, purposes);
}

/* Weights of an adapter alone: readable, but not a model. */
static int32_t take_adapter(const davit_probe_in *in, const char *entry,
                            davit_verdict *out, const davit_sink *sink)
{
    if (!(in->purposes & (DAVIT_MAP | DAVIT_RUN)))
        return accept_entry(in, entry, 500, DAVIT_INSPECT | DAVIT_CONVERT, out);
    davit_say(
        sink, DAVIT_E_UNSUPPORTED,
        &(davit_refusal){.code = DAVIT_R_FORMAT_UNSUPPORTED,
                         .purposes = DAVIT_MAP | DAVIT_RUN,
                         .subject = in->name,
                         .expected = "weights of a model",
                         .found = entry,
                         .message = "the directory holds an adapter (LoRA), not a model",
                         .hint = "give the base model that adapter_config.json names"});
    return davit_refuse(out, 0);
}

static int32_t probe_directory(const davit_probe_in *in, davit_verdict *out,
                               const davit_sink *sink)
{
    const char *other;
    const char *entry = find_name(in, "model.safetensors.index.json");

    if (!entry) {
        entry = find_set(in, ".safetensors.index.json", is_main, &other);
        if (entry && other)
            return refuse_two(in, entry, other, out, sink);
    }
    if (!entry)
        entry = find_name(in, "model.safetensors");
    if (entry)
        return accept_entry(in, entry, 900, ALL, out);
    entry = find_set(in, ".safetensors", is_main, &other);
    if (!entry)
        entry = find_set(in, ".safetensors", is_consolidated, &other);
    if (entry && other)
        return refuse_two(in, entry, other, out, sink);
    if (entry)
        return accept_entry(in, entry, 850, ALL, out);
    entry = find_set(in, ".safetensors", is_adapter, &other);
    return entry ? take_adapter(in, entry, out, sink) : davit_decline(out);
}

int32_t st_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    if (in->head)
        return probe_file(in, out, sink);
    return probe_directory(in, out, sink);
}
