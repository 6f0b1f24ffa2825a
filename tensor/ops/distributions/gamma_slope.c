/* The derivative dx/da of a gamma sample x of rate 1 by its concentration a, and the derivatives of
 * dx/da. With the distribution function P(a, x) and the density p, a sample is the quantile of a
 * fixed probability, so
 *
 *     dx/da = s(a, x) = -(dP/da) / p                         (Figurnov et al. 2018)
 *     ds/dx = digamma(a) - ln x + s - s (a - 1) / x
 *
 * ds/dx follows from the derivatives of p, and ds/da from the derivatives of the two expansions of
 * P below. The second derivative of a sample is ds/da + s ds/dx by the chain rule. A function of a
 * is represented by the first `count` coefficients of its Taylor series in t around a. That is
 * exact: only the expansions of P are truncated. At large concentrations terms cancel: against
 * mpmath, the relative error of a second derivative is 5e-15 up to a = 3, 2e-9 at 1e4, and 4e-6 at
 * 1e6. */
#include <math.h>
#include <string.h>

#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

/* The highest derivative of s, and its coefficients: s itself needs the derivative of P. */
enum { ORDERS = 2, COEFFICIENTS = ORDERS + 2 };

/* Inlined, so that `count` is a constant. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* product = a b. */
ALWAYS_INLINE void multiply(const int count, const double *a, const double *b, double *product) {
    for (int i = 0; i < count; i++) {
        product[i] = 0;
        for (int j = 0; j <= i; j++)
            product[i] += a[j] * b[i - j];
    }
}

/* inverse = 1 / a. */
ALWAYS_INLINE void invert(const int count, const double *a, double *inverse) {
    inverse[0] = 1 / a[0];
    for (int i = 1; i < count; i++) {
        double sum = 0;
        for (int j = 1; j <= i; j++)
            sum += a[j] * inverse[i - j];
        inverse[i] = -sum * inverse[0];
    }
}

/* For x < a + 1, by the series P = x p / a S with S = sum_k x^k / ((a + 1) ... (a + k)):
 * s = x / a ((digamma(a + 1) - ln x) S - dS/da). `psi` has digamma(a + 1 + t). */
ALWAYS_INLINE void slope_by_series(const int count, double a, double x, const double *psi,
                                   double *s) {
    double term[COEFFICIENTS] = {1}, sum[COEFFICIENTS] = {1};
    bool ends = false;
    for (int k = 1; k < 1000000 && !ends; k++) {
        const double inverse = 1 / (a + k), ratio = x * inverse;
        ends = true;
        for (int i = 0; i < count; i++) {
            /* term x / (a + k + t) */
            term[i] = ratio * term[i] - (i > 0 ? term[i - 1] * inverse : 0);
            sum[i] += term[i];
            ends &= fabs(term[i]) <= 1e-17 * fabs(sum[i]);
        }
    }
    double factor[COEFFICIENTS], product[COEFFICIENTS];
    memcpy(factor, psi, sizeof factor);
    factor[0] -= log(x);
    multiply(count - 1, factor, sum, product);
    for (int i = 0; i < count - 1; i++)
        s[i] = (x * (product[i] - (i + 1) * sum[i + 1]) - (i > 0 ? s[i - 1] : 0)) / a;
}

/* For x >= a + 1, by the continued fraction h of 1 - P = x p h, evaluated from the front by Lentz's
 * method: s = x ((ln x - digamma(a)) h + dh/da). `psi` has digamma(a + t). */
