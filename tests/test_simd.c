/* The vector kernels of every instruction set that this CPU has: against plain C in f64, at lengths
 * with and without a remainder, and independent of where an element stands. */
#include "config.h"

#include "tensor/simd/simd.h"
#include "tensor/random.h"
#include "tests/testing.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

extern const wg__simd wg__simd_f32_base, wg__simd_f64_base;
#ifdef WG_SIMD_X86
extern const wg__simd wg__simd_f32_v3, wg__simd_f64_v3, wg__simd_f32_v4, wg__simd_f64_v4;
#endif

enum { LENGTH = 203 };
static const int64_t lengths[] = {0, 1, 3, 4, 7, 16, 33, 128, LENGTH};

/* ---- Arrays of either dtype, written and read as doubles ---- */

typedef struct array {
    wg_dtype dtype;
    union {
        float f32[4 * LENGTH];
        double f64[4 * LENGTH];
    } at;
} array;

static double get(const array *x, int64_t i) {
    return x->dtype == WG_F32 ? (double)x->at.f32[i] : x->at.f64[i];
}

static void set(array *x, int64_t i, double value) {
    if (x->dtype == WG_F32)
        x->at.f32[i] = (float)value;
    else
        x->at.f64[i] = value;
}

static void *place(array *x, int64_t i) {
    return x->dtype == WG_F32 ? (void *)&x->at.f32[i] : (void *)&x->at.f64[i];
}

static array normal(wg_dtype dtype, uint64_t seed) {
    array x = {.dtype = dtype};
    wg_generator generator = {.seed = seed};
    for (int64_t i = 0; i < 4 * LENGTH; i++)
        set(&x, i, wg_random_normal(&generator));
    return x;
}

/* ---- Every table ---- */

typedef void (*check)(const wg__simd *simd, wg_dtype dtype);

static void for_each_table(check check) {
    check(&wg__simd_f32_base, WG_F32);
    check(&wg__simd_f64_base, WG_F64);
#ifdef WG_SIMD_X86
    if (wg__simd_level_of_cpu() >= WG__SIMD_V3) {
        check(&wg__simd_f32_v3, WG_F32);
        check(&wg__simd_f64_v3, WG_F64);
    }
    if (wg__simd_level_of_cpu() >= WG__SIMD_V4) {
        check(&wg__simd_f32_v4, WG_F32);
        check(&wg__simd_f64_v4, WG_F64);
    }
#endif
}

static void assert_near(const wg__simd *simd, const char *what, wg_dtype dtype, double value,
                        double expected, double size) {
    double eps = dtype == WG_F32 ? 3e-7 : 2e-15;
    if (isnan(expected) ? isnan(value) : value == expected)
        return;
    ck_assert_msg(fabs(value - expected) <= eps * (fabs(expected) + size),
                  "%s %s: %s is %.17g; wanted %.17g", simd->name, wg_dtype_name(dtype), what, value,
                  expected);
}

/* ---- Functions of one element ---- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double gelu(double x) {
    return x / 2 * erfc(-x / sqrt(2));
}

static double gelu_tanh(double x) {
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double silu(double x) {
    return x * sigmoid(x);
}

static double mish(double x) {
    return x * tanh(softplus(x));
}

static double log_sigmoid(double x) {
    return -softplus(-x);
}

static double hardsigmoid(double x) {
    return fmin(fmax(x + 3, 0), 6) / 6;
}

static double hardswish(double x) {
    return x * hardsigmoid(x);
}

typedef struct function {
    const char *name;
    wg__simd_map kernel;
    double (*reference)(double x);
    bool finite; /* kernel and reference need agree on finite numbers only */
} function;

#define MOST_FUNCTIONS 48

/* All of a table; returns how many. */
static size_t functions_of(const wg__simd *simd, function *list) {
    const function all[] = {
        {"gelu", simd->gelu, gelu, true},
        {"gelu_tanh", simd->gelu_tanh, gelu_tanh, true},
        {"silu", simd->silu, silu, true},
        {"mish", simd->mish, mish, true},
        {"log_sigmoid", simd->log_sigmoid, log_sigmoid, true},
        {"hardsigmoid", simd->hardsigmoid, hardsigmoid, true},
        {"hardswish", simd->hardswish, hardswish, true},
        {"sigmoid", simd->sigmoid, sigmoid, false},
        {"exp", simd->exp, exp, false},
        {"exp2", simd->exp2, exp2, false},
        {"expm1", simd->expm1, expm1, false},
        {"log", simd->log, log, false},
        {"log2", simd->log2, log2, false},
        {"log10", simd->log10, log10, false},
        {"log1p", simd->log1p, log1p, false},
        {"sin", simd->sin, sin, false},
        {"cos", simd->cos, cos, false},
        {"tan", simd->tan, tan, false},
        {"asin", simd->asin, asin, false},
        {"acos", simd->acos, acos, false},
        {"atan", simd->atan, atan, false},
        {"sinh", simd->sinh, sinh, false},
        {"cosh", simd->cosh, cosh, false},
        {"tanh", simd->tanh, tanh, false},
        {"asinh", simd->asinh, asinh, false},
        {"acosh", simd->acosh, acosh, false},
        {"atanh", simd->atanh, atanh, false},
        {"cbrt", simd->cbrt, cbrt, false},
        {"erf", simd->erf, erf, false},
        {"erfc", simd->erfc, erfc, false},
        {"lgamma", simd->lgamma, lgamma, false},
        {"floor", simd->floor, floor, false},
        {"ceil", simd->ceil, ceil, false},
        {"rint", simd->rint, rint, false},
        {"trunc", simd->trunc, trunc, false},
    };
    ck_assert_uint_le(WG_COUNT(all), MOST_FUNCTIONS);
    memcpy(list, all, sizeof all);
    return WG_COUNT(all);
}

