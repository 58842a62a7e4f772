/* SPDX-License-Identifier: Apache-2.0
 * A bench for kernel entries: builds a call from random values with guard bytes round every
 * output, runs an entry with any split of tasks, and compares with the SDK's reference.
 *
 * Entries come from the built plugin, opened as a file; those that this CPU cannot run are
 * skipped by name.
 */
#ifndef DAVIT_TESTS_KERNELS_RIG_H
#define DAVIT_TESTS_KERNELS_RIG_H

#include <stdbool.h>

#include <glib.h>

#include <davit/help/ref.h>

typedef struct Rig {
    GRand *rand;       /* (owned) its seed is printed by rig_new */
    davit_call call;
    davit_batch batch;
    davit_state state;
    davit_state_spec spec;
    davit_weight weights[DAVIT_MAX_WEIGHTS];
    GPtrArray *buffers; /* (owned) guarded memory */
} Rig;

/* How to run an entry. */
typedef struct RigSplit {
    uint64_t chunk;   /* tasks per run call; 0 = all at once */
    bool reverse;     /* last chunk first */
    uint32_t workers; /* chunks go round these worker numbers; 0 = 1 */
} RigSplit;

/* The iface of the plugin file @name ("davit-kernels-cpu.so"). (static) */
const davit_kernels_iface *rig_plugin(const char *name);
/* An instance of its component that may use all that this processor has. (static) */
void *rig_instance(const char *name);
/* Features of this CPU allow @entry; prints a line where not. */
bool rig_can_run(const davit_kernel_entry *entry);
/* @entry lists the layout of every matrix of the call, as the host sees to it. */
bool rig_takes(const Rig *rig, const davit_kernel_entry *entry);

/* Returns: (owned) a call of @op with @attr (borrowed, may be NULL). */
Rig *rig_new(const char *op, const void *attr);
void rig_free(Rig *rig);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rig, rig_free)

/* @n_bytes of guarded memory, 64-aligned plus @shift. (borrowed) the rig */
void *rig_memory(Rig *rig, size_t n_bytes, size_t shift);
/* Abort unless all guard bytes are as they were. */
void rig_check_guards(const Rig *rig);

float rig_normal(Rig *rig); /* N(0, 1), more or less */
uint64_t rig_between(Rig *rig, uint64_t lo, uint64_t hi); /* inclusive */

/* Values; inputs are filled with N(0,1) times @scale, outputs with NaN. */
float *rig_in(Rig *rig, uint64_t rows, uint64_t width, float scale);
/* Moves the values of input @i to where rounding to 8 bits per 32 is exact; width % 32 == 0. */
void rig_on_grid(Rig *rig, uint32_t i);
float *rig_out(Rig *rig, uint64_t rows, uint64_t width);
/* The next output is input @i. */
void rig_in_place(Rig *rig, uint32_t i);

/* Weight @slot: a vector, or a matrix of random stored bytes in pieces. */
float *rig_vector(Rig *rig, uint32_t slot, uint64_t n);
void rig_matrix(Rig *rig, uint32_t slot, const char *layout, uint64_t E, uint64_t N, uint64_t K);

/* Weight @slot is weight @from once more. */
void rig_share(Rig *rig, uint32_t slot, uint32_t from);

/* One sequence of @n_tokens that starts at position @start; rope_n, logit_row and random
 * tokens below @vocab. */
void rig_batch(Rig *rig, uint64_t n_tokens, uint64_t start, uint64_t vocab);

/* Run @entry on the call as it stands. */
void rig_run(Rig *rig, const davit_kernel_entry *entry, RigSplit split, uint64_t ctx);
/* Run the reference on all rows. */
void rig_run_reference(Rig *rig);

/* Copy of output @i. (owned) free with g_free */
float *rig_save(const Rig *rig, uint32_t i);
uint64_t rig_count(const Rig *rig, uint32_t i);

/* |a - b| <= tol * largest |b| of the row + floor, and no NaN. Prints where. @floor covers
 * results that are small because larger terms cancel. */
void rig_compare(const char *what, const float *a, const float *b, uint64_t rows,
                 uint64_t width, double tol, double floor);
/* Equal to the bit. */
void rig_same(const char *what, const float *a, const float *b, uint64_t n);

#endif
