/* Reductions, scans and sorting against PyTorch and NumPy. The cases of a suite are in
 * tests/fixtures/ops/SUITE.json, which SUITE.py writes: reduce, scan, sort, statistics. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

/* ---- Reductions ---- */

typedef wg_tensor *(*reduction)(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

static wg_tensor *reduced(reduction f, const reference_case *c, wg_tensor *const *in) {
    int64_t axes[REFERENCE_LIST];
    const int count = reference_integers(c, "axes", axes);
    return f(in[0], count, axes, reference_flag(c, "keepdim"));
}

static wg_tensor *sum(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_sum, c, in);
}

static wg_tensor *mean(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_mean, c, in);
}

static wg_tensor *max(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_max, c, in);
}

static wg_tensor *min(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_min, c, in);
}

static wg_tensor *var(const reference_case *c, wg_tensor *const *in) {
    int64_t axes[REFERENCE_LIST];
    const int count = reference_integers(c, "axes", axes);
    return wg_var(in[0], count, axes, reference_number(c, "correction"),
                  reference_flag(c, "keepdim"));
}

static wg_tensor *std_of(const reference_case *c, wg_tensor *const *in) {
    int64_t axes[REFERENCE_LIST];
    const int count = reference_integers(c, "axes", axes);
    return wg_std(in[0], count, axes, reference_number(c, "correction"),
                  reference_flag(c, "keepdim"));
}

static wg_tensor *norm(const reference_case *c, wg_tensor *const *in) {
    int64_t axes[REFERENCE_LIST];
    const int count = reference_integers(c, "axes", axes);
    return wg_norm(in[0], reference_number(c, "p"), count, axes, reference_flag(c, "keepdim"));
}

static wg_tensor *prod(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_prod, c, in);
}

static wg_tensor *logsumexp(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_logsumexp, c, in);
}

static wg_tensor *any(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_any, c, in);
}

static wg_tensor *all(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_all, c, in);
}

static wg_tensor *count_nonzero(const reference_case *c, wg_tensor *const *in) {
    return reduced(wg_count_nonzero, c, in);
}

static wg_tensor *argmax(const reference_case *c, wg_tensor *const *in) {
    return wg_argmax(in[0], (int)reference_integer(c, "axis"), reference_flag(c, "keepdim"));
}

static wg_tensor *argmin(const reference_case *c, wg_tensor *const *in) {
    return wg_argmin(in[0], (int)reference_integer(c, "axis"), reference_flag(c, "keepdim"));
}

static wg_tensor *sum_to(const reference_case *c, wg_tensor *const *in) {
    int64_t shape[REFERENCE_LIST];
    const int ndim = reference_integers(c, "shape", shape);
    return wg_sum_to(in[0], ndim, shape);
}

static const reference_op reduce_ops[] = {
    {"sum", .one = sum},
    {"mean", .one = mean},
    {"var", .one = var},
    {"std", .one = std_of},
    {"sum_to", .one = sum_to},
    {"prod", .one = prod},
    {"norm", .one = norm},
    {"logsumexp", .one = logsumexp},
    {"max", .one = max},
    {"min", .one = min},
    {"argmax", .one = argmax},
    {"argmin", .one = argmin},
    {"any", .one = any},
    {"all", .one = all},
    {"count_nonzero", .one = count_nonzero},
};

/* ---- Scans ---- */

static int axis_of(const reference_case *c) {
    return (int)reference_integer(c, "axis");
}

static wg_tensor *cumsum(const reference_case *c, wg_tensor *const *in) {
    return wg_cumsum(in[0], axis_of(c));
}

static wg_tensor *cumprod(const reference_case *c, wg_tensor *const *in) {
    return wg_cumprod(in[0], axis_of(c));
}

static wg_tensor *linear_scan(const reference_case *c, wg_tensor *const *in) {
    return wg_linear_scan(in[0], in[1], axis_of(c), c->input_count > 2 ? in[2] : NULL);
}

