/* SPDX-License-Identifier: Apache-2.0
 * Small checkpoints for tests, and the program davit run on them. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define MAX_ARGS 32

typedef struct stored {
    char *name, *dtype, *shape; /* shape as JSON: "[2,3]" */
    uint8_t *bytes;
    uint64_t n_bytes;
} stored;

struct davit_test_model {
    davit_test *t;
    stored *list;
    uint64_t n;
};

davit_test_model *davit_test_model_new(davit_test *t)
{
    davit_test_model *m = test_alloc(sizeof *m);

    m->t = t;
    return m;
}

void davit_test_model_free(davit_test_model *m)
{
    for (uint64_t i = 0; m && i < m->n; i++) {
        free(m->list[i].name);
        free(m->list[i].dtype);
        free(m->list[i].shape);
        free(m->list[i].bytes);
    }
    if (m)
        free(m->list);
    free(m);
}

void davit_test_model_bytes(davit_test_model *m, const char *name, const char *dtype,
                            uint64_t rank, const uint64_t *shape, const void *bytes,
                            uint64_t n_bytes)
{
    char *text = test_copy("[", 1);
    stored *s;

    for (uint64_t i = 0; i < rank; i++) {
        char *longer = test_format_text("%s%s%llu", text, i ? "," : "",
                                        (unsigned long long)shape[i]);
        free(text);
        text = longer;
    }
    m->list = test_realloc(m->list, (m->n + 1) * sizeof *m->list);
    s = &m->list[m->n++];
    s->name = test_copy(name, strlen(name));
    s->dtype = test_copy(dtype, strlen(dtype));
    s->shape = test_format_text("%s]", text);
    s->bytes = (uint8_t *)test_copy(bytes, n_bytes);
    s->n_bytes = n_bytes;
    free(text);
}

float *davit_test_model_random(davit_test_model *m, const char *name, uint64_t rows,
                               uint64_t cols, float scale, float mean)
{
    const uint64_t n = rows * (cols ? cols : 1), shape[2] = {rows, cols};
    float *x = test_alloc(n * sizeof *x);

    for (uint64_t i = 0; i < n; i++)
        x[i] = mean + scale * davit_test_normal(m->t);
    davit_test_model_bytes(m, name, "F32", cols ? 2 : 1, shape, x, n * sizeof *x);
    free(x);
    return (float *)(void *)m->list[m->n - 1].bytes;
}

/* ---- writing ---- */

static void give_up(const char *path)
{
    fprintf(stderr, "test: %s: %s\n", path, strerror(errno));
    exit(1);
}

static FILE *create(const char *dir, const char *name)
{
    char *path = test_format_text("%s/%s", dir, name);
    FILE *f = fopen(path, "wb");

    if (!f)
        give_up(path);
    free(path);
    return f;
}

/* The header of a safetensors file: length, then JSON padded to eight bytes. */
static void write_header(const davit_test_model *m, FILE *f)
{
    char *json = test_copy("{", 1);
    uint64_t at = 0, n;
    uint8_t length[8];

    for (uint64_t i = 0; i < m->n; i++) {
        const stored *s = &m->list[i];
        char *longer = test_format_text(
            "%s%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}", json,
            i ? "," : "", s->name, s->dtype, s->shape, (unsigned long long)at,
            (unsigned long long)(at + s->n_bytes));
        free(json);
        json = longer;
        at += s->n_bytes;
    }
    n = (strlen(json) + 1 + 7) / 8 * 8;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(n >> 8 * i);
    fwrite(length, 1, 8, f);
    fprintf(f, "%s}", json);
    for (uint64_t i = strlen(json) + 1; i < n; i++)
        fputc(' ', f);
    free(json);
}

void davit_test_model_write(davit_test_model *m, const char *dir, const char *config_json)
{
    FILE *f;
    int bad = 0;

    if (mkdir(dir, 0755) && errno != EEXIST)
        give_up(dir);
    f = create(dir, "model.safetensors");
    write_header(m, f);
    for (uint64_t i = 0; i < m->n; i++)
        bad |= fwrite(m->list[i].bytes, 1, m->list[i].n_bytes, f) != m->list[i].n_bytes;
    bad |= fclose(f) != 0;
    f = create(dir, "config.json");
    bad |= fputs(config_json, f) == EOF;
    bad |= fclose(f) != 0;
    if (bad)
        give_up(dir);
}

/* ---- the program ---- */

