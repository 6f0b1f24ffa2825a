/* The vector kernels of functions, their derivatives and gates, against the math library and plain
 * C in f64, at any length; results do not depend on an element's position. */
#include "tests/tensor/simd_tables.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* ---- Functions of one element ---- */

#define SCALAR(NAME, FORMULA)                                                                      \
    static double NAME(double x) {                                                                 \
        return FORMULA;                                                                            \
    }
SCALAR(sigmoid, 1 / (1 + exp(-x)))
SCALAR(gelu, x / 2 * erfc(-x / sqrt(2)))
SCALAR(gelu_tanh, x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))))
SCALAR(softplus, fmax(x, 0) + log1p(exp(-fabs(x))))
SCALAR(silu, sigmoid(x) * x)
SCALAR(mish, tanh(softplus(x)) * x)
SCALAR(log_sigmoid, -softplus(-x))
SCALAR(hardsigmoid, fmin(fmax(x + 3, 0), 6) / 6)
SCALAR(hardswish, hardsigmoid(x) * x)
SCALAR(rsqrt, 1 / sqrt(x))
SCALAR(reciprocal, 1 / x)
SCALAR(square, pow(x, 2))
SCALAR(negative, -x)
SCALAR(relu, x <= 0 ? 0 : x)
SCALAR(sign, isnan(x) ? x : (x > 0) - (x < 0))

static void map(const wg__simd *simd, int64_t n, wg__map m, array *x, int64_t at, array *y) {
    simd->map(&m, n, (const void *[]){place(x, at)}, (void *[]){place(y, 0)});
}

static void pair(const wg__simd *simd, int64_t n, wg__map m, array *a, array *b, int64_t at,
                 array *y) {
    simd->map(&m, n, (const void *[]){place(a, at), place(b, at)}, (void *[]){place(y, 0)});
}

/* The gradients are written over gate and value. */
static void gate_slopes(const wg__simd *simd, int64_t n, int function, array *gate, array *value,
                        array *dy) {
    simd->map(&(wg__map){.kind = WG__GATE_SLOPES, .function = function}, n,
              (const void *[]){place(gate, 0), place(value, 0), place(dy, 0)},
              (void *[]){place(gate, 0), place(value, 0)});
}

