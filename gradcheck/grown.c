/* Variants of an op's samples with long inputs: more elements than a vector, a block or a chunk of
 * a parallel loop, and no multiple of a vector's width. Their derivatives are compared along random
 * directions:
 *
 *     w^T (y(x + h v) - y(x - h v)) / (2 h)        against        (w^T J) v
 *
 * with v over all inputs, and over the tails alone: the last elements of each grown axis. For the
 * longest inputs only the bits at different numbers of threads are compared. */
#include "gradcheck/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tensor/ops.h"

enum { MANY = 40000 }; /* elements: several chunks of the parallel loops */

static const int64_t lengths[] = {67, 259, 4099};

enum { LENGTHS = sizeof lengths / sizeof *lengths, SIZES = 12 };

/* Repeats x along an axis to a given length. */
static wg_tensor *lengthened(wg_tensor *x, int axis, int64_t length) {
    int64_t size = wg_tensor_size(x, axis), times = (length + size - 1) / size;
    wg_tensor *parts[64];
    while (x && times > 1) {
        int count = times < 64 ? (int)times : 64;
        for (int k = 0; k < count; k++)
            parts[k] = x;
        x = wg_cat(count, parts, axis);
        times = (times + count - 1) / count;
    }
    return x ? wg_clone(wg_slice(x, axis, 0, length, 1)) : NULL;
}

/* Grows every axis of `size` to `length`. If `odd`, axes of other even sizes lose an element. */
static wg_tensor *grow(wg_tensor *x, int64_t size, int64_t length, bool odd, uint64_t seed) {
    wg_tensor *y = x;
    for (int d = 0; y && d < wg_tensor_ndim(x); d++) {
        int64_t own = wg_tensor_size(x, d);
        if (own == size)
            y = lengthened(y, d, length);
        else if (odd && own % 2 == 0 && own > 0)
            y = wg_slice(y, d, 0, own - 1, 1);
    }
    y = y ? wg_clone(y) : NULL;
    if (!y || y->spec.dtype != WG_F64)
        return y;
    /* Scale values at random, because repeated values are ties. Zeros stay, unless ties have no
     * derivative. */
    wg_generator generator = {.seed = seed, .offset = (uint64_t)6 << 40};
    double *data = wg_tensor_data(y);
    for (int64_t i = 0; i < wg_tensor_count(y); i++)
        data[i] = seed >> 32 && data[i] == 0 ? wg_random_uniform(&generator) / 64
                                             : data[i] * (1 - wg_random_uniform(&generator) / 16);
    return y;
}

/* Whether the shape rule accepts the sample, and inputs and outputs have at most `most` elements.
 */
static bool is_feasible(const wg_op *op, const wg_sample *sample, int64_t most) {
    wg_spec specs[WG_MAX_INPUTS];
    wg_call call = {.op = op,
                    .options = sample->options,
                    .input_count = sample->input_count,
                    .inputs = sample->inputs,
                    .input_specs = specs,
                    .output_count = op->output_count};
    bool feasible = true;
    for (int i = 0; i < sample->input_count; i++) {
        specs[i] = sample->inputs[i] ? sample->inputs[i]->spec : (wg_spec){.ndim = -1};
        feasible &= !sample->inputs[i] || wg__spec_count(&specs[i]) <= most;
    }
    feasible = feasible && (!op->infer || op->infer(&call) == 0);
    for (int j = 0; feasible && op->forward && j < op->output_count; j++)
        feasible = wg__spec_count(&call.output_specs[j]) <= most;
    if (feasible && op->flops)
        feasible = op->flops(&call) <= 64.0 * (double)most;
    wg_error_clear();
    return feasible;
}