static char *read_all(int fd)
{
    char *text = test_alloc(1);
    uint64_t n = 0;

    for (;;) {
        ssize_t got;

        text = test_realloc(text, n + 4097);
        got = read(fd, text + n, 4096);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (uint64_t)got;
    }
    text[n] = '\0';
    return text;
}

static int exit_of(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *spawn(char *const *argv, int *out_exit)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid;
    char *text;

    if (pipe2(ends, O_CLOEXEC))
        give_up("pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    errno = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (errno) {
        *out_exit = -1;
        text = test_format_text("%s does not start: %s", argv[0], strerror(errno));
    } else {
        text = read_all(ends[0]);
        *out_exit = exit_of(pid);
    }
    close(ends[0]);
    return text;
}

char *davit_test_run(davit_test *t, int *out_exit, ...)
{
    const char *program = getenv("DAVIT");
    const char *argv[MAX_ARGS + 6] = {program ? program : "davit"};
    char *dir = test_copy(t->path ? t->path : "", t->path ? strlen(t->path) : 0), *slash;
    char *text, *absolute = t->path ? realpath(t->path, NULL) : NULL;
    va_list args;
    int n = 1;

    va_start(args, out_exit);
    for (const char *a; n < MAX_ARGS && (a = va_arg(args, const char *));)
        argv[n++] = a;
    va_end(args);
    if (absolute) { /* a build folder that others may write to is trusted by name */
        free(dir);
        dir = test_copy(absolute, strlen(absolute));
        slash = strrchr(dir, '/');
        if (slash)
            *slash = '\0';
        argv[n++] = "--plugin-path";
        argv[n++] = absolute;
        argv[n++] = "--trust-dir";
        argv[n++] = dir;
    }
    text = spawn((char *const *)(uintptr_t)argv, out_exit);
    free(absolute);
    free(dir);
    return text;
}

static int read_shape(const char *text, unsigned long long *rows, unsigned long long *cols)
{
    *rows = 1;
    if (sscanf(text, "'shape': (%llu, %llu)", rows, cols) != 2) {
        *cols = *rows;
        *rows = 1;
    }
    return *rows < 1u << 20 && *cols < 1u << 20;
}

/* A .npy of float32 [rows, cols] in C order, as davit writes it. */
static float *read_npy(const char *path, uint64_t *out_rows, uint64_t *out_cols)
{
    FILE *f = fopen(path, "rb");
    uint8_t head[10];
    char text[1024] = {0};
    const char *shape;
    unsigned long long rows = 0, cols = 0;
    float *x = NULL;
    uint64_t length;

    if (!f)
        return NULL;
    if (fread(head, 1, 10, f) == 10 && memcmp(head, "\x93NUMPY", 6) == 0) {
        length = head[8] + 256u * head[9];
        if (length < sizeof text && fread(text, 1, length, f) == length &&
            strstr(text, "<f4") && (shape = strstr(text, "'shape': (")) &&
            read_shape(shape, &rows, &cols)) {
            x = test_alloc(rows * cols * sizeof *x);
            if (fread(x, sizeof *x, rows * cols, f) != rows * cols) {
                free(x);
                x = NULL;
            }
        }
    }
    fclose(f);
    *out_rows = rows;
    *out_cols = cols;
    return x;
}

/* What @said came with, read from @path; frees @said. */
static float *take_npy(davit_test *t, const char *path, char *said, int code, uint64_t *out_rows,
                       uint64_t *out_cols)
{
    float *x = NULL;

    *out_rows = *out_cols = 0;
    if (test_expect(t, code == 0, "davit ends with %d:\n%s", code, said)) {
        x = read_npy(path, out_rows, out_cols);
        test_expect(t, x != NULL, "%s is not a matrix of float32", path);
    }
    free(said);
    return x;
}

float *davit_test_logits(davit_test *t, const char *dir, const char *ids, uint64_t *out_rows,
                         uint64_t *out_cols)
{
    int code;
    char *said =
        davit_test_run(t, &code, "eval", dir, "--ids", ids, "--logits", "logits.npy", NULL);

    return take_npy(t, "logits.npy", said, code, out_rows, out_cols);
}

float *davit_test_dump(davit_test *t, const char *dir, const char *name, uint64_t *out_rows,
                       uint64_t *out_cols)
{
    int code;
    char *said = davit_test_run(t, &code, "dump", dir, name, "--out", "dump.npy", NULL);

    return take_npy(t, "dump.npy", said, code, out_rows, out_cols);
}
