/* Quantiles along an axis, and histograms. */
#include "tensor/ops/support.h"

#include <math.h>

/* ---- quantile, nanquantile: with the n elements of a line in order and the rank r = q (n - 1),
 *
 *     y = x_floor(r) + (r - floor(r)) (x_ceil(r) - x_floor(r))          (linear)
 *
 * Composites of sort, gather and lerp, so that both x and q have gradients. ---- */

typedef struct quantile_options {
    int axis;
    bool keepdim;
    wg_quantile_interpolation interpolation;
} quantile_options;

static int quantile_infer(wg_call *call) {
    const quantile_options *options = call->options;
    const wg_spec *x = &call->input_specs[0], *q = &call->input_specs[1];
    if (!wg_dtype_is_float(x->dtype) || wg__check_same_dtype(call, 0, 1) < 0)
        return wg_dtype_is_float(x->dtype)
                   ? -1
                   : wg__op_fail(call, WG_ERROR_DTYPE, "takes a floating dtype; cast the operands");
    if (q->ndim > 1 || x->ndim == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted x of rank 1 or more, and q of rank 0 or 1");
    if (x->shape[options->axis] == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no elements to choose from");
    if (options->interpolation < 0 || options->interpolation > WG_QUANTILE_NEAREST)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "interpolation %d is none of %s",
                           (int)options->interpolation, "wg_quantile_interpolation");
    return 0;
}

/* The elements of sorted lines (..., n) at ranks (..., Q). */
static wg_tensor *at_ranks(wg_tensor *lines, wg_tensor *rank) {
    if (!lines || !rank)
        return NULL;
    wg_spec shape = lines->spec;
    shape.shape[shape.ndim - 1] = rank->spec.shape[rank->spec.ndim - 1];
    return wg_gather(lines, -1, wg_expand(wg_cast(rank, WG_I64), shape.ndim, shape.shape));
}

/* A line with NaN takes its last element, a NaN; with skips_nan, its NaNs are not counted. */
static int decompose(wg_call *call, bool skips_nan) {
    const quantile_options *options = call->options;
    const int64_t axis = options->axis, n = call->input_specs[0].shape[axis];
    const wg_quantile_interpolation how = options->interpolation;
    const wg_dtype dtype = call->input_specs[0].dtype;
    wg_tensor *lines = NULL, *q = wg_cast(call->inputs[1], WG_F64), *rank, *y;
    const wg_tensor *all = wg_contiguous(wg__all_values(q));
    if (!all)
        return -1;
    const double *values = wg__tensor_address(all);
    for (int64_t i = 0; i < wg__spec_count(&all->spec); i++)
        if (!(values[i] >= 0 && values[i] <= 1))
            return wg__op_fail(call, WG_ERROR_ARGUMENT, "q is %g; wanted 0 to 1", values[i]);
    if (wg_sort(wg_movedim(call->inputs[0], 1, &axis, (int64_t[]){-1}), -1, false, &lines, NULL) <
        0)
        return -1;
    q = wg_reshape(q, 1, (int64_t[]){-1});
    wg_tensor *is_nan = wg_isnan(lines);
    if (skips_nan) {
        wg_tensor *count = wg_count_nonzero(wg_logical_not(is_nan), 1, (int64_t[]){-1}, true);
        rank = wg_mul(q, wg_clamp(wg_add_scalar(wg_cast(count, WG_F64), -1), 0, INFINITY));
    } else
        rank = wg_where(wg_any(is_nan, 1, (int64_t[]){-1}, true),
                        wg_scalar(WG_F64, (double)(n - 1)), wg_mul_scalar(q, (double)(n - 1)));
    if (how == WG_QUANTILE_LOWER || how == WG_QUANTILE_HIGHER || how == WG_QUANTILE_NEAREST)
        y = at_ranks(lines, how == WG_QUANTILE_LOWER    ? wg_floor(rank)
                            : how == WG_QUANTILE_HIGHER ? wg_ceil(rank)
                                                        : wg_round(rank));
    else
        y = wg_lerp(at_ranks(lines, wg_floor(rank)), at_ranks(lines, wg_ceil(rank)),
                    how == WG_QUANTILE_MIDPOINT ? wg_scalar(dtype, 0.5)
                                                : wg_cast(wg_sub(rank, wg_floor(rank)), dtype));
    y = wg_movedim(y, 1, (int64_t[]){-1}, (int64_t[]){0});
    if (options->keepdim)
        y = wg_unsqueeze(y, (int)axis + 1);
    return wg__set_output(call, call->input_specs[1].ndim == 0 ? wg_squeeze(y, 0) : y);
}

static int quantile_decompose(wg_call *call) {
    return decompose(call, false);
}

static int nanquantile_decompose(wg_call *call) {
    return decompose(call, true);
}

static wg_tensor *sample_q(wg_generator *generator, int ndim, const int64_t *shape) {
    (void)generator;
    return wg_from_array(WG_F64, ndim, shape, (double[]){0.15, 0.3, 0.85});
}

WG__EXAMPLES(quantile, quantile_options, (wg__sample_distinct, sample_q),
             {{1, false, WG_QUANTILE_LINEAR}, "4 5, 3"}, {{0, true, WG_QUANTILE_LINEAR}, "4 5,"},
             {{1, true, WG_QUANTILE_MIDPOINT}, "4 5,"}, {{0, false, WG_QUANTILE_LOWER}, "4 5, 3"},
             {{1, false, WG_QUANTILE_HIGHER}, "4 5,"}, {{0, false, WG_QUANTILE_NEAREST}, "4 5,"})
WG__LARGE(quantile, quantile_options, "1024 4096, 3", 1, false, WG_QUANTILE_LINEAR)

/* The common members of both records. Any of several equal elements may have the rank. */
#define QUANTILE(NAME, DOC)                                                                        \
    WG__OP(#NAME, 2, DOC), .options_size = sizeof(quantile_options), .differentiable = 3,          \
                           .infer = quantile_infer, .decompose = NAME##_decompose,                 \
                           .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_TIES},    \
                           .sample = quantile_sample, .bench = quantile_bench

static const wg_op quantile = {QUANTILE(
    quantile, "The elements of x at rank q (n - 1) of each line along an axis, between two "
              "of them interpolated; q () or (Q) comes first in the shape. NaN if there "
              "is one. Kinks at ties and at whole ranks.")};

static const wg_op nanquantile = {QUANTILE(
    nanquantile, "quantile of the elements that are not NaN. Kinks at ties and at whole ranks.")};

static wg_tensor *quantile_of(const wg_op *op, wg_tensor *x, wg_tensor *q, int axis, bool keepdim,
                              wg_quantile_interpolation interpolation) {
    wg_tensor *y = NULL;
    if (x == NULL || q == NULL)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    x = wg__as_float(x);
    if (x != NULL && q->spec.dtype != x->spec.dtype)
        q = wg_cast(q, x->spec.dtype);
    const int along = x == NULL || q == NULL ? -1 : wg__axis(axis, x->spec.ndim, op->name);
    if (along >= 0)
        y = wg_apply_one(op, 2, (wg_tensor *[]){x, q},
                         &(quantile_options){along, keepdim, interpolation});
    return wg_scope_end(&scope, y);
}

wg_tensor *wg_quantile(wg_tensor *x, wg_tensor *q, int axis, bool keepdim,
                       wg_quantile_interpolation interpolation) {
    return quantile_of(&quantile, x, q, axis, keepdim, interpolation);
}

wg_tensor *wg_nanquantile(wg_tensor *x, wg_tensor *q, int axis, bool keepdim,
                          wg_quantile_interpolation interpolation) {
    return quantile_of(&nanquantile, x, q, axis, keepdim, interpolation);
}

/* ---- histc: the number of elements in each of `bins` equal bins from low to high. ---- */

typedef struct histc_options {
    int64_t bins;
    double low, high;
} histc_options;

static int histc_infer(wg_call *call) {
    const histc_options *options = call->options;
    if (wg__infer_float(call) < 0)
        return -1;
    if (options->bins < 1)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "%lld bins; wanted 1 or more",
                           (long long)options->bins);
    if (!(options->low <= options->high) || isinf(options->low) || isinf(options->high))
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "the range is %g to %g; wanted finite numbers in ascending order",
                           options->low, options->high);
    return wg__spec_make(&call->output_specs[0], call->input_specs[0].dtype, 1, &options->bins,
                         call->op->name);
}

