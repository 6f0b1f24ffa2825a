/* Trigonometric and hyperbolic functions and their inverses (tanh is among the exponentials of
 * unary.c); erfc, and the logarithm of the gamma function with all its derivatives. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <math.h>

/* ---- Samples ---- */

/* Values from -limit to limit. */
static wg_tensor *within(wg_generator *generator, int ndim, const int64_t *shape, double limit) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 2 * limit, -limit);
}

static wg_tensor *make_turn(wg_generator *generator, int ndim, const int64_t *shape) {
    return within(generator, ndim, shape, 1.2);
}

static wg_tensor *make_inside(wg_generator *generator, int ndim, const int64_t *shape) {
    return within(generator, ndim, shape, 0.85);
}

static wg_tensor *make_beyond(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 2, 1.25);
}

UNARY_SAMPLE(sample_turn, make_turn)

UNARY_SAMPLE(sample_inside, make_inside)

UNARY_SAMPLE(sample_beyond, make_beyond)

/* ---- sin.   dx = g cos x. ---- */

MAP_FORWARD(sin)
WG__VJP(sin, wg_mul(g, wg_cos(x)))
FLOAT_FUNCTION(sin, saves_inputs, wg__unary_normal, "y = sin x, x in radians")

/* ---- cos.   dx = -g sin x. ---- */

MAP_FORWARD(cos)
WG__VJP(cos, wg_neg(wg_mul(g, wg_sin(x))))
FLOAT_FUNCTION(cos, saves_inputs, wg__unary_normal, "y = cos x, x in radians")

/* ---- tan.   dx = g (1 + y^2). ---- */

MAP_FORWARD(tan)
WG__VJP(tan, wg_mul(g, wg_add_scalar(wg_mul(y, y), 1)))
FLOAT_FUNCTION(tan, saves_outputs, sample_turn,
               "y = tan x, x in radians; poles at odd multiples of pi/2")

/* 1 / sqrt((1 - x) (1 + x)), whose factors are exact near the ends. */
static wg_tensor *slope_of_asin(wg_tensor *x) {
    return wg_rsqrt(wg_mul(wg_affine(x, -1, 1), wg_add_scalar(x, 1)));
}

/* ---- asin.   dx = g / sqrt(1 - x^2). ---- */

MAP_FORWARD(asin)
WG__VJP(asin, wg_mul(g, slope_of_asin(x)))
FLOAT_FUNCTION(asin, saves_inputs, sample_inside,
               "y = arcsin x, -pi/2 to pi/2; NaN beyond |x| = 1, where the derivative is infinite")

/* ---- acos.   dx = -g / sqrt(1 - x^2). ---- */

MAP_FORWARD(acos)
WG__VJP(acos, wg_neg(wg_mul(g, slope_of_asin(x))))
FLOAT_FUNCTION(acos, saves_inputs, sample_inside,
               "y = arccos x, 0 to pi; NaN beyond |x| = 1, where the derivative is infinite")

/* ---- atan.   dx = g / (1 + x^2). ---- */

MAP_FORWARD(atan)
WG__VJP(atan, wg_div(g, wg_add_scalar(wg_mul(x, x), 1)))
FLOAT_FUNCTION(atan, saves_inputs, wg__unary_normal, "y = arctan x, -pi/2 to pi/2")

/* ---- sinh.   dx = g cosh x. ---- */

MAP_FORWARD(sinh)
WG__VJP(sinh, wg_mul(g, wg_cosh(x)))
FLOAT_FUNCTION(sinh, saves_inputs, wg__unary_normal, "y = sinh x = (e^x - e^-x) / 2")

/* ---- cosh.   dx = g sinh x. ---- */

MAP_FORWARD(cosh)
WG__VJP(cosh, wg_mul(g, wg_sinh(x)))
FLOAT_FUNCTION(cosh, saves_inputs, wg__unary_normal, "y = cosh x = (e^x + e^-x) / 2")

/* ---- asinh.   dx = g / sqrt(x^2 + 1). ---- */

MAP_FORWARD(asinh)
WG__VJP(asinh, wg_div(g, wg_hypot(x, wg_scalar(wg_tensor_dtype(x), 1))))
FLOAT_FUNCTION(asinh, saves_inputs, wg__unary_normal, "y = arsinh x = ln(x + sqrt(x^2 + 1))")

/* ---- acosh.   dx = g / sqrt(x^2 - 1). ---- */

MAP_FORWARD(acosh)
WG__VJP(acosh, wg_mul(g, wg_rsqrt(wg_mul(wg_add_scalar(x, -1), wg_add_scalar(x, 1)))))

static int acosh_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_add_scalar(wg_rand(generator, WG_F32, 1, (int64_t[]){1 << 22}), 1);
    return wg__sample_status(sample, 1);
}

