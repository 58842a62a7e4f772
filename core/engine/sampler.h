/* SPDX-License-Identifier: Apache-2.0
 * From one row of logits to one token.
 *
 * Order of the steps: penalties, temperature, top-k, top-p, min-p, choice. Greedy (temperature
 * 0) takes the largest logit, the lowest id among equals. Otherwise Gumbel noise from a
 * counter-based generator keyed by (seed, position, token id) is added to the log
 * probabilities of what the filters left, and the largest sum wins: the same seed gives the
 * same text alone, in a batch and with any drafter.
 */
#ifndef DAVIT_ENGINE_SAMPLER_H
#define DAVIT_ENGINE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct DavitSampling {
    double temperature;      /* below 1e-5 = greedy */
    double top_p;            /* 0 < p <= 1, 1 = off */
    double min_p;            /* 0 = off; keep tokens with p >= min_p * p_max */
    int64_t top_k;           /* 0 = off */
    double repeat_penalty;   /* > 0, 1 = off: divides positive, multiplies negative logits */
    double presence_penalty; /* 0 = off: subtracted once from every token seen */
    uint64_t seed;
} DavitSampling;

/* Neutral values: greedy, nothing filtered. */
#define DAVIT_SAMPLING_GREEDY                                                             \
    ((DavitSampling){.top_p = 1.0, .repeat_penalty = 1.0})

typedef struct DavitSampler DavitSampler;

/* @n_vocab > 0. Returns: (owned). */
DavitSampler *davit_sampler_new(const DavitSampling *params, size_t n_vocab);
void davit_sampler_free(DavitSampler *sampler);

/* Count @id as seen (prompt and output tokens), for the penalties. */
void davit_sampler_saw(DavitSampler *sampler, int32_t id);

/* Choose from @logits [n_vocab], finite. @position: index of the token that is chosen. */
int32_t davit_sampler_pick(DavitSampler *sampler, const float *logits, uint64_t position);

/* The noise: standard Gumbel, a pure function of its arguments. */
double davit_sampler_gumbel(uint64_t seed, uint64_t position, uint64_t id);

#endif
