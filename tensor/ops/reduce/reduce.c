/* Reductions over axes: sums and moments, the product, the p-norm, logsumexp, any, all and
 * count_nonzero. Sums and products of f32 and bf16 accumulate in f64, which keeps up with memory
 * and rounds once, at the end. */
#include "tensor/internal.h"
#include "tensor/ops/reduce/reduction.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>

/* ---- sum: y = the sum over the axes; integers and bools in i64, wrapping around.
 * dx = g, repeated along the axes. ---- */

/* The kernels of a sum or a product. */
#define TOTAL(NAME, NEUTRAL, JOIN)                                                                 \
    WG__REDUCTION(NAME##_f32, float, , double, NEUTRAL, JOIN, float, )                             \
    WG__REDUCTION(NAME##_f64, double, , double, NEUTRAL, JOIN, double, )                           \
    WG__REDUCTION(NAME##_bf16, uint16_t, wg__bf16_to_f32, double, NEUTRAL, JOIN, uint16_t,         \
                  wg__f64_to_bf16)                                                                 \
    WG__REDUCTION(NAME##_i32, int32_t, , uint64_t, NEUTRAL, JOIN, int64_t, )                       \
    WG__REDUCTION(NAME##_i64, int64_t, , uint64_t, NEUTRAL, JOIN, int64_t, )                       \
    WG__REDUCTION(NAME##_u8, uint8_t, , uint64_t, NEUTRAL, JOIN, int64_t, )

TOTAL(sum, 0, a + b)

/* Runs of fewer elements are not worth a vector kernel. */
enum { LONG_RUN = 64 };

static void sum_run(int64_t count, void *to, const void *x, int64_t stride) {
    if (stride == 1 && count >= LONG_RUN)
        *(double *)to += wg__simd_for(WG_F32)->rows.sum(count, x);
    else
        sum_f32_run(count, to, x, stride);
}

static int sum_forward(wg_call *call) {
    static const wg__reduction kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = {sizeof(double), sum_f32_start, sum_f32_row, sum_run, sum_f32_join,
                    sum_f32_finish},
        [WG_F64] = WG__KERNELS(sum_f64, double),
        [WG_BF16] = WG__KERNELS(sum_bf16, double),
        [WG_I32] = WG__KERNELS(sum_i32, uint64_t),
        [WG_I64] = WG__KERNELS(sum_i64, uint64_t),
        [WG_U8] = WG__KERNELS(sum_u8, uint64_t),
        [WG_BOOL] = WG__KERNELS(sum_u8, uint64_t)};
    return wg__reduce_call(call, kernels);
}

static int sum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] = wg_expand(wg__with_axes(cotangents[0], call), x->ndim, x->shape);
    return wg__vjp_status();
}

static const wg_op sum = {
    WG__REDUCTION_OP(
        "sum",
        "y = the sum over the given axes; integers and bools in i64. f32 accumulates in f64."),
    .sample = wg__sample_reduction,
    .differentiable = 1,
    .infer = wg__infer_total,
    .forward = sum_forward,
    .vjp = sum_vjp,
    .jvp = wg_jvp_linear,
};

WG__REDUCTION_FUNCTION(sum, sum)

/* ---- mean, var, std: composed of sums; bf16 is computed in f32 and rounded once ---- */

/* The sum divided by n. */
static wg_tensor *mean_of(wg_tensor *x, const wg__reduce_options *options) {
    const double n = (double)wg__reduced_count(&x->spec, options->mask);
    wg_tensor *total = wg_apply_one(&sum, 1, &x, options);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY,
                     0); /* of no elements: 0 * inf, which is NaN */
}

typedef struct moment_options {
    wg__reduce_options reduce;
    double correction;
} moment_options;

/* Two passes, for stability: the mean, then the squares of the deviations. */
static wg_tensor *variance_of(wg_tensor *x, const moment_options *options) {
    const wg__reduce_options kept = {options->reduce.mask, true};
    const double n = (double)wg__reduced_count(&x->spec, kept.mask) - options->correction;
    wg_tensor *squares = wg_pow_scalar(wg_sub(x, mean_of(x, &kept)), 2);
    wg_tensor *total = wg_apply_one(&sum, 1, &squares, &options->reduce);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0);
}