static wg_tensor *logcumsumexp(const reference_case *c, wg_tensor *const *in) {
    return wg_logcumsumexp(in[0], axis_of(c));
}

static int cummax(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_cummax(in[0], axis_of(c), &outputs[0], &outputs[1]);
}

static int cummin(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_cummin(in[0], axis_of(c), &outputs[0], &outputs[1]);
}

static const reference_op scan_ops[] = {
    {"cumsum", .one = cumsum},           {"cumprod", .one = cumprod},
    {"cummax", .call = cummax},          {"cummin", .call = cummin},
    {"linear_scan", .one = linear_scan}, {"logcumsumexp", .one = logcumsumexp},
};

/* ---- Sorting ---- */

static int sort(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_sort(in[0], axis_of(c), reference_flag(c, "descending"), &outputs[0], &outputs[1]);
}

static wg_tensor *argsort(const reference_case *c, wg_tensor *const *in) {
    return wg_argsort(in[0], axis_of(c), reference_flag(c, "descending"));
}

static int topk(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_topk(in[0], reference_integer(c, "k"), axis_of(c), reference_flag(c, "largest"),
                   &outputs[0], &outputs[1]);
}

static wg_tensor *median(const reference_case *c, wg_tensor *const *in) {
    return wg_median(in[0], axis_of(c), reference_flag(c, "keepdim"));
}

static int unique(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    (void)c;
    return wg_unique(in[0], &outputs[0], &outputs[1], &outputs[2]);
}

static const reference_op sort_ops[] = {
    {"sort", .call = sort},    {"argsort", .one = argsort}, {"topk", .call = topk},
    {"median", .one = median}, {"unique", .call = unique},
};

/* ---- Quantiles, histograms and segments ---- */

static wg_tensor *quantile(const reference_case *c, wg_tensor *const *in) {
    return wg_quantile(in[0], in[1], axis_of(c), reference_flag(c, "keepdim"),
                       (wg_quantile_interpolation)reference_integer(c, "interpolation"));
}

static wg_tensor *nanquantile(const reference_case *c, wg_tensor *const *in) {
    return wg_nanquantile(in[0], in[1], axis_of(c), reference_flag(c, "keepdim"),
                          (wg_quantile_interpolation)reference_integer(c, "interpolation"));
}

static wg_tensor *histc(const reference_case *c, wg_tensor *const *in) {
    return wg_histc(in[0], reference_integer(c, "bins"), reference_number(c, "low"),
                    reference_number(c, "high"));
}

static wg_tensor *histogram(const reference_case *c, wg_tensor *const *in) {
    return wg_histogram(in[0], in[1], c->input_count > 2 ? in[2] : NULL,
                        reference_flag(c, "density"));
}

static wg_tensor *segment_reduce(const reference_case *c, wg_tensor *const *in) {
    return wg_segment_reduce(in[0], in[1], (wg_segment_reduction)reference_integer(c, "reduction"),
                             reference_number(c, "empty"));
}

static wg_tensor *unsorted_segment_reduce(const reference_case *c, wg_tensor *const *in) {
    return wg_unsorted_segment_reduce(in[0], in[1], reference_integer(c, "segments"),
                                      (wg_segment_reduction)reference_integer(c, "reduction"),
                                      reference_number(c, "empty"));
}

static const reference_op statistics_ops[] = {
    {"quantile", .one = quantile},
    {"nanquantile", .one = nanquantile},
    {"histc", .one = histc},
    {"histogram", .one = histogram},
    {"segment_reduce", .one = segment_reduce},
    {"unsorted_segment_reduce", .one = unsorted_segment_reduce},
};

SUITES {
    add_reference_suite("reduce", reduce_ops);
    add_reference_suite("scan", scan_ops);
    add_reference_suite("sort", sort_ops);
    add_reference_suite("statistics", statistics_ops);
}
