/* SPDX-License-Identifier: Apache-2.0
 * The entry against the SDK's reference; what it says without its instructions; that davit
 * chooses it, and goes on without it.
 *   test_vendor PLUGIN [MODEL] */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/test.h>

/* K is at most 160 in these cases: (K / 8 + 12) roundings of 2^-24 on sums of |x w| below 200. */
#define TOLERANCE 1e-6
#define FLOOR     4e-4

static void test_numbers(const char *plugin, int *code)
{
    davit_test *t = davit_test_try(plugin, NULL);

    if (davit_test_iface(t))
        davit_test_kernels(t, NULL, 300, TOLERANCE, FLOOR);
    else
        DAVIT_CHECK(t, davit_test_said(t, DAVIT_R_CPU_UNSUPPORTED));
    *code |= davit_test_end(t);
}

/* The host of the test sees no instructions with this level, as davit does. */
static void test_refusal(const char *plugin, int *code)
{
    davit_test *t;

    setenv("DAVIT_CPU_LEVEL", "scalar", 1);
    t = davit_test_try(plugin, NULL);
    DAVIT_CHECK(t, davit_test_iface(t) == NULL);
    DAVIT_CHECK(t, davit_test_said(t, DAVIT_R_CPU_UNSUPPORTED));
    *code |= davit_test_end(t);
    unsetenv("DAVIT_CPU_LEVEL");
}

static void check_says(davit_test *t, const char *said, int is, const char *text)
{
    if (!DAVIT_CHECK(t, (strstr(said, text) != NULL) == is))
        fprintf(stderr, "'%s' %s:\n%s", text, is ? "is not in" : "is in", said);
}

/* Output of `davit COMMAND MODEL`, which must succeed. (owned) */
static char *ask(davit_test *t, const char *command, const char *model)
{
    int code;
    char *said = davit_test_run(t, &code, command, model, NULL);

    if (!DAVIT_CHECK(t, code == 0))
        fprintf(stderr, "davit %s: exit %d\n%s", command, code, said);
    return said;
}

static void test_choice(const char *plugin, const char *model, int *code)
{
    davit_test *t = davit_test_plugin_file(plugin);
    char *said = ask(t, "plan", model);
    int status;

    check_says(t, said, 1, "vendor linear q8_0");
    free(said);
    said = ask(t, "why", model);
    check_says(t, said, 1, "chosen       org.example.kernels.vendor");
    free(said);
    said = davit_test_run(t, &status, "plugin", "ops", "linear", "--model", model, NULL);
    DAVIT_CHECK(t, status == 0);
    check_says(t, said, 1, "chosen  vendor linear q8_0 ");
    free(said);

    /* without its instructions the model runs on davit's own kernels, and why tells the reason */
    setenv("DAVIT_CPU_LEVEL", "scalar", 1);
    said = ask(t, "plan", model);
    check_says(t, said, 0, "vendor linear q8_0");
    free(said);
    said = ask(t, "why", model);
    check_says(t, said, 1, "cpu-unsupported: need AVX2, FMA and F16C");
    free(said);
    unsetenv("DAVIT_CPU_LEVEL");
    *code |= davit_test_end(t);
}

int main(int argc, char **argv)
{
    const char *plugin = argc > 1 ? argv[1] : "./vendor.so";
    int code = 0;

    test_numbers(plugin, &code);
    test_refusal(plugin, &code);
    if (argc > 2)
        test_choice(plugin, argv[2], &code);
    return code;
}