static void check_functions(const wg__simd *simd, wg_dtype dtype) {
    function functions[MOST_FUNCTIONS];
    const size_t count = functions_of(simd, functions);
    array x = normal(dtype, 1), y = {.dtype = dtype}, shifted = y;
    for (int64_t i = 0; i < LENGTH; i++)
        set(&x, i, 3 * get(&x, i));
    for (size_t f = 0; f < count; f++) {
        functions[f].kernel(LENGTH, place(&x, 0), place(&y, 0));
        for (int64_t i = 0; i < LENGTH; i++)
            assert_near(simd, functions[f].name, dtype, get(&y, i),
                        functions[f].reference(get(&x, i)), 1);
        functions[f].kernel(LENGTH - 5, place(&x, 5), place(&shifted, 0));
        ck_assert_msg(
            memcmp(place(&shifted, 0), place(&y, 5), (LENGTH - 5) * wg_dtype_size(dtype)) == 0,
            "%s of %s depends on the place in the array", functions[f].name, simd->name);
    }
}

START_TEST(functions_are_those_of_the_math_library_wherever_an_element_stands) {
    for_each_table(check_functions);
}
END_TEST

/* Zeros keep their sign; results reach as far as the dtype has normal numbers. */
static void check_special_values(const wg__simd *simd, wg_dtype dtype) {
    const double values[] = {INFINITY, -INFINITY, NAN,   0,     -0.0,    1,      -1,     1e30,
                             -1e30,    -2e38,     3e38,  1e-37, -1e-37,  1e-40,  -1e-40, 1e19,
                             -1e19,    5e36,      88.5,  -88.5, 89.25,   -89.25, 89.5,   -89.5,
                             710.25,   -710.25,   711.0, 1e200, -1e300,  1e-310, 1.5,    -1.5,
                             2.5,      -2,        -2.5,  -1e9,  1 << 25, 0.49,   -0.51,  1e307};
    function functions[MOST_FUNCTIONS];
    const size_t count = functions_of(simd, functions);
    const double tiny = dtype == WG_F32 ? FLT_MIN : DBL_MIN;
    array x = {.dtype = dtype}, y = x;
    for (size_t i = 0; i < WG_COUNT(values); i++)
        set(&x, (int64_t)i, values[i]);
    for (size_t f = 0; f < count; f++) {
        functions[f].kernel(WG_COUNT(values), place(&x, 0), place(&y, 0));
        for (int64_t i = 0; i < (int64_t)WG_COUNT(values) && !functions[f].finite; i++) {
            const double exact = functions[f].reference(get(&x, i));
            const double expected = dtype == WG_F32 ? (double)(float)exact : exact;
            char what[80];
            snprintf(what, sizeof what, "%s of %g", functions[f].name, get(&x, i));
            if (fabs(expected) >= tiny || fabs(get(&y, i)) >= tiny || isnan(expected))
                assert_near(simd, what, dtype, get(&y, i), expected, 0);
            ck_assert_msg(isnan(expected) || signbit(get(&y, i)) == signbit(expected),
                          "%s %s: the sign of %s", simd->name, wg_dtype_name(dtype), what);
        }
    }
}

START_TEST(functions_treat_nan_and_infinities_as_the_math_library) {
    for_each_table(check_special_values);
}
END_TEST

/* ---- Functions of two elements ---- */

static double logaddexp(double a, double b) {
    return a == b ? a + log(2) : fmax(a, b) + (isnan(a - b) ? NAN : log1p(exp(-fabs(a - b))));
}

static double xlogy(double a, double b) {
    return isnan(b) ? NAN : a == 0 ? 0 : a * log(b);
}

