/* SPDX-License-Identifier: Apache-2.0
 * Tests of a plugin in plain C: open the built file through its entry, feed it, catch its
 * records, compare with references. libdavit-plugin-test.a (CMake DavitPlugin::test,
 * pkg-config davit-plugin-test-1).
 *
 * For test programs only: it prints to stderr, and ends the program where nothing can go
 * on. One davit_test at a time, on one thread.
 *
 *   int main(int argc, char **argv)
 *   {
 *       davit_test *t = davit_test_open(argc > 1 ? argv[1] : NULL, NULL);
 *       DAVIT_CHECK(t, davit_test_iface(t) != NULL);
 *       return davit_test_end(t);
 *   }
 *
 * The host of these tests offers the suites "cpu" and "io" (a file in memory) and no other:
 * what needs "json", "regex" or "config" is tested through the program (davit_test_run).
 * Random cases start from the clock; a failure prints the start, and the environment
 * variable DAVIT_TEST_SEED repeats it.
 */
#ifndef DAVIT_HELP_TEST_H
#define DAVIT_HELP_TEST_H

#include <davit/format.h>
#include <davit/kernels.h>
#include <davit/quant.h>
#include <davit/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct davit_test davit_test;

/* ---- the frame ---- */

/* Load the plugin file @path, call entry, start, and create of component @id (NULL = its
 * only one). @path NULL = no plugin: checks, models and the program only. Ends the program
 * with code 1 and the plugin's records when that fails. Returns: (owned) davit_test_end. */
davit_test *davit_test_open(const char *path, const char *id);
/* The same, but create may refuse: then davit_test_iface is NULL and the records tell why. */
davit_test *davit_test_try(const char *path, const char *id);
/* For plugins that this library's host cannot serve, architectures above all: the file is
 * not loaded here, only handed to the program by davit_test_run and davit_test_logits. */
davit_test *davit_test_plugin_file(const char *path);
/* destroy, quiesce, one line of summary. Returns: 0 = all checks held, 1 = some did not. */
int davit_test_end(davit_test *t);

