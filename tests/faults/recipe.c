/* SPDX-License-Identifier: Apache-2.0
 * Reader of recipes. For tests: a mistake in a recipe ends the program. */
#include "recipe.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void recipe_file_free(void *p)
{
    RecipeFile *file = p;

    if (file->bytes)
        g_byte_array_unref(file->bytes);
    g_free(file->name);
    g_free(file->target);
    g_free(file);
}

/* What a line is read with. */
typedef struct Line {
    const char *path;
    int number;
    char *rest;        /* of the line, after the directive */
    GByteArray *bytes; /* of the current file, NULL before the first */
} Line;

static void mistake(const Line *line, const char *why)
{
    g_error("%s:%d: %s", line->path, line->number, why);
}

/* ---- words and numbers ---- */

static char *next_word(Line *line)
{
    char *word = line->rest;

    word += strspn(word, " ");
    line->rest = word + strcspn(word, " ");
    if (*line->rest)
        *line->rest++ = '\0';
    return word;
}

static uint64_t parse_number(const Line *line, const char *word)
{
    char *end;
    const uint64_t n = word[0] == '-' ? (uint64_t)g_ascii_strtoll(word, &end, 0)
                                      : g_ascii_strtoull(word, &end, 0);

    if (end == word || *end)
        mistake(line, "a number is expected");
    return n;
}

static uint64_t next_number(Line *line)
{
    const char *word = next_word(line);

    return parse_number(line, word);
}

/* ---- bytes ---- */

static void put(const Line *line, const void *p, size_t n)
{
    if (!line->bytes)
        mistake(line, "no file yet");
    g_byte_array_append(line->bytes, p, (guint)n);
}

static void put_le(const Line *line, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)(v >> (8 * i));

        put(line, &b, 1);
    }
}

static void put_f32(const Line *line, const char *word)
{
    const float f = (float)g_ascii_strtod(word, NULL);
    uint32_t bits;

    memcpy(&bits, &f, 4);
    put_le(line, bits, 4);
}

/* @text with its escapes resolved. (owned) */
static GString *unescape(const Line *line, const char *text)
{
    GString *s = g_string_new(NULL);

    for (const char *p = text; *p; p++) {
        if (*p != '\\') {
            g_string_append_c(s, *p);
            continue;
        }
        p++;
        if (*p == 'n')
            g_string_append_c(s, '\n');
        else if (*p == 't')
            g_string_append_c(s, '\t');
        else if (*p == '\\')
            g_string_append_c(s, '\\');
        else if (*p == 'x' && g_ascii_isxdigit(p[1]) && g_ascii_isxdigit(p[2])) {
            const int high = g_ascii_xdigit_value(p[1]);

            g_string_append_c(s, (char)(high * 16 + g_ascii_xdigit_value(p[2])));
            p += 2;
        } else
            mistake(line, "an escape is not known");
    }
    return s;
}

static void put_text(const Line *line, const char *text, uint64_t times)
{
    GString *s = unescape(line, text);

    for (uint64_t i = 0; i < times; i++)
        put(line, s->str, s->len);
    g_string_free(s, TRUE);
}

/* u64 length and the text. */
static void put_string(const Line *line, const char *text)
{
    GString *s = unescape(line, text);

    put_le(line, s->len, 8);
    put(line, s->str, s->len);
    g_string_free(s, TRUE);
}

/* ---- directives ---- */

static void do_number(Line *line, int n)
{
    put_le(line, next_number(line), n);
}

static void do_u8(Line *line)
{
    do_number(line, 1);
}

static void do_u16(Line *line)
{
    do_number(line, 2);
}

static void do_u32(Line *line)
{
    do_number(line, 4);
}

static void do_u64(Line *line)
{
    do_number(line, 8);
}

static void do_f32(Line *line)
{
    put_f32(line, next_word(line));
}

static void do_text(Line *line)
{
    put_text(line, line->rest, 1);
}

static void do_repeat(Line *line)
{
    const uint64_t n = next_number(line);

    put_text(line, line->rest, n);
}

static void do_hex(Line *line)
{
    for (const char *word = next_word(line); *word; word = next_word(line)) {
        const uint8_t b = (uint8_t)g_ascii_strtoull(word, NULL, 16);

        put(line, &b, 1);
    }
}

static void do_fill(Line *line)
{
    const uint64_t n = next_number(line);
    const uint8_t b = (uint8_t)g_ascii_strtoull(next_word(line), NULL, 16);

    for (uint64_t i = 0; i < n; i++)
        put(line, &b, 1);
}

static void do_align(Line *line)
{
    const uint64_t n = next_number(line);

    while (line->bytes->len % n)
        put(line, "", 1);
}

static void do_string(Line *line)
{
    put_string(line, line->rest);
}

static void do_gguf(Line *line)
{
    put(line, "GGUF", 4);
    put_le(line, next_number(line), 4);
    put_le(line, next_number(line), 8);
    put_le(line, next_number(line), 8);
}

