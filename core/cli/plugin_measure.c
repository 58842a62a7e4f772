/* SPDX-License-Identifier: Apache-2.0
 * Times every able kernel entry on the model's own weights and shapes: stored layouts first,
 * then packed ones, entries of the same layouts in turns, the median of the rounds. An entry's cost is its time as a
 * multiple of the best one's for the same shapes, the mean over the token counts. */
#include "cli/plugin_measure.h"

#include <stdio.h>
#include <string.h>

#include "cli/run.h"
#include "exec/measure.h"

#define MAX_T      4
#define MIN_NS     1000000u /* of one round */
#define HOPELESS   8.0 /* so many times the best: one round is enough */
#define MAX_TOKENS 65536u
#define NOISE      1.03 /* costs nearer than this are level */

typedef struct Sample {
    DavitKernelCandidate *k; /* (borrowed) */
    double ns[MAX_T];        /* medians */
    GArray *rounds[MAX_T];   /* double */
} Sample;

typedef struct Cost {
    const char *op, *component, *entry; /* (borrowed) */
    double mine[MAX_T], best[MAX_T];    /* over its shapes */
    double ratio;
    unsigned place; /* 0 = no entry of its shapes is better */
} Cost;

typedef struct Measure {
    DavitCall *call;
    const char *op;
    GPtrArray *candidates; /* (owned) of all plans */
    GArray *samples;       /* Sample */
    GArray *costs;         /* Cost, by op and ratio */
    uint64_t tokens[MAX_T], most;
    size_t n_t;
    guint n_rounds;
} Measure;

static Sample *sample_at(const Measure *m, guint i)
{
    return &g_array_index(m->samples, Sample, i);
}

static bool same_shape(const DavitKernelCandidate *a, const DavitKernelCandidate *b)
{
    return strcmp(a->op, b->op) == 0 && strcmp(a->shape, b->shape) == 0;
}

static bool same_entry(const DavitKernelCandidate *a, const DavitKernelCandidate *b)
{
    return strcmp(a->component, b->component) == 0 && strcmp(a->entry, b->entry) == 0;
}

static bool is_known(const Measure *m, const DavitKernelCandidate *k)
{
    for (guint i = 0; i < m->samples->len; i++) {
        const DavitKernelCandidate *o = sample_at(m, i)->k;
        if (same_shape(o, k) && same_entry(o, k) && strcmp(o->layouts, k->layouts) == 0)
            return true;
    }
    return false;
}

/* ---- timing ---- */

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(GArray *rounds)
{
    g_array_sort(rounds, by_time);
    const double hi = g_array_index(rounds, double, rounds->len / 2);
    return rounds->len % 2 ? hi : (hi + g_array_index(rounds, double, rounds->len / 2 - 1)) / 2;
}

/* Samples [first, end) are entries of one op and shape: @t tokens, all rounds. */
static bool time_group(Measure *m, DavitMeasure *rig, guint first, guint end, size_t t)
{
    double best = 0;
    for (guint round = 0; round < m->n_rounds; round++) {
        for (guint i = first; i < end; i++) {
            Sample *s = sample_at(m, i);
            if (davit_interrupted())
                return false;
            if (round && g_array_index(s->rounds[t], double, 0) > HOPELESS * best)
                continue;
            const double ns = davit_measure_time(rig, s->k->instr, s->k->call, s->k->self,
                                                 m->tokens[t], MIN_NS, m->call->report);
            if (ns <= 0)
                return false;
            best = best <= 0 ? ns : MIN(best, ns);
            g_array_append_val(s->rounds[t], ns);
        }
    }
    for (guint i = first; i < end; i++)
        sample_at(m, i)->ns[t] = median(sample_at(m, i)->rounds[t]);
    return true;
}

