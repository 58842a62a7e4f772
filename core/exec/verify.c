/* SPDX-License-Identifier: Apache-2.0
 * Checking borrowed weights in place. */
#include "exec/verify.h"

#include <pthread.h>
#include <stdatomic.h>

#include "exec/lanes.h"
#include "exec/pool.h"
#include "exec/items.h"
#include "plan/module.h"
#include "plan/part.h"

#define PIECE_BYTES (4u << 20)
#define MOST_THREADS 8u

/* Rows of one module. */
typedef struct Piece {
    const DavitModule *module; /* (borrowed, plan) */
    uint64_t expert, row, n_rows;
    uint64_t key; /* file and offset: the order of work */
} Piece;

typedef struct Run {
    const DavitPlan *plan;
    const GArray *pieces;
    _Atomic uint64_t next;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows */
    DavitReport *report;
    int32_t status;
} Run;

static void add_pieces(const DavitPlan *plan, const DavitSlotSource *source, GArray *out)
{
    const DavitModule *module = source->module;
    const uint64_t file = davit_part_tensor(plan, module, 0)->file;
    const uint64_t row_bytes = MAX(module->desc->parts[0].row_bytes, 1);
    const uint64_t step = MAX(PIECE_BYTES / row_bytes, 1);
    uint64_t start, run = 0;

    if (!module->iface->verify)
        return;
    start = davit_part_off(plan, module, 0, 0, &run);
    for (uint64_t e = 0; e < source->n_experts; e++)
        for (uint64_t r = 0; r < source->n_rows; r += step) {
            const Piece piece = {
                .module = module,
                .expert = source->expert + e,
                .row = source->row + r,
                .n_rows = MIN(step, source->n_rows - r),
                .key = (file << 48) + start +
                       ((source->expert + e) * module->desc->n_rows + r) * row_bytes};
            g_array_append_val(out, piece);
        }
}

static int by_file(const void *a, const void *b)
{
    const Piece *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

static int32_t verify_piece(const DavitPlan *plan, const Piece *piece, DavitReport *report)
{
    const DavitModule *module = piece->module;
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    const davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                                   .desc = module->desc,
                                   .parts = parts,
                                   .expert = piece->expert,
                                   .row = piece->row,
                                   .n_rows = piece->n_rows,
                                   .n_cols = module->desc->n_cols};

    for (uint32_t p = 0; p < module->desc->n_parts; p++) {
        const int32_t status =
            davit_module_part(plan, module, p, 0, 0, &parts[p].ptr, report);

        if (status)
            return status;
        parts[p].n_bytes = davit_part_bytes(plan, module, p);
    }
    return davit_module_verify(module, &tile, "run", report);
}

static void *work(void *data)
{
    Run *run = data;
    uint64_t i;

    while (!atomic_load(&run->stop) &&
           (i = atomic_fetch_add(&run->next, 1)) < run->pieces->len) {
        g_autoptr(DavitReport) said = davit_report_new();
        const int32_t status =
            verify_piece(run->plan, &g_array_index(run->pieces, Piece, i), said);

        if (!status)
            continue;
        pthread_mutex_lock(&run->lock);
        run->status = run->status ? run->status : status;
        davit_report_append(run->report, said);
        pthread_mutex_unlock(&run->lock);
        atomic_store(&run->stop, true);
    }
    return NULL;
}

int32_t davit_borrowed_verify(const DavitPlan *plan, DavitReport *report)
{
    g_autoptr(GArray) pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    Run run = {.plan = plan, .pieces = pieces, .report = report};
    pthread_t threads[MOST_THREADS];
    unsigned n_threads, n_started = 0;
    pthread_attr_t attr;

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!slot->present || !slot->used || slot->tied_to >= 0 ||
            slot->access != DAVIT_ACCESS_BORROW)
            continue;
        for (size_t s = 0; s < slot->n_sources; s++)
            add_pieces(plan, &slot->sources[s], pieces);
    }
    g_array_sort(pieces, by_file);
    pthread_mutex_init(&run.lock, NULL);
    n_threads = MIN(MIN(davit_pool_cpus(), MOST_THREADS), pieces->len / 4 + 1);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, DAVIT_LANE_STACK);
    for (unsigned k = 1; k < n_threads; k++) /* one that does not start is one less */
        n_started += pthread_create(&threads[n_started], &attr, work, &run) == 0;
    pthread_attr_destroy(&attr);
    work(&run);
    for (unsigned k = 0; k < n_started; k++)
        pthread_join(threads[k], NULL);
    pthread_mutex_destroy(&run.lock);
    return run.status;
}
