/* Reductions over axes: sum, mean, var, std, prod, norm, logsumexp, max, min, argmax, argmin, any,
 * all and count_nonzero. Sums and products of f32 and bf16 accumulate in f64, at the speed of
 * memory, and round once, at the end. */
#include "tensor/ops/reduce/reduction.h"
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <stdlib.h>

/* The options of every reduction begin with these. */
typedef struct reduction_options {
    int64_t mask; /* of the reduced axes */
    bool keepdim;
} reduction_options;

/* Sets the mask; false if x is NULL, or after an error. */
static bool find_axes(reduction_options *options, const wg_tensor *x, int axis_count,
                      const int64_t *axes, const char *where) {
    if (!x)
        return false;
    options->mask = wg__axis_mask(axis_count, axis_count == 0 ? NULL : axes, x->spec.ndim, where);
    return options->mask >= 0;
}

/* The number of elements of x for an element of the output. */
static int64_t reduced_count(const wg_spec *x, int64_t mask) {
    int64_t count = 1;
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1)
            count *= x->shape[i];
    return count;
}

/* Lists all axes in `order`, the reduced axes last; returns the number of kept axes. */
static int reduced_last(int ndim, int64_t mask, int64_t *order) {
    int count = 0, kept = 0;
    for (int reduced = 0; reduced < 2; reduced++) {
        for (int i = 0; i < ndim; i++)
            if ((int)(mask >> i & 1) == reduced)
                order[count++] = i;
        kept = reduced ? kept : count;
    }
    return kept;
}

/* Output 0 has the reduced shape and `dtype`. */
static int infer_reduced(wg_call *call, wg_dtype dtype) {
    const reduction_options *options = call->options;
    wg__reduced_spec(&call->input_specs[0], options->mask, options->keepdim,
                     &call->output_specs[0]);
    call->output_specs[0].dtype = dtype;
    return 0;
}

/* The dtype of input 0 if it is a float, else i64. */
static int infer_total(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    return infer_reduced(call, wg_dtype_is_float(dtype) ? dtype : WG_I64);
}

static int reduce_call(wg_call *call, const wg__reduction *kernels) {
    const reduction_options *options = call->options;
    return wg__reduce(&kernels[call->input_specs[0].dtype], call->inputs[0], options->mask,
                      call->outputs[0]);
}

/* NAME_forward from the kernels NAME_f32, NAME_f64 and so on, with accumulators of type F32, F64
 * and so on; bf16 accumulates as f32 does. Bools are read as u8. */
#define REDUCE_FORWARD(NAME, F32, F64, I32, I64, U8)                                               \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__reduction kernels[WG_DTYPE_COUNT] = {                                     \
            [WG_F32] = WG__KERNELS(NAME##_f32, F32),   [WG_F64] = WG__KERNELS(NAME##_f64, F64),    \
            [WG_BF16] = WG__KERNELS(NAME##_bf16, F32), [WG_I32] = WG__KERNELS(NAME##_i32, I32),    \
            [WG_I64] = WG__KERNELS(NAME##_i64, I64),   [WG_U8] = WG__KERNELS(NAME##_u8, U8),       \
            [WG_BOOL] = WG__KERNELS(NAME##_u8, U8)};                                               \
        return reduce_call(call, kernels);                                                         \
    }

/* A tensor of the output's shape, with the reduced axes restored as size 1. */
static wg_tensor *with_axes(wg_tensor *reduced, const wg_call *call) {
    const reduction_options *options = call->options;
    wg_spec spec;
    wg__reduced_spec(&call->input_specs[0], options->mask, true, &spec);
    return wg_reshape(reduced, spec.ndim, spec.shape);
}

/* x summed over the axes of a call, in the shape of its output. */
static wg_tensor *sum_over(wg_tensor *x, const wg_call *call) {
    const reduction_options *options = call->options;
    int64_t axes[WG_MAX_DIMS];
    int count = 0;
    for (int i = 0; i < call->input_specs[0].ndim; i++)
        if (options->mask >> i & 1)
            axes[count++] = i;
    return count == 0 ? x : wg_sum(x, count, axes, options->keepdim);
}

/* Defines NAME_vjp and NAME_jvp from the derivative of the output by each element of input 0, an
 * expression in `call`, in the shape of input 0. A NULL derivative is 0, or gives -1 after an
 * error. */
#define DERIVATIVES_BY(NAME, DERIVATIVE)                                                           \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        wg_tensor *derivative = DERIVATIVE;                                                        \
        gradients[0] = wg_mul(derivative, with_axes(cotangents[0], call));                         \
        return wg__vjp_status();                                                                   \
    }                                                                                              \
    static int NAME##_jvp(wg_call *call, wg_tensor *const *tangents,                               \
                          wg_tensor **output_tangents) {                                           \
        wg_tensor *derivative = DERIVATIVE;                                                        \
        output_tangents[0] = sum_over(wg_mul(derivative, tangents[0]), call);                      \
        return wg__vjp_status();                                                                   \
    }

/* The derivative at ties: 1 / n for each of the n chosen elements of an output, 0 elsewhere. */
static wg_tensor *shares_of(wg_tensor *chosen, const wg_call *call) {
    chosen = wg_cast(chosen, call->input_specs[0].dtype);
    return wg_div(chosen, with_axes(sum_over(chosen, call), call));
}

#define CASES                                                                                      \
    {{3, false}, "2 3"}, {{2, false}, "2 3"}, {{5, true}, "2 3 2"}, {{1, false}, "3 1 2"},         \
        {{0, false}, ""}, {                                                                        \
        {1, true}, "1"                                                                             \
    }

WG__EXAMPLES(reduction, reduction_options, (wg__sample_distinct), CASES)
WG__LARGE(reduction, reduction_options, "4096 1024", 2, false)

static double reduce_flops(const wg_call *call) {
    return (double)wg__spec_count(&call->input_specs[0]);
}

/* The common members of the records. DERIVED: of an op whose derivative, DERIVATIVE_vjp and
 * DERIVATIVE_jvp, needs the operand and the result. */
#define REDUCTION(NAME, DOC)                                                                       \
    WG__OP(#NAME, 1, DOC), .options_size = sizeof(reduction_options),                              \
                           .batch = wg__batch_reduction, .bench = reduction_bench,                 \
                           .flops = reduce_flops, .forward = NAME##_forward
#define DERIVED(NAME, DERIVATIVE, SAMPLE, DOC)                                                     \
    REDUCTION(NAME, DOC), .sample = SAMPLE, .saves_inputs = 1, .saves_outputs = 1,                 \
                          .differentiable = 1, .vjp = DERIVATIVE##_vjp, .jvp = DERIVATIVE##_jvp

/* The public function wg_NAME of the record OP. */
#define FUNCTION(NAME, OP)                                                                         \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {        \
        reduction_options options = {0, keepdim};                                                  \
        const bool found = find_axes(&options, x, axis_count, axes, (OP).name);                    \
        return found ? wg_apply_one(&(OP), 1, &x, &options) : NULL;                                \
    }

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

/* The minimum length of a run for the vector kernel. */
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
    return reduce_call(call, kernels);
}

