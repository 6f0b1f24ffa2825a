/* Checks the derivative of a function against central differences.
 *
 * A scalar s is made of the function's outputs with random weights (never ones, which hide
 * transposed and swapped gradients), each coordinate x_i of each wanted input is moved by +-eps,
 * and
 *
 *     numeric_i = (s(x + eps e_i) - s(x - eps e_i)) / (2 eps)
 *
 * is held against the gradient that backward gives: |numeric - analytic| <= atol + rtol |analytic|.
 * Second order does the same to the function (x, weights) -> gradient(x), recorded with
 * create_graph. */
#ifndef WG_AUTOGRAD_GRADCHECK_H
#define WG_AUTOGRAD_GRADCHECK_H

#include "autograd.h"

/* A function under check: makes its outputs from the inputs by public ops; 0, or -1 with an error.
 * Must compute the same from the same inputs (fix the seeds of random ops). */
typedef int (*wg_gradcheck_function)(int input_count, wg_tensor *const *inputs, int output_count,
                                     wg_tensor **outputs, void *context);

typedef struct wg_gradcheck_options {
    double eps;    /* 0: 1e-6 */
    double atol;   /* 0: 1e-5 */
    double rtol;   /* 0: 1e-3 */
    int order;     /* 0 or 1: the gradient; 2: the gradient of the gradient too */
    uint64_t seed; /* of the cotangents */
} wg_gradcheck_options;

typedef struct wg_gradcheck_report {
    bool passed;
    int samples;          /* of an op: how many were run */
    int64_t compared;     /* coordinates that were compared, over all inputs */
    double largest_error; /* |numeric - analytic| / (atol + rtol |analytic|): 1 is the limit */
    double largest_absolute_error; /* |numeric - analytic| */
    /* Of the worst coordinate, the one with the largest error: */
    int order; /* 1 or 2 */
    int input; /* which input; in order 2 the weights of output j count as
                  input (number of inputs) + j */
    int ndim;  /* and where in it */
    int64_t coordinate[WG_MAX_DIMS];
    double numeric, analytic;
    char message[512]; /* what was found, in one line */
} wg_gradcheck_report;

/* Checks the gradients of `function` for each input that is f64 and requires grad. Inputs are moved
 * in place, so that they may also be parameters that the function knows without its arguments, and
 * are left as they were. Returns 0 when everything agreed; -1, with GRADIENT pending and the
 * report's message in it, when a coordinate disagreed, nothing was compared, the function failed or
 * gave two results for the same inputs; -1 while an error is pending. `report` (may be NULL) is
 * filled in either case. [GRADIENT] */
WG_API int wg_gradcheck(wg_gradcheck_function function, void *context, int input_count,
                        wg_tensor *const *inputs, int output_count,
                        const wg_gradcheck_options *options, wg_gradcheck_report *report);

/* Checks an op, built-in or the user's own, on all its samples; the report is that of the worst.
 * An op whose `no_gradient` says why it has none passes with compared == 0 after its forward ran.
 * Order 2 of a fused op differentiates its decomposition. [as wg_gradcheck; GRADIENT for an op
 * without samples, or with neither vjp nor reason] */
WG_API int wg_gradcheck_op(const wg_op *op, const wg_gradcheck_options *options,
                           wg_gradcheck_report *report);

#endif
