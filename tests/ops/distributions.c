/* The moments of samples, with bounds of five standard errors, and gradients through samples. */
#include "tensor/distributions.h"
#include "autograd/autograd.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "gradcheck/gradcheck.h"
#include "tensor/ops/support.h"

#include "tests/support/tensors.h"

#include <math.h>

static wg_tensor *sample_of(wg_generator *g, wg_distribution_kind kind, wg_tensor *a,
                            wg_tensor *b) {
    return wg_distribution_sample(g, &(wg_distribution){kind, {a, b}});
}

/* ---- Samples ---- */

enum { SAMPLES = 100000 };

/* A parameter of one value for every sample, with a gradient. */
static wg_tensor *parameter(double value) {
    wg_tensor *x = leaf_of(wg_full(WG_F64, WG_DIMS(SAMPLES), value));
    return x;
}

static double mean_of(wg_tensor *x) {
    return wg_item(wg_mean(x, WG_ALL, false));
}

/* Whether mean and variance are those of the distribution, by the standard errors of estimates from
 * so many samples of this kurtosis. */
static void check_moments(wg_tensor *x, double mean, double variance, double kurtosis) {
    ck_assert_ptr_nonnull(x);
    const double deviation = sqrt(variance / SAMPLES);
    ck_assert_double_lt(fabs(mean_of(x) - mean), 5 * deviation);
    ck_assert_double_lt(fabs(wg_item(wg_var(x, WG_ALL, 1, false)) - variance),
                        5 * variance * sqrt((kurtosis - 1) / SAMPLES));
}

/* The derivative of the mean by the parameter, estimated from the samples' gradients. */
static void check_mean_gradient(wg_tensor *x, wg_tensor *parameter, double wanted, double error) {
    wg_tensor *sum = wg_sum(x, WG_ALL, false), *gradient = NULL;
    ck_assert_int_eq(wg_grad(1, &sum, NULL, 1, &parameter, NULL, &gradient), 0);
    ck_assert_double_lt(fabs(mean_of(gradient) - wanted), error);
}

static wg_tensor *student_t_sample(wg_generator *g, wg_tensor *df, wg_tensor *mean,
                                   wg_tensor *scale) {
    return wg_distribution_sample(g, &(wg_distribution){WG_STUDENT_T, {df, mean, scale}});
}

TEST(samples_have_the_moments_of_their_distribution) {
    wg_generator g = {.seed = 7};
    check_moments(sample_of(&g, WG_NORMAL, parameter(1.5), parameter(0.5)), 1.5, 0.25, 3);
    check_moments(sample_of(&g, WG_UNIFORM, parameter(-1), parameter(2)), 0.5, 0.75, 1.8);
    check_moments(sample_of(&g, WG_EXPONENTIAL, parameter(2), NULL), 0.5, 0.25, 9);
    check_moments(sample_of(&g, WG_LAPLACE, parameter(-1), parameter(0.5)), -1, 0.5, 6);
    const double concentrations[] = {0.3, 1, 4.5, 60};
    for (int i = 0; i < 4; i++) {
        const double a = concentrations[i];
        check_moments(sample_of(&g, WG_GAMMA, parameter(a), parameter(2)), a / 2, a / 4, 3 + 6 / a);
        check_moments(sample_of(&g, WG_BETA, parameter(a), parameter(a)), 0.5, 0.25 / (2 * a + 1),
                      3);
    }
    check_moments(student_t_sample(&g, parameter(12), parameter(1), parameter(2)), 1, 4.8, 3.75);
}

TEST(gradients_go_through_samples) {
    wg_generator g = {.seed = 8};
    wg_tensor *a = parameter(1.7), *b = parameter(0.6);
    check_mean_gradient(sample_of(&g, WG_GAMMA, a, b), a, 1 / 0.6, 0.02);
    check_mean_gradient(sample_of(&g, WG_GAMMA, a, b), b, -1.7 / 0.36, 0.05);
    check_mean_gradient(sample_of(&g, WG_BETA, a, b), a, 0.6 / (2.3 * 2.3), 0.005);
    check_mean_gradient(sample_of(&g, WG_NORMAL, a, b), a, 1, 1e-12);
    check_mean_gradient(wg_square(sample_of(&g, WG_NORMAL, a, b)), b, 2 * 0.6, 0.05);
    check_mean_gradient(sample_of(&g, WG_UNIFORM, b, a), a, 0.5, 0.005);
    check_mean_gradient(wg_square(sample_of(&g, WG_LAPLACE, a, b)), b, 4 * 0.6, 0.1);
    check_mean_gradient(sample_of(&g, WG_EXPONENTIAL, b, NULL), b, -1 / 0.36, 0.05);
    wg_tensor *df = parameter(9);
    /* The variance of Student's t is df / (df - 2). */
    check_mean_gradient(wg_square(student_t_sample(&g, df, wg_zeros_like(df), wg_ones_like(df))),
                        df, -2.0 / 49, 0.01);
}

