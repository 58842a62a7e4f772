/* SPDX-License-Identifier: Apache-2.0
 * Format plugin for files that are not ours: recognised by content, refused by name with
 * the way out. Not final: a third party's plugin that reads one of them wins. */
#include "foreign.h"

#include <stdio.h>
#include <string.h>

int foreign_ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name);
    const size_t m = strlen(suffix);

    return n >= m && memcmp(name + n - m, suffix, m) == 0;
}

int foreign_starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* "size 4935..." of a Git LFS pointer, as a text of digits; "" if there is none. */
static void read_pointer_size(const davit_probe_in *in, char *out, size_t cap)
{
    static const char word[] = "\nsize ";
    const size_t n = sizeof word - 1;
    size_t len = 0;

    for (uint64_t i = 0; i + n < in->head_len; i++) {
        if (memcmp(in->head + i, word, n) != 0)
            continue;
        for (i += n; i < in->head_len && len + 1 < cap; i++) {
            if (in->head[i] < '0' || in->head[i] > '9')
                break;
            out[len++] = (char)in->head[i];
        }
        break;
    }
    out[len] = '\0';
}

static int32_t foreign_probe(const davit_probe_in *in, davit_verdict *out,
                             const davit_sink *sink)
{
    const foreign_kind *kind = in->head ? foreign_file(in) : foreign_directory(in);
    char size[24] = "";
    char found[80];
    char expected[64] = "safetensors or GGUF";

    if (!kind)
        return davit_decline(out);
    snprintf(found, sizeof found, "%s", kind->found);
    if (kind->code == DAVIT_R_LFS_POINTER) {
        read_pointer_size(in, size, sizeof size);
        if (size[0])
            snprintf(expected, sizeof expected, "the file of %s bytes", size);
    }
    davit_say(sink, DAVIT_E_UNSUPPORTED,
              &(davit_refusal){.code = kind->code,
                               .subject = in->name,
                               .expected = expected,
                               .found = found,
                               .message = kind->message,
                               .hint = kind->hint});
    return davit_refuse(out, 0);
}

/* ---- the door ---- */

static int32_t foreign_open(void *self, davit_source *src, const davit_format_out *out,
                            void **out_reader, const davit_sink *sink)
{
    (void)self;
    (void)src;
    (void)out;
    (void)out_reader;
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){.code = DAVIT_R_FORMAT_UNSUPPORTED,
                                      .message = "the file's format is not read"});
}

static void foreign_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static const davit_format_iface foreign_format = {
    .struct_size = DAVIT_END(davit_format_iface, close),
    .open = foreign_open,
    .close = foreign_close,
};

DAVIT_REFUSES(foreign_never, "org.davit.format.foreign",
              DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN,
              DAVIT_R_FORMAT_UNSUPPORTED, "foreign formats", "recognised and not read",
              "convert the model to safetensors or GGUF");

static const davit_refusal *const foreign_refuses[] = {&foreign_never, NULL};

DAVIT_COMPONENT(
    foreign, DAVIT_KIND_FORMAT, "org.davit.format.foreign",
    "ext=onnx|engine|plan|h5|hdf5|keras|msgpack|tensors|ggml|npz|zip|tflite|pb",
    DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 10,
    .flags = DAVIT_COMPONENT_CONCURRENT, .probe = foreign_probe,
    .refuses = foreign_refuses, .iface = &foreign_format);

DAVIT_PLUGIN("org.davit.format.foreign", "foreign formats", "davit", "1.0.0",
             "Apache-2.0", &foreign);
