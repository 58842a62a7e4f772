/* SPDX-License-Identifier: Apache-2.0
 * Penalties, filters and the choice. Probabilities are computed in double over the candidates
 * that are still in, so every filter sees what the ones before it left. */
#include "engine/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/* Below it logits divided by the temperature leave the range of numbers. */
#define MIN_TEMPERATURE 1e-5

typedef struct Candidate {
    int32_t id;
    double logit; /* after penalties and temperature */
} Candidate;

struct DavitSampler {
    DavitSampling params;
    size_t n_vocab;
    uint8_t *seen;         /* [n_vocab] 1 = occurred */
    Candidate *candidates; /* [n_vocab] */
};

DavitSampler *davit_sampler_new(const DavitSampling *params, size_t n_vocab)
{
    DavitSampler *s = g_new0(DavitSampler, 1);
    s->params = *params;
    s->n_vocab = n_vocab;
    s->seen = g_new0(uint8_t, n_vocab);
    s->candidates = g_new(Candidate, n_vocab);
    return s;
}

void davit_sampler_free(DavitSampler *sampler)
{
    if (!sampler)
        return;
    g_free(sampler->seen);
    g_free(sampler->candidates);
    g_free(sampler);
}

void davit_sampler_saw(DavitSampler *sampler, int32_t id)
{
    if (id >= 0 && (size_t)id < sampler->n_vocab)
        sampler->seen[id] = 1;
}

/* splitmix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

double davit_sampler_gumbel(uint64_t seed, uint64_t position, uint64_t id)
{
    const uint64_t step = 0x9e3779b97f4a7c15ull; /* odd, 2^64 / golden ratio */
    const uint64_t h = mix(mix(mix(seed + step) ^ (position + step)) ^ (id + step));
    const double u = ((double)(h >> 11) + 0.5) * 0x1p-53; /* open interval (0, 1) */
    return -log(-log(u));
}

static double penalised(const DavitSampler *s, const float *logits, size_t id)
{
    double x = logits[id];
    if (!s->seen[id])
        return x;
    x = x > 0 ? x / s->params.repeat_penalty : x * s->params.repeat_penalty;
    return x - s->params.presence_penalty;
}

static int32_t pick_greedy(const DavitSampler *s, const float *logits)
{
    size_t best = 0;
    double most = penalised(s, logits, 0);
    for (size_t id = 1; id < s->n_vocab; id++) {
        const double x = penalised(s, logits, id);
        if (x > most) {
            most = x;
            best = id;
        }
    }
    return (int32_t)best;
}

static int by_logit(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return x->id - y->id;
}

/* Candidates that stay under top-p: the shortest prefix whose probability reaches p. */
static size_t keep_top_p(const Candidate *c, size_t n, double top_p)
{
    double sum = 0, run = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp(c[i].logit - c[0].logit);
    for (size_t i = 0; i < n; i++) {
        run += exp(c[i].logit - c[0].logit);
        if (run >= top_p * sum)
            return i + 1;
    }
    return n;
}

static size_t keep_min_p(const Candidate *c, size_t n, double min_p)
{
    const double floor_logit = c[0].logit + log(min_p);
    size_t kept = 1;
    while (kept < n && c[kept].logit >= floor_logit)
        kept++;
    return kept;
}

static size_t filter(DavitSampler *s)
{
    const DavitSampling *p = &s->params;
    size_t n = s->n_vocab;
    const bool sorted = p->top_k > 0 || p->top_p < 1 || p->min_p > 0;
    if (!sorted)
        return n;
    qsort(s->candidates, n, sizeof *s->candidates, by_logit);
    if (p->top_k > 0 && (uint64_t)p->top_k < n)
        n = (size_t)p->top_k;
    if (p->top_p < 1)
        n = keep_top_p(s->candidates, n, p->top_p);
    if (p->min_p > 0)
        n = keep_min_p(s->candidates, n, p->min_p);
    return n;
}

int32_t davit_sampler_pick(DavitSampler *s, const float *logits, uint64_t position)
{
    if (s->params.temperature < MIN_TEMPERATURE)
        return pick_greedy(s, logits);
    for (size_t id = 0; id < s->n_vocab; id++)
        s->candidates[id] = (Candidate){
            .id = (int32_t)id, .logit = penalised(s, logits, id) / s->params.temperature};
    const size_t n = filter(s);

    int32_t best = s->candidates[0].id;
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const Candidate *c = &s->candidates[i];
        const double x =
            c->logit + davit_sampler_gumbel(s->params.seed, position, (uint64_t)c->id);
        if (x > most) {
            most = x;
            best = c->id;
        }
    }
    return best;
}