/* Replaces y by the derivatives by a of the sum of its elements. */
static void differentiate(wg_tensor **y, wg_tensor *a) {
    const wg_backward_options options = {.create_graph = true};
    wg_tensor *sum = wg_sum(*y, WG_ALL, false);
    ck_assert_int_eq(wg_grad(1, &sum, NULL, 1, &a, &options, y), 0);
}

/* E x^2 = a (a + 1), E ln x = digamma(a), E x^3 = a (a + 1) (a + 2). */
TEST(higher_derivatives_go_through_gamma_samples) {
    wg_generator g = {.seed = 9};
    const double concentrations[] = {0.4, 2.5};
    for (int i = 0; i < 2; i++) {
        wg_tensor *a = parameter(concentrations[i]),
                  *x = sample_of(&g, WG_GAMMA, a, wg_ones_like(a));
        wg_tensor *square = wg_square(x), *log = wg_log(x), *cube = wg_mul(x, square);
        wg_tensor *first = x;
        differentiate(&first, a);
        ck_assert_double_lt(fabs(mean_of(first) - 1), 0.02);
        for (int order = 0; order < 3; order++) {
            if (order < 2) {
                differentiate(&square, a);
                differentiate(&log, a);
            }
            differentiate(&cube, a);
        }
        ck_assert_double_lt(fabs(mean_of(square) - 2), 0.02);
        ck_assert_double_lt(fabs(mean_of(log) / mean_of(wg_polygamma(2, a)) - 1), 0.02);
        ck_assert_double_lt(fabs(mean_of(cube) - 6), 0.1);
    }
}

/* Differences of the slope, and of its derivatives, in f64. */
FUNCTION(slope_of_samples, wg__gamma_slope(x, inputs[1]))

TEST(derivatives_of_gamma_slopes_are_their_differences) {
    const double a[] = {0.3, 0.7, 1.5, 4, 9, 30}, x[] = {0.01, 2, 0.9, 6, 4, 35};
    wg_tensor *inputs[] = {wg_from_array(WG_F64, WG_DIMS(6), a),
                           wg_from_array(WG_F64, WG_DIMS(6), x)};
    for (int i = 0; i < 2; i++)
        wg_set_requires_grad(inputs[i], true);
    const wg_gradcheck_options options = {.order = 2, .forward = true};
    ck_assert_int_eq(wg_gradcheck(slope_of_samples, NULL, 2, inputs, 1, &options, NULL), 0);
}

/* Small and large concentrations, and samples from their lower to their upper tails. */
TEST(gamma_slopes_of_f32_are_those_of_f64_rounded) {
    enum { CONCENTRATIONS = 400, QUANTILES = 24, COUNT = CONCENTRATIONS * QUANTILES };
    float *a = malloc(COUNT * sizeof *a), *x = malloc(COUNT * sizeof *x);
    for (int i = 0; i < COUNT; i++) {
        const double concentration = 1e-3 * pow(1e8, (double)(i / QUANTILES) / CONCENTRATIONS);
        const double t = -4 + 0.5 * (i % QUANTILES), root = sqrt(concentration);
        a[i] = (float)concentration;
        x[i] = (float)(concentration > 20 ? concentration + t * root
                                          : concentration * exp(t < 0 ? 4 * t : t / (1 + root)));
    }
    wg_tensor *narrow[] = {wg_from_array(WG_F32, WG_DIMS(COUNT), a),
                           wg_from_array(WG_F32, WG_DIMS(COUNT), x)};
    wg_tensor *y = wg_cast(wg__gamma_slope(narrow[0], narrow[1]), WG_F64);
    wg_tensor *exact = wg__gamma_slope(wg_cast(narrow[0], WG_F64), wg_cast(narrow[1], WG_F64));
    wg_tensor *off = wg_abs(wg_add_scalar(wg_div(y, exact), -1));
    ck_assert_double_lt(wg_item(wg_max(off, WG_ALL, false)), 8e-8);
    free(a);
    free(x);
}