enum { PARTS = 16 }; /* parts of the elements, each with separate counts */

typedef struct bin_counts {
    const wg_tensor *x;
    int64_t count, part, bins; /* elements, elements of a part, bins */
    double low, high, per_unit;
    int64_t *counts; /* (parts, bins) */
} bin_counts;

#define COUNT_BINS(NAME, TYPE)                                                                     \
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const bin_counts *job = context;                                                           \
        const TYPE *x = wg__tensor_address(job->x);                                                \
        for (int64_t part = begin; part < end; part++) {                                           \
            int64_t *counts = job->counts + part * job->bins;                                      \
            const int64_t stop = wg__smaller((part + 1) * job->part, job->count);                  \
            for (int64_t i = part * job->part; i < stop; i++) {                                    \
                const double value = (double)x[i];                                                 \
                if (!(value >= job->low && value <= job->high))                                    \
                    continue;                                                                      \
                const int64_t bin = (int64_t)((value - job->low) * job->per_unit);                 \
                counts[bin < job->bins ? bin : job->bins - 1]++;                                   \
            }                                                                                      \
        }                                                                                          \
    }

COUNT_BINS(count_bins_f32, float)
COUNT_BINS(count_bins_f64, double)

/* Without a range, takes the range of the elements. An empty range is widened by 1 at both ends. */
static int histc_forward(wg_call *call) {
    const histc_options *options = call->options;
    wg_tensor *x = wg_contiguous(wg__widen(call->inputs[0]));
    double low = options->low, high = options->high;
    if (!x)
        return -1;
    const int64_t bins = options->bins, count = wg__spec_count(&x->spec);
    if (low == high && low == 0 && count > 0) {
        wg_tensor *least = wg_min(x, 0, NULL, false), *most = wg_max(x, 0, NULL, false);
        if (!least || !most)
            return -1;
        low = wg_item(least);
        high = wg_item(most);
        if (!isfinite(low) || !isfinite(high))
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "the elements reach from %g to %g; give a finite range", low, high);
    }
    if (low == high && count > 0) {
        low -= 1;
        high += 1;
    }
    const int64_t parts = count / (8 * bins + WG__GRAIN) >= PARTS ? PARTS : 1;
    wg_tensor *counts = wg_zeros(WG_I64, 2, (int64_t[]){parts, bins});
    if (!counts)
        return -1;
    bin_counts job = {.x = x,
                      .count = count,
                      .part = wg__ceil_divide(count, parts),
                      .bins = bins,
                      .low = low,
                      .high = high,
                      .per_unit = (double)bins / (high - low),
                      .counts = wg__tensor_address(counts)};
    wg__parallel_for(parts, 1, x->spec.dtype == WG_F64 ? count_bins_f64 : count_bins_f32, &job);
    return wg__set_output(
        call, wg_cast(wg_sum(counts, 1, (int64_t[]){0}, false), call->output_specs[0].dtype));
}