/* The square root. Where the variance is 0 its derivative is 0, as in PyTorch, instead of inf. */
static wg_tensor *deviation_of(wg_tensor *x, const moment_options *options) {
    wg_tensor *variance = variance_of(x, options);
    if (variance == NULL)
        return NULL;
    wg_tensor *zero = wg_scalar(variance->spec.dtype, 0), *is_zero = wg_eq(variance, zero);
    wg_tensor *root = wg_sqrt(wg_where(is_zero, wg_add_scalar(zero, 1), variance));
    return wg_where(is_zero, zero, root);
}

/* The result of a decomposition, rounded to bf16 if input 0 is. */
static int narrowed(wg_call *call, wg_tensor *y) {
    return wg__set_output(call, wg__narrow(y, call->input_specs[0].dtype));
}

static int mean_decompose(wg_call *call) {
    wg_tensor *x = wg__widen(wg__as_float(call->inputs[0]));
    return narrowed(call, x == NULL ? NULL : mean_of(x, call->options));
}

static const wg_op mean = {
    WG__OP("mean", 1, "y = the sum over the given axes by their number of elements; of none, NaN."),
    .options_size = sizeof(wg__reduce_options),
    .differentiable = 1,
    .decompose = mean_decompose,
    .sample = wg__sample_reduction,
    .bench = wg__bench_reduction,
};

WG__REDUCTION_FUNCTION(mean, mean)

/* Corrections of 0 and 1; a single element has no variance with 1, and a kink of the root with
 * 0. */
static int moment_sample(int index, wg_generator *generator, wg_sample *sample) {
    static moment_options options[2];
    if (index >= 4)
        return 0;
    const wg__reduction_case *c = wg__reduction_case_at(index);
    options[index % 2] = (moment_options){c->options, index % 2};
    sample->options = &options[index % 2];
    sample->inputs[0] = wg__sample_distinct(generator, c->ndim, c->shape);
    return wg__sample_status(sample, 1);
}

WG__LARGE(moment, moment_options, "4096 1024", {2, false}, 1)

static wg_tensor *moment(const wg_op *op, wg_tensor *x, int axis_count, const int64_t *axes,
                         double correction, bool keepdim) {
    moment_options options = {.correction = correction};
    if (!wg__reduce_options_make(&options.reduce, x, axis_count, axes, keepdim, op->name))
        return NULL;
    return wg_apply_one(op, 1, &x, &options);
}

