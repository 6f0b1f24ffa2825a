/* Draws from distributions that tensors give: coins and categories. */
#include <math.h>

#include "tensor/convert.h"
#include "tensor/draw.h"
#include "tensor/iter.h"

/* x as a contiguous f64 tensor, outside any graph. */
static wg_tensor *as_f64(const wg_tensor *x) {
    wg_tensor *wide = wg_empty(WG_F64, x->spec.ndim, x->spec.shape);
    if (wide)
        wg__convert(wide, x);
    return wide;
}

static bool check_floating(const wg_tensor *x, const char *where) {
    if (wg_dtype_is_float(x->spec.dtype))
        return true;
    wg_fail(WG_ERROR_DTYPE, where, "%s; wanted a floating dtype", wg_dtype_name(x->spec.dtype));
    return false;
}

/* ---- Bernoulli ---- */

typedef struct coins {
    wg_generator draw;
    double *p; /* becomes the outcome */
} coins;

static void toss(int64_t begin, int64_t end, void *context) {
    const coins *job = context;
    for (int64_t i = begin; i < end; i++)
        job->p[i] = wg__draw_uniform(job->draw, (uint64_t)i) < job->p[i];
}

static bool check_probabilities(const wg_tensor *p) {
    const double *values = wg_tensor_data(p);
    for (int64_t i = 0, n = wg_tensor_count(p); i < n; i++)
        if (!(values[i] >= 0 && values[i] <= 1)) {
            wg_fail(WG_ERROR_ARGUMENT, "bernoulli", "element %lld is %g; wanted 0 <= p <= 1",
                    (long long)i, values[i]);
            return false;
        }
    return true;
}

wg_tensor *wg_bernoulli(wg_generator *generator, const wg_tensor *p) {
    wg_tensor *x = NULL;
    if (!p || wg__check_memory(p, "bernoulli") < 0 || !check_floating(p, "bernoulli"))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *outcome = as_f64(p);
    if (outcome && check_probabilities(outcome))
        x = wg_empty_like(p);
    if (x) {
        coins job = {wg__next_draw(generator), wg_tensor_data(outcome)};
        wg__parallel_for(wg_tensor_count(outcome), WG__GRAIN / 8, toss, &job);
        wg__convert(x, outcome);
    }
    return wg_scope_end(&scope, x);
}

/* ---- Multinomial ---- */

typedef struct urns {
    wg_generator draw;
    double *weights; /* (rows, categories); overwritten */
    int64_t *chosen; /* (rows, samples) */
    int64_t categories, samples;
} urns;

/* The first category whose share of the line [0, total) ends beyond a place on it: never one of
 * weight 0, whose share is empty. */
static int64_t category_at(const double *ends, int64_t categories, double place) {
    int64_t low = 0, high = categories - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (ends[middle] > place)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void choose_with_replacement(int64_t begin, int64_t end, void *context) {
    const urns *job = context;
    for (int64_t row = begin; row < end; row++) {
        double *ends = job->weights + row * job->categories;
        int64_t last = 0, first = row * job->samples;
        for (int64_t i = 0; i < job->categories; i++) {
            last = ends[i] > 0 ? i : last;
            ends[i] += i > 0 ? ends[i - 1] : 0;
        }
        for (int64_t s = first; s < first + job->samples; s++) {
            double place = wg__draw_uniform(job->draw, (uint64_t)s) * ends[last];
            job->chosen[s] = category_at(ends, last + 1, place);
        }
    }
}

/* Without replacement: category i waits an exponential time of rate weight[i], and the first
 * `samples` that come are chosen, in the order of their coming, which is that of drawing one after
 * the other from what is left (Efraimidis & Spirakis 2006). */

static bool comes_later(const double *times, int64_t a, int64_t b) {
    return times[a] > times[b] || (times[a] == times[b] && a > b);
}

/* heap[at] sinks to its place in a heap whose root comes last. */
static void sink(const double *times, int64_t *heap, int64_t count, int64_t at) {
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && comes_later(times, heap[child + 1], heap[child]))
            child++;
        if (!comes_later(times, heap[child], heap[at]))
            return;
        int64_t held = heap[at];
        heap[at] = heap[child];
        heap[child] = held;
        at = child;
    }
}