static int sum_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] = wg_expand(with_axes(cotangents[0], call), x->ndim, x->shape);
    return wg__vjp_status();
}

static const wg_op sum = {
    REDUCTION(sum, "y = the sum over the given axes; integers and bools in i64. f32 accumulates in "
                   "f64."),
    .sample = reduction_sample,
    .differentiable = 1,
    .infer = infer_total,
    .vjp = sum_vjp,
    .jvp = wg_jvp_linear};

FUNCTION(sum, sum)

/* ---- mean, var, std: composed of sums; bf16 is computed in f32 and rounded once ---- */

static wg_tensor *mean_of(wg_tensor *x, const reduction_options *options) {
    const double n = (double)reduced_count(&x->spec, options->mask);
    wg_tensor *total = wg_apply_one(&sum, 1, &x, options);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0); /* of no elements: 0 * inf, NaN */
}

typedef struct moment_options {
    reduction_options reduce;
    double correction;
} moment_options;

/* Two passes, for stability: the mean, then the squares of the deviations. */
static wg_tensor *variance_of(wg_tensor *x, const moment_options *options) {
    const reduction_options kept = {options->reduce.mask, true};
    const double n = (double)reduced_count(&x->spec, kept.mask) - options->correction;
    wg_tensor *squares = wg_pow_scalar(wg_sub(x, mean_of(x, &kept)), 2);
    wg_tensor *total = wg_apply_one(&sum, 1, &squares, &options->reduce);
    return wg_affine(total, n > 0 ? 1 / n : INFINITY, 0);
}

/* The square root. At a variance of 0 its derivative is 0, as in PyTorch, instead of inf. */
static wg_tensor *deviation_of(wg_tensor *x, const moment_options *options) {
    wg_tensor *variance = variance_of(x, options);
    if (!variance)
        return NULL;
    wg_tensor *zero = wg_scalar(variance->spec.dtype, 0), *is_zero = wg_eq(variance, zero);
    wg_tensor *root = wg_sqrt(wg_where(is_zero, wg_add_scalar(zero, 1), variance));
    return wg_where(is_zero, zero, root);
}

/* Corrections of 0 and 1. No sample reduces a single element: its variance is NaN with correction
 * 1, and its std has a kink with 0. */
WG__EXAMPLES(moment, moment_options, (wg__sample_distinct), {{{3, false}, 0}, "2 3"},
             {{{2, false}, 1}, "2 3"}, {{{5, true}, 0}, "2 3 2"}, {{{1, false}, 1}, "3 1 2"})
WG__LARGE(moment, moment_options, "4096 1024", {2, false}, 1)

/* The op NAME, composed by COMPUTE in f32 at least. The result is rounded to bf16 if input 0 is
 * bf16. */