int wg__variant_long(const wg_op *op, int number, const wg_sample *sample, bool first,
                     wg__variant *variant) {
    /* The distinct sizes of the axes of all inputs. All axes of a size grow together, so that the
     * inputs still fit each other. */
    int64_t sizes[SIZES] = {0};
    int count = 0, each = first ? LENGTHS + 1 : 1;
    for (int i = 0; i < sample->input_count; i++)
        for (int d = 0; d < wg_tensor_ndim(sample->inputs[i]); d++) {
            int64_t size = wg_tensor_size(sample->inputs[i], d);
            int k = 0;
            while (k < count && sizes[k] != size)
                k++;
            if (k == count && count < SIZES && size > 1)
                sizes[count++] = size;
        }
    if (number >= each * count)
        return 0;
    int kind = number % each;
    bool odd = kind < LENGTHS;
    variant->grown = sizes[number / each];
    variant->to = lengths[odd ? kind : 0];
    variant->sample = *sample;
    int most = 0;
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x)
            continue;
        int grown = 0;
        for (int d = 0; d < wg_tensor_ndim(x); d++)
            grown += wg_tensor_size(x, d) == variant->grown;
        most = grown > most ? grown : most;
        if (grown > 1 && variant->to > lengths[0])
            return -1;
        variant->sample.inputs[i] =
            grow(wg_detach(x), variant->grown, variant->to, odd,
                 (uint64_t)i |
                     (wg__op_exceptions(op)->undefined_at & WG_AT_TIES ? (uint64_t)1 << 32 : 0));
        if (!variant->sample.inputs[i])
            return -1;
    }
    snprintf(variant->name, sizeof variant->name, "axes of size %lld grown to %lld",
             (long long)variant->grown, (long long)variant->to);
    return is_feasible(op, &variant->sample, 1 << 15) ? 1 : -1;
}

typedef struct projection {
    wg__gradcheck *c;
    int64_t length; /* of the grown axes */
    double numeric, analytic;
    double slopes; /* the sum of the absolute slopes */
} projection;

/* Compares the derivatives along a random direction of length 1 over the elements from `from` to
 * `to` of the grown axes; from < 0: over all elements. 1 if they agree, or cannot be compared (a
 * kink, no elements); 0 if they disagree; -1 with a verdict. */
static int compare_direction(projection *p, int64_t from, int64_t to) {
    wg__gradcheck *c = p->c;
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)7 << 40};
    double square = 0, eps = c->dtype == WG_F64 ? 1e-5 : 1.0 / 64;
    for (int w = 0; w < c->wanted.count; w++)
        for (int64_t i = 0; i < wg_tensor_count(c->wanted.tensors[w]); i++) {
            const wg_gradcheck_index index = wg__index_of(i, &c->wanted.tensors[w]->spec);
            double v = wg_random_normal(&generator), *at = &c->gradient[c->wanted.at[w] + i];
            bool is_between = from < 0;
            for (int d = 0; d < index.ndim && !is_between; d++)
                is_between = wg_tensor_size(c->wanted.tensors[w], d) == p->length &&
                             index.at[d] >= from && index.at[d] < to;
            *at = is_between ? v : 0;
            square += *at * *at;
        }
    if (square == 0)
        return 1;
    for (int64_t at = 0; at < c->wanted.elements; at++)
        c->gradient[at] /= sqrt(square);

    /* If a kink is within the first step, the second step, a thousandth of it, avoids the kink. */
    for (int pass = 0; pass < 2; pass++, eps /= 1000) {
        if (wg__gradcheck_slope(c, c->gradient, -1, eps) < 0)
            return -1;
        double noise = 0, spread = 0, size = 0;
        p->numeric = p->analytic = p->slopes = 0;
        for (int64_t i = 0; i < c->weighted.elements; i++) {
            double weight = fabs(c->weight_values[i]);
            p->numeric += c->weight_values[i] * c->slopes[i];
            p->slopes += weight * fabs(c->slopes[i]);
            spread += weight * c->spreads[i];
            noise += weight * 8 * DBL_EPSILON * fabs(c->values[i]) / eps;
        }
        for (int64_t at = 0; at < c->wanted.elements; at++) {
            p->analytic += c->sums.analytic[at] * c->gradient[at];
            size = fmax(size, fabs(c->sums.analytic[at] * c->gradient[at]));
        }
        /* One-sided slopes that differ as much as the error: a kink. */
        double error = fabs(p->numeric - p->analytic);
        if (error <= 1e-6 + 1e-5 * (fabs(p->numeric) + size) + noise || isnan(p->numeric) ||
            error <= 1.01 * spread)
            return 1;
    }
    return 0;
}

