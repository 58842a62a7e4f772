/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of the test library; not installed. */
#ifndef DAVIT_TESTLIB_TEST_H
#define DAVIT_TESTLIB_TEST_H

#include <stdarg.h>

#include <davit/help/test.h>

/* The test host's file: all bytes in memory of exactly that size. */
struct davit_source {
    const uint8_t *bytes;
    uint64_t n;
    const char *name;
};

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
};

/* The host table of the tests. (static) */
const davit_host *test_host(void);
void test_records_clear(test_records *records);
void test_file_clear(davit_test_file *file);

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