static bool time_plan(Measure *m, DavitMeasure *rig, GPtrArray *candidates)
{
    guint first = m->samples->len;
    for (guint i = 0; i < candidates->len; i++) {
        DavitKernelCandidate *k = g_ptr_array_index(candidates, i);
        Sample s = {.k = k};
        if (k->why || (m->op && !davit_ops_is(k->op, m->op)) || is_known(m, k))
            continue;
        for (size_t t = 0; t < m->n_t; t++)
            s.rounds[t] = g_array_new(FALSE, FALSE, sizeof(double));
        g_array_append_val(m->samples, s);
    }
    while (first < m->samples->len) {
        guint end = first + 1; /* candidates of one op and shape follow one another */
        while (end < m->samples->len && same_shape(sample_at(m, first)->k, sample_at(m, end)->k))
            end++;
        for (size_t t = 0; t < m->n_t; t++)
            if (!time_group(m, rig, first, end, t))
                return false;
        first = end;
    }
    return true;
}

static bool measure_layout(Measure *m, DavitRegistry *registry, DavitCheckpoint *checkpoint,
                           const DavitSettings *settings, DavitPlanOptions options)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(NULL);
    options.candidates = found;
    options.candidates_by_shape = true;
    /* the second plan would say everything again */
    g_autoptr(DavitReport) again = davit_report_new();
    g_autoptr(DavitPlan) plan = davit_plan_make(registry, checkpoint, settings, &options,
                                                m->candidates->len ? again : m->call->report);
    for (guint i = 0; i < found->len; i++)
        g_ptr_array_add(m->candidates, g_ptr_array_index(found, i));
    if (!plan && !davit_report_failed(m->call->report))
        return true; /* it has no packed layouts */
    if (!plan)
        return false;
    /* a small model has tables for its own context only */
    const uint64_t limit = plan->max_ctx ? MIN(plan->max_ctx, MAX_TOKENS) : MAX_TOKENS;
    for (size_t t = 0; t < m->n_t; t++)
        m->tokens[t] = MIN(m->tokens[t], limit);
    m->most = MIN(m->most, limit);
    g_autoptr(DavitWeights) weights = davit_weights_load(plan, NULL, m->call->report);
    g_autoptr(DavitMeasure) rig =
        weights ? davit_measure_new(plan, weights, (unsigned)davit_call_count(m->call, "threads"),
                                    m->most, m->call->report)
                : NULL;
    return rig && time_plan(m, rig, found);
}

/* ---- order ---- */

static Cost *cost_of(const Measure *m, const DavitKernelCandidate *k)
{
    for (guint i = 0; i < m->costs->len; i++) {
        Cost *c = &g_array_index(m->costs, Cost, i);
        if (strcmp(c->op, k->op) == 0 && strcmp(c->component, k->component) == 0 &&
            strcmp(c->entry, k->entry) == 0)
            return c;
    }
    const Cost fresh = {.op = k->op, .component = k->component, .entry = k->entry};
    g_array_append_val(m->costs, fresh);
    return &g_array_index(m->costs, Cost, m->costs->len - 1);
}

static double best_of(const Measure *m, const Sample *s, size_t t)
{
    double best = s->ns[t];
    for (guint i = 0; i < m->samples->len; i++)
        if (same_shape(sample_at(m, i)->k, s->k))
            best = MIN(best, sample_at(m, i)->ns[t]);
    return best;
}

static int by_cost(const void *pa, const void *pb)
{
    const Cost *a = pa, *b = pb;
    const int order = strcmp(a->op, b->op);
    if (order || a->ratio < b->ratio || a->ratio > b->ratio)
        return order ? order : a->ratio < b->ratio ? -1 : 1;
    return strcmp(a->entry, b->entry);
}

/* The place of an entry is behind all better ones that compute one of its shapes, so that
 * entries of unlike layouts, which nobody compared, stay level and their scores decide. */