static int explain(projection *p, int64_t from, int64_t to) {
    wg__gradcheck *c = p->c;
    /* Search for the first wrong element: directions over all elements before it agree. */
    int64_t first = 0, wrong = p->length;
    while (first + 1 < wrong) {
        int64_t middle = (first + wrong) / 2;
        if (compare_direction(p, 0, middle) == 1)
            first = middle;
        else
            wrong = middle;
    }
    compare_direction(p, from, to);
    bool forward = p->slopes == 0, tail = first > 0;
    c->found.blames = forward ? "forward" : "vjp";
    return wg__gradcheck_fail(
        c, tail ? WG_DIAGNOSIS_TAIL : WG_DIAGNOSIS_LONG, -1,
        "along random directions of the elements %s%lld of an axis of %lld: numeric %.9g, analytic "
        "%.9g%s",
        tail ? "from about " : "of which the first wrong one is ", (long long)first,
        (long long)p->length, p->numeric, p->analytic,
        p->analytic == 0 ? "; their gradients are 0"
        : forward        ? "; forward does not depend on them"
                         : "");
}

int wg__gradcheck_long(wg__gradcheck *c, const wg__variant *variant) {
    if (wg__gradcheck_prepare(c) < 0 || wg__gradcheck_decomposed_values(c) < 0)
        return -1;
    if (c->weighted.elements == 0)
        return 0;
    if (c->wanted.elements > 0) {
        projection p = {.c = c, .length = variant->to};
        const int64_t end = variant->to;
        if (wg__gradcheck_evaluate(c, NULL, c->sums.analytic) < 0)
            return -1;
        int status = compare_direction(&p, end - 3, end);
        if (status == 0)
            status = explain(&p, end - 3, end);
        else if (status > 0 && (status = compare_direction(&p, -1, end)) == 0)
            status = explain(&p, -1, end);
        c->report->compared += 2;
        if (status < 0 || (c->op->jvp && wg__gradcheck_forward_mode(c, false) < 0))
            return -1;
    }
    if (wg__gradcheck_f32(c, false) < 0)
        return -1;
    if (variant->to != lengths[0] || c->wanted.elements >= 1024)
        return 0;
    return wg__gradcheck_layouts(c) < 0 ? -1 : wg__gradcheck_leaves_alone(c);
}

/* All inputs, tall or wide; then the first input alone. Not for composites: the size of their
 * results is not known in advance, and their ops are checked themselves. */
int wg__variant_grown(const wg_op *op, int number, const wg_sample *sample, bool first,
                      wg__variant *variant) {
    static const char *const names[] = {"inputs tall", "inputs wide", "input 0 tall",
                                        "input 0 wide"};
    if (!op->forward || !first || number >= (int)(sizeof names / sizeof *names))
        return 0;
    variant->sample = *sample;
    for (int i = 0; i < (number < 2 ? sample->input_count : 1); i++) {
        wg_tensor *x = sample->inputs[i];
        const int64_t count = x ? wg_tensor_count(x) : 0;
        if (count > 0 && wg_tensor_ndim(x) > 0 && wg_tensor_ndim(x) < WG_MAX_DIMS) {
            int64_t repeats[WG_MAX_DIMS] = {(MANY + count - 1) / count, 1, 1, 1, 1, 1, 1, 1};
            x = number % 2 ? wg_repeat_interleave(x, repeats[0], -1)
                           : wg_tile(x, wg_tensor_ndim(x), repeats);
        }
        variant->sample.inputs[i] = x ? wg_clone(x) : NULL;
    }
    snprintf(variant->name, sizeof variant->name, "%s", names[number]);
    return is_feasible(op, &variant->sample, 4 * MANY) ? 1 : -1;
}
