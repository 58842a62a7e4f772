/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of the test library; not installed. */
#ifndef DAVIT_TESTLIB_TEST_H
#define DAVIT_TESTLIB_TEST_H

#include <stdarg.h>

#include <davit/help/test.h>

typedef struct test_records {
    davit_refusal *list; /* (owned) with their strings */
    uint64_t n;
} test_records;

struct davit_test {
    const char *path; /* (borrowed) the plugin file, NULL = none */
    const davit_bundle *bundle;
    void *bundle_ctx;
    const davit_component *component;
    void *self;
    int created; /* 1 = create succeeded or is absent */
    davit_sink sink;
    test_records records;
    uint64_t seed, state; /* of the random numbers: start and now */
    uint64_t n_checks, n_failed;
    davit_test_file file; /* of the last davit_test_format */
    /* Whoever brings a host of its own (core/check) takes these over. */
    void (*on_fail)(void *ctx, const char *what); /* a failed check; NULL = stderr */
    davit_source *(*source_new)(const char *name, const uint8_t *bytes, uint64_t n);
    void (*source_free)(davit_source *source);
    void (*on_round)(void *ctx); /* before each input of a long run; NULL = nobody waits */
    void *ctx;                   /* of both */
};

/* Another input begins: whoever watches for hangs hears of it. */
static inline void test_round(const davit_test *t)
{
    if (t->on_round)
        t->on_round(t->ctx);
}

/* A test over a component and an instance that somebody else made and destroys. No plugin
 * code runs in either. @seed starts the random numbers. */
davit_test *test_adopt(const davit_component *component, void *self, uint64_t seed);
void test_drop(davit_test *t);

/* The host table of the tests. (static) */
const davit_host *test_host(void);
void test_records_clear(test_records *records);
void test_file_clear(davit_test_file *file);

/* A file of the tests' own host: @bytes (borrowed) in memory. */
davit_source *test_source_new(const char *name, const uint8_t *bytes, uint64_t n);
void test_source_free(davit_source *source);

/* (owned, test_exact_free) a copy of @n bytes with a page behind it that cannot be touched, so
 * that a read past the end is a crash even without AddressSanitizer. */
uint8_t *test_exact(const void *bytes, uint64_t n);
void test_exact_free(uint8_t *copy, uint64_t n);

/* Random cuts of a checked module, where the plugin makes them: inside the tensors, and equal to
 * that part of @whole [E, N, K] in every bit (NULL = only decoded). */
void test_quant_cuts(davit_test *t, const davit_quant_desc *d, const davit_quant_bytes *parts,
                     const float *whole, uint64_t rounds);

/* A size that loops, blocks and products stumble over: 0, round numbers and their neighbours, the
 * ends of 32 and 64 bits. */
uint64_t test_odd_size(davit_test *t);

/* Probe, open and close once; nothing is compared and nothing kept. */
void test_format_once(davit_test *t, const char *name, const void *bytes, uint64_t n);

/* One random unit of text, up to 16 bytes; returns its length. text.c. */
uint64_t test_text_unit(davit_test *t, char *out);
/* Text @i of a list that walks every border of every class of characters; returns its length,
 * 0 past the end of the list. @cap >= 64. */
uint64_t test_text_border(uint64_t i, char *out, uint64_t cap);

/* malloc and friends that end the program instead of giving NULL. @n may be 0. */
void *test_alloc(uint64_t n); /* zeroed */
void *test_realloc(void *p, uint64_t n);
char *test_copy(const char *text, uint64_t n);
/* (owned, free) */
char *test_format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failed or held check with a message of the caller's. Returns @ok. */
int test_expect(davit_test *t, int ok, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* All records on stderr. */
void test_print_records(const davit_test *t);

#endif