/* The op NAME, which is composed by COMPUTE. */
#define MOMENT(NAME, COMPUTE, DOC)                                                                 \
    static int NAME##_decompose(wg_call *call) {                                                   \
        wg_tensor *x = wg__widen(wg__as_float(call->inputs[0]));                                   \
        return narrowed(call, x == NULL ? NULL : COMPUTE(x, call->options));                       \
    }                                                                                              \
    static const wg_op NAME##_op = {                                                               \
        WG__OP(#NAME, 1, DOC),   .options_size = sizeof(moment_options),                           \
        .differentiable = 1,     .decompose = NAME##_decompose,                                    \
        .sample = moment_sample, .bench = moment_bench};                                           \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis_count, const int64_t *axes, double correction,     \
                         bool keepdim) {                                                           \
        return moment(&NAME##_op, x, axis_count, axes, correction, keepdim);                       \
    }

MOMENT(var, variance_of, "y = sum (x - mean)^2 / (n - correction) over the given axes.")
MOMENT(std, deviation_of,
       "y = sqrt(sum (x - mean)^2 / (n - correction)) over the given axes. Kink where it is 0, "
       "with derivative 0.")

/* ---- sum_to, the adjoint of expand ---- */

static wg_tensor *fail_sum_to(const wg_tensor *x, int ndim, const int64_t *shape) {
    char text[160], wanted[160];
    wg_spec spec;
    if (wg__spec_make(&spec, x->spec.dtype, ndim, shape, "sum_to") == 0)
        wg_fail(
            WG_ERROR_SHAPE, "sum_to", "%s to %s: wanted a shape that broadcasts to the operand's",
            wg_spec_text(text, sizeof text, &x->spec), wg_spec_text(wanted, sizeof wanted, &spec));
    return NULL;
}

wg_tensor *wg_sum_to(wg_tensor *x, int ndim, const int64_t *shape) {
    if (x == NULL)
        return NULL;
    const int added = x->spec.ndim - ndim;
    if (ndim < 0 || added < 0)
        return fail_sum_to(x, ndim, shape);
    wg__reduce_options options = {.mask = 0};
    for (int i = 0; i < x->spec.ndim; i++) {
        const int64_t size = i < added ? 1 : shape[i - added];
        if (size != x->spec.shape[i] && size != 1)
            return fail_sum_to(x, ndim, shape);
        if (i < added || size != x->spec.shape[i])
            options.mask |= (int64_t)1 << i;
    }
    if (options.mask == 0)
        return wg_alias(x);
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_reshape(wg_apply_one(&sum, 1, &x, &options), ndim, shape));
}

/* ---- prod: y = the product over the axes; integers and bools in i64, wrapping around.
 * dx_i = g times the product of all others. ---- */

TOTAL(prod, 1, a *b)
WG__REDUCE_FORWARD(prod, double, double, uint64_t, uint64_t, uint64_t)

/* For each element of a line, the last axis, the product of the elements before it: 1 for the
 * first. */
static wg_tensor *products_before(wg_tensor *lines) {
    wg_tensor *first = wg_ones_like(wg_slice(lines, -1, 0, 1, 1));
    wg_tensor *rest = wg_cumprod(wg_slice(lines, -1, 0, -1, 1), -1);
    return wg_cat(2, (wg_tensor *[]){first, rest}, -1);
}

/* x with the reduced axes moved last and joined into one; `order` lists the axes in that order. */
static wg_tensor *as_lines(wg_tensor *x, const int64_t *order, int kept) {
    wg_tensor *moved = wg_permute(x, x->spec.ndim, order);
    int64_t shape[WG_MAX_DIMS], n = 1;
    for (int i = 0; i < x->spec.ndim; i++) {
        shape[i < kept ? i : kept] = x->spec.shape[order[i]];
        n *= i < kept ? 1 : x->spec.shape[order[i]];
    }
    shape[kept] = n;
    return wg_reshape(moved, kept + 1, shape);
}

static wg_tensor *from_lines(wg_tensor *lines, const int64_t *order, const wg_spec *x) {
    int64_t moved[WG_MAX_DIMS], back[WG_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        moved[i] = x->shape[order[i]];
        back[order[i]] = i;
    }
    return wg_permute(wg_reshape(lines, x->ndim, moved), x->ndim, back);
}

typedef struct others_job {
    wg_dtype dtype;
    int64_t n; /* elements of a line */
    const void *x;
    void *y;
} others_job;

enum { LINES = 4 }; /* side by side, so that no product waits for the one before */

