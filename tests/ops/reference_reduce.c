/* Reductions against PyTorch and NumPy: tests/fixtures/ops/reduce.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

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

SUITES {
    static const reference_op table[] = {
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
    add_reference_suite("reference_reduce", "ops/reduce.json", WG_COUNT(table), table);
}
