/* SPDX-License-Identifier: Apache-2.0
 * Tiny random checkpoints against what transformers computes on them (made by the script
 * beside them; golden.json holds ids and greedy answers, .npy files the logits).
 *   test_stablelm PLUGIN MODEL REFUSED-MODEL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/test.h>

#define MAX_PROMPTS 4
#define MAX_IDS     256
#define TOLERANCE   1e-4 /* of the largest logit, as golden.json has it */

typedef struct prompt {
    char ids[MAX_IDS * 8], greedy[256], logits[64];
} prompt;

static char *read_file(const char *dir, const char *name, size_t *out_n)
{
    char path[1024], *text = NULL;
    FILE *f;
    long n;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "rb");
    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0) {
        rewind(f);
        text = calloc(1, (size_t)n + 1);
        *out_n = text ? fread(text, 1, (size_t)n, f) : 0;
    }
    fclose(f);
    return text;
}

/* What lies between @open and @close after @key; returns where it ends. */
static const char *take(const char *at, const char *key, char open, char close, char *out,
                        size_t size)
{
    const char *end;

    at = at ? strstr(at, key) : NULL;
    at = at ? strchr(at + strlen(key), open) : NULL;
    end = at ? strchr(at + 1, close) : NULL;
    if (!end || (size_t)(end - at) > size)
        return NULL;
    memcpy(out, at + 1, (size_t)(end - at - 1));
    out[end - at - 1] = '\0';
    return end;
}

static int read_prompts(const char *dir, prompt *list)
{
    size_t n;
    char *text = read_file(dir, "golden.json", &n);
    const char *at = text ? strstr(text, "\"prompts\"") : NULL;
    int count = 0;

    for (; at && count < MAX_PROMPTS; count++) {
        prompt *p = &list[count];

        at = take(at, "\"ids\":", '[', ']', p->ids, sizeof p->ids);
        at = take(at, "\"logits\":", '"', '"', p->logits, sizeof p->logits);
        at = take(at, "\"greedy\":", '[', ']', p->greedy, sizeof p->greedy);
        if (!at)
            break;
    }
    free(text);
    return count;
}

/* Values of a .npy of float32; the header's length is in bytes 8 and 9. */
static void test_logits(davit_test *t, const char *dir, const prompt *p)
{
    uint64_t rows, cols;
    size_t n;
    float *got = davit_test_logits(t, dir, p->ids, &rows, &cols);
    char *npy = read_file(dir, p->logits, &n);
    float *want = malloc(rows * cols * sizeof *want + 1);

    if (got && want && DAVIT_CHECK(t, npy && n > rows * cols * sizeof *want)) {
        const size_t skip = 10 + (unsigned char)npy[8] + 256u * (unsigned char)npy[9];

        if (DAVIT_CHECK(t, n - skip == rows * cols * sizeof *want)) {
            memcpy(want, npy + skip, n - skip);
            davit_test_compare(t, dir, got, want, rows * cols, TOLERANCE);
        }
    }
    free(got);
    free(want);
    free(npy);
}

static void test_greedy(davit_test *t, const char *dir, const prompt *p)
{
    char *said, ids[256];
    int code;

    said = davit_test_run(t, &code, "run", dir, "--ids", p->ids, "--max-tokens", "12",
                          "--activations", "f32", "--ignore-eos", "-q", NULL);
    snprintf(ids, sizeof ids, "%s", p->greedy);
    for (char *c = ids; (c = strchr(c, ','));)
        memmove(c, c + 1, strlen(c));
    if (!DAVIT_CHECK(t, code == 0 && strstr(said, ids)))
        fprintf(stderr, "davit run %s: exit %d, expected '%s':\n%s\n", dir, code, ids, said);
    free(said);
}

/* A setting that the plugin does not know the mathematics of is named, not passed over. */
static void test_refusal(davit_test *t, const char *dir)
{
    int code;
    char *said = davit_test_run(t, &code, "run", dir, "--ids", "1 2", NULL);

    if (!DAVIT_CHECK(t, code == 3 && strstr(said, "qk_layernorm")))
        fprintf(stderr, "davit run %s: exit %d\n%s", dir, code, said);
    free(said);
}

int main(int argc, char **argv)
{
    davit_test *t = davit_test_plugin_file(argc > 1 ? argv[1] : "./stablelm.so");
    prompt list[MAX_PROMPTS];

    if (argc > 3) {
        const int n = read_prompts(argv[2], list);

        DAVIT_CHECK(t, n > 0);
        for (int i = 0; i < n; i++) {
            test_logits(t, argv[2], &list[i]);
            test_greedy(t, argv[2], &list[i]);
        }
        test_refusal(t, argv[3]);
    }
    return davit_test_end(t);
}