/* Every pair of these, of both signs. */
static void check_pairs(const wg__simd *simd, wg_dtype dtype) {
    static const double values[] = {0,    1,    0.5,  2,    3,     2.5,  0.37,     1e-3,
                                    88.0, 1e10, 1e30, 3e38, 1e-30, 17.0, INFINITY, NAN};
    const struct {
        const char *name;
        wg__simd_pair kernel;
        double (*reference)(double a, double b);
    } functions[] = {{"pow", simd->pow, pow},
                     {"atan2", simd->atan2, atan2},
                     {"hypot", simd->hypot, hypot},
                     {"logaddexp", simd->logaddexp, logaddexp},
                     {"xlogy", simd->xlogy, xlogy}};
    const int64_t n = 2 * WG_COUNT(values);
    const double tiny = dtype == WG_F32 ? FLT_MIN : DBL_MIN;
    array a = {.dtype = dtype}, b = a, y = a, shifted = a;
    for (int64_t i = 0; i < n; i++)
        set(&b, i, i % 2 ? -values[i / 2] : values[i / 2]);
    for (size_t f = 0; f < WG_COUNT(functions); f++)
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                set(&a, j, get(&b, i));
            functions[f].kernel(n, place(&a, 0), place(&b, 0), place(&y, 0));
            for (int64_t j = 0; j < n; j++) {
                const double exact = functions[f].reference(get(&a, j), get(&b, j));
                const double expected = dtype == WG_F32 ? (double)(float)exact : exact;
                char what[80];
                snprintf(what, sizeof what, "%s of %g and %g", functions[f].name, get(&a, j),
                         get(&b, j));
                if (fabs(expected) >= tiny || fabs(get(&y, j)) >= tiny || isnan(expected))
                    assert_near(simd, what, dtype, get(&y, j), expected, 0);
                ck_assert_msg(isnan(expected) || signbit(get(&y, j)) == signbit(expected),
                              "%s %s: the sign of %s", simd->name, wg_dtype_name(dtype), what);
            }
            functions[f].kernel(n - 3, place(&a, 3), place(&b, 3), place(&shifted, 0));
            ck_assert_msg(memcmp(place(&shifted, 0), place(&y, 3),
                                 (size_t)(n - 3) * wg_dtype_size(dtype)) == 0,
                          "%s of %s depends on the place in the array", functions[f].name,
                          simd->name);
        }
}

START_TEST(functions_of_two_are_those_of_the_math_library) {
    for_each_table(check_pairs);
}
END_TEST

/* f' by central differences of the reference, in f64. */
static void check_derivatives(const wg__simd *simd, wg_dtype dtype) {
    const struct {
        const char *name;
        wg__simd_vjp kernel;
        double (*reference)(double x);
        bool from_y;
    } functions[] = {{"tanh", simd->tanh_vjp, tanh, true},
                     {"sigmoid", simd->sigmoid_vjp, sigmoid, true},
                     {"erf", simd->erf_vjp, erf, false},
                     {"gelu", simd->gelu_vjp, gelu, false},
                     {"gelu_tanh", simd->gelu_tanh_vjp, gelu_tanh, false},
                     {"silu", simd->silu_vjp, silu, false},
                     {"mish", simd->mish_vjp, mish, false},
                     {"log_sigmoid", simd->log_sigmoid_vjp, log_sigmoid, false},
                     {"hardsigmoid", simd->hardsigmoid_vjp, hardsigmoid, false},
                     {"hardswish", simd->hardswish_vjp, hardswish, false}};
    const double h = 1e-5;
    array x = normal(dtype, 2), dy = normal(dtype, 3), from = x, dx = {.dtype = dtype};
    for (size_t f = 0; f < WG_COUNT(functions); f++) {
        for (int64_t i = 0; i < LENGTH; i++)
            set(&from, i, functions[f].from_y ? functions[f].reference(get(&x, i)) : get(&x, i));
        functions[f].kernel(LENGTH, place(&from, 0), place(&dy, 0), place(&dx, 0));
        for (int64_t i = 0; i < LENGTH; i++) {
            double up = functions[f].reference(get(&x, i) + h);
            double slope = (up - functions[f].reference(get(&x, i) - h)) / (2 * h);
            ck_assert_msg(fabs(get(&dx, i) - get(&dy, i) * slope) < 1e-5 * (1 + fabs(get(&dy, i))),
                          "%s: the derivative of %s at %g", simd->name, functions[f].name,
                          get(&x, i));
        }
    }
}

START_TEST(derivatives_are_those_of_the_functions) {
    for_each_table(check_derivatives);
}
END_TEST

/* ---- Functions by two numbers, and gates ---- */

static const double by[] = {0.7, 1.5};

static double leaky_relu(double x) {
    return x > 0 ? x : by[0] * x;
}

static double elu(double x) {
    return x > 0 ? x : by[0] * expm1(x);
}

static double softplus_by(double x) {
    return by[0] * x > by[1] ? x : softplus(by[0] * x) / by[0];
}

static double slope_at(double (*f)(double x), double x) {
    const double h = 1e-5;
    return (f(x + h) - f(x - h)) / (2 * h);
}