ALWAYS_INLINE void slope_by_fraction(const int count, double a, double x, const double *psi,
                                     double *s) {
    double b[COEFFICIENTS] = {x + 1 - a, -1}, c[COEFFICIENTS], d[COEFFICIENTS], h[COEFFICIENTS];
    double inverse_c[COEFFICIENTS] = {0}, step[COEFFICIENTS], product[COEFFICIENTS];
    double least[COEFFICIENTS] = {0};
    bool ends = false;
    /* A coefficient near 0 needs no more digits than its usual size, h x^(-i / 2). */
    for (int i = 1; i < count; i++)
        least[i] = i == 1 ? 1e-3 / sqrt(x) : least[i - 1] / sqrt(x);
    invert(count, b, d);
    memcpy(h, d, sizeof h);
    for (int k = 1; k < 1000000 && !ends; k++) {
        const double factor[COEFFICIENTS] = {-k * (k - a), k};
        b[0] += 2;
        multiply(count, factor, inverse_c, c);
        multiply(count, factor, d, product);
        for (int i = 0; i < count; i++) {
            c[i] += b[i];
            product[i] += b[i];
        }
        invert(count, c, inverse_c);
        invert(count, product, d);
        multiply(count, c, d, step);
        multiply(count, h, step, product);
        ends = fabs(step[0] - 1) < 1e-15;
        for (int i = 0; i < count; i++) {
            ends &= i == 0 || fabs(step[i] * h[0]) < 1e-15 * (fabs(product[i]) + least[i] * h[0]);
            h[i] = product[i];
        }
    }
    double factor[COEFFICIENTS];
    for (int i = 0; i < count; i++)
        factor[i] = -psi[i];
    factor[0] += log(x);
    multiply(count - 1, factor, h, product);
    for (int i = 0; i < count - 1; i++)
        s[i] = x * (product[i] + (i + 1) * h[i + 1]);
}

/* Sets the first `count` - 1 coefficients of s. */
ALWAYS_INLINE void slope_series(const int count, double a, double x, double *s) {
    const bool low = x < a + 1;
    double psi[COEFFICIENTS] = {wg__polygamma(0, low ? a + 1 : a)}, factorial = 1;
    for (int i = 1; i < count - 1; i++) {
        factorial *= i;
        psi[i] = wg__polygamma(i, low ? a + 1 : a) / factorial;
    }
    if (low)
        slope_by_series(count, a, x, psi, s);
    else
        slope_by_fraction(count, a, x, psi, s);
}

typedef struct slope_options {
    int by_a, by_x; /* orders of the derivative of s by a and by x; their sum is at most ORDERS */
} slope_options;

/* A derivative of s by a and x, from the derivatives by a and the formula of ds/dx. The last term
 * of ds/dx is f / x with f = s (a - 1), and x (f / x)^(m) = f^(m) - m (f / x)^(m - 1). */
static double mixed_derivative(slope_options o, double a, double x, const double *by_a) {
    double s[ORDERS + 1][ORDERS + 1], of_x[ORDERS + 1][ORDERS + 1];
    for (int n = 0; n <= o.by_a; n++) {
        const double psi = wg__polygamma(n, a);
        s[n][0] = by_a[n];
        for (int m = 0; m < o.by_x; m++) {
            const double log_x = m == 0 ? log(x) : 1 / x; /* its derivative of order m < 2 */
            const double f = (a - 1) * s[n][m] + (n > 0 ? n * s[n - 1][m] : 0);
            of_x[n][m] = (f - (m > 0 ? m * of_x[n][m - 1] : 0)) / x;
            s[n][m + 1] = (m == 0 ? psi : 0) - (n == 0 ? log_x : 0) + s[n][m] - of_x[n][m];
        }
    }
    return s[o.by_a][o.by_x];
}

static double slope(slope_options o, double a, double x) {
    double s[COEFFICIENTS] = {0}, factorial = 1;
    if (!(a > 0) || !(x >= 0))
        return NAN;
    if (x == 0 || isinf(x))
        return x == 0 && o.by_x == 0 ? 0 : NAN;
    if (o.by_a == 0)
        slope_series(2, a, x, s);
    else if (o.by_a == 1)
        slope_series(3, a, x, s);
    else
        slope_series(4, a, x, s);
    for (int i = 2; i <= o.by_a; i++)
        s[i] *= factorial *= i;
    return o.by_x == 0 ? s[o.by_a] : mixed_derivative(o, a, x, s);
}

typedef struct slope_job {
    slope_options options;
    const void *a, *x;
    void *y;
    wg_dtype dtype;
} slope_job;

/* Computes s in f64, and derivatives of s in both dtypes. */
static void slopes(int64_t begin, int64_t end, void *context) {
    const slope_job *job = context;
    const size_t size = wg_dtype_size(job->dtype);
    for (int64_t i = begin; i < end; i++) {
        const double a = wg__element(job->dtype, (const char *)job->a + (size_t)i * size);
        const double x = wg__element(job->dtype, (const char *)job->x + (size_t)i * size);
        wg__set_element(job->dtype, (char *)job->y + (size_t)i * size, slope(job->options, a, x));
    }
}

enum { BLOCK = 256, WIDEST = 16 /* elements in a vector */ };

