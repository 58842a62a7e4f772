/* SPDX-License-Identifier: Apache-2.0
 * Processor features: compiler builtins (which look at XCR0) where both compilers know
 * the name, CPUID for the rest, behind the builtin that proves the register state. */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define LEVEL_V2 DAVIT_CPU_SSE42
#define LEVEL_V3                                                                         \
    (LEVEL_V2 | DAVIT_CPU_AVX | DAVIT_CPU_AVX2 | DAVIT_CPU_FMA | DAVIT_CPU_F16C |        \
     DAVIT_CPU_BMI2)
#define LEVEL_V4                                                                         \
    (LEVEL_V3 | DAVIT_CPU_AVX512F | DAVIT_CPU_AVX512BW | DAVIT_CPU_AVX512DQ |            \
     DAVIT_CPU_AVX512VL)
/* levels of ours between and above the psABI's: 8-bit dot products */
#define LEVEL_AVXVNNI    (LEVEL_V3 | DAVIT_CPU_AVXVNNI)
#define LEVEL_AVX512VNNI (LEVEL_V4 | DAVIT_CPU_AVX512VNNI)

static const struct {
    const char *name;
    uint64_t features;
} levels[] = {
    {"scalar", 0},
    {"x86-64-v2", LEVEL_V2},
    {"x86-64-v3", LEVEL_V3},
    {"avxvnni", LEVEL_AVXVNNI},
    {"x86-64-v4", LEVEL_V4},
    {"avx512vnni", LEVEL_AVX512VNNI},
};

#if defined(__x86_64__)

/* Bits that only CPUID tells to both compilers; valid when AVX state is saved. */
static uint64_t detect_by_cpuid(void)
{
    unsigned a, b, c, d;
    uint64_t bits = 0;

    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C))
        bits |= DAVIT_CPU_F16C;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 4))) /* AVX-VNNI */
        bits |= DAVIT_CPU_AVXVNNI;
    return bits;
}

static uint64_t detect(void)
{
    uint64_t bits = 0;

    __builtin_cpu_init();
#define HAS(name, bit) (__builtin_cpu_supports(name) ? (bit) : 0)
    bits |= HAS("sse4.2", DAVIT_CPU_SSE42);
    bits |= HAS("avx", DAVIT_CPU_AVX | detect_by_cpuid());
    bits |= HAS("avx2", DAVIT_CPU_AVX2);
    bits |= HAS("fma", DAVIT_CPU_FMA);
    bits |= HAS("bmi2", DAVIT_CPU_BMI2);
    bits |= HAS("avx512f", DAVIT_CPU_AVX512F);
    bits |= HAS("avx512bw", DAVIT_CPU_AVX512BW);
    bits |= HAS("avx512dq", DAVIT_CPU_AVX512DQ);
    bits |= HAS("avx512vl", DAVIT_CPU_AVX512VL);
    bits |= HAS("avx512vnni", DAVIT_CPU_AVX512VNNI);
    bits |= HAS("avx512bf16", DAVIT_CPU_AVX512BF16);
    bits |= HAS("avx512vbmi", DAVIT_CPU_AVX512VBMI);
#undef HAS
    return bits;
}

#else

static uint64_t detect(void)
{
    return 0;
}

#endif

bool davit_cpu_cap(const char *level, uint64_t *features)
{
    for (size_t i = 0; i < G_N_ELEMENTS(levels); i++) {
        if (strcmp(levels[i].name, level) == 0) {
            *features &= levels[i].features;
            return true;
        }
    }
    return false;
}

uint64_t davit_cpu_features(void)
{
    static gsize known; /* 1 + bits: never 0 once set */

    if (g_once_init_enter(&known)) {
        const char *level = getenv("DAVIT_CPU_LEVEL");
        uint64_t bits = detect();

        if (level && *level && !davit_cpu_cap(level, &bits))
            bits = 0;
        g_once_init_leave(&known, (gsize)bits + 1);
    }
    return (uint64_t)known - 1;
}

const char *davit_cpu_level(void)
{
    const uint64_t bits = davit_cpu_features();
    size_t best = 0;

    for (size_t i = 1; i < G_N_ELEMENTS(levels); i++) {
        if ((bits & levels[i].features) == levels[i].features)
            best = i;
    }
    return levels[best].name;
}

int32_t davit_cpu_check(DavitReport *report)
{
    const char *level = getenv("DAVIT_CPU_LEVEL");
    uint64_t bits = 0;

    if (!level || !*level || davit_cpu_cap(level, &bits))
        return DAVIT_OK;
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_USAGE,
                        .status = DAVIT_E_USAGE,
                        .stage = "start",
                        .subject = "DAVIT_CPU_LEVEL",
                        .expected = "scalar, x86-64-v2, x86-64-v3, avxvnni, x86-64-v4 or avx512vnni",
                        .found = level,
                        .message = "the environment variable names no CPU level"});
}

static uint64_t suite_features(void *host_ctx)
{
    (void)host_ctx;
    return davit_cpu_features();
}

const davit_cpu_suite *davit_cpu_suite_get(void)
{
    static const davit_cpu_suite suite = {
        .struct_size = DAVIT_END(davit_cpu_suite, features),
        .features = suite_features,
    };

    return &suite;
}