/* y = the products of the others, along `lines` lines. */
#define OTHERS(NAME, TYPE)                                                                         \
    static inline __attribute__((always_inline)) void NAME##_lines(const int lines, int64_t n,     \
                                                                   const TYPE *x, TYPE *y) {       \
        double before[LINES], after[LINES];                                                        \
        for (int l = 0; l < lines; l++)                                                            \
            before[l] = after[l] = 1;                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int l = 0; l < lines; l++) {                                                      \
                y[l * n + i] = (TYPE)before[l];                                                    \
                before[l] *= (double)x[l * n + i];                                                 \
            }                                                                                      \
        for (int64_t i = n - 1; i >= 0; i--)                                                       \
            for (int l = 0; l < lines; l++) {                                                      \
                y[l * n + i] = (TYPE)((double)y[l * n + i] * after[l]);                            \
                after[l] *= (double)x[l * n + i];                                                  \
            }                                                                                      \
    }                                                                                              \
    static void NAME(int64_t begin, int64_t end, const others_job *job) {                          \
        const TYPE *x = job->x;                                                                    \
        TYPE *y = job->y;                                                                          \
        for (; begin + LINES <= end; begin += LINES)                                               \
            NAME##_lines(LINES, job->n, x + begin * job->n, y + begin * job->n);                   \
        for (; begin < end; begin++)                                                               \
            NAME##_lines(1, job->n, x + begin * job->n, y + begin * job->n);                       \
    }

OTHERS(others_f32, float)
OTHERS(others_f64, double)

static void run_others(int64_t begin, int64_t end, void *context) {
    const others_job *job = context;
    (job->dtype == WG_F32 ? others_f32 : others_f64)(begin, end, job);
}

/* The products of the others along the last axis by a kernel, which is not recorded. */
static wg_tensor *others_of_lines(wg_tensor *lines) {
    lines = lines ? wg_contiguous(lines) : NULL;
    wg_tensor *y = lines ? wg__tensor_new(&lines->spec) : NULL;
    if (!y || wg__spec_count(&y->spec) == 0)
        return y;
    others_job job = {lines->spec.dtype, lines->spec.shape[lines->spec.ndim - 1],
                      wg__tensor_address(lines), wg__tensor_address(y)};
    wg__parallel_for(wg__spec_count(&y->spec) / job.n, 1 + WG__GRAIN / job.n, run_others, &job);
    return y;
}

/* For each element the product of the others over the axes, without a division: the product of
 * those before it times that of those after it. Recorded, unless it is `alone`. */
static wg_tensor *products_of_others(const wg_call *call, bool alone) {
    wg_tensor *x = call->inputs[0];
    int64_t order[WG_MAX_DIMS], last = -1;
    const int kept = wg__reduced_last(x->spec.ndim, wg__reduce_options_of(call)->mask, order);
    wg_tensor *lines = as_lines(x, order, kept);
    if (alone && (x->spec.dtype == WG_F32 || x->spec.dtype == WG_F64))
        return from_lines(others_of_lines(lines), order, &x->spec);
    wg_tensor *after = wg_flip(products_before(wg_flip(lines, 1, &last)), 1, &last);
    return from_lines(wg_mul(products_before(lines), after), order, &x->spec);
}

/* Whether y / x is the product of the other elements: not if a product is zero, infinite or NaN. */
static bool is_regular(wg_tensor *y) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool recording = wg_set_grad_enabled(false);
    wg_tensor *size = wg__all_values(wg_abs(y));
    const bool regular = size && (wg__spec_count(&size->spec) == 0 ||
                                  (wg_item(wg_min(size, 0, NULL, false)) > 0 &&
                                   wg_item(wg_max(size, 0, NULL, false)) < INFINITY));
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return regular;
}

/* dy/dx. */
static wg_tensor *prod_derivative(const wg_call *call, bool alone) {
    if (!is_regular(call->outputs[0]))
        return products_of_others(call, alone);
    return wg_div(wg__with_axes(call->outputs[0], call), call->inputs[0]);
}

static int prod_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__vjp_by_derivative(call, prod_derivative(call, !call->create_graph), cotangents,
                                 gradients);
}

static int prod_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    return wg__jvp_by_derivative(call, prod_derivative(call, false), tangents, output_tangents);
}

/* The samples of all reductions (one has a 0, over all axes), then lines with no, one and two
 * zeros, along one axis and along two. */