/* The samples of a block that use the same expansion, and their places in the block. */
typedef struct samples {
    int count;
    int place[BLOCK];
    double a[BLOCK + WIDEST], x[BLOCK + WIDEST], slope[BLOCK + WIDEST];
} samples;

static void run_samples(samples *s, int function, float *y) {
    if (s->count == 0)
        return;
    /* Fill up the last vector with copies of the last sample. */
    for (int i = 0; i < WIDEST; i++) {
        s->a[s->count + i] = s->a[s->count - 1];
        s->x[s->count + i] = s->x[s->count - 1];
    }
    wg__simd_for(WG_F64)->map(&(wg__map){.kind = WG__PAIRS, .function = function},
                              (s->count + WIDEST - 1) / WIDEST * WIDEST,
                              (const void *[]){s->a, s->x}, (void *[]){s->slope});
    for (int i = 0; i < s->count; i++)
        y[s->place[i]] = (float)s->slope[i];
}

/* Computes s in f32: sorts samples by expansion and evaluates each expansion by a vector kernel.
 * Below a + 2 + sqrt(a) the series is exact to f32; above, the fraction needs fewer terms. */
static void slopes_f32(int64_t begin, int64_t end, void *context) {
    const slope_job *job = context;
    samples series, fraction;
    for (int64_t first = begin; first < end; first += BLOCK) {
        const int count = (int)wg__smaller(end - first, BLOCK);
        float *y = (float *)job->y + first;
        series.count = fraction.count = 0;
        for (int i = 0; i < count; i++) {
            const double a = (double)((const float *)job->a)[first + i];
            const double x = (double)((const float *)job->x)[first + i];
            if (!(a > 0 && x > 0 && x < INFINITY))
                y[i] = (float)slope(job->options, a, x);
            else {
                samples *s = x < a + 2 + sqrt(a) ? &series : &fraction;
                s->place[s->count] = i;
                s->a[s->count] = a;
                s->x[s->count++] = x;
            }
        }
        run_samples(&series, WG__GAMMA_SLOPE_SERIES, y);
        run_samples(&fraction, WG__GAMMA_SLOPE_FRACTION, y);
    }
}

static int gamma_slope_infer(wg_call *call) {
    return wg__infer_kernel(call) < 0 ? -1 : wg__check_same_dtype(call, 0, 1);
}

static int gamma_slope_forward(wg_call *call) {
    const wg_tensor *a = wg_contiguous(call->inputs[0]), *x = wg_contiguous(call->inputs[1]);
    if (a == NULL || x == NULL)
        return -1;
    slope_job job = {*(const slope_options *)call->options, wg__tensor_address(a),
                     wg__tensor_address(x), wg__tensor_address(call->outputs[0]), a->spec.dtype};
    const bool is_slope = job.options.by_a + job.options.by_x == 0;
    wg__parallel_for(wg__spec_count(&a->spec), BLOCK,
                     job.dtype == WG_F32 && is_slope ? slopes_f32 : slopes, &job);
    return 0;
}

static int gamma_slope_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const slope_options *given = call->options;
    if (given->by_a + given->by_x == ORDERS)
        return wg__op_fail(call, WG_ERROR_GRADIENT,
                           "a gamma sample has no fourth derivative by its concentration; detach "
                           "it before the third backward");
    for (int i = 0; i < 2; i++)
        if (wg__wants(call, i)) {
            const slope_options more = {given->by_a + (i == 0), given->by_x + (i == 1)};
            gradients[i] = wg_mul(cotangents[0], wg_apply_one(call->op, 2, call->inputs, &more));
        }
    return wg__vjp_status();
}

/* Not in the registry, like standard_gamma: finite differences of a rejection sampler do not
 * converge. Tests compare both ops with PyTorch and with derivatives of quantiles by mpmath
 * instead. */
static const wg_op gamma_slope = {
    WG__OP("standard_gamma_slope", 2, "dx/da of a gamma sample x of concentration a."),
    .options_size = sizeof(slope_options),
    .differentiable = 3,
    .saves_inputs = 3,
    .infer = gamma_slope_infer,
    .forward = gamma_slope_forward,
    .vjp = gamma_slope_vjp,
};

wg_tensor *wg__gamma_slope(wg_tensor *concentration, wg_tensor *x) {
    const slope_options options = {0};
    return wg_apply_one(&gamma_slope, 2, (wg_tensor *[]){concentration, x}, &options);
}
