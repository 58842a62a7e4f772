/* SPDX-License-Identifier: Apache-2.0
 * The frame of a test: opening the plugin, checks, records, random numbers. */
#include "test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- memory ---- */

static void *there(void *p)
{
    if (!p) {
        fprintf(stderr, "test: no memory\n");
        exit(1);
    }
    return p;
}

void *test_alloc(uint64_t n)
{
    return there(calloc(1, n ? n : 1));
}

void *test_realloc(void *p, uint64_t n)
{
    return there(realloc(p, n ? n : 1));
}

char *test_copy(const char *text, uint64_t n)
{
    char *copy = test_alloc(n + 1);

    if (n)
        memcpy(copy, text, n);
    return copy;
}

/* (owned) */
static char *format_text(const char *format, va_list args)
{
    va_list again;
    int n;
    char *text;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    text = test_alloc((uint64_t)(n < 0 ? 0 : n) + 1);
    vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, format, args);
    return text;
}

char *test_format_text(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = format_text(format, args);
    va_end(args);
    return text;
}

/* The whole pages that hold @n bytes, at least one, without the one behind. */
static size_t pages_of(uint64_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (size_t)(n ? (n + page - 1) / page : 1) * page;
}

uint8_t *test_exact(const void *bytes, uint64_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = pages_of(n);
    uint8_t *base = mmap(NULL, body + page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    there(base == MAP_FAILED || mprotect(base + body, page, PROT_NONE) ? NULL : base);
    if (n)
        memcpy(base + body - n, bytes, n);
    return base + body - n;
}

void test_exact_free(uint8_t *copy, uint64_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = pages_of(n);

    munmap(copy + n - body, body + page);
}

/* ---- records ---- */

static const char *copy_or_null(const char *text)
{
    return text ? test_copy(text, strlen(text)) : NULL;
}

static void keep(void *ctx, const davit_refusal *record)
{
    davit_test *t = ctx;
    const uint64_t size = record->struct_size;
    davit_refusal r;

    memset(&r, 0, sizeof r);
    memcpy(&r, record, size < sizeof r ? size : sizeof r);
    r.subject = copy_or_null(r.subject);
    r.expected = copy_or_null(r.expected);
    r.found = copy_or_null(r.found);
    r.message = copy_or_null(r.message);
    r.hint = copy_or_null(r.hint);
    r.url = copy_or_null(r.url);
    t->records.list =
        test_realloc(t->records.list, (t->records.n + 1) * sizeof *t->records.list);
    t->records.list[t->records.n++] = r;
}

void test_records_clear(test_records *records)
{
    for (uint64_t i = 0; i < records->n; i++) {
        const davit_refusal *r = &records->list[i];
        const char *const strings[] = {r->subject, r->expected, r->found,
                                       r->message, r->hint,     r->url};

        for (size_t k = 0; k < sizeof strings / sizeof *strings; k++)
            free((void *)(uintptr_t)strings[k]);
    }
    free(records->list);
    records->list = NULL;
    records->n = 0;
}

const davit_sink *davit_test_sink(davit_test *t)
{
    return &t->sink;
}

uint64_t davit_test_records(const davit_test *t)
{
    return t->records.n;
}

const davit_refusal *davit_test_record(const davit_test *t, uint64_t i)
{
    return i < t->records.n ? &t->records.list[i] : NULL;
}

int davit_test_said(const davit_test *t, uint32_t code)
{
    for (uint64_t i = 0; i < t->records.n; i++)
        if (t->records.list[i].code == code)
            return 1;
    return 0;
}

void davit_test_forget(davit_test *t)
{
    test_records_clear(&t->records);
}

void test_print_records(const davit_test *t)
{
    for (uint64_t i = 0; i < t->records.n; i++) {
        const davit_refusal *r = &t->records.list[i];

        fprintf(stderr, "  record R%u %s: %s (found %s, expected %s)\n", (unsigned)r->code,
                r->subject ? r->subject : "-", r->message ? r->message : "(no message)",
                r->found ? r->found : "-", r->expected ? r->expected : "-");
    }
}

/* ---- checks ---- */

int davit_test_check(davit_test *t, int ok, const char *file, int line, const char *what)
{
    t->n_checks++;
    if (!ok) {
        t->n_failed++;
        fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
        test_print_records(t);
    }
    return ok;
}

int test_expect(davit_test *t, int ok, const char *format, ...)
{
    va_list args;
    char *text;

    t->n_checks++;
    if (ok)
        return ok;
    t->n_failed++;
    va_start(args, format);
    text = format_text(format, args);
    va_end(args);
    if (t->on_fail) {
        t->on_fail(t->ctx, text);
    } else {
        for (char *at = text; *at; at++) /* texts under test go to nobody's terminal raw */
            *at = (unsigned char)*at < 32 || *at == 127 ? '?' : *at;
        fprintf(stderr, "test: %s (DAVIT_TEST_SEED=%llu)\n", text, (unsigned long long)t->seed);
        test_print_records(t);
    }
    free(text);
    return ok;
}

int davit_test_compare(davit_test *t, const char *what, const float *a, const float *b,
                       uint64_t n, double tol)
{
    double largest = 0;

    for (uint64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)b[i]));
    for (uint64_t i = 0; i < n; i++) {
        const int same = tol > 0 ? fabs((double)a[i] - (double)b[i]) <= tol * largest
                                 : memcmp(a + i, b + i, sizeof *a) == 0;

        if (!same)
            return test_expect(t, 0, "%s: value %llu is %.9g, expected %.9g (largest %.9g)",
                               what, (unsigned long long)i, (double)a[i], (double)b[i],
                               largest);
    }
    return test_expect(t, 1, "%s", what);
}

