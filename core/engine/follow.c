/* SPDX-License-Identifier: Apache-2.0
 * Ranks: rank 0 serves the requests and tells the others each step as it begins; they compute and
 * answer nothing. So only rank 0 samples, reads text and knows of users. */
#include "engine/private.h"

#include <string.h>

#include "plan/ranks.h"

#define INLINE_IDS 8u /* of a step that travel with the order: decoding takes one message */

/* Rank 0's word. All ranks are on machines of one byte order: they sum the same floats. */
typedef struct Order {
    uint64_t n;  /* ids of the step, 0 = the engine is gone */
    uint64_t at, rope_n, all_rows;
    int32_t ids[INLINE_IDS];
} Order;

/* What every rank says when its engine is made. */
typedef struct Hello {
    uint64_t ctx, chunk;                    /* the least of all is taken */
    uint64_t n_layers, n_vocab, n_bytes;    /* of the whole model: equal, or it is another one */
    uint64_t n_collectives, block_tokens;
} Hello;

static const char *difference(const Hello *a, const Hello *b)
{
    if (a->n_layers != b->n_layers || a->n_vocab != b->n_vocab || a->n_bytes != b->n_bytes)
        return "another model";
    return a->n_collectives != b->n_collectives ? "another program for it"
           : a->block_tokens != b->block_tokens ? "other --block-tokens"
                                                : NULL;
}

static Hello hello_of(const davit_engine *e)
{
    const DavitPlan *plan = e->model->plan;
    Hello hello = {.ctx = e->ctx,
                   .chunk = e->chunk,
                   .n_layers = plan->n_layers,
                   .n_vocab = plan->program->values[plan->program->output].width,
                   .n_bytes = davit_checkpoint_n_bytes(e->model->checkpoint),
                   .block_tokens = plan->block_tokens};

    for (size_t i = 0; i < plan->program->n_instrs; i++)
        hello.n_collectives += davit_is_rank_op(plan->program->instrs[i].op);
    return hello;
}

static int32_t refuse_second(DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                .status = DAVIT_E_USAGE,
                                .stage = "run",
                                .subject = "engine",
                                .message = "a model that several ranks hold serves one engine"});
}

int32_t davit_engine_agree(davit_engine *e, DavitReport *report)
{
    DavitComm *comm = e->model->comm;
    Hello all[DAVIT_COMM_MAX_RANKS], mine;

    if (!comm)
        return DAVIT_OK;
    if (atomic_exchange(&e->model->comm_taken, 1))
        return refuse_second(report);
    mine = hello_of(e);
    if (davit_comm_all_gather(comm, &mine, all, sizeof mine))
        return davit_comm_check(comm, report);
    for (unsigned r = 0; r < davit_comm_size(comm); r++) {
        const char *other = difference(&all[0], &all[r]);

        if (other)
            return davit_report_add(
                report,
                &(DavitFinding){.code = DAVIT_R_USAGE,
                                .status = DAVIT_E_MISMATCH,
                                .stage = "ranks",
                                .subject = davit_report_text(report, "rank %u", r),
                                .found = other,
                                .message = "the ranks were not given the same",
                                .hint = "start all ranks with the same model and flags"});
        e->ctx = MIN(e->ctx, all[r].ctx);
        e->chunk = (uint32_t)MIN(e->chunk, all[r].chunk);
    }
    e->leads = davit_comm_rank(comm) == 0;
    return DAVIT_OK;
}

int32_t davit_engine_lead(davit_engine *e, const int32_t *ids, size_t n, size_t at, size_t rope_n,
                          bool all_rows, DavitReport *report)
{
    Order order = {.n = n, .at = at, .rope_n = rope_n, .all_rows = all_rows};

    if (!e->leads)
        return DAVIT_OK;
    memcpy(order.ids, ids, MIN(n, INLINE_IDS) * sizeof *ids);
    if (davit_comm_broadcast(e->model->comm, &order, sizeof order, 0))
        return davit_comm_check(e->model->comm, report);
    if (n > INLINE_IDS) {
        g_autofree int32_t *copy = g_memdup2(ids, n * sizeof *ids);

        if (davit_comm_broadcast(e->model->comm, copy, n * sizeof *ids, 0))
            return davit_comm_check(e->model->comm, report);
    }
    return DAVIT_OK;
}

void davit_engine_dismiss(davit_engine *e)
{
    Order order = {0};

    if (e->leads) /* a group that is lost has noticed already */
        davit_comm_broadcast(e->model->comm, &order, sizeof order, 0);
    e->leads = false;
}

/* One step of rank 0's; *out_done when there is none any more. */
static int32_t follow_step(davit_engine *e, GArray *ids, bool *out_done, DavitReport *report)
{
    DavitComm *comm = e->model->comm;
    const float *logits;
    Order order;
    int32_t status;

    if (davit_comm_broadcast(comm, &order, sizeof order, 0))
        return davit_comm_check(comm, report);
    *out_done = order.n == 0;
    if (order.n == 0)
        return DAVIT_OK;
    if (order.n > e->chunk)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_RANK_LOST,
                                    .status = DAVIT_E_LIMIT,
                                    .stage = "ranks",
                                    .subject = "rank 0",
                                    .expected = davit_report_text(report, "at most %u tokens",
                                                                  (unsigned)e->chunk),
                                    .found = davit_report_text(
                                        report, "%" G_GUINT64_FORMAT, order.n),
                                    .message = "a step is larger than the ranks agreed on",
                                    .hint = "start all ranks from one build of davit"});
    g_array_set_size(ids, (guint)MAX(order.n, INLINE_IDS));
    memcpy(ids->data, order.ids, sizeof order.ids);
    if (order.n > INLINE_IDS &&
        davit_comm_broadcast(comm, ids->data, order.n * sizeof(int32_t), 0))
        return davit_comm_check(comm, report);
    status = davit_engine_prepare(e, order.all_rows ? order.n : 1, report);
    if (!status)
        status = davit_engine_run(e, (const int32_t *)(const void *)ids->data, order.n, order.at,
                                  order.rope_n, order.all_rows, &logits, report);
    /* logits that are no numbers are the same on all ranks, and rank 0's to report */
    return status == DAVIT_E_CORRUPT ? DAVIT_OK : status;
}

int davit_engine_follow(davit_engine *engine, davit_records **out_records)
{
    if (!engine || engine->magic != DAVIT_MAGIC_ENGINE || !engine->model->comm ||
        davit_comm_rank(engine->model->comm) == 0)
        return davit_usage("davit_engine_follow is for the engine of a rank past the first",
                           out_records);
    DavitReport *report = davit_report_new();
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    bool done = false;
    int32_t status = DAVIT_OK;

    while (!done && !status)
        status = follow_step(engine, ids, &done, report);
    davit_records_give(report, out_records);
    return status;
}
