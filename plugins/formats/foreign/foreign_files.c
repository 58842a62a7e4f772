/* SPDX-License-Identifier: Apache-2.0
 * First bytes of foreign files. Each check cites what defines the bytes. */
#include "foreign.h"

#include <string.h>

#define CONVERT "convert the model to safetensors or GGUF, or download such files"

static int starts(const davit_probe_in *in, const char *bytes, size_t n)
{
    return in->head_len >= n && memcmp(in->head, bytes, n) == 0;
}

/* Does @word stand in the first @within bytes? */
static int holds(const davit_probe_in *in, const char *word, uint64_t within)
{
    const size_t n = strlen(word);
    const uint64_t end = in->head_len < within ? in->head_len : within;

    for (uint64_t i = 0; i + n <= end; i++)
        if (memcmp(in->head + i, word, n) == 0)
            return 1;
    return 0;
}

/* git-lfs docs/spec.md: the version line comes first. */
static int is_lfs(const davit_probe_in *in)
{
    return starts(in, "version https://git-lfs", 23);
}

/* A page that a server sent instead of the file, or an error document. */
static int is_html(const davit_probe_in *in)
{
    uint64_t i = 0;

    while (i < in->head_len && (in->head[i] == ' ' || in->head[i] == '\n' ||
                                in->head[i] == '\r' || in->head[i] == '\t'))
        i++;
    if (i >= in->head_len || in->head[i] != '<')
        return 0;
    return holds(in, "<html", 2048) || holds(in, "<HTML", 2048) ||
           holds(in, "<!DOCTYPE", 2048) || holds(in, "<!doctype", 2048) ||
           holds(in, "<Error>", 2048) || holds(in, "<?xml", 64);
}

/* HDF5 superblock signature; Keras and old TensorFlow weights. */
static int is_hdf5(const davit_probe_in *in)
{
    return starts(in, "\x89HDF\r\n\x1a\n", 8);
}

/* ggml before GGUF: u32 magics "ggml", "ggmf", "ggjt", "ggla" written little-endian. */
static int is_old_ggml(const davit_probe_in *in)
{
    return starts(in, "lmgg", 4) || starts(in, "fmgg", 4) || starts(in, "tjgg", 4) ||
           starts(in, "algg", 4);
}

/* GGUF written by a big-endian machine starts as usual; a swapped magic is a damaged
 * file. */
static int is_swapped_gguf(const davit_probe_in *in)
{
    return starts(in, "FUGG", 4);
}

/* onnx.proto: ModelProto starts with field 1 (ir_version, varint), then field 2
 * (producer) or 7, 8; told apart from other protobufs by its name or its producer. */
static int is_onnx(const davit_probe_in *in)
{
    if (in->head_len < 4 || in->head[0] != 0x08 || in->head[1] == 0 || in->head[1] > 32)
        return 0;
    if (in->head[2] != 0x12 && in->head[2] != 0x3a && in->head[2] != 0x42 &&
        in->head[2] != 0x72)
        return 0;
    return foreign_ends_with(in->name, ".onnx") || holds(in, "onnx", 256) ||
           holds(in, "pytorch", 64);
}

/* TensorRT serialised engine: magic "ftrt" (plan files since 7). */
static int is_tensorrt(const davit_probe_in *in)
{
    return starts(in, "ftrt", 4) || starts(in, "ptrt", 4) ||
           (foreign_ends_with(in->name, ".engine") && in->head_len >= 4 &&
            !starts(in, "GGUF", 4));
}

/* coreweave tensorizer: "|TZR|\n". */
static int is_tensorizer(const davit_probe_in *in)
{
    return starts(in, "|TZR|\n", 6);
}

/* Flax: a msgpack map (fixmap 0x81-0x8f, map16, map32) under its usual name. */
static int is_msgpack(const davit_probe_in *in)
{
    return foreign_ends_with(in->name, ".msgpack") && in->head_len >= 1 &&
           ((in->head[0] >= 0x81 && in->head[0] <= 0x8f) || in->head[0] == 0xde ||
            in->head[0] == 0xdf);
}

static int is_numpy(const davit_probe_in *in)
{
    return starts(in, "\x93NUMPY", 6);
}

/* FlatBuffers file identifier of TensorFlow Lite. */
static int is_tflite(const davit_probe_in *in)
{
    return in->head_len >= 8 && memcmp(in->head + 4, "TFL3", 4) == 0;
}

static int is_zip(const davit_probe_in *in)
{
    return starts(in, "PK\003\004", 4) || starts(in, "PK\005\006", 4);
}

static int is_gzip(const davit_probe_in *in)
{
    return starts(in, "\x1f\x8b\x08", 3) || starts(in, "\xfd\x37zXZ", 5) ||
           starts(in, "\x28\xb5\x2f\xfd", 4) || starts(in, "7z\xbc\xaf", 4);
}

static int is_tar(const davit_probe_in *in)
{
    return in->head_len >= 262 && memcmp(in->head + 257, "ustar", 5) == 0;
}

const foreign_kind *foreign_file(const davit_probe_in *in)
{
    static const struct {
        int (*is)(const davit_probe_in *in);
        foreign_kind kind;
    } kinds[] = {
        {is_lfs,
         {"a Git LFS pointer",
          "the file is a Git LFS pointer; the real file was not fetched",
          "run git lfs pull in the folder, or download the file itself",
          DAVIT_R_LFS_POINTER}},
        {is_html,
         {"a web page", "the file is a page that a server sent instead of the file",
          "download the file again; the address may need a login or /resolve/ in it",
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_hdf5,
         {"HDF5 (Keras .h5)", "HDF5 weights are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_old_ggml,
         {"GGML before GGUF (ggml, ggmf, ggjt)",
          "GGML files from before GGUF are not read",
          "convert the model to GGUF with a current llama.cpp from its original weights",
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_swapped_gguf,
         {"GGUF with swapped bytes", "the file's bytes are swapped",
          "convert the model again on this kind of machine", DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_tensorizer,
         {"tensorizer", "tensorizer files are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_onnx,
         {"ONNX", "ONNX graphs are not read",
          "take the weights that the graph was exported from",
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_tensorrt,
         {"TensorRT engine", "TensorRT engines are built for one GPU and are not read",
          "take the weights that the engine was built from", DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_msgpack,
         {"Flax msgpack", "Flax weights are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_numpy,
         {"NumPy", "NumPy arrays are not read as models", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_tflite,
         {"TensorFlow Lite", "TensorFlow Lite models are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_zip,
         {"a zip archive", "archives are not read",
          "unpack the archive and give the files in it", DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_gzip,
         {"a compressed archive", "archives are not read",
          "unpack the archive and give the files in it", DAVIT_R_FORMAT_UNSUPPORTED}},
        {is_tar,
         {"a tar archive", "archives are not read",
          "unpack the archive and give the files in it", DAVIT_R_FORMAT_UNSUPPORTED}},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].is(in))
            return &kinds[i].kind;
    return NULL;
}