WG__UNARY_SAMPLES(histc, histc_options, {4, -1, 1}, {3, 0, 0})
WG__LARGE(histc, histc_options, "4194304", 100, 0, 1)

static const wg_op histc = {
    WG__OP("histc", 1,
           "The number of elements in each of `bins` bins of equal width from low to high, or from "
           "the smallest to the largest if both are 0: (bins), in the dtype of x."),
    .options_size = sizeof(histc_options),
    .no_gradient = "its results are counts",
    .places_outputs = true,
    .infer = histc_infer,
    .forward = histc_forward,
    .sample = histc_sample,
    .bench = histc_bench};

wg_tensor *wg_histc(wg_tensor *x, int64_t bins, double low, double high) {
    return wg__apply_float(&histc, x, &(histc_options){bins, low, high});
}

/* ---- histogram: h_i = the sum of the weights of the elements in [edge_i, edge_(i+1)); the last
 * bin includes its end. With the option, a density: h divided by the total and by the width of the
 * bin. A composite of searchsorted and bincount. ---- */

static int histogram_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *edges = &call->input_specs[1];
    const bool weighted = call->input_count > 2 && call->input_specs[2].ndim >= 0;
    if (!wg_dtype_is_float(x->dtype))
        return wg__op_fail(call, WG_ERROR_DTYPE, "takes a floating dtype; cast the operands");
    if (wg__check_same_dtype(call, 0, 1) < 0 || (weighted && wg__check_same_dtype(call, 0, 2) < 0))
        return -1;
    if (edges->ndim != 1 || edges->shape[0] < 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted edges of rank 1, 2 or more of them");
    if (weighted && !wg__same_shape(x, &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted weights of the shape of x");
    return 0;
}

static int histogram_decompose(wg_call *call) {
    wg_tensor *edges = call->inputs[1], *x = wg_reshape(call->inputs[0], 1, (int64_t[]){-1});
    wg_tensor *ascending = wg_contiguous(wg_cast(edges, WG_F64));
    if (!ascending || wg__check_memory(ascending, call->op->name) < 0)
        return -1;
    const double *edge = wg__tensor_address(ascending);
    for (int64_t i = 1; i < edges->spec.shape[0]; i++)
        if (!(edge[i - 1] <= edge[i]))
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "edge %lld is %g and the next is %g; wanted them in ascending order",
                               (long long)i - 1, edge[i - 1], edge[i]);
    const int64_t bins = edges->spec.shape[0] - 1;
    /* Bin 0 is before the first edge; bin `bins` + 1 is after the last edge, and takes NaN. */
    wg_tensor *bin = wg_searchsorted(edges, x, true);
    bin = wg_where(wg_eq(x, wg_select(edges, 0, -1)), wg_scalar(WG_I64, (double)bins), bin);
    wg_tensor *weights = wg__input_at(call, 2);
    if (weights != NULL && (weights = wg_reshape(weights, 1, (int64_t[]){-1})) == NULL)
        return -1;
    wg_tensor *sums = wg_narrow(wg_bincount(bin, weights, bins + 2), 0, 1, bins);
    sums = weights == NULL ? wg_cast(sums, call->input_specs[0].dtype) : sums;
    if (*(const bool *)call->options) {
        wg_tensor *widths = wg_sub(wg_slice(edges, 0, 1, WG_END, 1), wg_slice(edges, 0, 0, -1, 1));
        sums = wg_div(wg_div(sums, wg_sum(sums, 0, NULL, false)), widths);
    }
    return wg__set_output(call, sums);
}

static wg_tensor *sample_edges(wg_generator *generator, int ndim, const int64_t *shape) {
    (void)generator;
    return wg_from_array(WG_F64, ndim, shape, (double[]){-4, -1, -0.25, 0.5, 4});
}

WG__EXAMPLES(histogram, bool, (wg__sample_normal, sample_edges, wg__sample_positive),
             {false, "3 4, 5"}, {true, "3 4, 5"}, {false, "3 4, 5, 3 4"}, {true, "3 4, 5, 3 4"})

static const wg_op histogram = {
    WG__OP_OF("histogram", 2, 3, 1,
              "x (...), edges (B + 1), weights (...) -> (B): the number of elements, or the sum of "
              "their weights, from each edge to the next; as a density, if wanted. x and the edges "
              "have no gradient."),
    .options_size = sizeof(bool), .differentiable = 4, .infer = histogram_infer,
    WG__COMPOSED(histogram)};

wg_tensor *wg_histogram(wg_tensor *x, wg_tensor *edges, wg_tensor *weights, bool density) {
    wg_tensor *inputs[] = {x, edges, weights};
    if (weights == NULL && wg_error_pending() != NULL)
        return NULL;
    return wg__apply_promoted(&histogram, weights ? 3 : 2, inputs, true, &density);
}

const wg__op_table wg__ops_statistics = WG__OP_TABLE(&quantile, &nanquantile, &histc, &histogram);
