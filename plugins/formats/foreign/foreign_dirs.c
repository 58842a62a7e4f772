/* SPDX-License-Identifier: Apache-2.0
 * Directories of foreign checkpoints, by the names in them. Asked in order; the first
 * that fits names the refusal. */
#include "foreign.h"

#include <string.h>

#define CONVERT "convert the model to safetensors or GGUF, or download such files"

/* One name, with * at one end or none. */
static int fits(const char *name, const char *pattern)
{
    const size_t n = strlen(pattern);

    if (pattern[0] == '*')
        return foreign_ends_with(name, pattern + 1);
    if (pattern[n - 1] == '*')
        return strncmp(name, pattern, n - 1) == 0;
    return strcmp(name, pattern) == 0;
}

static int has(const davit_probe_in *in, const char *pattern)
{
    for (uint64_t i = 0; i < in->n_names; i++)
        if (fits(in->names[i], pattern))
            return 1;
    return 0;
}

const foreign_kind *foreign_directory(const davit_probe_in *in)
{
    static const struct {
        const char *pattern;
        foreign_kind kind;
    } kinds[] = {
        {"_CHECKPOINT_METADATA",
         {"Orbax checkpoint", "Orbax checkpoints are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"manifest.ocdbt",
         {"Orbax checkpoint", "Orbax checkpoints are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"ocdbt.process_*",
         {"Orbax checkpoint", "Orbax checkpoints are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.msgpack",
         {"Flax msgpack", "Flax weights are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"saved_model.pb",
         {"TensorFlow SavedModel", "TensorFlow models are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.ckpt.index",
         {"TensorFlow checkpoint", "TensorFlow checkpoints are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.h5",
         {"HDF5 (Keras .h5)", "HDF5 weights are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.keras",
         {"Keras archive", "Keras archives are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.onnx",
         {"ONNX", "ONNX graphs are not read",
          "take the weights that the graph was exported from",
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.engine",
         {"TensorRT engine", "TensorRT engines are built for one GPU and are not read",
          "take the weights that the engine was built from", DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.tensors",
         {"tensorizer", "tensorizer files are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"openvino_model.xml",
         {"OpenVINO", "OpenVINO models are not read", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"ggml-model*",
         {"GGML before GGUF", "GGML files from before GGUF are not read",
          "convert the model to GGUF with a current llama.cpp",
          DAVIT_R_FORMAT_UNSUPPORTED}},
        {"*.npz",
         {"NumPy", "NumPy archives are not read as models", CONVERT,
          DAVIT_R_FORMAT_UNSUPPORTED}},
    };

    /* Where a format lies beside that davit reads, the foreign files are only strays. */
    if (has(in, "*.safetensors") || has(in, "*.safetensors.index.json") ||
        has(in, "*.gguf"))
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (has(in, kinds[i].pattern))
            return &kinds[i].kind;
    return NULL;
}
