/* SPDX-License-Identifier: Apache-2.0
 * The host of the tests: suites cpu and io, memory. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>
#include <davit/help/records.h>

/* ---- cpu ---- */

static uint64_t cpu_features(void *host_ctx)
{
    uint64_t bits = 0;
    const char *level = getenv("DAVIT_CPU_LEVEL");

    (void)host_ctx;
    if (level && strcmp(level, "scalar") == 0)
        return 0;
#if defined(__x86_64__)
#define HAS(name, bit)                                                                    \
    if (__builtin_cpu_supports(name))                                                     \
    bits |= bit
    HAS("sse4.2", DAVIT_CPU_SSE42);
    HAS("avx", DAVIT_CPU_AVX);
    HAS("avx2", DAVIT_CPU_AVX2);
    HAS("fma", DAVIT_CPU_FMA);
    HAS("bmi2", DAVIT_CPU_BMI2);
    HAS("avx512f", DAVIT_CPU_AVX512F);
    HAS("avx512bw", DAVIT_CPU_AVX512BW);
    HAS("avx512dq", DAVIT_CPU_AVX512DQ);
    HAS("avx512vl", DAVIT_CPU_AVX512VL);
    HAS("avx512vnni", DAVIT_CPU_AVX512VNNI);
    HAS("avx512bf16", DAVIT_CPU_AVX512BF16);
    HAS("avx512vbmi", DAVIT_CPU_AVX512VBMI);
#undef HAS
    if (bits & DAVIT_CPU_AVX2) /* every CPU with AVX2 has it; gcc 12 cannot ask */
        bits |= DAVIT_CPU_F16C;
#endif
    return bits;
}

static const davit_cpu_suite cpu_suite = {.struct_size = DAVIT_END(davit_cpu_suite, features),
                                          .features = cpu_features};

/* ---- io over memory ---- */

struct davit_source {
    const uint8_t *bytes; /* (borrowed) */
    uint64_t n;
    const char *name; /* (borrowed) */
};

davit_source *test_source_new(const char *name, const uint8_t *bytes, uint64_t n)
{
    davit_source *src = test_alloc(sizeof *src);

    *src = (davit_source){bytes, n, name};
    return src;
}

void test_source_free(davit_source *source)
{
    free(source);
}

static uint64_t io_size(const davit_source *src)
{
    return src->n;
}

static const char *io_name(const davit_source *src)
{
    return src->name;
}

static int32_t past_end(const davit_source *src, uint64_t off, uint64_t n,
                        const davit_sink *sink)
{
    char found[64];

    snprintf(found, sizeof found, "%llu bytes at %llu", (unsigned long long)n,
             (unsigned long long)off);
    return davit_say(sink, DAVIT_E_CORRUPT,
                     &(davit_refusal){.code = DAVIT_R_FILE_TRUNCATED,
                                      .subject = src->name,
                                      .found = found,
                                      .message = "a read passes the end of the file"});
}

static int32_t io_view(const davit_source *src, uint64_t off, uint64_t n,
                       const uint8_t **out_bytes, const davit_sink *sink)
{
    if (!davit_bytes_inside(off, n, src->n))
        return past_end(src, off, n, sink);
    *out_bytes = src->bytes + off;
    return DAVIT_OK;
}

static int32_t io_read(const davit_source *src, uint64_t off, void *buf, uint64_t n,
                       const davit_sink *sink)
{
    if (!davit_bytes_inside(off, n, src->n))
        return past_end(src, off, n, sink);
    if (n)
        memcpy(buf, src->bytes + off, n);
    return DAVIT_OK;
}

static const davit_io_suite io_suite = {.struct_size = DAVIT_END(davit_io_suite, view),
                                        .size = io_size,
                                        .name = io_name,
                                        .read = io_read,
                                        .view = io_view};

/* ---- the table ---- */

static const void *suite(void *ctx, const char *name, uint32_t major, uint32_t min_minor)
{
    (void)ctx;
    if (major != 1 || min_minor > 0)
        return NULL;
    if (strcmp(name, "cpu") == 0)
        return &cpu_suite;
    return strcmp(name, "io") == 0 ? &io_suite : NULL;
}

static void log_text(void *ctx, uint32_t level, const char *component_id, const char *utf8)
{
    (void)ctx;
    fprintf(stderr, "log %u %s: %s\n", (unsigned)level, component_id, utf8);
}

static void *host_alloc(void *ctx, size_t n_bytes, size_t align)
{
    void *p = NULL;

    (void)ctx;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, n_bytes ? n_bytes : 1))
        return NULL;
    return p;
}

static void host_free(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

static int32_t cancelled(void *ctx)
{
    (void)ctx;
    return 0;
}

const davit_host *test_host(void)
{
    static const davit_host host = {.struct_size = DAVIT_END(davit_host, cancelled),
                                    .abi_major = DAVIT_ABI_MAJOR,
                                    .abi_minor = DAVIT_ABI_MINOR,
                                    .suite = suite,
                                    .log = log_text,
                                    .alloc = host_alloc,
                                    .free = host_free,
                                    .cancelled = cancelled};

    return &host;
}