static void check_functions_by_numbers(const wg__simd *simd, wg_dtype dtype) {
    const struct {
        const char *name;
        wg__simd_map_by map;
        wg__simd_vjp_by vjp;
        double (*reference)(double x);
    } functions[] = {{"leaky_relu", simd->leaky_relu, simd->leaky_relu_vjp, leaky_relu},
                     {"elu", simd->elu, simd->elu_vjp, elu},
                     {"softplus", simd->softplus, simd->softplus_vjp, softplus_by}};
    array x = normal(dtype, 20), dy = normal(dtype, 21), y = {.dtype = dtype}, dx = y, shifted = y;
    for (size_t f = 0; f < WG_COUNT(functions); f++) {
        functions[f].map(LENGTH, by[0], by[1], place(&x, 0), place(&y, 0));
        functions[f].vjp(LENGTH, by[0], by[1], place(&x, 0), place(&dy, 0), place(&dx, 0));
        for (int64_t i = 0; i < LENGTH; i++) {
            const double at = get(&x, i), g = get(&dy, i);
            assert_near(simd, functions[f].name, dtype, get(&y, i), functions[f].reference(at), 1);
            const double slope = slope_at(functions[f].reference, at);
            ck_assert_msg(fabs(get(&dx, i) - g * slope) < 1e-5 * (1 + fabs(g)),
                          "%s: the derivative of %s at %g", simd->name, functions[f].name, at);
        }
        functions[f].map(LENGTH - 5, by[0], by[1], place(&x, 5), place(&shifted, 0));
        ck_assert(memcmp(place(&shifted, 0), place(&y, 5), (LENGTH - 5) * wg_dtype_size(dtype)) ==
                  0);
    }
}

START_TEST(functions_by_numbers_are_those_of_plain_c) {
    for_each_table(check_functions_by_numbers);
}
END_TEST

static double relu(double x) {
    return fmax(x, 0);
}

/* The gradients go over gate and value. */
static void check_gates(const wg__simd *simd, wg_dtype dtype) {
    const struct {
        const char *name;
        wg__simd_gate map;
        wg__simd_gate_vjp vjp;
        double (*reference)(double x);
    } gates[] = {{"glu", simd->glu, simd->glu_vjp, sigmoid},
                 {"swiglu", simd->swiglu, simd->swiglu_vjp, silu},
                 {"geglu", simd->geglu, simd->geglu_vjp, gelu},
                 {"reglu", simd->reglu, simd->reglu_vjp, relu}};
    const array x = normal(dtype, 22), v = normal(dtype, 23), dy = normal(dtype, 24);
    for (size_t f = 0; f < WG_COUNT(gates); f++) {
        array gate = x, value = v, cotangent = dy, y = {.dtype = dtype};
        gates[f].map(LENGTH, place(&gate, 0), place(&value, 0), place(&y, 0));
        gates[f].vjp(LENGTH, place(&gate, 0), place(&value, 0), place(&cotangent, 0),
                     place(&gate, 0), place(&value, 0));
        for (int64_t i = 0; i < LENGTH; i++) {
            const double at = get(&x, i), g = get(&dy, i);
            const double value_gradient = g * gates[f].reference(at);
            assert_near(simd, gates[f].name, dtype, get(&y, i), get(&v, i) * gates[f].reference(at),
                        2);
            assert_near(simd, gates[f].name, dtype, get(&value, i), value_gradient, 2);
            const double slope = slope_at(gates[f].reference, at);
            ck_assert_msg(
                fabs(get(&gate, i) - g * get(&v, i) * slope) < 1e-5 * (1 + fabs(g * get(&v, i))),
                "%s: the gradient of the gate of %s at %g", simd->name, gates[f].name, at);
        }
        ck_assert_double_eq(get(&gate, LENGTH), get(&x, LENGTH));
        ck_assert_double_eq(get(&value, LENGTH), get(&v, LENGTH));
    }
}

START_TEST(gates_are_those_of_plain_c_and_may_be_overwritten) {
    for_each_table(check_gates);
}
END_TEST

/* ---- Rows ---- */

static void check_softmax_rows(const wg__simd *simd, wg_dtype dtype) {
    array x = normal(dtype, 4), y = {.dtype = dtype};
    for (size_t l = 0; l < WG_COUNT(lengths); l++) {
        int64_t n = lengths[l];
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            most = fmax(most, get(&x, i));
            sum += exp(get(&x, i) - 1);
        }
        assert_near(simd, "row_max", dtype, simd->row_max(n, place(&x, 0)), most, 0);
        assert_near(simd, "row_sum_exp", dtype, simd->row_sum_exp(n, place(&x, 0), 1), sum, 0);
        set(&y, n, 42);
        simd->row_exp(n, place(&x, 0), 1, 3, place(&y, 0));
        for (int64_t i = 0; i < n; i++)
            assert_near(simd, "row_exp", dtype, get(&y, i), 3 * exp(get(&x, i) - 1), 0);
        ck_assert_double_eq(get(&y, n), 42);
    }
    set(&x, 150, NAN);
    ck_assert(isnan(simd->row_max(LENGTH, place(&x, 0))));
    ck_assert(!isnan(simd->row_max(150, place(&x, 0))));
}

START_TEST(rows_of_softmax_are_those_of_plain_c) {
    for_each_table(check_softmax_rows);
}
END_TEST