static int prod_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const wg__reduce_options options[] = {{2, false}, {5, true}, {1, false}};
    static const int64_t shape[] = {2, 2, 3};
    const double values[] = {1.5, 0, -2, 0.5, 2, 1.25, 0, -0.75, 3, 1, 0, 0};
    if (wg__reduction_case_at(index) != NULL)
        return wg__sample_reduction(index, generator, sample);
    for (int i = 0; wg__reduction_case_at(i) != NULL; i++)
        index--;
    if (index >= 3)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg_from_array(WG_F64, 3, shape, values);
    return wg__sample_status(sample, 1);
}

static const wg_op prod = {
    WG__REDUCTION_OP(
        "prod",
        "y = the product over the given axes; integers and bools in i64. The gradient is right "
        "beside zeros, too."),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = wg__infer_total,
    .forward = prod_forward,
    .vjp = prod_vjp,
    .jvp = prod_jvp,
    .sample = prod_sample,
};

WG__REDUCTION_FUNCTION(prod, prod)

/* ---- norm: y = (sum |x|^p)^(1/p); p = inf: the largest |x|; -inf: the smallest; 0: how many are
 * not 0.
 * dx = g sign(x) (|x| / y)^(p-1), 0 where y is 0; for p < 1 also where x is 0. For +-inf the
 * elements tied for y share g evenly. ---- */

typedef struct norm_options {
    wg__reduce_options reduce;
    double p;
} norm_options;

static inline float magnitude_bf16(uint16_t x) {
    return fabsf(wg__bf16_to_f32(x));
}

static inline double square(double x) {
    return x * x;
}

static inline double square_bf16(uint16_t x) {
    return square((double)wg__bf16_to_f32(x));
}

static inline uint16_t root_bf16(double x) {
    return wg__f64_to_bf16(sqrt(x));
}

/* NaN is the only value that differs from itself; no comparison replaces an accumulator that is
 * NaN. */
#define LARGER ((b > a) | (b != b)) ? b : a
#define SMALLER ((b < a) | (b != b)) ? b : a

