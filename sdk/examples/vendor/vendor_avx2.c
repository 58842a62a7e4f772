/* SPDX-License-Identifier: Apache-2.0
 * Built with -mavx2 -mfma -mf16c; reached only where the host saw those instructions. */
#include "vendor.h"

#include <immintrin.h>
#include <string.h>

#define BLOCK_BYTES 34

static float half_at(const uint8_t *p)
{
    uint16_t bits;

    memcpy(&bits, p, sizeof bits);
    return _cvtsh_ss(bits);
}

float vendor_dot_q8_0(const uint8_t *row, const float *x, uint64_t n_blocks)
{
    __m256 sum = _mm256_setzero_ps();
    float part[8], total = 0;

    for (uint64_t b = 0; b < n_blocks; b++, row += BLOCK_BYTES, x += 32) {
        __m256 block = _mm256_setzero_ps();

        for (int i = 0; i < 32; i += 8) {
            __m128i bytes = _mm_setzero_si128();

            memcpy(&bytes, row + 2 + i, 8);
            block = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                                    _mm256_loadu_ps(x + i), block);
        }
        sum = _mm256_fmadd_ps(_mm256_set1_ps(half_at(row)), block, sum);
    }
    _mm256_storeu_ps(part, sum);
    for (int i = 0; i < 8; i++)
        total += part[i];
    return total;
}
