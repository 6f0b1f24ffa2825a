/* The p-norm over axes. */
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/reduction.h"

#include <math.h>

/* ---- norm: y = (sum |x|^p)^(1/p); p = inf: the largest |x|; -inf: the smallest; 0: how many are
 * not 0.   dx = g sign(x) (|x| / y)^(p-1), 0 where y is 0; for p < 1 also where x is 0. For +-inf
 * the elements tied for y share g evenly. ---- */

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

/* NaN is the only number that differs from itself; once it is there, no comparison moves it. */
#define LARGER ((b > a) | (b != b)) ? b : a
#define SMALLER ((b < a) | (b != b)) ? b : a

WG__REDUCTION(norm_1_f32, float, fabsf, double, 0, a + b, float, )
WG__REDUCTION(norm_1_f64, double, fabs, double, 0, a + b, double, )
WG__REDUCTION(norm_1_bf16, uint16_t, magnitude_bf16, double, 0, a + b, uint16_t, wg__f64_to_bf16)
WG__REDUCTION(norm_2_f32, float, square, double, 0, a + b, float, sqrt)
WG__REDUCTION(norm_2_f64, double, square, double, 0, a + b, double, sqrt)
WG__REDUCTION(norm_2_bf16, uint16_t, square_bf16, double, 0, a + b, uint16_t, root_bf16)
WG__REDUCTION(norm_inf_f32, float, fabsf, float, 0, LARGER, float, )
WG__REDUCTION(norm_inf_f64, double, fabs, double, 0, LARGER, double, )
WG__REDUCTION(norm_inf_bf16, uint16_t, magnitude_bf16, float, 0, LARGER, uint16_t, wg__f32_to_bf16)
WG__REDUCTION(least_f32, float, fabsf, float, INFINITY, SMALLER, float, )
WG__REDUCTION(least_f64, double, fabs, double, INFINITY, SMALLER, double, )
WG__REDUCTION(least_bf16, uint16_t, magnitude_bf16, float, INFINITY, SMALLER, uint16_t,
              wg__f32_to_bf16)
WG__REDUCTION(norm_0_f32, float, 0 !=, double, 0, a + b, float, )
WG__REDUCTION(norm_0_f64, double, 0 !=, double, 0, a + b, double, )
WG__REDUCTION(norm_0_bf16, uint16_t, 0 != magnitude_bf16, double, 0, a + b, uint16_t,
              wg__f64_to_bf16)

#define FLOATS(NAME, ACCUMULATOR, HALF)                                                            \
    {                                                                                              \
        [WG_F32] = WG__KERNELS(NAME##_f32, ACCUMULATOR),                                           \
        [WG_F64] = WG__KERNELS(NAME##_f64, double), [WG_BF16] = WG__KERNELS(NAME##_bf16, HALF)     \
    }

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
    static const wg__reduction norm_0[WG_DTYPE_COUNT] = FLOATS(norm_0, double, double);
    static const wg__reduction norm_1[WG_DTYPE_COUNT] = FLOATS(norm_1, double, double);
    static const wg__reduction norm_2[WG_DTYPE_COUNT] = FLOATS(norm_2, double, double);
    static const wg__reduction norm_inf[WG_DTYPE_COUNT] = FLOATS(norm_inf, float, float);
    static const wg__reduction least[WG_DTYPE_COUNT] = FLOATS(least, float, float);
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
static wg_tensor *shares(wg_call *call, wg_tensor *size, wg_tensor *y) {
    return wg__shares_of(wg_logical_or(wg_eq(size, y), wg_ne(size, size)), call);
}

/* dy/dx, for p other than 0. */
static wg_tensor *norm_derivative(wg_call *call) {
    const double p = ((const norm_options *)call->options)->p;
    wg_tensor *x = call->inputs[0], *y = wg__with_axes(call->outputs[0], call);
    if (p == 1)
        return wg_sign(x);
    if (isinf(p))
        return wg_mul(wg_sign(x), shares(call, wg_abs(x), y));
    wg_tensor *zero = wg_scalar(call->input_specs[0].dtype, 0), *one = wg_add_scalar(zero, 1);
    wg_tensor *is_zero = wg_eq(y, zero);
    y = wg_where(is_zero, one, y);
    if (p == 2)
        return wg_div(x, y);
    wg_tensor *ratio = wg_div(wg_abs(x), y);
    if (p < 1) /* else the power of 0 were inf */
        ratio = wg_where(wg_eq(x, zero), one, ratio);
    wg_tensor *slope = wg_mul(wg_sign(x), wg_pow_scalar(ratio, p - 1));
    return p < 0 ? wg_where(is_zero, zero, slope) : slope; /* else x is 0 there, too */
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

static int norm_bench(wg_generator *generator, wg_sample *sample) {
    static const norm_options options = {{2, false}, 2};
    const int status = wg__bench_reduction(generator, sample);
    sample->options = &options;
    return status;
}

static double norm_flops(const wg_call *call) {
    return 2 * wg__reduce_flops(call);
}

static const wg_op norm = {
    .name = "norm",
    .doc =
        "y = (sum |x|^p)^(1/p) over the given axes; p = 0 counts what is not 0, p = +-inf is the "
        "largest, smallest |x|. Kinks at 0 and at ties, as PyTorch has them.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
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
};

wg_tensor *wg_norm(wg_tensor *x, double p, int axis_count, const int64_t *axes, bool keepdim) {
    norm_options options = {.p = p};
    if (!wg__reduce_options_make(&options.reduce, x, axis_count, axes, keepdim, "norm"))
        return NULL;
    return wg__apply_float(&norm, x, &options);
}

static const wg_op *const ops[] = {&norm};

const wg__op_family wg__family_vector_norm = {ops, sizeof ops / sizeof *ops};
