/* SPDX-License-Identifier: Apache-2.0
 * Linked into every unit test (davit_unit_test): each record of each report that a test
 * frees is held to the rules of core/base/codes.h, and at the end the codes that
 * tests/refusals/produced promises of this program must have come out. A test fails for
 * either.
 *
 * A row of produced with "root" behind it counts for root alone: others cannot change
 * owners. The linker puts __wrap_ in front of davit_report_free (-Wl,--wrap), so no
 * product code knows of this. With DAVIT_RECORDS=DIR in the environment the codes are
 * written to DIR/PROGRAM, for scripts/refusals.sh --collect. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"

void __real_davit_report_free(DavitReport *report);
void __wrap_davit_report_free(DavitReport *report);

#define PRODUCED DAVIT_SOURCE_DIR "/tests/refusals/produced"
#define N_CODES  1000 /* those of the table lie below */

static gint seen[N_CODES]; /* atomic: tests have threads */
static gint n_faults;
static pid_t owner; /* a fork of the test ends on its own account */

/* Records that are told; the others count. */
#define TOLD 20

static void hold(const DavitRecord *r)
{
    const char *lacks = davit_record_lacks(r);
    g_autofree char *sentence = NULL;

    if (r->code < N_CODES)
        g_atomic_int_set(&seen[r->code], 1);
    if (!lacks || g_atomic_int_add(&n_faults, 1) >= TOLD)
        return;
    sentence = davit_record_sentence(r);
    fprintf(stderr, "# %s at %s has no %s: %s\n", davit_code_name(r->code),
            r->stage ? r->stage : "-", lacks, sentence);
}

void __wrap_davit_report_free(DavitReport *report)
{
    const size_t n = report ? davit_report_count(report) : 0;

    for (size_t i = 0; i < n; i++)
        hold(davit_report_get(report, i));
    __real_davit_report_free(report);
}

/* ---- at the end ---- */

static void write_codes(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, program_invocation_short_name, NULL);
    FILE *out = fopen(path, "we");

    for (uint32_t code = 0; out && code < N_CODES; code++)
        if (g_atomic_int_get(&seen[code]))
            fprintf(out, "%s\n", davit_code_name(code));
    if (out)
        fclose(out);
}

/* A part of the tests only (-p, -s, --print) proves nothing about the rest. */
static bool ran_whole(void)
{
    char line[4096];
    FILE *in = fopen("/proc/self/cmdline", "re");
    const size_t n = in ? fread(line, 1, sizeof line - 1, in) : 0;

    if (in)
        fclose(in);
    line[n] = '\0';
    for (size_t at = strlen(line) + 1; at < n; at += strlen(line + at) + 1)
        if (line[at] == '-')
            return false;
    return n > 0;
}

static void check_promises(void)
{
    char line[256], code[128], program[128], who[16];
    FILE *in = fopen(PRODUCED, "re");

    if (!in) {
        fprintf(stderr, "# %s cannot be read\n", PRODUCED);
        n_faults++;
        return;
    }
    while (fgets(line, sizeof line, in)) {
        const int n = sscanf(line, "%127s %127s %15s", code, program, who);

        if (n < 2 || strcmp(program, program_invocation_short_name) != 0 ||
            (n == 3 && geteuid() != 0))
            continue;
        const uint32_t number = davit_code_number(code);

        if (number < N_CODES && number && g_atomic_int_get(&seen[number]))
            continue;
        fprintf(stderr, "# tests/refusals/produced: %s makes no record %s\n", program,
                code);
        n_faults++;
    }
    fclose(in);
}

__attribute__((constructor)) static void begin(void)
{
    owner = getpid();
}

__attribute__((destructor)) static void end(void)
{
    const char *dir = getenv("DAVIT_RECORDS");

    if (getpid() != owner)
        return;
    if (dir)
        write_codes(dir);
    if (ran_whole())
        check_promises();
    if (!n_faults)
        return;
    fprintf(stderr, "# %d records are not complete or not there\n", n_faults);
    fflush(NULL);
    _exit(1);
}