#define ROW(OP, FUNCTION)                                                                          \
    { #FUNCTION, WG_##OP, FUNCTION, false }
#define FINITE(OP, FUNCTION)                                                                       \
    { #FUNCTION, WG_##OP, FUNCTION, true }
#define FUNCTIONS                                                                                  \
    FINITE(GELU, gelu), FINITE(GELU_TANH, gelu_tanh), FINITE(SILU, silu), FINITE(MISH, mish),      \
        FINITE(LOG_SIGMOID, log_sigmoid), FINITE(HARDSIGMOID, hardsigmoid),                        \
        FINITE(HARDSWISH, hardswish), ROW(SIGMOID, sigmoid), ROW(EXP, exp), ROW(EXP2, exp2),       \
        ROW(EXPM1, expm1), ROW(LOG, log), ROW(LOG2, log2), ROW(LOG10, log10), ROW(LOG1P, log1p),   \
        ROW(SIN, sin), ROW(COS, cos), ROW(TAN, tan), ROW(ASIN, asin), ROW(ACOS, acos),             \
        ROW(ATAN, atan), ROW(SINH, sinh), ROW(COSH, cosh), ROW(TANH, tanh), ROW(ASINH, asinh),     \
        ROW(ACOSH, acosh), ROW(ATANH, atanh), ROW(CBRT, cbrt), ROW(ERF, erf), ROW(ERFC, erfc),     \
        ROW(LGAMMA, lgamma), ROW(RSQRT, rsqrt), ROW(FLOOR, floor), ROW(CEIL, ceil),                \
        ROW(ROUND, rint), ROW(TRUNC, trunc), ROW(SQRT, sqrt), ROW(RECIPROCAL, reciprocal),         \
        ROW(SQUARE, square), ROW(NEG, negative), ROW(ABS, fabs), ROW(SIGN, sign), ROW(RELU, relu)

static const struct {
    const char *name;
    wg_elementwise_op function;
    double (*reference)(double x);
    bool finite; /* kernel and reference need agree on finite numbers only */
} functions[] = {FUNCTIONS};

TEST_OF_TABLES(functions_are_those_of_the_math_library_wherever_an_element_stands) {
    array x = normal(dtype, 1), y = {.dtype = dtype}, shifted = y;
    for (int64_t i = 0; i < LENGTH; i++)
        set(&x, i, 3 * get(&x, i));
    for (size_t f = 0; f < WG_COUNT(functions); f++) {
        map(simd, LENGTH, (wg__map){.function = functions[f].function}, &x, 0, &y);
        for (int64_t i = 0; i < LENGTH; i++)
            assert_near(simd, functions[f].name, dtype, get(&y, i),
                        functions[f].reference(get(&x, i)), 1);
        map(simd, LENGTH - 5, (wg__map){.function = functions[f].function}, &x, 5, &shifted);
        ck_assert_msg(
            memcmp(place(&shifted, 0), place(&y, 5), (LENGTH - 5) * wg_dtype_size(dtype)) == 0,
            "%s of %s depends on the place in the array", functions[f].name, simd->name);
    }
}

/* SLEEF has other ways for large angles, and Sleef_sinf8_u10 takes them for a whole vector. */
TEST_OF_TABLES(functions_of_an_element_do_not_depend_on_its_neighbours) {
    array x = normal(dtype, 2), among = x, y = {.dtype = dtype}, z = y;
    for (int64_t i = 0; i < LENGTH; i++) {
        set(&x, i, 10 * get(&x, i));
        set(&among, i, i % 2 ? 1e6 : get(&x, i));
    }
    for (size_t f = 0; f < WG_COUNT(functions); f++) {
        map(simd, LENGTH, (wg__map){.function = functions[f].function}, &x, 0, &y);
        map(simd, LENGTH, (wg__map){.function = functions[f].function}, &among, 0, &z);
        for (int64_t i = 0; i < LENGTH; i += 2)
            ck_assert_msg(isnan(get(&y, i)) || get(&y, i) == get(&z, i),
                          "%s of %s: %.9g alone, %.9g beside 1e6", functions[f].name, simd->name,
                          get(&y, i), get(&z, i));
    }
}

/* Zeros keep their sign; results are right wherever they are normal numbers of the dtype. */
TEST_OF_TABLES(functions_treat_nan_and_infinities_as_the_math_library) {
    const double values[] = {INFINITY, -INFINITY, NAN,   0,     -0.0,    1,      -1,     1e30,
                             -1e30,    -2e38,     3e38,  1e-37, -1e-37,  1e-40,  -1e-40, 1e19,
                             -1e19,    5e36,      88.5,  -88.5, 89.25,   -89.25, 89.5,   -89.5,
                             710.25,   -710.25,   711.0, 1e200, -1e300,  1e-310, 1.5,    -1.5,
                             2.5,      -2,        -2.5,  -1e9,  1 << 25, 0.49,   -0.51,  1e307};
    const double tiny = dtype == WG_F32 ? FLT_MIN : DBL_MIN;
    array x = {.dtype = dtype}, y = x;
    for (size_t i = 0; i < WG_COUNT(values); i++)
        set(&x, (int64_t)i, values[i]);
    for (size_t f = 0; f < WG_COUNT(functions); f++) {
        map(simd, WG_COUNT(values), (wg__map){.function = functions[f].function}, &x, 0, &y);
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

/* ---- Functions of two elements ---- */

static double logaddexp(double a, double b) {
    return a == b ? a + log(2) : fmax(a, b) + (isnan(a - b) ? NAN : log1p(exp(-fabs(a - b))));
}

static double xlogy(double a, double b) {
    return isnan(b) ? NAN : a == 0 ? 0 : a * log(b);
}

static double floor_rest(double a, double b) {
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Every pair of these, of both signs. */
TEST_OF_TABLES(functions_of_two_are_those_of_the_math_library) {
    static const double values[] = {0,    1,    0.5,  2,    3,     2.5,  0.37,     1e-3,
                                    88.0, 1e10, 1e30, 3e38, 1e-30, 17.0, INFINITY, NAN};
    const struct {
        const char *name;
        wg_elementwise_op function;
        double (*reference)(double a, double b);
    } pairs[] = {{"pow", WG_POW, pow},
                 {"atan2", WG_ATAN2, atan2},
                 {"hypot", WG_HYPOT, hypot},
                 {"logaddexp", WG_LOGADDEXP, logaddexp},
                 {"xlogy", WG_XLOGY, xlogy},
                 {"fmod", WG_FMOD, fmod},
                 {"remainder", WG_REMAINDER, floor_rest}};
    const int64_t n = 2 * WG_COUNT(values);
    const double tiny = dtype == WG_F32 ? FLT_MIN : DBL_MIN;
    array a = {.dtype = dtype}, b = a, y = a, shifted = a;
    for (int64_t i = 0; i < n; i++)
        set(&b, i, i % 2 ? -values[i / 2] : values[i / 2]);
    for (size_t f = 0; f < WG_COUNT(pairs); f++)
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                set(&a, j, get(&b, i));
            pair(simd, n, (wg__map){.kind = WG__PAIRS, .function = pairs[f].function}, &a, &b, 0,
                 &y);
            for (int64_t j = 0; j < n; j++) {
                const double exact = pairs[f].reference(get(&a, j), get(&b, j));
                const double expected = dtype == WG_F32 ? (double)(float)exact : exact;
                char what[80];
                snprintf(what, sizeof what, "%s of %g and %g", pairs[f].name, get(&a, j),
                         get(&b, j));
                if (fabs(expected) >= tiny || fabs(get(&y, j)) >= tiny || isnan(expected))
                    assert_near(simd, what, dtype, get(&y, j), expected, 0);
                ck_assert_msg(isnan(expected) || signbit(get(&y, j)) == signbit(expected),
                              "%s %s: the sign of %s", simd->name, wg_dtype_name(dtype), what);
            }
            pair(simd, n - 3, (wg__map){.kind = WG__PAIRS, .function = pairs[f].function}, &a, &b,
                 3, &shifted);
            ck_assert_msg(memcmp(place(&shifted, 0), place(&y, 3),
                                 (size_t)(n - 3) * wg_dtype_size(dtype)) == 0,
                          "%s of %s depends on the place in the array", pairs[f].name, simd->name);
        }
}

/* Operands of quotients of all sizes, many of them near integers. */
TEST_OF_TABLES(fmod_and_remainder_are_exact) {
    array a = normal(dtype, 11), b = normal(dtype, 12), rest = {.dtype = dtype},
          floor_rest_of = rest;
    for (int64_t i = 0; i < LENGTH; i++) {
        const double whole = rint(ldexp(get(&a, i), (int)(i % 40)));
        if (i % 2)
            set(&a, i, whole * get(&b, i));
        else
            set(&a, i, ldexp(get(&a, i), (int)(i % 60) - 20));
    }
    pair(simd, LENGTH, (wg__map){.kind = WG__PAIRS, .function = WG_FMOD}, &a, &b, 0, &rest);
    pair(simd, LENGTH, (wg__map){.kind = WG__PAIRS, .function = WG_REMAINDER}, &a, &b, 0,
         &floor_rest_of);
    for (int64_t i = 0; i < LENGTH; i++) {
        const double x = get(&a, i), y = get(&b, i), exact = floor_rest(x, y);
        ck_assert_msg(get(&rest, i) == fmod(x, y), "%s: fmod of %.17g and %.17g is %.17g",
                      simd->name, x, y, get(&rest, i));
        ck_assert_msg(get(&floor_rest_of, i) == (dtype == WG_F32 ? (double)(float)exact : exact),
                      "%s: remainder of %.17g and %.17g is %.17g", simd->name, x, y,
                      get(&floor_rest_of, i));
    }
}

/* The difference of neighbours is a term of the series: psi_n(x + 1) - psi_n(x) = (-1)^n n! / x^(n
 * + 1). At 1 the values are known: minus Euler's constant, zeta(2), -2 zeta(3) and 6 zeta(4). */
TEST_OF_TABLES(derivatives_of_lgamma_obey_their_recurrence) {
    static const double at_one[] = {-0.57721566490153286061, 1.6449340668482264365,
                                    -2.4041138063191885708, 6.4939394022668291491};
    if (dtype != WG_F64)
        return;
    array x = normal(dtype, 13), next = {.dtype = dtype}, y = next, y_next = next;
    for (int64_t i = 0; i < LENGTH; i++) {
        /* multiples of 1/64, so that x + 1 is exact */
        set(&x, i, i == 0 ? 1 : rint(512 * get(&x, i)) / 64 + 1. / 128);
        set(&next, i, get(&x, i) + 1);
    }
    for (int n = 0; n <= 3; n++) {
        map(simd, LENGTH, (wg__map){.function = WG__POLYGAMMA, .p = n}, &x, 0, &y);
        map(simd, LENGTH, (wg__map){.function = WG__POLYGAMMA, .p = n}, &next, 0, &y_next);
        ck_assert_double_le(fabs(get(&y, 0) / at_one[n] - 1), 2e-15);
        const double factorial = n == 3 ? 6 : n == 2 ? 2 : 1;
        for (int64_t i = 0; i < LENGTH; i++) {
            const double step = (n % 2 ? -factorial : factorial) / pow(get(&x, i), n + 1);
            const double size = fabs(get(&y, i)) + fabs(get(&y_next, i)) + fabs(step);
            ck_assert_msg(fabs(get(&y_next, i) - get(&y, i) - step) <= 4e-15 * size,
                          "%s: psi_%d(%.17g) is %.17g, one further %.17g", simd->name, n,
                          get(&x, i), get(&y, i), get(&y_next, i));
        }
    }
}

/* f' by central differences of the reference, in f64. */
TEST_OF_TABLES(derivatives_are_those_of_the_functions) {
    const struct {
        const char *name;
        wg_elementwise_op function;
        double (*reference)(double x);
        bool from_y;
    } sloped[] = {{"tanh", WG_TANH, tanh, true},
                  {"sigmoid", WG_SIGMOID, sigmoid, true},
                  {"erf", WG_ERF, erf, false},
                  {"gelu", WG_GELU, gelu, false},
                  {"gelu_tanh", WG_GELU_TANH, gelu_tanh, false},
                  {"silu", WG_SILU, silu, false},
                  {"mish", WG_MISH, mish, false},
                  {"log_sigmoid", WG_LOG_SIGMOID, log_sigmoid, false},
                  {"hardsigmoid", WG_HARDSIGMOID, hardsigmoid, false},
                  {"hardswish", WG_HARDSWISH, hardswish, false}};
    const double h = 1e-5;
    array x = normal(dtype, 2), dy = normal(dtype, 3), from = x, dx = {.dtype = dtype};
    for (size_t f = 0; f < WG_COUNT(sloped); f++) {
        for (int64_t i = 0; i < LENGTH; i++)
            set(&from, i, sloped[f].from_y ? sloped[f].reference(get(&x, i)) : get(&x, i));
        pair(simd, LENGTH, (wg__map){.kind = WG__SLOPES, .function = sloped[f].function}, &from,
             &dy, 0, &dx);
        for (int64_t i = 0; i < LENGTH; i++) {
            double up = sloped[f].reference(get(&x, i) + h);
            double slope = (up - sloped[f].reference(get(&x, i) - h)) / (2 * h);
            ck_assert_msg(fabs(get(&dx, i) - get(&dy, i) * slope) < 1e-5 * (1 + fabs(get(&dy, i))),
                          "%s: the derivative of %s at %g", simd->name, sloped[f].name, get(&x, i));
        }
    }
}

/* ---- Functions by two numbers, and gates ---- */

static const double by[] = {0.7, 1.5};

SCALAR(leaky_relu, x > 0 ? x : by[0] * x)
SCALAR(elu, x > 0 ? x : by[0] * expm1(x))
SCALAR(softplus_by, by[0] * x > by[1] ? x : softplus(by[0] * x) / by[0])

static double slope_at(double (*f)(double x), double x) {
    const double h = 1e-5;
    return (f(x + h) - f(x - h)) / (2 * h);
}

TEST_OF_TABLES(functions_by_numbers_are_those_of_plain_c) {
    const struct {
        const char *name;
        int function;
        double (*reference)(double x);
    } with_options[] = {{"leaky_relu", WG__LEAKY_RELU, leaky_relu},
                        {"elu", WG__ELU, elu},
                        {"softplus", WG__SOFTPLUS, softplus_by}};
    array x = normal(dtype, 20), dy = normal(dtype, 21), y = {.dtype = dtype}, dx = y, shifted = y;
    for (size_t f = 0; f < WG_COUNT(with_options); f++) {
        const int function = with_options[f].function;
        map(simd, LENGTH, (wg__map){.function = function, .p = by[0], .q = by[1]}, &x, 0, &y);
        pair(simd, LENGTH, (wg__map){WG__SLOPES, function, by[0], by[1]}, &x, &dy, 0, &dx);
        for (int64_t i = 0; i < LENGTH; i++) {
            const double at = get(&x, i), g = get(&dy, i);
            assert_near(simd, with_options[f].name, dtype, get(&y, i),
                        with_options[f].reference(at), 1);
            const double slope = slope_at(with_options[f].reference, at);
            ck_assert_msg(fabs(get(&dx, i) - g * slope) < 1e-5 * (1 + fabs(g)),
                          "%s: the derivative of %s at %g", simd->name, with_options[f].name, at);
        }
        map(simd, LENGTH - 5, (wg__map){.function = function, .p = by[0], .q = by[1]}, &x, 5,
            &shifted);
        ck_assert(memcmp(place(&shifted, 0), place(&y, 5), (LENGTH - 5) * wg_dtype_size(dtype)) ==
                  0);
    }
}

TEST_OF_TABLES(gates_are_those_of_plain_c_and_may_be_overwritten) {
    const struct {
        const char *name;
        wg_elementwise_op function;
        double (*reference)(double x);
    } gates[] = {{"glu", WG_GLU, sigmoid},
                 {"swiglu", WG_SWIGLU, silu},
                 {"geglu", WG_GEGLU, gelu},
                 {"reglu", WG_REGLU, relu}};
    const array x = normal(dtype, 22), v = normal(dtype, 23), dy = normal(dtype, 24);
    for (size_t f = 0; f < WG_COUNT(gates); f++) {
        array gate = x, value = v, cotangent = dy, y = {.dtype = dtype};
        pair(simd, LENGTH, (wg__map){.kind = WG__PAIRS, .function = gates[f].function}, &gate,
             &value, 0, &y);
        gate_slopes(simd, LENGTH, gates[f].function, &gate, &value, &cotangent);
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

/* The gradients are written over logits and targets. */
TEST_OF_TABLES(cross_entropies_of_logits_are_those_of_plain_c) {
    const array x = normal(dtype, 25), t = normal(dtype, 26), dy = normal(dtype, 27);
    array logit = x, target = t, cotangent = dy, y = {.dtype = dtype};
    pair(simd, LENGTH, (wg__map){.kind = WG__PAIRS, .function = WG__BCE}, &logit, &target, 0, &y);
    gate_slopes(simd, LENGTH, WG__BCE, &logit, &target, &cotangent);
    for (int64_t i = 0; i < LENGTH; i++) {
        const double at = get(&x, i), to = get(&t, i), g = get(&dy, i);
        const double loss = to * log1p(exp(-at)) + (1 - to) * log1p(exp(at));
        ck_assert_double_lt(fabs(get(&y, i) - loss), 1e-5);
        ck_assert_double_lt(fabs(get(&logit, i) - g * (sigmoid(at) - to)), 1e-5);
        ck_assert_double_lt(fabs(get(&target, i) + g * at), 1e-5);
    }
    ck_assert_double_eq(get(&logit, LENGTH), get(&x, LENGTH));
    ck_assert_double_eq(get(&target, LENGTH), get(&t, LENGTH));
}
