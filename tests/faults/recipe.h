/* SPDX-License-Identifier: Apache-2.0
 * Small input files from a text that people can read: tests/faults/NAME/recipe.
 *
 * One directive a line, # starts a comment line. Files:
 *   file NAME          what follows is appended to this file
 *   dir NAME           an empty directory
 *   fifo NAME          a named pipe
 *   link NAME TARGET   a symbolic link
 * Bytes of the current file (numbers in C notation, negative ones wrap):
 *   text TEXT          the rest of the line; \n \t \\ and \xHH are escapes
 *   hex 47 47 ...      bytes
 *   u8 N  u16 N  u32 N  u64 N  f32 X   little-endian
 *   fill N HH          N times the byte HH
 *   repeat N TEXT      N times TEXT (escapes as in text)
 *   align N            zeros up to the next multiple of N
 *   st JSON            u64 length and JSON: the head of a safetensors file
 *   str TEXT           u64 length and TEXT: a string of GGUF
 *   gguf VERSION TENSORS KEYS          the fixed head of a GGUF file
 *   kv KEY TYPE VALUE                  a key: u8 u16 u32 i32 u64 f32 bool str
 *   tensor NAME TYPE OFFSET DIM...     a tensor info, dimensions in ggml's order
 */
#ifndef DAVIT_TESTS_RECIPE_H
#define DAVIT_TESTS_RECIPE_H

#include <stdbool.h>

#include <glib.h>

typedef struct RecipeFile {
    char *name;
    GByteArray *bytes; /* NULL = not a plain file */
    char kind;         /* 'f' file, 'd' directory, 'p' pipe, 'l' link */
    char *target;      /* of a link */
} RecipeFile;

/* (owned) GPtrArray of RecipeFile, from @path; aborts the test on a mistake in it. */
GPtrArray *recipe_read(const char *path);
/* Writes all of @files into the directory @dir. */
void recipe_write(const GPtrArray *files, const char *dir);
/* Deletes what recipe_write made, and @dir. */
void recipe_remove(const GPtrArray *files, const char *dir);

#endif
