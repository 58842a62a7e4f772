/* SPDX-License-Identifier: Apache-2.0
 * Is this file or directory GGUF? For a directory: which file is the entry. */
#include "gguf.h"

#include <stdio.h>
#include <string.h>

#define ALL (DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN)

static int ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name);
    const size_t m = strlen(suffix);

    return n >= m && memcmp(name + n - m, suffix, m) == 0;
}

static int32_t probe_file(const davit_probe_in *in, davit_verdict *out,
                          const davit_sink *sink)
{
    char found[16];

    if (in->head_len >= 4 && memcmp(in->head, "GGUF", 4) == 0)
        return davit_accept(out, 950, ALL);
    if (in->head_len < 4 || !ends_with(in->name, ".gguf"))
        return davit_decline(out);
    /* Text or another known magic is for others to name; a .gguf of zeros is ours. */
    for (int i = 0; i < 4; i++)
        if (in->head[i] >= 0x20 && in->head[i] <= 0x7e)
            return davit_decline(out);
    snprintf(found, sizeof found, "%02x %02x %02x %02x", in->head[0], in->head[1],
             in->head[2], in->head[3]);
    davit_say(sink, DAVIT_E_CORRUPT,
              &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                               .subject = in->name,
                               .expected = "GGUF",
                               .found = found,
                               .message = "the file does not start with GGUF",
                               .hint = "download the file again"});
    return davit_refuse(out, 0);
}

/* ---- directories ---- */

/* Bytes of @name before "-00001-of-00003.gguf" or ".gguf". */
static size_t set_length(const char *name)
{
    const size_t n = strlen(name) - strlen(".gguf");
    const size_t n_tail = strlen("-00001-of-00003");

    if (n > n_tail && name[n - n_tail] == '-' && memcmp(name + n - 9, "-of-", 4) == 0)
        return n - n_tail;
    return n;
}

static int same_set(const char *a, const char *b)
{
    const size_t n = set_length(a);

    return n == set_length(b) && memcmp(a, b, n) == 0;
}

/* Projector of a multimodal model: a companion of the model, never the model. */
static int is_projector(const char *name)
{
    return strncmp(name, "mmproj", 6) == 0;
}

static int32_t probe_directory(const davit_probe_in *in, davit_verdict *out,
                               const davit_sink *sink)
{
    const char *first = NULL;
    const char *other = NULL;
    char found[512];

    for (uint64_t i = 0; i < in->n_names; i++) {
        const char *name = in->names[i];

        if (!ends_with(name, ".gguf") || is_projector(name))
            continue;
        if (!first)
            first = name;
        else if (!other && !same_set(first, name))
            other = name;
    }
    if (!first || strlen(first) + 1 > in->out_entry_cap)
        return davit_decline(out);
    if (other) {
        snprintf(found, sizeof found, "%.200s and %.200s", first, other);
        davit_say(sink, DAVIT_E_UNSUPPORTED,
                  &(davit_refusal){.code = DAVIT_R_AMBIGUOUS,
                                   .subject = in->name,
                                   .expected = "one GGUF model",
                                   .found = found,
                                   .message = "the directory holds several GGUF models",
                                   .hint = "name the file"});
        return davit_refuse(out, 0);
    }
    memcpy(in->out_entry, first, strlen(first) + 1);
    /* Below safetensors: where a directory holds both, those are the original weights. */
    return davit_accept(out, 800, ALL);
}

int32_t gguf_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    if (in->head)
        return probe_file(in, out, sink);
    return probe_directory(in, out, sink);
}
