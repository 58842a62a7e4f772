/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a GGUF file; the first one picks the name, so that split names take part.
 */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int split = size >= 24 && (data[size - 1] & 1);

    fuzz_open_format(split ? "m-00001-of-00002.gguf" : "model.gguf", data, size);
    return 0;
}