#define COMPOSED(NAME, COMPUTE, KIND, DOC)                                                         \
    static int NAME##_decompose(wg_call *call) {                                                   \
        wg_tensor *x = wg__widen(wg__as_float(call->inputs[0]));                                   \
        wg_tensor *y = x ? COMPUTE(x, call->options) : NULL;                                       \
        return wg__set_output(call, wg__narrow(y, call->input_specs[0].dtype));                    \
    }                                                                                              \
    static const wg_op NAME##_op = {                                                               \
        WG__OP(#NAME, 1, DOC),   .options_size = sizeof(KIND##_options),                           \
        .differentiable = 1,     .decompose = NAME##_decompose,                                    \
        .sample = KIND##_sample, .bench = KIND##_bench};
#define MOMENT(NAME, COMPUTE, DOC)                                                                 \
    COMPOSED(NAME, COMPUTE, moment, DOC)                                                           \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis_count, const int64_t *axes, double correction,     \
                         bool keepdim) {                                                           \
        moment_options options = {{0, keepdim}, correction};                                       \
        const bool found = find_axes(&options.reduce, x, axis_count, axes, #NAME);                 \
        return found ? wg_apply_one(&NAME##_op, 1, &x, &options) : NULL;                           \
    }

COMPOSED(mean, mean_of, reduction,
         "y = the sum over the given axes by their number of elements; of none, NaN.")
FUNCTION(mean, mean_op)
MOMENT(var, variance_of, "y = sum (x - mean)^2 / (n - correction) over the given axes.")
MOMENT(std, deviation_of,
       "y = sqrt(sum (x - mean)^2 / (n - correction)) over the given axes. Kink where it is 0, "
       "with derivative 0.")

/* ---- sum_to, the adjoint of expand ---- */

wg_tensor *wg_sum_to(wg_tensor *x, int ndim, const int64_t *shape) {
    if (!x)
        return NULL;
    const int added = x->spec.ndim - ndim;
    reduction_options options = {.mask = 0};
    bool fits = ndim >= 0 && added >= 0;
    for (int i = 0; fits && i < x->spec.ndim; i++) {
        const int64_t size = i < added ? 1 : shape[i - added];
        fits = size == x->spec.shape[i] || size == 1;
        if (i < added || size != x->spec.shape[i])
            options.mask |= (int64_t)1 << i;
    }
    if (!fits) {
        char text[160], wanted[160];
        wg_spec spec;
        if (wg__spec_make(&spec, x->spec.dtype, ndim, shape, "sum_to") == 0)
            return wg__fail_null(WG_ERROR_SHAPE, "sum_to",
                                 "%s to %s: wanted a shape that broadcasts to the operand's",
                                 wg_spec_text(text, sizeof text, &x->spec),
                                 wg_spec_text(wanted, sizeof wanted, &spec));
    }
    if (options.mask == 0)
        return wg_alias(x);
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_reshape(wg_apply_one(&sum, 1, &x, &options), ndim, shape));
}

/* ---- prod: y = the product over the axes; integers and bools in i64, wrapping around.
 * dx_i = g times the product of all other elements. ---- */

TOTAL(prod, 1, a *b)
REDUCE_FORWARD(prod, double, double, uint64_t, uint64_t, uint64_t)

/* For each element of a line, the last axis, the product of the elements before it: 1 for the
 * first. */
static wg_tensor *products_before(wg_tensor *lines) {
    wg_tensor *first = wg_ones_like(wg_slice(lines, -1, 0, 1, 1));
    wg_tensor *rest = wg_cumprod(wg_slice(lines, -1, 0, -1, 1), -1);
    return wg_cat(2, (wg_tensor *[]){first, rest}, -1);
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
    int64_t n; /* elements of a line */
    const void *x;
    void *y;
} others_job;

enum { LINES = 4 }; /* lines computed together, so that their multiplications overlap */

/* y_i = the product of all x_j with j != i, along `lines` lines. */
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
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const others_job *job = context;                                                           \
        const TYPE *x = job->x;                                                                    \
        TYPE *y = job->y;                                                                          \
        for (; begin + LINES <= end; begin += LINES)                                               \
            NAME##_lines(LINES, job->n, x + begin * job->n, y + begin * job->n);                   \
        for (; begin < end; begin++)                                                               \
            NAME##_lines(1, job->n, x + begin * job->n, y + begin * job->n);                       \
    }

OTHERS(others_f32, float)
OTHERS(others_f64, double)

/* For each element the product of all other elements over the axes, without a division: the product
 * of the elements before it times the product of the elements after it. Made of recorded ops; with
 * `unrecorded`, by a kernel. */
static wg_tensor *products_of_others(const wg_call *call, bool unrecorded) {
    wg_tensor *x = call->inputs[0];
    const reduction_options *options = call->options;
    int64_t order[WG_MAX_DIMS], shape[WG_MAX_DIMS], n = 1, last = -1;
    const int kept = reduced_last(x->spec.ndim, options->mask, order);
    for (int i = 0; i < x->spec.ndim; i++) {
        shape[i < kept ? i : kept] = x->spec.shape[order[i]];
        n *= i < kept ? 1 : x->spec.shape[order[i]];
    }
    shape[kept] = n;
    wg_tensor *lines = wg_reshape(wg_permute(x, x->spec.ndim, order), kept + 1, shape);
    if (!unrecorded || (x->spec.dtype != WG_F32 && x->spec.dtype != WG_F64)) {
        wg_tensor *after = wg_flip(products_before(wg_flip(lines, 1, &last)), 1, &last);
        return from_lines(wg_mul(products_before(lines), after), order, &x->spec);
    }
    lines = lines ? wg_contiguous(lines) : NULL;
    wg_tensor *y = lines ? wg__tensor_new(&lines->spec) : NULL;
    if (y && wg__spec_count(&y->spec) > 0) {
        others_job job = {n, wg__tensor_address(lines), wg__tensor_address(y)};
        wg__parallel_for(wg__spec_count(&y->spec) / n, 1 + WG__GRAIN / n,
                         x->spec.dtype == WG_F32 ? others_f32 : others_f64, &job);
    }
    return from_lines(y, order, &x->spec);
}