TEST(a_gamma_sample_has_no_fourth_derivative) {
    wg_generator g = {.seed = 9};
    wg_tensor *a = parameter(2), *y = sample_of(&g, WG_GAMMA, a, wg_ones_like(a));
    for (int order = 0; order < 3; order++)
        differentiate(&y, a);
    failed(wg_backward(wg_sum(y, WG_ALL, false), NULL), GRADIENT,
           "a gamma sample has no fourth derivative");
}

TEST(shares_of_dirichlet_samples_sum_to_1) {
    wg_generator g = {.seed = 10};
    wg_tensor *a = wg_expand(numbers(0.05, 2, 0.5), WG_DIMS(SAMPLES, 3));
    wg_tensor *x = sample_of(&g, WG_DIRICHLET, a, NULL);
    wg_tensor *off = wg_abs(wg_add_scalar(wg_sum(x, WG_DIMS(-1), false), -1));
    ck_assert_double_lt(wg_item(wg_max(off, WG_ALL, false)), 1e-14);
    ck_assert_double_lt(fabs(mean_of(wg_select(x, 1, 1)) - 2 / 2.55), 0.005);
    ck_assert_double_lt(fabs(mean_of(wg_select(x, 1, 0)) - 0.05 / 2.55), 0.002);
}

TEST(categories_come_as_often_as_their_probability_says) {
    wg_generator g = {.seed = 11};
    const double logits[] = {0, 1, -INFINITY, -1};
    wg_tensor *z = wg_from_array(WG_F64, WG_DIMS(4), logits);
    wg_tensor *p = wg_softmax(z, 0);
    wg_tensor *x = sample_of(&g, WG_CATEGORICAL, wg_expand(z, WG_DIMS(SAMPLES, 4)), NULL);
    wg_tensor *counts = wg_cast(wg_bincount(x, NULL, 4), WG_F64);
    wg_tensor *off = wg_abs(wg_sub(wg_mul_scalar(counts, 1.0 / SAMPLES), p));
    ck_assert_double_lt(wg_item(wg_max(off, WG_ALL, false)), 0.008);
    ck_assert_double_eq(wg_item(wg_select(counts, 0, 2)), 0);
}

TEST(samples_of_a_multivariate_normal_have_its_covariance) {
    wg_generator g = {.seed = 12};
    const double triangle[] = {1, 0, 0.5, 2};
    wg_tensor *l = wg_from_array(WG_F64, WG_DIMS(2, 2), triangle);
    wg_tensor *mean = wg_expand(numbers(3, -1), WG_DIMS(SAMPLES, 2));
    wg_tensor *x = wg_sub(sample_of(&g, WG_MULTIVARIATE_NORMAL, mean, l), mean);
    wg_tensor *covariance = wg_mul_scalar(wg_matmul(wg_transpose(x, 0, 1), x), 1.0 / SAMPLES);
    wg_tensor *off = wg_abs(wg_sub(covariance, wg_matmul(l, wg_transpose(l, 0, 1))));
    ck_assert_double_lt(wg_item(wg_max(off, WG_ALL, false)), 0.1);
}

TEST(parameters_that_do_not_broadcast_are_refused) {
    wg_tensor *a = wg_ones(WG_F32, WG_DIMS(2)), *b = wg_ones(WG_F32, WG_DIMS(3));
    refused(sample_of(NULL, WG_GAMMA, a, b), SHAPE,
            "gamma_sample: parameters of (2) f32 and (3) f32 do not broadcast");
    refused(wg_distribution_log_prob(&(wg_distribution){WG_NORMAL, {b, b}}, a), SHAPE,
            "do not broadcast");
    refused(sample_of(NULL, WG_BERNOULLI, a, NULL), ARGUMENT,
            "bernoulli: wg_bernoulli gives samples");
    const wg_distribution p = {WG_EXPONENTIAL, {a}}, q = {WG_BERNOULLI, {a}};
    refused(wg_distribution_kl(&p, &q), ARGUMENT,
            "there is no divergence of exponential and bernoulli");
}
