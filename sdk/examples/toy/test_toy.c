/* SPDX-License-Identifier: Apache-2.0
 * Valid, foreign, later and broken files. */
#include <string.h>

#include <davit/help/test.h>

static const char sample[] = "TOY1\2\0\0\0\0\0\200\77\0\0\0\100"; /* 1.0f, 2.0f */
#define SAMPLE_LEN (sizeof sample - 1)

int main(int argc, char **argv)
{
    davit_test *t = davit_test_open(argc > 1 ? argv[1] : "./toy.so", NULL);
    const davit_test_file *f = davit_test_format(t, "two.toy", sample, SAMPLE_LEN);

    if (DAVIT_CHECK(t, f->status == DAVIT_OK && f->n_tensors == 1)) {
        DAVIT_CHECK(t, strcmp(f->tensors[0].name, "toy.weight") == 0);
        DAVIT_CHECK(t, f->tensors[0].rank == 1 && f->tensors[0].shape[0] == 2);
    }
    f = davit_test_format(t, "x.bin", "\0\0\0\0\0\0\0\0", 8);
    DAVIT_CHECK(t, f->verdict == DAVIT_DECLINE);
    f = davit_test_format(t, "two.toy", "TOY2\2\0\0\0\0\0\0\0\0\0\0\0", SAMPLE_LEN);
    DAVIT_CHECK(t, f->verdict == DAVIT_REFUSE && davit_test_said(t, DAVIT_R_VERSION_UNSUPPORTED));
    f = davit_test_format(t, "two.toy", sample, SAMPLE_LEN - 1);
    DAVIT_CHECK(t, f->status == DAVIT_E_CORRUPT);
    DAVIT_CHECK(t, davit_test_said(t, DAVIT_R_TENSOR_OUT_OF_FILE));
    davit_test_format_broken(t, "two.toy", sample, SAMPLE_LEN, 1000);
    return davit_test_end(t);
}