/* The kernels of a norm: elements are read by F32, F64 and BF16. bf16 accumulates as f32 does. */
#define NORM(NAME, F32, F64, BF16, ACCUMULATOR, NEUTRAL, JOIN, WRITE, WRITE_BF16)                  \
    WG__REDUCTION(NAME##_f32, float, F32, ACCUMULATOR, NEUTRAL, JOIN, float, WRITE)                \
    WG__REDUCTION(NAME##_f64, double, F64, double, NEUTRAL, JOIN, double, WRITE)                   \
    WG__REDUCTION(NAME##_bf16, uint16_t, BF16, ACCUMULATOR, NEUTRAL, JOIN, uint16_t, WRITE_BF16)   \
    static const wg__reduction NAME[WG_DTYPE_COUNT] = {                                            \
        [WG_F32] = WG__KERNELS(NAME##_f32, ACCUMULATOR),                                           \
        [WG_F64] = WG__KERNELS(NAME##_f64, double),                                                \
        [WG_BF16] = WG__KERNELS(NAME##_bf16, ACCUMULATOR)};

NORM(norm_0, 0 !=, 0 !=, 0 != magnitude_bf16, double, 0, a + b, , wg__f64_to_bf16)
NORM(norm_1, fabsf, fabs, magnitude_bf16, double, 0, a + b, , wg__f64_to_bf16)
NORM(norm_2, square, square, square_bf16, double, 0, a + b, sqrt, root_bf16)
NORM(norm_inf, fabsf, fabs, magnitude_bf16, float, 0, LARGER, , wg__f32_to_bf16)
NORM(least, fabsf, fabs, magnitude_bf16, float, INFINITY, SMALLER, , wg__f32_to_bf16)

static int norm_infer(wg_call *call) {
    const norm_options *options = call->options;
    if (wg__infer_float(call) < 0)
        return -1;
    if (isnan(options->p))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "p is NaN; wanted a number or an infinity");
    if ((options->p < 0 || isinf(options->p)) &&
        wg__reduced_count(&call->input_specs[0], options->reduce.mask) == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "no elements have no norm of order %g",
                           options->p);
    return wg__infer_reduced(call, call->input_specs[0].dtype);
}

/* Any other p; bf16 by way of f32. */
static int general_norm(wg_call *call) {
    const norm_options *options = call->options;
    wg_tensor *x = call->inputs[0];
    if (x->spec.dtype == WG_BF16)
        x = wg_cast(x, WG_F32);
    wg_tensor *total = wg__sum_over(wg_pow_scalar(wg_abs(x), options->p), call);
    wg_tensor *y = wg_pow_scalar(total, 1 / options->p);
    return y == NULL ? -1 : wg_copy_(call->outputs[0], y);
}

static int norm_forward(wg_call *call) {
    const double p = ((const norm_options *)call->options)->p;
    const wg__reduction *kernels = p == 2           ? norm_2
                                   : p == 1         ? norm_1
                                   : p == 0         ? norm_0
                                   : p == INFINITY  ? norm_inf
                                   : p == -INFINITY ? least
                                                    : NULL;
    return kernels == NULL ? general_norm(call) : wg__reduce_call(call, kernels);
}

/* Shared among the elements where |x| is y, or NaN. */
static wg_tensor *norm_shares(wg_call *call, wg_tensor *size, wg_tensor *y) {
    return wg__shares_of(wg_logical_or(wg_eq(size, y), wg_ne(size, size)), call);
}

/* dy/dx, for p other than 0. */
static wg_tensor *norm_derivative(wg_call *call) {
    const double p = ((const norm_options *)call->options)->p;
    wg_tensor *x = call->inputs[0], *y = wg__with_axes(call->outputs[0], call);
    if (p == 1)
        return wg_sign(x);
    if (isinf(p))
        return wg_mul(wg_sign(x), norm_shares(call, wg_abs(x), y));
    wg_tensor *zero = wg_scalar(call->input_specs[0].dtype, 0), *one = wg_add_scalar(zero, 1);
    wg_tensor *is_zero = wg_eq(y, zero);
    y = wg_where(is_zero, one, y);
    if (p == 2)
        return wg_div(x, y);
    wg_tensor *ratio = wg_div(wg_abs(x), y);
    if (p < 1) /* else 0^(p-1) would be inf */
        ratio = wg_where(wg_eq(x, zero), one, ratio);
    wg_tensor *slope = wg_mul(wg_sign(x), wg_pow_scalar(ratio, p - 1));
    return p < 0 ? wg_where(is_zero, zero, slope) : slope; /* where y is 0, x is 0, too */
}

static int norm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (((const norm_options *)call->options)->p == 0)
        return 0;
    return wg__vjp_by_derivative(call, norm_derivative(call), cotangents, gradients);
}

static int norm_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    if (((const norm_options *)call->options)->p == 0)
        return 0;
    return wg__jvp_by_derivative(call, norm_derivative(call), tangents, output_tangents);
}

/* Magnitudes that differ, none of them 0. */
static wg_tensor *sample_sizes(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

static int norm_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const double orders[] = {2, 1, 0, INFINITY, -INFINITY, 3, 0.5, -1.5};
    static norm_options options[8];
    if (index >= 8)
        return 0;
    const wg__reduction_case *c = wg__reduction_case_at(index % 4);
    options[index] = (norm_options){c->options, orders[index]};
    sample->options = &options[index];
    sample->inputs[0] = sample_sizes(generator, c->ndim, c->shape);
    return wg__sample_status(sample, 1);
}

WG__LARGE(norm, norm_options, "4096 1024", {2, false}, 2)

static double norm_flops(const wg_call *call) {
    return 2 * wg__reduce_flops(call);
}

static const wg_op norm = {
    WG__OP("norm", 1,
           "y = (sum |x|^p)^(1/p) over the given axes; p = 0 counts what is not 0, p = +-inf is "
           "the largest, smallest |x|. Kinks at 0 and at ties, as PyTorch has them."),
    .options_size = sizeof(norm_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = norm_infer,
    .forward = norm_forward,
    .vjp = norm_vjp,
    .jvp = norm_jvp,
    .sample = norm_sample,
    .bench = norm_bench,
    .flops = norm_flops,
    .batch = wg__batch_reduction};

wg_tensor *wg_norm(wg_tensor *x, double p, int axis_count, const int64_t *axes, bool keepdim) {
    norm_options options = {.p = p};
    if (!wg__reduce_options_make(&options.reduce, x, axis_count, axes, keepdim, "norm"))
        return NULL;
    return wg__apply_float(&norm, x, &options);
}

/* ==== The logarithm of a sum of exponentials.
 *
 * The reduced axes are brought to the end and joined, so that each output is made of a row; long
 * rows are cut into parts, each of which gives its maximum m and its sum of e^(x - m). ==== */

/* Elements of a part, at most. */
#define PART (1 << 17)

typedef struct part {
    double max, sum;
} part;

typedef struct rows {
    const wg__simd *simd;
    size_t size; /* bytes of an element */
    const char *x;
    int64_t n;     /* elements of a row */
    int64_t parts; /* of a row */
    part *part;
} rows;

static void run_parts(int64_t begin, int64_t end, void *context) {
    const rows *rows = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % rows->parts * PART, rest = rows->n - first;
        const int64_t count = rest < PART ? rest : PART;
        const char *x = rows->x + (size_t)(i / rows->parts * rows->n + first) * rows->size;
        part *part = &rows->part[i];
        part->max = rows->simd->rows.max(count, x);
        part->sum = isfinite(part->max) ? rows->simd->rows.sum_exp(count, x, part->max) : 0;
    }
}

/* m + log sum; an infinite or undefined maximum is the result itself. */
static double joined(const part *part, int64_t count) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (part[i].max > max || isnan(part[i].max))
            max = part[i].max;
    if (!isfinite(max))
        return max;
    for (int64_t i = 0; i < count; i++)
        sum += part[i].sum * exp(part[i].max - max);
    return max + log(sum);
}

/* ---- logsumexp: y = log sum e^x over the axes.   dx = g e^(x - y). ---- */

static int logsumexp_infer(wg_call *call) {
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    return wg__infer_reduced(call, call->input_specs[0].dtype);
}

static int logsumexp_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    const int ndim = call->inputs[0]->spec.ndim;
    int64_t order[WG_MAX_DIMS];
    wg__reduced_last(ndim, wg__reduce_options_of(call)->mask, order);
    const wg_tensor *x = wg_contiguous(wg_permute(call->inputs[0], ndim, order));
    const int64_t count = wg__spec_count(&y->spec);
    if (x == NULL || count == 0)
        return x == NULL ? -1 : 0;
    const int64_t n = wg__spec_count(&x->spec) / count;
    rows rows = {.simd = wg__simd_for(x->spec.dtype),
                 .size = wg_dtype_size(x->spec.dtype),
                 .x = wg__tensor_address(x),
                 .n = n,
                 .parts = (n + PART - 1) / PART};
    rows.part = wg__alloc_array(wg__times(count, rows.parts), sizeof *rows.part);
    if (rows.part == NULL)
        return -1;
    if (n > 0)
        wg__parallel_for(count * rows.parts, WG__GRAIN / 4 / (n < PART ? n : PART) + 1, run_parts,
                         &rows);
    for (int64_t i = 0; i < count; i++) {
        const double value = joined(rows.part + i * rows.parts, rows.parts);
        wg__set_element(y->spec.dtype, (char *)wg__tensor_address(y) + (size_t)i * rows.size,
                        value);
    }
    wg__free(rows.part);
    return 0;
}

/* dy/dx, the softmax. */
static wg_tensor *softmax_of(wg_call *call) {
    return wg_exp(wg_sub(call->inputs[0], wg__with_axes(call->outputs[0], call)));
}

WG__DERIVATIVES_BY(logsumexp, softmax_of(call))

static const wg_op logsumexp = {
    WG__REDUCTION_OP("logsumexp", "y = log sum e^x over the given axes, computed from x - max."),
    .sample = wg__sample_reduction,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = logsumexp_infer,
    .forward = logsumexp_forward,
    .vjp = logsumexp_vjp,
    .jvp = logsumexp_jvp,
};

wg_tensor *wg_logsumexp(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, "logsumexp"))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool is_half = x->spec.dtype == WG_BF16;
    wg_tensor *y = wg__apply_float(&logsumexp, is_half ? wg_cast(x, WG_F32) : x, &options);
    return wg_scope_end(&scope, is_half ? wg_cast(y, WG_BF16) : y);
}