/* With no weights, one and two. */
static void check_weighted_rows(const wg__simd *simd, wg_dtype dtype) {
    const array x = normal(dtype, 30), a = normal(dtype, 31), b = normal(dtype, 32);
    for (size_t l = 0; l < 3 * WG_COUNT(lengths); l++) {
        const int64_t n = lengths[l / 3];
        array y = x, from = x, left = a, right = b;
        const void *first = l % 3 > 0 ? place(&left, 0) : NULL;
        const void *second = l % 3 > 1 ? place(&right, 0) : NULL;
        double excess = 0, total = 0, found;
        for (int64_t i = 0; i < n; i++) {
            const double weight = (first ? get(&a, i) : 1) * (second ? get(&b, i) : 1);
            excess += weight * (4 - get(&x, i));
            total += weight;
        }
        assert_near(simd, "row_excess", dtype,
                    simd->row_excess(n, place(&from, 0), 4, first, second, &found), excess,
                    (double)n);
        assert_near(simd, "a sum of weights", dtype, found, total, (double)n);
        simd->row_subtract(n, 0.5, first, second, place(&y, 0));
        for (int64_t i = 0; i < n; i++) {
            const double weight = (first ? get(&a, i) : 1) * (second ? get(&b, i) : 1);
            assert_near(simd, "row_subtract", dtype, get(&y, i), get(&x, i) - 0.5 * weight, 4);
        }
        ck_assert_double_eq(get(&y, n), get(&x, n));
    }
}

START_TEST(weighted_rows_are_those_of_plain_c) {
    for_each_table(check_weighted_rows);
}
END_TEST

static void check_normalisation(const wg__simd *simd, wg_dtype dtype) {
    array x = normal(dtype, 5), weight = normal(dtype, 6), bias = normal(dtype, 7);
    array dy = normal(dtype, 8), y = {.dtype = dtype}, dx = y, dweight = y, dbias = y;
    for (size_t l = 1; l < WG_COUNT(lengths); l++) {
        int64_t n = lengths[l];
        double mean = 0, variance = 0, u = 0, uh = 0, found_mean, found_variance;
        for (int64_t i = 0; i < n; i++)
            mean += get(&x, i) / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += (get(&x, i) - mean) * (get(&x, i) - mean) / (double)n;
        simd->row_moments(n, place(&x, 0), &found_mean, &found_variance);
        assert_near(simd, "a mean", dtype, found_mean, mean, 1);
        assert_near(simd, "a variance", dtype, found_variance, variance, 1);
        double scale = 1 / sqrt(variance + 0.1);
        simd->row_normalize(n, place(&x, 0), mean, scale, place(&weight, 0), place(&bias, 0),
                            place(&y, 0));
        for (int64_t i = 0; i < n; i++) {
            double h = (get(&x, i) - mean) * scale;
            assert_near(simd, "row_normalize", dtype, get(&y, i),
                        h * get(&weight, i) + get(&bias, i), 8);
            u += get(&dy, i) * get(&weight, i) / (double)n;
            uh += get(&dy, i) * get(&weight, i) * h / (double)n;
            set(&dweight, i, 1);
            set(&dbias, i, 2);
        }
        simd->row_normalize_vjp(n, place(&x, 0), mean, scale, place(&weight, 0), place(&dy, 0),
                                true, 1, place(&dx, 0), place(&dweight, 0), place(&dbias, 0));
        for (int64_t i = 0; i < n; i++) {
            double h = (get(&x, i) - mean) * scale, g = get(&dy, i);
            assert_near(simd, "dx", dtype, get(&dx, i), scale * (g * get(&weight, i) - u - h * uh),
                        20);
            assert_near(simd, "dweight", dtype, get(&dweight, i), 1 + g * h, 8);
            assert_near(simd, "dbias", dtype, get(&dbias, i), 2 + g, 8);
        }
    }
}

START_TEST(rows_of_layer_norm_are_those_of_plain_c) {
    for_each_table(check_normalisation);
}
END_TEST

static void check_attention_rows(const wg__simd *simd, wg_dtype dtype) {
    array x = normal(dtype, 9), bias = {.dtype = dtype}, keep = bias, g = normal(dtype, 10);
    for (int64_t i = 0; i < LENGTH; i++) {
        set(&bias, i, i % 5 == 1 ? -INFINITY : 0);
        set(&keep, i, i % 3 == 2 ? 0 : 1.5);
    }
    for (size_t l = 1; l < WG_COUNT(lengths); l++) {
        int64_t n = lengths[l];
        array s = x, dw = g;
        double sum = 0, mean = 0, log_sum;
        for (int64_t i = 0; i < n; i++)
            sum += exp(get(&x, i) + get(&bias, i));
        double inverse =
            simd->row_attention(n, place(&bias, 0), place(&keep, 0), place(&s, 0), &log_sum);
        assert_near(simd, "log_sum", dtype, log_sum, log(sum), 1);
        for (int64_t i = 0; i < n; i++) {
            double p = exp(get(&x, i) + get(&bias, i)) / sum;
            assert_near(simd, "a weight", dtype, get(&s, i) * inverse, p * get(&keep, i), 1);
            mean += p * get(&keep, i) * get(&g, i);
        }
        s = x;
        simd->row_attention_vjp(n, place(&bias, 0), place(&keep, 0), log(sum), 0.5, place(&s, 0),
                                place(&dw, 0));
        for (int64_t i = 0; i < n; i++) {
            double p = exp(get(&x, i) + get(&bias, i)) / sum;
            assert_near(simd, "a weight", dtype, get(&s, i), p * get(&keep, i), 1);
            assert_near(simd, "a score's gradient", dtype, get(&dw, i),
                        0.5 * p * (get(&g, i) * get(&keep, i) - mean), 4);
        }
    }
}