/* Count a check; print it when @ok is 0. Returns @ok. */
int davit_test_check(davit_test *t, int ok, const char *file, int line, const char *what);
#define DAVIT_CHECK(t, condition)                                                         \
    davit_test_check(t, (condition) != 0, __FILE__, __LINE__, #condition)

/* The kind's table and the instance. (borrowed) until davit_test_end; NULL without plugin */
const void *davit_test_iface(const davit_test *t);
void *davit_test_self(const davit_test *t);
const davit_component *davit_test_component(const davit_test *t);

/* ---- records ---- */

/* A sink that keeps copies of all records. (borrowed) until davit_test_end */
const davit_sink *davit_test_sink(davit_test *t);
uint64_t davit_test_records(const davit_test *t);
/* (borrowed) record @i, until davit_test_forget */
const davit_refusal *davit_test_record(const davit_test *t, uint64_t i);
/* 1 if a record with @code (DAVIT_R_) was put since the last davit_test_forget. */
int davit_test_said(const davit_test *t, uint32_t code);
void davit_test_forget(davit_test *t);

/* ---- random numbers ---- */

uint64_t davit_test_random(davit_test *t);
uint64_t davit_test_between(davit_test *t, uint64_t lo, uint64_t hi); /* inclusive */
float davit_test_normal(davit_test *t);                               /* about N(0, 1) */

/* |a - b| <= tol * largest |b|, and no NaN; tol 0 = equal to the bit. Prints where not. */
int davit_test_compare(davit_test *t, const char *what, const float *a, const float *b,
                       uint64_t n, double tol);

/* ---- formats ---- */

typedef struct davit_test_tensor {
    char *name;
    char *dtype;
    uint64_t shape[DAVIT_MAX_RANK];
    uint64_t rank;
    uint64_t off;
    uint64_t n_bytes;
} davit_test_tensor;

typedef struct davit_test_key {
    char *key;
    uint8_t *data; /* n_bytes, encoded as format.h says */
    uint64_t n_bytes;
    uint64_t count;
    uint32_t type; /* DAVIT_KV_ */
    uint32_t is_array;
} davit_test_key;

/* What a format said of one file. */
typedef struct davit_test_file {
    davit_test_tensor *tensors;
    davit_test_key *keys;
    uint64_t n_tensors;
    uint64_t n_keys;
    uint64_t n_shards; /* shard references */
    uint32_t verdict;  /* of probe: DAVIT_DECLINE, _ACCEPT, _REFUSE */
    uint32_t score;
    int32_t status;    /* of open; DAVIT_E_UNSUPPORTED when probe did not accept */
    uint32_t reserved;
} davit_test_file;

/* Probe and open @bytes as a file called @name. The records of earlier calls are forgotten.
 * What the host would refuse is a failed check: an extent outside the file, bytes that do
 * not follow from shape and block, a failure without a record, a file whose second reading
 * differs. (borrowed) until the next call or davit_test_end */
const davit_test_file *davit_test_format(davit_test *t, const char *name, const void *bytes,
                                         uint64_t n);
/* Every shorter version of the file (the first 4096 lengths), and @rounds versions with a few
 * bytes changed or a field-sized run set to 0 or 255: each must open soundly or be refused with a record. Run it under
 * AddressSanitizer: the file lies in memory of exactly its size. */
void davit_test_format_broken(davit_test *t, const char *name, const void *bytes, uint64_t n,
                              uint64_t rounds);

/* ---- tokenizers ---- */

/* Shape @index of the plugin's list, NULL past its end. */
const davit_tok_shape *davit_test_shape(const davit_test *t, uint64_t index);
/* @text must be cut into @pieces (NULL-terminated; together they are the text): in one call,
 * one piece per call, and from every end onwards. A piece that is dropped is written
 * DAVIT_TEST_DROP "text". */
#define DAVIT_TEST_DROP "\001"
void davit_test_scan(davit_test *t, const davit_tok_shape *shape, const char *text,
                     const char *const *pieces);
/* @rounds random texts (letters of every case, contractions, digits, marks, blanks, runs of CR
 * and LF, symbols, other scripts, emoji, broken UTF-8): ends ascend and reach the end, any split
 * over calls gives the same ends, and from every offset the cut is an end of a piece where a
 * scan begun afresh equals the continued one. */
void davit_test_scan_random(davit_test *t, const davit_tok_shape *shape, uint64_t rounds);
/* The same on a text for each code point at which a Unicode class of help/ucd.h begins or ends:
 * several thousand texts. */
void davit_test_scan_classes(davit_test *t, const davit_tok_shape *shape);

/* ---- quantised layouts ---- */

/* One stored tensor of a module. */
typedef struct davit_test_part {
    const char *suffix; /* "weight", "scales" ... */
    const char *dtype;  /* "u8/1" */
    uint64_t shape[DAVIT_MAX_RANK];
    uint64_t rank;
    const void *bytes;
    uint64_t n_bytes;
} davit_test_part;

/* Claim and check a module of these parts (any order). Returns the status: DAVIT_OK with
 * *out filled, DAVIT_E_UNSUPPORTED when it was not claimed (@out_verdict says how), else
 * check's; records are in the sink. @out and @out_verdict may be NULL. */
int32_t davit_test_quant_check(davit_test *t, const davit_test_part *parts, uint64_t n_parts,
                               davit_quant_desc *out, uint32_t *out_verdict);
/* The module must be claimed, pass check and verify, and decode to @expected [E, N, K]
 * within @tol of the largest value (0 = to the bit). Random tiles must equal the same part
 * of the whole, and the form CODES, where offered with integer codes (DAVIT_CODE_UINT), the
 * form F32, both to the bit; with @tol 0 so must random cuts, where the plugin makes them. */
void davit_test_quant(davit_test *t, const davit_test_part *parts, uint64_t n_parts,
                      const float *expected, double tol);

/* @rounds modules that make no sense: sets of tensors of well-known layouts and of the
 * capability's suffixes, with random types, shapes, settings and bytes. claim and check must
 * answer soundly or with a record; what passes check and verify is decoded into memory of
 * exactly its size. */
void davit_test_quant_broken(davit_test *t, uint64_t rounds);

/* ---- kernels ---- */

/* Entries whose name is @name (NULL = all that this CPU can run) against the SDK's
 * reference: @rounds calls of random odd sizes and attributes each, within @tol of the
 * row's largest value (at least @floor); guard bytes round every output; any split of tasks
 * gives the same bits. Ops: embed linear rmsnorm layernorm add scale softcap act glu rope
 * gather_rows; layouts: those of ref.h. An entry that refuses all calls, or needs features
 * that this CPU lacks and was named, fails the check. */
void davit_test_kernels(davit_test *t, const char *name, uint64_t rounds, double tol,
                        double floor);
/* check and size of every entry with @rounds calls whose shapes, counts, layouts or attributes
 * do not fit; state_size and block_bytes with odd numbers. Nothing is run. */
void davit_test_kernels_broken(davit_test *t, uint64_t rounds);

/* ---- models and the program ---- */

typedef struct davit_test_model davit_test_model;

davit_test_model *davit_test_model_new(davit_test *t);
void davit_test_model_free(davit_test_model *m);
/* Add float32 N(0, @scale^2) + @mean, [rows, cols], or a vector when @cols is 0.
 * (borrowed) the values, to be changed before write */
float *davit_test_model_random(davit_test_model *m, const char *name, uint64_t rows,
                               uint64_t cols, float scale, float mean);
/* Add bytes as they are; @dtype in the spelling of safetensors: "F32" "F16" "U8" ... */
void davit_test_model_bytes(davit_test_model *m, const char *name, const char *dtype,
                            uint64_t rank, const uint64_t *shape, const void *bytes,
                            uint64_t n_bytes);
/* Make folder @dir (may be there) with model.safetensors and config.json. */
void davit_test_model_write(davit_test_model *m, const char *dir, const char *config_json);

/* Run the program davit (environment variable DAVIT, else "davit") with these arguments, the
 * last one NULL, and this plugin in its path. *out_exit: exit code, -1 when it did not
 * start. Returns: (owned, free) what it wrote to stdout and stderr. */
char *davit_test_run(davit_test *t, int *out_exit, ...);
/* Logits of @ids ("1 2 3") from model @dir through the program. Returns: (owned, free)
 * [*out_rows, *out_cols], or NULL after a failed check that shows what davit said. Leaves
 * logits.npy (below: dump.npy) in the current folder. */
float *davit_test_logits(davit_test *t, const char *dir, const char *ids, uint64_t *out_rows,
                         uint64_t *out_cols);
/* The same for tensor or module @name, decoded to float32: [rows, cols], a vector as one row. */
float *davit_test_dump(davit_test *t, const char *dir, const char *name, uint64_t *out_rows,
                       uint64_t *out_cols);

#ifdef __cplusplus
}
#endif
#endif
