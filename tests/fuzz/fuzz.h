/* SPDX-License-Identifier: Apache-2.0
 * One fuzz target: the entry that libFuzzer (DAVIT_FUZZ, clang) and replay.c both call,
 * and what the targets of formats share. */
#ifndef DAVIT_TESTS_FUZZ_H
#define DAVIT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Opens @data as a file called @name with the one format component of the plugin that is
 * linked into this program (its entry is called directly, no shared object is loaded),
 * reads every key and some bytes of every tensor, and frees all. */
void fuzz_open_format(const char *name, const uint8_t *data, size_t size);

#endif
