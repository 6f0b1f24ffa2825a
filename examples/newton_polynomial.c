/* Fits a polynomial to points with 10 % outliers: a robust loss, minimised by Newton's method. Each
 * step solves H d = -g by conjugate gradients. They need only products H v, so the Hessian H is
 * never formed   (Nocedal & Wright 2006, ch. 7).
 *
 *     cc newton_polynomial.c $(pkg-config --cflags --libs wengert) -lm -o newton && ./newton */
#include <math.h>
#include <stdio.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

enum { POINTS = 200, DEGREE = 5, STEPS = 40 };

#define CONVERGED 1e-9 /* of the length of the gradient */

static const double truth[DEGREE + 1] = {0.5, -1, 0, 2, 1, -1.5};

typedef struct data {
    wg_tensor *powers; /* (N, DEGREE + 1): 1, x, x^2, ... */
    wg_tensor *values; /* (N) */
} data;

static data make_data(wg_generator *generator) {
    double powers[POINTS][DEGREE + 1], values[POINTS];
    for (int i = 0; i < POINTS; i++) {
        double x = -1 + 2.0 * i / (POINTS - 1), power = 1;
        values[i] = 0.02 * wg_random_normal(generator);
        values[i] += i % 10 == 3 ? (i % 20 == 3 ? 5 : -5) : 0;
        for (int k = 0; k <= DEGREE; k++, power *= x) {
            powers[i][k] = power;
            values[i] += truth[k] * power;
        }
    }
    return (data){wg_from_array(WG_F64, WG_DIMS(POINTS, DEGREE + 1), powers),
                  wg_from_array(WG_F64, WG_DIMS(POINTS), values)};
}

/* As a wg_function of the coefficients: sum of sqrt(1 + (r / s)^2) - 1 over the residuals r, which
 * grows with the square of small ones and with large ones themselves; s = 0.1. */
static int robust_loss(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    const data *points = context;
    (void)input_count, (void)output_count;
    wg_tensor *residuals = wg_sub(wg_matmul(points->powers, inputs[0]), points->values);
    wg_tensor *scaled = wg_mul_scalar(residuals, 10);
    wg_tensor *each = wg_add_scalar(wg_sqrt(wg_add_scalar(wg_mul(scaled, scaled), 1)), -1);
    outputs[0] = wg_sum(each, WG_ALL, false);
    return outputs[0] ? 0 : -1;
}

static double dot(wg_tensor *a, wg_tensor *b) {
    return wg_item(wg_dot(a, b));
}

/* a + t b */
static wg_tensor *plus(wg_tensor *a, double t, wg_tensor *b) {
    return wg_add(a, wg_mul_scalar(b, t));
}

/* The d with H d = -g, as nearly as |H d + g| <= tolerance, by conjugate gradients. */
static wg_tensor *newton_direction(data *points, wg_tensor *at, wg_tensor *gradient,
                                   double tolerance, int *products) {
    wg_tensor *direction = wg_zeros_like(gradient), *residual = wg_mul_scalar(gradient, -1);
    wg_tensor *search = residual, *product;
    double norm = dot(residual, residual);
    for (*products = 0; sqrt(norm) > tolerance && *products < 10 * DEGREE; ++*products) {
        if (wg_hvp(robust_loss, points, 1, &at, &search, NULL, NULL, &product) < 0)
            return NULL;
        double length = norm / dot(search, product), before = norm;
        direction = plus(direction, length, search);
        residual = plus(residual, -length, product);
        norm = dot(residual, residual);
        search = plus(residual, norm / before, search);
    }
    return direction;
}

/* One step. Returns the new point; *norm is the norm of the gradient at the old one. */
static wg_tensor *newton_step(data *points, wg_tensor *at, double *norm, int number) {
    wg_tensor *value, *gradient, *there, *next = at;
    if (wg_vjp(robust_loss, points, 1, &at, 1, NULL, NULL, &value, &gradient) < 0)
        return NULL;
    int products;
    *norm = sqrt(dot(gradient, gradient));
    if (*norm <= CONVERGED)
        return at;
    /* The nearer the minimum, the more exactly: that makes the last steps quadratic. */
    double tolerance = fmin(0.5, sqrt(*norm)) * *norm, length = 1;
    wg_tensor *d = newton_direction(points, at, gradient, tolerance, &products);
    double descent = dot(gradient, d);
    for (; length > 1e-6; length /= 2) { /* until the loss falls enough (Armijo 1966) */
        next = plus(at, length, d);
        if (robust_loss(1, &next, 1, &there, points) < 0)
            return NULL;
        if (wg_item(there) <= wg_item(value) + 1e-4 * length * descent)
            break;
    }
    printf("step %2d   loss %.10f   |gradient| %.2e   %d products   length %g\n", number,
           wg_item(value), *norm, products, length);
    return next;
}

/* The largest |p(x) - truth(x)| at the points. */
static double largest_error(const data *points, wg_tensor *coefficients) {
    wg_tensor *wrong = wg_sub(coefficients, wg_from_array(WG_F64, WG_DIMS(DEGREE + 1), truth));
    return wg_item(wg_max(wg_abs(wg_matmul(points->powers, wrong)), WG_ALL, false));
}

static void print_error(const wg_error *error, void *context) {
    (void)context;
    fprintf(stderr, "newton_polynomial: %s\n", error->message);
}

int main(void) {
    wg_error_set_handler(print_error, NULL);
    wg_generator generator = {.seed = 4};
    wg_scope run;
    wg_scope_begin(&run);
    data points = make_data(&generator);
    wg_tensor *coefficients = wg_zeros(WG_F64, WG_DIMS(DEGREE + 1));
    double norm = INFINITY;
    for (int step = 1; step <= STEPS && norm > CONVERGED && !wg_error_pending(); step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        coefficients = wg_scope_end(&scope, newton_step(&points, coefficients, &norm, step));
    }
    for (int64_t k = 0; k <= DEGREE; k++)
        printf("x^%d: %7.3f (%g)\n", (int)k, wg_at(coefficients, &k), truth[k]);
    printf("gradient at the end: %.1e\n", norm);
    printf("largest error of the polynomial: %.4f\n", largest_error(&points, coefficients));
    wg_scope_end(&run, NULL);
    return wg_error_pending() ? 1 : 0;
}