static const wg_op acosh_op = {
    UNARY(acosh,
          "y = arcosh x = ln(x + sqrt(x^2 - 1)); NaN below 1, where the derivative is infinite"),
    .jvp = wg__jvp_diagonal,
    .bench = acosh_bench,
    .saves_inputs = 1,
    .infer = wg__infer_float,
    .batch = wg_batch_aligned,
    .sample = sample_beyond};

wg_tensor *wg_acosh(wg_tensor *x) {
    return wg__apply_float(&acosh_op, x, NULL);
}

/* ---- atanh.   dx = g / (1 - x^2). ---- */

MAP_FORWARD(atanh)
WG__VJP(atanh, wg_div(g, wg_mul(wg_affine(x, -1, 1), wg_add_scalar(x, 1))))
FLOAT_FUNCTION(atanh, saves_inputs, sample_inside,
               "y = artanh x = ln((1 + x) / (1 - x)) / 2; infinite at |x| = 1, NaN beyond")

/* ---- erfc: y = 1 - erf x.   dx = -g 2/sqrt(pi) e^(-x^2). ---- */

MAP_FORWARD(erfc)
WG__VJP(erfc, wg_mul(g, wg_mul_scalar(wg_exp(wg_neg(wg_square(x))), -M_2_SQRTPI)))
FLOAT_FUNCTION(erfc, saves_inputs, wg__unary_normal,
               "y = 1 - erf x, without the loss of digits where erf x is near 1")

/* ---- lgamma: y = ln |Gamma(x)|.   dx = g digamma(x). ---- */

MAP_FORWARD(lgamma)
WG__VJP(lgamma, wg_mul(g, wg_digamma(x)))

/* On both sides of 0, at least 0.2 away from the poles at 0, -1, -2... */
static wg_tensor *make_off_poles(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *whole = wg_cast(wg_randint(generator, -3, 4, ndim, shape), WG_F64);
    return wg_add(whole, wg_affine(wg_rand(generator, WG_F64, ndim, shape), 0.6, 0.2));
}

UNARY_SAMPLE(sample_off_poles, make_off_poles)

FLOAT_FUNCTION(lgamma, saves_inputs, sample_off_poles, "y = ln |Gamma(x)|; inf at 0, -1, -2...")

/* ---- digamma: y = d/dx ln Gamma(x).   dx = g polygamma(1, x). ---- */

/* For x > 0: the recurrence psi(x) = psi(x + 1) - 1/x raises x until the asymptotic series in B_2k
 * / (2k x^2k), with Bernoulli numbers B, is exact to double precision. */
static double digamma_of_positive(double x) {
    static const double terms[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                   1. / 132, -691. / 32760, 1. / 12};
    double sum = 0, series = 0;
    for (; x < 10; x++)
        sum -= 1 / x;
    const double inverse_square = 1 / (x * x);
    for (int k = (int)(sizeof terms / sizeof *terms) - 1; k >= 0; k--)
        series = (series + terms[k]) * inverse_square;
    return sum + log(x) - 0.5 / x - series;
}

/* Below 0, reflection: psi(1 - x) - pi / tan(pi x). The tangent has period 1 in x, so the distance
 * to the nearest integer, which is exact, replaces x. */
double wg__digamma(double x) {
    if (x > 0)
        return digamma_of_positive(x);
    if (x == 0)
        return copysign(INFINITY, -x);
    const double offset = x - rint(x);
    if (offset == 0)
        return NAN;
    return digamma_of_positive(1 - x) - M_PI / tan(M_PI * offset);
}

/* digamma, or polygamma of the order n. */
typedef struct gamma_kernel {
    wg__simd_map map;
    wg__simd_map_by map_by;
    double n;
} gamma_kernel;

/* Runs a kernel of f64 on f32, a block at a time. */
static void through_f64(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    enum { BLOCK = 256 };
    const gamma_kernel *kernel = context;
    double block[BLOCK];
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
        const char *from = data[1] + begin * strides[1];
        if (strides[1] == (int64_t)sizeof(float))
            for (int64_t i = 0; i < count; i++)
                block[i] = (double)((const float *)from)[i];
        else
            for (int64_t i = 0; i < count; i++)
                block[i] = (double)*(const float *)(from + i * strides[1]);
        if (kernel->map)
            kernel->map(count, block, block);
        else
            kernel->map_by(count, kernel->n, 0, block, block);
        float *to = (float *)data[0] + begin;
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)block[i];
    }
}

static int run_gamma(wg_call *call, gamma_kernel kernel) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = through_f64};
    if (call->input_specs[0].dtype != WG_F64)
        return wg__elementwise_call(call, loops, &kernel);
    return kernel.map ? wg__run_map(call, kernel.map)
                      : wg__run_map_by(call, kernel.map_by, kernel.n, 0);
}

static int digamma_forward(wg_call *call) {
    return run_gamma(call, (gamma_kernel){.map = wg__simd_for(WG_F64)->digamma});
}

