/* SPDX-License-Identifier: Apache-2.0
 * Kernel entries against calls that make no sense: what check, size, state_size and block_bytes
 * answer before anything runs. */
#include "call.h"

#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

/* A plan asks about shapes only: no data, no segments, no batch. */
static void undress(test_call *c)
{
    for (uint32_t i = 0; i < DAVIT_MAX_IN; i++)
        c->call.in[i].data = NULL, c->call.in[i].n_rows = 0;
    for (uint32_t i = 0; i < DAVIT_MAX_OUT; i++)
        c->call.out[i].data = NULL, c->call.out[i].n_rows = 0;
    for (uint32_t i = 0; i < c->call.n_weights && i < DAVIT_MAX_WEIGHTS; i++)
        c->weights[i].segments = NULL;
    c->call.batch = NULL;
}

/* One thing of the call is changed; counts stay what the arrays can hold. */
static void damage(test_call *c)
{
    davit_call *call = &c->call;
    davit_test *t = c->t;
    const uint64_t w = davit_test_between(t, 0, DAVIT_MAX_WEIGHTS - 1);

    switch (davit_test_between(t, 0, 9)) {
    case 0: call->in[davit_test_between(t, 0, DAVIT_MAX_IN - 1)].width = test_odd_size(t); break;
    case 1: call->out[davit_test_between(t, 0, DAVIT_MAX_OUT - 1)].width = test_odd_size(t); break;
    case 2: call->n_in = (uint32_t)davit_test_between(t, 0, call->n_in); break;
    case 3: call->n_out = (uint32_t)davit_test_between(t, 0, call->n_out); break;
    case 4: call->n_weights = (uint32_t)davit_test_between(t, 0, call->n_weights); break;
    case 5: call->weight[w] = NULL; break;
    case 6: c->weights[w].n_cols = test_odd_size(t); break;
    case 7: c->weights[w].n_rows = test_odd_size(t); break;
    case 8: c->weights[w].layout = "org.nobody.odd/1"; break;
    default: /* a field of the attributes; not struct_size */
        c->attr.bytes[davit_test_between(t, 8, 63)] = (uint8_t)davit_test_random(t);
    }
}

static void check_and_size(test_call *c, const davit_kernel_entry *entry, int is_damaged)
{
    static const uint64_t steps[] = {1, 2, 3, 31, 64, 513, 4096};
    davit_test *t = c->t;
    const uint64_t before = t->records.n;
    uint64_t scratch = 0, worker = 0;

    if (entry->check && entry->check(c->call.self, &c->call, &t->sink) < 0) {
        test_expect(t, t->records.n > before, "%s: check refuses without a record", entry->name);
        return;
    }
    for (size_t i = 0; entry->size && i < sizeof steps / sizeof *steps; i++) {
        davit_work work = {.struct_size = DAVIT_END(davit_work, n_tasks)};

        entry->size(c->call.self, &c->call, steps[i], steps[i], steps[i], &work);
        if (is_damaged) /* it need not be refused; it must not crash */
            continue;
        test_expect(t, work.n_phases >= 1 && work.n_phases <= DAVIT_MAX_PHASES, "%s: %llu phases",
                    entry->name, (unsigned long long)work.n_phases);
        test_expect(t, work.scratch_bytes >= scratch && work.worker_bytes >= worker,
                    "%s: scratch shrinks when a step has %llu tokens", entry->name,
                    (unsigned long long)steps[i]);
        scratch = work.scratch_bytes;
        worker = work.worker_bytes;
    }
}

/* A name of the entry's layouts that the reference knows, to make calls with. */
static const davit_ref_layout *some_layout(davit_test *t, const davit_kernel_entry *entry)
{
    const davit_ref_layout *layout;

    for (uint64_t i = 0; (layout = davit_ref_layout_get(i)) != NULL; i++)
        if (entry->layouts && strstr(entry->layouts, layout->name) && davit_test_random(t) & 1)
            return layout;
    return davit_ref_layout_find("f32/1");
}

static void break_entry(davit_test *t, const davit_kernel_entry *entry, uint64_t rounds)
{
    test_call *c = test_alloc(sizeof *c);

    for (uint64_t r = 0; r < rounds; r++) {
        const int is_damaged = r % 8 != 0;

        davit_test_forget(t);
        test_round(t);
        memset(c, 0, sizeof *c);
        c->t = t;
        if (!test_call_fill(c, entry->op, some_layout(t, entry)))
            break; /* an op of the plugin's own, or one without cases here */
        undress(c);
        for (uint64_t i = is_damaged ? davit_test_between(t, 1, 3) : 0; i > 0; i--)
            damage(c);
        check_and_size(c, entry, is_damaged);
        test_call_free(c);
    }
    free(c);
}

/* ---- states and packed layouts ---- */

static void break_states(davit_test *t, const davit_kernels_iface *iface, uint64_t rounds)
{
    for (uint64_t r = 0; iface->state_size && r < rounds; r++) {
        static const char *const dtypes[] = {"f32/1", "f16/1", "org.nobody.odd/1"};
        const davit_state_spec spec = {
            .struct_size = DAVIT_END(davit_state_spec, dtype),
            .kind = (uint32_t)davit_test_between(t, 0, 2),
            .n_heads = test_odd_size(t),
            .k_dim = test_odd_size(t),
            .v_dim = test_odd_size(t),
            .window = test_odd_size(t),
            .dtype = dtypes[davit_test_between(t, 0, 2)]};
        uint64_t before, bytes;

        davit_test_forget(t);
        before = t->records.n;
        bytes = iface->state_size(davit_test_self(t), &spec, 1 + test_odd_size(t) % 4096, &t->sink);
        test_expect(t, bytes > 0 || t->records.n > before,
                    "state_size gives 0 without a record");
    }
}

static void break_packs(davit_test *t, const davit_kernels_iface *iface)
{
    for (uint64_t i = 0; iface->packs && iface->packs[i]; i++) {
        const davit_pack *pack = iface->packs[i];

        if (!test_expect(t, pack->layout && pack->block_bytes && pack->pack && pack->row_block,
                         "pack %llu lacks layout, row_block, block_bytes or pack",
                         (unsigned long long)i))
            continue;
        for (int r = 0; r < 100; r++) {
            uint64_t params[8];

            for (size_t k = 0; k < 8; k++)
                params[k] = test_odd_size(t);
            (void)pack->block_bytes(davit_test_self(t), test_odd_size(t), params);
        }
    }
}

void davit_test_kernels_broken(davit_test *t, uint64_t rounds)
{
    const davit_kernels_iface *iface = davit_test_iface(t);

    for (uint64_t i = 0; iface && iface->entries[i]; i++)
        break_entry(t, iface->entries[i], rounds);
    if (iface) {
        break_states(t, iface, rounds);
        break_packs(t, iface);
    }
    davit_test_forget(t);
}

int test_has_cases(const char *op)
{
    test_call *c = test_alloc(sizeof *c);
    davit_test *t = test_adopt(&(davit_component){0}, NULL, 1);
    int has;

    c->t = t;
    has = test_call_fill(c, op, davit_ref_layout_find("f32/1"));
    if (has)
        test_call_free(c);
    test_drop(t);
    free(c);
    return has;
}
