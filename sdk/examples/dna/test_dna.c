/* SPDX-License-Identifier: Apache-2.0
 * Pieces, resumption and cuts; ids from a tokenizer.json against a list by tokenizers 0.23.3
 * (make_golden.py writes both files). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/test.h>

static void test_pieces(davit_test *t)
{
    static const struct {
        const char *text, *pieces[8];
    } cases[] = {
        {"", {NULL}},
        {"ACGTNA", {"ACGTNA", NULL}},
        {"ACGTNAC", {"ACGTNA", "C", NULL}},
        {"ACG TTT\n", {"ACG", " ", "TTT", "\n", NULL}},
        {"acgT\xc3\xa9N", {"acg", "T", "\xc3\xa9", "N", NULL}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        davit_test_scan(t, davit_test_shape(t, 0), cases[i].text, cases[i].pieces);
    davit_test_scan_random(t, davit_test_shape(t, 0), 300);
    davit_test_scan_classes(t, davit_test_shape(t, 0));
}

/* Every line of golden.txt: a text, a tab, its ids. */
static void test_ids(davit_test *t, const char *dir)
{
    char path[1024], line[512], *said, *tab;
    FILE *f;
    int code, n = 0;

    snprintf(path, sizeof path, "%s/golden.txt", dir);
    f = fopen(path, "r");
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    while (f && fgets(line, sizeof line, f)) {
        tab = strchr(line, '\t');
        if (!DAVIT_CHECK(t, tab != NULL))
            break;
        *tab = '\0';
        said = davit_test_run(t, &code, "tokenize", path, line, "-q", NULL);
        if (!DAVIT_CHECK(t, code == 0 && strcmp(said, tab + 1) == 0))
            fprintf(stderr, "'%s': exit %d, got %sexpected %s", line, code, said, tab + 1);
        free(said);
        n++;
    }
    DAVIT_CHECK(t, n >= 5);
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    davit_test *t = davit_test_open(argc > 1 ? argv[1] : "./dna.so", NULL);

    test_pieces(t);
    test_ids(t, argc > 2 ? argv[2] : ".");
    return davit_test_end(t);
}