static void set_places(const Measure *m)
{
    for (guint i = 0; i < m->samples->len; i++) {
        const Sample *s = sample_at(m, i);
        Cost *c = cost_of(m, s->k);
        for (size_t t = 0; t < m->n_t; t++) {
            c->mine[t] += s->ns[t] * s->k->n_calls;
            c->best[t] += best_of(m, s, t) * s->k->n_calls;
        }
    }
    for (guint i = 0; i < m->costs->len; i++) {
        Cost *c = &g_array_index(m->costs, Cost, i);
        for (size_t t = 0; t < m->n_t; t++)
            c->ratio += c->mine[t] / c->best[t] / (double)m->n_t;
    }
    g_array_sort(m->costs, by_cost);
    for (guint i = 0; i < m->costs->len; i++) {
        Cost *c = &g_array_index(m->costs, Cost, i);
        for (guint a = 0; a < m->samples->len; a++) {
            const Sample *mine = sample_at(m, a);
            for (guint b = 0; cost_of(m, mine->k) == c && b < m->samples->len; b++) {
                const Cost *other = cost_of(m, sample_at(m, b)->k);
                if (c->ratio > other->ratio * NOISE && same_shape(mine->k, sample_at(m, b)->k))
                    c->place = MAX(c->place, other->place + 1);
            }
        }
    }
}

/* Ranks count down to 1 for the last of an op. */
static unsigned rank_of(const Measure *m, const Cost *c)
{
    unsigned last = 0;
    for (guint i = 0; i < m->costs->len; i++)
        if (strcmp(g_array_index(m->costs, Cost, i).op, c->op) == 0)
            last = MAX(last, g_array_index(m->costs, Cost, i).place);
    return last + 1 - c->place;
}

/* ---- output ---- */

static void show_samples(const Measure *m)
{
    json_t *rows = json_array();
    for (guint i = 0; i < m->samples->len; i++) {
        const Sample *s = sample_at(m, i);
        const DavitKernelCandidate *k = s->k;
        json_t *times = json_array();
        if (!m->call->json && (i == 0 || !same_shape(sample_at(m, i - 1)->k, k)))
            printf("%s  %s  (%u in the program)\n", davit_shown(k->op), davit_shown(k->shape),
                   k->n_calls);
        for (size_t t = 0; t < m->n_t; t++) {
            json_array_append_new(times, json_pack("{s:I, s:f, s:i}", "tokens",
                                                   (json_int_t)m->tokens[t], "us", s->ns[t] / 1e3,
                                                   "rounds", (int)s->rounds[t]->len));
            if (!m->call->json)
                printf("  T %-5" G_GUINT64_FORMAT "%12.2f us", m->tokens[t], s->ns[t] / 1e3);
        }
        if (!m->call->json)
            printf("  %-28s  %s%s%s\n", davit_shown(k->entry), davit_shown(k->component),
                   *k->layouts ? "  of " : "", davit_shown(k->layouts));
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:o}", "op", k->op, "shape", k->shape,
                            "layouts", k->layouts, "component", k->component, "entry", k->entry,
                            "calls", (int)k->n_calls, "times", times));
    }
    json_object_set_new(m->call->doc, "measured", rows);
}

static void show_order(const Measure *m)
{
    json_t *rows = json_array();
    for (guint i = 0; i < m->costs->len; i++) {
        const Cost *c = &g_array_index(m->costs, Cost, i);
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:f, s:i}", "op", c->op,
                                              "component", c->component, "entry", c->entry,
                                              "cost", c->ratio, "rank", (int)rank_of(m, c)));
        if (!m->call->json)
            printf("rank %3u  %-16s  %6.2f times the best  %-28s  %s\n", rank_of(m, c),
                   davit_shown(c->op), c->ratio, davit_shown(c->entry),
                   davit_shown(c->component));
    }
    json_object_set_new(m->call->doc, "ranks", rows);
}

