/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as model.safetensors.index.json. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_open_format("model.safetensors.index.json", data, size);
    return 0;
}