/* Without a bias and without factors, as with zeros and with ones. */
static void check_plain_attention_rows(const wg__simd *simd, wg_dtype dtype) {
    const size_t size = wg_dtype_size(dtype);
    array zeros = {.dtype = dtype}, ones = zeros, x = normal(dtype, 9), g = normal(dtype, 10);
    for (int64_t i = 0; i < LENGTH; i++)
        set(&ones, i, 1);
    for (size_t l = 1; l < WG_COUNT(lengths); l++)
        for (int form = 0; form < 3; form++) {
            const int64_t n = lengths[l];
            array s = x, s_by = x, dw = g, dw_by = g;
            void *bias = form & 1 ? place(&zeros, 0) : NULL;
            void *keep = form & 2 ? place(&ones, 0) : NULL;
            double log_sum, log_sum_by;
            ck_assert_double_eq(simd->row_attention(n, bias, keep, place(&s, 0), &log_sum),
                                simd->row_attention(n, place(&zeros, 0), place(&ones, 0),
                                                    place(&s_by, 0), &log_sum_by));
            ck_assert_double_eq(log_sum, log_sum_by);
            ck_assert_mem_eq(place(&s, 0), place(&s_by, 0), (size_t)n * size);
            s = s_by = x;
            simd->row_attention_vjp(n, bias, keep, log_sum, 0.5, place(&s, 0), place(&dw, 0));
            simd->row_attention_vjp(n, place(&zeros, 0), place(&ones, 0), log_sum, 0.5,
                                    place(&s_by, 0), place(&dw_by, 0));
            ck_assert_mem_eq(place(&s, 0), place(&s_by, 0), (size_t)n * size);
            ck_assert_mem_eq(place(&dw, 0), place(&dw_by, 0), (size_t)n * size);
        }
}

/* Every third one is hidden, and in steps of 2 every other one. */
static void check_masks(const wg__simd *simd, wg_dtype dtype) {
    bool mask[LENGTH];
    array bias = {.dtype = dtype};
    for (int64_t i = 0; i < LENGTH; i++)
        mask[i] = i % 3 != 0;
    for (int64_t step = 1; step <= 2; step++) {
        const int64_t n = LENGTH / step;
        set(&bias, n, 7);
        simd->mask_to_bias(n, mask, step, place(&bias, 0));
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(get(&bias, i), mask[i * step] ? 0 : -INFINITY);
        ck_assert_double_eq(get(&bias, n), 7);
    }
}

START_TEST(masks_hide_by_minus_infinity) {
    for_each_table(check_masks);
}
END_TEST

START_TEST(rows_of_attention_are_those_of_plain_c) {
    for_each_table(check_plain_attention_rows);
    for_each_table(check_attention_rows);
}
END_TEST

static void check_sums(const wg__simd *simd, wg_dtype dtype) {
    enum { ROWS = 7, WIDTH = 21, STRIDE = 27 };
    array x = normal(dtype, 11), sums = {.dtype = dtype};
    for (int64_t j = 0; j < WIDTH + 1; j++)
        set(&sums, j, 10);
    simd->add_rows(ROWS, WIDTH, STRIDE, place(&x, 0), place(&sums, 0));
    for (int64_t j = 0; j < WIDTH; j++) {
        double sum = 10;
        for (int64_t i = 0; i < ROWS; i++)
            sum += get(&x, i * STRIDE + j);
        assert_near(simd, "a sum", dtype, get(&sums, j), sum, 20);
    }
    ck_assert_double_eq(get(&sums, WIDTH), 10);
}

START_TEST(sums_of_rows_are_added_onto_what_is_there) {
    for_each_table(check_sums);
}
END_TEST

/* ---- Randomness ---- */

