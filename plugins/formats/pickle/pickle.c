/* SPDX-License-Identifier: Apache-2.0
 * Format plugin for Python pickles: recognised by content, refused for good, never
 * parsed. A pickle is a program for Python's pickle machine, so reading one safely means
 * not reading it. There is no waiver. Opcodes: CPython, Lib/pickletools.py. */
#include <string.h>

#include <davit/format.h>
#include <davit/help/bytes.h>
#include <davit/help/records.h>

#define HINT                                                                                 \
    "download the model's safetensors or GGUF files; or, where you trust the file, load it " \
    "with PyTorch and save it with safetensors.torch.save_file"

static int ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name);
    const size_t m = strlen(suffix);

    return n >= m && memcmp(name + n - m, suffix, m) == 0;
}

/* Names that PyTorch gives to pickles. */
static int is_named(const char *name)
{
    static const char *const suffixes[] = {".bin",  ".pt",  ".pth",
                                           ".ckpt", ".pkl", ".pickle"};

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (ends_with(name, suffixes[i]))
            return 1;
    return 0;
}

static int32_t refuse(const char *subject, const char *found, const char *message,
                      davit_verdict *out, const davit_sink *sink)
{
    davit_say(sink, DAVIT_E_UNSUPPORTED,
              &(davit_refusal){.code = DAVIT_R_PICKLE_UNSAFE,
                               .flags = DAVIT_REFUSAL_FINAL,
                               .subject = subject,
                               .expected = "safetensors or GGUF",
                               .found = found,
                               .message = message,
                               .hint = HINT});
    return davit_refuse(out, DAVIT_REFUSAL_FINAL);
}

/* ---- files ---- */

/* A safetensors length field may look like "PROTO 2": its top bytes are zero and a brace
 * follows. */
static int is_safetensors(const davit_probe_in *in)
{
    return in->head_len >= 9 && in->head[8] == '{' &&
           davit_bytes_u64le(in->head) <= 100000000;
}

/* PROTO opcode of protocols 2 to 5. */
static int is_binary_pickle(const davit_probe_in *in)
{
    return in->head_len >= 2 && in->head[0] == 0x80 && in->head[1] >= 2 &&
           in->head[1] <= 5 && !is_safetensors(in);
}

/* Protocols 0 and 1 have no magic: "(" mark, "c" global with two lines, "]" "}" empty
 * containers with a memo. Asked only of files that are named like pickles. */
static int is_text_pickle(const davit_probe_in *in)
{
    const uint8_t *h = in->head;

    if (in->head_len < 4)
        return 0;
    if (h[0] == '(' || ((h[0] == ']' || h[0] == '}') && (h[1] == 'q' || h[1] == 'p')))
        return 1;
    return h[0] == 'c' && memchr(h, '\n', (size_t)in->head_len) != NULL;
}

static int holds(const davit_probe_in *in, const char *word)
{
    const size_t n = strlen(word);

    for (uint64_t i = 0; i + n <= in->head_len; i++)
        if (memcmp(in->head + i, word, n) == 0)
            return 1;
    return 0;
}

static int32_t probe_file(const davit_probe_in *in, davit_verdict *out,
                          const davit_sink *sink)
{
    const int named = is_named(in->name);

    if (is_binary_pickle(in))
        return refuse(in->name, "a pickle",
                      "the file is a Python pickle, which can run code", out, sink);
    if (in->head_len >= 4 && memcmp(in->head, "PK\003\004", 4) == 0 &&
        (named || holds(in, ".pkl")))
        return refuse(in->name, "a zip with a pickle",
                      "the file is a PyTorch archive, whose pickle can run code", out,
                      sink);
    if (named && is_text_pickle(in))
        return refuse(in->name, "a pickle of protocol 0 or 1",
                      "the file is a Python pickle, which can run code", out, sink);
    return davit_decline(out);
}

/* ---- directories ---- */

/* Weights, not the state of a trainer that lies beside them. */
static int is_weights(const char *name)
{
    static const char *const others[] = {"training_args", "optimizer", "scheduler",
                                         "rng_state",     "scaler",    "trainer_state"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return 0;
    return is_named(name);
}

/* Only pickles: no file of a format that davit reads lies beside them. */
static int32_t probe_directory(const davit_probe_in *in, davit_verdict *out,
                               const davit_sink *sink)
{
    const char *first = NULL;

    for (uint64_t i = 0; i < in->n_names; i++) {
        const char *name = in->names[i];

        if (ends_with(name, ".safetensors") ||
            ends_with(name, ".safetensors.index.json") || ends_with(name, ".gguf"))
            return davit_decline(out);
        if (!first && is_weights(name))
            first = name;
    }
    if (!first)
        return davit_decline(out);
    return refuse(in->name, first,
                  "the directory's only weights are pickles, which can run code", out,
                  sink);
}

static int32_t pickle_probe(const davit_probe_in *in, davit_verdict *out,
                            const davit_sink *sink)
{
    if (in->head)
        return probe_file(in, out, sink);
    return probe_directory(in, out, sink);
}

/* ---- the door ---- */

static int32_t pickle_open(void *self, davit_source *src, const davit_format_out *out,
                           void **out_reader, const davit_sink *sink)
{
    (void)self;
    (void)src;
    (void)out;
    (void)out_reader;
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){.code = DAVIT_R_PICKLE_UNSAFE,
                                      .flags = DAVIT_REFUSAL_FINAL,
                                      .message = "pickles are never read",
                                      .hint = HINT});
}

static void pickle_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static const davit_format_iface pickle_format = {
    .struct_size = DAVIT_END(davit_format_iface, close),
    .open = pickle_open,
    .close = pickle_close,
};

DAVIT_REFUSES(pickle_never, "org.davit.format.pickle",
              DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN,
              DAVIT_R_PICKLE_UNSAFE, "pickle", "a pickle can run code and is never read",
              "convert the model to safetensors where you trust it");

static const davit_refusal *const pickle_refuses[] = {&pickle_never, NULL};

DAVIT_COMPONENT(pickle, DAVIT_KIND_FORMAT, "org.davit.format.pickle",
                "ext=bin|pt|pth|ckpt|pkl|pickle;magic=@0:80|@0:504b0304",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 90,
                .flags = DAVIT_COMPONENT_CONCURRENT | DAVIT_COMPONENT_FINAL_REFUSER,
                .probe = pickle_probe, .refuses = pickle_refuses,
                .iface = &pickle_format);

DAVIT_PLUGIN("org.davit.format.pickle", "pickle", "davit", "1.0.0", "Apache-2.0",
             &pickle);