WG__VJP(digamma, wg_mul(g, wg_polygamma(1, x)))
FLOAT_FUNCTION(digamma, saves_inputs, sample_off_poles,
               "y = d/dx ln Gamma(x); poles at 0, -1, -2...")

/* ---- polygamma: y = d^n/dx^n digamma(x) = (-1)^(n+1) n! zeta(n + 1, x) for n > 0.
 * dx = g polygamma(n + 1, x). ---- */

typedef struct polygamma_options {
    int n;
} polygamma_options;

/* Hurwitz's zeta function, the sum of (x + k)^-s from k = 0, for x > 0 and integral s > 1. Terms
 * are added until the Euler-Maclaurin formula, in B_2k / (2k)! s (s + 1)...(s + 2k - 2) x^(-s - 2k
 * + 1), is exact to double precision for the rest. */
static double zeta_of_positive(int s, double x) {
    static const double terms[] = {1. / 12,
                                   -1. / 720,
                                   1. / 30240,
                                   -1. / 1209600,
                                   1. / 47900160,
                                   -691. / 1307674368000,
                                   1. / 74724249600.,
                                   -3617. / 10670622842880000.,
                                   43867. / 5109094217170944000.};
    double sum = 0;
    for (const double end = 10 + s; x < end; x++) {
        const double term = pow(x, -s);
        sum += term;
        if (term < 1e-17 * sum)
            return sum;
    }
    double power = pow(x, -s), rising = s, series = 0;
    sum += pow(x, 1 - s) / (s - 1) + power / 2;
    for (int k = 0; k < (int)(sizeof terms / sizeof *terms); k++) {
        power /= x * (k == 0 ? 1 : x);
        series += terms[k] * rising * power;
        rising *= (double)(s + 2 * k + 1) * (s + 2 * k + 2);
    }
    return sum + series;
}

/* For negative x the terms lie on both sides of 0. Those on the left are at x, x + 1, ..., -left,
 * where `left` is the distance from x to the next integer. */
static double zeta(int s, double x) {
    if (x > 0 || x != x)
        return x == INFINITY ? 0 : zeta_of_positive(s, x);
    const double right = x - floor(x), left = ceil(x) - x;
    if (x == -INFINITY)
        return NAN;
    if (right == 0)
        return INFINITY;
    const double mirrored = zeta_of_positive(s, left) - zeta_of_positive(s, 1 - x);
    return zeta_of_positive(s, right) + (s % 2 ? -mirrored : mirrored);
}

double wg__polygamma(int n, double x) {
    const double size = tgamma(n + 1.0) * zeta(n + 1, x);
    return n % 2 ? size : -size;
}

LOOP_WITH(polygamma_f32, float, polygamma_options, wg__polygamma(o.n, (double)x))
LOOP_WITH(polygamma_f64, double, polygamma_options, wg__polygamma(o.n, x))

static int polygamma_infer(wg_call *call) {
    const int n = ((const polygamma_options *)call->options)->n;
    if (n < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "n is %d; there are derivatives from 0 on", n);
    return wg__infer_float(call);
}

/* Kernels compute the first derivatives, which gradients of lgamma and digamma need. */
static int polygamma_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = polygamma_f32, [WG_F64] = polygamma_f64};
    const int n = ((const polygamma_options *)call->options)->n;
    const wg__simd *kernels = wg__simd_for(WG_F64);
    if (n == 0)
        return run_gamma(call, (gamma_kernel){.map = kernels->digamma});
    if (n <= 3)
        return run_gamma(call, (gamma_kernel){.map_by = kernels->polygamma, .n = n});
    return wg__elementwise_call(call, loops, call->options);
}

static int polygamma_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int n = ((const polygamma_options *)call->options)->n;
    gradients[0] = wg_mul(cotangents[0], wg_polygamma(n + 1, call->inputs[0]));
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(polygamma, polygamma_options, make_off_poles, {1}, {1}, {0}, {2}, {3})

static const wg_op polygamma_op = {
    UNARY_WITH(polygamma, polygamma_options,
               "y = the n-th derivative of digamma(x), a plain n >= 0; poles at 0, -1, -2..."),
    .saves_inputs = 1, .infer = polygamma_infer, .batch = wg_batch_aligned};

wg_tensor *wg_polygamma(int n, wg_tensor *x) {
    return wg__apply_float(&polygamma_op, x, &(polygamma_options){n});
}

static const wg_op *const ops[] = {&sin_op,   &cos_op,  &tan_op,    &asin_op,    &acos_op,
                                   &atan_op,  &sinh_op, &cosh_op,   &asinh_op,   &acosh_op,
                                   &atanh_op, &erfc_op, &lgamma_op, &digamma_op, &polygamma_op};

const wg__op_table wg__ops_special = {ops, sizeof ops / sizeof *ops};
