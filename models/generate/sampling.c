/* Choosing the next token: see sampling.h. */
#include "models/generate/sampling.h"

#include <math.h>
#include <stdlib.h>

#include "tensor/internal.h"

#define WHERE "sampling"

/* ---- Rules ---- */

int wg_sampling_validate(const wg_sampling *s) {
    if (!(s->temperature >= 0 && isfinite(s->temperature)))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "temperature is %g; it must be 0 or more",
                       s->temperature);
    if (s->top_k < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "top_k is %lld; it must be 0 or more",
                       (long long)s->top_k);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "top_p is %g; it must be from 0 to 1", s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "min_p is %g; it must be from 0 to 1", s->min_p);
    if (!(s->repetition_penalty >= 0 && isfinite(s->repetition_penalty)))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "repetition_penalty is %g; it must be 0 or more",
                       s->repetition_penalty);
    return 0;
}

static int check_logits(int64_t count, const float *logits) {
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "the logit of token %lld is %g; the model is broken", (long long)i,
                           (double)logits[i]);
        any = any || logits[i] > -INFINITY;
    }
    return any ? 0 : wg_fail(WG_ERROR_ARGUMENT, WHERE, "no token has a logit above -inf");
}

/* ---- The logits that count ---- */

/* A token that was seen twice is penalised once, as each reads the logit of the model. */
static int penalise(double penalty, int64_t count, const float *logits, int64_t seen_count,
                    const int32_t *seen, double *scores) {
    for (int64_t i = 0; penalty != 0 && i < seen_count; i++) {
        if (seen[i] < 0 || seen[i] >= count)
            return wg_fail(WG_ERROR_INDEX, WHERE, "token %ld was seen; there are logits of %lld",
                           (long)seen[i], (long long)count);
        const double logit = logits[seen[i]];
        scores[seen[i]] = logit > 0 ? logit / penalty : logit * penalty;
    }
    return 0;
}

static int64_t likeliest(int64_t count, const double *scores) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* ---- What is left out ---- */

typedef struct candidate {
    double weight;
    int64_t id;
} candidate;

static int by_likelihood(const void *a, const void *b) {
    const candidate *left = a, *right = b;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* How many of the sorted candidates stay. */
static int64_t count_kept(const wg_sampling *sampling, int64_t count, const candidate *sorted) {
    const int64_t kept = sampling->top_k > 0 && sampling->top_k < count ? sampling->top_k : count;
    if (sampling->top_p == 0 || sampling->top_p == 1)
        return kept;
    double total = 0, before = 0;
    for (int64_t i = 0; i < kept; i++)
        total += sorted[i].weight;
    int64_t i = 0;
    for (; i < kept && before < sampling->top_p * total; i++)
        before += sorted[i].weight;
    return i;
}

/* Takes the weight of all but the likeliest away, as top_k and top_p say. */
static int keep_likeliest(const wg_sampling *sampling, int64_t count, double *weights) {
    candidate *sorted = wg__alloc((size_t)count * sizeof *sorted);
    if (!sorted)
        return -1;
    for (int64_t i = 0; i < count; i++)
        sorted[i] = (candidate){.weight = weights[i], .id = i};
    qsort(sorted, (size_t)count, sizeof *sorted, by_likelihood);
    for (int64_t i = count_kept(sampling, count, sorted); i < count; i++)
        weights[sorted[i].id] = 0;
    wg__free(sorted);
    return 0;
}

static void normalise(int64_t count, double *weights) {
    double total = 0;
    for (int64_t i = 0; i < count; i++)
        total += weights[i];
    for (int64_t i = 0; i < count; i++)
        weights[i] /= total;
}

int wg_sampling_probabilities(const wg_sampling *sampling, int64_t count, const float *logits,
                              int64_t seen_count, const int32_t *seen, double *probabilities) {
    if (wg_sampling_validate(sampling) < 0 || check_logits(count, logits) < 0)
        return -1;
    double *weights = probabilities;
    for (int64_t i = 0; i < count; i++)
        weights[i] = logits[i];
    if (penalise(sampling->repetition_penalty, count, logits, seen_count, seen, weights) < 0)
        return -1;
    const int64_t best = likeliest(count, weights);
    const double highest = weights[best]; /* weights are relative to it, so that none overflows */
    for (int64_t i = 0; i < count; i++)
        weights[i] = sampling->temperature == 0
                         ? i == best
                         : exp((weights[i] - highest) / sampling->temperature);
    const bool sorts = sampling->top_k > 0 || (sampling->top_p > 0 && sampling->top_p < 1);
    if (sorts && sampling->temperature > 0 && keep_likeliest(sampling, count, weights) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (weights[i] < sampling->min_p)
            weights[i] = 0;
    normalise(count, weights);
    return 0;
}

/* ---- The draw ---- */

/* The token in whose part of [0, 1) the draw falls; rounding may leave a gap at the end, which
 * belongs to the last that has any probability. */
static int64_t draw(int64_t count, const double *probabilities, wg_generator *generator) {
    const double at = wg_random_uniform(generator);
    double end = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        if (probabilities[i] == 0)
            continue;
        end += probabilities[i];
        last = i;
        if (at < end)
            break;
    }
    return last;
}

/* The first of the largest logits; -1 if one of them is none, or all are -inf. */
static int64_t largest_logit(int64_t count, const float *logits) {
    enum { LANES = 16 }; /* whose comparisons do not wait for each other */
    float largest[LANES];
    int broken[LANES] = {0};
    int64_t i = 0;
    for (int j = 0; j < LANES; j++)
        largest[j] = -INFINITY;
    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++) {
            largest[j] = logits[i + j] > largest[j] ? logits[i + j] : largest[j];
            broken[j] |= !(logits[i + j] < INFINITY);
        }
    for (; i < count; i++) {
        largest[0] = logits[i] > largest[0] ? logits[i] : largest[0];
        broken[0] |= !(logits[i] < INFINITY);
    }
    for (int j = 1; j < LANES; j++) {
        largest[0] = largest[j] > largest[0] ? largest[j] : largest[0];
        broken[0] |= broken[j];
    }
    if (broken[0] || largest[0] == -INFINITY)
        return -1;
    for (i = 0; logits[i] != largest[0];)
        i++;
    return i;
}

int32_t wg_sample_token(const wg_sampling *sampling, int64_t count, const float *logits,
                        int64_t seen_count, const int32_t *seen, wg_generator *generator) {
    if (sampling->temperature == 0 && sampling->repetition_penalty == 0) {
        const int64_t id = wg_sampling_validate(sampling) < 0 ? -1 : largest_logit(count, logits);
        if (id >= 0)
            return (int32_t)id;
    }
    double *probabilities = wg__alloc((size_t)count * sizeof *probabilities);
    if (!probabilities)
        return -1;
    int64_t id = -1;
    if (wg_sampling_probabilities(sampling, count, logits, seen_count, seen, probabilities) == 0)
        id = sampling->temperature == 0 ? likeliest(count, probabilities)
                                        : draw(count, probabilities, generator);
    wg__free(probabilities);
    return (int32_t)id;
}
