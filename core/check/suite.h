/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the conformance suite share. Findings go through check_fail; a test that
 * found nothing of its kind in the file is skipped. */
#ifndef DAVIT_CHECK_SUITE_H
#define DAVIT_CHECK_SUITE_H

#include "testlib/test.h"
#include "plugin/check.h"

#define CHECK_MAX_FINDINGS 12 /* of one test: who has so many needs no more */

typedef struct Check {
    DavitPluginFile *file; /* (borrowed) loaded */
    DavitReport *report;   /* (borrowed) */
    uint64_t seed;
    unsigned repeat;            /* >= 1 */
    const char *const *samples; /* (borrowed) paths, NULL-terminated */
    bool looked;                /* at something; else the test is skipped */
    size_t n_findings;
    const char *who;     /* (borrowed) component that is looked at; NULL = the bundle */
    int64_t said;        /* when the step was said last, monotonic us */
    const char *subject; /* (borrowed) for findings of the test library; NULL = none */
} Check;

/* The test that @words ask for (check.h of core/plugin): DavitHelperTestFn. */
void check_run(const char *const *words, DavitPluginFile *file, DavitReport *report,
               bool *out_skipped);

/* A finding; strings are copied. @who NULL = check->who. */
void check_fail(Check *check, const char *who, const char *subject, const char *expected,
                const char *found, const char *message);

/* Each usable component of @kind (DAVIT_N_KINDS = any) whose instance can be made. */
void check_each(Check *check, DavitKind kind,
                void (*look)(Check *check, DavitComponent *component));

/* What is about to run, for the message when it does not come back: "open". @what is
 * (static). */
void check_step(const Check *check, const char *what);

/* @n reproducible bytes. */
void check_noise(uint8_t *bytes, size_t n, uint32_t seed);

/* (owned, test_drop) the test library over @c and instance @self; failed checks of it become
 * findings. */
davit_test *check_library(Check *check, DavitComponent *c, void *self);

/* Values of the capability's @key. (owned) empty if there is none */
char **check_claimed(const DavitComponent *c, const char *key);

/* Open and close files that belong to @c, through instance @self: every sample, or what its
 * magic promises. format.c */
void check_read_files(Check *check, DavitComponent *c, void *self);

#define CHECK_DECLARE(name, what) void check_##name(Check *check);
DAVIT_CHECKS(CHECK_DECLARE)
#undef CHECK_DECLARE

#endif