/* dy/dx: y / x, unless a product is zero, infinite or NaN. */
static wg_tensor *prod_derivative(const wg_call *call, bool unrecorded) {
    wg_tensor *y = call->outputs[0];
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool recording = wg_set_grad_enabled(false);
    wg_tensor *size = wg__all_values(wg_abs(y));
    const bool regular = size && (wg__spec_count(&size->spec) == 0 ||
                                  (wg_item(wg_min(size, 0, NULL, false)) > 0 &&
                                   wg_item(wg_max(size, 0, NULL, false)) < INFINITY));
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return regular ? wg_div(with_axes(y, call), call->inputs[0])
                   : products_of_others(call, unrecorded);
}

static int prod_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *derivative = prod_derivative(call, !call->create_graph);
    gradients[0] = wg_mul(derivative, with_axes(cotangents[0], call));
    return wg__vjp_status();
}

static int prod_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *derivative = prod_derivative(call, false);
    output_tangents[0] = sum_over(wg_mul(derivative, tangents[0]), call);
    return wg__vjp_status();
}

/* Lines with no, one and two zeros. */
static wg_tensor *with_zeros(wg_generator *generator, int ndim, const int64_t *shape) {
    const double values[] = {1.5, 0, -2, 0.5, 2, 1.25, 0, -0.75, 3, 1, 0, 0};
    (void)generator;
    return wg_from_array(WG_F64, ndim, shape, values);
}

WG__EXAMPLES(zeros, reduction_options, (with_zeros), {{2, false}, "2 2 3"}, {{5, true}, "2 2 3"},
             {{1, false}, "2 2 3"})

static int prod_sample(int index, wg_generator *generator, wg_sample *sample) {
    return index < 3 ? zeros_sample(index, generator, sample)
                     : reduction_sample(index - 3, generator, sample);
}

static const wg_op prod = {
    DERIVED(prod, prod, prod_sample,
            "y = the product over the given axes; integers and bools in i64. The gradient is right "
            "beside zeros, too."),
    .infer = infer_total};

FUNCTION(prod, prod)

/* ---- norm: y = (sum |x|^p)^(1/p); p = inf: the largest |x|; -inf: the smallest |x|; 0: the number
 * of nonzero elements.
 * dx = g sign(x) (|x| / y)^(p-1), 0 where y is 0; for p < 1 also where x is 0. For +-inf the
 * elements with |x| = y share g evenly. ---- */

typedef struct norm_options {
    reduction_options reduce;
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

/* b if OVER is true or b is NaN, else a. Comparisons with a NaN a are false, so that it stays. */
#define OR_NAN(OVER) ((OVER) | (b != b)) ? b : a

/* The kernels of a norm: F32, F64 and BF16 read the elements. bf16 accumulates as f32 does. */
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
NORM(norm_inf, fabsf, fabs, magnitude_bf16, float, 0, OR_NAN(b > a), , wg__f32_to_bf16)
NORM(least, fabsf, fabs, magnitude_bf16, float, INFINITY, OR_NAN(b < a), , wg__f32_to_bf16)

static int norm_infer(wg_call *call) {
    const norm_options *options = call->options;
    if (wg__infer_float(call) < 0)
        return -1;
    if (isnan(options->p))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "p is NaN; wanted a number or an infinity");
    if ((options->p < 0 || isinf(options->p)) &&
        reduced_count(&call->input_specs[0], options->reduce.mask) == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "no elements have no norm of order %g",
                           options->p);
    return infer_reduced(call, call->input_specs[0].dtype);
}

/* Orders without kernels are composed of other ops; bf16 is computed in f32. */
static int norm_forward(wg_call *call) {
    const double p = ((const norm_options *)call->options)->p;
    const wg__reduction *kernels = p == 2           ? norm_2
                                   : p == 1         ? norm_1
                                   : p == 0         ? norm_0
                                   : p == INFINITY  ? norm_inf
                                   : p == -INFINITY ? least
                                                    : NULL;
    if (kernels)
        return reduce_call(call, kernels);
    wg_tensor *total = sum_over(wg_pow_scalar(wg_abs(wg__widen(call->inputs[0])), p), call);
    wg_tensor *y = wg_pow_scalar(total, 1 / p);
    return y ? wg_copy_(call->outputs[0], y) : -1;
}