static void do_kv(Line *line)
{
    static const struct {
        const char *name;
        uint32_t type;
        int n_bytes; /* 0 = text, -1 = f32 */
    } types[] = {{"u8", 0, 1},   {"u16", 2, 2},  {"u32", 4, 4}, {"i32", 5, 4},
                 {"f32", 6, -1}, {"bool", 7, 1}, {"str", 8, 0}, {"u64", 10, 8}};
    const char *key = next_word(line);
    const char *type = next_word(line);

    put_string(line, key);
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (strcmp(types[i].name, type) != 0)
            continue;
        put_le(line, types[i].type, 4);
        if (types[i].n_bytes == 0)
            put_string(line, line->rest);
        else if (types[i].n_bytes < 0)
            put_f32(line, next_word(line));
        else
            put_le(line, next_number(line), types[i].n_bytes);
        return;
    }
    mistake(line, "a key's type is not known");
}

static void do_tensor(Line *line)
{
    uint64_t dims[8];
    uint32_t n = 0;

    put_string(line, next_word(line));
    const uint64_t type = next_number(line);
    const uint64_t off = next_number(line);
    for (const char *word = next_word(line); *word && n < 8; word = next_word(line))
        dims[n++] = parse_number(line, word);
    put_le(line, n, 4);
    for (uint32_t i = 0; i < n; i++)
        put_le(line, dims[i], 8);
    put_le(line, type, 4);
    put_le(line, off, 8);
}

static bool run_directive(Line *line, const char *name)
{
    static const struct {
        const char *name;
        void (*run)(Line *line);
    } directives[] = {{"text", do_text},   {"hex", do_hex},       {"u8", do_u8},
                      {"u16", do_u16},     {"u32", do_u32},       {"u64", do_u64},
                      {"f32", do_f32},     {"fill", do_fill},     {"kv", do_kv},
                      {"align", do_align}, {"st", do_string},     {"str", do_string},
                      {"gguf", do_gguf},   {"repeat", do_repeat}, {"tensor", do_tensor}};

    for (size_t i = 0; i < G_N_ELEMENTS(directives); i++) {
        if (strcmp(directives[i].name, name) == 0) {
            directives[i].run(line);
            return true;
        }
    }
    return false;
}

/* ---- files ---- */

static void add_file(GPtrArray *files, Line *line, char kind)
{
    RecipeFile *file = g_new0(RecipeFile, 1);

    file->kind = kind;
    file->name = g_strdup(next_word(line));
    if (kind == 'l')
        file->target = g_strdup(next_word(line));
    file->bytes = kind == 'f' ? g_byte_array_new() : NULL;
    line->bytes = file->bytes;
    g_ptr_array_add(files, file);
}

static void read_line(GPtrArray *files, Line *line, char *text)
{
    char *name;

    line->rest = text;
    if (text[0] == '#' || text[0] == '\0')
        return;
    name = next_word(line);
    if (strcmp(name, "file") == 0)
        add_file(files, line, 'f');
    else if (strcmp(name, "dir") == 0)
        add_file(files, line, 'd');
    else if (strcmp(name, "fifo") == 0)
        add_file(files, line, 'p');
    else if (strcmp(name, "link") == 0)
        add_file(files, line, 'l');
    else if (!run_directive(line, name))
        mistake(line, "a directive is not known");
}

GPtrArray *recipe_read(const char *path)
{
    GPtrArray *files = g_ptr_array_new_with_free_func(recipe_file_free);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    Line line = {.path = path};

    if (!g_file_get_contents(path, &text, NULL, NULL))
        g_error("%s: cannot be read", path);
    lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        line.number = i + 1;
        read_line(files, &line, lines[i]);
    }
    return files;
}

static void write_one(const RecipeFile *file, const char *path)
{
    g_autoptr(GError) error = NULL;
    int status = 0;

    switch (file->kind) {
    case 'd':
        status = mkdir(path, 0700);
        break;
    case 'p':
        status = mkfifo(path, 0600);
        break;
    case 'l':
        status = symlink(file->target, path);
        break;
    default:
        g_file_set_contents(path, (const char *)file->bytes->data,
                            (gssize)file->bytes->len, &error);
        g_assert_no_error(error);
        break;
    }
    g_assert_cmpint(status, ==, 0);
}

void recipe_write(const GPtrArray *files, const char *dir)
{
    for (guint i = 0; i < files->len; i++) {
        const RecipeFile *file = g_ptr_array_index(files, i);
        g_autofree char *path = g_build_filename(dir, file->name, NULL);

        write_one(file, path);
    }
}

void recipe_remove(const GPtrArray *files, const char *dir)
{
    for (guint i = files->len; i > 0; i--) {
        const RecipeFile *file = g_ptr_array_index(files, i - 1);
        g_autofree char *path = g_build_filename(dir, file->name, NULL);

        if (file->kind == 'd')
            rmdir(path);
        else
            unlink(path);
    }
    rmdir(dir);
}