static void check_words(const wg__simd *simd, wg_dtype dtype) {
    (void)dtype;
    enum { GROUPS = 3 };
    /* The last of these goes past a carry into the upper word of the block's number. */
    static const uint64_t firsts[] = {0, 5, ((uint64_t)1 << 28) - 1};
    const uint64_t seed = 0x123456789abcdef, offset = 0xfedcba987654321;
    for (size_t f = 0; f < WG_COUNT(firsts); f++) {
        uint32_t words[GROUPS * WG__RANDOM_GROUP + 1];
        words[GROUPS * WG__RANDOM_GROUP] = 42;
        simd->random_words(seed, offset, firsts[f], GROUPS, words);
        for (uint64_t i = 0; i < GROUPS * WG__RANDOM_GROUP; i++) {
            uint64_t block = 16 * (firsts[f] + i / 64) + i % 16, word = i % 64 / 16;
            ck_assert_msg(words[i] == wg_random_bits(seed, offset, 4 * block + word),
                          "%s: word %d of groups from %llu", simd->name, (int)i,
                          (unsigned long long)firsts[f]);
        }
        ck_assert_uint_eq(words[GROUPS * WG__RANDOM_GROUP], 42);
    }
}

/* ---- Products ---- */

static void check_vectors(const wg__simd *simd, wg_dtype dtype) {
    const double scale = -1.5;
    array x = normal(dtype, 21), y = normal(dtype, 22);
    for (size_t k = 0; k < WG_COUNT(lengths); k++) {
        const int64_t n = lengths[k];
        double sum = 0, size = 1;
        for (int64_t i = 0; i < n; i++) {
            sum += get(&x, i) * get(&y, i);
            size += fabs(get(&x, i) * get(&y, i));
        }
        array product = normal(dtype, 24);
        const double before = get(&product, 1);
        wg__row_products one = {.a = place(&x, 0), .x = place(&y, 0), .n = n, .x_rows = 1};
        one.alpha = 1;
        one.y = place(&product, 0);
        simd->row_products(&one, 0, 1);
        assert_near(simd, "a dot product", dtype, get(&product, 0), sum, size);
        one.alpha = scale;
        one.beta = 2;
        one.y = place(&product, 1);
        simd->row_products(&one, 0, 1);
        assert_near(simd, "a dot product that is added", dtype, get(&product, 1),
                    scale * sum + 2 * before, 2 * size);
    }
    enum { ROWS = 7, STRIDE = 50 };
    for (int64_t n = 0; n < STRIDE; n++) {
        array sums = normal(dtype, 23);
        const array before = sums;
        simd->add_scaled_rows(ROWS, n, STRIDE, place(&x, 0), scale, place(&y, 0), 3,
                              place(&sums, 0));
        for (int64_t j = 0; j < n; j++) {
            double sum = get(&before, j);
            for (int64_t i = 0; i < ROWS; i++)
                sum += scale * get(&y, 3 * i) * get(&x, i * STRIDE + j);
            assert_near(simd, "a sum of scaled rows", dtype, get(&sums, j), sum, 20);
        }
        ck_assert_double_eq(get(&sums, n), get(&before, n));
    }
}

START_TEST(products_with_vectors_are_those_of_plain_c) {
    for_each_table(check_vectors);
}
END_TEST

/* So few rows of x that a row of A is read once for all, and more. */
static void check_row_products(const wg__simd *simd, wg_dtype dtype) {
    enum { ROWS = 3, STRIDE = 41, X_STRIDE = 40 };
    array a = normal(dtype, 25), x = normal(dtype, 26);
    for (int64_t x_rows = 1; x_rows < 8; x_rows++)
        for (int64_t n = 0; n <= X_STRIDE; n++) {
            array y = normal(dtype, 27);
            const array before = y;
            simd->row_products(&(wg__row_products){.a = place(&a, 0),
                                                   .x = place(&x, 0),
                                                   .n = n,
                                                   .a_stride = STRIDE,
                                                   .x_rows = x_rows,
                                                   .x_stride = X_STRIDE,
                                                   .alpha = 1.5,
                                                   .beta = n % 2 ? 0 : -1,
                                                   .y = place(&y, 0),
                                                   .y_stride = 2 * ROWS,
                                                   .y_step = 2},
                               1, ROWS);
            for (int64_t i = 0; i < x_rows * ROWS; i++) {
                const int64_t r = i / ROWS, o = i % ROWS;
                const double was = get(&before, 2 * i);
                double sum = n % 2 ? 0 : -was;
                for (int64_t j = 0; j < n; j++)
                    sum += 1.5 * get(&a, o * STRIDE + j) * get(&x, r * X_STRIDE + j);
                if (o == 0) /* before the beginning */
                    ck_assert_double_eq(get(&y, 2 * i), was);
                else
                    assert_near(simd, "a product of rows", dtype, get(&y, 2 * i), sum, 60);
                ck_assert_double_eq(get(&y, 2 * i + 1), get(&before, 2 * i + 1));
            }
        }
}

START_TEST(products_of_rows_are_those_of_plain_c) {
    for_each_table(check_row_products);
}
END_TEST

/* B row by row or column by column; C is read where beta is not 0, which it is not written beyond.
 */