/* ==== Reductions of truth: whether elements of any dtype are not 0 ==== */

/* Ignores the sign bit, so that -0 is zero; NaN is not zero. */
static inline uint8_t is_nonzero_bf16(uint16_t x) {
    return (x & 0x7fff) != 0;
}

/* About half of the elements are 0, so that some lines have no zeros and some only zeros. */
static int sample_truth(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_reduction(index, generator, sample);
    if (status <= 0)
        return status;
    sample->inputs[0] =
        wg_mul(sample->inputs[0], wg_cast(wg_gt(sample->inputs[0], wg_scalar(WG_F64, 0)), WG_F64));
    return wg__sample_status(sample, 1);
}

/* The op NAME: JOIN of the truths a and b, as elements of OUTPUT. */
#define TRUTH(NAME, OUTPUT, DTYPE, NEUTRAL, JOIN, REASON, DOC)                                     \
    WG__REDUCTION(NAME##_f32, float, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                        \
    WG__REDUCTION(NAME##_f64, double, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                       \
    WG__REDUCTION(NAME##_bf16, uint16_t, is_nonzero_bf16, OUTPUT, NEUTRAL, JOIN, OUTPUT, )         \
    WG__REDUCTION(NAME##_i32, int32_t, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                      \
    WG__REDUCTION(NAME##_i64, int64_t, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                      \
    WG__REDUCTION(NAME##_u8, uint8_t, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                       \
    WG__REDUCE_FORWARD(NAME, OUTPUT, OUTPUT, OUTPUT, OUTPUT, OUTPUT)                               \
    static int NAME##_infer(wg_call *call) {                                                       \
        return wg__infer_reduced(call, DTYPE);                                                     \
    }                                                                                              \
    static const wg_op NAME = {WG__REDUCTION_OP(#NAME, DOC), .no_gradient = REASON,                \
                               .infer = NAME##_infer, .forward = NAME##_forward,                   \
                               .sample = sample_truth};                                            \
    WG__REDUCTION_FUNCTION(NAME, NAME)

TRUTH(any, uint8_t, WG_BOOL, 0, a | b, "its values are bools",
      "y = whether an element over the given axes is not 0; of none, false.")
TRUTH(all, uint8_t, WG_BOOL, 1, a &b, "its values are bools",
      "y = whether no element over the given axes is 0; of none, true.")
TRUTH(count_nonzero, int64_t, WG_I64, 0, a + b,
      "its values are counts: piecewise constant in the operand",
      "y = how many elements over the given axes are not 0, in i64.")

static const wg_op *const ops[] = {&sum,  &mean,      &var_op, &std_op, &prod,
                                   &norm, &logsumexp, &any,    &all,    &count_nonzero};

const wg__op_table wg__ops_reduce = {ops, sizeof ops / sizeof *ops};