/* One op after the other; what was written of another op or run stays. */
static int32_t write_ranks(const Measure *m, DavitRegistry *registry)
{
    int32_t status = DAVIT_OK;
    for (guint i = 0; !status && i < m->costs->len;) {
        const char *op = g_array_index(m->costs, Cost, i).op;
        json_t *ranks = json_object();
        for (; i < m->costs->len; i++) {
            const Cost *c = &g_array_index(m->costs, Cost, i);
            if (strcmp(c->op, op) != 0)
                break;
            g_autofree char *key = g_strdup_printf("%s:%s", c->component, c->entry);
            json_object_set_new(ranks, key, json_integer(rank_of(m, c)));
        }
        status = davit_registry_rank_kernels(registry, op, ranks, m->call->report);
    }
    return status;
}

/* ---- all ---- */

static bool read_flags(Measure *m)
{
    g_autofree const char **tokens = davit_call_list(m->call, "tokens");
    for (size_t i = 0; tokens && tokens[i]; i++) {
        uint64_t n = 0;
        if (m->n_t == MAX_T || !davit_parse_count(tokens[i], &n) || n == 0 || n > MAX_TOKENS)
            return false;
        m->tokens[m->n_t++] = n;
    }
    if (m->n_t == 0) {
        m->tokens[m->n_t++] = 1;
        m->tokens[m->n_t++] = 512;
    }
    for (size_t t = 0; t < m->n_t; t++)
        m->most = MAX(m->most, m->tokens[t]);
    m->n_rounds = (guint)MIN(davit_call_count(m->call, "rounds"), 1000);
    return m->n_rounds > 0;
}

static int finish(Measure *m, DavitRegistry *registry, bool measured)
{
    if (davit_interrupted())
        return DAVIT_EXIT_INTERRUPT;
    if (!measured)
        return davit_call_exit(m->call);
    if (m->samples->len == 0)
        return davit_call_usage(m->call, m->op ? m->op : "ops", "the model has no such op",
                                "davit plugin ops --model MODEL lists them");
    set_places(m);
    show_samples(m);
    show_order(m);
    const bool write = davit_call_has(m->call, "write");
    if (write && write_ranks(m, registry))
        return davit_call_exit(m->call);
    json_object_set_new(m->call->doc, "written",
                        write ? davit_json_text(davit_registry_config_path(registry))
                              : json_null());
    if (!m->call->json && write)
        printf("written to %s\n", davit_shown(davit_registry_config_path(registry)));
    else if (!m->call->json)
        printf("--write keeps these ranks\n");
    return DAVIT_EXIT_OK;
}

int davit_ops_measure(DavitCall *call, DavitRegistry *registry, DavitCheckpoint *checkpoint,
                      const DavitSettings *settings, const DavitPlanOptions *options,
                      const char *op)
{
    Measure m = {.call = call, .op = op};
    DavitPlanOptions each = *options;
    if (!read_flags(&m))
        return davit_call_usage(call, "--tokens, --rounds",
                                "at most four counts of 1 to 65536 tokens, at least one round",
                                "--tokens 1 --tokens 512 --rounds 5");
    m.candidates = g_ptr_array_new_with_free_func(davit_kernel_candidate_free);
    m.samples = g_array_new(FALSE, FALSE, sizeof(Sample));
    m.costs = g_array_new(FALSE, FALSE, sizeof(Cost));
    davit_catch_interrupt();
    if (options->layout == DAVIT_LAYOUT_AUTO)
        each.layout = DAVIT_LAYOUT_STORED;
    bool measured = measure_layout(&m, registry, checkpoint, settings, each);
    if (measured && options->layout == DAVIT_LAYOUT_AUTO) {
        each.layout = DAVIT_LAYOUT_PACKED;
        measured = measure_layout(&m, registry, checkpoint, settings, each);
    }
    const int status = finish(&m, registry, measured);
    for (guint i = 0; i < m.samples->len; i++)
        for (size_t t = 0; t < m.n_t; t++)
            g_array_unref(sample_at(&m, i)->rounds[t]);
    g_array_unref(m.samples);
    g_array_unref(m.costs);
    g_ptr_array_unref(m.candidates);
    return status;
}