/* The first `samples` to come of those with a weight, in order. */
static void first_to_come(const double *times, int64_t categories, int64_t *chosen,
                          int64_t samples) {
    int64_t count = 0;
    for (int64_t i = 0; i < categories; i++) {
        if (isnan(times[i])) /* of weight 0 */
            continue;
        if (count < samples) {
            chosen[count++] = i;
            if (count == samples)
                for (int64_t at = samples / 2 - 1; at >= 0; at--)
                    sink(times, chosen, samples, at);
        } else if (comes_later(times, chosen[0], i)) {
            chosen[0] = i;
            sink(times, chosen, samples, 0);
        }
    }
    for (int64_t left = samples - 1; left > 0; left--) {
        int64_t held = chosen[0];
        chosen[0] = chosen[left];
        chosen[left] = held;
        sink(times, chosen, left, 0);
    }
}

static void choose_without_replacement(int64_t begin, int64_t end, void *context) {
    const urns *job = context;
    for (int64_t row = begin; row < end; row++) {
        double *times = job->weights + row * job->categories;
        uint64_t first = (uint64_t)row * (uint64_t)job->categories;
        for (int64_t i = 0; i < job->categories; i++) {
            double u = wg__draw_uniform(job->draw, first + (uint64_t)i);
            times[i] = times[i] > 0 ? -log1p(-u) / times[i] : NAN;
        }
        first_to_come(times, job->categories, job->chosen + row * job->samples, job->samples);
    }
}

static bool check_weights(const wg_tensor *weights, int64_t needed) {
    const double *values = wg_tensor_data(weights);
    const int64_t categories = wg_tensor_size(weights, -1);
    for (int64_t row = 0, rows = wg_tensor_count(weights) / categories; row < rows; row++) {
        const double *weight = values + row * categories;
        double total = 0;
        int64_t positive = 0;
        for (int64_t i = 0; i < categories; i++) {
            if (!(weight[i] >= 0 && weight[i] < INFINITY)) {
                wg_fail(WG_ERROR_ARGUMENT, "multinomial",
                        "weight %lld of row %lld is %g; wanted finite ones, not negative",
                        (long long)i, (long long)row, weight[i]);
                return false;
            }
            total += weight[i];
            positive += weight[i] > 0;
        }
        if (positive < needed || !isfinite(total)) {
            wg_fail(WG_ERROR_ARGUMENT, "multinomial",
                    "row %lld has %lld weights above 0, of the sum %g; wanted at least %lld and a "
                    "finite sum",
                    (long long)row, (long long)positive, total, (long long)needed);
            return false;
        }
    }
    return true;
}

static bool check_multinomial(const wg_tensor *weights, int64_t samples) {
    char text[160];
    if (!check_floating(weights, "multinomial"))
        return false;
    wg_spec_text(text, sizeof text, &weights->spec);
    if (weights->spec.ndim < 1 || wg_tensor_size(weights, -1) < 1) {
        wg_fail(WG_ERROR_SHAPE, "multinomial", "%s: there are no categories; wanted (..., V)",
                text);
        return false;
    }
    if (samples < 1) {
        wg_fail(WG_ERROR_ARGUMENT, "multinomial", "%lld samples; there is at least 1",
                (long long)samples);
        return false;
    }
    return true;
}

static wg_tensor *multinomial(wg_generator *generator, const wg_tensor *weights, int64_t samples,
                              bool replacement) {
    const int ndim = weights->spec.ndim;
    wg_spec to = weights->spec;
    to.shape[ndim - 1] = samples;
    wg_tensor *wide = as_f64(weights);
    if (!wide || !check_weights(wide, replacement ? 1 : samples))
        return NULL;
    wg_tensor *chosen = wg_empty(WG_I64, ndim, to.shape);
    if (!chosen)
        return NULL;
    urns job = {.draw = wg__next_draw(generator),
                .weights = wg_tensor_data(wide),
                .chosen = wg_tensor_data(chosen),
                .categories = weights->spec.shape[ndim - 1],
                .samples = samples};
    const int64_t work = job.categories + (replacement ? samples : 0);
    wg__parallel_for(wg_tensor_count(weights) / job.categories, WG__GRAIN / 8 / work + 1,
                     replacement ? choose_with_replacement : choose_without_replacement, &job);
    return chosen;
}

wg_tensor *wg_multinomial(wg_generator *generator, const wg_tensor *weights, int64_t samples,
                          bool replacement) {
    if (!weights || wg__check_memory(weights, "multinomial") < 0 ||
        !check_multinomial(weights, samples))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, multinomial(generator, weights, samples, replacement));
}
