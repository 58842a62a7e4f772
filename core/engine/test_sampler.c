/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sampler.h"

#include <math.h>

#include <glib.h>

#define N 8

static int32_t pick(DavitSampling params, const float *logits, uint64_t position)
{
    DavitSampler *s = davit_sampler_new(&params, N);
    const int32_t id = davit_sampler_pick(s, logits, position);
    davit_sampler_free(s);
    return id;
}

static void test_greedy_takes_lowest_of_equals(void)
{
    const float logits[N] = {0, 3, 1, 3, -1, 2, 0, 3};
    g_assert_cmpint(pick(DAVIT_SAMPLING_GREEDY, logits, 0), ==, 1);
}

/* Frequencies over many positions follow the softmax: chi-square with 7 degrees of freedom,
 * 24.3 is exceeded once in 1000 by chance; the seed is fixed, so this never flickers. */
static void test_frequencies(void)
{
    const float logits[N] = {0.0f, 1.0f, 0.5f, -1.0f, 0.2f, 2.0f, -0.3f, 0.7f};
    const int draws = 20000;
    DavitSampling params = DAVIT_SAMPLING_GREEDY;
    params.temperature = 0.8;
    params.seed = 42;
    DavitSampler *s = davit_sampler_new(&params, N);
    int count[N] = {0};
    for (int i = 0; i < draws; i++)
        count[davit_sampler_pick(s, logits, (uint64_t)i)]++;
    davit_sampler_free(s);

    double sum = 0, chi = 0;
    for (int i = 0; i < N; i++)
        sum += exp(logits[i] / 0.8);
    for (int i = 0; i < N; i++) {
        const double want = draws * exp(logits[i] / 0.8) / sum;
        chi += (count[i] - want) * (count[i] - want) / want;
    }
    g_assert_cmpfloat(chi, <, 24.3);
}

static void test_filters(void)
{
    const float logits[N] = {5, 4.9f, 4.8f, 0, 0, 0, 0, -9};
    DavitSampling params = DAVIT_SAMPLING_GREEDY;
    params.temperature = 1;
    for (uint64_t pos = 0; pos < 300; pos++) {
        DavitSampling p = params;
        p.top_k = 1;
        g_assert_cmpint(pick(p, logits, pos), ==, 0);
        p = params;
        p.top_k = 2;
        g_assert_cmpint(pick(p, logits, pos), <, 2);
        p = params;
        p.top_p = 0.5; /* 0.36 + 0.33 reaches it with two tokens */
        g_assert_cmpint(pick(p, logits, pos), <, 2);
        p = params;
        p.min_p = 0.5; /* exp(-0.2) = 0.82 stays, exp(-5) goes */
        g_assert_cmpint(pick(p, logits, pos), <, 3);
    }
}

static void test_penalties(void)
{
    const float logits[N] = {-1, 2, 1.9f, -2, -2, -2, -2, -2};
    DavitSampling params = DAVIT_SAMPLING_GREEDY;
    params.repeat_penalty = 1.2;
    DavitSampler *s = davit_sampler_new(&params, N);
    davit_sampler_saw(s, 1);
    davit_sampler_saw(s, -1);  /* out of range: ignored */
    davit_sampler_saw(s, 100);
    g_assert_cmpint(davit_sampler_pick(s, logits, 0), ==, 2); /* 2 / 1.2 < 1.9 */
    davit_sampler_free(s);

    params = DAVIT_SAMPLING_GREEDY;
    params.presence_penalty = 4;
    s = davit_sampler_new(&params, N);
    davit_sampler_saw(s, 1);
    davit_sampler_saw(s, 2);
    g_assert_cmpint(davit_sampler_pick(s, logits, 0), ==, 0);
    davit_sampler_free(s);
}

static void test_seed_decides_alone(void)
{
    const float logits[N] = {0};
    DavitSampling a = DAVIT_SAMPLING_GREEDY;
    a.temperature = 1;
    a.seed = 1;
    DavitSampling b = a;
    b.seed = 2;
    int differ = 0;
    for (uint64_t pos = 0; pos < 100; pos++) {
        g_assert_cmpint(pick(a, logits, pos), ==, pick(a, logits, pos));
        differ += pick(a, logits, pos) != pick(b, logits, pos);
    }
    g_assert_cmpint(differ, >, 50);
}

/* B161: no temperature divides by zero, and nearly none is none. */
static void test_no_temperature_is_greedy(void)
{
    static const double temperatures[] = {0.0, -0.0, 1e-9};
    const float logits[N] = {0, 1, 1.5f, 1.4f, 0, 0, 0, -1};

    for (size_t t = 0; t < G_N_ELEMENTS(temperatures); t++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            DavitSampling params = DAVIT_SAMPLING_GREEDY;

            params.temperature = temperatures[t];
            params.seed = seed;
            g_assert_cmpint(pick(params, logits, seed), ==, 2);
        }
}

/* B164: more candidates than tokens are all of them. */
static void test_top_k_beyond_vocabulary(void)
{
    const float logits[N] = {0, 1, 1.5f, 1.4f, 0, 0, 0, -1};

    for (uint64_t pos = 0; pos < 50; pos++) {
        DavitSampling all = DAVIT_SAMPLING_GREEDY, many;

        all.temperature = 1;
        many = all;
        many.top_k = 1000;
        g_assert_cmpint(pick(many, logits, pos), ==, pick(all, logits, pos));
        many.top_k = INT64_MAX;
        g_assert_cmpint(pick(many, logits, pos), ==, pick(all, logits, pos));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sampler/greedy-lowest-of-equals", test_greedy_takes_lowest_of_equals);
    g_test_add_func("/sampler/frequencies-follow-softmax", test_frequencies);
    g_test_add_func("/sampler/filters", test_filters);
    g_test_add_func("/sampler/penalties", test_penalties);
    g_test_add_func("/sampler/seed-decides-alone", test_seed_decides_alone);
    g_test_add_func("/sampler/no-temperature-is-greedy", test_no_temperature_is_greedy);
    g_test_add_func("/sampler/top-k-beyond-vocabulary", test_top_k_beyond_vocabulary);
    return g_test_run();
}