/* ---- random numbers: xorshift64* ---- */

static void start_random(davit_test *t)
{
    const char *given = getenv("DAVIT_TEST_SEED");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    t->seed = given ? strtoull(given, NULL, 10)
                    : (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    t->state = t->seed * 2 + 1; /* never 0 */
}

uint64_t davit_test_random(davit_test *t)
{
    t->state ^= t->state >> 12;
    t->state ^= t->state << 25;
    t->state ^= t->state >> 27;
    return (t->state * 2685821657736338717ull) >> 11;
}

uint64_t davit_test_between(davit_test *t, uint64_t lo, uint64_t hi)
{
    return lo + davit_test_random(t) % (hi - lo + 1);
}

uint64_t test_odd_size(davit_test *t)
{
    static const uint64_t sizes[] = {
        0,    1,    2,    3,         4,          5,          7,          8,          15, 16, 17,
        31,   32,   33,   63,        64,         96,         128,        255,        256, 257, 512,
        1000, 4096, 1u << 20, 1ull << 31, 1ull << 32, 1ull << 40, 1ull << 62, 1ull << 63, UINT64_MAX};

    return sizes[davit_test_between(t, 0, sizeof sizes / sizeof *sizes - 1)];
}

float davit_test_normal(davit_test *t)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += (double)(davit_test_random(t) & 0xffffff) / 0x1000000;
    return (float)sum;
}

/* ---- the plugin ---- */

static void die(davit_test *t, const char *what, const char *detail)
{
    fprintf(stderr, "test: %s: %s%s%s\n", t->path, what, detail ? ": " : "",
            detail ? detail : "");
    test_print_records(t);
    exit(1);
}

static const davit_bundle *enter(davit_test *t)
{
    const davit_hello hello = {.struct_size = DAVIT_END(davit_hello, host_version),
                               .abi_major = DAVIT_ABI_MAJOR,
                               .abi_minor = DAVIT_ABI_MINOR,
                               .host_name = "davit-plugin-test",
                               .host_version = "1.0.0"};
    davit_entry_v1_fn entry = NULL;
    const davit_bundle *bundle;
    void *so = dlopen(t->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *symbol;

    if (!so)
        die(t, "does not load", dlerror());
    symbol = dlsym(so, "davit_plugin_entry_v1");
    if (!symbol)
        die(t, "exports no davit_plugin_entry_v1", NULL);
    memcpy(&entry, &symbol, sizeof entry);
    bundle = entry(&hello, &t->sink);
    if (!bundle || bundle->magic != DAVIT_MAGIC || !bundle->components)
        die(t, "entry returns no bundle", NULL);
    if (bundle != entry(&hello, &t->sink))
        die(t, "entry returns another bundle when it is called again", NULL);
    return bundle;
}

static const davit_component *find_component(davit_test *t, const char *id)
{
    const davit_component *const *list = t->bundle->components;

    if (!id && list[0] && list[1])
        die(t, "holds several components: name one", NULL);
    for (; *list; list++)
        if (!id || strcmp((*list)->id, id) == 0)
            return *list;
    die(t, "has no such component", id);
    return NULL;
}

static davit_test *make(const char *path)
{
    davit_test *t = test_alloc(sizeof *t);

    t->path = path;
    t->sink = (davit_sink){DAVIT_END(davit_sink, refuse), t, keep};
    t->source_new = test_source_new;
    t->source_free = test_source_free;
    return t;
}

davit_test *davit_test_plugin_file(const char *path)
{
    davit_test *t = make(path);

    start_random(t);
    return t;
}

davit_test *test_adopt(const davit_component *component, void *self, uint64_t seed)
{
    davit_test *t = make(component->id);

    t->component = component;
    t->self = self;
    t->created = 1;
    t->seed = seed;
    t->state = seed * 2 + 1;
    return t;
}

void test_drop(davit_test *t)
{
    test_records_clear(&t->records);
    test_file_clear(&t->file);
    free(t);
}

davit_test *davit_test_try(const char *path, const char *id)
{
    davit_test *t = davit_test_plugin_file(path);
    davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                          .host = test_host()};

    if (!path)
        return t;
    t->bundle = enter(t);
    t->component = find_component(t, id);
    if (t->bundle->start && t->bundle->start(test_host(), &t->bundle_ctx, &t->sink))
        die(t, "start fails", NULL);
    in.component = t->component->id;
    t->created = !t->component->create ||
                 t->component->create(t->bundle_ctx, &in, &t->self, &t->sink) == DAVIT_OK;
    if (!t->created)
        test_expect(t, t->records.n > 0, "create fails without a record");
    return t;
}

davit_test *davit_test_open(const char *path, const char *id)
{
    davit_test *t = davit_test_try(path, id);

    if (path && !t->created)
        die(t, "create fails", NULL);
    return t;
}

int davit_test_end(davit_test *t)
{
    const int code = t->n_failed > 0;

    if (t->created && t->component->destroy)
        t->component->destroy(t->self);
    if (t->bundle && t->bundle->quiesce)
        t->bundle->quiesce(t->bundle_ctx);
    fprintf(stderr, "%llu checks, %llu failed\n", (unsigned long long)t->n_checks,
            (unsigned long long)t->n_failed);
    test_drop(t);
    return code;
}

const void *davit_test_iface(const davit_test *t)
{
    return t->created ? t->component->iface : NULL;
}

void *davit_test_self(const davit_test *t)
{
    return t->self;
}

const davit_component *davit_test_component(const davit_test *t)
{
    return t->component;
}