/* dy/dx; NULL for p = 0. For p = +-inf the elements with |x| = y, or with NaN, share it. */
static wg_tensor *norm_derivative(wg_call *call) {
    const double p = ((const norm_options *)call->options)->p;
    wg_tensor *x = call->inputs[0], *y = with_axes(call->outputs[0], call);
    if (p == 0)
        return NULL;
    if (p == 1)
        return wg_sign(x);
    if (isinf(p)) {
        wg_tensor *size = wg_abs(x), *tied = wg_logical_or(wg_eq(size, y), wg_ne(size, size));
        return wg_mul(wg_sign(x), shares_of(tied, call));
    }
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

DERIVATIVES_BY(norm, norm_derivative(call))

/* Distinct magnitudes other than 0. */
WG__EXAMPLES(norm, norm_options, (wg__sample_off_steps), {{{3, false}, 2}, "2 3"},
             {{{2, false}, 1}, "2 3"}, {{{5, true}, 0}, "2 3 2"}, {{{1, false}, INFINITY}, "3 1 2"},
             {{{3, false}, -INFINITY}, "2 3"}, {{{2, false}, 3}, "2 3"},
             {{{5, true}, 0.5}, "2 3 2"}, {{{1, false}, -1.5}, "3 1 2"})
WG__LARGE(norm, norm_options, "4096 1024", {2, false}, 2)

static double norm_flops(const wg_call *call) {
    return 2 * reduce_flops(call);
}

static const wg_op norm = {
    WG__OP("norm", 1,
           "y = (sum |x|^p)^(1/p) over the given axes; p = 0 counts nonzero elements, p = +-inf is "
           "the largest, smallest |x|. Kinks at 0 and at ties, as in PyTorch."),
    .options_size = sizeof(norm_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    WG__FUNCTIONS(norm),
    .jvp = norm_jvp,
    .flops = norm_flops,
    .batch = wg__batch_reduction};

wg_tensor *wg_norm(wg_tensor *x, double p, int axis_count, const int64_t *axes, bool keepdim) {
    norm_options options = {{0, keepdim}, p};
    return find_axes(&options.reduce, x, axis_count, axes, "norm")
               ? wg__apply_float(&norm, x, &options)
               : NULL;
}

/* ==== The logarithm of a sum of exponentials.
 *
 * The reduced axes are moved to the end and merged, so that an output is the result of a row. Long
 * rows are cut into parts; each part gives its maximum m and its sum of e^(x - m). ==== */

/* The maximum number of elements of a part. */
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

/* ---- logsumexp: y = log sum e^x over the axes.   dx = g e^(x - y). ---- */

static int logsumexp_infer(wg_call *call) {
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    return infer_reduced(call, call->input_specs[0].dtype);
}

static int logsumexp_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    const int ndim = call->inputs[0]->spec.ndim;
    const reduction_options *options = call->options;
    int64_t order[WG_MAX_DIMS];
    reduced_last(ndim, options->mask, order);
    const wg_tensor *x = wg_contiguous(wg_permute(call->inputs[0], ndim, order));
    const int64_t count = wg__spec_count(&y->spec);
    if (!x || count == 0)
        return x ? 0 : -1;
    const int64_t n = wg__spec_count(&x->spec) / count;
    rows rows = {.simd = wg__simd_for(x->spec.dtype),
                 .size = wg_dtype_size(x->spec.dtype),
                 .x = wg__tensor_address(x),
                 .n = n,
                 .parts = (n + PART - 1) / PART};
    rows.part = wg__alloc_array(wg__times(count, rows.parts), sizeof *rows.part);
    if (!rows.part)
        return -1;
    if (n > 0)
        wg__parallel_for(count * rows.parts, WG__GRAIN / 4 / (n < PART ? n : PART) + 1, run_parts,
                         &rows);
    for (int64_t i = 0; i < count; i++) {
        const part *part = rows.part + i * rows.parts;
        double max = -INFINITY, sum = 0; /* an infinite or NaN maximum is the result */
        for (int64_t k = 0; k < rows.parts; k++)
            if (part[k].max > max || isnan(part[k].max))
                max = part[k].max;
        for (int64_t k = 0; isfinite(max) && k < rows.parts; k++)
            sum += part[k].sum * exp(part[k].max - max);
        wg__set_element(y->spec.dtype, (char *)wg__tensor_address(y) + (size_t)i * rows.size,
                        isfinite(max) ? max + log(sum) : max);
    }
    wg__free(rows.part);
    return 0;
}

/* dy/dx is the softmax. */
DERIVATIVES_BY(logsumexp, wg_exp(wg_sub(call->inputs[0], with_axes(call->outputs[0], call))))

static const wg_op logsumexp = {
    DERIVED(logsumexp, logsumexp, reduction_sample,
            "y = log sum e^x over the given axes, computed from x - max."),
    .infer = logsumexp_infer};

wg_tensor *wg_logsumexp(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    reduction_options options = {0, keepdim};
    return find_axes(&options, x, axis_count, axes, "logsumexp")
               ? wg__apply_wide_one(&logsumexp, 1, &x, true, &options)
               : NULL;
}

/* ---- max, min: y = the largest, the smallest over the axes; NaN if there is one.
 * dx = g shared evenly among the elements equal to y. Kinks where there are ties. ---- */

static int minmax_infer(wg_call *call) {
    const reduction_options *options = call->options;
    if (reduced_count(&call->input_specs[0], options->mask) == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no elements to choose from");
    return infer_reduced(call, call->input_specs[0].dtype);
}

/* The elements equal to y share the gradient; all NaN if y is NaN, as in PyTorch. */
DERIVATIVES_BY(minmax, shares_of(wg_eq(call->inputs[0], with_axes(call->outputs[0], call)), call))

/* The op NAME: b replaces a if b OVER a. The neutral values are LOWEST, LOWEST_I32 and so on. */
#define EXTREMUM(NAME, OVER, LOWEST, LOWEST_I32, LOWEST_I64, LOWEST_U8, ADJECTIVE)                 \
    WG__REDUCTION(NAME##_f32, float, , float, LOWEST, OR_NAN(b OVER a), float, )                   \
    WG__REDUCTION(NAME##_f64, double, , double, LOWEST, OR_NAN(b OVER a), double, )                \
    WG__REDUCTION(NAME##_bf16, uint16_t, wg__bf16_to_f32, float, LOWEST, OR_NAN(b OVER a),         \
                  uint16_t, wg__f32_to_bf16)                                                       \
    WG__REDUCTION(NAME##_i32, int32_t, , int32_t, LOWEST_I32, b OVER a ? b : a, int32_t, )         \
    WG__REDUCTION(NAME##_i64, int64_t, , int64_t, LOWEST_I64, b OVER a ? b : a, int64_t, )         \
    WG__REDUCTION(NAME##_u8, uint8_t, , uint8_t, LOWEST_U8, b OVER a ? b : a, uint8_t, )           \
    REDUCE_FORWARD(NAME, float, double, int32_t, int64_t, uint8_t)                                 \
    static const wg_op NAME##_op = {                                                               \
        DERIVED(NAME, minmax, reduction_sample,                                                    \
                "y = the " ADJECTIVE " over the given axes; NaN if there is one. Kinks at ties, "  \
                "which share the gradient evenly."),                                               \
        .infer = minmax_infer};                                                                    \
    FUNCTION(NAME, NAME##_op)

EXTREMUM(max, >, -INFINITY, INT32_MIN, INT64_MIN, 0, "largest")
EXTREMUM(min, <, INFINITY, INT32_MAX, INT64_MAX, UINT8_MAX, "smallest")

/* ---- argmax, argmin: y = the index of the first largest, the first smallest element along one
 * axis; of the first NaN, if there is one.
 *
 * An item of work is a block of the kept axes and a part of the searched axis. ---- */

#define RUN 512 /* elements of a run: its extremum is computed first and located afterwards */

/* Searches `width` lines that start `apart` elements from each other. A line has n elements, fewer
 * than 2^31, with a stride of `along`. Writes an index for each line to `found`. */
typedef void (*search_kernel)(const void *x, int64_t n, int64_t along, int64_t width, int64_t apart,
                              int64_t *found);

typedef struct searcher {
    search_kernel lines; /* line by line */
    search_kernel rows;  /* all lines together */
    bool (*takes)(const void *a, const void *b);
} searcher;

/* The kernels NAME on elements of TYPE, read by READ as AS. The reduction NAME computes the
 * extremum of a run; b replaces a if TAKES. INDEX has the size of AS, so that loops over rows
 * vectorize. */
#define SEARCH(NAME, TYPE, READ, AS, INDEX, TAKES)                                                 \
    static inline bool NAME##_exceeds(AS a, AS b) {                                                \
        return TAKES;                                                                              \
    }                                                                                              \
    static bool NAME##_takes(const void *x, const void *y) {                                       \
        return NAME##_exceeds(READ(*(const TYPE *)x), READ(*(const TYPE *)y));                     \
    }                                                                                              \
    static inline int64_t NAME##_line(const TYPE *x, int64_t n, int64_t along) {                   \
        AS best = READ(x[0]);                                                                      \
        int64_t at = 0;                                                                            \
        for (int64_t i = 0; i < n; i += RUN) {                                                     \
            const AS b = NAME##_run_at(x + i * along, n - i < RUN ? n - i : RUN, along);           \
            if (NAME##_exceeds(best, b)) {                                                         \
                best = b;                                                                          \
                at = i;                                                                            \
            }                                                                                      \
        }                                                                                          \
        while (READ(x[at * along]) != best && best == best)                                        \
            at++;                                                                                  \
        while (best != best && READ(x[at * along]) == READ(x[at * along]))                         \
            at++;                                                                                  \
        return at;                                                                                 \
    }                                                                                              \
    static void NAME##_lines(const void *x, int64_t n, int64_t along, int64_t width,               \
                             int64_t apart, int64_t *found) {                                      \
        for (int64_t l = 0; l < width; l++)                                                        \
            found[l] = along == 1 ? NAME##_line((const TYPE *)x + l * apart, n, 1)                 \
                                  : NAME##_line((const TYPE *)x + l * apart, n, along);            \
    }                                                                                              \
    static inline void NAME##_rows_at(const TYPE *x, int64_t n, int64_t along, int64_t width,      \
                                      int64_t apart, int64_t *found) {                             \
        AS best[WG__BLOCK_WIDTH];                                                                  \
        INDEX at[WG__BLOCK_WIDTH] = {0};                                                           \
        for (int64_t l = 0; l < width; l++)                                                        \
            best[l] = READ(x[l * apart]);                                                          \
        for (int64_t i = 1; i < n; i++)                                                            \
            for (int64_t l = 0; l < width; l++) {                                                  \
                const AS a = best[l], b = READ(x[i * along + l * apart]);                          \
                const bool takes = TAKES;                                                          \
                best[l] = takes ? b : a;                                                           \
                at[l] = takes ? (INDEX)i : at[l];                                                  \
            }                                                                                      \
        for (int64_t l = 0; l < width; l++)                                                        \
            found[l] = at[l];                                                                      \
    }                                                                                              \
    static void NAME##_rows(const void *x, int64_t n, int64_t along, int64_t width, int64_t apart, \
                            int64_t *found) {                                                      \
        if (apart == 1)                                                                            \
            NAME##_rows_at(x, n, along, width, 1, found);                                          \
        else                                                                                       \
            NAME##_rows_at(x, n, along, width, apart, found);                                      \
    }

#define SEARCHES(NAME, FLOAT, INTEGER)                                                             \
    SEARCH(NAME##_f32, float, , float, int32_t, FLOAT)                                             \
    SEARCH(NAME##_f64, double, , double, int64_t, FLOAT)                                           \
    SEARCH(NAME##_bf16, uint16_t, wg__bf16_to_f32, float, int32_t, FLOAT)                          \
    SEARCH(NAME##_i32, int32_t, , int32_t, int32_t, INTEGER)                                       \
    SEARCH(NAME##_i64, int64_t, , int64_t, int64_t, INTEGER)                                       \
    SEARCH(NAME##_u8, uint8_t, , int32_t, int32_t, INTEGER)

/* The first NaN wins. */
SEARCHES(max, (b > a) | ((b != b) & (a == a)), b > a)
SEARCHES(min, (b < a) | ((b != b) & (a == a)), b < a)

#define SEARCHER(NAME)                                                                             \
    { NAME##_lines, NAME##_rows, NAME##_takes }
#define SEARCHERS(NAME)                                                                            \
    {                                                                                              \
        [WG_F32] = SEARCHER(NAME##_f32), [WG_F64] = SEARCHER(NAME##_f64),                          \
        [WG_BF16] = SEARCHER(NAME##_bf16), [WG_I32] = SEARCHER(NAME##_i32),                        \
        [WG_I64] = SEARCHER(NAME##_i64), [WG_U8] = SEARCHER(NAME##_u8),                            \
        [WG_BOOL] = SEARCHER(NAME##_u8)                                                            \
    }

typedef struct search {
    const searcher *searcher;
    const char *x;
    int64_t size; /* bytes of an element */
    int64_t n, along;
    int64_t count; /* of results */
    wg__blocks blocks;
    bool by_rows;
    int64_t parts;
    int64_t *found; /* (parts, count): the results of each part */
} search;

static void search_items(int64_t begin, int64_t end, void *context) {
    const search *search = context;
    const wg__stepped_axis *last = wg__axes_last(&search->blocks.kept);
    int64_t found[WG__BLOCK_WIDTH];
    for (int64_t item = begin; item < end; item++) {
        const int64_t part = item % search->parts;
        const int64_t first = part * search->n / search->parts;
        const wg__block block = wg__block_at(&search->blocks, item / search->parts);
        const int64_t in = first * search->along + block.in;
        int64_t *out = search->found + part * search->count + block.out;
        (search->by_rows ? search->searcher->rows : search->searcher->lines)(
            search->x + in * search->size, (part + 1) * search->n / search->parts - first,
            search->along, block.width, last->in, found);
        for (int64_t l = 0; l < block.width; l++)
            /* cppcheck-suppress uninitvar ; the searcher set them */
            out[l * last->out] = first + found[l];
    }
}

/* The address of element `at` of the line of result number `out`. */
static const void *element_of(const search *search, int64_t out, int64_t at) {
    const wg__axes *kept = &search->blocks.kept;
    int64_t in = at * search->along;
    for (int i = 0; i < kept->count; i++)
        in += out / kept->axis[i].out % kept->axis[i].size * kept->axis[i].in;
    return search->x + in * search->size;
}

static int search_call(wg_call *call, const searcher *searchers) {
    const wg_tensor *x = call->inputs[0];
    const int64_t mask = ((const reduction_options *)call->options)->mask;
    int axis = 0;
    while ((mask >> axis & 1) == 0)
        axis++;
    int64_t *y = wg__tensor_address(call->outputs[0]);
    search s = {.searcher = &searchers[x->spec.dtype],
                .x = wg__tensor_address(x),
                .size = (int64_t)wg_dtype_size(x->spec.dtype),
                .n = x->spec.shape[axis],
                .along = x->strides[axis],
                .count = wg__spec_count(&call->outputs[0]->spec),
                .blocks.kept = wg__axes_of(x, mask, false),
                .found = y};
    if (s.count == 0)
        return 0;
    const wg__stepped_axis *last = wg__axes_last(&s.blocks.kept);
    int64_t width = wg__smaller(last->size, WG__BLOCK_WIDTH);
    s.by_rows = last->size >= WG__SHORT_ROW && llabs(last->in) < llabs(s.along);
    if (!s.by_rows)
        width = wg__smaller(width, WG__GRAIN / s.n + 1);
    wg__blocks_cut(&s.blocks, width);
    s.parts = wg__smaller(s.n * width / WG__GRAIN, WG__MAX_ITEMS / s.blocks.count);
    s.parts = wg__smaller(wg__larger(s.parts, s.n / INT32_MAX + 1), s.n);
    const size_t bytes = (size_t)s.count * sizeof *y;
    if (s.parts > 1)
        s.found = wg__alloc_array(s.parts, bytes);
    if (!s.found)
        return -1;
    const int64_t work = s.n * s.blocks.width / s.parts + 1;
    wg__parallel_for(s.blocks.count * s.parts, WG__GRAIN / work + 1, search_items, &s);
    for (int64_t i = 0; i < s.count && s.parts > 1; i++) { /* joins the parts in their order */
        int64_t best = s.found[i];
        for (int64_t part = 1; part < s.parts; part++) {
            const int64_t other = s.found[part * s.count + i];
            if (s.searcher->takes(element_of(&s, i, best), element_of(&s, i, other)))
                best = other;
        }
        y[i] = best;
    }
    if (s.parts > 1)
        wg__free(s.found);
    return 0;
}

static int search_infer(wg_call *call) {
    if (minmax_infer(call) < 0)
        return -1;
    call->output_specs[0].dtype = WG_I64;
    return 0;
}

WG__EXAMPLES(search, reduction_options, (wg__sample_distinct), {{2, false}, "3 4"},
             {{1, true}, "3 4"}, {{1, false}, "2 9"})

/* The op NAME: the index of the extremum OF. */
#define ARGUMENT(NAME, OF, ADJECTIVE)                                                              \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const searcher searchers[WG_DTYPE_COUNT] = SEARCHERS(OF);                           \
        return search_call(call, searchers);                                                       \
    }                                                                                              \
    static const wg_op NAME = {                                                                    \
        REDUCTION(NAME, "y = the i64 index of the first " ADJECTIVE                                \
                        " element along one axis; a NaN is the " ADJECTIVE "."),                   \
        .no_gradient = "its values are indices: piecewise constant in the operand",                \
        .infer = search_infer, .sample = search_sample};                                           \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis, bool keepdim) {                                   \
        const int along = wg__axis_of(x, axis, #NAME);                                             \
        reduction_options options = {along < 0 ? 0 : (int64_t)1 << along, keepdim};                \
        return along < 0 ? NULL : wg_apply_one(&NAME, 1, &x, &options);                            \
    }

ARGUMENT(argmax, max, "largest")
ARGUMENT(argmin, min, "smallest")

/* ==== Reductions of truth: whether elements of any dtype are not 0 ==== */

/* Ignores the sign bit, so that -0 is zero; NaN is not zero. */
static inline uint8_t is_nonzero_bf16(uint16_t x) {
    return (x & 0x7fff) != 0;
}

/* About half of the elements are 0: some lines have no zeros, some only zeros. */
static wg_tensor *half_zeros(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg__sample_distinct(generator, ndim, shape);
    return wg_mul(x, wg_cast(wg_gt(x, wg_scalar(WG_F64, 0)), WG_F64));
}

WG__EXAMPLES(truth, reduction_options, (half_zeros), CASES)

/* The op NAME: JOIN of the truths a and b, as elements of OUTPUT. */
#define TRUTH(NAME, OUTPUT, DTYPE, NEUTRAL, JOIN, REASON, DOC)                                     \
    WG__REDUCTION(NAME##_f32, float, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                        \
    WG__REDUCTION(NAME##_f64, double, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                       \
    WG__REDUCTION(NAME##_bf16, uint16_t, is_nonzero_bf16, OUTPUT, NEUTRAL, JOIN, OUTPUT, )         \
    WG__REDUCTION(NAME##_i32, int32_t, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                      \
    WG__REDUCTION(NAME##_i64, int64_t, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                      \
    WG__REDUCTION(NAME##_u8, uint8_t, 0 !=, OUTPUT, NEUTRAL, JOIN, OUTPUT, )                       \
    REDUCE_FORWARD(NAME, OUTPUT, OUTPUT, OUTPUT, OUTPUT, OUTPUT)                                   \
    static int NAME##_infer(wg_call *call) {                                                       \
        return infer_reduced(call, DTYPE);                                                         \
    }                                                                                              \
    static const wg_op NAME = {REDUCTION(NAME, DOC), .no_gradient = REASON, .infer = NAME##_infer, \
                               .sample = truth_sample};                                            \
    FUNCTION(NAME, NAME)

TRUTH(any, uint8_t, WG_BOOL, 0, a | b, "its values are bools",
      "y = whether an element over the given axes is not 0; of none, false.")
TRUTH(all, uint8_t, WG_BOOL, 1, a &b, "its values are bools",
      "y = whether no element over the given axes is 0; of none, true.")
TRUTH(count_nonzero, int64_t, WG_I64, 0, a + b,
      "its values are counts: piecewise constant in the operand",
      "y = how many elements over the given axes are not 0, in i64.")

const wg__op_table wg__ops_reduce =
    WG__OP_TABLE(&sum, &mean_op, &var_op, &std_op, &prod, &norm, &logsumexp, &any, &all,
                 &count_nonzero, &max_op, &min_op, &argmax, &argmin);