static void check_small(const wg__simd *simd, wg_dtype dtype, int64_t n, double beta) {
    enum { M = 3, K = 4, C_ROW = 95 };
    array a = normal(dtype, 24), b = normal(dtype, 25), c = normal(dtype, 26);
    const array before = c;
    const bool transposed = n % 2;
    const int64_t b_row = transposed ? 1 : n, b_column = transposed ? K : 1;
    simd->small_product(M, n, K, 0.5, place(&a, 0), 2, 11, place(&b, 0), b_row, b_column, beta,
                        place(&c, 0), C_ROW);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = beta == 0 ? 0 : beta * get(&before, i * C_ROW + j);
            for (int64_t l = 0; l < K; l++)
                sum += 0.5 * get(&a, 2 * i + 11 * l) * get(&b, l * b_row + j * b_column);
            assert_near(simd, "a small product", dtype, get(&c, i * C_ROW + j), sum, 10);
        }
        ck_assert_double_eq(get(&c, i * C_ROW + n), get(&before, i * C_ROW + n));
    }
}

static void check_small_products(const wg__simd *simd, wg_dtype dtype) {
    for (int64_t n = 1; n <= 90; n++) {
        check_small(simd, dtype, n, 0);
        check_small(simd, dtype, n, -0.25);
    }
}

/* B is packed from its columns or from its rows, next to each other or not; A lies by rows or by
 * columns; C is written or added onto, or to it a row. */
static void check_panels(const wg__simd *simd, wg_dtype dtype, int64_t m, int64_t n, int form) {
    enum { K = 9, ROW = 48 };
    const bool across = form & 1, by_columns = form & 2, onto_c = form & 8, onto_row = form & 16;
    const int64_t step = form & 4 ? 2 : 1, panel = WG__PANEL_VECTORS * simd->lanes;
    const int64_t vectors = (n + simd->lanes - 1) / simd->lanes * simd->lanes;
    const int64_t stride = (across ? K : n) * step;
    array x = normal(dtype, 50), a = normal(dtype, 51), c = normal(dtype, 52);
    array row = normal(dtype, 53), *d = onto_row ? &row : onto_c ? &c : NULL;
    const int64_t d_row = onto_row ? 0 : ROW;
    array packed = {.dtype = dtype};
    const array before = c;
    (across ? simd->pack_columns : simd->pack_rows)(across ? n : K, across ? K : n, place(&x, 0),
                                                    stride, step, place(&packed, 0));
    simd->panel_product(&(wg__panel_product){.m = m,
                                             .n = n,
                                             .k = K,
                                             .alpha = 0.5,
                                             .a = place(&a, 0),
                                             .a_row = by_columns ? 1 : K + 2,
                                             .a_column = by_columns ? m + 1 : 1,
                                             .b = place(&packed, 0),
                                             .b_panel = across ? K * panel : panel,
                                             .b_row = across ? panel : vectors,
                                             .d = d ? place(d, 0) : NULL,
                                             .d_row = d_row,
                                             .c = place(&c, 0),
                                             .c_row = ROW});
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = d ? get(onto_row ? &row : &before, i * d_row + j) : 0;
            for (int64_t l = 0; l < K; l++)
                sum += 0.5 * get(&a, by_columns ? i + l * (m + 1) : i * (K + 2) + l) *
                       get(&x, across ? j * stride + l * step : l * stride + j * step);
            assert_near(simd, "a product of panels", dtype, get(&c, i * ROW + j), sum, 10);
        }
        for (int64_t j = vectors; j < ROW; j++)
            ck_assert_double_eq(get(&c, i * ROW + j), get(&before, i * ROW + j));
    }
}

static void check_panel_products(const wg__simd *simd, wg_dtype dtype) {
    for (int form = 0; form < 24; form++)
        for (int64_t m = 1; m <= 15; m++)
            for (int64_t n = 1; n <= 40; n += n < 6 ? 1 : 7)
                check_panels(simd, dtype, m, n, form);
}

START_TEST(products_of_panels_are_those_of_plain_c) {
    for_each_table(check_panel_products);
}
END_TEST

START_TEST(small_products_are_those_of_plain_c) {
    for_each_table(check_small_products);
}
END_TEST

START_TEST(random_words_are_those_of_random123) {
    for_each_table(check_words);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        functions_are_those_of_the_math_library_wherever_an_element_stands,
        functions_treat_nan_and_infinities_as_the_math_library,
        functions_of_two_are_those_of_the_math_library,
        derivatives_are_those_of_the_functions,
        functions_by_numbers_are_those_of_plain_c,
        gates_are_those_of_plain_c_and_may_be_overwritten,
        rows_of_softmax_are_those_of_plain_c,
        weighted_rows_are_those_of_plain_c,
        rows_of_layer_norm_are_those_of_plain_c,
        rows_of_attention_are_those_of_plain_c,
        masks_hide_by_minus_infinity,
        sums_of_rows_are_added_onto_what_is_there,
        products_with_vectors_are_those_of_plain_c,
        products_of_rows_are_those_of_plain_c,
        small_products_are_those_of_plain_c,
        products_of_panels_are_those_of_plain_c,
        random_words_are_those_of_random123};
    return wg_run_tests("simd", WG_COUNT(tests), tests);
}
